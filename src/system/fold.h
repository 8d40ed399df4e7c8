/* fold.h - what the folds of system workflows share: payloads, and how an activity ended. */
#ifndef CADENZA_SYSTEM_FOLD_H
#define CADENZA_SYSTEM_FOLD_H

#include "engine/run/mutation.h"
#include "system/worker.h"

/* A copy of the payload's bytes; empty where there are none. */
struct slice fold_payload(const API(Payload) *payload, struct arena *arena);

/* How an activity ended. */
struct fold_end {
    enum { FOLD_OPEN, FOLD_COMPLETED, FOLD_FAILED, FOLD_TIMED_OUT, FOLD_CANCELED } how;
    int64_t schedule_id;  /* of the activity */
    struct slice result;  /* completed */
    const char *reason;   /* failed */
    struct slice details; /* failed, canceled; timed out: of the last heartbeat, or which timeout */
};
/* Fills it if the event is the end of an activity. True: it is. */
bool fold_activity_end(struct fold_end *end, const API(HistoryEvent) *event, struct arena *arena);

/* A retry policy of one pause; expiry of all attempts, seconds; one reason that ends it, or NULL.
 */
API(RetryPolicy) *system_retry(struct arena *arena, int64_t interval, int64_t expiry,
                               const char *final_reason);

#endif
