/* check.c - what is true of every run between two steps.
 *
 * In a run that was just changed a broken rule is our own mistake, and a failed check. In a run
 * that was read from the store it means that its rows are damaged: the caller gets an error.
 *
 * Each step checks the core and the records that it changed (finish.c), which takes constant time.
 * Where CHECK_DEEPLY says so it checks everything else too, and that the parts fit together.
 *
 *   1. It has its names, a state, and a close status exactly if it is closed.
 *   2. Its versions rise, and cover its events up to the newest.
 *   3. A started decision began behind its schedule and has no outbox row any more; an ordinary one
 *      is in the history, a transient one is not and was never ahead of it.
 *   4. Only behind a started decision something is buffered.
 *   5. A run has a wake-up timer if anything of it is ever due (how late: finish.c), a closed one
 * for its deletion; a closed one has neither a decision nor anything buffered.
 *   6. An activity is found by both of its names, its scheduled event is in the history, and once
 *      started it has no outbox row.
 *   7. A timer's started event is in the history.
 *   8. So is the initiated event of a child, a signal or a cancel request; a child that is not
 *      started has what it needs for it. Only before its first decision a run waits for its
 *      parent.
 *   9. Only a decision that failed and is not pending waits for its next attempt.
 *
 * And what is true of an open step (mutation_check): its events have the newest ids, numbers were
 * taken since it began, and what only grows has not fallen. */
#include "engine/branches/branches.h"
#include "engine/run/inside.h"

/* A fault is the rule that is broken, as text; NULL: none is. */
#define RULE(condition, text)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return (text);                                                                         \
    } while (0)

static const char *
names_fault(const STORED(RunRecord) *core)
{
    RULE(core->format == RUN_RECORD_FORMAT, "rule 1: its format");
    RULE(core->domain_id[0] != '\0' && core->workflow_id[0] != '\0', "rule 1: no name");
    RULE(core->run_id[0] != '\0', "rule 1: no run id");
    RULE(core->tree_id.len == 16 && core->branch_id.len == 16, "rule 1: no branch");
    RULE(core->state >= RUN_CREATED && core->state < RUN_STATE_END, "rule 1: its state");
    bool has_status = core->close_status != CLOSE_NONE;
    RULE(core->state == RUN_ZOMBIE || has_status == (core->state == RUN_COMPLETED),
         "rule 1: state and close status");
    RULE(core->workflow_type != NULL && core->task_list != NULL, "rule 1: no type or list");
    return NULL;
}

static const char *
versions_fault(const STORED(RunRecord) *core)
{
    RULE(core->n_versions > 0, "rule 2: no version");
    for (size_t i = 1; i < core->n_versions; i++) {
        const STORED(VersionItem) *one = core->versions[i - 1], *next = core->versions[i];
        RULE(one->event_version < next->event_version, "rule 2: versions fall");
        RULE(one->event_id < next->event_id, "rule 2: ids of versions fall");
    }
    RULE(core->versions[core->n_versions - 1]->event_id == core->next_event_id - 1,
         "rule 2: versions end before the history does");
    RULE(core->last_first_event_id < core->next_event_id, "rule 2: the last batch");
    return NULL;
}

static const char *
decision_fault(const STORED(RunRecord) *core)
{
    const STORED(PendingDecision) *decision = core->decision;
    if (decision == NULL)
        return NULL;
    bool is_started = decision->started_id != EVENT_NONE;
    RULE(core->state != RUN_CREATED, "rule 3: a decision in a run that has had none");
    RULE(decision->task_list != NULL, "rule 3: no list");
    RULE(!is_started || decision->started_id > decision->schedule_id, "rule 3: start");
    RULE(!is_started || decision->row == 0, "rule 3: started, and a row is left");
    if (decision->attempt == 0)
        RULE(decision->schedule_id < core->next_event_id, "rule 3: not in the history");
    else
        RULE(decision->schedule_id <= core->next_event_id, "rule 3: ahead of the history");
    return NULL;
}

