/* inside.h - what the files of shard/ share. Only files of engine/shard/ include it.
 *
 * A *tenure* is one time of ownership: from the commit that raised the range id until the shard is
 * lost or closed. Everything that the owner knows belongs to it, so losing the shard is dropping
 * one thing. Whoever works in a tenure has entered it (a count), and it is freed when the last one
 * has left: a fiber that comes back from a wait finds it whole, asks is_over, and goes. */
#ifndef CADENZA_ENGINE_SHARD_INSIDE_H
#define CADENZA_ENGINE_SHARD_INSIDE_H

#include "base/limit.h"
#include "base/priority.h"
#include "base/tree.h"
#include "engine/shard/shard.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "store/key.h"

#define RUNS_MAX      1024              /* runs and workflow ids in memory */
#define BATCHES_MAX   4096              /* that wait to be committed */
#define TRANSFERS_MAX 65536             /* rows of the outbox in memory */
#define ALARMS_MAX    16384             /* alarms in memory */
#define RECENT_MAX    ((size_t)2 << 20) /* bytes of history batches in memory */
#define RECENT_SHARE  8                 /* of which one branch may have one part in so many */

/* Numbers of a range: (range id << 24) | counter. A step may use as many as are kept back. */
#define RANGE_BITS  24
#define RANGE_SPARE ((uint64_t)1 << 20)

/* --- workflow ids (workflows.c) ---- */

struct loaded_run {
    struct list node; /* in workflow->runs */
    struct run *run;
    unsigned undurable; /* steps of it that are not durable yet */
    /* What watchers may know. */
    int64_t durable_next_event_id;
    bool is_durably_closed;
    bool is_replaced; /* by another history, in the step that is about to be submitted */
};

/* A workflow id that is in use or was lately. */
struct workflow {
    struct list node; /* in workflows.idle while nobody has a pin */
    const char *domain_id, *workflow_id;
    struct fiber_mutex lock;
    unsigned pins; /* fibers that hold it, and steps that are not durable */
    bool has_current;
    const STORED(CurrentRecord) *current; /* once has_current: NULL is none */
    struct arena *current_arena;
    struct list runs; /* struct loaded_run */
    ticket_t newest;  /* of the newest step of this id */
};

struct workflows {
    struct map *by_key;
    struct list idle;      /* without a pin, the longest unused first */
    struct list undurable; /* struct aftermath, by ticket */
    size_t weight;         /* ids and runs */
    size_t weight_max;
};

/* What a step leaves to be done once it is durable. */
#define STEP_RUNS_MAX 4 /* the run of the wish, one that begins, gives way, has its id back */
struct aftermath {
    struct list node;
    ticket_t ticket;
    struct workflow *workflow; /* pinned */
    struct aftermath_run {
        struct loaded_run *loaded;
        int64_t next_event_id;
        bool is_closed, is_replaced;
    } runs[STEP_RUNS_MAX];
    size_t run_count;
};

/* --- the outbox (outbox.c) ---- */

enum transfer_state {
    TRANSFER_UNDURABLE, /* in outbox.undurable, by ticket */
    TRANSFER_WAITING,   /* in outbox.waiting */
    TRANSFER_REFUSED,   /* in outbox.refused */
    TRANSFER_HELD,      /* in outbox.held: its run is not active here */
    TRANSFER_DELAYED,   /* in the queue of its workflow id (pace.c) */
    TRANSFER_OFFERED,   /* in no list */
};

struct transfer {
    struct list node;
    enum transfer_state state;
    ticket_t ticket;
    struct task task; /* its texts lie behind it; of an errand only the row and the run's domain */
    const char *attribute_scope, *attribute_name; /* of the run; NULL: none */
    int64_t event_version;                        /* of the run when the row was written */
    bool is_errand;
    bool goes_anywhere; /* its run need not be active here */
    bool tells_parent;  /* ... where workflows of the domain are active in several clusters */
    bool is_paced;      /* of a task: it has waited for its turn */
    bool is_resting;    /* counted as such (park.c) */
    bool is_counted;    /* as one of an entity whose region its domain does not have */
    bool was_parked;
    bool is_repeat;             /* of an errand: it was begun before, or may have been */
    unsigned attempts;          /* that came to nothing: it failed, or was refused */
    struct priority_node retry; /* in errands.delayed; by monotonic time */
    uint64_t cursor;            /* where its next portion begins */
    struct slice line;          /* names the line that it stands in, lies behind it; empty: none */
};

/* Rows that are work on other workflows (errands.c). */
struct errands {
    struct list ready;       /* struct transfer */
    struct priority delayed; /* struct transfer, which failed, by when it is tried again */
    struct list elsewhere;   /* those of them that failed since a domain is not active here */
    uint64_t sequence;
    unsigned running;
    struct map *lines;     /* name → struct line: who waits until others are done */
    size_t accepted_count; /* rows that stand in lines, or will */
};

/* Tasks that wait because their workflow id had too many (pace.c). */
struct pace {
    struct map *queues;    /* domain id, NUL, workflow id → struct pace_queue */
    struct priority turns; /* of the queues, by when the next task may go */
    struct list hungry;    /* queues whose next tasks are in the store only */
    uint64_t sequence;
    int64_t tick_time; /* monotonic: when the limits want to know the time; NEVER: they do not */
};

/* What a parked row waits for (park.c). */
enum parked_for {
    PARKED_FOR_DOMAIN = 1,
    PARKED_FOR_RETRY,
    PARKED_FOR_TURN, /* its queue knows it */
};

