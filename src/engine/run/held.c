/* held.c - what a list of decisions causes is written behind the events of the decisions.
 *
 * A worker numbers the events of its decisions itself: the first one follows DecisionTaskCompleted,
 * each other one the one before. So an activity that is started together with its decision, or
 * cancelled before anybody had it, must not get an event among them. Such events are applied at
 * once, since the decisions after them count on it, and written once the list is over, behind what
 * was buffered before it began.
 *
 * Nothing is written behind a close. If the list ends the run, what was held back is dropped and
 * undone: the run must be what its history says, here and in clusters that only have the history.
 */
#include "engine/run/inside.h"
#include "fiber/probe.h"

void
mutation_hold_events(struct mutation *mutation)
{
    check(!mutation->is_holding && mutation->held.count == 0);
    check(run_is_open(mutation->run) && !run_has_started_decision(mutation->run));
    mutation->is_holding = true;
}

void
held_add(struct mutation *mutation, API(HistoryEvent) *event)
{
    struct held held = {.event = event};
    int64_t schedule_id;
    check(mutation->is_holding);
    if (event_started_id(event, &schedule_id) != NULL)
        held.before = run_find_activity(mutation->run, schedule_id);
    event->event_id = EVENT_BUFFERED;
    vector_push_in(&mutation->held, mutation->arena, held);
    run_apply(mutation, event);
}

/* The start of an activity is not in the history. */
static void
held_undo_start(struct mutation *mutation, int64_t schedule_id)
{
    STORED(PendingActivity) *activity = mutation_change_activity(mutation, schedule_id);
    check(activity->started_id == EVENT_BUFFERED && activity->row == 0);
    activity->started_id = EVENT_NONE;
    activity->started_time = 0;
    activity->heartbeat_time = 0;
    activity->request_id = (char *)protobuf_c_empty_string;
    activity->identity = (char *)protobuf_c_empty_string;
}

/* The end of an activity is not in the history: it is pending in the closed run, unless the list
 * has used its id again. */
static void
held_undo_end(struct mutation *mutation, const STORED(PendingActivity) *before)
{
    struct run *run = mutation->run;
    if (run_find_activity_id(run, before->activity_id) != NULL)
        return;
    STORED(PendingActivity) *activity = arena_alloc(run->arena, sizeof *activity);
    *activity = *before;
    activity->row = 0;
    mutation_put_activity(mutation, activity);
}

static void
held_undo(struct mutation *mutation, const struct held *held)
{
    const API(HistoryEvent) *event = held->event;
    if (held->before != NULL)
        held_undo_end(mutation, held->before);
    else if (event->attributes_case == EVENT_KIND(ACTIVITY_TASK_STARTED))
        held_undo_start(mutation,
                        event->activity_task_started_event_attributes->scheduled_event_id);
    else
        check(event->attributes_case == EVENT_KIND(REQUEST_CANCEL_ACTIVITY_TASK_FAILED));
}

static void
held_write(struct mutation *mutation, const struct held *held)
{
    check(held->event->event_id == EVENT_BUFFERED);
    event_append(mutation, held->event);
    run_apply_id(mutation, held->event);
}

void
mutation_release_events(struct mutation *mutation)
{
    check(mutation->is_holding);
    mutation->is_holding = false;
    size_t count = mutation->held.count;
    bool is_open = run_is_open(mutation->run);
    if (is_open)
        (void)mutation_flush_buffered(mutation);
    for (size_t i = 0; i < count; i++) {
        if (is_open)
            held_write(mutation, &mutation->held.items[i]);
        else
            held_undo(mutation, &mutation->held.items[count - 1 - i]);
    }
    mutation->held.count = 0;
    if (count > 0)
        probe(is_open ? "held_events_written" : "held_events_dropped");
}
