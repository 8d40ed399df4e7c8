/* retry.h - retry policies: whether one makes sense, and when the next attempt is due. Pure. */
#ifndef CADENZA_ENGINE_COMMAND_RETRY_H
#define CADENZA_ENGINE_COMMAND_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "uber/cadence/api/v1/common.pb-c.h"
#include "uber/cadence/api/v1/workflow.pb-c.h"
#include "wire/names.h"

/* What is wrong with the policy, in the words that clients know; NULL: nothing. No policy (NULL) is
 * a good one: no retries. */
const char *retry_policy_fault(const API(RetryPolicy) *policy);

/* Where a policy stands. */
struct retry_state {
    int64_t now;
    int64_t expiration_time; /* no attempt begins after this; 0: none */
    int32_t attempt;         /* the one that ended; the first is 0 */
    const char *reason;      /* why it ended */
};
/* Seconds until the next attempt; 0: none is left. */
int64_t retry_backoff(const API(RetryPolicy) *policy, const struct retry_state *state);

/* Is the reason in the policy's list of those that are final? */
bool retry_is_final(const API(RetryPolicy) *policy, const char *reason);

/* What a timeout is called where reasons are compared: "cadenceInternal:Timeout HEARTBEAT". */
const char *retry_timeout_reason(API(TimeoutType) type);

#endif
