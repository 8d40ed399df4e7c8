/* run.h - one run in memory: exactly what its rows in the store say, and nothing else.
 *
 * The core record is changed in place; the records of what is pending are values that are replaced,
 * never written to: so a mutation (mutation.h) can take everything back by keeping the old
 * pointers. All records live in the run's arena. Replaced ones stay there as garbage until
 * run_compact, which its owner calls now and then.
 *
 * Only apply.c and the commands change a run, both through a mutation. */
#ifndef CADENZA_ENGINE_RUN_RUN_H
#define CADENZA_ENGINE_RUN_RUN_H

#include "base/map.h"
#include "base/vector.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "store/history_lineage.h"
#include "store/store.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/names.h"

#define RUN_RECORD_FORMAT 1

#define EVENT_NONE      ((int64_t)-23)  /* no event id */
#define EVENT_BUFFERED  ((int64_t)-123) /* of an event that has none yet */
#define EVENT_TRANSIENT ((int64_t)-124) /* of an event that is not stored */

/* When a pending activity or timer is due. */
struct run_due {
    int64_t time;
    int64_t number;       /* schedule id of the activity, started id of the timer */
    const char *timer_id; /* NULL: an activity */
};

struct run {
    struct arena *arena;
    STORED(RunRecord) *core;
    /* What is pending; NULL until there is something. */
    struct map64 *activities;    /* schedule id → STORED(PendingActivity) */
    struct map *activity_ids;    /* activity id → the same records */
    struct map *timers;          /* timer id → STORED(PendingTimer) */
    struct map64 *buffered;      /* number → STORED(BufferedEvent), in order of arrival */
    struct map *signal_requests; /* request id → STORED(SignalRequest) */
    struct map64 *children;      /* initiated id → STORED(PendingChild) */
    struct map64 *externals;     /* initiated id → STORED(PendingExternal) */
    /* What it was started with, of a run that may be followed by another one (a cron schedule, a
     * retry policy); NULL: none. It never changes. */
    API(WorkflowExecutionStartedEventAttributes) *birth;
    /* The activity that is stored in the run's own row (aboard.c), by its schedule id; 0: none. */
    int64_t aboard;
    size_t arena_bytes_after_compact;
    /* A heap that knows what is due first (due.c); not part of what the run is. */
    struct run_dues {
        bool is_known;
        vector_of(struct run_due) heap;
    } dues;
};

/* What names a run. */
struct run_key {
    const char *domain_id;
    const char *workflow_id;
    const char *run_id; /* a UUID; "" where the current one is meant */
};

/* A run without anything: core is a message with all unset. */
struct run *run_new(void);
void run_free(struct run *run);
/* Frees the garbage in its arena if there is much of it. Afterwards every pointer into the run is
 * void, so no mutation may be open. */
void run_compact(struct run *run);
/* Which rule of check.c this run breaks, for people; NULL: none. Walks over all that is pending. */
const char *run_find_fault(const struct run *run);
/* Asserts that it breaks none. */
void run_check(const struct run *run);

/* --- questions ------------------------------------------------------------------------------- */

bool run_is_open(const struct run *run);
/* Is it open, and has another run its workflow id? Then only events of other clusters change it. */
bool run_is_zombie(const struct run *run);
/* Of its newest event; there is one. */
int64_t run_last_version(const struct run *run);
/* Is a decision scheduled or started; is one started (then events are buffered)? */
bool run_has_pending_decision(const struct run *run);
bool run_has_started_decision(const struct run *run);
bool run_has_buffered(const struct run *run);
/* The earliest moment (wall clock, ns) at which something of the run is due: a timeout, a timer,
 * the next attempt of an activity, the delayed first decision; of a closed run: its deletion. 0:
 * nothing ever is. */
int64_t run_next_deadline(const struct run *run);
/* What is due next of an activity, and when (0: nothing is). Of several at one moment: in this
 * order. DUE_DISPATCH: its next attempt goes out. */
struct activity_due {
    int64_t time;
    enum {
        DUE_NOTHING,
        DUE_DISPATCH,
        DUE_START_TO_CLOSE,
        DUE_SCHEDULE_TO_START,
        DUE_SCHEDULE_TO_CLOSE,
        DUE_HEARTBEAT
    } what;
};
struct activity_due activity_next_due(const STORED(PendingActivity) *activity);
/* When a decision times out (0: never): a started one always does, with no time to work in at once;
 * one that waits only on a sticky list. */
