/* inside.h - the inside of task lists. Only files of matching/ include it.
 *
 * matching.c is the interface, life.c begin and end; what goes to lists and comes from them is in
 * values.h. list.c lets offers and polls of one list meet, arrive.c takes what comes to it; tend.c
 * looks after a list from time to time; pollers.c remembers who polled; backlog.c writes what does
 * not fit into memory and deletes what is done; outstanding.c keeps what was read; work.c holds the
 * fibers that read; record.c knows how rows look; describe.c shows lists to operators. Lists of
 * several partitions: partition_group.h.
 *
 * An offer is a task in matching's hands. It lies in its own arena, which goes to the caller with
 * the task. On its list it is in exactly one of
 *   - waiting: in memory, next for a poller; with its outbox row behind it, or its row in the store
 *   - pending: to be stored, not given to the store yet
 *   - in flight: given to the store, not known to be durable
 *   - queries: a query, in memory only; next for a poller, before all others
 *   - inbox: it came in a storm and was not looked at yet
 *
 * The order of a list is: waiting, rows in the store that were not read yet, in flight, pending.
 *
 * Invariants of a backlog:
 *   1. acked <= read, deleted <= acked, read <= written or nothing is unread.
 *   2. Every row in the store with a number in (acked, read] has a struct outstanding, unless the
 *      list is being put away.
 *   3. Numbers that this owner stores are above all that earlier owners stored: range id r has the
 *      block (r - 1) * TASK_BLOCK + 1 .. r * TASK_BLOCK, and the guard is raised before a number
 *      of the next block is written. */
#ifndef CADENZA_MATCHING_INSIDE_H
#define CADENZA_MATCHING_INSIDE_H

#include <stdatomic.h>

#include "base/limit.h"
#include "base/map.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "fiber/sync.h"
#include "matching/matching.h"
#include "matching/partition_group.h"
#include "matching/task_load.h"
#include "matching/values.h"

#define LIMIT_RATE_DEFAULT 100000.0         /* tasks per second of a list; as Cadence shows it */
#define TASKS_MAX          ((size_t)262144) /* in memory, of all lists together */
#define DOMAIN_SHARES      64
#define TASKS_SHARE        (TASKS_MAX / 4 * 3) /* that the lists of one domain may have of them */
#define TASKS_TIGHT        256                 /* per list, once half of that is used */
#define TASK_BLOCK         100000              /* numbers of one range id */
#define WORKERS_MAX        64                  /* fibers per loop that read */
#define TEND_INTERVAL      (10 * NS_PER_S)
#define LOOK_INTERVAL      NS_PER_S         /* at what other hosts may have stored */
#define STICKY_WINDOW      (10 * NS_PER_S)  /* a sticky list that was not polled in it is dead */
#define POLLERS_WINDOW     (300 * NS_PER_S) /* pollers that are shown */
#define GROUPS_MAX         64               /* counted per list */
#define POLLERS_MAX        1000             /* remembered per list */
#define SPILL_BATCHES_MAX  4                /* of a list, that wait at the store */
#define SERVED_AT_ONCE     16               /* offers in a tick; then lists take turns */
#define SERVED_MAX         64               /* offers in a tick */
#define SPILL_BATCH_TASKS  500
#define RETRY_FIRST        (20 * NS_PER_MS) /* after the store failed a list */
#define OUTCOME_MAX        (60 * NS_PER_S)  /* until a caller said what became of a stored task */
#define RETRY_MAX          (5 * NS_PER_S)

/* A stored task that was read and is not done. */
struct outstanding {
    struct list node; /* in order of number */
    int64_t number;
    struct offer *offer; /* in waiting; NULL: a caller has the task */
    int64_t handed;      /* when the caller got it, monotonic */
    bool is_done;        /* one with a lower number is not */
};

struct backlog {
    bool is_loaded;       /* what the store holds is known */
    bool is_failed;       /* the writer is finished: it is closed and all is read again */
    bool is_putting_away; /* an idle list stores what it has in memory; nothing is read meanwhile */
    struct writer *writer; /* NULL: not owned */
    uint64_t guard;        /* of the partition, as it was read */
    uint64_t range;        /* of the next number: ours, or the one that we would take */
    int64_t number_next;
    int64_t own_from;         /* lower numbers may be somebody else's in the store */
    int64_t number_in_memory; /* the highest one in memory so far */
    struct list pending, in_flight;
    size_t pending_count;
    int64_t written, read, acked, deleted;
    int64_t rows;     /* in the store, or on the way there, and not done, about */
    int64_t open;     /* outstanding and not done */
    size_t deletable; /* done since the last deletion */
    struct list outstanding;
    struct map64 *by_number; /* the same */
    struct deferred flush;
    struct timer retry;
    int64_t retry_delay;
    struct fiber_cond loaded;  /* it was tried */
    bool is_queued, is_worked; /* waits for a worker; has one */
    struct list work;          /* in a struct turn */
};

