/* drains_left.c - drains that something else ended: how they ended is not forgotten. See drains.h.
 *
 * A move by force, a newer failover or the deletion of the domain takes a drain out of its record.
 * That change does not know which shards were missing, and does not have the entry of the failover
 * history at hand. So it leaves a row beside those of the shards, in the same commit:
 *
 *   domain-drain   domain id, scope, name, failover version, "" → DrainLeftRecord
 *
 * and the host that coordinates drains, now or after a crash, enters the outcome and deletes all of
 * these rows. */
#include "base/check.h"
#include "domain/active.h"
#include "domain/owner/drains.h"
#include "fiber/probe.h"
#include "store/key.h"
#include "wire/message.h"

#define PAGE_ROWS 1000

/* --- leaving ------------------------------------------------------------------------------------
 */

static struct slice
left_key(const char *domain_id, const STORED(Drain) *drain, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, slice_text(domain_id));
    key_text(&key, slice_text(drain->scope));
    key_text(&key, slice_text(drain->name));
    key_i64(&key, drain->failover_version);
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

/* --- reading ------------------------------------------------------------------------------------
 */

bool
drain_left_is(struct slice rest, struct arena *arena)
{
    struct slice cluster;
    return key_take_text(&rest, arena, &cluster) && cluster.length == 0 && rest.length == 0;
}

static struct error *
read_left(struct slice value, struct arena *arena, STORED(DrainLeftRecord) **left)
{
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(drain_left_record), value, left);
    if (err != NULL || (*left)->format != DRAIN_LEFT_FORMAT || (*left)->drain == NULL)
        return error_new(arena, ERR_CORRUPT, "a graceful failover that is over cannot be read");
    return NULL;
}

struct error *
pending_enter_left(struct pending *pending, struct slice value, struct arena *arena)
{
    STORED(DrainLeftRecord) *left = NULL;
    struct error *err = read_left(value, arena, &left);
    if (err != NULL)
        return err;
    pending->end = left->end;
    pending->end_time = left->end_time;
    return NULL;
}

/* --- reporting --------------------------------------------------------------------------------
 */

/* The report of one that something else ended. It changes the domain in nothing but its history,
 * and is replicated to the other clusters like any other change. */
struct late_report {
    const struct pending *pending;
    STORED(FailoverRecord) *failover; /* NULL: the history has it, or no entry */
    bool is_reported;
};

static struct error *
decide_report(const struct change_request *change_request, const struct domain_rules *rules,
              const struct domain_moment *moment, struct domain_decision *decision)
{
    struct late_report *late_report = (struct late_report *)change_request->request;
    const struct domain *current =
        domain_cache_find_id(&change_request->domains->newest, late_report->pending->domain_id);
    (void)rules;
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    late_report->is_reported = current != NULL;
    if (late_report->is_reported)
        domain_decide_report(current, late_report->failover, moment, change_request->arena,
                             decision);
    return NULL;
}

static void
add_late_report(const struct change_request *change_request, struct batch *batch)
{
    const struct late_report *late_report = change_request->request;
    batch_delete_drain(batch, late_report->pending);
}

static void
fill_late_report(void *context, struct batch *batch)
{
    const struct late_report *late_report = context;
    batch_delete_drain(batch, late_report->pending);
    if (late_report->failover != NULL)
        batch_add_failover(batch, late_report->failover);
}

/* If the domain is gone, only the history is written, and no other cluster is sent it. */
struct error *
pending_write_report(struct domains *domains, const struct pending *pending,
                     STORED(FailoverRecord) *failover, struct arena *arena)
{
    check(pending->is_over);
    struct late_report late_report = {.pending = pending, .failover = failover};
    struct change_request change_request = {.domains = domains,
                                            .name = pending->domain_name,
                                            .request = &late_report,
                                            .decide = decide_report,
                                            .add = add_late_report,
                                            .arena = arena};
    if (failover != NULL) {
        change_request_run(&change_request);
        domain_drop(change_request.changed);
    }
    if (change_request.err != NULL || late_report.is_reported)
        return change_request.err;
    return domains_write(domains, fill_late_report, &late_report, arena);
}

/* --- what a host that is gone left behind
 * ------------------------------------------------------------
 */

