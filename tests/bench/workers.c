/* workers.c - see part.h.
 *
 * A worker decides without replaying: an activity or a timer first, the end afterwards. Who started
 * a workflow learns of its end by a loop message, since that may be another loop. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "part.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "wire/presence.h"

static API(Decision) *
decide_activity(struct part *part, unsigned number, struct arena *arena)
{
    API(ScheduleActivityTaskDecisionAttributes) *activity =
        message_new(arena, API_TYPE(schedule_activity_task_decision_attributes));
    activity->activity_id = arena_format(arena, "%u", number);
    activity->activity_type = message_new(arena, API_TYPE(activity_type));
    activity->activity_type->name = "act";
    activity->domain = DOMAIN_NAME;
    activity->task_list = part_list(part, arena);
    activity->input = part_payload(part, arena);
    activity->schedule_to_close_timeout = presence_make_duration(arena, 3600);
    activity->schedule_to_start_timeout = presence_make_duration(arena, 3600);
    activity->start_to_close_timeout = presence_make_duration(arena, 3600);
    API(Decision) *decision = message_new(arena, API_TYPE(decision));
    decision->attributes_case =
        API_VALUE(DECISION__ATTRIBUTES_SCHEDULE_ACTIVITY_TASK_DECISION_ATTRIBUTES);
    decision->schedule_activity_task_decision_attributes = activity;
    return decision;
}

/* Timers have whole seconds: rounded up, those of many workflows are due in one second. */
static API(Decision) *
decide_timer(struct part *part, struct arena *arena)
{
    int64_t left = part->options->due - clock_wall();
    API(StartTimerDecisionAttributes) *timer =
        message_new(arena, API_TYPE(start_timer_decision_attributes));
    timer->timer_id = "t";
    timer->start_to_fire_timeout =
        presence_make_duration(arena, left <= 0 ? 1 : (left + NS_PER_S - 1) / NS_PER_S);
    API(Decision) *decision = message_new(arena, API_TYPE(decision));
    decision->attributes_case = API_VALUE(DECISION__ATTRIBUTES_START_TIMER_DECISION_ATTRIBUTES);
    decision->start_timer_decision_attributes = timer;
    return decision;
}

static API(Decision) *
decide_end(struct part *part, struct arena *arena)
{
    API(CompleteWorkflowExecutionDecisionAttributes) *end =
        message_new(arena, API_TYPE(complete_workflow_execution_decision_attributes));
    end->result = part_payload(part, arena);
    API(Decision) *decision = message_new(arena, API_TYPE(decision));
    decision->attributes_case =
        API_VALUE(DECISION__ATTRIBUTES_COMPLETE_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES);
    decision->complete_workflow_execution_decision_attributes = end;
    return decision;
}

/* News for the part that started a workflow. */
struct end {
    struct loop_message message;
    struct part *part;
    unsigned long number;
};

static void
deliver_end(struct loop_message *message)
{
    struct end *end = container_of(message, struct end, message);
    struct part *part = end->part;
    if (part->is_finished[end->number])
        part->repeats++;
    else if (part->options->step != STEP_WHOLE) {
        part->done++;
        latch_done(&part->working);
    }
    part->is_finished[end->number] = true;
    if (part->starters[end->number] != NULL)
        fiber_wake(part->starters[end->number]);
    memory_free(end);
}

static void
finish(struct part *part, const char *workflow_id)
{
    const char *number = strrchr(workflow_id, '-');
    check(number != NULL);
    struct end *end = memory_zalloc(1, sizeof *end);
    end->message.deliver = deliver_end;
    end->number = strtoul(number + 1, NULL, 10);
    check(end->number < part->options->count);
    end->part = part->all->by_loop[end->number % part->all->count];
    loop_post_answer(loop_at(end->part->index), &end->message);
}

static API(TaskList) *
sticky_list(struct part *part, struct arena *arena)
{
    API(TaskList) *list = message_new(arena, API_TYPE(task_list));
    list->name = arena_format(arena, "%s-sticky", part->all->list);
    list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
    return list;
}

/* A worker with a cache: what follows comes to its own list. */
static API(StickyExecutionAttributes) *
stick(struct part *part, struct arena *arena)
{
    if (part->options->activities <= 1)
        return NULL;
    API(StickyExecutionAttributes) *sticky =
        message_new(arena, API_TYPE(sticky_execution_attributes));
    sticky->worker_task_list = sticky_list(part, arena);
    sticky->schedule_to_start_timeout = presence_make_duration(arena, 60);
    return sticky;
}