struct poller {
    char *identity; /* behind the struct */
    char *group;    /* behind it; its isolation group, or "" */
    int64_t seen;   /* wall clock */
    double rate;
};

struct task_list {
    struct loop_lists *loop_lists;
    struct arena *arena;
    struct slice key;
    const char *domain_id, *domain_name; /* domain_name: NULL until it is known */
    const char *name;                    /* of the whole list; see partition */
    const char *base_name;               /* of the normal list that it goes with; or "" */
    int32_t partition;                   /* 0: the first, which stands for the list */
    enum task_type type;
    enum list_kind kind;
    struct list inbox; /* new offers that came in a storm; they take turns with other lists' */
    struct list busy;  /* in place->busy */
    struct list waiting;
    size_t waiting_count;
    struct list queries; /* queries */
    size_t query_count;
    struct map64 *known; /* offers with outbox rows, by a mix of shard and row */
    struct list polls;   /* struct waiting_poll, oldest first */
    size_t poll_count;
    struct limit limit;
    struct map *group_loads;    /* isolation group → struct load, the same of each; NULL: none */
    struct task_load task_load; /* new tasks */
    double rate_requested;      /* by the newest poller that gave one */
    struct timer throttle;      /* a token will be there */
    struct timer isolation;     /* a task may go to any group */
    struct timer tend;
    struct map *pollers;  /* identity → struct poller, the one seen longest ago is first */
    int64_t used, polled; /* monotonic: newest add or poll; newest sign of a living poller */
    int64_t looked;       /* when the store was looked at last */
    unsigned users;       /* fibers that look at it: it stays */
    bool is_unloading;    /* a worker closes its writer */
    bool is_served;       /* the server itself works on it */
    struct backlog backlog;
    struct member member; /* its part in a list of several partitions */
    struct root *root;    /* of the first partition, once there were others; else NULL */
};

/* The lists of one loop. */
struct loop_lists {
    struct matching *matching;
    unsigned place;
    struct map *lists;
    struct map
        *partition_groups; /* root's key → struct partition_group: lists of several partitions */
    struct arena *scratch;
    struct poll_table polls;     /* of the callers here */
    struct place_polls *callers; /* polls at the lists here, by the place of the caller */
    struct list reserved;        /* struct waiting_poll */
    struct map64 *reservations;  /* of the shards here that are open, by number */
    uint64_t reservation_newest; /* number */
    struct loop_message shutdown;
    bool is_drained;
    bool is_closing;
    struct latch workers;
    struct list busy;      /* struct task_list with an inbox */
    struct deferred serve; /* at the end of the tick ... */
    struct timer serve_on; /* ... and in the next ones */
    unsigned served;       /* in this tick */
    struct list work;      /* struct turn: domains with lists that want a worker */
    struct map *turns;     /* the same, by domain id */
};

/* The lists of one domain that want a worker: domains take turns. */
struct turn {
    struct list node;  /* in place->work */
    struct list lists; /* struct task_list */
    char domain_id[];
};

struct matching {
    struct matching_options options;
    atomic_bool is_shutting_down;
    atomic_size_t held;                   /* offers */
    atomic_size_t held_by[DOMAIN_SHARES]; /* the same, by a hash of their domain */
    struct route_service service;
    struct {
        struct counter *success, *success_sync, *timeouts, *expired, *stored, *passed_on;
    } counters; /* NULL without metrics */
    unsigned loops;
    struct loop_lists per_loop[];
};

/* --- matching.c ------------------------------------------------------------------------------- */

/* Is there no room for another task of the domain? */
bool matching_is_full(struct matching *matching, const char *domain_id);
/* Who owns a list. */
struct owner list_owner(const struct list_id *list_id);
struct list_id list_id_of_task(const struct task *task);
/* A task for a list by the name of a partition is for that partition. */
void task_find_partition(struct task *task, struct arena *arena);
struct list_id list_id_of(const struct task_list *list);
/* In the arena; also the name of its partition in the store: domain ids have no slash. */
struct slice list_id_key(const struct list_id *list_id, struct arena *arena);
void matching_count(struct counter *counter, uint64_t amount);
struct loop_lists *loop_lists_here(struct matching *matching);
bool loop_lists_are_here(const struct loop_lists *loop_lists);
atomic_size_t *matching_share_of(struct matching *matching, const char *domain_id);

