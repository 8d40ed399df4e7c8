/* inside.h - what the files of engine/run/ share. Only they include it. */
#ifndef CADENZA_ENGINE_RUN_INSIDE_H
#define CADENZA_ENGINE_RUN_INSIDE_H

#include <stdlib.h>

#include "base/check.h"
#include "engine/run/apply.h"
#include "engine/run/mutation.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define SECOND ((int64_t)1000000000)

/* One record that was put, replaced or removed: what it was before. */
struct run_change {
    enum pending_kind kind;
    uint64_t number;  /* its key, of activities and buffered events */
    const char *text; /* its key, of timers and signal requests; lives in the run or the step */
    void *old;        /* the record before; NULL: there was none */
};

/* A transfer that comes or goes with the step. */
struct outbox_change {
    uint64_t row;
    STORED(TransferRow) *transfer; /* NULL: it goes */
};

/* An event that a list of decisions brought about. */
struct held {
    API(HistoryEvent) *event;
    const STORED(PendingActivity) *before; /* the activity that it ended; NULL: it ends none */
};

struct mutation {
    struct run *run;
    const struct run_context *context;
    struct arena *arena;
    STORED(RunRecord) before; /* the core as it was when the step began */
    uint64_t first_row;       /* numbers from here on were taken in this step */
    vector_of(struct run_change) journal;
    vector_of(API(HistoryEvent) *) events; /* those with ids, in order */
    vector_of(struct held) held; /* applied, but not written before the list is over (held.c) */
    vector_of(struct outbox_change) rows;
    size_t noted;               /* changes of the journal that the heap of due.c has seen */
    bool has_replicated_events; /* its events have their numbers already (replicated.c) */
    bool is_replacing;          /* the run takes the place of another (replace.c) */
    bool is_holding;            /* inside a list of decisions (mutation_hold_events) */
    bool is_over;
};

/* --- records (journal.c) ------------------------------------------------------------------------
 */

/* The record with this key, or NULL. */
void *records_get(const struct run *run, enum pending_kind kind, uint64_t number, const char *text);
/* Puts (or, NULL, removes) the record and returns what was there. No journal. */
void *records_set(struct run *run, enum pending_kind kind, uint64_t number, const char *text,
                  void *record);
/* The same, and notes in the journal how to take it back. */
void journal_set(struct mutation *mutation, enum pending_kind kind, uint64_t number,
                 const char *text, void *record);
/* Notes every record that the run has as one that was not there before. */
void journal_add_all(struct mutation *mutation);
/* Takes back all changes from the end down to `count` of them. */
void journal_undo(struct mutation *mutation, size_t count);
/* Keeps a buffered event: a deep copy, numbered. Takes one out. */
void buffered_put(struct mutation *mutation, const API(HistoryEvent) *event);
void buffered_remove(struct mutation *mutation, uint64_t number);
/* All buffered events in order of arrival; the array is in the step's arena. */
STORED(BufferedEvent) **buffered_all(const struct mutation *mutation, size_t *count);

/* --- the activity that is stored with the run (aboard.c) -----------------------------------------
 */

/* Decides which activity the row of the run has from this step on. */
void aboard_choose(struct mutation *mutation);
/* It; NULL: none is aboard. */
STORED(PendingActivity) *aboard_find(const struct run *run);
/* Of a run that was read: it goes to the other records. False: it cannot. */
bool aboard_leave(struct run *run);

/* --- large inputs (input.c) ----------------------------------------------------------------------
 */

/* An activity as it is stored: the same, or, in the arena, one without its input. */
STORED(PendingActivity) *input_leave(STORED(PendingActivity) *activity, struct arena *arena);
/* Of a run that was read and breaks no rule: inputs that are not stored come from its history.
 * Yields. Errors: the store's, ERR_CORRUPT. */
must_use struct error *inputs_return(struct store *store, struct partition shard, struct run *run,
                                     struct arena *arena);

/* --- events (event.c) -----------------------------------------------------------------------
 */