int64_t decision_next_due(const STORED(PendingDecision) *decision);
/* Does the decision wait for a worker on another list than the run's own? */
bool run_decision_is_elsewhere(const struct run *run);
/* The branch that new events go to, and the lineage of the run's (current) history. */
struct history_branch run_branch(const struct run *run);
struct history_lineage run_lineage(const struct run *run, struct arena *arena);
const STORED(PendingActivity) *run_find_activity(const struct run *run, int64_t schedule_id);
const STORED(PendingActivity) *run_find_activity_id(const struct run *run, const char *activity_id);
const STORED(PendingTimer) *run_find_timer(const struct run *run, const char *timer_id);
const STORED(PendingChild) *run_find_child(const struct run *run, int64_t initiated_id);
const STORED(PendingExternal) *run_find_external(const struct run *run, int64_t initiated_id);

/* A run as describe and visibility show it (A-237, B-007), with pointers into the record. */
API(WorkflowExecutionInfo) *run_info(const STORED(RunRecord) *core, struct arena *arena);
/* The task list of a run, with the usual kind where its start had none. */
API(TaskList) *run_info_list(const STORED(RunRecord) *core, struct arena *arena);

/* What its events determine, as one number: the same in every cluster with this history, and after
 * a rebuild. Nothing may be buffered. */
uint64_t run_checksum(const struct run *run);

/* --- rows ------------------------------------------------------------------------------------ */

struct slice current_key(const char *domain_id, const char *workflow_id, struct arena *arena);
struct slice run_row_key(const struct run_key *key, struct arena *arena);

/* Kinds of rows below a run (ROW_PENDING): the key is the run's, this number, then the thing's id.
 */
enum pending_kind {
    PENDING_ACTIVITY = 1,       /* schedule id */
    PENDING_TIMER = 2,          /* timer id */
    PENDING_BUFFERED = 3,       /* number */
    PENDING_SIGNAL_REQUEST = 4, /* request id */
    PENDING_CHILD = 5,          /* initiated id */
    PENDING_EXTERNAL = 6,       /* initiated id */
    PENDING_BIRTH = 8,          /* 0: there is one at most */
};
#define PENDING_KIND_END 9
struct slice pending_key_number(const struct run_key *key, enum pending_kind kind, uint64_t number,
                                struct arena *arena);
struct slice pending_key_text(const struct run_key *key, enum pending_kind kind, const char *id,
                              struct arena *arena);

/* The row of a history that lost (ROW_DIVERGENCE), by its own branch; below the run's key. */
struct slice divergence_key(const struct run_key *key, struct uuid branch, struct arena *arena);

/* A row of the outbox (ROW_TRANSFER), by its number. */
struct slice transfer_key(uint64_t row, struct arena *arena);

/* A row that makes visibility look at its run (ROW_VISIBLE), by its number. */
struct slice visible_key(uint64_t row, struct arena *arena);
struct batch;
/* Puts it; the key's texts may go afterwards. */
void visible_put_row(struct batch *batch, const struct run_key *key, uint64_t row);

/* A row for other clusters (ROW_REPLICATION), by its number. What came from one and cannot be
 * applied (ROW_DEAD_LETTER), by its source and its number there. */
struct slice replication_key(uint64_t row, struct arena *arena);
struct slice dead_letter_key(const char *cluster, uint64_t row, struct arena *arena);

/* Puts the row of the run itself. Reads one: the record, with the activity that is aboard. Errors:
 * ERR_CORRUPT. */
void run_put_row(struct batch *batch, const struct run *run);
must_use struct error *run_read_row(struct slice key, struct slice value, struct arena *arena,
                                    STORED(RunRecord) **core);
/* Reads a run. *run is NULL when there is none. *guard becomes what the shard's was when the last
 * row of it was read; NULL: it is not wanted. Yields. Errors: the store's, ERR_CORRUPT. */
must_use struct error *run_load(struct store *store, struct partition shard,
                                const struct run_key *key, struct arena *arena, struct run **run,
                                uint64_t *guard);
/* Reads the current-run record of a workflow id into the arena; NULL: none. The same. */
must_use struct error *current_load(struct store *store, struct partition shard,
                                    const char *domain_id, const char *workflow_id,
                                    struct arena *arena, STORED(CurrentRecord) **current,
                                    uint64_t *guard);

#endif
