/* runs_marker.c - the marker of a source shard has come, and everything before it has left its
 * stream: is the shard ready?
 *
 * What could not be applied is a dead letter. As long as there is one of the domain from before the
 * marker, the shard is not ready: the coordinator (failover/drains.h) is told what is in the way,
 * and the marker is tried again, until an operator merges or purges the dead letter. The marker is
 * acknowledged when the coordinator has noted it, durably, or does not wait for it (any more). */
#include "base/check.h"
#include "failover/drains.h"
#include "fiber/probe.h"
#include "replication/in/runs_apply.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PAGE_LETTERS 64

static const char *
letter_domain(const struct dead_letter *letter, struct arena *arena)
{
    ADMIN(ReplicationTask) *task = NULL;
    struct error *err = message_decode_as(arena, ERR_CORRUPT, ADMIN_TYPE(replication_task),
                                          presence_read_bytes(letter->letter->task), &task);
    const char *domain_id = err == NULL ? task_domain(task) : NULL;
    return domain_id == NULL ? "" : domain_id;
}

/* Was it sent by the same shard, before the marker? Dead letters of older versions do not say. */
static bool
is_before(const struct dead_letter *letter, const struct marker_origin *origin, int64_t row)
{
    uint32_t shard = letter->letter->source_shard;
    return shard == 0 || (shard == origin->source_shard + 1 && letter->row < (uint64_t)row);
}

struct blocker_search {
    const struct apply_world *world;
    const struct marker_origin *origin;
    const ADMIN(ReplicationTask) *marker;
    struct arena *arena;
    const char *found; /* for people; NULL: nothing is in the way */
};

/* Searches one page of the dead letters of a shard; *after is its last row. */
static struct error *
search_page(struct blocker_search *blocker_search, uint32_t shard, uint64_t *after, bool *has_more)
{
    scoped(arena_drop) struct arena *page = arena_new(0);
    const struct marker_origin *origin = blocker_search->origin;
    struct dead_letters letters = {0};
    struct error *err =
        engine_read_dead_letters(blocker_search->world->engine, shard, origin->source, *after,
                                 INT64_MAX, PAGE_LETTERS, page, &letters);
    if (err != NULL)
        return error_copy(blocker_search->arena, err);
    check(letters.count <= PAGE_LETTERS && (letters.count > 0 || !letters.has_more));
    for (size_t i = 0; i < letters.count && blocker_search->found == NULL; i++) {
        const struct dead_letter *letter = &letters.letters[i];
        check(letter->row > *after);
        const char *domain_id = blocker_search->marker->failover_marker_attributes->domain_id;
        *after = letter->row;
        if (is_before(letter, origin, blocker_search->marker->source_task_id) &&
            strcmp(letter_domain(letter, page), domain_id) == 0)
            blocker_search->found =
                arena_format(blocker_search->arena, "message %llu is a dead letter in shard %u: %s",
                             (unsigned long long)letter->row, shard, letter->letter->cause);
    }
    *has_more = letters.has_more;
    return NULL;
}

static struct error *
find_blocking(struct blocker_search *blocker_search)
{
    uint32_t shards = engine_shard_count(blocker_search->world->engine);
    check(blocker_search->found == NULL);
    struct error *err = NULL;
    for (uint32_t shard = 0; err == NULL && blocker_search->found == NULL && shard < shards;
         shard++) {
        uint64_t after = 0;
        bool has_more = true;
        while (err == NULL && blocker_search->found == NULL && has_more)
            err = search_page(blocker_search, shard, &after, &has_more);
    }
    return err;
}

static struct drain_ready
ready_of(const struct marker_origin *origin, const ADMIN(FailoverMarkerAttributes) *marker,
         struct arena *arena)
{
    struct maybe_int64 created = {0};
    struct error *err =
        presence_read_timestamp(arena, "creation_time", marker->creation_time, &created);
    return (struct drain_ready){
        .domain_id = marker->domain_id,
        .scope = marker->scope,
        .name = marker->name,
        .failover_version = marker->failover_version,
        .source_cluster = origin->source,
        .source_shard = origin->source_shard,
        .shard_count = origin->shard_count,
        .marker_time = err == NULL && created.is_set ? created.value : 0,
    };
}

/* A marker that names another cluster than the one that sent it says nothing about either. */
static bool
is_own(const struct marker_origin *origin, const ADMIN(FailoverMarkerAttributes) *marker)
{
    return marker->source_cluster[0] == '\0' || strcmp(marker->source_cluster, origin->source) == 0;
}

enum applied
apply_marker(const struct apply_world *world, const struct marker_origin *origin,
             const ADMIN(ReplicationTask) *task, struct arena *arena, struct error **cause)
{
    check(task->attributes_case ==
          ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_FAILOVER_MARKER_ATTRIBUTES));
    const ADMIN(FailoverMarkerAttributes) *marker = task->failover_marker_attributes;
    struct blocker_search blocker_search = {
        .world = world, .origin = origin, .marker = task, .arena = arena};
    struct drain_ready ready = ready_of(origin, marker, arena);
    *cause = NULL;
    if (origin->source_shard >= origin->shard_count || !is_own(origin, marker) ||
        !drains_await(world->drains, &ready)) {
        probe("marker_not_awaited");
        return APPLIED;
    }
    *cause = find_blocking(&blocker_search);
    const char *blocking = blocker_search.found;
    if (*cause == NULL)
        *cause = blocking != NULL ? drains_note_blocked(world->drains, &ready, blocking, arena)
                                  : drains_note_ready(world->drains, &ready, arena);
    if (*cause != NULL)
        return APPLY_AGAIN;
    probe(blocking == NULL ? "marker_applied" : "marker_blocked");
    return blocking == NULL ? APPLIED : APPLY_BLOCKED;
}
