/* idle.c - what a shard waits for. See shard.h.
 *
 * Every open run has an alarm (if nothing else is ever due of it, it would wait for ever, and no
 * time helps), so the alarms in memory name all runs that time matters to. */
#include "base/check.h"
#include "engine/shard/inside.h"

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
    const struct errands *errands = &tenure->outbox.errands;
    const struct alarms *alarms = &tenure->alarms;
    return writer_newest(tenure->writer) != writer_durable(tenure->writer) ||
           !list_is_empty(&tenure->outbox.undurable) || errands->running > 0 ||
           !list_is_empty(&errands->ready) || priority_first(&errands->delayed) != NULL ||
           alarms->ringing_count > 0 || alarms->delayed_count > 0 || alarms->is_reading;
}

static void
look_at_nothing(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
}

/* The run of an alarm, in memory; NULL: it is not there. */
static const struct run *
find_run(struct tenure *tenure, const struct alarm *alarm, struct arena *arena)
{
    struct workflow *workflow = workflow_find(tenure, &alarm->key, arena);
    struct loaded_run *loaded =
        workflow == NULL ? NULL : workflow_find_run(workflow, alarm->key.run_id);
    return loaded == NULL ? NULL : loaded->run;
}

void
shard_look_idle(struct shard *shard, struct shard_idle *idle, struct arena *arena)
{
    struct tenure *tenure = shard->tenure;
    if (tenure == NULL || is_under_way(tenure)) {
        idle->is_busy = true;
        return;
    }
    idle->changes += writer_newest(tenure->writer);
    for (struct tree_row *row = tree_first(tenure->alarms.waiting); row != NULL && !idle->is_busy;
         row = tree_next(row)) {
        const struct alarm *alarm = row->value;
        const struct run *run = find_run(tenure, alarm, arena);
        if (run == NULL) { /* the next look finds it in memory */
            struct run_key key = {arena_text(arena, alarm->key.domain_id),
                                  arena_text(arena, alarm->key.workflow_id),
                                  arena_text(arena, alarm->key.run_id)};
            idle->is_busy = true;
            (void)!shard_look(shard, &key, look_at_nothing, NULL, arena);
            return;
        }
        enum run_wait wait = run_wait(run);
        idle->is_busy = wait == RUN_IS_UNDER_WAY;
        idle->is_timed = idle->is_timed || wait == RUN_WAITS_TIME;
        if (run_is_open(run) && alarm->time < idle->next)
            idle->next = alarm->time;
    }
}

void
shard_clock_jumped(struct shard *shard)
{
    if (shard->tenure != NULL)
        fiber_cond_signal(&shard->tenure->alarms.changed);
}
