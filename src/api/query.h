/* query.h - a query that waits, as a record: shared by query_admit.c (its
 * beginning), query.c (its way), query_wait.c (waiting at
 * the shard), query_poller.c (is there a worker at all?) and query_task.c (the worker's side).
 *
 * All of an asker happens on the loop of its call, but for its records at the shard. It is in one
 * of three hands: a fiber's that looks at the run and decides what comes next, the shard's, or a
 * worker's. */
#ifndef CADENZA_API_QUERY_H
#define CADENZA_API_QUERY_H

#include "api/inside.h"
#include "engine/engine.h"
#include "fiber/loop.h"
#include "fiber/timer.h"

#define QUERY_ID_SIZE (UUID_TEXT_LENGTH + 16) /* a uuid and the number of a loop */

enum asker_hand { HAND_FIBER, HAND_SHARD, HAND_WORKER };

/* What a query waits for at the shard. */
struct shard_wait {
    uint32_t shard;
    bool is_stopping;                          /* `stop` was sent */
    bool is_keeping;                           /* for a decision to end; else for news of the run */
    struct letter begin, stop, fired, stopped; /* each on its way at most once */
    struct run_watch watch;                    /* the shard's loop has it until fired or stopped */
    struct run_query query;                    /* the same */
    /* How it ended; written at the shard, read once `fired` or `stopped` has come. */
    enum query_end end;
    struct arena *result_arena; /* NULL: there is no result */
    API(WorkflowQueryResult) *result;
};

struct asker {
    struct parked parked;
    char id[QUERY_ID_SIZE]; /* its key among the askers of the loop */
    struct loop *home;
    const char *domain_name;
    struct run_key key; /* once looked at: of one run */
    struct slice question;
    bool is_admitted; /* it was counted as a call of its workflow id */
    bool is_strong;
    API(QueryRejectCondition) reject_condition;
    int64_t first_deadline; /* until then a decision must have been completed, monotonic */
    int64_t awaited;        /* next event id of the run that it waited for last */
    enum asker_hand hand;
    struct timer timer; /* waiting ends */
    struct shard_wait wait;
    struct task *asked; /* with matching or a worker; NULL: not yet */
    bool is_run_open;   /* as it was when it was asked */
    /* The lists of the run when it was last looked at; sticky_list "": none. */
    const char *list, *sticky_list;
    struct timer poller_timer; /* of query_poller.c */
    bool is_watched;           /* it was started */
    bool is_unpolled;          /* nobody polls the lists: it ends */
};

/* --- query.c ---- */

/* Parks the call: from now on the asker, with its question and run, lives by itself. Error:
 * ERR_SERVICE_BUSY (then it is the caller's still). */
must_use struct error *asker_begin(struct asker *asker, struct rpc_call *call);

/* Looks at the run and does what comes next. In a fiber of its own. */
void asker_proceed(void *asker);
/* Answers, if somebody still waits for it. Errors live in the asker's arena. */
void asker_answer(struct asker *asker, const API(WorkflowQueryResult) *result);
void asker_fail(struct asker *asker, struct error *err);
/* The query with this id, on its loop; NULL: nobody waits for it. */
struct asker *asker_find(struct api *api, const char *id);
/* Nobody has it any more: frees it. */
void asker_end(struct asker *asker);

/* --- query_wait.c ---- */

void shard_wait_init(struct asker *asker);
/* Gives it to the shard until `until`; false: too much is on its way there. */
must_use bool shard_wait_begin(struct asker *asker, bool is_keeping, int64_t until);
/* Asks for it back. */
void shard_wait_stop(struct asker *asker);

/* --- query_poller.c ---- */

struct call_domain;

void poller_watch_init(struct asker *asker);
/* In a moment, if it still waits then: does anybody poll the lists of its run? */
void poller_watch_begin(struct asker *asker);
/* What it ends with if nobody does. */
struct error *poller_refusal(const struct asker *asker);
/* Answers the call where its run is active, if that is another cluster and nobody polls the list of
 * the run here; else *is_asked is false. Yields. Errors: the other cluster's. */
must_use struct error *poller_ask_elsewhere(struct rpc_call *call, const struct call_domain *domain,
                                            const API(QueryWorkflowRequest) *request,
                                            bool *is_asked);

/* --- query_task.c ---- */

struct parked_poll;
/* A poll has found a query: answers the poll with it, or goes on waiting. In a fiber. */
void poll_show_query(struct parked_poll *waiting);

#endif
