/* wake.c - a run's wake-up timer fires: everything that is due is done, in the order of its time.
 *
 * The due things are listed (deadline.c of run/ says when each is) and sorted, then done one after
 * the other; each is looked at again before it is done, for an earlier one may have made it void (a
 * close ends all). That is repeated until nothing is due.
 *
 * Order: time, then the kind as in the list below, then event id. What happened leads to one
 * decision for all timers and timeouts that fired together; but a decision that timed out is
 * followed by its next attempt before anything else is done. */
#include <stdlib.h>

#include "base/check.h"
#include "engine/command/inside.h"
#include "engine/command/retry.h"
#include "engine/run/apply.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define SECOND      1000000000LL
#define RESET_RETRY (3600 * SECOND) /* of a reset because of a bad binary */
/* Done in one step. The rest is due at once again: a step has only so many numbers to give to its
 * events (RANGE_SPARE of shard/), and others wait for the loop. */
#define DUE_MAX 10000

enum due_kind {
    DUE_RUN_TIMEOUT,
    DUE_DECISION_TIMEOUT,
    DUE_DECISION_RETRY,
    DUE_FIRST_DECISION,
    DUE_ASK_PARENT,
    DUE_TIMER,
    DUE_ACTIVITY,
};

struct due {
    int64_t time;
    enum due_kind kind;
    int64_t event_id; /* of the decision, the timer's start, the activity */
    int32_t attempt;  /* of the decision or activity */
    int what;         /* of an activity: its DUE_…; of a decision: the type of timeout */
    const char *timer_id;
};

struct due_list {
    struct arena *arena;
    int64_t now;
    vector_of(struct due) due;
    size_t done; /* in this step */
};

static void
add_due(struct due_list *list, struct due due)
{
    if (due.time <= list->now)
        vector_push_in(&list->due, list->arena, due);
}

static void
list_run(struct due_list *list, const STORED(RunRecord) *core)
{
    if (core->timeout_time != 0)
        add_due(list, (struct due){.time = core->timeout_time, .kind = DUE_RUN_TIMEOUT});
    if (core->decision_retry_time != 0)
        add_due(list, (struct due){.time = core->decision_retry_time, .kind = DUE_DECISION_RETRY});
    if (core->first_decision_time != 0 && !core->waits_for_parent)
        add_due(list, (struct due){.time = core->first_decision_time, .kind = DUE_FIRST_DECISION});
    if (core->waits_for_parent)
        add_due(list, (struct due){.time = core->ask_parent_time, .kind = DUE_ASK_PARENT});
}

static void
list_decision(struct due_list *list, const STORED(PendingDecision) *decision)
{
    if (decision == NULL)
        return;
    bool is_started = decision->started_id != EVENT_NONE;
    int64_t time = decision_next_due(decision);
    if (time == 0)
        return;
    add_due(list, (struct due){
                      .time = time,
                      .kind = DUE_DECISION_TIMEOUT,
                      .event_id = decision->schedule_id,
                      .attempt = decision->attempt,
                      .what = is_started ? API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE)
                                         : API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START),
                  });
}

static void
list_activity(struct due_list *list, const STORED(PendingActivity) *activity)
{
    struct activity_due next = activity_next_due(activity);
    add_due(list, (struct due){.time = next.time,
                               .kind = DUE_ACTIVITY,
                               .event_id = activity->schedule_id,
                               .attempt = activity->attempt,
                               .what = next.what});
}

static void
list_pending(struct due_list *list, struct mutation *mutation)
{
    size_t count;
    const struct run_due *due = mutation_list_due(mutation, list->now, &count);
    for (size_t i = 0; i < count; i++) {
        check(due[i].time != 0 && due[i].time <= list->now);
        if (due[i].timer_id == NULL)
            list_activity(list, run_find_activity(mutation_run(mutation), due[i].number));
        else
            add_due(list, (struct due){.time = due[i].time,
                                       .kind = DUE_TIMER,
                                       .event_id = due[i].number,
                                       .timer_id = due[i].timer_id});
    }
}

static int
compare_due(const void *left, const void *right)
{
    const struct due *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->event_id > b->event_id) - (a->event_id < b->event_id);
}

/* Everything that is due now, the earliest first. */
static void
list_due(struct due_list *list, struct mutation *mutation)
{
    const struct run *run = mutation_run(mutation);
    vector_clear(&list->due);
    if (!run_is_open(run))
        return;
    list_run(list, run->core);
    list_decision(list, run->core->decision);
    list_pending(list, mutation);
#ifdef CADENZA_FAULT_wake_unordered
    return;
#endif
    if (list->due.count > 1)
        qsort(list->due.items, list->due.count, sizeof list->due.items[0], compare_due);
}

