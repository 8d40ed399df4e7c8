/* idle.c - what a shard waits for. See shard.h.
 *
 * Every open run has a wake-up timer (if nothing else is ever due of it, it would wait for ever,
 * and no time helps), so the wake-up timers in memory name all runs that time matters to. */
#include "base/check.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "engine/shard/wakeups.h"
#include "engine/shard/workflows.h"

/* What one run waits for. */
enum run_wait {
    RUN_AT_REST,     /* a signal, a child, its end: or it is closed */
    RUN_WAITS_TIME,  /* for a moment that it chose */
    RUN_IS_UNDER_WAY /* a worker has something of it, or may get it */
};

static enum run_wait
activity_wait(const STORED(PendingActivity) *activity)
{
    bool is_dispatched = activity->started_id != EVENT_NONE || activity->row != 0;
    return is_dispatched ? RUN_IS_UNDER_WAY : RUN_WAITS_TIME;
}

static enum run_wait
run_wait(const struct run *run)
{
    const STORED(RunRecord) *core = run->core;
    if (!run_is_open(run))
        return RUN_AT_REST;
    if (run_has_pending_decision(run) || core->waits_for_parent || core->auto_reset_time != 0 ||
        run_has_buffered(run))
        return RUN_IS_UNDER_WAY;
    enum run_wait wait = core->first_decision_time != 0 || core->decision_retry_time != 0 ||
                                 map_count(run->timers) > 0
                             ? RUN_WAITS_TIME
                             : RUN_AT_REST;
    size_t cursor = 0;
    void *activity;
    while (map64_next(run->activities, &cursor, NULL, &activity)) {
        enum run_wait other = activity_wait(activity);
        wait = other > wait ? other : wait;
    }
    return wait;
}

static bool
is_under_way(const struct tenure *tenure)
{
    const struct cross_tasks *cross_tasks = &tenure->outbox.cross_tasks;
    const struct wakeups *wakeups = &tenure->wakeups;
    return writer_newest(tenure->writer) != writer_durable(tenure->writer) ||
           !list_is_empty(&tenure->outbox.undurable) || cross_tasks->running > 0 ||
           !list_is_empty(&cross_tasks->ready) || priority_first(&cross_tasks->delayed) != NULL ||
           wakeups->firing_count > 0 || wakeups->delayed_count > 0 || wakeups->is_reading;
}

static void
look_at_nothing(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
}

/* The run of a wake-up timer, in memory; NULL: it is not there. */
static const struct run *
find_run(struct tenure *tenure, const struct wakeup *wakeup, struct arena *arena)
{
    struct workflow *workflow = workflow_find(tenure, &wakeup->key, arena);
    struct loaded_run *loaded =
        workflow == NULL ? NULL : workflow_find_run(workflow, wakeup->key.run_id);
    return loaded == NULL ? NULL : loaded->run;
}

void
shard_look_idle(struct shard *shard, struct shard_idle *idle, struct arena *arena)
{
    struct tenure *tenure = shard->tenure;
    shard_check(shard);
    if (tenure == NULL || is_under_way(tenure)) {
        idle->is_busy = true;
        return;
    }
    idle->changes += writer_newest(tenure->writer);
    for (struct tree_row *row = tree_first(tenure->wakeups.waiting); row != NULL && !idle->is_busy;
         row = tree_next(row)) {
        const struct wakeup *wakeup = row->value;
        const struct run *run = find_run(tenure, wakeup, arena);
        if (run == NULL) { /* the next look finds it in memory */
            struct run_key key = {arena_text(arena, wakeup->key.domain_id),
                                  arena_text(arena, wakeup->key.workflow_id),
                                  arena_text(arena, wakeup->key.run_id)};
            idle->is_busy = true;
            (void)!shard_look(shard, &key, look_at_nothing, NULL, arena);
            return;
        }
        enum run_wait wait = run_wait(run);
        idle->is_busy = wait == RUN_IS_UNDER_WAY;
        idle->is_timed = idle->is_timed || wait == RUN_WAITS_TIME;
        if (run_is_open(run) && wakeup->time < idle->next)
            idle->next = wakeup->time;
    }
}

void
shard_clock_jumped(struct shard *shard)
{
    shard_check(shard);
    if (shard->tenure != NULL)
        fiber_cond_signal(&shard->tenure->wakeups.changed);
}
