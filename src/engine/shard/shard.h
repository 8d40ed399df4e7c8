/* shard.h - the owner of a slice of workflow ids: a log, and what it means.
 *
 * A shard lives on one loop. It holds the workflow ids that were used lately, each with a lock, the
 * current-run record and its loaded runs. A step is decided, adopted and submitted under the lock
 * without a yield; the lock is free again at once, and the caller waits for durability. Nothing
 * undurable leaves: not answers, not refusals, not reads, not outbox rows.
 *
 * 1. Taking the shard raises its guard (the range id); an owner that was overtaken is fenced at its
 *    next commit, drops everything it knew, and tells its callers to try again.
 * 2. An entry with an undurable batch is pinned and never read from the store.
 * 3. A row of the outbox is known here exactly as long as it is in the store and this owner is to
 *    see it through: so each is deleted exactly once.
 * 4. The wake-up timer of a run is never later than run_next_deadline. A closed run is deleted
 * after its retention: nobody who asks finds it any more.
 * 5. A step is decided on the domains as they are at the version that stands in the shard record
 *    with it or before it in the log: no step that follows a change was decided before it, nor by
 *    an owner that does not know of it. */
#ifndef CADENZA_ENGINE_SHARD_SHARD_H
#define CADENZA_ENGINE_SHARD_SHARD_H

#include "base/list.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cluster/group.h"
#include "domain/domains.h"
#include "engine/branches/branches.h"
#include "engine/command/command.h"
#include "engine/limits/limits.h"
#include "route/archive.h"
#include "route/reservation.h"
#include "route/task.h"
#include "route/visible.h"
#include "uber/cadence/admin/v1/replication.pb-c.h"

/* What the shard needs from the world; filled by server/ or a test. */
struct task_port {
    /* Hands a task to the owner of its list. On the shard's loop, no yield; copies what it needs.
     * False: no room now, the shard offers it again later. */
    bool (*offer)(void *context, const struct task *task);
    void *context;
};

/* Work on another workflow that a row of the outbox asks for. */
struct cross_task {
    uint64_t range_id, row;
    const STORED(TransferRow) *transfer; /* the row */
    uint64_t cursor; /* of work in portions: where this one begins, then where the next one does */
    bool has_more;   /* set when a portion is done and others are left */
    bool is_repeat;  /* somebody may have done it before, as a whole or in part */
};
/* Who does it; filled by engine.c or a test. */
struct cross_task_port {
    /* On the shard's loop, in a fiber with a deadline. Yields. It may have been done before, as a
     * whole or in part. An error: it is tried again later. */
    struct error *(*run)(void *context, struct cross_task *cross_task, struct arena *arena);
    void *context;
};

struct shard_options {
    uint32_t number;
    struct store *store;
    struct domains *domains;
    const struct cluster_group *group;
    const struct dynamic *dynamic;
    const struct log *log;
    struct metrics *metrics;
    struct task_port tasks;
    struct reservation_port
        reservations; /* may be empty: then tasks wait for polls at their lists alone */
    struct cross_task_port cross_tasks; /* may be empty: then such rows wait */
    struct visible_port visibility;     /* may be empty: then such rows stay */
    struct search_port search;          /* may be empty: then all search attributes are fine */
    struct archive_port archive;        /* may be empty: then nothing is archived */
    const char *host;                   /* who we are, for the shard record */
    bool is_alone;      /* nobody else may own it: taken again at once when it was lost */
    size_t runs_max;    /* cached runs, about; 0: a default */
    size_t batches_max; /* that wait to be committed; 0: a default */
    size_t
        transfers_max;  /* rows of the outbox in memory; 0: a default. The others are read later */
    size_t wakeups_max; /* wake-up timers in memory; 0: a default. Later ones are read when they
                           come near */
};

struct shard;

/* On its loop. Owns nothing yet. */
struct shard *shard_new(const struct shard_options *options);
/* Takes ownership: raises the range id, reads the outbox, begins to work it off. Yields. Harmless
 * when it is ours already. Errors: the store's. */