/* Rows that wait for long and of which memory keeps no more than the number (park.c). */
struct parking {
    struct map64 *rows; /* row → enum parked_for, as a pointer */
    size_t rows_max;
    size_t resting;  /* known rows that wait for long */
    size_t returned; /* known rows that were parked */
    uint64_t low;    /* no row that is or was parked and is not gone is lower; 0: there is none */
    uint64_t cursor; /* rows from here on are to be looked at, which may go on; 0: none */
    bool is_changed; /* a domain has, since that began */
    int64_t retry_time; /* monotonic: when those that failed may go on; NEVER: none has */
    int64_t read_time;  /* monotonic: not before, after a scan that failed */
};

struct outbox {
    struct map64 *known; /* row → struct transfer, rows rising; exactly those we may delete */
    struct list undurable, waiting, refused, held;
    size_t known_max;
    /* Rows from here on are in the store and not known; 0: none is. While it is set, new rows stay
     * out of memory too, so that a scan and a step can never both bring one in. */
    uint64_t unread_from;
    ticket_t unread_ticket; /* of the newest step that left rows there */
    int64_t read_time;      /* monotonic: not before, after a scan that failed */
    /* Rows from here on may be on their way into the store with a batch that is being submitted,
     * and are not known yet. */
    uint64_t entered_to;
    vector_of(uint64_t) deletes; /* done, and not yet in a batch */
    int64_t flush_time;          /* monotonic: when the deletes go on their own; NEVER: none */
    int64_t retry_time;          /* when refused ones are offered again; NEVER: none */
    struct errands errands;
    struct pace pace;
    struct parking parking;
    struct fiber_cond changed;
};

/* Errands that are done one after the other (accept.c). */
struct line {
    size_t count;                 /* known rows of it, also those that do not stand in it yet */
    const struct transfer *first; /* ready, delayed or under way; NULL: none stands in it */
    struct list waiting;          /* struct transfer, behind it */
};

/* --- alarms (alarms.c) ---- */

enum alarm_state {
    ALARM_WAITING, /* in alarms.waiting */
    ALARM_DELAYED, /* in alarms.delayed: it failed and is tried again */
    ALARM_HELD,    /* in alarms.held: its run is not active here */
    ALARM_RINGING, /* in alarms.ringing, a fiber has it */
};

struct alarm {
    enum alarm_state state;
    struct list node; /* in alarms.ringing, alarms.delayed or alarms.held */
    struct tenure *tenure;
    int64_t time; /* wall clock; of the row's key */
    uint64_t row;
    struct run_key key; /* texts lie behind it */
    bool is_gone;       /* replaced while it rang: its fiber frees it */
    unsigned attempts;
    int64_t retry_time; /* monotonic */
};

/* Of a row's key. */
struct alarm_place {
    int64_t time;
    uint64_t row;
};
#define ALARM_PLACE_END ((struct alarm_place){INT64_MAX, UINT64_MAX})

struct alarms {
    struct tree *waiting; /* key of the row → struct alarm */
    struct map64 *by_row;
    struct list delayed, held, ringing;
    size_t delayed_count, held_count, ringing_count;
    size_t count_max;
    struct alarm_place horizon; /* rows before it are in memory, others may be in the store only */
    /* Some from here on are in the store only, since they are not active here and too many are
     * held; ALARM_PLACE_END: none is. */
    struct alarm_place left;
    struct map *left_domains; /* ids of the domains of these */
    bool is_left_due;         /* one of these has changed: they are read once more */
    bool is_reading;          /* a scan runs: new alarms come into memory wherever they lie */
    int64_t level; /* timer read level: no row is before it; one that is written there lowers it */
    int64_t read_retry_time; /* monotonic: not before, after a scan that failed */
    struct fiber_cond changed;
};

/* --- the shard's view of the domains (view.c) ---- */

struct view {
    uint64_t handled;   /* notification version that steps are decided on: its batch is submitted */
    uint64_t failovers; /* that were handled up to there, in the shard's whole life */
    ticket_t ticket;    /* of the newest batch that moved it */
    uint64_t missed_from; /* what the last owner had handled */
    /* What this loop has heard of since then. */
    uint64_t known, failovers_known;
    vector_of(struct domain *) changed; /* in order; one reference each */
    bool has_entities_changed;          /* rows of the entity table, too */
    /* Runs that entities may have moved are walked over; once more when that is done. */
    bool is_walking, is_walk_due;
    /* How far the domains were told that it is, for trimming their log; 0: not yet. */
    uint64_t noted;
    bool is_noting;
};

/* --- lists of runs (visible.c) ---- */

struct visible {
    struct list undurable; /* struct visible_parcel, by ticket */
    /* Rows from here on were not handed over, and are in the store only; 0: none. While it is set,
     * new rows stay out of memory too. At first all are unread. */
    uint64_t unread_from;
    ticket_t unread_ticket; /* of the newest step that left rows there */
    bool is_begun;          /* it is known what the lists have */
    uint64_t given;         /* newest row that was handed over */
    uint64_t fed, safe;     /* shard_visible_told */
    uint64_t trimmed;       /* rows up to this are gone; the shard record says so */
    bool is_without;        /* older versions wrote no rows: the lists lack runs */
    int64_t trim_time;      /* monotonic: not before */
    /* Asked for, begun, done so often; what the last one came to. */
    uint64_t rebuilds_wanted, rebuilds_done, rebuilt_runs;
    struct fiber_cond changed;
};

/* --- history batches that were written lately (recent.c) ---- */

struct recent {
    struct map *by_branch; /* struct history_branch → struct recent_branch */
    struct list used;      /* the longest unused first */
    size_t bytes, bytes_max;
};

/* --- rows for other clusters (replicate.c) ---- */