/* --- what is done ---------------------------------------------------------------------------- */

/* The run ends, or goes on as its next attempt or the next run of its schedule. */
static void
time_out_run(struct step *step)
{
    struct mutation *mutation = step->mutation;
    const API(TimeoutType) type = API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE);
    check(mutation_run(mutation)->core->timeout_time <= step->context->now); /* never early */
    probe("run_timed_out");
    run_force_close_decision(mutation);
    API(Failure) *failure = message_new(mutation_arena(mutation), API_TYPE(failure));
    failure->reason = (char *)retry_timeout_reason(type);
    struct run_end end = {.failure = failure, .completed_id = EVENT_NONE};
    if (run_is_followed(step, mutation, &end))
        return;
    API(HistoryEvent) *event =
        mutation_new_event(mutation, EVENT_KIND(WORKFLOW_EXECUTION_TIMED_OUT));
    event->workflow_execution_timed_out_event_attributes->timeout_type = type;
    (void)mutation_add_event(mutation, event);
    check(!run_is_open(mutation_run(mutation)));
}

static void
fire_timer(struct mutation *mutation, const struct due *due)
{
    const STORED(PendingTimer) *timer = run_find_timer(mutation_run(mutation), due->timer_id);
    check(timer != NULL && timer->fire_time <= mutation_context(mutation)->now); /* never early */
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(TIMER_FIRED));
    event->timer_fired_event_attributes->timer_id = timer->timer_id;
    event->timer_fired_event_attributes->started_event_id = timer->started_id;
    (void)mutation_add_event(mutation, event);
    check(run_find_timer(mutation_run(mutation), due->timer_id) == NULL);
}

/* Writes that it timed out; its started event first, where that still waits. */
static void
add_timed_out(struct mutation *mutation, const STORED(PendingActivity) *activity,
              API(TimeoutType) type)
{
    probe("activity_timed_out");
    int64_t started_id = activity_started_event(mutation, activity);
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(ACTIVITY_TASK_TIMED_OUT));
    API(ActivityTaskTimedOutEventAttributes) *attributes =
        event->activity_task_timed_out_event_attributes;
    attributes->scheduled_event_id = activity->schedule_id;
    attributes->started_event_id = started_id;
    attributes->timeout_type = type;
    attributes->details = activity->heartbeat_details;
    attributes->last_failure = activity->last_failure;
    (void)mutation_add_event(mutation, event);
}

static API(TimeoutType)
timeout_of(int what)
{
    switch (what) {
    case DUE_START_TO_CLOSE:
        return API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE);
    case DUE_SCHEDULE_TO_START:
        return API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START);
    case DUE_SCHEDULE_TO_CLOSE:
        return API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_CLOSE);
    default:
        check(what == DUE_HEARTBEAT);
        return API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_HEARTBEAT);
    }
}

/* Its next attempt begins, or it timed out. True: the worker must be told. */
static bool
do_activity(struct mutation *mutation, const struct due *due)
{
    const STORED(PendingActivity) *activity =
        run_find_activity(mutation_run(mutation), due->event_id);
    check(activity != NULL && activity->attempt == due->attempt); /* it is listed once */
    if (due->what == DUE_DISPATCH) {
        activity_dispatch(mutation, due->event_id);
        return false;
    }
    API(TimeoutType) timeout = timeout_of(due->what);
    API(Failure) *failure = message_new(mutation_arena(mutation), API_TYPE(failure));
    failure->reason = (char *)retry_timeout_reason(timeout);
    if (activity_retry(mutation, activity, failure))
        return false;
    add_timed_out(mutation, activity, timeout);
    check(run_find_activity(mutation_run(mutation), due->event_id) == NULL);
    return true;
}

/* Events that came before may have ended it: too many of them fail a started decision. */
static void
time_out_decision(struct mutation *mutation, const struct due *due)
{
    const STORED(PendingDecision) *decision = mutation_run(mutation)->core->decision;
    if (decision == NULL || decision->schedule_id != due->event_id ||
        decision->attempt != due->attempt)
        return;
    bool is_started = decision->started_id != EVENT_NONE;
    if (is_started == (due->what == API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE))) {
        probe("decision_timed_out");
        decision_time_out(mutation, (API(TimeoutType))due->what);
    }
}

