/* tale.c - see tale.h. */
#include "schedule/tale.h"

#define EVENTS_MAX 4000

API(CreateScheduleRequest) *
tale_request(struct arena *arena, const char *cron)
{
    API(CreateScheduleRequest) *request = message_new(arena, API_TYPE(create_schedule_request));
    request->schedule_id = "plan";
    request->spec = message_new(arena, API_TYPE(schedule_spec));
    request->spec->cron_expression = (char *)cron;
    request->action = message_new(arena, API_TYPE(schedule_action));
    request->action->start_workflow =
        message_new(arena, API_TYPE(schedule_action__start_workflow_action));
    request->policies = message_new(arena, API_TYPE(schedule_policies));
    return request;
}

/* All of it again, from the bytes. */
static void
refold(struct tale *tale)
{
    tale->folded = (struct schedule){0};
    for (size_t i = 0; i < tale->count; i++) {
        scoped(arena_drop) struct arena *scratch = arena_new(0);
        API(HistoryEvent) *event = NULL;
        EXPECT_OK(message_decode(scratch, API_TYPE(history_event), tale->events[i], &event));
        schedule_fold(&tale->folded, event, tale->arena);
    }
}

static void *
add(struct tale *tale, API(HistoryEvent__AttributesCase) kind, API(HistoryEvent) **event)
{
    const ProtobufCFieldDescriptor *field =
        message_find_field(API_TYPE(history_event), (uint32_t)kind);
    *event = message_new(tale->arena, API_TYPE(history_event));
    void *attributes = message_new(tale->arena, field->descriptor);
    memcpy((char *)*event + field->offset, &attributes, sizeof attributes);
    (*event)->attributes_case = kind;
    (*event)->event_id = (int64_t)tale->count + 1;
    (*event)->event_time = presence_make_timestamp(tale->arena, tale->now);
    return attributes;
}

static void
keep(struct tale *tale, const API(HistoryEvent) *event)
{
    check(tale->count < EVENTS_MAX);
    tale->events[tale->count++] = message_encode(tale->arena, &event->base);
    refold(tale);
}

static API(Payload) *
payload_of(struct tale *tale, struct slice bytes)
{
    return presence_make_payload(tale->arena, (struct maybe_bytes){.is_set = true, .bytes = bytes});
}

void
tale_begin_with(struct tale *tale, struct arena *arena, struct slice input, int64_t now)
{
    *tale = (struct tale){.arena = arena, .now = now};
    tale->limits = (struct schedule_limits){INT64_MAX, INT64_MAX, INT64_MAX};
    tale->events = arena_zalloc(arena, EVENTS_MAX, sizeof tale->events[0]);
    API(HistoryEvent) *event;
    API(WorkflowExecutionStartedEventAttributes) *started =
        add(tale, EVENT(WORKFLOW_EXECUTION_STARTED), &event);
    started->input = payload_of(tale, input);
    keep(tale, event);
    EXPECT(tale->folded.definition != NULL);
}

void
tale_begin(struct tale *tale, struct arena *arena, const API(CreateScheduleRequest) *request)
{
    tale_begin_with(tale, arena, schedule_first_input(request, arena), 1000 * NANOSECONDS);
}

void
tale_at(struct tale *tale, int64_t seconds)
{
    tale->now = seconds * NANOSECONDS;
}

void
tale_signal(struct tale *tale, const char *name, const ProtobufCMessage *request)
{
    API(HistoryEvent) *event;
    API(WorkflowExecutionSignaledEventAttributes) *signaled =
        add(tale, EVENT(WORKFLOW_EXECUTION_SIGNALED), &event);
    signaled->signal_name = (char *)name;
    if (request != NULL)
        signaled->input = payload_of(tale, message_encode(tale->arena, request));
    keep(tale, event);
}