/* A row in memory, and what is told of it. */
struct replica {
    struct list node;
    uint64_t row;
    ticket_t ticket;
    uint64_t clusters; /* a bit for each cluster of the group that is to hear of it */
    struct slice task; /* a ReplicationTask as it goes out; of an activity: the row itself */
    bool is_activity;
};

/* Another cluster of the group, in its order. */
struct replication_peer {
    uint64_t ack;    /* it needs no row up to this */
    uint64_t lost;   /* rows up to this were dropped, though it may need them */
    bool can_resync; /* then it reads the runs instead */
    bool is_far;     /* it is further behind than rows are kept for, and was told of */
    uint64_t handed; /* it was given all up to this, in this tenure */
};

struct replicating {
    struct list recent; /* struct replica, rows rising: all from memory_from on that one needs */
    size_t bytes, bytes_max;
    uint64_t memory_from;
    uint64_t durable; /* rows up to this are in the store, if they are at all */
    struct replication_peer *peers;
    uint64_t handed;             /* the highest of all */
    uint64_t trimmed;            /* rows up to this are gone; the shard record says so */
    int64_t trim_time;           /* monotonic: not before */
    vector_of(uint64_t) deletes; /* single ones above that, not yet in a batch */
    struct map *activities;      /* run id and schedule id → the newest struct replica */
    struct list watches;         /* struct replication_watch */
    uint64_t index_next;         /* of the next row */
    struct fiber_mutex parking;  /* one letter at a time */
    bool has_letters_counted;    /* nothing was parked or forgotten since */
    struct fiber_cond over;      /* for replicate_watch_fiber */
};

/* --- markers of failovers (markers.c) ---- */

/* One that the rows for other clusters do not have yet. */
struct marker {
    struct list node;
    const char *domain_id, *scope, *name; /* lie behind it; the last two "": the domain itself */
    int64_t failover_version;
    int64_t creation_time;
    uint64_t order; /* in which they were heard of */
};
struct markers {
    struct list due; /* struct marker; the shard record has the same */
    uint64_t newest; /* order */
};

/* --- tenures (shard.c) ---- */

/* --- polls at hand (claims.c) ---- */

#define CLAIMS_LUCK 64
struct claims_luck {
    uint8_t misses; /* times 2 + 1 for each that was in vain */
    uint8_t skips;  /* that are left */
};
struct tenure_claims {
    struct list handovers;                /* struct handover, in order of their tickets */
    struct claims_luck luck[CLAIMS_LUCK]; /* by a hash of the list */
};
struct handover;
/* Of one step. */
struct claims {
    struct claimed {
        struct foreseen task;
        struct claim *claim;       /* NULL: no poll is at hand */
        struct handover *handover; /* NULL: the step did not start the task */
    } all[FORESEEN_MAX];
    size_t count;
    bool had_decision; /* the run had one before the step */
};

struct tenure {
    struct shard *shard;
    struct arena *arena;  /* of the failure */
    uint64_t range_first; /* range ids of this tenure: from this one ... */
    uint64_t range_id;    /* ... to this one */
    struct row_ids ids;
    struct writer *writer;
    bool is_over;          /* lost or closed */
    struct error *failure; /* why it was lost */
    struct latch users;
    struct workflows workflows;
    struct outbox outbox;
    struct alarms alarms;
    struct view view;
    struct visible visible;
    struct recent recent;
    struct replicating replicating;
    struct tenure_claims claims;
    struct markers markers;
    struct {
        struct map *runs;   /* run id → struct failing_run */
        struct limit lines; /* of the log */
        uint64_t left_out;  /* lines since the last one */
    } failing;
    struct map *watched; /* run id → struct watched */
    struct map *queried; /* run id → struct queried */
    int64_t record_time; /* monotonic: when the shard record was last written */
    bool is_record_due;
};

/* --- what /metrics tells (figures.c) ---- */

enum task_figure { FIGURE_DECISION, FIGURE_ACTIVITY, FIGURE_TIMER };
#define FIGURE_TASKS 3

struct task_series {
    struct counter *requests;
    struct histogram *latency;
    struct histogram *attempts; /* NULL: of a domain */
};

/* What came of events of other clusters. */
enum foreign_figure {
    FIGURE_APPLIED,
    FIGURE_KNOWN,
    FIGURE_LACKING,
    FIGURE_FORKED,
    FIGURE_SWITCHED,
    FIGURE_ZOMBIES,
    FIGURE_LOST,
    FIGURE_FOREIGN_COUNT
};

/* All NULL without metrics. The series are the same for all shards. */
struct figures {
    struct metrics *metrics;
    struct counter *taken, *lost;
    struct gauge *owned;
    struct counter *cache_requests, *cache_misses;
    struct gauge *cache_size;
    struct histogram *cache_latency;
    struct task_series tasks[FIGURE_TASKS];
    struct counter *foreign[FIGURE_FOREIGN_COUNT];
    struct counter *homeless, *pending;
    struct counter *markers_failed;
    struct counter *levels_lowered;
    struct map *domains; /* id → struct domain_figures */
    struct arena *arena; /* of those */
};

struct shard {
    struct shard_options options;
    struct partition partition;
    struct random random;
    struct tenure *tenure; /* NULL: not owned */
    struct domain_listener listener;
    struct fiber_mutex taking;
    unsigned failures; /* takes in a row that came to nothing */
    int64_t take_time; /* monotonic: no take before this */
    bool is_retaking;  /* a fiber tries to take it again */
    bool is_closing;
    struct fiber_cond changed;
    struct latch busy; /* fibers of the shard itself: burials, retaking */
    bool runs_errands;
    struct latch errands; /* fibers, of all tenures */
    struct id_limits *limits;
    struct figures figures;
    unsigned archiving;       /* runs on their way into the archive */
    int64_t archive_log_time; /* monotonic: a failure is told not before */
#ifdef CADENZA_PLANT_stale_cache_kept
    struct tenure *buried; /* the last one, not freed yet */
#endif
};

