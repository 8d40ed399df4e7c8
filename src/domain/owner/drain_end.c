/* drain_end.c - see drain_end.h.
 *
 * A drain ends by its coordinator; or a move by force, a newer failover or the deletion of the
 * domain takes it out of its record. Such a change does not know which shards were missing, and
 * does not have the entry of the failover history at hand. So it leaves a row beside those of the
 * coordinator, in the same commit:
 *
 *   domain-drain   domain id, scope, name, failover version, "" → DrainLeftRecord
 *
 * and the host that coordinates drains, now or after a crash, reports how it ended. */
#include "domain/drain_end.h"

#include "base/check.h"
#include "domain/active.h"
#include "domain/owner/inside.h"
#include "wire/message.h"

struct key_writer
drain_key_begin(const char *domain_id, const char *scope, const char *name,
                int64_t failover_version, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, slice_text(domain_id));
    key_text(&key, slice_text(scope));
    key_text(&key, slice_text(name));
    key_i64(&key, failover_version);
    return key;
}

/* --- leaving ------------------------------------------------------------------------------------
 */

static struct slice
left_key(const char *domain_id, const STORED(Drain) *drain, struct arena *arena)
{
    struct key_writer key =
        drain_key_begin(domain_id, drain->scope, drain->name, drain->failover_version, arena);
    key_text(&key, slice_text(""));
    return key_end(&key);
}

static struct active_cluster
active_of(const struct domain *domain, const STORED(Drain) *drain,
          const struct cluster_group *group)
{
    struct cluster_attribute attribute = {drain->scope[0] == '\0' ? NULL : drain->scope,
                                          drain->name};
    return domain_active(domain, &attribute, group);
}

/* Is it over in the record that comes next? */
static bool
has_left(const struct domain *next, const STORED(Drain) *drain, const struct cluster_group *group)
{
    struct cluster_attribute attribute = {drain->scope, drain->name};
    const STORED(Drain) *same = domain_find_drain(next, &attribute);
    return domain_cache_is_deleted(next) || same == NULL ||
           same->failover_version != drain->failover_version || !drain_is_to_here(same, group);
}

void
batch_add_left(struct batch *batch, const struct domain *before, const struct domain *next,
               const struct cluster_group *group, int64_t now)
{
    check(before == NULL || strcmp(before->id, next->id) == 0);
    for (size_t i = 0; before != NULL && i < before->record->n_drains; i++) {
        STORED(Drain) *drain = before->record->drains[i];
        if (!drain_is_to_here(drain, group) || !has_left(next, drain, group))
            continue;
        struct active_cluster active = active_of(next, drain, group);
        bool is_active = !domain_cache_is_deleted(next) && active.status == ACTIVE_HERE &&
                         active.failover_version == drain->failover_version;
        STORED(DrainLeftRecord) *left = message_new(batch->arena, STORED_TYPE(drain_left_record));
        left->format = DRAIN_LEFT_FORMAT;
        left->drain = drain;
        left->domain_name = (char *)before->name;
        left->end = is_active ? CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_FORCED
                              : CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_SUPERSEDED;
        left->end_time = now;
        batch_put(batch, ROW_DOMAIN_DRAIN, left_key(before->id, drain, batch->arena),
                  message_encode(batch->arena, &left->base));
    }
}

/* --- ending -------------------------------------------------------------------------------------
 */

/* What is asked of the owner, and what came of it. */
struct ending_drain {
    const struct drain_end *end;
    bool is_done;
};

static void
delete_rows(const struct drain_end *end, struct batch *batch)
{
    struct key_writer key =
        drain_key_begin(end->domain_id, end->scope, end->name, end->failover_version, batch->arena);
    struct slice prefix = key_end(&key);
    batch_delete_range(batch, ROW_DOMAIN_DRAIN, prefix, key_after_prefix(prefix, batch->arena));
}

static void
add_deletes(const struct change_request *change_request, struct batch *batch)
{
    const struct ending_drain *ending = change_request->request;
    delete_rows(ending->end, batch);
}

static struct error *
decide_drained(const struct change_request *change_request, const struct domain_rules *rules,
               const struct domain_moment *moment, struct domain_decision *decision)
{
    struct ending_drain *ending = (struct ending_drain *)change_request->request;
    const struct domain *current =
        domain_cache_find_id(&change_request->domains->newest, ending->end->domain_id);
    struct error *err =
        domain_decide_drained(current, ending->end, rules, moment, change_request->arena, decision);
    ending->is_done = err == NULL && decision->what == DOMAIN_UPDATED;
    return err;
}

struct error *
domains_end_drain(struct domains *domains, const struct drain_end *end, struct arena *arena,
                  bool *is_done)
{
    struct ending_drain ending = {.end = end};
    struct change_request change_request = {.domains = domains,
                                            .name = end->domain_name,
                                            .request = &ending,
                                            .decide = decide_drained,
                                            .add = add_deletes,
                                            .reports_end = true,
                                            .arena = arena};
    change_request_run(&change_request);
    domain_drop(change_request.changed);
    *is_done = ending.is_done;
    return change_request.err;
}

/* --- reporting ----------------------------------------------------------------------------------
 */

static struct error *
decide_report(const struct change_request *change_request, const struct domain_rules *rules,
              const struct domain_moment *moment, struct domain_decision *decision)
{
    struct ending_drain *ending = (struct ending_drain *)change_request->request;
    const struct drain_end *end = ending->end;
    const struct domain *current =
        domain_cache_find_id(&change_request->domains->newest, end->domain_id);
    (void)rules;
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    ending->is_done = current != NULL;
    if (ending->is_done)
        domain_decide_report(current, end->failover, moment, change_request->arena, decision);
    return NULL;
}

static void
fill_report(void *context, struct batch *batch)
{
    const struct drain_end *end = context;
    delete_rows(end, batch);
    if (end->failover != NULL)
        batch_add_failover(batch, end->failover);
}

struct error *
domains_report_drain(struct domains *domains, const struct drain_end *end, struct arena *arena)
{
    struct ending_drain ending = {.end = end};
    struct change_request change_request = {.domains = domains,
                                            .name = end->domain_name,
                                            .request = &ending,
                                            .decide = decide_report,
                                            .add = add_deletes,
                                            .arena = arena};
    if (end->failover != NULL) {
        change_request_run(&change_request);
        domain_drop(change_request.changed);
    }
    if (change_request.err != NULL || ending.is_done)
        return change_request.err;
    return domains_write(domains, fill_report, (void *)end, arena);
}
