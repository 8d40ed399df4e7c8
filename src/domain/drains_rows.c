/* drains_rows.c - what the store has of graceful failovers to here. See drains.h.
 *
 * One row per shard of another cluster, so that hosts of this one that hear of different shards
 * never write over each other:
 *
 *   domain-drain   domain id, scope, name, failover version, cluster, shard → DrainShardRecord
 *
 * They go with the commit that ends the drain. */
#include "base/check.h"
#include "domain/attributes.h"
#include "domain/drains.h"
#include "fiber/clock.h"
#include "store/key.h"
#include "wire/message.h"

#define PAGE_ROWS 1000

struct slice
drain_key(const char *domain_id, const char *scope, const char *name, int64_t failover_version,
          struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, slice_text(domain_id));
    key_text(&key, slice_text(scope));
    key_text(&key, slice_text(name));
    key_i64(&key, failover_version);
    return key_end(&key);
}

static struct slice
shard_key(const struct pending *pending, const struct drain_source *source, uint32_t shard,
          struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, slice_text(pending->domain_id));
    key_text(&key, slice_text(pending->drain->scope));
    key_text(&key, slice_text(pending->drain->name));
    key_i64(&key, pending->drain->failover_version);
    key_text(&key, slice_text(source->cluster_name));
    key_u64(&key, shard);
    return key_end(&key);
}

void
batch_add_drain_shard(struct batch *batch, const struct pending *pending,
                      const struct drain_source *source, uint32_t shard,
                      const STORED(DrainShardRecord) *record)
{
    check(record->format == DRAIN_SHARD_FORMAT && shard < record->shard_count);
    batch_put(batch, ROW_DOMAIN_DRAIN, shard_key(pending, source, shard, batch->arena),
              message_encode(batch->arena, &record->base));
}

void
batch_delete_drain(struct batch *batch, const struct pending *pending)
{
    batch_delete_range(batch, ROW_DOMAIN_DRAIN, pending->key,
                       key_after_prefix(pending->key, batch->arena));
}

/* --- reading ------------------------------------------------------------------------------------
 */

static struct error *
enter_row(struct pending *pending, const struct row *row, struct arena *arena)
{
    struct slice rest =
        slice_of(row->key.data + pending->key.length, row->key.length - pending->key.length);
    uint64_t shard = 0;
    struct slice cluster;
    STORED(DrainShardRecord) *record = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(drain_shard_record), row->value, &record);
    if (err != NULL || !key_take_text(&rest, arena, &cluster) || !key_take_u64(&rest, &shard) ||
        record->format != DRAIN_SHARD_FORMAT || shard >= record->shard_count ||
        record->shard_count > DRAIN_SHARDS_MAX)
        return error_new(arena, ERR_CORRUPT, "a row of a graceful failover cannot be read");
    struct drain_source *source = pending_source(pending, arena_text_of(arena, cluster));
    if (source != NULL)
        pending_enter(pending, source, (uint32_t)shard, record);
    return NULL;
}

struct error *
pending_read(struct domains *domains, struct pending *pending, struct arena *arena)
{
    struct scan scan = {.partition = PARTITION_OF_DOMAINS,
                        .kind = ROW_DOMAIN_DRAIN,
                        .from = pending->key,
                        .to = key_after_prefix(pending->key, arena)};
    struct rows rows;
    struct error *err = store_scan(domains->options.store, &scan, arena, &rows);
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = enter_row(pending, &rows.row[i], arena);
    if (err == NULL)
        pending->is_read = true;
    return err;
}

/* --- how it ended -------------------------------------------------------------------------------
 */

static STORED(DrainOutcome) *
outcome_of(const struct pending *pending, STORED(DrainEnd) end, struct arena *arena)
{
    STORED(DrainOutcome) *outcome = message_new(arena, STORED_TYPE(drain_outcome));
    outcome->scope = arena_text(arena, pending->drain->scope);
    outcome->name = arena_text(arena, pending->drain->name);
    outcome->end = end;
    outcome->end_time = clock_wall();
    outcome->shard_count = pending_shards(pending);
    outcome->missing = (char **)pending_list_missing(pending, arena, &outcome->n_missing);
    const struct drain_source *source = pending_source(pending, pending->drain->source_cluster);
    uint32_t count = source == NULL ? 0 : source->shard_count;
    outcome->missing_shards = arena_zalloc(arena, count + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < count; i++) {
        if (!source->shards[i].is_ready)
            outcome->missing_shards[outcome->n_missing_shards++] = i;
    }
    return outcome;
}