static const char *
rest_fault(const struct run *run)
{
    const STORED(RunRecord) *core = run->core;
    RULE(core->timeout_time >= 0 && core->alarm_time >= 0, "rule 5: a time before all time");
    RULE(!run_has_buffered(run) || run_has_started_decision(run), "rule 4");
    RULE(core->decision_retry_time == 0 ||
             (core->decision == NULL && core->decision_attempt > 0 && run_is_open(run)),
         "rule 9: it waits to try again what did not fail");
    RULE(!core->waits_for_parent || (core->decision == NULL && core->parent != NULL),
         "rule 8: it waits for its parent");
    RULE((core->alarm_time == 0) == (core->alarm_row == 0), "rule 5: half a wake-up timer");
    if (run_is_open(run))
        return NULL;
    RULE(core->decision == NULL, "rule 5: closed, but not done");
    RULE(core->alarm_row == 0 || core->alarm_time >= core->delete_time,
         "rule 5: closed, and a wake-up timer before its deletion");
    RULE(core->close_time > 0 && core->close_batch_event_id > 0, "rule 5: no close event");
    return NULL;
}

/* Looks at all that is pending. */
static const char *
wakeup_fault(const struct run *run)
{
    int64_t deadline = run_next_deadline(run);
    RULE(deadline >= 0, "rule 5: due before all time");
    RULE(run->core->alarm_row != 0 || deadline == 0, "rule 5: no wake-up timer");
    return NULL;
}

static const char *
core_fault(const struct run *run)
{
    const char *fault = names_fault(run->core);
    if (fault == NULL)
        fault = versions_fault(run->core);
    if (fault == NULL)
        fault = decision_fault(run->core);
    return fault != NULL ? fault : rest_fault(run);
}

static const char *
activity_fault(const struct run *run, const STORED(PendingActivity) *activity)
{
    RULE(run_find_activity(run, activity->schedule_id) == activity, "rule 6: its id");
    RULE(run_find_activity_id(run, activity->activity_id) == activity, "rule 6: its name");
    RULE(activity->schedule_id > 0 && activity->schedule_id < run->core->next_event_id,
         "rule 6: not in the history");
    RULE(activity->schedule_batch_event_id > 0 &&
             activity->schedule_batch_event_id <= activity->schedule_id,
         "rule 6: its batch");
    bool is_started = activity->started_id != EVENT_NONE;
    RULE(!is_started || activity->row == 0, "rule 6: started, and a row is left");
    RULE(activity->started_id != EVENT_BUFFERED || run_has_buffered(run) || !run_is_open(run),
         "rule 6: its start should be buffered");
    RULE(activity->activity_type != NULL && activity->task_list != NULL, "rule 6: no type");
    return NULL;
}

static const char *
timer_fault(const struct run *run, const STORED(PendingTimer) *timer)
{
    RULE(run_find_timer(run, timer->timer_id) == timer, "rule 7: its id");
    RULE(timer->started_id > 0 && timer->started_id < run->core->next_event_id, "rule 7");
    return NULL;
}

static const char *
child_fault(const struct run *run, const STORED(PendingChild) *child)
{
    RULE(run_find_child(run, child->initiated_id) == child, "rule 8: its id");
    RULE(child->initiated_id < run->core->next_event_id, "rule 8: not in the history");
    bool is_started = child->started_id != EVENT_NONE;
    RULE(is_started == (child->start == NULL), "rule 8: nothing to start with");
    RULE(is_started == (child->started_run_id[0] != '\0'), "rule 8: no run");
    RULE(child->request_id[0] != '\0' && child->workflow_type != NULL, "rule 8: no name");
    return NULL;
}

static const char *
external_fault(const struct run *run, const STORED(PendingExternal) *external)
{
    RULE(run_find_external(run, external->initiated_id) == external, "rule 8: its id");
    RULE(external->initiated_id < run->core->next_event_id, "rule 8: not in the history");
    RULE(external->request_id[0] != '\0', "rule 8: no request");
    RULE(external->row != 0 || run->core->state == RUN_ZOMBIE || !run_is_open(run),
         "rule 8: no row");
    return NULL;
}

static const char *
buffered_fault(const STORED(BufferedEvent) *buffered)
{
    const API(HistoryEvent) *event = buffered->event;
    RULE(event != NULL && event->event_id == EVENT_BUFFERED, "rule 4: it has an id");
    RULE(event->attributes_case != 0, "rule 4: no event");
    return NULL;
}

static const char *
record_fault(const struct run *run, enum pending_kind kind, const void *record)
{
    switch (kind) {
    case PENDING_ACTIVITY:
        return activity_fault(run, record);
    case PENDING_TIMER:
        return timer_fault(run, record);
    case PENDING_BUFFERED:
        return buffered_fault(record);
    case PENDING_CHILD:
        return child_fault(run, record);
    case PENDING_EXTERNAL:
        return external_fault(run, record);
    case PENDING_SIGNAL_REQUEST:
    case PENDING_BIRTH:
        return NULL;
    }
    return "a kind of record that there is not";
}