static void
add_activity(struct tale *tale)
{
    API(HistoryEvent) *event;
    API(ActivityTaskScheduledEventAttributes) *scheduled =
        add(tale, EVENT(ACTIVITY_TASK_SCHEDULED), &event);
    scheduled->input = payload_of(tale, tale->plan.fire_task);
    keep(tale, event);
    EXPECT_OK(
        message_decode(tale->arena, STORED_TYPE(schedule_task), tale->plan.fire_task, &tale->task));
}

static void
ring(struct tale *tale)
{
    const STORED(ScheduleProgress) *progress = tale_progress(tale);
    API(HistoryEvent) *event;
    if (progress->timer_time == 0 || progress->timer_time > tale->now)
        return;
    API(TimerFiredEventAttributes) *fired = add(tale, EVENT(TIMER_FIRED), &event);
    fired->timer_id = schedule_timer_id(progress->timer_number, tale->arena);
    keep(tale, event);
}

void
tale_decide(struct tale *tale)
{
    ring(tale);
    struct schedule_now now = {
        .time = tale->now, .events = (int64_t)tale->count, .limits = tale->limits};
    API(HistoryEvent) *event;
    tale->plan = (struct schedule_plan){0};
    schedule_plan(&tale->folded, &now, &tale->plan);
    if (tale->plan.has_marker) {
        API(MarkerRecordedEventAttributes) *marker = add(tale, EVENT(MARKER_RECORDED), &event);
        marker->marker_name = SCHEDULE_MARKER;
        marker->details = payload_of(tale, tale->plan.marker);
        keep(tale, event);
    }
    if (tale->plan.fires)
        add_activity(tale);
}

static void
add_report(struct tale *tale, const STORED(ScheduleReport) *report)
{
    API(HistoryEvent) *event;
    API(ActivityTaskCompletedEventAttributes) *completed =
        add(tale, EVENT(ACTIVITY_TASK_COMPLETED), &event);
    completed->scheduled_event_id = tale_progress(tale)->firing_event_id;
    completed->result = payload_of(tale, message_encode(tale->arena, &report->base));
    keep(tale, event);
}

void
tale_fired_some(struct tale *tale, size_t count, STORED(ScheduleEnd) end)
{
    STORED(ScheduleReport) *report = message_new(tale->arena, STORED_TYPE(schedule_report));
    check(tale->task != NULL && count <= tale->task->n_fires);
    for (size_t i = 0; i < count; i++) {
        STORED(ScheduleOutcome) *outcome = message_new(tale->arena, STORED_TYPE(schedule_outcome));
        outcome->end = end;
        outcome->run = message_new(tale->arena, STORED_TYPE(schedule_run));
        outcome->run->run_id =
            end == END(STARTED)
                ? arena_format(tale->arena, "run-%lld", (long long)tale->task->fires[i]->nominal)
                : "";
        array_push(tale->arena, report->outcomes, report->n_outcomes, outcome);
    }
    add_report(tale, report);
}

void
tale_fired(struct tale *tale)
{
    tale_fired_some(tale, tale->task->n_fires, END(STARTED));
}

void
tale_closed(struct tale *tale, const char *run_id, API(WorkflowExecutionCloseStatus) status)
{
    STORED(ScheduleReport) *report = message_new(tale->arena, STORED_TYPE(schedule_report));
    STORED(ScheduleClosed) *closed = message_new(tale->arena, STORED_TYPE(schedule_closed));
    closed->run = message_new(tale->arena, STORED_TYPE(schedule_run));
    closed->run->run_id = (char *)run_id;
    closed->close_status = status;
    array_push(tale->arena, report->closed, report->n_closed, closed);
    add_report(tale, report);
}

void
tale_lost(struct tale *tale)
{
    API(HistoryEvent) *event;
    API(ActivityTaskTimedOutEventAttributes) *timed_out =
        add(tale, EVENT(ACTIVITY_TASK_TIMED_OUT), &event);
    timed_out->scheduled_event_id = tale_progress(tale)->firing_event_id;
    keep(tale, event);
}

const STORED(ScheduleProgress) *
tale_progress(const struct tale *tale)
{
    return tale->folded.progress;
}
