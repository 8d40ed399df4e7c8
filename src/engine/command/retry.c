/* retry.c - when a failed attempt is followed by another one.
 *
 * The back-off grows as a power and is whole seconds. One that no clock can reach counts as
 * overflow: then the policy's longest interval holds, and without one there is no retry. */
#include "engine/command/retry.h"

#include <string.h>

#include "base/check.h"
#include "engine/command/inside.h"

#define SECOND             1000000000LL
#define RETRY_INTERVAL_MAX 3153600000LL /* 100 years in seconds */

/* Sizes do not shrink by trying again. */
static const char *const hopeless[] = {
    "COMPLETE_RESULT_EXCEEDS_LIMIT",
    "CANCEL_DETAILS_EXCEEDS_LIMIT",
    "HEARTBEAT_EXCEEDS_LIMIT",
    "DECISION_BLOB_SIZE_EXCEEDS_LIMIT",
};

const char *
retry_policy_fault(const API(RetryPolicy) *policy)
{
    if (policy == NULL)
        return NULL;
    int64_t initial = command_seconds(policy->initial_interval);
    int64_t maximum = command_seconds(policy->maximum_interval);
    int64_t expiration = command_seconds(policy->expiration_interval);
    if (initial <= 0)
        return "InitialIntervalInSeconds must be greater than 0 on retry policy.";
    if (!(policy->backoff_coefficient >= 1))
        return "BackoffCoefficient cannot be less than 1 on retry policy.";
    if (maximum < 0)
        return "MaximumIntervalInSeconds cannot be less than 0 on retry policy.";
    if (maximum > 0 && maximum < initial)
        return "MaximumIntervalInSeconds cannot be less than InitialIntervalInSeconds on retry "
               "policy.";
    if (policy->maximum_attempts < 0)
        return "MaximumAttempts cannot be less than 0 on retry policy.";
    if (expiration < 0)
        return "ExpirationIntervalInSeconds cannot be less than 0 on retry policy.";
    if (policy->maximum_attempts == 0 && expiration == 0)
        return "MaximumAttempts and ExpirationIntervalInSeconds are both 0. At least one of them "
               "must be specified.";
    return NULL;
}

bool
retry_is_final(const API(RetryPolicy) *policy, const char *reason)
{
    for (size_t i = 0; i < policy->n_non_retryable_error_reasons; i++) {
        if (strcmp(policy->non_retryable_error_reasons[i], reason) == 0)
            return true;
    }
    return false;
}

static bool
is_hopeless(const char *reason)
{
    for (size_t i = 0; i < sizeof hopeless / sizeof hopeless[0]; i++) {
        if (strcmp(hopeless[i], reason) == 0)
            return true;
    }
    return false;
}

/* initial × coefficient^attempt in whole seconds, at most the policy's maximum; 0: out of reach. */
static int64_t
interval_of(const API(RetryPolicy) *policy, int32_t attempt)
{
    int64_t maximum = command_seconds(policy->maximum_interval);
    double initial = (double)command_seconds(policy->initial_interval);
    double power = 1;
    for (int32_t i = 0; i < attempt && policy->backoff_coefficient > 1 &&
                        initial * power <= (double)RETRY_INTERVAL_MAX;
         i++)
        power *= policy->backoff_coefficient;
    double interval = initial * power;
    if (!(interval <= (double)RETRY_INTERVAL_MAX))
        return maximum;
    int64_t seconds = (int64_t)interval;
    return maximum > 0 && seconds > maximum ? maximum : seconds;
}

int64_t
retry_backoff(const API(RetryPolicy) *policy, const struct retry_state *state)
{
    check(state->attempt >= 0);
    int32_t most = policy->maximum_attempts;
    if (most == 0 && state->expiration_time == 0)
        return 0;
    if (most > 0 && state->attempt >= most - 1) /* it counts the first attempt too */
        return 0;
    if (is_hopeless(state->reason) || retry_is_final(policy, state->reason))
        return 0;
    int64_t seconds = interval_of(policy, state->attempt);
    if (seconds <= 0 || seconds > RETRY_INTERVAL_MAX)
        return 0;
    bool is_late =
        state->expiration_time != 0 && state->now + seconds * SECOND > state->expiration_time;
#ifdef CADENZA_FAULT_retry_after_expiration
    is_late = false;
#endif
    return is_late ? 0 : seconds;
}

const char *
retry_timeout_reason(API(TimeoutType) type)
{
    switch (type) {
    case API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE):
        return "cadenceInternal:Timeout START_TO_CLOSE";
    case API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START):
        return "cadenceInternal:Timeout SCHEDULE_TO_START";
    case API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_CLOSE):
        return "cadenceInternal:Timeout SCHEDULE_TO_CLOSE";
    case API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_HEARTBEAT):
        return "cadenceInternal:Timeout HEARTBEAT";
    default:
        unreachable("timeout type %d", (int)type);
    }
}
