/* Runs that are tried again by their retry policy. */
#include "engine/command/test/fixture.h"
#include "wire/message.h"
#include "wire/presence.h"

#define RETRIED API_VALUE(CONTINUE_AS_NEW_INITIATOR__CONTINUE_AS_NEW_INITIATOR_RETRY_POLICY)
#define CRON    API_VALUE(CONTINUE_AS_NEW_INITIATOR__CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE)
#define SECOND  FIXTURE_SECOND

/* 1 s, 2 s, 4 s, ...: at most 10 s apart. */
static API(StartWorkflowExecutionRequest) *
retry_request(struct fixture *fixture, int32_t attempts, int64_t expiration)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    API(RetryPolicy) *policy = API_NEW(
        fixture->arena, retry_policy, .initial_interval = fixture_duration(fixture, 1),
        .maximum_interval = fixture_duration(fixture, 10),
        .expiration_interval = fixture_duration(fixture, expiration), .backoff_coefficient = 2,
        .maximum_attempts = attempts, .n_non_retryable_error_reasons = 1,
        .non_retryable_error_reasons = arena_zalloc(fixture->arena, 1, sizeof(char *)));
    policy->non_retryable_error_reasons[0] = "final";
    request->retry_policy = policy;
    request->input = fixture_payload(fixture, "input");
    return request;
}

static void
decide(struct fixture *fixture, API(Decision) *decision)
{
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, decision));
}

static const API(WorkflowExecutionStartedEventAttributes) *
first_event(struct fixture *fixture)
{
    return fixture_event(fixture, 1)->workflow_execution_started_event_attributes;
}

static int64_t
wait_of(struct fixture *fixture)
{
    return (fixture_run(fixture)->core->execution_time - fixture->context.now) / SECOND;
}

COMMAND_TEST(run_retry, a_failed_run_is_tried_again_until_it_completes, "A-190", "A-191", "A-195")
{
    EXPECT_OK(fixture_start(fixture, retry_request(fixture, 10, 0)));
    const int64_t waits[] = {1, 2, 4, 8, 10, 10};
    for (int i = 0; i < 6; i++) {
        decide(fixture, fixture_fail_run(fixture, "broken"));
        const API(WorkflowExecutionStartedEventAttributes) *first = first_event(fixture);
        EXPECT_EQ(first->initiator, RETRIED);
        EXPECT_EQ(first->attempt, i + 1);
        EXPECT_TEXT(first->continued_failure->reason, "broken");
        EXPECT_TEXT(fixture_payload_text(fixture, first->input), "input");
        EXPECT_TEXT(first->first_execution_run_id, fixture_run_at(fixture, 0)->core->run_id);
        EXPECT_EQ(wait_of(fixture), waits[i]);
        EXPECT(!fixture_poll_decision(fixture));
        fixture_advance(fixture, waits[i]);
    }
    decide(fixture, fixture_complete_run(fixture));
    EXPECT_EQ(fixture->run_count, 7);
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted WorkflowExecutionCompleted");
}

COMMAND_TEST(run_retry, attempts_are_counted_with_the_first_one, "A-192")
{
    EXPECT_OK(fixture_start(fixture, retry_request(fixture, 3, 0)));
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(fixture->run_count, (size_t)i + 1);
        fixture_advance(fixture, 10);
        decide(fixture, fixture_fail_run(fixture, "broken"));
    }
    EXPECT_EQ(fixture->run_count, 3);
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted WorkflowExecutionFailed");
}

COMMAND_TEST(run_retry, a_final_reason_is_not_tried_again, "A-192")
{
    EXPECT_OK(fixture_start(fixture, retry_request(fixture, 3, 0)));
    decide(fixture, fixture_fail_run(fixture, "final"));
    EXPECT_EQ(fixture->run_count, 1);
    EXPECT(!run_is_open(fixture_run(fixture)));
}

