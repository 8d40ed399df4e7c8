/* schedule_fixture.c - see schedule_fixture.h. */
#include "schedule/test/schedule_fixture.h"

#define EVENTS_MAX 4000

API(CreateScheduleRequest) *
schedule_fixture_request(struct arena *arena, const char *cron)
{
    return API_NEW(arena, create_schedule_request, .schedule_id = "plan",
                   .spec = API_NEW(arena, schedule_spec, .cron_expression = (char *)cron),
                   .action = API_NEW(arena, schedule_action,
                                     .start_workflow = message_new(
                                         arena, API_TYPE(schedule_action__start_workflow_action))),
                   .policies = API_NEW(arena, schedule_policies));
}

/* All of it again, from the bytes. */
static void
refold(struct schedule_fixture *schedule_fixture)
{
    schedule_fixture->folded = (struct schedule){0};
    for (size_t i = 0; i < schedule_fixture->count; i++) {
        scoped(arena_drop) struct arena *scratch = arena_new(0);
        API(HistoryEvent) *event = NULL;
        EXPECT_OK(
            message_decode(scratch, API_TYPE(history_event), schedule_fixture->events[i], &event));
        schedule_fold(&schedule_fixture->folded, event, schedule_fixture->arena);
    }
}

static void *
add(struct schedule_fixture *schedule_fixture, API(HistoryEvent__AttributesCase) kind,
    API(HistoryEvent) **event)
{
    const ProtobufCFieldDescriptor *field =
        message_find_field(API_TYPE(history_event), (uint32_t)kind);
    *event = API_NEW(schedule_fixture->arena, history_event);
    void *attributes = message_new(schedule_fixture->arena, field->descriptor);
    memcpy((char *)*event + field->offset, &attributes, sizeof attributes);
    (*event)->attributes_case = kind;
    (*event)->event_id = (int64_t)schedule_fixture->count + 1;
    (*event)->event_time = presence_make_timestamp(schedule_fixture->arena, schedule_fixture->now);
    return attributes;
}

static void
keep(struct schedule_fixture *schedule_fixture, const API(HistoryEvent) *event)
{
    check(schedule_fixture->count < EVENTS_MAX);
    schedule_fixture->events[schedule_fixture->count++] =
        message_encode(schedule_fixture->arena, &event->base);
    refold(schedule_fixture);
}

static API(Payload) *
payload_of(struct schedule_fixture *schedule_fixture, struct slice bytes)
{
    return presence_make_payload(schedule_fixture->arena,
                                 (struct maybe_bytes){.is_set = true, .bytes = bytes});
}

void
schedule_fixture_begin_with(struct schedule_fixture *schedule_fixture, struct arena *arena,
                            struct slice input, int64_t now)
{
    *schedule_fixture = (struct schedule_fixture){.arena = arena, .now = now};
    schedule_fixture->limits = (struct schedule_limits){INT64_MAX, INT64_MAX, INT64_MAX};
    schedule_fixture->events = arena_zalloc(arena, EVENTS_MAX, sizeof schedule_fixture->events[0]);
    API(HistoryEvent) *event;
    API(WorkflowExecutionStartedEventAttributes) *started =
        add(schedule_fixture, EVENT(WORKFLOW_EXECUTION_STARTED), &event);
    started->input = payload_of(schedule_fixture, input);
    keep(schedule_fixture, event);
    EXPECT(schedule_fixture->folded.definition != NULL);
}

void
schedule_fixture_begin(struct schedule_fixture *schedule_fixture, struct arena *arena,
                       const API(CreateScheduleRequest) *request)
{
    schedule_fixture_begin_with(schedule_fixture, arena, schedule_first_input(request, arena),
                                1000 * NANOSECONDS);
}

void
schedule_fixture_at(struct schedule_fixture *schedule_fixture, int64_t seconds)
{
    schedule_fixture->now = seconds * NANOSECONDS;
}

void
schedule_fixture_signal(struct schedule_fixture *schedule_fixture, const char *name,
                        const ProtobufCMessage *request)
{
    API(HistoryEvent) *event;
    API(WorkflowExecutionSignaledEventAttributes) *signaled =
        add(schedule_fixture, EVENT(WORKFLOW_EXECUTION_SIGNALED), &event);
    signaled->signal_name = (char *)name;
    if (request != NULL)
        signaled->input =
            payload_of(schedule_fixture, message_encode(schedule_fixture->arena, request));
    keep(schedule_fixture, event);
}

static void
add_activity(struct schedule_fixture *schedule_fixture)
{
    API(HistoryEvent) *event;
    API(ActivityTaskScheduledEventAttributes) *scheduled =
        add(schedule_fixture, EVENT(ACTIVITY_TASK_SCHEDULED), &event);
    scheduled->input = payload_of(schedule_fixture, schedule_fixture->plan.fire_task);
    keep(schedule_fixture, event);
    EXPECT_OK(message_decode(schedule_fixture->arena, STORED_TYPE(schedule_task),
                             schedule_fixture->plan.fire_task, &schedule_fixture->task));
}