/* Begins with this range id; knows nothing yet. */
struct tenure *tenure_new(struct shard *shard, uint64_t range_id);
/* Reads what the last owner left. Yields. */
must_use struct error *tenure_read(struct tenure *tenure, struct arena *arena);
/* From now on nobody enters, and those who are in leave as soon as they run; then it is freed. */
void tenure_end(struct tenure *tenure);
/* Ends it because of a failure, and takes the shard again if nobody else may. */
void shard_lose(struct tenure *tenure, const struct error *failure);
/* Nobody is in it. Yields. */
void tenure_free(struct tenure *tenure);
/* An error of the store as callers are told. */
must_use struct error *tenure_told_error(const struct error *failure, struct arena *arena);
/* Enters the tenure, taking the shard if `range_id` is 0; tenure_leave when done. Yields. Errors:
 * ERR_SHARD_OWNERSHIP_LOST, ERR_UNAVAILABLE. */
must_use struct error *tenure_enter(struct shard *shard, uint64_t range_id, struct arena *arena,
                                    struct tenure **tenure);
void tenure_leave(struct tenure *tenure);
/* Why a tenure that is over ended, as a caller is told. */
must_use struct error *tenure_error(const struct tenure *tenure, struct arena *arena);
/* Waits until a ticket is durable. Yields. Errors: as a caller is told. */
must_use struct error *tenure_wait(struct tenure *tenure, ticket_t ticket, struct arena *arena);
/* What was read is ours to use if nobody has overtaken us: else it may be newer than what we have
 * in memory, and nothing fits together. The store is asked where there can be another owner.
 * Yields. Errors: the shard is lost then. */
must_use struct error *tenure_check_owned(struct tenure *tenure, struct arena *arena);
/* A whole range of numbers, for whoever needs many at once: *first … *end - 1. Later ones are all
 * higher. */
void tenure_reserve_range(struct tenure *tenure, uint64_t *first, uint64_t *end);
/* Begins a range of numbers if the old one is nearly used up. Before facts are made of it. */
void tenure_renew_range(struct tenure *tenure);
/* A batch of this tenure, and the end of one: what is to be written by the way goes into it. */
struct batch *tenure_batch(struct tenure *tenure, struct arena *arena);
ticket_t tenure_submit(struct tenure *tenure, struct batch *batch);
/* Starts a fiber that has entered the tenure. */
void tenure_start_fiber(struct tenure *tenure, const char *name, void (*function)(void *argument),
                        void *argument);

/* --- claims.c ---- */

void claims_init(struct tenure *tenure);
/* Claims polls for what the step will probably leave. Under the lock of the id; yields. */
void claims_ask(struct tenure *tenure, const struct shard_step *wanted, const struct run *run,
                const struct workflow *workflow, struct claims *claims);
/* Starts what there is a poll for, as part of the step. */
void claims_start(struct tenure *tenure, const struct step *step, struct claims *claims);
/* The step was submitted, or came to nothing: then nothing was started. Polls that are not needed
 * go back. */
void claims_settle(struct tenure *tenure, struct claims *claims, ticket_t ticket);
/* Polls take home what is durable. */
void claims_release(struct tenure *tenure, ticket_t durable);
/* Nobody knows what became of the others. */
void claims_lose(struct tenure *tenure);

/* --- figures.c ---- */

void figures_init(struct shard *shard);
void figures_free(struct shard *shard);
/* The shard was taken, or is not ours any more. */
void figures_taken(struct shard *shard);
void figures_ended(struct shard *shard);
/* A run was looked for in memory. */
void figures_cache_asked(struct shard *shard, bool was_there);
/* So many more ids and runs in memory. */
void figures_cache_grew(struct shard *shard, int64_t by);
/* Somebody has waited for a workflow id since then (monotonic). */
void figures_cache_waited(struct shard *shard, int64_t began);
/* A task was handed over; an alarm has rung. */
void figures_task(struct shard *shard, const struct task *task, unsigned attempts);
void figures_alarm(struct shard *shard, const struct alarm *alarm);
/* Events of another cluster came. */
void figures_foreign(struct shard *shard, enum foreign_figure figure);
/* A row or alarm waits for the end of a graceful failover to here. */
void figures_pending(struct shard *shard);
/* A row is held that no cluster works off. */
void figures_homeless(struct shard *shard);
/* A marker that is due could not be put. */
void figures_marker_failed(struct shard *shard);
/* The wall clock was found behind the shard's timer read level. */
void figures_level_lowered(struct shard *shard);
/* A run is durably closed. */
void figures_closed(struct shard *shard, const struct run *run);

/* --- workflows.c ---- */

void workflows_init(struct tenure *tenure, size_t weight_max);
void workflows_free(struct tenure *tenure);
/* The id, pinned and locked; workflow_unlock when done. Yields. */
must_use struct error *workflow_lock(struct tenure *tenure, const struct run_key *key,
                                     struct arena *arena, struct workflow **workflow);
void workflow_unlock(struct tenure *tenure, struct workflow *workflow);
/* Reads the current-run record, if it is not known. Locked. Yields. */
must_use struct error *workflow_load_current(struct tenure *tenure, struct workflow *workflow,
                                             struct arena *arena);
/* The run, from memory or the store; NULL: none. Locked. Yields. */
must_use struct error *workflow_load_run(struct tenure *tenure, struct workflow *workflow,
                                         const char *run_id, struct arena *arena,
                                         struct loaded_run **loaded);
