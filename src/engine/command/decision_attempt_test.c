/* Attempts of decision tasks, their timeouts, and heartbeats. */
#include "base/check.h"
#include "engine/command/test/fixture.h"
#include "engine/run/apply.h"
#include "wire/message.h"
#include "wire/presence.h"

#define FIRST_TWO   "WorkflowExecutionStarted DecisionTaskScheduled"
#define FIRST_THREE FIRST_TWO " DecisionTaskStarted"
#define CAUSE(name) API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_##name)

/* A run whose first decision is started. */
/* The next attempt is polled and fails too. */
static void
fail_again(struct fixture *fixture)
{
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_fail_decision(fixture));
}

static API(RespondDecisionTaskCompletedRequest) *
relay_request(struct fixture *fixture)
{
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    request->return_new_decision_task = true;
    request->force_create_new_decision_task = true;
    return request;
}

/* ---- attempts ---- */

COMMAND_TEST_IN(decision_attempt, a_timed_out_first_attempt_is_written_and_followed_by_a_second,
                fixture_new_deciding(), "A-062")
{
    fixture_advance(fixture, 9);
    EXPECT_HISTORY(fixture, FIRST_THREE);
    fixture_advance(fixture, 1);
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskTimedOut");
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 1);
}

COMMAND_TEST_IN(decision_attempt, later_attempts_are_not_stored_but_shown_to_the_worker,
                fixture_new_deciding(), "A-063", "A-064")
{
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed");
    const API(DecisionTaskFailedEventAttributes) *failed =
        fixture_event(fixture, 4)->decision_task_failed_event_attributes;
    EXPECT_EQ(failed->cause, CAUSE(WORKFLOW_WORKER_UNHANDLED_FAILURE));
    EXPECT_TEXT(failed->identity, "worker");
    EXPECT(slice_equal(presence_read_bytes(failed->failure->details), slice_text("broken")));
    for (int attempt = 1; attempt < 6; attempt++) {
        EXPECT(fixture_poll_decision(fixture));
        const struct decision_start *start = &fixture->decision;
        EXPECT_EQ(start->attempt, attempt);
        EXPECT_EQ(start->schedule_id, 5);
        EXPECT_EQ(start->started_id, 6);
        EXPECT_EQ(start->next_event_id, 5);
        EXPECT_EQ(start->transient_scheduled->event_id, 5);
        EXPECT_EQ(start->transient_started->event_id, 6);
        EXPECT_EQ(start->transient_scheduled->decision_task_scheduled_event_attributes->attempt,
                  attempt);
        EXPECT_EQ(
            start->transient_started->decision_task_started_event_attributes->scheduled_event_id,
            5);
        EXPECT_OK(fixture_fail_decision(fixture));
        fixture_advance(fixture, 5); /* they pause: decision_pause_test.c */
        EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed");
    }
}