static void
fire_timer(struct schedule_fixture *schedule_fixture)
{
    const STORED(ScheduleProgress) *progress = schedule_fixture_progress(schedule_fixture);
    API(HistoryEvent) *event;
    if (progress->timer_time == 0 || progress->timer_time > schedule_fixture->now)
        return;
    API(TimerFiredEventAttributes) *fired = add(schedule_fixture, EVENT(TIMER_FIRED), &event);
    fired->timer_id = schedule_timer_id(progress->timer_number, schedule_fixture->arena);
    keep(schedule_fixture, event);
}

void
schedule_fixture_decide(struct schedule_fixture *schedule_fixture)
{
    fire_timer(schedule_fixture);
    struct schedule_now now = {.time = schedule_fixture->now,
                               .events = (int64_t)schedule_fixture->count,
                               .limits = schedule_fixture->limits};
    API(HistoryEvent) *event;
    schedule_fixture->plan = (struct schedule_plan){0};
    schedule_plan(&schedule_fixture->folded, &now, &schedule_fixture->plan);
    if (schedule_fixture->plan.has_marker) {
        API(MarkerRecordedEventAttributes) *marker =
            add(schedule_fixture, EVENT(MARKER_RECORDED), &event);
        marker->marker_name = SCHEDULE_MARKER;
        marker->details = payload_of(schedule_fixture, schedule_fixture->plan.marker);
        keep(schedule_fixture, event);
    }
    if (schedule_fixture->plan.fires)
        add_activity(schedule_fixture);
}

static void
add_report(struct schedule_fixture *schedule_fixture, const STORED(ScheduleReport) *report)
{
    API(HistoryEvent) *event;
    API(ActivityTaskCompletedEventAttributes) *completed =
        add(schedule_fixture, EVENT(ACTIVITY_TASK_COMPLETED), &event);
    completed->scheduled_event_id = schedule_fixture_progress(schedule_fixture)->firing_event_id;
    completed->result =
        payload_of(schedule_fixture, message_encode(schedule_fixture->arena, &report->base));
    keep(schedule_fixture, event);
}

void
schedule_fixture_fired_some(struct schedule_fixture *schedule_fixture, size_t count,
                            STORED(ScheduleEnd) end)
{
    STORED(ScheduleReport) *report = STORED_NEW(schedule_fixture->arena, schedule_report);
    check(schedule_fixture->task != NULL && count <= schedule_fixture->task->n_fires);
    for (size_t i = 0; i < count; i++) {
        STORED(ScheduleOutcome) *outcome = STORED_NEW(
            schedule_fixture->arena, schedule_outcome, .end = end,
            .run = STORED_NEW(
                schedule_fixture->arena, schedule_run,
                .run_id = end == END(STARTED)
                              ? arena_format(schedule_fixture->arena, "run-%lld",
                                             (long long)schedule_fixture->task->fires[i]->nominal)
                              : ""));
        array_push(schedule_fixture->arena, report->outcomes, report->n_outcomes, outcome);
    }
    add_report(schedule_fixture, report);
}

void
schedule_fixture_fired(struct schedule_fixture *schedule_fixture)
{
    schedule_fixture_fired_some(schedule_fixture, schedule_fixture->task->n_fires, END(STARTED));
}

void
schedule_fixture_closed(struct schedule_fixture *schedule_fixture, const char *run_id,
                        API(WorkflowExecutionCloseStatus) status)
{
    STORED(ScheduleReport) *report = STORED_NEW(schedule_fixture->arena, schedule_report);
    STORED(ScheduleClosed) *closed = STORED_NEW(
        schedule_fixture->arena, schedule_closed,
        .run = STORED_NEW(schedule_fixture->arena, schedule_run, .run_id = (char *)run_id),
        .close_status = status);
    array_push(schedule_fixture->arena, report->closed, report->n_closed, closed);
    add_report(schedule_fixture, report);
}

void
schedule_fixture_lost(struct schedule_fixture *schedule_fixture)
{
    API(HistoryEvent) *event;
    API(ActivityTaskTimedOutEventAttributes) *timed_out =
        add(schedule_fixture, EVENT(ACTIVITY_TASK_TIMED_OUT), &event);
    timed_out->scheduled_event_id = schedule_fixture_progress(schedule_fixture)->firing_event_id;
    keep(schedule_fixture, event);
}

const STORED(ScheduleProgress) *
schedule_fixture_progress(const struct schedule_fixture *schedule_fixture)
{
    return schedule_fixture->folded.progress;
}