/* Does one thing. True: the worker must be told of it. */
static bool
do_due(struct step *step, const struct due *due)
{
    struct mutation *mutation = step->mutation;
    switch (due->kind) {
    case DUE_RUN_TIMEOUT:
        time_out_run(step);
        return false;
    case DUE_DECISION_TIMEOUT:
        time_out_decision(mutation, due);
        return true;
    case DUE_DECISION_RETRY:
        if (mutation_run(mutation)->core->decision_retry_time != 0) /* no news came before it */
            decision_retry_due(mutation);
        return false;
    case DUE_FIRST_DECISION:
        check(mutation_run(mutation)->core->first_decision_time <= step->context->now);
        decision_schedule(mutation, 0);
        return false;
    case DUE_ASK_PARENT:
        run_ask_parent(mutation);
        return false;
    case DUE_TIMER:
        fire_timer(mutation, due);
        return true;
    case DUE_ACTIVITY:
        return do_activity(mutation, due);
    }
    unreachable("due kind %d", (int)due->kind);
}

/* Was an attempt sent so late that it has timed out as well? Then the list is not whole. */
static bool
is_list_stale(const struct run *run, const struct due *due, int64_t now)
{
    if (due->kind != DUE_ACTIVITY || due->what != DUE_DISPATCH)
        return false;
    struct activity_due next = activity_next_due(run_find_activity(run, due->event_id));
    return next.what != DUE_NOTHING && next.time <= now;
}

/* Does these things. A decision that the worker needs because of them is scheduled before the next
 * thing that is about one; *needs_decision says if one is still needed at the end. */
static void
do_all(struct step *step, struct due_list *list, bool *needs_decision)
{
    struct mutation *mutation = step->mutation;
    const struct run *run = mutation_run(mutation);
    for (size_t i = 0; i < list->due.count && run_is_open(run) && list->done < DUE_MAX; i++) {
        list->done++;
        const struct due *due = &list->due.items[i];
        bool is_decision = due->kind == DUE_DECISION_TIMEOUT || due->kind == DUE_DECISION_RETRY;
        if (is_decision && *needs_decision)
            decision_schedule_if_needed(mutation);
        *needs_decision = do_due(step, due) || *needs_decision;
        if (is_decision)
            decision_schedule_if_needed(mutation);
        if (run_is_open(run) && is_list_stale(run, due, list->now))
            return;
    }
}

bool
command_wake_resets(const struct step *step, struct auto_reset *reset)
{
    const struct run *run = mutation_run(step->mutation);
    int64_t time = run->core->auto_reset_time;
    if (!run_is_open(run) || time == 0 || time > step->context->now)
        return false;
    const API(ResetPointInfo) *point = run_find_bad_point(run, step->context, &reset->reason);
    if (point == NULL)
        return false;
    *reset = (struct auto_reset){.current_run_id = arena_text(step->arena, run->core->run_id),
                                 .run_id = arena_text(step->arena, point->run_id),
                                 .reason = arena_text(step->arena, reset->reason),
                                 .fork = point->first_decision_completed_id};
    return true;
}

/* The reset is a step of its own. If it fails it is tried again after a while, unless the binary is
 * not bad any more. */
static void
put_off_reset(const struct step *step)
{
    STORED(RunRecord) *core = mutation_core(step->mutation);
    const char *reason;
    if (!run_is_open(mutation_run(step->mutation)) || core->auto_reset_time == 0 ||
        core->auto_reset_time > step->context->now)
        return;
    bool is_wanted =
        run_find_bad_point(mutation_run(step->mutation), step->context, &reason) != NULL;
    core->auto_reset_time = is_wanted ? step->context->now + RESET_RETRY : 0;
}

void
command_wake(struct step *step)
{
    struct mutation *mutation = step->mutation;
    check(mutation != NULL);
    step_check(step);
    put_off_reset(step);
    struct due_list list = {.arena = step->arena, .now = step->context->now};
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    bool needs_decision = core->decision == NULL && core->decision_attempt > 0 &&
                          core->decision_retry_time == 0; /* it moved here */
    for (list_due(&list, mutation); list.due.count > 0 && list.done < DUE_MAX;
         list_due(&list, mutation))
        do_all(step, &list, &needs_decision);
    if (needs_decision)
        decision_schedule_if_needed(mutation);
    int64_t next = mutation_next_deadline(mutation);
    check_that(next == 0 || next > list.now || list.done == DUE_MAX, "due at %lld, it is %lld",
               (long long)next, (long long)list.now);
}
