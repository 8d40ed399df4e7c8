/* waits.h - waiting for news of a run, from any place, without a fiber.
 *
 * What waits has a record with a struct run_waiter in it, which its place keeps in a table under a
 * number. The shard of the run has a record of its own, made of the value that came. Three values
 * go between them, each naming the number:
 *
 *   place                              shard
 *   run.wait  ---------------------->  watches the run, or keeps the query
 *             <----------------------  run.wait_end   news, or the shard was lost: look again
 *   run.wait_stop  ----------------->  nobody waits any more
 *
 * Any of them may be lost or come twice. A wait is asked for again every few seconds, which changes
 * nothing if the shard knows it; the shard forgets one that was not asked for again. A number that
 * is not known is nobody's. */
#ifndef CADENZA_ENGINE_WAITS_H
#define CADENZA_ENGINE_WAITS_H

#include "engine/engine.h"
#include "fiber/timer.h"

/* What is waited for. All of it stays until the wait has ended. */
struct run_wait_for {
    struct run_key key;    /* of one run */
    int64_t next_event_id; /* news: events from here on, or the end of the run */
    const char *query_id;  /* set: the end of a decision, which may answer this query */
    struct slice question; /* of the query: a WorkflowQuery */
};

/* A wait, on the loop where it was begun. */
struct run_waiter {
    /* The wait has ended, not by engine_wait_stop. `result`: of QUERY_ANSWERED, a
     * WorkflowQueryResult as bytes, until this returns. Called on the loop's stack, never before
     * engine_wait_begin has returned; no yield. */
    void (*ended)(struct run_waiter *wait, enum query_end end, struct slice result);
    /* The engine's. */
    struct engine *engine;
    struct run_wait_for what;
    uint64_t number; /* 0: it does not wait */
    bool is_renewed; /* it was asked for more than once */
    struct timer renewal;
};

/* Once, before the first wait of a record. */
void engine_wait_init(struct run_waiter *wait, struct engine *engine,
                      void (*ended)(struct run_waiter *wait, enum query_end end,
                                    struct slice result));
/* Begins to wait. False: too much is on its way to the shard. No yield. */
must_use bool engine_wait_begin(struct run_waiter *wait, const struct run_wait_for *what);
/* Waits no more: `ended` is not called. Harmless if it does not wait. No yield. */
void engine_wait_stop(struct run_waiter *wait);

#endif