static bool
has_outcome(const STORED(FailoverRecord) *failover, const STORED(Drain) *drain)
{
    for (size_t i = 0; i < failover->n_outcomes; i++) {
        const STORED(DrainOutcome) *outcome = failover->outcomes[i];
        if (strcmp(outcome->scope, drain->scope) == 0 && strcmp(outcome->name, drain->name) == 0)
            return true;
    }
    return false;
}

static void
add_outcome(STORED(FailoverRecord) *failover, STORED(DrainOutcome) *outcome, struct arena *arena)
{
    STORED(DrainOutcome) **all =
        arena_zalloc(arena, failover->n_outcomes + 1, sizeof(STORED(DrainOutcome) *));
    for (size_t i = 0; i < failover->n_outcomes; i++)
        all[i] = failover->outcomes[i];
    all[failover->n_outcomes++] = outcome;
    failover->outcomes = all;
}

struct error *
pending_report(struct domains *domains, const struct pending *pending, STORED(DrainEnd) end,
               struct arena *arena, STORED(FailoverRecord) **failover)
{
    const STORED(Drain) *drain = pending->drain;
    STORED(FailoverRecord) named = {.domain_id = (char *)pending->domain_id,
                                    .failover_version = drain->domain_failover_version,
                                    .created_time = drain->start_time,
                                    .id = drain->failover_id};
    bool is_found = false;
    struct slice bytes;
    *failover = NULL;
    struct error *err = store_get(domains->options.store, PARTITION_OF_DOMAINS, ROW_DOMAIN_FAILOVER,
                                  failover_key(&named, arena), arena, &is_found, &bytes);
    if (err != NULL || !is_found)
        return err;
    STORED(FailoverRecord) *record = NULL;
    err = message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(failover_record), bytes, &record);
    if (err != NULL || has_outcome(record, drain))
        return err;
    add_outcome(record, outcome_of(pending, end, arena), arena);
    *failover = record;
    return NULL;
}

/* --- what nobody waits for ----------------------------------------------------------------------
 */

/* What a key is about. */
struct drain_name {
    const char *domain_id, *scope, *name;
    int64_t failover_version;
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
    return true;
}

/* Is the version in effect, or was it? If not, another host knows more than this one. */
static bool
is_past(struct domains *domains, const struct drain_name *name)
{
    const struct domain *domain = book_find_id(&domains->books[0], name->domain_id);
    if (domain == NULL)
        return true;
    struct cluster_attribute attribute = {name->scope[0] == '\0' ? NULL : name->scope, name->name};
    return domain_active(domain, &attribute, domains->options.group).failover_version >=
           name->failover_version;
}

struct sweep {
    struct slice *keys;
    size_t count;
};

static void
fill_sweep(void *context, struct batch *batch)
{
    const struct sweep *sweep = context;
    for (size_t i = 0; i < sweep->count; i++)
        batch_delete(batch, ROW_DOMAIN_DRAIN, sweep->keys[i]);
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
        struct sweep sweep = {.keys = arena_zalloc(arena, rows.count + 1, sizeof(struct slice))};
        for (size_t i = 0; i < rows.count; i++) {
            struct drain_name name;
            if (!read_key(rows.row[i].key, arena, &name) ||
                (drains_find(drains, name.domain_id, name.scope, name.name,
                             name.failover_version) == NULL &&
                 is_past(domains, &name)))
                sweep.keys[sweep.count++] = rows.row[i].key;
        }
        if (rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
        err = sweep.count == 0 ? NULL : domains_write(domains, fill_sweep, &sweep, arena);
        if (err != NULL)
            return err;
    }
    return NULL;
}
