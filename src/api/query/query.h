/* query.h - a query that waits, as a record. Shared by query_admit.c (its beginning), query.c (its
 * way), query_wait.c (waiting at the shard), query_poller.c (is there a worker at all?) and
 * query_task.c (the worker's side).
 *
 * Everything happens at the place of the call, which the id of the query names. Exactly one of
 * three holds the query at any time: a fiber, which looks at the run and decides what comes next;
 * the shard; or a worker, or matching until it finds one. */
#ifndef CADENZA_API_QUERY_QUERY_H
#define CADENZA_API_QUERY_QUERY_H

#include "api/inside.h"
#include "engine/waits.h"
#include "fiber/timer.h"

#define QUERY_ID_SIZE (UUID_TEXT_LENGTH + 16) /* a uuid and the number of a place */

enum querier_holder { HELD_BY_FIBER, HELD_BY_SHARD, HELD_BY_WORKER };

/* What a query waits for at the shard. */
struct shard_wait {
    struct run_waiter run;            /* its number is set while the shard holds the query */
    bool is_keeping;                  /* for a decision to end; else for new events of the run */
    enum query_end end;               /* how it ended */
    API(WorkflowQueryResult) *result; /* of QUERY_ANSWERED */
};

struct querier {
    struct parked parked;
    char id[QUERY_ID_SIZE]; /* its key in the loop's `queriers` */
    const char *domain_name;
    struct run_key key; /* once looked at: of one run */
    struct slice question;
    bool is_admitted; /* it was counted for the limit of its workflow id */
    bool is_strong;
    API(QueryRejectCondition) reject_condition;
    int64_t first_deadline; /* until then a decision must have been completed, monotonic */
    int64_t awaited;        /* next event id of the run that it waited for last */
    enum querier_holder holder;
    struct timer timer; /* waiting ends */
    struct shard_wait wait;
    struct task *query_task; /* with matching or a worker; NULL: not yet */
    bool is_run_open;        /* as it was when it was asked */
    /* The lists of the run when it was last looked at; sticky_list "": none. */
    const char *list, *sticky_list;
    struct timer poller_timer; /* of query_poller.c */
    bool is_watched;           /* it was started */
    bool is_unpolled;          /* no worker polls the lists: it ends */
};

/* --- query.c ---- */

/* Parks the call: from now on the querier, made with its question and run, lives by itself. Error:
 * ERR_SERVICE_BUSY (then it still belongs to the caller). */
must_use struct error *querier_begin(struct querier *querier, struct rpc_call *call);

/* Checks what holds of a querier on its own loop, at any time. */
void querier_check(const struct querier *querier);
/* Looks at the run and does what comes next. In a fiber of its own, which holds the query. */
void querier_proceed(void *querier);
/* Answers, if the caller still waits: with a worker's result, or with an error in the querier's
 * arena. */
void querier_answer(struct querier *querier, const API(WorkflowQueryResult) *result);
void querier_fail(struct querier *querier, struct error *err);
/* The query with this id, on its own loop; NULL: it has ended. */
struct querier *querier_find(struct api *api, const char *id);
/* Frees a query that was answered, or whose caller has gone, when nothing refers to it any more. */
void querier_end(struct querier *querier);

/* --- query_wait.c ---- */

/* Once. */
void shard_wait_init(struct querier *querier);
/* Gives it to the shard until `until`; false: too many messages are on their way there.
 * `is_keeping`: until a decision ends; else until the run has new events. */
must_use bool shard_wait_begin(struct querier *querier, bool is_keeping, int64_t until);
/* Takes it back from the shard: a fiber holds it. */
void shard_wait_stop(struct querier *querier);

/* --- query_poller.c ---- */

struct call_domain;

/* Prepares its timer; once. */
void poller_watch_init(struct querier *querier);
/* Looks after a moment, if the query still waits then, whether any worker polls the lists of its
 * run. */
void poller_watch_begin(struct querier *querier);
/* The error that it ends with if none does. */
struct error *poller_refusal(const struct querier *querier);
/* Answers the call where its run is active, if that is another cluster and no worker polls the list
 * of the run here; else *is_forwarded is false. Yields. Errors: the other cluster's. */
must_use struct error *poller_query_remote(struct rpc_call *call, const struct call_domain *domain,
                                           const API(QueryWorkflowRequest) *request,
                                           bool *is_forwarded);

/* --- query_task.c ---- */

struct parked_poll;
/* A poll has found a query: answers the poll with it, or lets it wait on. In a fiber. Yields. */
void poll_show_query(struct parked_poll *waiting);

#endif