/* The time of an event, ns. */
int64_t event_time(const API(HistoryEvent) *event);
/* The attributes of an event, of any kind. */
ProtobufCMessage *event_attributes(const API(HistoryEvent) *event);
/* The descriptor of the field of HistoryEvent that holds this kind; it must be one. */
const ProtobufCFieldDescriptor *event_field(API(HistoryEvent__AttributesCase) kind);
/* Gives the next id, and a time not before the last event's; puts it behind the others. */
void event_append(struct mutation *mutation, API(HistoryEvent) *event);

/* Applies it; it is written when the list of decisions is over (held.c). */
void held_add(struct mutation *mutation, API(HistoryEvent) *event);

/* --- the state of a run (state.c) ----------------------------------------------------------------
 */

typedef API(WorkflowExecutionCloseStatus) close_status_t;
#define CLOSE_NONE                                                                                 \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_INVALID)
#define CLOSE_COMPLETED                                                                            \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_COMPLETED)
#define CLOSE_FAILED                                                                               \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_FAILED)
#define CLOSE_CANCELED                                                                             \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_CANCELED)
#define CLOSE_TERMINATED                                                                           \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_TERMINATED)
#define CLOSE_CONTINUED_AS_NEW                                                                     \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_CONTINUED_AS_NEW)
#define CLOSE_TIMED_OUT                                                                            \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_TIMED_OUT)
#define CLOSE_STATUS_COUNT 7
#define RUN_CREATED        CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_CREATED
#define RUN_RUNNING        CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_RUNNING
#define RUN_COMPLETED      CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_COMPLETED
#define RUN_ZOMBIE         CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_ZOMBIE
#define RUN_STATE_END      5

/* May a run go from one state to another, which leaves it with this close status? */
bool run_move_is_legal(STORED(RunState) from, STORED(RunState) to, close_status_t status);
/* Moves it; an illegal move is a bug. */
void run_move(STORED(RunRecord) *core, STORED(RunState) to, close_status_t status);

/* The parts of run_check (check.c): a step checks what it changed. */
void run_check_core(const struct run *run);
void run_check_record(const struct run *run, enum pending_kind kind, const void *record);
/* Asserts what is true of a step that is open; all of its lists where CHECK_DEEPLY says so. */
void mutation_check(const struct mutation *mutation);

/* --- where the work of each binary began (reset_points.c) ----------------------------------------
 */

/* Remembers the first completed decision of each binary, for resets. */
void reset_points_add(struct mutation *mutation, const API(HistoryEvent) *completed);
/* Points that a new run takes over: those of the run before it get a time when they expire. */
void reset_points_take_over(struct mutation *mutation, const API(ResetPoints) *points,
                            const char *run_id_before);

/* --- deadlines (deadline.c)
 * ----------------------------------------------------------------------- */

/* dues_note: the heap of what is due first (due.c) sees what the step changed. dues_forget: records
 * went back or moved, so the heap is dropped. */
void dues_note(struct mutation *mutation);
void dues_forget(struct run *run);
/* The earlier of two moments, where 0 is never. */
int64_t deadline_earlier(int64_t one, int64_t other);
/* What is due of the run itself and its decision, which must be open. */
int64_t run_core_deadline(const STORED(RunRecord) *core);
/* Nothing that the start of the decision which waits makes due is earlier; 0: none waits, or it
 * never times out. */
int64_t run_foreseen_deadline(const STORED(RunRecord) *core);

/* --- retention (retention.c) ---------------------------------------------------------------------
 */

/* When the rows of a run that closed at core->close_time may go. */
int64_t retention_end(const struct run_context *context, const STORED(RunRecord) *core);

/* --- events of a history (rebuild.c)
 * --------------------------------------------------------------
 */

struct rebuild;
/* Applies the next event, which fits. The mutation has the run context of the rebuild. */
void rebuild_apply(struct rebuild *rebuild, struct mutation *mutation, API(HistoryEvent) *event);
/* Ends that were applied before their turn: from the run's record, and back into it. */
void rebuild_read_ended(struct rebuild *rebuild);
void rebuild_store_ended(const struct rebuild *rebuild);

/* --- the end of a step (flush.c, finish.c)
 * ------------------------------------------------------------------ */