/* The id as it is in memory, without pin and lock; NULL: not there. */
struct workflow *workflow_find(struct tenure *tenure, const struct run_key *key,
                               struct arena *arena);
struct loaded_run *workflow_find_run(const struct workflow *workflow, const char *run_id);
/* A run that a step began. */
struct loaded_run *workflow_add_run(struct tenure *tenure, struct workflow *workflow,
                                    struct run *run);
void workflow_set_current(struct workflow *workflow, const STORED(CurrentRecord) *current);
/* The run has another history for its own: it is as it was rebuilt. The old one is freed. */
void workflow_replace_run(struct loaded_run *loaded, struct run *run);
/* Pins the id until the ticket is durable. */
struct aftermath *workflow_add_aftermath(struct tenure *tenure, struct workflow *workflow,
                                         ticket_t ticket);
void aftermath_add_run(struct aftermath *aftermath, struct loaded_run *loaded);
/* Steps up to this ticket are durable. */
void workflows_release(struct tenure *tenure, ticket_t durable);

/* --- step_batch.c: all that a step means, as one batch; no yields ---- */

struct step_batch {
    struct tenure *tenure;
    struct workflow *workflow; /* locked */
    struct arena *arena;
    struct batch *batch;
    struct step_batch_run {
        struct run *run;
        struct loaded_run *loaded; /* NULL: it begins */
        struct effects effects;
        const struct domain *domain;
    } runs[STEP_RUNS_MAX];
    size_t count;
};
void step_batch_begin(struct step_batch *commit, struct tenure *tenure, struct workflow *workflow,
                      struct arena *arena);
/* Finishes a mutation, of a run that begins (NULL), is loaded, or takes the place of one that is.
 */
void step_batch_add(struct step_batch *commit, struct mutation *mutation,
                    struct loaded_run *loaded);
/* The workflow id has this run now, as it is. */
void step_batch_put_current(struct step_batch *commit, const struct run *run);
ticket_t step_batch_submit(struct step_batch *commit);
bool workflow_has_current(const struct workflow *workflow, const struct run *run);

/* --- settle.c ---- */

/* Was the run last written by an earlier version than that of the facts, and is there something to
 * settle before it goes on here? Not if it never left: the version of an active-active domain rises
 * with each of its attributes that moves. */
bool tenure_must_settle(const struct tenure *tenure, const struct run *run,
                        const struct facts *facts);
/* Does it, as a commit of its own. has_news: a decision is due in any case. There is room. No
 * yield. */
ticket_t tenure_settle(struct tenure *tenure, struct workflow *workflow, struct loaded_run *loaded,
                       const struct facts *facts, bool has_news, struct arena *arena);

/* What was taken while a decision was started is in the history, with the version of its last
 * event: the decision fails (E-009). A commit of its own; there is room. No yield. */
ticket_t tenure_write_buffered(struct tenure *tenure, struct workflow *workflow,
                               struct loaded_run *loaded, const struct facts *facts,
                               struct arena *arena);

/* --- handover.c ---- */

/* If the domain has moved since that notification version: a fiber goes through its open runs. No
 * yield. */
void handover_begin(struct tenure *tenure, const struct domain *domain, uint64_t version);
/* Entities have changed: the same for the runs of all domains that have some, in one walk, however
 * many change meanwhile. */
void handover_begin_entities(struct tenure *tenure);
/* The same in any case. When all runs are handed over, markers of the domain that were due before
 * are put. */
void handover_start(struct tenure *tenure, const char *domain_id);

/* --- markers.c ---- */

void markers_init(struct tenure *tenure);
void markers_free(struct tenure *tenure);
/* What the shard record says; and the other way. */
void markers_begin(struct tenure *tenure, const STORED(ShardRecord) *record);
void markers_note(const struct tenure *tenure, STORED(ShardRecord) *record, struct arena *arena);
/* A change of a domain is being handled: markers that it makes due, if it moved since that
 * notification version, are part of the record from now on. */
void markers_hear(struct tenure *tenure, const struct domain *domain, uint64_t before);
/* Those that a cluster waits for are put once more. No yield. Errors: as of a step, nothing was
 * done. */
must_use struct error *markers_repeat(struct tenure *tenure, const struct cluster *target,
                                      struct arena *arena);
/* Is one of the domain due? */
bool markers_has(const struct tenure *tenure, const char *domain_id);
/* Puts those that were heard of up to `order`, behind all that was submitted, and they are due no
 * more. There is room. No yield. */
void markers_put(struct tenure *tenure, const char *domain_id, uint64_t order, struct arena *arena);
/* The shard was taken: what the last owner left is gone on with. */
void markers_resume(struct tenure *tenure);

/* --- outbox.c ---- */

void outbox_init(struct tenure *tenure, size_t known_max);
void outbox_free(struct tenure *tenure);
/* Rows from `level` on are in the store: reads as many as there is room for. Yields. */
must_use struct error *outbox_begin(struct tenure *tenure, uint64_t level, struct arena *arena);
/* The row is not needed any more: it goes with this batch, if it is known. */
void outbox_drop(struct tenure *tenure, uint64_t row, struct batch *batch);
/* Rows that a submitted batch has put. */
void outbox_enter(struct tenure *tenure, const struct effects *effects, ticket_t ticket);
void outbox_release(struct tenure *tenure, ticket_t durable);
/* Puts what waits to be deleted into a batch. */
void outbox_fill(struct tenure *tenure, struct batch *batch);
/* No row is below this, nor will be. */
uint64_t outbox_level(const struct tenure *tenure);
/* Offers, reads on, deletes; ends with the tenure. */
void outbox_fiber(void *tenure);

