/* update.c - UpdateDomain, decided. See decide.h.
 *
 * One request means one of two things: new settings, which for a global domain only the primary
 * cluster takes, or a failover, which any cluster takes (move.c). Settings and failovers
 * have versions of their own, and a request that mixes them is refused. The list of clusters
 * belongs to the settings; only for domains with attributes may it come along with a failover.
 * Attributes are never taken away by leaving them out: a request says so in fields of its own. */
#include "base/check.h"
#include "domain/decide/common.h"
#include "domain/entries.h"
#include "wire/presence.h"

/* Is the field one that the request sets? Without a mask every field is. */
static bool
is_set(const API(UpdateDomainRequest) *request, const char *field)
{
    return presence_mask_has(request->update_mask, field);
}

/* What would move the domain and is blank means nothing, unless a mask names it. */
static struct move
move_of(const API(UpdateDomainRequest) *request)
{
    struct move move = {.reason = ""};
    bool has_mask = request->update_mask != NULL;
    if (is_set(request, "active_cluster_name") &&
        (has_mask || request->active_cluster_name[0] != '\0'))
        move.active_cluster_name = request->active_cluster_name;
    if (is_set(request, "active_clusters"))
        move.attributes = request->active_clusters;
    if (is_set(request, "failover_timeout"))
        move.failover_timeout = request->failover_timeout;
    move.removed = request->removed_attributes; /* nothing else could be meant: no mask is asked */
    move.n_removed = request->n_removed_attributes;
    move.removes_all = request->removes_all_attributes;
    return move;
}

static bool
has_clusters(const API(UpdateDomainRequest) *request)
{
    return is_set(request, "clusters") && request->n_clusters > 0;
}

static bool
is_failover(const struct move *move)
{
    return move->active_cluster_name != NULL || move->failover_timeout != NULL ||
           attributes_are_named(move->attributes) || move_removes(move);
}

/* Does it set anything that is neither a failover nor the list of clusters? */
static bool
has_settings(const API(UpdateDomainRequest) *request)
{
    return is_set(request, "description") || is_set(request, "owner_email") ||
           is_set(request, "history_archival_uri") || is_set(request, "visibility_archival_uri") ||
           is_set(request, "delete_bad_binary") ||
           (is_set(request, "data") && request->n_data > 0) ||
           (is_set(request, "workflow_execution_retention_period") &&
            request->workflow_execution_retention_period != NULL) ||
           (is_set(request, "bad_binaries") && request->bad_binaries != NULL) ||
           (is_set(request, "history_archival_status") && request->history_archival_status != 0) ||
           (is_set(request, "visibility_archival_status") &&
            request->visibility_archival_status != 0);
}

/* --- settings --------------------------------------------------------------------------------- */

static struct error *
update_bad_binaries(API(Domain) *domain, const API(UpdateDomainRequest) *request,
                    const struct domain_rules *rules, const struct domain_moment *moment,
                    struct arena *arena)
{
    bool adds = is_set(request, "bad_binaries") && request->bad_binaries != NULL;
    const char *removed = is_set(request, "delete_bad_binary") ? request->delete_bad_binary : "";
    if (!adds && removed[0] == '\0')
        return NULL;
    API(BadBinaries) *next = bad_binaries_merge(
        domain->bad_binaries, adds ? request->bad_binaries : NULL, moment->now, arena);
    if ((int64_t)next->n_binaries > rules->bad_binaries_max)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Total resetBinaries cannot exceed the max limit: %lld",
                         (long long)rules->bad_binaries_max);
    if (removed[0] != '\0' && !bad_binaries_remove(next, removed))
        return error_new(arena, ERR_BAD_REQUEST, "Bad binary checksum %s doesn't exists.", removed);
    domain->bad_binaries = next;
    return NULL;
}

static struct error *
update_archival(API(Domain) *domain, const API(UpdateDomainRequest) *request,
                const struct domain_rules *rules, struct arena *arena)
{
    struct archival history = {0, ""}, visibility = {0, ""};
    if (is_set(request, "history_archival_status"))
        history.status = request->history_archival_status;
    if (is_set(request, "history_archival_uri"))
        history.uri = request->history_archival_uri;
    if (is_set(request, "visibility_archival_status"))
        visibility.status = request->visibility_archival_status;
    if (is_set(request, "visibility_archival_uri"))
        visibility.uri = request->visibility_archival_uri;
    return decide_set_archival(domain, history, visibility, rules, arena);
}

static struct error *
update_settings(API(Domain) *domain, const API(UpdateDomainRequest) *request,
                const struct domain_rules *rules, const struct domain_moment *moment,
                struct arena *arena)
{
    if (is_set(request, "description"))
        domain->description = request->description;
    if (is_set(request, "owner_email"))
        domain->owner_email = request->owner_email;
    if (is_set(request, "data"))
        domain->data = data_merge(domain->n_data, domain->data, request->n_data, request->data,
                                  arena, &domain->n_data);
    struct error *err = NULL;
    if (is_set(request, "workflow_execution_retention_period") &&
        request->workflow_execution_retention_period != NULL)
        err = decide_set_retention(domain, request->workflow_execution_retention_period, rules,
                                   arena);
    if (err == NULL)
        err = update_bad_binaries(domain, request, rules, moment, arena);
    return err != NULL ? err : update_archival(domain, request, rules, arena);
}

