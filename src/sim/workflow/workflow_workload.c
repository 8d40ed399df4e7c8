/* workflow_workload.c - what a workflow does next, told from its history alone. See
 * workflow_load.h.
 *
 * Children come first (workflow_children.c). Activities "a0", "a1", … run one after the other, then
 * timers "t0", …; then it waits for its signals; then it continues as new or completes. A cancel
 * request ends it at the next decision.
 *
 * With failures in its plan it fails at its end as often as its attempt is less than that. With
 * fires it completes with the number of fires that were good, which the next run finds as the last
 * result, until there were enough: then it continues without a schedule. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "sim/workflow/workflow_inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define EVENT(name)    API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define DECISION(name) API_VALUE(DECISION__ATTRIBUTES_##name##_DECISION_ATTRIBUTES)

/* How far a history is. */
struct progress {
    struct workload workload;
    unsigned scheduled, ended;       /* activities */
    unsigned timers_set, timers_run; /* timers */
    unsigned signals;                /* of different names */
    bool received[WORKFLOW_SIGNALS_MAX];
    bool is_cancelled;
    struct children_progress child_policy;
    unsigned attempt, fires; /* attempts that failed, fires that were good, before this run */
};

const char *
workload_print(const struct workload *workload, struct arena *arena)
{
    return arena_format(arena, "%u %u %u %u %u %u %u %u %u %u %u %u %u", workload->activities,
                        workload->timers, workload->signals, workload->runs, workload->failures,
                        workload->fires, workload->children, workload->child_policy,
                        workload->child_runs, workload->child_failures, workload->child_fires,
                        workload->is_endless, workload->is_mild);
}

bool
workload_parse(const char *text, struct workload *workload)
{
    return sscanf(text, "%u %u %u %u %u %u %u %u %u %u %u %u %u", &workload->activities,
                  &workload->timers, &workload->signals, &workload->runs, &workload->failures,
                  &workload->fires, &workload->children, &workload->child_policy,
                  &workload->child_runs, &workload->child_failures, &workload->child_fires,
                  &workload->is_endless, &workload->is_mild) == 13;
}

API(RetryPolicy) *
workload_retry_policy(struct arena *arena)
{
    return API_NEW(arena, retry_policy, .initial_interval = presence_make_duration(arena, 1),
                   .maximum_interval = presence_make_duration(arena, 3), .backoff_coefficient = 2,
                   .maximum_attempts = 100);
}

static void
note_signal(struct progress *progress, const char *name)
{
    unsigned number = 0;
    if (sscanf(name, "s%u", &number) != 1 || number >= WORKFLOW_SIGNALS_MAX)
        return;
    progress->signals += !progress->received[number];
    progress->received[number] = true;
}

static void
follow(struct progress *progress, const API(HistoryEvent) *event)
{
    int kind = (int)event->attributes_case;
    progress->scheduled += kind == EVENT(ACTIVITY_TASK_SCHEDULED);
    progress->ended += kind == EVENT(ACTIVITY_TASK_COMPLETED) ||
                       kind == EVENT(ACTIVITY_TASK_FAILED) ||
                       kind == EVENT(ACTIVITY_TASK_TIMED_OUT);
    progress->timers_set += kind == EVENT(TIMER_STARTED);
    progress->timers_run += kind == EVENT(TIMER_FIRED);
    children_follow(&progress->child_policy, event);
    if (kind == EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED))
        progress->is_cancelled = true;
    if (kind == EVENT(WORKFLOW_EXECUTION_SIGNALED))
        note_signal(progress, event->workflow_execution_signaled_event_attributes->signal_name);
}

API(Decision) *
workload_new_decision(struct arena *arena, int kind)
{
    API(Decision) *decision = API_NEW(arena, decision, .attributes_case = kind);
    return decision;
}

