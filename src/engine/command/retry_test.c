/* Retry policies: what is refused, and when the next attempt comes. */
#include "engine/command/retry.h"

#include <string.h>

#include "base/test.h"

#define SECOND 1000000000LL

static GOOGLE(Duration)
seconds_of(int64_t seconds)
{
    GOOGLE(Duration) duration = GOOGLE__PROTOBUF__DURATION__INIT;
    duration.seconds = seconds;
    return duration;
}

/* Durations of a policy, so that a test can write them in a line. */
struct policy {
    GOOGLE(Duration) initial, maximum, expiration;
    API(RetryPolicy) policy;
};

static void
make_policy(struct policy *made, int64_t initial, double coefficient, int64_t maximum,
            int32_t attempts, int64_t expiration)
{
    made->initial = seconds_of(initial);
    made->maximum = seconds_of(maximum);
    made->expiration = seconds_of(expiration);
    made->policy = (API(RetryPolicy))UBER__CADENCE__API__V1__RETRY_POLICY__INIT;
    made->policy.initial_interval = &made->initial;
    made->policy.maximum_interval = &made->maximum;
    made->policy.expiration_interval = &made->expiration;
    made->policy.backoff_coefficient = coefficient;
    made->policy.maximum_attempts = attempts;
}

static int64_t
backoff(const struct policy *made, int32_t attempt, const char *reason)
{
    struct retry_state state = {.now = 1000 * SECOND, .attempt = attempt, .reason = reason};
    if (made->expiration.seconds != 0)
        state.expiration_time = (1000 + made->expiration.seconds) * SECOND;
    return retry_backoff(&made->policy, &state);
}

TEST(retry, no_policy_is_a_good_policy)
{
    EXPECT(retry_policy_fault(NULL) == NULL);
}

TEST(retry, each_breach_of_the_rules_has_its_own_text, "A-039")
{
    static const struct {
        int64_t initial;
        double coefficient;
        int64_t maximum;
        int32_t attempts;
        int64_t expiration;
        const char *text;
    } cases[] = {
        {0, 1, 0, 1, 0, "InitialIntervalInSeconds must be greater than 0 on retry policy."},
        {1, 0.9, 0, 1, 0, "BackoffCoefficient cannot be less than 1 on retry policy."},
        {1, 1, -1, 1, 0, "MaximumIntervalInSeconds cannot be less than 0 on retry policy."},
        {5, 1, 4, 1, 0,
         "MaximumIntervalInSeconds cannot be less than InitialIntervalInSeconds on retry policy."},
        {1, 1, 0, -1, 0, "MaximumAttempts cannot be less than 0 on retry policy."},
        {1, 1, 0, 1, -1, "ExpirationIntervalInSeconds cannot be less than 0 on retry policy."},
        {1, 1, 0, 0, 0,
         "MaximumAttempts and ExpirationIntervalInSeconds are both 0. At least one of them must be "
         "specified."},
    };
    struct policy made;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_policy(&made, cases[i].initial, cases[i].coefficient, cases[i].maximum,
                    cases[i].attempts, cases[i].expiration);
        EXPECT_TEXT(retry_policy_fault(&made.policy), cases[i].text);
    }
    make_policy(&made, 1, 1, 1, 0, 1);
    EXPECT(retry_policy_fault(&made.policy) == NULL);
    made.policy.backoff_coefficient = __builtin_nan("");
    EXPECT(retry_policy_fault(&made.policy) != NULL);
}

TEST(retry, the_back_off_grows_as_a_power_in_whole_seconds_up_to_the_maximum, "A-109")
{
    struct policy made;
    make_policy(&made, 2, 1.5, 10, 100, 0);
    static const int64_t wanted[] = {2, 3, 4, 6, 10, 10, 10};
    for (int32_t attempt = 0; attempt < 7; attempt++)
        EXPECT_EQ(backoff(&made, attempt, "why"), wanted[attempt]);
    make_policy(&made, 7, 1, 0, 1000000, 0);
    EXPECT_EQ(backoff(&made, 900000, "why"), 7);
}

TEST(retry, an_interval_out_of_reach_is_the_maximum_or_no_retry)
{
    struct policy made;
    make_policy(&made, 1, 10, 60, 1000, 0);
    EXPECT_EQ(backoff(&made, 400, "why"), 60);
    make_policy(&made, 1, 10, 0, 1000, 0);
    EXPECT_EQ(backoff(&made, 400, "why"), 0);
    EXPECT_EQ(backoff(&made, 4, "why"), 10000);
}

TEST(retry, the_most_attempts_count_the_first_one, "A-109")
{
    struct policy made;
    make_policy(&made, 1, 1, 0, 3, 0);
    EXPECT_EQ(backoff(&made, 0, "why"), 1);
    EXPECT_EQ(backoff(&made, 1, "why"), 1);
    EXPECT_EQ(backoff(&made, 2, "why"), 0);
    make_policy(&made, 1, 1, 0, 1, 0);
    EXPECT_EQ(backoff(&made, 0, "why"), 0);
}

TEST(retry, no_attempt_begins_after_the_expiration, "A-109")
{
    struct policy made;
    make_policy(&made, 4, 2, 0, 0, 8);
    EXPECT_EQ(backoff(&made, 0, "why"), 4);
    EXPECT_EQ(backoff(&made, 1, "why"), 8); /* just in time */
    EXPECT_EQ(backoff(&made, 2, "why"), 0);
}

TEST(retry, final_reasons_and_sizes_that_do_not_shrink_are_not_retried, "A-109", "A-110", "A-111")
{
    struct policy made;
    make_policy(&made, 1, 1, 0, 9, 0);
    char *final[] = {(char *)"boom", (char *)"cadenceInternal:Timeout HEARTBEAT"};
    made.policy.non_retryable_error_reasons = final;
    made.policy.n_non_retryable_error_reasons = 2;
    EXPECT_EQ(backoff(&made, 0, "boom"), 0);
    EXPECT_EQ(backoff(&made, 0, "boo"), 1);
    EXPECT_EQ(backoff(&made, 0, "COMPLETE_RESULT_EXCEEDS_LIMIT"), 0);
    EXPECT_EQ(backoff(&made, 0, "CANCEL_DETAILS_EXCEEDS_LIMIT"), 0);
    EXPECT_EQ(backoff(&made, 0, "HEARTBEAT_EXCEEDS_LIMIT"), 0);
    EXPECT_EQ(backoff(&made, 0, "DECISION_BLOB_SIZE_EXCEEDS_LIMIT"), 0);
    EXPECT_EQ(backoff(&made, 0, "FAILURE_DETAILS_EXCEEDS_LIMIT"), 1);
    static const char *const names[] = {NULL, "START_TO_CLOSE", "SCHEDULE_TO_START",
                                        "SCHEDULE_TO_CLOSE", "HEARTBEAT"};
    for (int type = 1; type <= 4; type++) {
        const char *reason = retry_timeout_reason((API(TimeoutType))type);
        EXPECT_TEXT(reason + strlen("cadenceInternal:Timeout "), names[type]);
        EXPECT_EQ(backoff(&made, 0, reason), type == 4 ? 0 : 1);
    }
}
