/* rows.c - what the store has of graceful failovers to here. See inside.h.
 *
 * One row per shard of another cluster, so that hosts of this one that are notified of different
 * shards never overwrite each other:
 *
 *   domain-drain   domain id, scope, name, failover version, cluster, shard → DrainShardRecord
 *
 * They are deleted by the commit that ends the drain, or, if something else ended it, by the one
 * that reports it (domain/drain_end.h). */
#include "base/check.h"
#include "failover/inside.h"
#include "fiber/clock.h"
#include "wire/message.h"

#define PAGE_ROWS 1000

static struct slice
shard_key(const struct pending *pending, const struct drain_source *source, uint32_t shard,
          struct arena *arena)
{
    const STORED(Drain) *drain = pending->drain;
    struct key_writer key = drain_key_begin(pending->domain_id, drain->scope, drain->name,
                                            drain->failover_version, arena);
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
    check(record->shard_count <= DRAIN_SHARDS_MAX);
    check(record->is_ready == (record->blocked[0] == '\0'));
    batch_put(batch, ROW_DOMAIN_DRAIN, shard_key(pending, source, shard, batch->arena),
              message_encode(batch->arena, &record->base));
}

/* --- reading ------------------------------------------------------------------------------------
 */

static struct error *
enter_row(struct pending *pending, const struct row *row, struct arena *arena)
{
    check(row->key.length >= pending->key.length);
    struct slice rest =
        slice_of(row->key.data + pending->key.length, row->key.length - pending->key.length);
    uint64_t shard = 0;
    struct slice cluster;
    STORED(DrainShardRecord) *record = NULL;
    if (drain_left_is(rest, arena))
        return pending_enter_left(pending, row->value, arena);
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
pending_read(struct drains *drains, struct pending *pending, struct arena *arena)
{
    struct scan scan = {.partition = PARTITION_OF_DOMAINS,
                        .kind = ROW_DOMAIN_DRAIN,
                        .from = pending->key,
                        .to = key_after_prefix(pending->key, arena)};
    struct rows rows;
    struct error *err = store_scan(drains->options.store, &scan, arena, &rows);
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = enter_row(pending, &rows.row[i], arena);
    if (err == NULL)
        pending->is_read = true;
    return err;
}

/* --- how it ended -------------------------------------------------------------------------------
 */

static void
add_clusters(STORED(DrainOutcome) *outcome, const struct pending *pending, struct arena *arena)
{
    outcome->n_clusters = pending->source_count;
    outcome->clusters = arena_zalloc(arena, pending->source_count + 1, sizeof *outcome->clusters);
    for (size_t i = 0; i < pending->source_count; i++) {
        const struct drain_source *source = &pending->sources[i];
        STORED(DrainedCluster) *cluster = message_new(arena, STORED_TYPE(drained_cluster));
        cluster->name = arena_text(arena, source->cluster_name);
        cluster->shard_count = source->shard_count;
        cluster->ready_count = source->ready_count;
        outcome->clusters[i] = cluster;
    }
}

STORED(DrainOutcome) *
pending_outcome(const struct pending *pending, STORED(DrainEnd) end, struct arena *arena)
{
    check(end != 0);
    STORED(DrainOutcome) *outcome = message_new(arena, STORED_TYPE(drain_outcome));
    outcome->scope = arena_text(arena, pending->drain->scope);
    outcome->name = arena_text(arena, pending->drain->name);
    outcome->end = end;
    outcome->end_time = pending->end_time > 0 ? pending->end_time : clock_wall();
    outcome->shard_count = pending_shards(pending);
    add_clusters(outcome, pending, arena);
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