/* Some are large, which are stored in another way. */
static const char *
activity_input(const char *activity_id, struct arena *arena)
{
    unsigned number = 0;
    bool is_plan = sscanf(activity_id, "a%u", &number) == 1;
    return is_plan && number % 2 == 1 ? arena_format(arena, "%s%*s", activity_id, 700, ".")
                                      : activity_id;
}

void
workload_check_activity(const API(PollForActivityTaskResponse) *task, struct verdict *verdict,
                        struct arena *arena)
{
    const char *input = workflow_payload_text(arena, task->input);
    if (strcmp(input, activity_input(task->activity_id, arena)) != 0)
        verdict_violate(verdict, "%s: activity %s, attempt %d, is given %zu bytes: %.20s",
                        task->workflow_execution->run_id, task->activity_id, task->attempt,
                        strlen(input), input);
}

static API(Decision) *
schedule_activity(unsigned number, struct arena *arena)
{
    API(ScheduleActivityTaskDecisionAttributes) *activity =
        API_NEW(arena, schedule_activity_task_decision_attributes,
                .activity_id = arena_format(arena, "a%u", number),
                .activity_type = API_NEW(arena, activity_type, .name = "work"),
                .task_list = workflow_task_list(arena));
    activity->input = workflow_payload(arena, activity_input(activity->activity_id, arena));
    activity->schedule_to_close_timeout = presence_make_duration(arena, 3600);
    activity->schedule_to_start_timeout = presence_make_duration(arena, 3600);
    activity->start_to_close_timeout = presence_make_duration(arena, 5);
    activity->heartbeat_timeout = presence_make_duration(arena, 3);
    activity->retry_policy =
        API_NEW(arena, retry_policy, .initial_interval = presence_make_duration(arena, 1),
                .backoff_coefficient = 1, .maximum_attempts = 10000);
    API(Decision) *decision = workload_new_decision(arena, DECISION(SCHEDULE_ACTIVITY_TASK));
    decision->schedule_activity_task_decision_attributes = activity;
    return decision;
}

static API(Decision) *
start_timer(unsigned number, struct arena *arena)
{
    API(StartTimerDecisionAttributes) *timer = API_NEW(
        arena, start_timer_decision_attributes, .timer_id = arena_format(arena, "t%u", number),
        .start_to_fire_timeout = presence_make_duration(arena, 1 + number % 3));
    API(Decision) *decision = workload_new_decision(arena, DECISION(START_TIMER));
    decision->start_timer_decision_attributes = timer;
    return decision;
}

static API(Decision) *
record_marker(const char *name, struct arena *arena)
{
    API(RecordMarkerDecisionAttributes) *marker =
        API_NEW(arena, record_marker_decision_attributes, .marker_name = (char *)name);
    API(Decision) *decision = workload_new_decision(arena, DECISION(RECORD_MARKER));
    decision->record_marker_decision_attributes = marker;
    return decision;
}

static API(Decision) *
cancel_workflow(struct arena *arena)
{
    API(Decision) *decision = workload_new_decision(arena, DECISION(CANCEL_WORKFLOW_EXECUTION));
    decision->cancel_workflow_execution_decision_attributes =
        API_NEW(arena, cancel_workflow_execution_decision_attributes);
    return decision;
}

static API(Decision) *
fail_workflow(struct arena *arena)
{
    API(Decision) *decision = workload_new_decision(arena, DECISION(FAIL_WORKFLOW_EXECUTION));
    decision->fail_workflow_execution_decision_attributes =
        API_NEW(arena, fail_workflow_execution_decision_attributes,
                .failure = API_NEW(arena, failure, .reason = "not yet"));
    return decision;
}

static API(Decision) *
complete_workflow(const struct progress *progress, struct arena *arena)
{
    API(Decision) *decision = workload_new_decision(arena, DECISION(COMPLETE_WORKFLOW_EXECUTION));
    decision->complete_workflow_execution_decision_attributes =
        API_NEW(arena, complete_workflow_execution_decision_attributes,
                .result = workflow_payload(arena, arena_format(arena, "%u", progress->fires + 1)));
    return decision;
}