must_use struct error *shard_take(struct shard *shard, struct arena *arena);
/* The same when a process starts: while the owner of the domains does not answer it tries again,
 * until the fiber's deadline. Errors: the store's, ERR_DEADLINE, ERR_CANCELLED. */
must_use struct error *shard_open(struct shard *shard, struct arena *arena);
/* Stops, waits for what is in flight, frees. Nobody may call any more. Yields; ignores
 * cancellation. */
void shard_close(struct shard *shard);
bool shard_is_owned(const struct shard *shard);
/* The notification version of the domains that its steps are decided on; 0: not owned. */
uint64_t shard_domain_version(const struct shard *shard);
uint32_t shard_number(const struct shard *shard);
uint64_t shard_range_id(const struct shard *shard); /* 0: not owned */

/* --- steps -------------------------------------------------------------------------------------
 */

struct shard_reader;

/* A task that a step will probably leave. */
#define FORESEEN_MAX 4
struct foreseen {
    enum task_type type;
    enum list_kind kind;
    const char *list;
    const char *activity_id; /* of an activity */
};
/* What a worker gets of a task that is started. Lives in one arena. */
struct task_start {
    struct decision_start decision; /* of a decision */
    struct activity_start activity; /* of an activity */
};

struct shard_step {
    struct run_key key; /* run_id "": the current run */
    /* Is the run needed? false: only the current-run record (step->mutation may be NULL even if
     * there is one). */
    bool needs_run;
    bool may_be_missing; /* decide even if there is no run (a start); else ERR_ENTITY_NOT_EXISTS */
    /* What the run that a start begins belongs to; NULL: to nothing but its domain. */
    const API(ActiveClusterSelectionPolicy) *policy;
    /* Of a child that belongs to the entity of its parent: the version that the parent's events
     * have now. The child begins with it where the domain does not have the region of the entity;
     * 0: it is not such a child. */
    int64_t parent_version;
    bool may_terminate;    /* a start: an open run makes room for it */
    bool may_signal;       /* a start: an open run is signalled in its place */
    bool begins_again;     /* a reset: the next run has the id, also if the current one is closed */
    bool is_call;          /* of a client: the limit of the workflow id holds (shard_admit) */
    bool ignores_activity; /* decide even where the domain is not active (events of other clusters)
                            */
    uint64_t range_id; /* only if the shard still has this one (a task's); 0: any, take it if not
                          owned. Else ERR_SHARD_OWNERSHIP_LOST */
    /* The task that the step starts: where its run is not active the shard keeps it and offers it
     * when it is, one that a list had stored too (row 0). The refusal is answered when that is
     * durable. NULL: none. */
    const struct task *task;
    /* Reads what the decision needs beside the run, under the lock; all that it sees is durable.
     * May yield. Its error is the step's. NULL: nothing is needed. Asked again if the shard was
     * lost. */
    struct error *(*prepare)(void *context, struct shard_reader *reader);
    /* Tells what tasks of its own domain the step will probably leave, so that polls which wait for
     * them are at hand when it is decided: a task that finds one is started by the step itself. A
     * wrong guess costs time only. At most FORESEEN_MAX. No yield. NULL: none. */
    size_t (*foresee)(void *context, const struct run *run, const STORED(CurrentRecord) *current,
                      struct foreseen *tasks);
    struct error *(*decide)(void *context, struct step *step);
    void *context;
};
/* The decision that comes next, if none is pending. For `foresee`. */
size_t shard_foresee_decision(const struct run *run, struct foreseen *tasks);
/* Locks, decides, adopts, submits, unlocks; waits until durable. Yields. Errors: what decide
 * refused with; ERR_DOMAIN_NOT_ACTIVE; ERR_SERVICE_BUSY (no room, nothing was done);
 * ERR_SHARD_OWNERSHIP_LOST, ERR_UNAVAILABLE (try again; it may have been done); ERR_DEADLINE,
 * ERR_CANCELLED. */
must_use struct error *shard_step(struct shard *shard, const struct shard_step *step,
                                  struct arena *arena);