/* All attempts have the ids 5 and 6: only the number of the attempt tells them apart. */
COMMAND_TEST_IN(decision_attempt, what_belongs_to_an_earlier_attempt_is_stale,
                fixture_new_deciding(), "A-060")
{
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT(fixture_poll_decision(fixture));
    struct task_name first = fixture_decision_name(fixture);
    EXPECT_KIND(fixture_start_decision(fixture, &first, "x"), ERR_EVENT_ALREADY_STARTED);
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT_KIND(fixture_start_decision(fixture, &first, "x"), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(fixture_fail_decision(fixture), ERR_ENTITY_NOT_EXISTS);
    struct decision_start stale = fixture->decision;
    stale.attempt = 2; /* scheduled, not started yet */
    fixture->decision = stale;
    EXPECT_KIND(fixture_complete(fixture), ERR_ENTITY_NOT_EXISTS);
    EXPECT(fixture_poll_decision(fixture));
    struct decision_start second = fixture->decision;
    EXPECT_EQ(second.schedule_id, first.schedule_id);
    fixture->decision.attempt = first.attempt;
    EXPECT_KIND(fixture_complete(fixture), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(fixture_fail_decision(fixture), ERR_ENTITY_NOT_EXISTS);
    fixture->decision = second;
    EXPECT_OK(fixture_complete(fixture));
}

COMMAND_TEST_IN(decision_attempt, an_attempt_that_completes_is_stored_with_the_times_its_worker_saw,
                fixture_new_deciding(), "A-241")
{
    EXPECT_OK(fixture_fail_decision(fixture));
    int64_t scheduled = fixture->context.now;
    fixture_advance(fixture, 2);
    EXPECT(fixture_poll_decision(fixture));
    int64_t started = fixture->context.now;
    fixture_advance(fixture, 3);
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed DecisionTaskScheduled "
                                        "DecisionTaskStarted DecisionTaskCompleted "
                                        "WorkflowExecutionCompleted");
    EXPECT_EQ(fixture_event_time(fixture_event(fixture, 5)), scheduled);
    EXPECT_EQ(fixture_event_time(fixture_event(fixture, 6)), started);
    EXPECT_EQ(fixture_event_time(fixture_event(fixture, 7)), fixture->context.now);
    EXPECT_EQ(fixture_event(fixture, 5)->decision_task_scheduled_event_attributes->attempt, 1);
    EXPECT_EQ(fixture_event_time(fixture->decision.transient_scheduled), scheduled);
    EXPECT_EQ(fixture_event_time(fixture->decision.transient_started), started);
}

/* The clock of the machine may jump; histories may not. */
COMMAND_TEST_IN(decision_attempt, times_of_events_never_go_back_even_if_the_clock_does,
                fixture_new_deciding(), "A-240")
{
    int64_t last = fixture->context.now;
    fixture->context.now -= 50 * FIXTURE_SECOND;
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.scheduled_time, last);
    EXPECT_EQ(fixture->decision.started_time, last);
    EXPECT_OK(fixture_signal(fixture, "buffered", ""));
    EXPECT_OK(fixture_complete(fixture, fixture_marker(fixture, "m")));
    for (int64_t id = 1; id < fixture_run(fixture)->core->next_event_id; id++)
        EXPECT_EQ(fixture_event_time(fixture_event(fixture, id)), last);
}

COMMAND_TEST_IN(decision_attempt, news_before_a_later_attempt_starts_makes_it_a_first_one_again,
                fixture_new_deciding(), "A-065")
{
    EXPECT_OK(fixture_fail_decision(fixture));
    for (int i = 0; i < 2; i++)
        fail_again(fixture);
    EXPECT_OK(fixture_signal(fixture, "news", ""));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed WorkflowExecutionSignaled");
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 0);
    EXPECT_EQ(fixture->decision.schedule_id, 6);
    EXPECT_EQ(fixture->decision.started_id, 7);
    EXPECT(fixture->decision.transient_scheduled == NULL);
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed WorkflowExecutionSignaled "
                                        "DecisionTaskScheduled DecisionTaskStarted");
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
}

/* Attempts that are not in the history are not replicated: after a failover they must be. */
COMMAND_TEST_IN(decision_attempt, under_a_new_failover_version_an_attempt_is_in_the_history,
                fixture_new_deciding())
{
    EXPECT_OK(fixture_fail_decision(fixture));
    fixture->context.event_version = 11;
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 0);
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed DecisionTaskScheduled "
                                        "DecisionTaskStarted");
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 1);
    fixture->context.event_version = 21;
    EXPECT_OK(fixture_fail_decision(fixture)); /* scheduled again, by the new version */
    EXPECT_EQ(fixture_run(fixture)->core->decision->attempt, 0);
    EXPECT_EQ(fixture_event(fixture, 8)->version, 21);
}