/* The run's list of versions covers the events of the step. */
void mutation_note_versions(struct mutation *mutation);

/* --- applying: one function per kind of event (apply_*.c)
 * ----------------------------------------- */

typedef void apply_function(struct mutation *mutation, const API(HistoryEvent) *event);
/* The run begins. */
void apply_started(struct mutation *mutation, const API(HistoryEvent) *event);
/* It ends, one of six ways. */
void apply_closed(struct mutation *mutation, const API(HistoryEvent) *event);
/* It is asked to end. */
void apply_cancel_requested(struct mutation *mutation, const API(HistoryEvent) *event);
/* A signal came: it counts, and its request is not taken again. */
void apply_signaled(struct mutation *mutation, const API(HistoryEvent) *event);
/* Some are added or replaced. */
void apply_search_attributes(struct mutation *mutation, const API(HistoryEvent) *event);
/* One is pending, and its task in the outbox. */
void apply_decision_scheduled(struct mutation *mutation, const API(HistoryEvent) *event);
/* A worker has it. */
void apply_decision_started(struct mutation *mutation, const API(HistoryEvent) *event);
/* It is over and was good. */
void apply_decision_completed(struct mutation *mutation, const API(HistoryEvent) *event);
/* It is over and counts as an attempt. */
void apply_decision_failed(struct mutation *mutation, const API(HistoryEvent) *event);
/* It is over; unstarted on a sticky list it does not count. */
void apply_decision_timed_out(struct mutation *mutation, const API(HistoryEvent) *event);
/* If a reset leaves its base run here: who asked for it, and from when its time counts. */
void apply_reset(struct mutation *mutation, const API(HistoryEvent) *event);
/* One is pending, and its task in the outbox. */
void apply_activity_scheduled(struct mutation *mutation, const API(HistoryEvent) *event);
/* A worker has it; the event may come long after the start. */
void apply_activity_started(struct mutation *mutation, const API(HistoryEvent) *event);
/* It is over, one of four ways. */
void apply_activity_ended(struct mutation *mutation, const API(HistoryEvent) *event);
/* A decision asks for its cancellation. */
void apply_activity_cancel_requested(struct mutation *mutation, const API(HistoryEvent) *event);
/* One is pending. */
void apply_timer_started(struct mutation *mutation, const API(HistoryEvent) *event);
/* It fired or was cancelled. */
void apply_timer_ended(struct mutation *mutation, const API(HistoryEvent) *event);
/* A child is to be started: one is pending, and its row in the outbox. */
void apply_child_initiated(struct mutation *mutation, const API(HistoryEvent) *event);
/* It runs; its row stays until it has its first decision. */
void apply_child_started(struct mutation *mutation, const API(HistoryEvent) *event);
/* It could not be started. */
void apply_child_not_started(struct mutation *mutation, const API(HistoryEvent) *event);
/* It is over, one of five ways. */
void apply_child_ended(struct mutation *mutation, const API(HistoryEvent) *event);
/* A signal or a cancel request for another workflow: it is pending, and its row in the outbox. */
void apply_signal_initiated(struct mutation *mutation, const API(HistoryEvent) *event);
void apply_cancel_initiated(struct mutation *mutation, const API(HistoryEvent) *event);
/* It was delivered, or cannot be. */
void apply_external_ended(struct mutation *mutation, const API(HistoryEvent) *event);
/* The run has closed with this event: rows for its parent and its children; what was on its way to
 * others is not sent any more. */
void apply_close_to_others(struct mutation *mutation, const API(HistoryEvent) *event);
/* Changes nothing: it is only for the history. */
void apply_nothing(struct mutation *mutation, const API(HistoryEvent) *event);
/* An event that ends an activity or a child: which one, and where it names its start. NULL: another
 * kind. */
int64_t *event_started_id(const API(HistoryEvent) *event, int64_t *schedule_id);

/* The pieces that their files share. Seconds of a duration, at most what 32 bits hold; 0 when
 * absent. */
int64_t duration_seconds(const GOOGLE(Duration) *duration);

#endif