static const char *
numbered_fault(const struct run *run, enum pending_kind kind, const struct map64 *records)
{
    const char *fault = NULL;
    size_t cursor = 0;
    void *record;
    while (fault == NULL && map64_next(records, &cursor, NULL, &record))
        fault = record_fault(run, kind, record);
    return fault;
}

const char *
run_find_fault(const struct run *run)
{
    const char *fault = core_fault(run);
    if (fault == NULL)
        fault = wakeup_fault(run);
    const struct {
        enum pending_kind kind;
        const struct map64 *records;
    } numbered[] = {{PENDING_CHILD, run->children},
                    {PENDING_EXTERNAL, run->externals},
                    {PENDING_ACTIVITY, run->activities},
                    {PENDING_BUFFERED, run->buffered}};
    for (size_t i = 0; fault == NULL && i < array_length(numbered); i++)
        fault = numbered_fault(run, numbered[i].kind, numbered[i].records);
    size_t cursor = 0;
    void *timer;
    while (fault == NULL && map_next(run->timers, &cursor, NULL, &timer))
        fault = timer_fault(run, timer);
    if (fault == NULL && map_count(run->activity_ids) != map64_count(run->activities))
        fault = "rule 6: names and ids";
    return fault;
}

void
run_check(const struct run *run)
{
    const char *fault = run_find_fault(run);
    check_that(fault == NULL, "run %s: %s", run->core->run_id, fault);
}

static void
check_branches(const STORED(RunRecord) *core)
{
    /* Of a single history there is only the lineage to look at. */
    if (core->n_side_branches == 0 && (core->n_ancestors == 0 || !CHECK_DEEPLY))
        return;
    struct arena *arena = arena_new(1024);
    struct run_branches branches = branches_read(core, arena);
    branches_check(&branches);
    arena_free(arena);
}

void
run_check_core(const struct run *run)
{
    const char *fault = core_fault(run);
    if (fault == NULL && run->core->alarm_row == 0) /* rare: then nothing at all may be due */
        fault = wakeup_fault(run);
    check_that(fault == NULL, "run %s: %s", run->core->run_id, fault);
    check_branches(run->core);
}

void
run_check_record(const struct run *run, enum pending_kind kind, const void *record)
{
    const char *fault = record_fault(run, kind, record);
    check_that(fault == NULL, "run %s: %s", run->core->run_id, fault);
}

/* ---- an open step ---- */

/* All events, rows and changes of the step. */
static void
check_lists(const struct mutation *mutation)
{
    for (size_t i = 0; i < mutation->events.count; i++) {
        const API(HistoryEvent) *event = mutation->events.items[i];
        check(event->event_id == mutation->events.items[0]->event_id + (int64_t)i);
    }
    for (size_t i = 0; i < mutation->rows.count; i++) {
        const struct outbox_change *change = &mutation->rows.items[i];
        check(change->row > 0 && change->row < mutation->context->ids->next);
        check(change->transfer == NULL || change->row >= mutation->first_row);
    }
    for (size_t i = 0; i < mutation->journal.count; i++) {
        const struct run_change *change = &mutation->journal.items[i];
        bool is_text = change->kind == PENDING_TIMER || change->kind == PENDING_SIGNAL_REQUEST;
        check(is_text == (change->text != NULL));
    }
    for (size_t i = 0; i < mutation->held.count; i++)
        check(mutation->held.items[i].event->event_id == EVENT_BUFFERED);
}

void
mutation_check(const struct mutation *mutation)
{
    const STORED(RunRecord) *before = &mutation->before, *now = mutation->run->core;
    size_t count = mutation->events.count;
    check(!mutation->is_over);
    check(mutation->first_row <= mutation->context->ids->next);
    check(mutation->noted <= mutation->journal.count);
    check(mutation->is_holding || mutation->held.count == 0);
    check(before->next_event_id <= now->next_event_id);
    check(before->buffered_next <= now->buffered_next);
    check(before->signal_count <= now->signal_count);
    check(before->state != RUN_COMPLETED || now->state == RUN_COMPLETED);
    check(count == 0 || mutation->events.items[count - 1]->event_id == now->next_event_id - 1);
    if (CHECK_DEEPLY)
        check_lists(mutation);
}