/* --- list.c: all on the list's loop, no yield ------------------------------------------------- */

struct task_list *list_find(struct loop_lists *loop_lists, const struct list_id *list_id);
/* Finds it or makes it. */
struct task_list *list_get(struct loop_lists *loop_lists, const struct list_id *list_id,
                           enum list_kind kind);
/* Frees the list and everything in memory; the writer must be closed. */
void list_free(struct task_list *list);
bool list_is_sticky(const struct task_list *list);
/* Takes an offer for the end of the list. */
void list_add(struct task_list *list, struct offer *offer);
/* The same, but if more come in this tick than can be served, lists take turns. */
void list_receive(struct task_list *list, struct offer *offer);
void loop_lists_serve_init(struct loop_lists *loop_lists);
void loop_lists_serve_stop(struct loop_lists *loop_lists);
/* Takes an offer back to the front. */
void list_return(struct task_list *list, struct offer *offer);
void list_finish(struct task_list *list, struct offer *offer);
void list_take_poll(struct task_list *list, struct waiting_poll *poll);
void list_withdraw(struct task_list *list, struct waiting_poll *poll);
/* Asks the settings and pollers how fast it may be. */
void list_set_rate(struct task_list *list);
/* Waits until it is known what the store holds, or that it does not say. Yields. */
void list_wait_loaded(struct task_list *list);
/* Must a new task be stored before it may go? */
bool list_must_store(const struct task_list *list);
/* The poll comes back empty when its time is over. */
void waiting_poll_start_timer(struct task_list *list, struct waiting_poll *poll);

/* Returns a token whose task did not come. */
void list_return_token(struct task_list *list);
/* May a task go now? If not, the list tries again when one may. */
bool list_has_token(struct task_list *list);
/* Gives an offer that is in no list to the first poll. */
void list_match(struct task_list *list, struct offer *offer);
/* Gives an offer that is of no list any more to a poll of this list. */
void list_give(struct task_list *list, struct offer *offer, struct waiting_poll *poll);
/* The offer is a caller's, or another partition's, from now on; its row, if it is stored, stays
 * outstanding. */
void list_hand_out(struct task_list *list, struct offer *offer);
/* The first that waits in memory and has not waited too long; NULL: none. */
struct offer *list_first(struct task_list *list);
/* Is the same task here already? Then this offer is gone. */
bool list_merge(struct task_list *list, struct offer *offer);
/* Remembers that the offer of (shard, row) is here. */
void list_know(struct task_list *list, struct offer *offer);
/* Lets them meet as far as possible. */
void list_dispatch(struct task_list *list);
/* If the server itself works on the list, notifies it that it is needed. */
void list_want(struct task_list *list);
/* At the end of those that wait in memory. */
void list_add_waiting(struct task_list *list, struct offer *offer);
/* Takes an offer out of those that wait in memory. */
void list_remove_waiting(struct task_list *list, struct offer *offer);
/* Forgets that (shard, row) is here. */
void list_forget(struct task_list *list, struct offer *offer);
/* Drops an offer that waited too long. */
void list_expire(struct task_list *list, struct offer *offer);
bool offer_is_expired(const struct offer *offer, int64_t wall);
/* A sticky list gives an offer, that is in no list, or all that wait to the normal list. */
void list_pass_on_one(struct task_list *list, struct offer *offer);
void list_pass_on(struct task_list *list);
/* Has the (sticky) list a living poller? */
bool list_is_polled(const struct task_list *list);
size_t list_bound(const struct task_list *list);
struct dynamic_filter list_filter(const struct task_list *list);

/* --- query.c ---------------------------------------------------------------------------------- */

/* Takes out the first query that somebody waits for; NULL: none. */
struct offer *list_take_query(struct task_list *list);
/* Gives queries that wait to polls that wait. */
void list_dispatch_queries(struct task_list *list);
/* Takes a query back to the front. */
void list_return_query(struct task_list *list, struct offer *offer);
/* Drops the query that the offer, which is gone then, names. */
void list_cancel_query(struct task_list *list, struct offer *offer);
/* Drops those that nobody waits for any more. */
void list_expire_queries(struct task_list *list);

/* --- isolation.c ------------------------------------------------------------------------------ */

/* Do isolation groups count here? */
bool list_is_isolated(const struct task_list *list);
/* The poll that the offer may go to now; NULL: none, and if that is a matter of time, the list
 * tries again. A visitor from another partition does not wait for its group. */