/* The first attempt has its whole time; the next ones end where the policy ends. */
COMMAND_TEST(run_retry, a_run_that_times_out_is_tried_again_until_the_policy_expires, "A-193")
{
    API(StartWorkflowExecutionRequest) *request = retry_request(fixture, 0, 30);
    request->execution_start_to_close_timeout = fixture_duration(fixture, 20);
    EXPECT_OK(fixture_start(fixture, request));
    int64_t begin = fixture->context.now, expiration = begin + 30 * SECOND;
    EXPECT_EQ(fixture_run(fixture)->core->timeout_time, begin + 20 * SECOND);
    fixture_advance(fixture, 20);
    EXPECT_EQ(fixture->run_count, 2);
    EXPECT_TEXT(first_event(fixture)->continued_failure->reason,
                "cadenceInternal:Timeout START_TO_CLOSE");
    EXPECT_EQ(fixture_run(fixture)->core->expiration_time, expiration);
    EXPECT_EQ(fixture_run(fixture)->core->timeout_time, expiration);
    fixture_advance(fixture, 10);
    EXPECT_EQ(fixture->run_count, 2);
    EXPECT_HISTORY(fixture,
                   "WorkflowExecutionStarted DecisionTaskScheduled WorkflowExecutionTimedOut");
}

COMMAND_TEST(run_retry, the_first_attempt_may_outlast_the_policy, "A-193")
{
    EXPECT_OK(fixture_start(fixture, retry_request(fixture, 0, 30)));
    EXPECT_EQ(fixture_run(fixture)->core->timeout_time - fixture->context.now, 100 * SECOND);
    fixture_advance(fixture, 100);
    EXPECT_EQ(fixture->run_count, 1);
    EXPECT(!run_is_open(fixture_run(fixture)));
}

COMMAND_TEST(run_retry, a_cancelled_run_is_not_tried_again, "A-190")
{
    EXPECT_OK(fixture_start(fixture, retry_request(fixture, 3, 0)));
    EXPECT_OK(fixture_request_cancel(fixture, "please"));
    decide(fixture, fixture_fail_run(fixture, "broken"));
    EXPECT_EQ(fixture->run_count, 1);
}

COMMAND_TEST(run_retry, retries_go_before_the_schedule, "A-194")
{
    API(StartWorkflowExecutionRequest) *request = retry_request(fixture, 2, 0);
    request->cron_schedule = "@every 60s";
    EXPECT_OK(fixture_start(fixture, request));
    fixture_advance(fixture, 60);
    decide(fixture, fixture_fail_run(fixture, "broken"));
    EXPECT_EQ(first_event(fixture)->initiator, RETRIED);
    EXPECT_EQ(wait_of(fixture), 1);
    fixture_advance(fixture, 1);
    decide(fixture, fixture_fail_run(fixture, "broken"));
    EXPECT_EQ(first_event(fixture)->initiator, CRON);
    EXPECT_EQ(first_event(fixture)->attempt, 0);
    EXPECT_EQ(wait_of(fixture), 60);
    fixture_advance(fixture, 60);
    decide(fixture, fixture_complete_run(fixture)); /* a success is followed by the schedule only */
    EXPECT_EQ(first_event(fixture)->initiator, CRON);
}

COMMAND_TEST(run_retry, what_a_run_was_started_with_survives_compacting)
{
    EXPECT_OK(fixture_start(fixture, retry_request(fixture, 3, 0)));
    EXPECT(fixture_poll_decision(fixture));
    const void *before = fixture_run(fixture)->birth;
    char *garbage = arena_alloc(fixture_run(fixture)->arena, 200 * 1024);
    garbage[0] = 1;
    run_compact(fixture_run(fixture));
    EXPECT(fixture_run(fixture)->birth != before);
    EXPECT_OK(fixture_complete(fixture, fixture_fail_run(fixture, "broken")));
    EXPECT_TEXT(fixture_payload_text(fixture, first_event(fixture)->input), "input");
}