/* NULL: it waits. The next run does the same again, but waits for no signals and has no children,
 * no retry policy and no schedule. */
static API(Decision) *
go_on_or_end(const struct progress *progress, struct arena *arena)
{
    const struct workload *workload = &progress->workload;
    if (progress->attempt < workload->failures)
        return fail_workflow(arena);
    if (progress->fires < workload->fires)
        return complete_workflow(progress, arena);
    if (workload->fires == 0 && workload->runs == 0)
        return workload->is_endless != 0 ? NULL : complete_workflow(progress, arena);
    struct workload next = *workload;
    next.runs -= workload->fires == 0; /* that one only gets rid of the schedule */
    next.signals = next.children = next.failures = next.fires = 0;
    API(Decision) *decision =
        workload_new_decision(arena, DECISION(CONTINUE_AS_NEW_WORKFLOW_EXECUTION));
    decision->continue_as_new_workflow_execution_decision_attributes =
        API_NEW(arena, continue_as_new_workflow_execution_decision_attributes,
                .input = workflow_payload(arena, workload_print(&next, arena)));
    return decision;
}

/* NULL: nothing, it waits. */
static API(Decision) *
next_decision(const struct progress *progress, struct arena *arena)
{
    const struct workload *workload = &progress->workload;
    if (progress->is_cancelled)
        return cancel_workflow(arena);
    if (progress->ended < workload->activities)
        return progress->scheduled == progress->ended
                   ? schedule_activity(progress->scheduled, arena)
                   : NULL;
    if (progress->timers_run < workload->timers)
        return progress->timers_set == progress->timers_run
                   ? start_timer(progress->timers_set, arena)
                   : NULL;
    return progress->signals < workload->signals ? NULL : go_on_or_end(progress, arena);
}

static bool
is_closing(int kind)
{
    return kind == DECISION(COMPLETE_WORKFLOW_EXECUTION) ||
           kind == DECISION(FAIL_WORKFLOW_EXECUTION) ||
           kind == DECISION(CANCEL_WORKFLOW_EXECUTION) ||
           kind == DECISION(CONTINUE_AS_NEW_WORKFLOW_EXECUTION);
}

void
workload_decide(const struct history_seen *seen, const char *workflow_id, const char *marker,
                struct arena *arena, struct workload_step *step)
{
    check(seen->count > 0);
    const API(WorkflowExecutionStartedEventAttributes) *started =
        seen->events[0]->workflow_execution_started_event_attributes;
    struct progress progress = {0};
    bool is_plan = workload_parse(workflow_payload_text(arena, started->input), &progress.workload);
    check(is_plan);
    if (started->last_completion_result != NULL)
        (void)sscanf(workflow_payload_text(arena, started->last_completion_result), "%u",
                     &progress.fires);
    progress.attempt = (unsigned)started->attempt;
    if (started->continued_execution_run_id[0] != '\0')
        progress.workload.signals = progress.workload.children = 0; /* they are of the first run */
    for (size_t i = 1; i < seen->count; i++)
        follow(&progress, seen->events[i]);
    *step = (struct workload_step){0};
    step->decisions[step->count++] = record_marker(marker, arena);
    if (!progress.is_cancelled &&
        children_decide(&progress.workload, &progress.child_policy, workflow_id, arena, step))
        return;
    API(Decision) *next = next_decision(&progress, arena);
    if (next == NULL)
        return;
    step->decisions[step->count++] = next;
    step->is_closing = is_closing((int)next->attributes_case);
}

const char *
workload_answer(const struct history_seen *seen, struct arena *arena)
{
    struct progress progress = {0};
    for (size_t i = 0; i < seen->count; i++)
        follow(&progress, seen->events[i]);
    unsigned received = 0;
    for (unsigned i = 0; i < QUERIED_SIGNALS; i++)
        received |= (unsigned)progress.received[i] << i;
    return arena_format(arena, "%u", received);
}
