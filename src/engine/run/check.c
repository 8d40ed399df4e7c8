/* check.c - what is true of every run between two steps.
 *
 *   1. It has its names, a state, and a close status exactly if it is closed.
 *   2. Its versions rise, and cover its events up to the newest.
 *   3. A started decision began behind its schedule and has no outbox row any more; an ordinary one
 *      is in the history, a transient one is not and was never ahead of it.
 *   4. Only behind a started decision something is buffered.
 *   5. A run has an alarm if anything of it is ever due (how late: finish.c), a closed one for its
 *      deletion; that has neither a decision nor anything buffered.
 *   6. An activity is found by both of its names, its scheduled event is in the history, and once
 *      started it has no outbox row.
 *   7. A timer's started event is in the history.
 *   8. So is the initiated event of a child, a signal or a cancel request; a child that is not
 *      started has what it needs for it. Only before its first decision a run waits for its
 *      parent. */
#include "engine/run/inside.h"

static void
check_names(const STORED(RunRecord) *core)
{
    check_that(core->format == RUN_RECORD_FORMAT, "rule 1: format %u", core->format);
    check_that(core->domain_id[0] != '\0' && core->workflow_id[0] != '\0', "rule 1: no name");
    check_that(core->run_id[0] != '\0', "rule 1: no run id");
    check_that(core->tree_id.len == 16 && core->branch_id.len == 16, "rule 1: no branch");
    check_that(core->state >= RUN_CREATED && core->state < RUN_STATE_END, "rule 1: state %d",
               (int)core->state);
    bool has_status = core->close_status != CLOSE_NONE;
    check_that(core->state == RUN_ZOMBIE || has_status == (core->state == RUN_COMPLETED),
               "rule 1: state %d, close status %d", (int)core->state, (int)core->close_status);
    check_that(core->workflow_type != NULL && core->task_list != NULL, "rule 1: no type or list");
}

static void
check_versions(const STORED(RunRecord) *core)
{
    check_that(core->n_versions > 0, "rule 2: no version");
    for (size_t i = 1; i < core->n_versions; i++) {
        const STORED(VersionItem) *one = core->versions[i - 1], *next = core->versions[i];
        check_that(one->event_version < next->event_version, "rule 2: versions fall");
        check_that(one->event_id < next->event_id, "rule 2: ids of versions fall");
    }
    check_that(core->versions[core->n_versions - 1]->event_id == core->next_event_id - 1,
               "rule 2: versions end before the history does");
    check_that(core->last_first_event_id < core->next_event_id, "rule 2: the last batch");
}

static void
check_decision(const STORED(RunRecord) *core)
{
    const STORED(PendingDecision) *decision = core->decision;
    if (decision == NULL)
        return;
    bool is_started = decision->started_id != EVENT_NONE;
    check_that(core->state != RUN_CREATED, "rule 3: a decision in a run that has had none");
    check_that(decision->task_list != NULL, "rule 3: no list");
    check_that(!is_started || decision->started_id > decision->schedule_id, "rule 3: start");
    check_that(!is_started || decision->row == 0, "rule 3: started, and row %llu is left",
               (unsigned long long)decision->row);
    if (decision->attempt == 0)
        check_that(decision->schedule_id < core->next_event_id, "rule 3: not in the history");
    else
        check_that(decision->schedule_id <= core->next_event_id, "rule 3: ahead of the history");
}

static void
check_rest(const struct run *run)
{
    const STORED(RunRecord) *core = run->core;
    check_that(!run_has_buffered(run) || run_has_started_decision(run), "rule 4");
    check_that(!core->waits_for_parent || (core->decision == NULL && core->parent != NULL),
               "rule 8: it waits for its parent");
    check_that((core->alarm_time == 0) == (core->alarm_row == 0), "rule 5: half an alarm");
    check_that(core->alarm_row != 0 || run_next_deadline(run) == 0, "rule 5: no alarm");
    if (run_is_open(run))
        return;
    check_that(core->decision == NULL, "rule 5: closed, but not done");
    check_that(core->alarm_row == 0 || core->alarm_time >= core->delete_time,
               "rule 5: closed, and an alarm for nothing");
    check_that(core->close_time > 0 && core->close_batch_event_id > 0, "rule 5: no close event");
}

void
run_check_core(const struct run *run)
{
    check_names(run->core);
    check_versions(run->core);
    check_decision(run->core);
    check_rest(run);
}

void
run_check_activity(const struct run *run, const STORED(PendingActivity) *activity)
{
    check_that(run_find_activity(run, activity->schedule_id) == activity, "rule 6: its id");
    check_that(run_find_activity_id(run, activity->activity_id) == activity, "rule 6: its name");
    check_that(activity->schedule_id > 0 && activity->schedule_id < run->core->next_event_id,
               "rule 6: not in the history");
    bool is_started = activity->started_id != EVENT_NONE;
    check_that(!is_started || activity->row == 0, "rule 6: started, and a row is left");
    check_that(activity->started_id != EVENT_BUFFERED || run_has_buffered(run) || !run_is_open(run),
               "rule 6: its start should be buffered");
    check_that(activity->activity_type != NULL && activity->task_list != NULL, "rule 6: no type");
}

void
run_check_timer(const struct run *run, const STORED(PendingTimer) *timer)
{
    check_that(run_find_timer(run, timer->timer_id) == timer, "rule 7: its id");
    check_that(timer->started_id > 0 && timer->started_id < run->core->next_event_id, "rule 7");
}

void
run_check_child(const struct run *run, const STORED(PendingChild) *child)
{
    check_that(run_find_child(run, child->initiated_id) == child, "rule 8: its id");
    check_that(child->initiated_id < run->core->next_event_id, "rule 8: not in the history");
    bool is_started = child->started_id != EVENT_NONE;
    check_that(is_started == (child->start == NULL), "rule 8: nothing to start with");
    check_that(is_started == (child->started_run_id[0] != '\0'), "rule 8: no run");
    check_that(child->request_id[0] != '\0' && child->workflow_type != NULL, "rule 8: no name");
}

void
run_check_external(const struct run *run, const STORED(PendingExternal) *external)
{
    check_that(run_find_external(run, external->initiated_id) == external, "rule 8: its id");
    check_that(external->initiated_id < run->core->next_event_id, "rule 8: not in the history");
    check_that(external->request_id[0] != '\0' && external->row != 0, "rule 8: no row");
}

void
run_check(const struct run *run)
{
    run_check_core(run);
    size_t place = 0;
    void *record;
    while (map64_next(run->children, &place, NULL, &record))
        run_check_child(run, record);
    place = 0;
    while (map64_next(run->externals, &place, NULL, &record))
        run_check_external(run, record);
    check(map_count(run->activity_ids) == map64_count(run->activities));
    size_t cursor = 0;
    void *value;
    while (map64_next(run->activities, &cursor, NULL, &value))
        run_check_activity(run, value);
    cursor = 0;
    while (map_next(run->timers, &cursor, NULL, &value))
        run_check_timer(run, value);
    cursor = 0;
    while (map64_next(run->buffered, &cursor, NULL, &value))
        check(((const STORED(BufferedEvent) *)value)->event->event_id == EVENT_BUFFERED);
}