/* One more call of a client on this workflow id. Error: ERR_SERVICE_BUSY, when the id had more of
 * them than its domain allows. Does not yield. */
must_use struct error *shard_admit(struct shard *shard, const struct run_key *key,
                                   struct arena *arena);
/* The workflow ids that are called most, or get most tasks, just now (limits.h). Does not yield. */
size_t shard_hottest(const struct shard *shard, const char *domain_id, size_t count_max,
                     struct arena *arena, struct limits_rate **rates);

/* A run whose workers fail every decision: it is tried again after pauses only. */
struct failing_decision {
    const char *domain_name, *workflow_id, *run_id, *workflow_type, *task_list;
    const char *reason; /* of the newest failure */
    int32_t attempt;
};
/* All that the shard knows of, in any order, at most 1,000. In the arena. Does not yield. */
size_t shard_list_failing(const struct shard *shard, struct arena *arena,
                          struct failing_decision **decisions);

/* What a `prepare` may ask for; all but the first yield. Errors: the store's, as callers see them.
 */

/* The current-run record; NULL: none. Until the next yield. */
const STORED(CurrentRecord) *shard_reader_current(const struct shard_reader *reader);
/* A run of the workflow id; NULL: there is none. What it holds is to be read until the next yield,
 * the run itself until the step ends. */
must_use struct error *shard_reader_run(struct shard_reader *reader, const char *run_id,
                                        const struct run **run);
/* Batches from where one begins, as store_read_lineage_on. */
struct history_range_wanted {
    struct history_lineage lineage;
    int64_t from_event_id, to_event_id;
    size_t bytes_max;
};
must_use struct error *shard_reader_history(struct shard_reader *reader,
                                            const struct history_range_wanted *wanted,
                                            struct arena *arena, struct history_page *page);
/* The same from memory, if all of it was written here lately and is durable; the first one is the
 * batch that holds from_event_id, and bytes_max does not count: little is kept of one branch.
 * False: it is to be read. On the shard's loop, outside of steps too. Does not yield. */
must_use bool shard_recall_history(struct shard *shard, const struct history_range_wanted *wanted,
                                   struct arena *arena, struct history_page *page);
/* The history that a worker needs with a decision, if it is at hand. The same. */
void shard_recall_decision(struct shard *shard, struct arena *arena, struct decision_start *start);
/* Writes batches of a branch that no run has yet, and waits until they are durable. Range id and
 * sequence are filled in. Errors: ERR_SERVICE_BUSY too. */
must_use struct error *shard_reader_write(struct shard_reader *reader,
                                          const struct history_branch *branch,
                                          const struct history_node *nodes, size_t count);
/* What applying old events may look at: the domain, settings, chance. Does not yield. */
must_use struct error *shard_reader_context(struct shard_reader *reader,
                                            struct run_context *context);

/* A reset (A-199 … A-207): *run_id is the run that it made. Errors: those of a step, of command.h.
 */
struct shard_reset {
    const char *domain_id;
    const API(ResetWorkflowExecutionRequest) *request;
    const char *only_current_run_id; /* nothing happens if another run is current; NULL: any */
    uint64_t range_id;               /* as of a step */
};
must_use struct error *shard_reset(struct shard *shard, const struct shard_reset *wanted,
                                   struct arena *arena, const char **run_id);

/* Deletes a closed run, once its parent and children have been notified. `key->run_id` must be set.
 * It is gone already: no error. On the shard's loop. Yields. Errors: as a step. */
must_use struct error *shard_remove(struct shard *shard, const struct run_key *key,
                                    struct arena *arena);
/* Deletes a run, or what there is of it, if what is stored of it cannot be right; see repair.c.
 * Without a run id the current one is meant. On the shard's loop. Yields. Errors: as a step. */
struct shard_repaired {
    bool was_corrupt;
    bool is_history_left; /* nobody knows which of the histories in its tree are its own */
};
must_use struct error *shard_repair(struct shard *shard, const struct run_key *key,
                                    struct arena *arena, struct shard_repaired *repaired);