/* What a key is about. */
struct drain_name {
    const char *domain_id, *scope, *name;
    int64_t failover_version;
    bool is_left; /* it says how the drain ended */
};

static bool
read_key(struct slice key, struct arena *arena, struct drain_name *name)
{
    struct slice domain_id, scope, rest;
    bool is_good = key_take_text(&key, arena, &domain_id) && key_take_text(&key, arena, &scope) &&
                   key_take_text(&key, arena, &rest) && key_take_i64(&key, &name->failover_version);
    if (!is_good)
        return false;
    name->domain_id = arena_text_of(arena, domain_id);
    name->scope = arena_text_of(arena, scope);
    name->name = arena_text_of(arena, rest);
    name->is_left = drain_left_is(key, arena);
    return true;
}

/* Is the version in effect, or was it? If not, another host knows more than this one. */
static bool
is_past(struct domains *domains, const struct drain_name *name)
{
    const struct domain *domain = domain_cache_find_id(&domains->domain_caches[0], name->domain_id);
    if (domain == NULL)
        return true;
    struct cluster_attribute attribute = {name->scope[0] == '\0' ? NULL : name->scope, name->name};
    return domain_active(domain, &attribute, domains->options.group).failover_version >=
           name->failover_version;
}

struct drain_sweep {
    struct slice *keys;
    size_t count;
};

static void
fill_sweep(void *context, struct batch *batch)
{
    const struct drain_sweep *sweep = context;
    for (size_t i = 0; i < sweep->count; i++)
        batch_delete(batch, ROW_DOMAIN_DRAIN, sweep->keys[i]);
}

/* Is it in the list, though it may be over? */
static bool
is_listed(const struct drains *drains, const struct drain_name *name)
{
    list_each(node, &drains->pending) {
        const struct pending *pending = list_entry(node, struct pending, node);
        if (pending->drain->failover_version == name->failover_version &&
            strcmp(pending->domain_id, name->domain_id) == 0 &&
            strcmp(pending->drain->scope, name->scope) == 0 &&
            strcmp(pending->drain->name, name->name) == 0)
            return true;
    }
    return false;
}

/* Its end has not been reported: adds it to the list, as one that is over. */
static struct error *
take_left(struct drains *drains, const struct drain_name *name, struct slice value,
          struct arena *arena)
{
    STORED(DrainLeftRecord) *left = NULL;
    struct error *err = read_left(value, arena, &left);
    if (err != NULL)
        return err;
    probe("drain_left_found");
    struct pending *pending = pending_new(name->domain_id, left->domain_name, left->drain);
    pending->is_over = true;
    list_push_back(&drains->pending, &pending->node);
    return NULL;
}

static struct error *
sweep_row(struct drains *drains, const struct row *row, struct drain_sweep *sweep,
          struct arena *arena)
{
    struct drain_name name;
    bool is_named = read_key(row->key, arena, &name);
    if (is_named && is_listed(drains, &name))
        return NULL;
    if (is_named && name.is_left)
        return take_left(drains, &name, row->value, arena);
    if (!is_named || is_past(drains->domains, &name))
        sweep->keys[sweep->count++] = row->key;
    return NULL;
}

struct error *
drains_sweep(struct drains *drains, struct arena *arena)
{
    struct domains *domains = drains->domains;
    struct scan scan = {
        .partition = PARTITION_OF_DOMAINS, .kind = ROW_DOMAIN_DRAIN, .rows_max = PAGE_ROWS};
    struct rows rows = {.has_more = true};
    while (rows.has_more) {
        struct error *err = store_scan(domains->options.store, &scan, arena, &rows);
        if (err != NULL)
            return err;
        struct drain_sweep sweep = {.keys =
                                        arena_zalloc(arena, rows.count + 1, sizeof(struct slice))};
        for (size_t i = 0; err == NULL && i < rows.count; i++)
            err = sweep_row(drains, &rows.row[i], &sweep, arena);
        check(sweep.count <= rows.count);
        if (rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
        if (err == NULL && sweep.count > 0)
            err = domains_write(domains, fill_sweep, &sweep, arena);
        if (err != NULL)
            return err;
    }
    return NULL;
}