struct waiting_poll *list_choose_poll(struct task_list *list, const struct offer *offer,
                                      bool is_forwarded);
/* A new task came. */
void isolation_note(struct task_list *list, const struct task *task);
/* New tasks of the group per second. */
double isolation_load(const struct task_list *list, const char *group);
void isolation_free(struct task_list *list);
/* Lets tasks and polls meet where groups count. */
void list_dispatch_isolated(struct task_list *list);

/* --- invariants.c ----------------------------------------------------------------------------- */

/* The invariants of a list, its backlog and its root, at the end of each step. */
void task_list_check(const struct task_list *list);
/* Those of the backlog alone, where the list is in the middle of a step. */
void backlog_check(const struct task_list *list);

/* --- tend.c ----------------------------------------------------------------------------------- */

/* Looks after the list now and then, from now on. */
void list_tend_begin(struct task_list *list);
/* Nothing is in memory but what is in the store, and nobody looks. */
bool list_is_unused(const struct task_list *list);

/* --- pollers.c -------------------------------------------------------------------------------- */

void pollers_note(struct task_list *list, const struct waiting_poll *poll);
/* Forgets pollers that were not seen for POLLERS_WINDOW. */
void pollers_forget_old(struct task_list *list);
void pollers_free(struct task_list *list);
/* How many of the isolation group polled lately (matching.taskIsolationPollerWindow). */
size_t pollers_of_group(const struct task_list *list, const char *group);

/* --- backlog.c: no yield ---------------------------------------------------------------------- */

void backlog_init(struct task_list *list);
/* The writer must be closed. */
void backlog_free(struct task_list *list);
/* Are there tasks that come before a new one and are not in memory? */
bool backlog_is_behind(const struct task_list *list);
/* Tasks that wait, in memory or in the store, about. */
int64_t backlog_count(const struct task_list *list);
/* Does it wait in memory with its row in the store? */
bool backlog_has_row(const struct task_list *list, const struct offer *offer);
/* Takes an offer to be stored. */
void backlog_push(struct task_list *list, struct offer *offer);
/* Gives an offer that waits in memory its number. */
void backlog_number(struct task_list *list, struct offer *offer);
/* Moves what need not be stored after all to those that wait in memory. */
void backlog_recall(struct task_list *list);
/* The stored task is done. */
void backlog_finish(struct task_list *list, int64_t number);
/* The stored task was read, and waits in memory or is with a caller. NULL: it was not read, or is
 * done. */
struct outstanding *backlog_find(const struct task_list *list, int64_t number);
void backlog_note_read(struct task_list *list, int64_t number, struct offer *offer);
/* All rows up to that number were read. */
void backlog_read_up_to(struct task_list *list, int64_t number);
/* Submits what is pending and deletes what is done, as far as there is room. */
void backlog_flush(struct task_list *list, bool is_last);
/* Deletes what is done, however little it is. */
void backlog_delete_done(struct task_list *list);
/* Drops what was read and is still in the store. */
void backlog_forget_read(struct task_list *list);
/* A caller has had a task for too long: all rows are read again. */
void backlog_find_lost(struct task_list *list);
/* Stores all that is in memory. */
void backlog_put_away(struct task_list *list);
/* The writer was closed after a failure: what was in flight is pending again. */
void backlog_recover(struct task_list *list);
void backlog_on_durable(void *context, ticket_t durable, const struct error *failure);

/* --- work.c ----------------------------------------------------------------------------------- */

/* Gives the list to a worker, if there is something to read, take or close. */
void backlog_kick(struct task_list *list);
void work_init(struct loop_lists *loop_lists);
void work_free(struct loop_lists *loop_lists);
/* Takes the list out of those that want a worker. */
void work_forget(struct task_list *list);
/* Ends all workers of this loop and closes all writers; no timer here sends a value any more. What
 * comes is taken still: other loops may not have stopped. Yields. */
void loop_lists_stop(struct loop_lists *loop_lists);

/* --- record.c --------------------------------------------------------------------------------- */

struct partition record_partition(const struct task_list *list);
struct slice record_list_key(struct arena *arena);
struct slice record_task_key(int64_t number, struct arena *arena);
struct slice record_list(const struct task_list *list, struct arena *arena);
struct slice record_task(const struct task *task, struct arena *arena);
must_use struct error *record_read_list(struct slice bytes, struct arena *arena,
                                        STORED(TaskListRecord) **record);
/* A new offer of the row. */
must_use struct error *record_read_task(struct task_list *list, const struct row *row,
                                        struct arena *arena, struct offer **offer);

#endif