COMMAND_TEST_IN(decision_attempt, a_repeated_start_of_one_that_got_another_id_is_the_same_start,
                fixture_new_deciding(), "A-065")
{
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT_OK(fixture_signal(fixture, "news", ""));
    struct task_name task = {.schedule_id = 5, .attempt = 1, .activity_id = ""};
    EXPECT_OK(fixture_start_decision(fixture, &task, "poll"));
    EXPECT_OK(fixture_start_decision(fixture, &task, "poll"));
    EXPECT_EQ(fixture->decision.schedule_id, 6);
    EXPECT_KIND(fixture_start_decision(fixture, &task, "other"), ERR_ENTITY_NOT_EXISTS);
}

COMMAND_TEST_IN(decision_attempt, when_buffered_events_are_flushed_the_next_one_is_a_first_attempt,
                fixture_new_deciding(), "A-066")
{
    EXPECT_OK(fixture_signal(fixture, "buffered", ""));
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed WorkflowExecutionSignaled "
                                        "DecisionTaskScheduled");
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 0);
    EXPECT_OK(fixture_signal(fixture, "again", ""));
    EXPECT_OK(fixture_complete(fixture, fixture_continue_as_new(fixture))); /* unhandled */
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 0);
}

TEST(decision_attempt, the_timeout_of_later_attempts_grows_to_five_minutes, "A-067")
{
    static const int64_t wanted[] = {10, 10, 60, 120, 240, 300, 300};
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->execution_start_to_close_timeout = fixture_duration(fixture, 100000);
    EXPECT_OK(fixture_start(fixture, request));
    for (size_t attempt = 0; attempt < array_length(wanted); attempt++) {
        EXPECT(fixture_poll_decision(fixture));
        EXPECT_EQ(fixture->decision.attempt, (int64_t)attempt);
        int64_t timeout = fixture_run(fixture)->core->decision->timeout;
        EXPECT(timeout <= wanted[attempt]);
        EXPECT(timeout >= (attempt < 2 ? wanted[attempt] : wanted[attempt] * 4 / 5));
        fixture_advance(fixture, timeout - 1);
        EXPECT(run_has_started_decision(fixture_run(fixture)));
        fixture_advance(fixture, 1);
        EXPECT(!run_has_started_decision(fixture_run(fixture)));
    }
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskTimedOut");
}

TEST(decision_attempt, too_many_attempts_terminate_the_run_if_that_is_enforced, "A-068")
{
    for (int is_enforced = 0; is_enforced < 2; is_enforced++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        fixture_configure(fixture, is_enforced
                                       ? "history.enforceDecisionTaskAttempts: [{value: "
                                         "true}]\n"
                                         "history.decisionRetryMaxAttempts: [{value: 2}]\n"
                                       : "history.decisionRetryMaxAttempts: [{value: 2}]\n");
        API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
        request->execution_start_to_close_timeout = fixture_duration(fixture, 100000);
        EXPECT_OK(fixture_start(fixture, request));
        for (int attempt = 0; attempt <= 2; attempt++) {
            EXPECT(run_is_open(fixture_run(fixture)));
            EXPECT(fixture_poll_decision(fixture));
            fixture_advance(fixture, 60);
        }
        EXPECT_EQ(run_is_open(fixture_run(fixture)), !is_enforced);
        if (!is_enforced)
            continue;
        EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskTimedOut WorkflowExecutionTerminated");
        const API(WorkflowExecutionTerminatedEventAttributes) *terminated =
            fixture_event(fixture, 5)->workflow_execution_terminated_event_attributes;
        EXPECT_TEXT(terminated->reason, "DECISION_ATTEMPTS_EXCEEDS_LIMIT");
        EXPECT_TEXT(terminated->identity, "history-service");
    }
}

COMMAND_TEST(decision_attempt, too_many_bad_lists_terminate_the_run_in_any_case)
{
    fixture_configure(fixture, "history.decisionRetryMaxAttempts: [{value: 2}]\n");
    fixture_begin(fixture);
    for (int attempt = 0; attempt <= 2; attempt++) {
        EXPECT(fixture_poll_decision(fixture));
        EXPECT_OK(fixture_complete(fixture, fixture_marker(fixture, "")));
    }
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed WorkflowExecutionTerminated");
}

