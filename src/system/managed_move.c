/* managed_move.c - moves a batch of domains. See managed.h. It can be repeated: a domain that is
 * already in place is left alone. */
#include "api/api.h"
#include "api/workflow/diagnose.h"
#include "domain/attributes.h"
#include "domain/domains.h"
#include "system/managed.h"
#include "system/types.h"
#include "wire/message.h"
#include "wire/presence.h"

#define REASON        "managed failover"
#define FAILOVER_PATH "/uber.cadence.api.v1.DomainAPI/FailoverDomain"

/* The attributes that are not in their target yet; NULL: none. */
static API(ActiveClusters) *
find_attributes(const struct managed_move *move, const API(Domain) *domain, struct arena *arena)
{
    struct attributes now = attributes_read(domain->active_clusters, arena), wanted = {0};
    for (size_t i = 0; i < move->attribute_count; i++) {
        const struct managed_attribute *one = &move->attributes[i];
        const struct attribute *found = attributes_find(&now, one->scope, one->name);
        if (found != NULL && strcmp(found->cluster_name, one->target) == 0)
            continue;
        if (attributes_find(&wanted, one->scope, one->name) != NULL)
            continue;
        attributes_add(&wanted,
                       &(struct attribute){.scope = (char *)one->scope,
                                           .name = (char *)one->name,
                                           .cluster_name = (char *)one->target},
                       arena);
    }
    return attributes_write(&wanted, arena);
}

/* A graceful failover begins in its target. One that is under way goes on. */
static struct error *
move_gracefully(const struct system_task *task, const API(FailoverDomainRequest) *request,
                const char *target)
{
    const struct system_parts *parts = task->parts;
    if (parts->api == NULL || strcmp(target, parts->group->current->name) == 0) {
        struct error *err = parts->api == NULL
                                ? NULL
                                : api_check_graceful(parts->api, request->domain_name, task->arena);
        return err != NULL ? err : domains_failover(parts->domains, request, task->arena, NULL);
    }
    API(FailoverDomainResponse) *response = NULL;
    return api_call_cluster(parts->api, target, FAILOVER_PATH, &request->base, task->arena,
                            API_TYPE(failover_domain_response), (ProtobufCMessage **)&response);
}

static struct error *
move_domain(const struct system_task *task, const struct managed_move *move)
{
    const struct domain *domain = domains_find_name(task->parts->domains, move->domain);
    if (domain == NULL)
        return domain_error_unknown(move->domain, task->arena);
    const API(Domain) *now = domain->record->domain;
    API(FailoverDomainRequest) *request =
        message_new(task->arena, API_TYPE(failover_domain_request));
    request->domain_name = (char *)move->domain;
    if (strcmp(now->active_cluster_name, move->target) != 0)
        request->domain_active_cluster_name = (char *)move->target;
    request->active_clusters = find_attributes(move, now, task->arena);
    request->reason = REASON;
    if (move->timeout > 0)
        request->failover_timeout = presence_make_duration(task->arena, move->timeout);
    bool has_moved =
        request->domain_active_cluster_name[0] == '\0' && request->active_clusters == NULL;
    if (has_moved)
        return NULL;
    if (move->timeout > 0)
        return move_gracefully(task, request, move->target);
    return domains_failover(task->parts->domains, request, task->arena, NULL);
}

/* The older kinds move a domain only to a cluster where it has workers. */
static struct error *
check_workers(const struct system_task *task, const struct managed_move *move)
{
    enum managed_kind kind;
    bool is_older = managed_kind_find(task->workflow_type, &kind) &&
                    (kind == KIND_FAILOVER || kind == KIND_REBALANCE);
    return is_older && move->target[0] != '\0'
               ? managed_check_pollers(task, move->domain, move->target)
               : NULL;
}

/* Is the cause the store or this host, not the domain? Then the next attempt goes on. */
static bool
ends_attempt(const struct error *err)
{
    return err->kind == ERR_CANCELLED || err->kind == ERR_DEADLINE ||
           (system_passes(err) && err->kind != ERR_SERVICE_BUSY); /* busy: it has only just moved */
}

static struct error *
move_all(struct system_task *task, struct slice *result)
{
    struct managed_moves moves;
    struct managed_outcomes outcomes = {0};
    if (!managed_read_moves(task->input, task->arena, &moves)) {
        task->reason = MANAGED_ERROR;
        return error_new(task->arena, ERR_BAD_REQUEST, "the domains to move cannot be read");
    }
    for (size_t i = 0; i < moves.count; i++) {
        struct error *err = check_workers(task, &moves.all[i]);
        if (err == NULL)
            err = move_domain(task, &moves.all[i]);
        if (err != NULL && ends_attempt(err))
            return err;
        managed_add_outcome(&outcomes, moves.all[i].domain, err == NULL ? NULL : err->message,
                            task->arena);
    }
    struct buffer out = {0};
    buffer_append_text(&out, "{");
    managed_append_outcomes(&out, &outcomes);
    buffer_append_text(&out, "}");
    *result = managed_take(&out, task->arena);
    return NULL;
}

const struct system_activity managed_move_activity = {
    .type = MANAGED_MOVE, .list = MANAGED_LIST, .domain = SYSTEM_DOMAIN, .run = move_all};