static void
set_clusters(STORED(DomainRecord) *record, const API(UpdateDomainRequest) *request)
{
    if (!has_clusters(request))
        return;
    record->domain->n_clusters = request->n_clusters;
    record->domain->clusters = request->clusters;
}

static struct error *
decide_settings(const struct domain *current, const API(UpdateDomainRequest) *request,
                const struct domain_rules *rules, const struct domain_moment *moment,
                struct arena *arena, struct domain_decision *decision)
{
    bool is_global = current->record->domain->is_global_domain;
    struct error *err = decide_check_may_change(is_global, rules, arena);
    if (err != NULL)
        return err;
    STORED(DomainRecord) *record = decide_copy(current, moment, arena);
    set_clusters(record, request);
    err = update_settings(record->domain, request, rules, moment, arena);
    if (err == NULL && has_clusters(request))
        err = decide_check_clusters(record->domain, rules->group, arena);
    if (err == NULL)
        err = decide_check_cool_down(current, rules, moment, arena);
    if (err != NULL)
        return err;
    record->config_version++;
    *decision = (struct domain_decision){.what = DOMAIN_UPDATED, .next = record};
    decide_check(current, decision);
    return NULL;
}

/* --- failovers -------------------------------------------------------------------------------- */

static bool
will_have_attributes(const struct domain *current, const struct move *move, struct arena *arena)
{
    return attributes_read(current->record->domain->active_clusters, arena).count > 0 ||
           attributes_read(move->attributes, arena).count > 0;
}

static struct error *
decide_failover(const struct domain *current, const API(UpdateDomainRequest) *request,
                const struct move *move, const struct domain_rules *rules,
                const struct domain_moment *moment, struct arena *arena,
                struct domain_decision *decision)
{
    check(current->record->domain->is_global_domain && is_failover(move));
    bool brings_clusters = has_clusters(request);
    bool is_configuring = brings_clusters || move_removes(move);
    if (has_settings(request) || (brings_clusters && !will_have_attributes(current, move, arena)))
        return error_new(arena, ERR_BAD_REQUEST,
                         "Cannot set active cluster to current cluster when other parameters are "
                         "set.");
    struct error *err = NULL;
    if (is_configuring) /* settings have one writer: the primary */
        err = decide_check_may_change(true, rules, arena);
    if (err != NULL)
        return err;
    STORED(DomainRecord) *record = decide_copy(current, moment, arena);
    set_clusters(record, request);
    record->config_version += brings_clusters;
    return decide_move(current, move, rules, moment, arena, record, decision);
}

/* --- the verb --------------------------------------------------------------------------------- */

/* What needs no look at the domain. A failover needs no token, so that it works in an emergency;
 * settings do, also those that come along with one. */
static struct error *
check_request(const API(UpdateDomainRequest) *request, const struct move *move,
              const struct domain_rules *rules, struct arena *arena)
{
    struct error *err = decide_check_name(request->name, rules, arena);
    if (err == NULL && (!is_failover(move) || has_clusters(request) || move_removes(move)))
        err = decide_check_permission(request->security_token, rules, arena);
    if (err == NULL && is_failover(move))
        err = decide_check_lockdown(rules, arena);
    return err;
}

struct error *
domain_decide_update(const struct domain *current, const API(UpdateDomainRequest) *request,
                     const struct domain_rules *rules, const struct domain_moment *moment,
                     struct arena *arena, struct domain_decision *decision)
{
    struct move move = move_of(request);
    struct error *err = check_request(request, &move, rules, arena);
    if (err != NULL)
        return err;
    if (current == NULL)
        return domain_error_unknown(request->name, arena);
    bool is_local = !current->record->domain->is_global_domain;
    bool moves = is_failover(&move) || move.attributes != NULL;
    if (is_local && (moves || has_clusters(request)))
        return error_new(arena, ERR_BAD_REQUEST, REFUSE_LOCAL);
    if (is_failover(&move))
        return decide_failover(current, request, &move, rules, moment, arena, decision);
    return decide_settings(current, request, rules, moment, arena, decision);
}

/* --- of operators ------------------------------------------------------------------------------
 */

struct error *
domain_decide_async(const struct domain *current,
                    const ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest) *request,
                    const struct domain_rules *rules, const struct domain_moment *moment,
                    struct arena *arena, struct domain_decision *decision)
{
    struct error *err = decide_check_name(request->domain, rules, arena);
    STORED(DomainRecord) *record = NULL;
    if (err == NULL)
        err = decide_copy_settings(current, request->domain, rules, moment, arena, &record);
    if (err != NULL)
        return err;
    record->domain->async_workflow_config = request->configuration;
    *decision = (struct domain_decision){.what = DOMAIN_UPDATED, .next = record};
    decide_check(current, decision);
    return NULL;
}
