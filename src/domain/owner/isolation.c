/* isolation.c - isolation groups that are drained: of one domain, which is a part of its record,
 * and of all domains of the cluster, which has a row of its own. See domains.h.
 *
 * Each loop has its own copy of the cluster's; a change is durable and known to all loops when it
 * is answered. Other hosts on the same store look for it from time to time. */
#include "base/check.h"
#include "base/memory.h"
#include "domain/owner/inside.h"
#include "route/owner.h"
#include "store/key.h"
#include "wire/message.h"

#define FORMAT 1
#define KEY    "isolation-groups"

/* --- of a domain ---------------------------------------------------------------------------------
 */

static struct error *
decide_isolation(const struct change_request *change_request, const struct domain_rules *rules,
                 const struct domain_moment *moment, struct domain_decision *decision)
{
    const struct domain *current =
        domain_cache_find_name(&change_request->domains->newest, change_request->name);
    return domain_decide_isolation(current, change_request->request, rules, moment,
                                   change_request->arena, decision);
}

static struct error *
serve_isolation(void *domains, struct owner owner, const void *argument, struct arena *arena,
                void *answer)
{
    const ADMIN(UpdateDomainIsolationGroupsRequest) *request = argument;
    struct change_request change_request = {.domains = domains,
                                            .name = request->domain,
                                            .request = request,
                                            .decide = decide_isolation,
                                            .arena = arena};
    return change_request_serve(&change_request, answer);
}

/* As the changes of change.c: lost, an operator sets them again; never twice. */
static const struct route_question isolation_question = {
    .name = "domains.isolation",
    .request = ADMIN_TYPE(update_domain_isolation_groups_request),
    .answer = INTERNAL_TYPE(changed_domain),
    .serve = serve_isolation,
};

struct error *
domains_set_isolation(struct domains *domains,
                      const ADMIN(UpdateDomainIsolationGroupsRequest) *request, struct arena *arena)
{
    return domains_ask_for_change(domains, &isolation_question, request, arena, NULL);
}

/* --- of the cluster ------------------------------------------------------------------------------
 */

struct showing {
    struct domains *domains;
    struct slice bytes;
    struct arena *arena;
    struct error *err;
};

/* What this loop knows from now on. A copy of the process, as the domain caches are: another host
 * reads the row. */
static void
show(void *argument)
{
    struct showing *showing = argument;
    struct cluster_isolation *groups = &showing->domains->groups[route_place_here()];
    struct arena *arena = arena_new(0);
    STORED(IsolationGroupsRecord) *record = NULL;
    showing->err = message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(isolation_groups_record),
                                     showing->bytes, &record);
    if (showing->err != NULL) {
        showing->err = error_copy(showing->arena, showing->err);
        arena_free(arena);
        return;
    }
    if (groups->arena != NULL)
        arena_free(groups->arena);
    *groups = (struct cluster_isolation){arena, record->groups, arena_slice(arena, showing->bytes)};
}

static struct error *
show_all(struct domains *domains, struct slice bytes, struct arena *arena)
{
    struct showing showing = {.domains = domains, .bytes = bytes, .arena = arena};
    struct error *err = NULL;
    for (unsigned i = domains->loops; err == NULL && i > 0; i--) { /* what loop 0 has, all have */
        err = loop_call(loop_at(i - 1), show, &showing, arena);
        if (err == NULL)
            err = showing.err;
    }
    return err;
}

static struct error *
show_stored(struct domains *domains, struct arena *arena)
{
    bool found = false;
    struct slice value;
    struct error *err =
        store_get(domains->options.store, PARTITION_OF_DOMAINS, ROW_ISOLATION_GROUPS,
                  key_of_text(KEY, arena), arena, &found, &value);
    if (err != NULL || !found || slice_equal(value, domains->groups[0].bytes))
        return err;
    return show_all(domains, value, arena);
}

struct error *
domain_isolation_load(struct domains *domains, struct arena *arena)
{
    check(domains->groups == NULL);
    domains->groups = memory_zalloc(domains->loops, sizeof *domains->groups);
    return show_stored(domains, arena);
}

struct error *
domain_isolation_refresh(struct domains *domains, struct arena *arena)
{
    check(route_is_here(owner_of_domains()));
    struct error *err = fiber_mutex_lock(&domains->regrouping, arena);
    if (err != NULL)
        return err;
    err = show_stored(domains, arena);
    fiber_mutex_unlock(&domains->regrouping);
    return err;
}

void
domain_isolation_free(struct domains *domains)
{
    for (unsigned i = 0; domains->groups != NULL && i < domains->loops; i++) {
        if (domains->groups[i].arena != NULL)
            arena_free(domains->groups[i].arena);
    }
    memory_free(domains->groups);
}

static void
fill(void *context, struct batch *batch)
{
    const struct slice *bytes = context;
    batch_put(batch, ROW_ISOLATION_GROUPS, key_of_text(KEY, batch->arena), *bytes);
}

static struct error *
serve_cluster_isolation(void *context, struct owner owner, const void *argument,
                        struct arena *arena, void *answer)
{
    struct domains *domains = context;
    const ADMIN(UpdateGlobalIsolationGroupsRequest) *request = argument;
    STORED(IsolationGroupsRecord) record = CADENZA__STORAGE__V1__ISOLATION_GROUPS_RECORD__INIT;
    record.format = FORMAT;
    record.groups = request->isolation_groups;
    struct slice bytes = message_encode(arena, &record.base);
    check(bytes.length > 0);
    struct error *err = fiber_mutex_lock(&domains->regrouping, arena);
    if (err != NULL)
        return err;
    err = domains_write(domains, fill, &bytes, arena);
    if (err == NULL)
        err = show_all(domains, bytes, arena);
    fiber_mutex_unlock(&domains->regrouping);
    return err;
}

/* Lost: an operator sets them again. Never twice: somebody else may have set them in between. */
static const struct route_question cluster_isolation_question = {
    .name = "domains.cluster_isolation",
    .request = ADMIN_TYPE(update_global_isolation_groups_request),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_cluster_isolation,
};

struct error *
domains_set_cluster_isolation(struct domains *domains,
                              const API(IsolationGroupConfiguration) *groups, struct arena *arena)
{
    ADMIN(UpdateGlobalIsolationGroupsRequest)
    request = ADMIN_VALUE(UPDATE_GLOBAL_ISOLATION_GROUPS_REQUEST__INIT);
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    request.isolation_groups = (API(IsolationGroupConfiguration) *)groups;
    return domains_ask(domains, &cluster_isolation_question, &request, arena, &answer);
}

const API(IsolationGroupConfiguration) *
domains_cluster_isolation(const struct domains *domains)
{
    return domains->groups[route_place_here()].groups;
}

/* --- both ----------------------------------------------------------------------------------------
 */

static bool
is_isolated(const API(IsolationGroupConfiguration) *groups, const char *name)
{
    for (size_t i = 0; groups != NULL && i < groups->n_isolation_groups; i++) {
        const API(IsolationGroupPartition) *group = groups->isolation_groups[i];
        if (strcmp(group->name, name) == 0 &&
            group->state == API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_DRAINED))
            return true;
    }
    return false;
}

bool
domains_is_group_isolated(const struct domains *domains, const char *domain_id, const char *group)
{
    if (is_isolated(domains_cluster_isolation(domains), group))
        return true;
    const struct domain *domain = domains_find_id(domains, domain_id);
    return domain != NULL && is_isolated(domain->record->domain->isolation_groups, group);
}