/* A row is done: it goes with the next batch. Harmless when it is not known. */
void outbox_done(struct tenure *tenure, uint64_t row);
/* Is there room to read rows that are in the store only? */
bool outbox_has_room(const struct outbox *outbox);
/* A row has left memory: if there is room now, whoever waited for it goes on. */
void outbox_room_came(struct outbox *outbox);
/* Is the row in the store, or can that not be said? */
bool outbox_may_have(const struct outbox *outbox, uint64_t row);
/* A row that was parked is known again, in no list. */
void outbox_return(struct tenure *tenure, struct transfer *transfer, enum transfer_state state);
/* A row as memory has it, not known yet. Errors: ERR_CORRUPT. */
must_use struct error *transfer_read(struct tenure *tenure, uint64_t row, struct slice value,
                                     struct arena *arena, struct transfer **transfer);

/* --- park.c ---- */

void parking_init(struct outbox *outbox);
void parking_free(struct outbox *outbox);
/* A known row, in no list, is going to wait for long. False: it was parked and is no more. */
must_use bool transfer_rest(struct outbox *outbox, struct transfer *transfer, enum parked_for why);
/* Parks it in any case. */
void transfer_park(struct outbox *outbox, struct transfer *transfer, enum parked_for why);
/* It waits no more, or goes. */
void transfer_stir(struct outbox *outbox, struct transfer *transfer);
/* The row is parked, for this; it is not any more. */
must_use bool parking_has(const struct outbox *outbox, uint64_t row, enum parked_for why);
bool parking_take(struct outbox *outbox, uint64_t row);
/* A known row that was parked is gone. */
void parking_forget(struct outbox *outbox);
/* A domain has changed: what is parked for one is looked at. */
void parking_domain_changed(struct outbox *outbox);
/* Takes back what may go on, one page. Yields. */
void parking_work(struct tenure *tenure);
/* When it has something to do, as it stands at this moment; NEVER: nothing. */
int64_t parking_next_time(const struct outbox *outbox);

/* --- errands.c ---- */

void errands_init(struct tenure *tenure);
/* A row in no list that is to be worked off. */
void errands_add(struct tenure *tenure, struct transfer *transfer);
/* Starts what may be started. */
void errands_start(struct tenure *tenure);
/* A domain has changed: those that waited for one are tried at once. */
void errands_domain_changed(struct tenure *tenure);
/* It is gone: so is its place among those that are tried again. */
void errand_forget(struct errands *errands, struct transfer *transfer);
void errands_free(struct tenure *tenure);
/* Those that failed and whose time has come are ready again. */
void errands_wake(struct tenure *tenure);
/* When the next one is, as it stands at this moment; NEVER: none. */
int64_t errands_next_time(const struct errands *errands);

/* --- accept.c ---- */

/* A row that is known from now on will stand in its line. */
void line_join(struct errands *errands, const struct transfer *transfer);
/* May it be done now? Else it stands in its line until those before it are gone. */
must_use bool line_enter(struct errands *errands, struct transfer *transfer);
/* It is gone; the next of its line is ready. */
void line_leave(struct errands *errands, const struct transfer *transfer);
void lines_free(struct errands *errands);

/* --- pace.c ---- */

void pace_init(struct tenure *tenure);
void pace_free(struct tenure *tenure);
/* Is a task that was never offered to wait for the limit of its workflow id? Then it is in a queue
 * there. */
bool pace_holds(struct tenure *tenure, struct transfer *transfer);
/* Takes the turn of a task that goes to a worker without a row; `context` is the tenure. See
 * struct facts. */
bool pace_take(void *context, const char *domain_id, const char *workflow_id);
/* Moves those whose turn it is to `waiting`, as TRANSFER_WAITING. */
void pace_wake(struct tenure *tenure);
/* When the next one's is, as it stands at this moment; NEVER: none waits. */
int64_t pace_next_time(const struct pace *pace);
/* Reads the next tasks of queues whose tasks are parked. Yields. */
void pace_feed(struct tenure *tenure, struct arena *arena);

/* --- alarms.c ---- */

void alarms_init(struct tenure *tenure, size_t count_max);
void alarms_free(struct tenure *tenure);
/* Alarms from `level` on are in the store: reads as many as there is room for. Yields. */
must_use struct error *alarms_begin(struct tenure *tenure, int64_t level, struct arena *arena);
/* Writes what a step means for the alarm of its run: rows into the batch, and in memory. */
void alarms_put(struct tenure *tenure, const struct run *run, const struct effects *effects,
                struct batch *batch);
/* Its run goes: so does the row of its alarm. */
void alarms_drop(struct tenure *tenure, const struct run *run, struct batch *batch);
/* Where an alarm goes whose time has passed: see struct facts. */
int64_t alarms_time_min(const struct tenure *tenure);
/* Moves the timer read level on, as far as memory shows. */
int64_t alarms_raise_level(struct tenure *tenure);
/* Is there room to read on; reads one page. The second yields. */
bool alarms_may_read(const struct alarms *alarms);
must_use struct error *alarms_read(struct tenure *tenure, struct arena *arena);
/* One that rang and is not active here is left to the store; they are read again when their domain
 * has changed. */
void alarm_leave(struct alarm *alarm);
void alarms_return(struct tenure *tenure);
/* Takes a waiting alarm out of the queue; tries one again later, and later each time. */
void alarm_stop_waiting(struct alarm *alarm);
void alarm_delay(struct alarm *alarm);

/* --- held.c: what waits for its domain to be active here; no yield ---- */