/* Replaces an open run by what its history says (rebuild.c). On the shard's loop. Yields. Errors:
 * ERR_ENTITY_NOT_EXISTS; ERR_BAD_REQUEST, it is closed; ERR_SERVICE_BUSY, not now; ERR_CORRUPT, its
 * history does not fit. */
struct run_rebuilt {
    const char *run_id;
    uint64_t before, after; /* run_checksum */
};
must_use struct error *shard_rebuild(struct shard *shard, const struct run_key *key,
                                     struct arena *arena, struct run_rebuilt *outcome);
/* Takes in a batch that another cluster decided: see engine/replicated.h. On the shard's loop.
 * Yields. Errors: ERR_BAD_REQUEST, it can be of no history here; ERR_ENTITY_NOT_EXISTS (no such
 * domain); those of a step. */
struct replicated_events;
struct replicated_outcome;
must_use struct error *shard_apply_replicated(struct shard *shard,
                                              const struct replicated_events *events,
                                              struct arena *arena,
                                              struct replicated_outcome *outcome);

/* Calls `look` with the run under the lock; it copies what it needs, without a yield. Then waits
 * until all that it saw is durable; if the shard is lost meanwhile, and is ours again, `look` is
 * called once more, and what it said before counts for nothing. Errors: as above,
 * ERR_ENTITY_NOT_EXISTS. */
must_use struct error *shard_look(struct shard *shard, const struct run_key *key,
                                  void (*look)(void *context, const struct run *run,
                                               const STORED(CurrentRecord) *current),
                                  void *context, struct arena *arena);
/* The same, and makes sure that nobody had overtaken this owner when it looked: what was
 * acknowledged before the call, by whichever owner, was seen. */
must_use struct error *shard_look_surely(struct shard *shard, const struct run_key *key,
                                         void (*look)(void *context, const struct run *run,
                                                      const STORED(CurrentRecord) *current),
                                         void *context, struct arena *arena);

/* What the runs of a shard wait for, for those who want to skip time (idle.c). */
struct shard_idle {
    bool is_busy; /* something is under way: a step, a cross-workflow task, a task that a worker has
                     or may get */
    bool is_timed;    /* some run waits for a time: a timer, the next attempt, a delayed start */
    int64_t next;     /* wall clock: when the first open run wants something; INT64_MAX: never */
    uint64_t changes; /* differs from an earlier look if something happened in between */
};
/* Adds what is true of this shard to what is true of others. On the shard's loop. Yields only to
 * read a run that is not in memory; then it is busy. */
void shard_look_idle(struct shard *shard, struct shard_idle *idle, struct arena *arena);
/* The wall clock has jumped: what is due is done. On the shard's loop; no yield. */
void shard_clock_jumped(struct shard *shard);

/* Makes a request durable (TRANSFER_TYPE_REQUEST: domain, workflow id and the request are set) that
 * is a cross-workflow task from then on: those of one workflow id are done in the order in which
 * they were accepted. `row` lives in the arena. Yields. Errors: ERR_SERVICE_BUSY (no room, nothing
 * was done), ERR_SHARD_OWNERSHIP_LOST, ERR_UNAVAILABLE (try again; it may have been done),
 * ERR_DEADLINE, ERR_CANCELLED. */
must_use struct error *shard_accept(struct shard *shard, STORED(TransferRow) *row,
                                    struct arena *arena);

/* --- the outbox --------------------------------------------------------------------------------
 */

/* A task that was offered needs its row no more: stored by the list, or void. On the shard's loop;
 * rows of another range id are ignored. */
void shard_task_done(struct shard *shard, uint64_t range_id, uint64_t row);

/* From now on rows that are work on other workflows are worked off: all other shards can be asked.
 * On the shard's loop. */
void shard_run_cross_tasks(struct shard *shard);
/* No more of them, and those under way have ended. Before any shard is closed. Yields;
 * cannot be cancelled. */
void shard_stop_cross_tasks(struct shard *shard);

