/* activity_calls.c - see activity_calls.h. */
#include "engine/command/test/activity_calls.h"

#include "wire/message.h"
#include "wire/presence.h"

/* ---- decisions ---- */

static GOOGLE(Duration) *
maybe_duration(struct fixture *fixture, int64_t seconds)
{
    return seconds == 0 ? NULL : fixture_duration(fixture, seconds);
}

API(ScheduleActivityTaskDecisionAttributes) *
activity_attributes(API(Decision) *decision)
{
    return decision->schedule_activity_task_decision_attributes;
}

API(Decision) *
activity_decision(struct fixture *fixture, const char *id, struct activity_timeouts timeouts)
{
    return API_DECISION(
        fixture->arena, schedule_activity_task, .activity_id = arena_text(fixture->arena, id),
        .activity_type = API_NEW(fixture->arena, activity_type, .name = "act"),
        .input = fixture_payload(fixture, "input"),
        .schedule_to_close_timeout = maybe_duration(fixture, timeouts.schedule_to_close),
        .schedule_to_start_timeout = maybe_duration(fixture, timeouts.schedule_to_start),
        .start_to_close_timeout = maybe_duration(fixture, timeouts.start_to_close),
        .heartbeat_timeout = maybe_duration(fixture, timeouts.heartbeat));
}

API(Decision) *
retried_activity_decision(struct fixture *fixture, const char *id, int32_t attempts,
                          int64_t expiration)
{
    API(Decision) *decision = activity_decision(
        fixture, id, (struct activity_timeouts){.schedule_to_close = 50, .heartbeat = 20});
    API(RetryPolicy) *policy =
        API_NEW(fixture->arena, retry_policy, .initial_interval = fixture_duration(fixture, 2),
                .backoff_coefficient = 2, .maximum_attempts = attempts,
                .expiration_interval = maybe_duration(fixture, expiration));
    activity_attributes(decision)->retry_policy = policy;
    return decision;
}

API(Decision) *
cancel_activity_decision(struct fixture *fixture, const char *id)
{
    return API_DECISION(fixture->arena, request_cancel_activity_task,
                        .activity_id = arena_text(fixture->arena, id));
}

API(Decision) *
cancel_timer_decision(struct fixture *fixture, const char *id)
{
    return API_DECISION(fixture->arena, cancel_timer, .timer_id = arena_text(fixture->arena, id));
}

/* ---- starts ---- */

struct start_context {
    struct task_name task;
    const char *request_id;
    struct activity_start *start;
};

static struct error *
decide_start(void *context, struct step *step)
{
    struct start_context *call = context;
    return command_start_activity(step, &call->task, call->request_id, "worker", call->start);
}

struct error *
calls_start_activity(struct fixture *fixture, const struct task_name *task, const char *request_id,
                     struct activity_start *start)
{
    struct start_context call = {.task = *task, .request_id = request_id, .start = start};
    return fixture_step(fixture, decide_start, &call);
}

struct task_name
calls_poll_activity(struct fixture *fixture)
{
    struct activity_start start;
    EXPECT(fixture_poll_activity(fixture, &start));
    return (struct task_name){.schedule_id = start.activity->schedule_id,
                              .attempt = start.activity->attempt,
                              .activity_id = ""};
}

struct task_name
calls_by_id(const char *activity_id)
{
    return (struct task_name){.schedule_id = EVENT_NONE, .activity_id = activity_id};
}

/* ---- ends ---- */

struct report_context {
    struct activity_report report;
    struct error *(*decide)(struct step *step, const struct activity_report *report);
    bool is_cancel_requested;
};

static struct error *
decide_report(void *context, struct step *step)
{
    struct report_context *call = context;
    if (call->decide == NULL)
        return command_heartbeat_activity(step, &call->report, &call->is_cancel_requested);
    return call->decide(step, &call->report);
}

static struct error *
report(struct fixture *fixture, struct task_name task,
       struct error *(*decide)(struct step *step, const struct activity_report *report),
       const char *payload)
{
    struct report_context call = {.report = {.task = task, .identity = "worker"}, .decide = decide};
    call.report.payload = fixture_payload(fixture, payload);
    return fixture_step(fixture, decide_report, &call);
}

struct error *
calls_complete(struct fixture *fixture, struct task_name task)
{
    return report(fixture, task, command_complete_activity, "result");
}

struct error *
calls_cancel(struct fixture *fixture, struct task_name task)
{
    return report(fixture, task, command_cancel_activity, "stopped");
}

struct error *
calls_fail(struct fixture *fixture, struct task_name task, const char *reason)
{
    struct report_context call = {.report = {.task = task, .identity = "worker"},
                                  .decide = command_fail_activity};
    API(Failure) *failure = API_NEW(
        fixture->arena, failure, .reason = (char *)reason,
        .details = presence_make_bytes(slice_text("details")),
        .options = API_NEW(fixture->arena, failure_options,
                           .failure_category = API_VALUE(FAILURE_CATEGORY__FAILURE_CATEGORY_FATAL),
                           .next_retry_interval = fixture_duration(fixture, 7)));
    call.report.failure = failure;
    return fixture_step(fixture, decide_report, &call);
}

struct error *
calls_heartbeat(struct fixture *fixture, struct task_name task, const char *details,
                bool *is_cancel_requested)
{
    struct report_context call = {.report = {.task = task, .identity = "worker"}};
    call.report.payload = fixture_payload(fixture, details);
    struct error *refusal = fixture_step(fixture, decide_report, &call);
    *is_cancel_requested = call.is_cancel_requested;
    return refusal;
}

/* ---- time ---- */

struct error *
calls_decide_wake(void *context, struct step *step)
{
    EXPECT(context == NULL);
    command_wake(step);
    return NULL;
}

void
calls_wake_late(struct fixture *fixture, int64_t nanoseconds)
{
    fixture->context.now += nanoseconds;
    EXPECT_OK(fixture_step(fixture, calls_decide_wake, NULL));
    int64_t next = run_next_deadline(fixture_run(fixture));
    EXPECT(next == 0 || next > fixture->context.now); /* all that was due is done */
}

/* ---- looking ---- */

const STORED(PendingActivity) *
calls_activity(const struct fixture *fixture, const char *id)
{
    return run_find_activity_id(fixture_run(fixture), id);
}

API(HistoryEvent) *
calls_last_event(const struct fixture *fixture)
{
    return fixture_event(fixture, fixture_run(fixture)->core->next_event_id - 1);
}

API(HistoryEvent) *
calls_find_event(const struct fixture *fixture, API(HistoryEvent__AttributesCase) kind)
{
    for (int64_t id = fixture_run(fixture)->core->next_event_id - 1; id > 0; id--) {
        if (fixture_event(fixture, id)->attributes_case == kind)
            return fixture_event(fixture, id);
    }
    TEST_FAIL("no event of kind %d", (int)kind);
}

void
calls_expect_refused(struct fixture *fixture, int cause, const char *text)
{
    const API(DecisionTaskFailedEventAttributes) *failed =
        calls_find_event(fixture, EVENT_KIND(DECISION_TASK_FAILED))
            ->decision_task_failed_event_attributes;
    EXPECT_EQ(failed->cause, cause);
    EXPECT_TEXT(arena_text_of(fixture->arena, presence_read_bytes(failed->failure->details)), text);
}