/* Is the run of the row active here? */
bool transfer_is_active(const struct tenure *tenure, const struct transfer *transfer);
/* In no list; it goes on when it is. */
void transfer_hold(struct tenure *tenure, struct transfer *transfer);
/* Counts it if its domain does not say where its run is active; one of an entity once. */
void transfer_count_homeless(struct tenure *tenure, struct transfer *transfer);
/* Keeps a task that was to be started, though its run is not active here; there is room. Returns
 * the ticket after which the list may forget it. */
ticket_t tenure_keep_task(struct tenure *tenure, const struct task *task, const struct run *run,
                          struct arena *arena);
/* Keeps an alarm that rang. */
void alarm_hold(struct alarm *alarm);
/* The domain has changed: what waits for it goes on, or is held again. */
void held_wake(struct tenure *tenure, const struct domain *domain);
/* Entities have changed: the same for what belongs to one. */
void held_wake_entities(struct tenure *tenure);

/* --- ring.c ---- */

/* Rings; ends with the tenure. */
void alarms_fiber(void *tenure);

/* --- visible.c ---- */

void visible_init(struct tenure *tenure);
void visible_free(struct tenure *tenure);
/* What the shard record says; NULL: there is none yet. And the other way. */
void visible_begin(struct tenure *tenure, const STORED(ShardRecord) *record);
void visible_note(const struct tenure *tenure, STORED(ShardRecord) *record);
/* How a run looks after a step that is about to be submitted: told to the lists once durable. */
void visible_enter(struct tenure *tenure, const struct run *run, const struct domain *domain,
                   uint64_t row, struct arena *arena);
/* The run goes with this batch, before which the range was renewed: lists are told so. */
void visible_put_gone(struct tenure *tenure, const struct run_key *key, struct batch *batch);
void visible_release(struct tenure *tenure, ticket_t durable);
/* Deletes by the way what the lists have safely. */
void visible_fill(struct tenure *tenure, struct batch *batch);
/* Hands over what is in the store only, makes lists anew; ends with the tenure. */
void visible_fiber(void *tenure);
/* Hands over a change. False: no room now, it stays the caller's. */
bool visible_hand_over(struct tenure *tenure, struct visible_parcel *parcel);
/* Hands over a run as its record says, or that it is gone (NULL). False: no room now. */
bool visible_give(struct tenure *tenure, const struct run_key *key, const STORED(RunRecord) *core,
                  uint64_t row, struct arena *arena);
/* All rows are left to the store from here on. */
void visible_leave_from(struct tenure *tenure, uint64_t row);

/* --- replicate.c ---- */

void replicate_init(struct tenure *tenure);
void replicate_free(struct tenure *tenure);
/* What the shard record says (yields; errors: the store's); and the other way. */
must_use struct error *replicate_begin(struct tenure *tenure, const STORED(ShardRecord) *record,
                                       struct arena *arena);
void replicate_note(const struct tenure *tenure, STORED(ShardRecord) *record, struct arena *arena);
/* Rows of a step that is about to be submitted go into its batch. */
struct step_batch;
void replicate_put(const struct step_batch *commit);
/* A row for all other clusters of the domain: it has moved. */
void replicate_put_marker(struct tenure *tenure, const struct domain *domain,
                          STORED(FailoverMarker) *marker, struct batch *batch);
/* Names an activity among those that have rows in memory. */
struct slice replicate_activity_key(const struct run_key *key, int64_t schedule_id,
                                    struct arena *arena);
void replicate_release(struct tenure *tenure, ticket_t durable);
/* Deletes by the way what nobody needs any more. */
void replicate_fill(struct tenure *tenure, struct batch *batch);
/* The tenure is over. */
void replicate_lose(struct tenure *tenure);
/* A cluster needs no row up to this any more. */
void replicate_ack(struct tenure *tenure, size_t cluster, uint64_t row);
/* It gets none up to the newest durable one: it will have to read the runs. */
void replicate_drop(struct tenure *tenure, size_t cluster);
/* The row up to which the cluster is not waited for. */
uint64_t replicate_level(const struct tenure *tenure, size_t cluster);
/* Looks now and then how far clusters are behind; drops what is too much (replicate_watch.c). */
void replicate_watch_fiber(void *tenure);
/* Fills it from a pending activity; false: there is nothing to tell. In the arena. */
ADMIN(SyncActivityTaskAttributes) *replicate_tell_activity(const struct run *run,
                                                           const STORED(PendingActivity) *activity,
                                                           struct arena *arena);
/* A ReplicationTask about a node, in the arena. */
struct slice replicate_encode(const STORED(ReplicationRow) *row, uint64_t number,
                              API(HistoryEvent) *const *events, size_t count,
                              API(HistoryEvent) *const *begun, size_t begun_count,
                              struct arena *arena);
/* The same about a marker, of cluster `source`. */
struct slice replicate_encode_marker(const STORED(ReplicationRow) *row, uint64_t number,
                                     const char *source, struct arena *arena);
/* Does the domain have this cluster? */
bool replicate_concerns(const struct domain *domain, const struct cluster *cluster);

/* --- visible_rebuild.c ---- */

/* Makes the lists anew from the runs. Yields. Errors: the store's, ERR_CANCELLED. */
must_use struct error *visible_rebuild(struct tenure *tenure, struct arena *arena);

/* --- facts.c ---- */

/* Was a step refused because its run is not active here, or belongs to nothing that the domain has
 * (any more)? A change of the domain may end it. */
bool facts_say_inactive(const struct error *err);

struct step_facts {
    struct facts of_run;   /* of the run of the wish, if there is one */
    struct facts of_begun; /* of a run that begins */
};
/* What the runs of a step may look at, of this moment. Errors: ERR_DOMAIN_NOT_ACTIVE,
 * ERR_ENTITY_NOT_EXISTS (no such domain), ERR_BAD_REQUEST (no such cluster attribute). */
