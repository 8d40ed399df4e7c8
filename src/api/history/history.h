/* history.h - one request for the history of a run, while it is answered. Only history.c and
 * history_wait.c include it. */
#ifndef CADENZA_API_HISTORY_HISTORY_H
#define CADENZA_API_HISTORY_HISTORY_H

#include "api/call/tokens.h"
#include "api/history/raw.h"
#include "api/worker/decision.h"

#define HISTORY_END_ONLY (INT64_MAX - 1) /* an event that never comes */

struct history_question {
    struct run_key key; /* run_id is set once the run was looked at */
    bool wants_close_only;
    bool waits;       /* for events that are not there yet */
    bool wants_raw;   /* as blobs */
    size_t nodes_max; /* batches in a page */
    bool has_token;
    struct history_token token;
    int64_t wait_until; /* monotonic */
};

/* The answer to it. */
struct history_answer {
    bool must_wait;        /* there is nothing to show yet: wait for events from next_event_id on */
    int64_t next_event_id; /* HISTORY_END_ONLY: only the end of the run is of interest */
    struct slice token;    /* of the next page; empty: this was the last */
    struct pieces history; /* wants_raw: without events */
    struct raw_history raw;
};

/* Looks at the run, and reads a page if there is one. Yields. `may_wait` false: an empty page is an
 * answer. */
must_use struct error *history_read(struct api *api, struct history_question *question,
                                    bool may_wait, struct arena *arena,
                                    struct history_answer *answer);
/* Puts the answer into the call's response. */
void history_fill(struct rpc_call *call, const struct history_answer *answer);
/* Parks the call until there is something to show. Errors: ERR_CANCELLED, ERR_UNAVAILABLE (too many
 * begin to wait). */
must_use struct error *history_wait_begin(struct rpc_call *call,
                                          const struct history_question *question,
                                          int64_t next_event_id);

#endif
