/* pending.c - one graceful failover to here, in memory: for whom it waits, and what it
 * lacks. See inside.h. */
#include <string.h>

#include "base/check.h"
#include "failover/inside.h"
#include "wire/message.h"

struct pending *
pending_take(struct pending *pending)
{
    check(pending->references > 0);
    pending->references++;
    return pending;
}

void
pending_drop(struct pending *pending)
{
    check(pending->references > 0);
    if (--pending->references > 0)
        return;
    check(list_is_empty(&pending->node));
    arena_free(pending->arena);
}

static uint32_t
count_ready(const struct drain_source *source)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < source->shard_count; i++)
        count += source->shards[i].is_ready;
    return count;
}

void
pending_check(const struct pending *pending)
{
    check(pending->references > 0 && pending->key.length > 0);
    check(pending->source_count == pending->drain->n_waits_for);
    for (size_t i = 0; i < pending->source_count; i++) {
        const struct drain_source *source = &pending->sources[i];
        check((source->shards == NULL) == (source->shard_count == 0));
        check(source->ready_count <= source->shard_count);
        check(source->shard_count <= DRAIN_SHARDS_MAX);
        check(!CHECK_DEEPLY || source->ready_count == count_ready(source));
    }
}

struct pending *
pending_new(const char *domain_id, const char *domain_name, const STORED(Drain) *drain)
{
    check(drain->failover_version > drain->previous_failover_version);
    struct arena *arena = arena_new(0);
    struct pending *pending = arena_make(arena, struct pending);
    STORED(Drain) *copy = NULL;
    struct error *err =
        message_decode(arena, STORED_TYPE(drain), message_encode(arena, &drain->base), &copy);
    check(err == NULL);
    struct key_writer key =
        drain_key_begin(domain_id, drain->scope, drain->name, drain->failover_version, arena);
    *pending = (struct pending){
        .references = 1,
        .arena = arena,
        .domain_id = arena_text(arena, domain_id),
        .domain_name = arena_text(arena, domain_name),
        .drain = copy,
        .key = key_end(&key),
        .sources = arena_zalloc(arena, drain->n_waits_for + 1, sizeof(struct drain_source)),
        .source_count = drain->n_waits_for,
    };
    for (size_t i = 0; i < drain->n_waits_for; i++)
        pending->sources[i].cluster_name = copy->waits_for[i];
    list_init(&pending->node);
    return pending;
}

struct drain_source *
pending_source(const struct pending *pending, const char *cluster_name)
{
    for (size_t i = 0; i < pending->source_count; i++) {
        if (strcmp(pending->sources[i].cluster_name, cluster_name) == 0)
            return &pending->sources[i];
    }
    return NULL;
}

uint32_t
pending_shards(const struct pending *pending)
{
    uint32_t count = 0;
    for (size_t i = 0; i < pending->source_count; i++)
        count += pending->sources[i].shard_count;
    return count;
}

uint32_t
pending_ready_shards(const struct pending *pending)
{
    uint32_t count = 0;
    for (size_t i = 0; i < pending->source_count; i++)
        count += pending->sources[i].ready_count;
    return count;
}

bool
pending_is_ready(const struct pending *pending)
{
    for (size_t i = 0; i < pending->source_count; i++) {
        const struct drain_source *source = &pending->sources[i];
        if (source->shard_count == 0 || source->ready_count < source->shard_count)
            return false;
    }
    return true;
}

/* Is the shard of that number ready in every cluster that has one? A cluster that has said nothing
 * may have one. */
static bool
is_ready_everywhere(const struct pending *pending, uint32_t shard)
{
    for (size_t i = 0; i < pending->source_count; i++) {
        const struct drain_source *source = &pending->sources[i];
#ifdef CADENZA_FAULT_silent_cluster_left_out
        if (source->shard_count == 0) /* fault: a cluster that said nothing is left out */
            continue;
#endif
        if (source->shard_count == 0 ||
            (shard < source->shard_count && !source->shards[shard].is_ready))
            return false;
    }
    return true;
}

void
pending_measure(const struct pending *pending, struct arena *arena, struct drain_progress *progress)
{
    progress->clusters = arena_zalloc(arena, pending->source_count + 1, sizeof *progress->clusters);
    progress->cluster_count = pending->source_count;
    for (size_t i = 0; i < pending->source_count; i++) {
        const struct drain_source *source = &pending->sources[i];
        progress->clusters[i] = (struct drain_cluster){arena_text(arena, source->cluster_name),
                                                       source->shard_count, source->ready_count};
        if (source->shard_count > progress->shard_count)
            progress->shard_count = source->shard_count;
    }
    progress->pending = arena_zalloc(arena, progress->shard_count + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < progress->shard_count; i++) {
        if (is_ready_everywhere(pending, i))
            progress->ready_count++;
        else
            progress->pending[progress->pending_count++] = i;
    }
    check(progress->ready_count + progress->pending_count == progress->shard_count);
}

void
pending_enter(struct pending *pending, struct drain_source *source, uint32_t shard,
              const STORED(DrainShardRecord) *record)
{
    check(shard < record->shard_count && record->shard_count <= DRAIN_SHARDS_MAX);
    if (source->shards == NULL) {
        source->shard_count = record->shard_count;
        source->shards =
            arena_zalloc(pending->arena, source->shard_count, sizeof(struct drain_shard));
    }
    if (shard >= source->shard_count)
        return;
    struct drain_shard *known = &source->shards[shard];
    if (pending->marker_time == 0 || record->marker_time < pending->marker_time)
        pending->marker_time = record->marker_time;
    if (record->is_ready && !known->is_ready)
        source->ready_count++;
    known->is_ready = known->is_ready || record->is_ready;
    known->blocked =
        record->blocked[0] == '\0' ? NULL : arena_text(pending->arena, record->blocked);
    check(source->ready_count <= source->shard_count);
    check(source->shard_count > 0);
}

const char **
pending_list_missing(const struct pending *pending, struct arena *arena, size_t *count)
{
    size_t most = pending_shards(pending) + pending->source_count;
    const char **missing = arena_zalloc(arena, most + 1, sizeof *missing);
    *count = 0;
    for (size_t i = 0; i < pending->source_count; i++) {
        const struct drain_source *source = &pending->sources[i];
        if (source->shards == NULL)
            missing[(*count)++] = arena_format(arena, "%s: nothing came", source->cluster_name);
        for (uint32_t j = 0; j < source->shard_count; j++) {
            const struct drain_shard *shard = &source->shards[j];
            if (!shard->is_ready)
                missing[(*count)++] =
                    arena_format(arena, "%s shard %u: %s", source->cluster_name, j,
                                 shard->blocked != NULL ? shard->blocked : "no marker came");
        }
    }
    check(*count <= most);
    return missing;
}
