/* ready.c - what the shards of a source report, and how far a drain is. See drains.h.
 *
 * A shard counts once, and only for the version that is pending here: an older drain is over, and a
 * version that is newer than anything known here was decided by another host of this cluster, and
 * this host has not read it yet. Memory changes only after the row is durable. */
#include "base/check.h"
#include "domain/active.h"
#include "failover/inside.h"
#include "fiber/loop.h"
#include "fiber/probe.h"
#include "route/route.h"
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

/* What moves: without a scope, the domain itself. */
static struct cluster_attribute
attribute_of(const char *scope, const char *name)
{
    bool has_scope = scope[0] != '\0';
    return (struct cluster_attribute){has_scope ? scope : NULL, has_scope ? name : NULL};
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
    struct cluster_attribute attribute = attribute_of(ready->scope, ready->name);
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
    struct cluster_attribute attribute = attribute_of(ready->scope, ready->name);
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
    check(loop_index(loop_self()) == 0 && !drains->is_closing);
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

struct error *
drains_note_ready(struct drains *drains, const struct drain_ready *ready, struct arena *arena)
{
    return note(drains, ready, NULL, arena);
}

struct error *
drains_note_blocked(struct drains *drains, const struct drain_ready *ready, const char *reason,
                    struct arena *arena)
{
    check(reason[0] != '\0');
    return note(drains, ready, reason, arena);
}

/* --- how far it is ------------------------------------------------------------------------------
 */

struct drain_query {
    struct drains *drains;
    const char *domain_id, *scope, *name;
    struct arena *arena;
    struct drain_progress *progress; /* one, or an array */
    size_t count;                    /* of the array */
    struct error *err;
};

static struct drain_progress
progress_of(const STORED(Drain) *drain, struct arena *arena)
{
    check(drain->end_time != 0); /* it drains to here */
    return (struct drain_progress){.is_found = true,
                                   .scope = arena_text(arena, drain->scope),
                                   .name = arena_text(arena, drain->name),
                                   .failover_version = drain->failover_version,
                                   .start_time = drain->start_time,
                                   .end_time = drain->end_time};
}

/* Yields: what the rows say, if other hosts may have written some. */
static struct error *
measure(struct drains *drains, struct pending *pending, struct arena *arena,
        struct drain_progress *progress)
{
    struct error *err = NULL;
    if (!pending->is_read || !drains->options.is_alone)
        err = pending_read(drains, pending, arena);
    pending_measure(pending, arena, progress);
    return err;
}

/* On loop 0. */
static void
answer(void *argument)
{
    struct drain_query *drain_query = argument;
    struct drains *drains = drain_query->drains;
    struct drain_progress *progress = drain_query->progress;
    const struct domain *domain = domains_find_id(drains->options.domains, drain_query->domain_id);
    struct cluster_attribute attribute = attribute_of(drain_query->scope, drain_query->name);
    const STORED(Drain) *drain = domain == NULL ? NULL : domain_find_drain(domain, &attribute);
    if (drain == NULL || !drain_is_to_here(drain, drains->options.group))
        return;
    *progress = progress_of(drain, drain_query->arena);
    struct pending *pending =
        drains_find(drains, domain->id, drain->scope, drain->name, drain->failover_version);
    if (pending == NULL)
        return;
    pending_take(pending);
    drain_query->err = measure(drains, pending, drain_query->arena, progress);
    progress->missing = pending_list_missing(pending, drain_query->arena, &progress->missing_count);
    pending_drop(pending);
}

struct error *
drains_read(struct drains *drains, const char *domain_id, const char *scope, const char *name,
            struct arena *arena, struct drain_progress *progress)
{
    *progress = (struct drain_progress){0};
    struct drain_query drain_query = {.drains = drains,
                                      .domain_id = domain_id,
                                      .scope = scope,
                                      .name = name,
                                      .arena = arena,
                                      .progress = progress};
    struct error *err = route_to_domains(answer, &drain_query, arena);
    return err != NULL ? err : drain_query.err;
}

static size_t
count_drains(const struct drain_query *drain_query)
{
    size_t count = 0;
    list_each(node, &drain_query->drains->pending) {
        const struct pending *pending = list_entry(node, struct pending, node);
        count += !pending->is_over && strcmp(pending->domain_id, drain_query->domain_id) == 0;
    }
    return count;
}

/* On loop 0. They are taken first: some may end while rows are read. */
static void
answer_all(void *argument)
{
    struct drain_query *drain_query = argument;
    struct drains *drains = drain_query->drains;
    size_t most = count_drains(drain_query);
    struct pending **found = arena_zalloc(drain_query->arena, most + 1, sizeof(struct pending *));
    list_each(node, &drains->pending) {
        struct pending *pending = list_entry(node, struct pending, node);
        if (!pending->is_over && strcmp(pending->domain_id, drain_query->domain_id) == 0)
            found[drain_query->count++] = pending_take(pending);
    }
    check(drain_query->count == most);
    drain_query->progress =
        arena_zalloc(drain_query->arena, most + 1, sizeof *drain_query->progress);
    for (size_t i = 0; i < most; i++) {
        drain_query->progress[i] = progress_of(found[i]->drain, drain_query->arena);
        if (drain_query->err == NULL)
            drain_query->err =
                measure(drains, found[i], drain_query->arena, &drain_query->progress[i]);
        pending_drop(found[i]);
    }
}

struct error *
drains_list(struct drains *drains, const char *domain_id, struct arena *arena,
            struct drain_progress **all, size_t *count)
{
    struct drain_query drain_query = {.drains = drains, .domain_id = domain_id, .arena = arena};
    struct error *err = route_to_domains(answer_all, &drain_query, arena);
    *all = drain_query.progress;
    *count = drain_query.count;
    return err != NULL ? err : drain_query.err;
}