/* When the timer of a task's history was due, by the wall clock. */
static int64_t
due_of(const API(PollForDecisionTaskResponse) *task)
{
    for (size_t i = 0; i < task->history->n_events; i++) {
        const API(HistoryEvent) *event = task->history->events[i];
        if (event->attributes_case ==
            API_VALUE(HISTORY_EVENT__ATTRIBUTES_TIMER_STARTED_EVENT_ATTRIBUTES))
            return event->event_time->seconds * NS_PER_S + event->event_time->nanos +
                   event->timer_started_event_attributes->start_to_fire_timeout->seconds * NS_PER_S;
    }
    check_that(false, "a decision without its timer");
    return 0;
}

/* NULL: it is time to end. */
static API(Decision) *
decide_next(struct part *part, const API(PollForDecisionTaskResponse) *task, struct arena *arena)
{
    /* Its first decision is started with event 3, and each activity takes six events. */
    unsigned number = (unsigned)(task->started_event_id - 3) / 6;
    unsigned activities = part->options->activities == 0 ? 1 : part->options->activities;
    if (part->options->due == 0)
        return number < activities ? decide_activity(part, number, arena) : NULL;
    if (task->started_event_id == 3)
        return decide_timer(part, arena);
    load_histogram_add(&part->ends, clock_wall() - due_of(task));
    return NULL;
}

static void
answer_decision(struct part *part, const API(PollForDecisionTaskResponse) *task,
                struct arena *arena)
{
    API(Decision) *decision = decide_next(part, task, arena);
    bool is_first = decision != NULL;
    if (decision == NULL)
        decision = decide_end(part, arena);
    API(RespondDecisionTaskCompletedRequest) *request =
        message_new(arena, API_TYPE(respond_decision_task_completed_request));
    request->task_token = task->task_token;
    request->decisions = &decision;
    request->n_decisions = 1;
    request->sticky_attributes = stick(part, arena);
    request->identity = "bench";
    API(RespondDecisionTaskCompletedResponse) *response;
    struct error *err =
        part_call(part, "WorkerAPI/RespondDecisionTaskCompleted", CALL_TIMEOUT, request, arena,
                  respond_decision_task_completed_response, &response);
    part_note(part, err);
    if (err == NULL && is_first == (part->options->step == STEP_DECIDE))
        finish(part, task->workflow_execution->workflow_id);
}

static void
poll_decisions(struct part *part, bool is_sticky)
{
    while (!part->is_over) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        API(PollForDecisionTaskRequest) *request =
            message_new(arena, API_TYPE(poll_for_decision_task_request));
        request->domain = DOMAIN_NAME;
        request->task_list = is_sticky ? sticky_list(part, arena) : part_list(part, arena);
        request->identity = "bench";
        API(PollForDecisionTaskResponse) *task;
        struct error *err = part_call(part, "WorkerAPI/PollForDecisionTask", POLL_TIMEOUT, request,
                                      arena, poll_for_decision_task_response, &task);
        part_note(part, err);
        if (err == NULL && task->task_token.len > 0)
            answer_decision(part, task, arena);
    }
    latch_done(&part->polling);
}

void
part_poll_decisions(void *argument)
{
    poll_decisions(argument, false);
}

void
part_poll_sticky(void *argument)
{
    poll_decisions(argument, true);
}

static void
answer_activity(struct part *part, const API(PollForActivityTaskResponse) *task,
                struct arena *arena)
{
    API(RespondActivityTaskCompletedRequest) *request =
        message_new(arena, API_TYPE(respond_activity_task_completed_request));
    request->task_token = task->task_token;
    request->result = part_payload(part, arena);
    request->identity = "bench";
    API(RespondActivityTaskCompletedResponse) *response;
    part_note(part, part_call(part, "WorkerAPI/RespondActivityTaskCompleted", CALL_TIMEOUT, request,
                              arena, respond_activity_task_completed_response, &response));
}

void
part_poll_activities(void *argument)
{
    struct part *part = argument;
    while (!part->is_over) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        API(PollForActivityTaskRequest) *request =
            message_new(arena, API_TYPE(poll_for_activity_task_request));
        request->domain = DOMAIN_NAME;
        request->task_list = part_list(part, arena);
        request->identity = "bench";
        API(PollForActivityTaskResponse) *task;
        struct error *err = part_call(part, "WorkerAPI/PollForActivityTask", POLL_TIMEOUT, request,
                                      arena, poll_for_activity_task_response, &task);
        part_note(part, err);
        if (err == NULL && task->task_token.len > 0)
            answer_activity(part, task, arena);
    }
    latch_done(&part->polling);
}
