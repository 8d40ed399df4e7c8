/* tokens.h - what clients carry from one call to the next without looking into it.
 *
 * Task tokens are JSON as Cadence writes it: a frontend of another cluster that forwards a call
 * reads the domain from it. Page tokens of history have Cadence's member names too; what they hold
 * is ours alone. Tokens come back from outside: nothing in one is trusted that the caller could not
 * have asked for anyway, and malformed ones are ERR_BAD_REQUEST. Everything lives in the arena
 * given. */
#ifndef CADENZA_API_CALL_TOKENS_H
#define CADENZA_API_CALL_TOKENS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/* Names the decision or activity that a worker works on. */
struct task_token {
    const char *domain_id, *workflow_id;
    const char *workflow_type; /* activities: else "" */
    const char *run_id;
    int64_t schedule_id, schedule_attempt;
    const char *activity_id, *activity_type; /* activities: else "" */
};

/* The bytes of a token; the domain must be set. The same for the others below. */
struct slice task_token_write(const struct task_token *token, struct arena *arena);
/* Error: ERR_BAD_REQUEST (no token, not one of ours, or without a domain). */
must_use struct error *task_token_read(struct slice bytes, struct arena *arena,
                                       struct task_token *token);

/* Names the query that a worker has to answer. */
struct query_token {
    const char *domain_id, *workflow_id, *run_id;
    const char *list;
    const char *query_id;
};

/* Domain, list and query must be set. */
struct slice query_token_write(const struct query_token *token, struct arena *arena);
/* Error: ERR_BAD_REQUEST. */
must_use struct error *query_token_read(struct slice bytes, struct arena *arena,
                                        struct query_token *token);

/* How far a reader of history has come. */
struct history_token {
    const char *run_id;
    int64_t first_event_id; /* where the range that is read began */
    int64_t next_event_id;  /* where it ends */
    bool is_running;        /* the reader may wait for more events behind next_event_id */
    int64_t position;       /* where the next page begins; 0: the range was read to its end */
    struct slice transient; /* History.events records that follow the last page; may be empty */
    struct slice branch;    /* names the branch that was read */
};

/* The run must be set, and the position be within the range, or 0. */
struct slice history_token_write(const struct history_token *token, struct arena *arena);
/* Error: ERR_BAD_REQUEST. */
must_use struct error *history_token_read(struct slice bytes, struct arena *arena,
                                          struct history_token *token);

#endif