/* --- visibility -----------------------------------------------------------------------------
 */

/* Of what was handed over visibility has rows up to `fed`; those up to `safe` stay there whatever
 * crashes, so their rows may go. On the shard's loop. */
void shard_visibility_stored(struct shard *shard, uint64_t fed, uint64_t safe);
/* Waits until visibility has all that was committed before the call, by whichever owner. On the
 * shard's loop. Yields. Errors: as shard_look_surely. */
must_use struct error *shard_visibility_wait(struct shard *shard, struct arena *arena);
/* Rebuilds the shard's part of visibility from its runs, and waits until it is there. *runs are
 * how many it has. On the shard's loop. Yields. Errors: as shard_look; the store's. */
must_use struct error *shard_visibility_rebuild(struct shard *shard, struct arena *arena,
                                                uint64_t *runs);

/* --- other clusters (replicate.c) ---------------------------------------------------------------
 */

#define REPLICATION_FROM_ACK ((int64_t)-1) /* where the cluster's acknowledgement stands */

struct replication_wanted {
    const struct cluster *cluster; /* who asks */
    int64_t after;                 /* rows behind this one; REPLICATION_FROM_ACK */
    int64_t acknowledged;          /* it needs none up to this; negative: says nothing */
    size_t rows_max, bytes_max;    /* one row comes at least */
    bool can_resync;               /* it reads the runs if it is told to */
};
struct replication_page {
    struct slice *tasks; /* ReplicationTasks in wire form, in order of their rows; in the arena */
    size_t count;
    uint64_t last; /* all up to this row was looked at */
    bool has_more;
    /* Rows up to this are gone and it has not read them: it is to read the runs, and to go on
     * behind it. 0: no such rows; else there are no tasks. */
    uint64_t resync_to;
};
/* What goes to the cluster, all of it durable. On the shard's loop. Yields. Errors: as
 * shard_look; the store's. */
must_use struct error *shard_read_replication(struct shard *shard,
                                              const struct replication_wanted *wanted,
                                              struct arena *arena, struct replication_page *page);
/* The runs of the shard that a cluster has too, from a key on (empty: the first), as they are in
 * the store: at most count_max are looked at. Yields. Errors: as above. */
struct listed_runs {
    struct listed_run {
        struct run_key key;
        struct run_branches branches;
        ADMIN(SyncActivityTaskAttributes) **activities; /* of an open one: what no event says */
        size_t activity_count;
    } * runs;
    size_t count;
    struct slice next; /* empty: these were the last */
};
must_use struct error *shard_list_runs(struct shard *shard, const struct cluster *cluster,
                                       struct slice from, size_t count_max, struct arena *arena,
                                       struct listed_runs *listed);
/* Of a cluster that lost memory and has read what all others know: ends the runs that do not have
 * their id and that it wrote last (failover/zombies.c). Durable when it returns. Yields. Errors: as
 * above. */
must_use struct error *shard_end_zombies(struct shard *shard, struct arena *arena);
/* Of a cluster that lost memory: every other cluster that can shall read all runs of the shard,
 * since rows that it has not read may be among what was lost. Durable when it returns. Yields.
 * Errors: as above. */
must_use struct error *shard_show_runs_again(struct shard *shard, struct arena *arena);
/* One row again, made of what the run has now (E-074). *task is empty: it has it no more. */
must_use struct error *shard_hydrate(struct shard *shard, const STORED(ReplicationRow) *row,
                                     uint64_t number, struct arena *arena, struct slice *task);

/* Who waits for rows behind `after`. On the shard's loop; `fire` is called once, without a yield:
 * there are such rows, or the shard was lost. Then it is in no list any more. */
struct replication_watch {
    struct list node; /* list_init before first use */
    const struct cluster *cluster;
    uint64_t after;
    void (*fire)(struct replication_watch *watch);
};
/* Fires at once (before it returns) if there is something already, or the shard is not owned. */
void shard_watch_replication(struct shard *shard, struct replication_watch *watch);

