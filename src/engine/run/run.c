/* run.c - a run in memory: its birth, its end, its garbage, and simple questions.
 *
 * Compacting is copying: what is alive goes into a new arena, and the old one is freed as a whole.
 * It pays when the garbage outweighs what is alive, and that is known from the size of the arena
 * after the last time. */
#include "engine/branches/branches.h"
#include "engine/run/inside.h"
#include "wire/presence.h"

#define RUN_ARENA_FIRST ((size_t)2048)
#define GARBAGE_MIN     ((size_t)32 * 1024) /* less than this is not worth the work */

struct run *
run_new(void)
{
    struct run *run = memory_zalloc(1, sizeof *run);
    run->arena = arena_new(RUN_ARENA_FIRST);
    run->core = message_new(run->arena, STORED_TYPE(run_record));
    run->arena_bytes_after_compact = arena_footprint(run->arena);
    return run;
}

void
run_free(struct run *run)
{
    if (run == NULL)
        return;
    map64_free(run->activities);
    map_free(run->activity_ids);
    map_free(run->timers);
    map64_free(run->buffered);
    map_free(run->signal_requests);
    map64_free(run->children);
    map64_free(run->externals);
    dues_forget(run);
    arena_free(run->arena);
    memory_free(run);
}

/* Replaces each record of a map by its copy in `arena`. Putting keeps the place of an entry. */
static void
numbers_move(struct map64 *map, struct arena *arena)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (map64_next(map, &cursor, &key, &value))
        map64_put(map, key, message_copy(arena, value));
}

static void
texts_move(struct map *map, struct arena *arena)
{
    size_t cursor = 0;
    struct slice key;
    void *value;
    while (map_next(map, &cursor, &key, &value))
        map_put(map, key, message_copy(arena, value));
}

static void
activity_ids_follow(struct run *run)
{
    size_t cursor = 0;
    void *value;
    while (map64_next(run->activities, &cursor, NULL, &value)) {
        STORED(PendingActivity) *activity = value;
        void *old = map_put(run->activity_ids, slice_text(activity->activity_id), activity);
        check(old != NULL);
    }
    check(map_count(run->activity_ids) == map64_count(run->activities));
}

void
run_compact(struct run *run)
{
    size_t footprint = arena_footprint(run->arena);
    if (footprint < 2 * run->arena_bytes_after_compact + GARBAGE_MIN)
        return;
    dues_forget(run);
    struct arena *arena = arena_new(RUN_ARENA_FIRST);
    run->core = message_copy(arena, &run->core->base);
    numbers_move(run->activities, arena);
    activity_ids_follow(run);
    texts_move(run->timers, arena);
    numbers_move(run->buffered, arena);
    texts_move(run->signal_requests, arena);
    numbers_move(run->children, arena);
    numbers_move(run->externals, arena);
    if (run->birth != NULL)
        run->birth = message_copy(arena, &run->birth->base);
    arena_free(run->arena);
    run->arena = arena;
    run->arena_bytes_after_compact = arena_footprint(arena);
}

bool
run_is_open(const struct run *run)
{
    const STORED(RunRecord) *core = run->core;
    return core->state != 0 && core->state != RUN_COMPLETED && core->close_status == CLOSE_NONE;
}

int64_t
run_last_version(const struct run *run)
{
    const STORED(RunRecord) *core = run->core;
    check(core->n_versions > 0);
    return core->versions[core->n_versions - 1]->event_version;
}

bool
run_has_pending_decision(const struct run *run)
{
    return run->core->decision != NULL;
}

bool
run_has_started_decision(const struct run *run)
{
    return run->core->decision != NULL && run->core->decision->started_id != EVENT_NONE;
}

bool
run_has_buffered(const struct run *run)
{
    return map64_count(run->buffered) > 0;
}

struct history_branch
run_branch(const struct run *run)
{
    const STORED(RunRecord) *core = run->core;
    return (struct history_branch){presence_read_uuid(core->tree_id),
                                   presence_read_uuid(core->branch_id)};
}

struct history_lineage
run_lineage(const struct run *run, struct arena *arena)
{
    return branches_read_lineage(run->core, arena);
}

const STORED(PendingActivity) *
run_find_activity(const struct run *run, int64_t schedule_id)
{
    return map64_get(run->activities, (uint64_t)schedule_id);
}

const STORED(PendingActivity) *
run_find_activity_id(const struct run *run, const char *activity_id)
{
    return map_get(run->activity_ids, slice_text(activity_id));
}

const STORED(PendingTimer) *
run_find_timer(const struct run *run, const char *timer_id)
{
    return map_get(run->timers, slice_text(timer_id));
}

const STORED(PendingChild) *
run_find_child(const struct run *run, int64_t initiated_id)
{
    return map64_get(run->children, (uint64_t)initiated_id);
}

const STORED(PendingExternal) *
run_find_external(const struct run *run, int64_t initiated_id)
{
    return map64_get(run->externals, (uint64_t)initiated_id);
}