must_use struct error *tenure_make_facts(struct tenure *tenure, const struct shard_step *wanted,
                                         const struct run *run, struct arena *arena,
                                         struct step_facts *facts);

/* May this version change what that one wrote (E-002)? Error: ERR_DOMAIN_NOT_ACTIVE, naming the
 * cluster that did. */
must_use struct error *tenure_check_newest(const struct tenure *tenure, int64_t last_version,
                                           const struct facts *facts, struct arena *arena);

/* ERR_DOMAIN_NOT_ACTIVE: `active` is the cluster to ask. */
must_use struct error *shard_not_active(const struct shard *shard, const struct domain *domain,
                                        const char *active, struct arena *arena);

/* What applying old events may look at. Error: ERR_ENTITY_NOT_EXISTS (no such domain). */
must_use struct error *tenure_read_facts(struct tenure *tenure, const char *domain_id,
                                         struct arena *arena, struct facts *facts);

/* --- view.c ---- */

/* The shard hears of domains from now on. */
void view_listen(struct shard *shard);
/* An owner before us had handled `version`, and so many failovers: waits until this host knows it
 * too, then catches up. When it returns without an error the view is what this loop knows. Yields.
 */
must_use struct error *view_begin(struct tenure *tenure, uint64_t version, uint64_t failovers,
                                  struct arena *arena);
void view_free(struct tenure *tenure);
/* Brings the view to what this loop knows, by a batch of its own: before deciding. No yield.
 * Errors: ERR_SERVICE_BUSY (no room). */
must_use struct error *view_catch_up(struct tenure *tenure, struct arena *arena);
/* Batches up to `durable` are: another one may go. */
void view_release(struct tenure *tenure, ticket_t durable);

/* --- reader.c ---- */

struct shard_reader {
    struct tenure *tenure;
    struct workflow *workflow; /* locked */
    struct arena *arena;       /* of the call */
};
/* Adds batches of a branch, numbered by this owner. */
void tenure_add_nodes(struct tenure *tenure, const struct history_branch *branch,
                      const struct history_node *nodes, size_t count, struct batch *batch);

/* --- recent.c ---- */

void recent_init(struct tenure *tenure, size_t bytes_max);
void recent_free(struct tenure *tenure);
/* Keeps a copy of batches that the step with this ticket has written. */
void recent_add(struct tenure *tenure, const struct history_branch *branch,
                const struct history_node *nodes, size_t count, ticket_t ticket);
/* Batches of the branch are deleted, or nobody will ask for them. */
void recent_forget(struct tenure *tenure, const struct history_branch *branch);

/* --- reset.c ---- */

/* Resets the run of a bad binary, if it is still the current one. Yields. Errors: as shard_reset.
 */
must_use struct error *tenure_auto_reset(struct tenure *tenure, const struct run_key *key,
                                         const struct auto_reset *reset, struct arena *arena);

/* --- step.c ---- */

/* Runs what is due of a run whose alarm rings, and sets the next alarm. *is_stale: the run has
 * another alarm, or none, or is gone. Yields. Errors: as shard_step. */
must_use struct error *tenure_wake(struct tenure *tenure, const struct run_key *key, uint64_t row,
                                   struct arena *arena, bool *is_stale);

/* --- retain.c ---- */

/* --- archive.c ---- */

/* What the archive has of a run that is about to be deleted. */
struct archived {
    bool is_needed;  /* the domain wants it there */
    bool is_put_off; /* it failed, and the run has a later alarm */
    int64_t next_event_id, event_version;
};
/* Archives the closed run whose alarm rings, if its domain wants that and it is to be deleted now.
 * Yields. Errors: as tenure_delete_closed. */
must_use struct error *tenure_archive(struct tenure *tenure, const struct run_key *key,
                                      uint64_t row, struct arena *arena, struct archived *archived);
/* May the run go? */
bool archived_is_all(const struct archived *archived, const struct run *run);

/* --- retain.c ---- */

/* Deletes a closed run whose alarm rings, in portions. *is_closed: it is one, and is gone now, or
 * has another alarm; else nothing was done. Yields. Errors: as shard_step; ERR_BUSY (not now). */
must_use struct error *tenure_delete_closed(struct tenure *tenure, const struct run_key *key,
                                            uint64_t row, struct arena *arena, bool *is_closed);
/* The same now, whatever its alarm says; it may be gone already. */
must_use struct error *tenure_delete_now(struct tenure *tenure, const struct run_key *key,
                                         struct arena *arena);

/* --- watch.c ---- */

void watches_init(struct tenure *tenure);
void watches_free(struct tenure *tenure);

/* --- failing.c ---- */

void failing_init(struct tenure *tenure);
void failing_free(struct tenure *tenure);
/* A step has changed the run. */
void failing_note(struct tenure *tenure, const struct run *run, const struct domain *domain);
/* Does anybody wait for news of the run? */
bool watches_has(const struct tenure *tenure, const char *run_id);
/* Durable news of a run. */
void watches_fire(struct tenure *tenure, const char *run_id, int64_t next_event_id, bool is_closed);
/* The tenure is over. */
void watches_lose(struct tenure *tenure);

/* --- query.c ---- */

void queries_init(struct tenure *tenure);
void queries_free(struct tenure *tenure);
/* A step of the run is durable: if the run has no decision now, its queries are free. */
void queries_release(struct tenure *tenure, const struct run *run);
/* The tenure is over. */
void queries_lose(struct tenure *tenure);

#endif