/* What was taken while the last attempt ran is in the history although no decision follows. */
COMMAND_TEST(decision_attempt, a_signal_behind_the_last_attempt_is_not_lost, "A-068")
{
    fixture_configure(fixture, "history.enforceDecisionTaskAttempts: [{value: true}]\n"
                               "history.decisionRetryMaxAttempts: [{value: 1}]\n");
    fixture_begin(fixture);
    for (int attempt = 0; attempt < 2; attempt++) {
        EXPECT(fixture_poll_decision(fixture));
        if (attempt == 1)
            EXPECT_OK(fixture_signal(fixture, "late", ""));
        fixture_advance(fixture, 10);
    }
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskTimedOut WorkflowExecutionSignaled "
                                        "WorkflowExecutionTerminated");
}

/* A worker may name any cause, also those that are ours. */
TEST(decision_attempt, whatever_cause_a_worker_names_the_run_goes_on)
{
    for (int cause = 0; cause <= CAUSE(BAD_SEARCH_ATTRIBUTES) + 1; cause++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new_deciding();
        for (int i = 0; i < 3; i++) {
            EXPECT_OK(fixture_fail_decision_with(fixture, cause));
            EXPECT(fixture_poll_decision(fixture));
        }
    }
}

/* ---- heartbeats ---- */

COMMAND_TEST(decision_attempt, heartbeats_keep_a_decision_until_their_time_is_over, "A-069")
{
    fixture_configure(fixture, "history.decisionHeartbeatTimeout: [{value: 5s}]\n");
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    API(RespondDecisionTaskCompletedRequest) *heartbeat = relay_request(fixture);
    heartbeat->sticky_attributes =
        API_NEW(fixture->arena, sticky_execution_attributes,
                .worker_task_list = API_NEW(fixture->arena, task_list, .name = "sticky"),
                .schedule_to_start_timeout = fixture_duration(fixture, 5));
    for (int i = 0; i < 5; i++) {
        fixture_advance(fixture, 1);
        EXPECT_OK(fixture_respond(fixture, heartbeat));
        EXPECT(fixture->completed.has_started_decision);
    }
    fixture_advance(fixture, 1);
    struct error *refusal = fixture_respond(fixture, heartbeat);
    EXPECT_KIND(refusal, ERR_ENTITY_NOT_EXISTS);
    EXPECT_TEXT(refusal->message, "decision heartbeat timeout");
    EXPECT(!fixture->completed.has_started_decision);
    const STORED(RunRecord) *core = fixture_run(fixture)->core;
    EXPECT_TEXT(event_name(fixture_event(fixture, core->next_event_id - 1)->attributes_case),
                "DecisionTaskTimedOut");
    EXPECT(core->sticky_task_list == NULL);
    EXPECT_TEXT(core->decision->task_list->name, "list");
    EXPECT_EQ(core->decision->attempt, 1);
}

COMMAND_TEST(decision_attempt, heartbeats_with_markers_never_time_out, "A-070")
{
    fixture_configure(fixture, "history.decisionHeartbeatTimeout: [{value: 5s}]\n");
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    API(RespondDecisionTaskCompletedRequest) *heartbeat = relay_request(fixture);
    API(Decision) *decisions[] = {fixture_marker(fixture, "m")};
    heartbeat->decisions = decisions;
    heartbeat->n_decisions = 1;
    const char *wanted = FIRST_THREE;
    for (int i = 0; i < 4; i++) {
        fixture_advance(fixture, 4);
        EXPECT_OK(fixture_respond(fixture, heartbeat));
        wanted = arena_format(fixture->arena, "%s%s", wanted,
                              " DecisionTaskCompleted MarkerRecorded DecisionTaskScheduled "
                              "DecisionTaskStarted");
    }
    EXPECT_HISTORY(fixture, wanted);
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
}
