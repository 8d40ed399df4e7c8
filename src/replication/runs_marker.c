/* runs_marker.c - the marker of a source shard has come, and everything before it has left its
 * stream: is the shard ready?
 *
 * What was applied is here; what could not be is a dead letter, and as long as one of the domain
 * from before the marker is there, the shard is not ready: the domain learns what is in the way,
 * and the marker is tried again. An operator who merges or purges it sets the domain going. The
 * marker is acknowledged when the domain has it, durably, or does not wait for it (any more). */
#include "domain/drain.h"
#include "fiber/mark.h"
#include "replication/runs_apply.h"
#include "wire/message.h"
#include "wire/presence.h"

static const char *
letter_domain(const struct dead_letter *letter, struct arena *arena)
{
    ADMIN(ReplicationTask) *task = NULL;
    struct error *err = message_decode_as(arena, ERR_CORRUPT, ADMIN_TYPE(replication_task),
                                          presence_read_bytes(letter->letter->task), &task);
    const char *domain_id = err == NULL ? task_domain(task) : NULL;
    return domain_id == NULL ? "" : domain_id;
}

/* Was it sent by the same shard, before the marker? Letters of older versions do not say. */
static bool
is_before(const struct dead_letter *letter, const struct marker_place *place, int64_t row)
{
    uint32_t shard = letter->letter->source_shard;
    return shard == 0 || (shard == place->source_shard + 1 && letter->row < (uint64_t)row);
}

/* What is in the way; NULL: nothing. In words. */
static struct error *
find_blocking(const struct apply_world *world, const struct marker_place *place,
              const ADMIN(ReplicationTask) *task, struct arena *arena, const char **blocking)
{
    const char *domain_id = task->failover_marker_attributes->domain_id;
    uint32_t shards = engine_shard_count(world->engine);
    size_t count = 0;
    struct error *err = NULL;
    *blocking = NULL;
    for (uint32_t shard = 0; err == NULL && shard < shards; shard++) {
        struct dead_letters letters = {0};
        err = engine_read_letters(world->engine, shard, place->source, 0, INT64_MAX, 0, arena,
                                  &letters);
        for (size_t i = 0; err == NULL && i < letters.count; i++) {
            const struct dead_letter *letter = &letters.letters[i];
            if (!is_before(letter, place, task->source_task_id) ||
                strcmp(letter_domain(letter, arena), domain_id) != 0)
                continue;
            if (count++ == 0)
                *blocking =
                    arena_format(arena, "message %llu is parked in shard %u: %s",
                                 (unsigned long long)letter->row, shard, letter->letter->cause);
        }
    }
    if (count > 1)
        *blocking = arena_format(arena, "%s (and %zu more)", *blocking, count - 1);
    return err;
}

static struct error *
note(const struct apply_world *world, const struct marker_place *place,
     const ADMIN(ReplicationTask) *task, const char *blocking, struct arena *arena)
{
    const ADMIN(FailoverMarkerAttributes) *marker = task->failover_marker_attributes;
    struct maybe_int64 created = {0};
    struct error *err =
        presence_read_timestamp(arena, "creation_time", marker->creation_time, &created);
    struct drain_ready ready = {
        .domain_id = marker->domain_id,
        .scope = marker->scope,
        .name = marker->name,
        .failover_version = marker->failover_version,
        .source_cluster = place->source,
        .source_shard = place->source_shard,
        .shard_count = place->shard_count,
        .marker_time = err == NULL && created.is_set ? created.value : 0,
    };
    return blocking != NULL ? domains_note_blocked(world->domains, &ready, blocking, arena)
                            : domains_note_ready(world->domains, &ready, arena);
}

/* Does anybody here wait for it? A version that is not known here yet may come. */
static bool
is_awaited(const struct apply_world *world, const ADMIN(FailoverMarkerAttributes) *marker)
{
    const struct domain *domain = domains_find_id(world->domains, marker->domain_id);
    bool has_attribute = marker->scope[0] != '\0';
    struct cluster_attribute attribute = {has_attribute ? marker->scope : NULL,
                                          has_attribute ? marker->name : NULL};
    if (domain == NULL ||
        cluster_group_of_version(world->group, marker->failover_version) != world->group->current)
        return false;
    if (domain_active(domain, &attribute, world->group).failover_version < marker->failover_version)
        return true;
    const STORED(Drain) *drain = domain_find_drain(domain, &attribute);
    return drain != NULL && drain->failover_version == marker->failover_version &&
           drain_is_to_here(drain, world->group);
}

enum applied
apply_marker(const struct apply_world *world, const struct marker_place *place,
             const ADMIN(ReplicationTask) *task, struct arena *arena, struct error **cause)
{
    const ADMIN(FailoverMarkerAttributes) *marker = task->failover_marker_attributes;
    const char *blocking;
    *cause = NULL;
    if (place->source_shard >= place->shard_count || !is_awaited(world, marker)) {
        mark("marker_not_awaited");
        return APPLIED;
    }
    *cause = find_blocking(world, place, task, arena, &blocking);
    if (*cause == NULL)
        *cause = note(world, place, task, blocking, arena);
    if (*cause != NULL)
        return APPLY_AGAIN;
    mark(blocking == NULL ? "marker_applied" : "marker_blocked");
    return blocking == NULL ? APPLIED : APPLY_BLOCKED;
}
