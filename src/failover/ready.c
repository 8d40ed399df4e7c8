/* ready.c - what the shards of a source report. See drains.h.
 *
 * A shard counts once, and only for the version that is pending here: an older drain is over, and a
 * version that is newer than anything known here was decided by another host of this cluster, and
 * this host has not read it yet. Memory changes only after the row is durable. */
#include "base/check.h"
#include "cadenza/internal/v1/domains.pb-c.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "domain/active.h"
#include "failover/inside.h"
#include "fiber/probe.h"
#include "wire/message.h"

static void
count_up(struct counter *counter)
{
    if (counter != NULL)
        counter_add(counter, 1);
}

/* --- noting -------------------------------------------------------------------------------------
 */

struct marker_report {
    struct pending *pending;
    struct drain_source *source;
    uint32_t shard;
    const STORED(DrainShardRecord) *record;
};

static void
fill_note(void *context, struct batch *batch)
{
    const struct marker_report *note = context;
    batch_add_drain_shard(batch, note->pending, note->source, note->shard, note->record);
}

/* *pending is NULL if no drain waits for it. */
static struct error *
find_pending(struct drains *drains, const struct drain_ready *ready, struct arena *arena,
             struct pending **pending)
{
    struct domains *domains = drains->options.domains;
    const struct domain *domain = domains_find_id(domains, ready->domain_id);
    *pending =
        drains_find(drains, ready->domain_id, ready->scope, ready->name, ready->failover_version);
    if (*pending != NULL || domain == NULL)
        return NULL;
    struct cluster_attribute attribute = drain_attribute(ready->scope, ready->name);
    struct active_cluster active = domain_active(domain, &attribute, drains->options.group);
    if (ready->failover_version <= active.failover_version)
        return NULL;
    uint64_t guard = 0;
    struct error *err = domains_read_others(domains, arena, &guard);
    return err != NULL ? err
                       : error_new(arena, ERR_UNAVAILABLE,
                                   "Version %lld of domain %s is not known here yet, try again.",
                                   (long long)ready->failover_version, ready->domain_id);
}

/* Does it say anything new? */
static bool
is_new(const struct drain_source *source, const struct drain_ready *ready, const char *reason)
{
    if (source == NULL)
        return false; /* a cluster that the drain does not wait for */
    if (ready->source_shard >= ready->shard_count || ready->shard_count > DRAIN_SHARDS_MAX)
        return false; /* a shard that the source does not have */
    if (source->shards == NULL)
        return true;
    if (ready->source_shard >= source->shard_count)
        return false;
    const struct drain_shard *known = &source->shards[ready->source_shard];
    bool is_same = reason != NULL && known->blocked != NULL && strcmp(reason, known->blocked) == 0;
    return !known->is_ready && !is_same;
}

/* The row is durable. */
static void
enter_noted(struct drains *drains, struct pending *pending, const struct marker_report *noted)
{
    check(noted->shard < noted->record->shard_count);
    probe(noted->record->is_ready ? "source_shard_ready" : "source_shard_blocked");
    count_up(drains->metrics.inserted);
    if (list_is_empty(&pending->node)) /* it ended meanwhile: the row is not needed */
        drains->is_swept = false;
    else
        pending_enter(pending, noted->source, noted->shard, noted->record);
    if (!drains->options.is_alone)
        pending->is_read = false; /* other hosts note shards, too */
    drains_wake(drains);
}

bool
drains_await(const struct drains *drains, const struct drain_ready *ready)
{
    const struct cluster_group *group = drains->options.group;
    const struct domain *domain = domains_find_id(drains->options.domains, ready->domain_id);
    struct cluster_attribute attribute = drain_attribute(ready->scope, ready->name);
    if (domain == NULL ||
        cluster_group_of_version(group, ready->failover_version) != group->current)
        return false;
    if (domain_active(domain, &attribute, group).failover_version < ready->failover_version)
        return true;
    const STORED(Drain) *drain = domain_find_drain(domain, &attribute);
    return drain != NULL && drain->failover_version == ready->failover_version &&
           drain_is_to_here(drain, group);
}

static struct error *
note(struct drains *drains, const struct drain_ready *ready, const char *reason,
     struct arena *arena)
{
    check(route_is_here(owner_of_domains()) && !drains->is_closing);
    struct domains *domains = drains->options.domains;
    struct pending *pending = NULL;
    struct error *err = find_pending(drains, ready, arena, &pending);
    if (err != NULL)
        return err;
    struct drain_source *source =
        pending == NULL ? NULL : pending_source(pending, ready->source_cluster);
    if (pending == NULL || !is_new(source, ready, reason)) {
        probe(pending == NULL ? "marker_unwanted" : "marker_again");
        count_up(drains->metrics.ignored);
        return domains_wait_newest(domains, arena);
    }
    STORED(DrainShardRecord) *record = message_new(arena, STORED_TYPE(drain_shard_record));
    record->format = DRAIN_SHARD_FORMAT;
    record->is_ready = reason == NULL;
    record->shard_count = ready->shard_count;
    record->marker_time = ready->marker_time;
    record->blocked = reason == NULL ? "" : (char *)reason;
    struct marker_report noted = {pending_take(pending), source, ready->source_shard, record};
    err = domains_write(domains, fill_note, &noted, arena);
    if (err == NULL)
        enter_noted(drains, pending, &noted);
    pending_drop(pending);
    return err;
}

/* --- asking -------------------------------------------------------------------------------------
 */

static struct error *
serve_marker(void *drains, struct owner owner, const void *argument, struct arena *arena,
             void *answer)
{
    const INTERNAL(DrainMarker) *marker = argument;
    struct drain_ready ready = {.domain_id = marker->domain_id,
                                .scope = marker->scope,
                                .name = marker->name,
                                .failover_version = marker->failover_version,
                                .source_cluster = marker->source_cluster,
                                .source_shard = marker->source_shard,
                                .shard_count = marker->shard_count,
                                .marker_time = marker->marker_time};
    return note(drains, &ready, marker->blocked[0] == '\0' ? NULL : marker->blocked, arena);
}

/* Lost: who applies the rows of that cluster tries its marker again, and does not acknowledge it
 * before; after a crash the source sends it again. Twice: a shard counts once. */
static const struct route_question marker_question = {
    .name = "drains.marker",
    .request = INTERNAL_TYPE(drain_marker),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_marker,
    .may_come_twice = true,
};

static struct error *
ask_to_note(struct drains *drains, const struct drain_ready *ready, const char *blocked,
            struct arena *arena)
{
    INTERNAL(DrainMarker) marker = INTERNAL_VALUE(DRAIN_MARKER__INIT);
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    marker.domain_id = (char *)ready->domain_id;
    marker.scope = (char *)ready->scope;
    marker.name = (char *)ready->name;
    marker.failover_version = ready->failover_version;
    marker.source_cluster = (char *)ready->source_cluster;
    marker.source_shard = ready->source_shard;
    marker.shard_count = ready->shard_count;
    marker.marker_time = ready->marker_time;
    marker.blocked = (char *)blocked;
    return route_ask(owner_of_domains(), &drains->service, &marker_question, &marker, arena,
                     &answer);
}

struct error *
drains_note_ready(struct drains *drains, const struct drain_ready *ready, struct arena *arena)
{
    return ask_to_note(drains, ready, "", arena);
}

struct error *
drains_note_blocked(struct drains *drains, const struct drain_ready *ready, const char *reason,
                    struct arena *arena)
{
    check(reason[0] != '\0');
    return ask_to_note(drains, ready, reason, arena);
}