/* What a cluster sent and cannot be applied (ROW_DEAD_LETTER): kept as a dead letter; all of a
 * source or up to a number forgotten. Durable when they return. On the shard's loop. Yield. Errors:
 * as shard_accept.
 */
must_use struct error *shard_put_dead_letter(struct shard *shard, const char *source, uint64_t row,
                                             STORED(DeadLetterRow) *letter, struct arena *arena);
must_use struct error *shard_forget_dead_letters(struct shard *shard, const char *source,
                                                 uint64_t from, uint64_t to, struct arena *arena);

/* --- waiting for news of a run
 * -------------------------------------------------------------------- */

/* A record of who waits for the next durable events of a run. On the shard's loop. `fire` is called
 * once, without a yield: there are events from `next_event_id` on, or the run is closed, or the
 * shard was lost (is_lost); or, rarely, the run is known no more: so look again. Then it is in no
 * list any more. */
struct run_watch {
    struct list node; /* list_init before first use */
    int64_t next_event_id;
    void (*fire)(struct run_watch *watch, bool is_lost);
    struct watched *watched; /* the shard's; NULL before first use */
};
/* Fires at once (before it returns) if there is something already. `key->run_id` must be set. The
 * shard must be owned; else fires with is_lost. */
void shard_watch(struct shard *shard, const struct run_key *key, struct run_watch *watch);
/* Harmless when it has fired. */
void shard_unwatch(struct shard *shard, struct run_watch *watch);

/* --- queries that wait for a decision
 * ------------------------------------------------------------- */

/* How the wait of a query ended. Numbers stay: they go from host to host. */
enum query_end {
    QUERY_FREE,     /* nothing keeps it any more, or the shard was lost: look at the run again */
    QUERY_ANSWERED, /* with the decision that it rode on; the step is durable */
    QUERY_FULL,     /* too many wait for this run */
    QUERY_REFUSED,  /* the worker of the decision does not know such queries */
};

/* A query that must not be asked before a decision of the run has ended, since events may be there
 * that no worker saw. It rides on the next decision that is started. A record of its owner's, in
 * memory alone: queries change nothing. On the shard's loop; `fire` is called once, without a
 * yield, after which it is in no list any more. */
struct run_query {
    struct list node;   /* list_init before first use */
    const char *id;     /* this and the question stay until it has fired or was taken back */
    struct slice bytes; /* the question: a WorkflowQuery */
    void (*fire)(struct run_query *query, enum query_end end,
                 const API(WorkflowQueryResult) *result);
    /* The shard's. */
    struct queried *queried;    /* NULL before first use */
    int64_t missed_schedule_id; /* the decision that was started before it came, which may not */
    int32_t missed_attempt;     /* know all that it has to; 0 and 0: none was */
};
/* Fires at once (before it returns) if nothing keeps it, or there is no room. `key->run_id` must be
 * set. */
void shard_keep_query(struct shard *shard, const struct run_key *key, struct run_query *query);
/* Harmless when it has fired. */
void shard_drop_query(struct shard *shard, struct run_query *query);
/* The queries that ride on the run's decision, which was just started: copies, in the arena. */
void shard_ride_queries(struct shard *shard, const struct run *run, struct arena *arena,
                        struct decision_start *start);
/* Takes a query out of those that wait: by its id, or any (NULL). NULL: there is none. Who takes it
 * fires it. */
struct run_query *shard_take_query(struct shard *shard, const char *run_id, const char *id);

/* What its owner has in memory; all 0 if it is not owned here. No yield. */
struct shard_state {
    bool is_owned;
    uint64_t range_id;
    size_t runs;                      /* and workflow ids */
    size_t transfers, transfers_held; /* rows of the outbox; of them not active here */
    bool has_unread_transfers;        /* others are in the store only */
    size_t wakeups, wakeups_held;
    int64_t wakeup_level; /* wall clock: whatever was due before it has fired */
};
struct shard_state shard_state(const struct shard *shard);
/* Ends its ownership, if it has it, as if a commit had failed. */
void shard_give_up(struct shard *shard);

#endif
