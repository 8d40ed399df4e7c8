/* mutation.h - one step of one run, from the first event to the rows of its commit.
 *
 * A mutation is a value in the call's arena. A command adds events; each is applied to the run at
 * once (apply.c), so that the next part of the decision sees it. Until mutation_finish everything
 * can be taken back: to a savepoint (a decision list that turns out bad) or as a whole (a refusal).
 * No function here yields, does I/O or looks at a clock: all that is not in the run is in the run
 * context.
 *
 * Events that arrive while a decision is started are buffered: applied at once, but without an id
 * (EVENT_BUFFERED). mutation_finish flushes them once no decision is started: ids are given, in
 * Cadence's order (ends of activities and children behind everything else that was buffered), and
 * what points to them is set right. Nothing follows a close event: what is still buffered then is
 * dropped. What a list of decisions causes beside its own events is held back in the same way, but
 * only until the list is over. */
#ifndef CADENZA_ENGINE_RUN_MUTATION_H
#define CADENZA_ENGINE_RUN_MUTATION_H

#include "base/random.h"
#include "base/vector.h"
#include "config/dynamic.h"
#include "domain/active.h"
#include "engine/run/run.h"
#include "uber/cadence/api/v1/history.pb-c.h"

/* Numbers for events and outbox rows: they rise for ever within a shard, over all its owners. */
struct row_ids {
    uint64_t next;
    uint64_t end; /* the owner renews its range before this */
};

/* Whether runs of a domain may be found by these search attributes. No yield. Error:
 * ERR_BAD_REQUEST, why not. */
struct search_port {
    struct error *(*judge)(const void *context, const API(SearchAttributes) *attributes,
                           const char *domain_name, struct arena *arena);
    const void *context;
};

/* Everything that a decision may look at beside the run. Of one moment. */
struct run_context {
    int64_t now;                 /* wall clock, ns */
    int64_t event_version;       /* failover version that new events get */
    const struct domain *domain; /* of the run */
    const struct dynamic *dynamic;
    struct random *random; /* for jitter and new ids */
    uint64_t range_id;     /* of the shard's owner */
    struct row_ids *ids;   /* the shard's */
    /* No wake-up timer is set before this, not even for a deadline that has passed: it is the
     * shard's timer read level, below which nobody looks for rows, but never later than now. A
     * timer at this moment is not moved. */
    int64_t wakeup_time_min;
    /* Domains by name, for decisions that aim at another one; NULL: unknown. No yield. */
    const struct domain *(*find_domain)(const void *context, const char *name);
    const void *find_domain_context;
    /* Where what belongs to an attribute of a domain, or to an entity, is active; the same context.
     * NULL: as the domain alone says. No yield. */
    struct active_cluster (*find_active)(const void *context, const struct domain *domain,
                                         const struct cluster_attribute *attribute);
    const struct search_port *search; /* NULL: by anything */
    /* Takes the turn of a task that would go to a worker with an answer, not by a list; false: the
     * workflow id had too many, the task goes by its list and waits. No yield. NULL: always. */
    bool (*take_turn)(void *context, const char *domain_id, const char *workflow_id);
    void *take_turn_context;
};

/* A setting as the run's domain has it. */
int64_t run_context_integer(const struct run_context *context, enum dynamic_key key);
int64_t run_context_duration(const struct run_context *context, enum dynamic_key key); /* ns */
bool run_context_flag(const struct run_context *context, enum dynamic_key key);
/* As find_active; of nothing: where the domain is. */
struct active_cluster run_context_active(const struct run_context *context,
                                         const struct domain *domain,
                                         const struct cluster_attribute *attribute);
bool run_context_take_turn(const struct run_context *context, const char *domain_id,
                           const char *workflow_id);
/* Error: ERR_BAD_REQUEST, runs of the domain may not be found by these. NULL attributes are fine.
 */
must_use struct error *run_context_check_search(const struct run_context *context,
                                                const API(SearchAttributes) *attributes,
                                                struct arena *arena);
struct uuid
run_context_uuid(const struct run_context *context); /* a new v4, from context->random */

/* EVENT_KIND(DECISION_TASK_SCHEDULED): the kind of event, an arm of HistoryEvent. */
#define EVENT_KIND(name) API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)

struct mutation;

/* Opens a step of `run`. One at a time per run. `arena` must live until the commit was submitted.
 */
struct mutation *mutation_begin(struct run *run, const struct run_context *context,
                                struct arena *arena);
/* The same for a run that is in no row yet but has records (rebuild.h): the step writes them all.
 */
struct mutation *mutation_begin_new(struct run *run, const struct run_context *context,
                                    struct arena *arena);
/* The same for a run that was rebuilt from another of its histories and takes the place of `old`,
 * which is what its rows say and must stay until the step is submitted, as must its arena: nothing
 * of `old` is left, nor of what is buffered there. Its tasks are not sent: see command_refresh. */
struct mutation *mutation_begin_replacing(struct run *rebuilt, const struct run *old,
                                          const struct run_context *context, struct arena *arena);
struct run *mutation_run(const struct mutation *mutation);
const struct run_context *mutation_context(const struct mutation *mutation);
struct arena *mutation_arena(const struct mutation *mutation);
/* Has anything changed since it began? */
bool mutation_is_empty(const struct mutation *mutation);

/* A point to come back to. */
struct mutation_savepoint {
    STORED(RunRecord) core;
    size_t journal, events, rows, held;
    bool is_holding;
};
struct mutation_savepoint mutation_savepoint(const struct mutation *mutation);
/* Takes back everything since the savepoint. */
void mutation_rewind(struct mutation *mutation, const struct mutation_savepoint *savepoint);
/* Takes back everything: the run is as before mutation_begin. The mutation is over. */
void mutation_cancel(struct mutation *mutation);

/* --- events ---------------------------------------------------------------------------------- */

/* A new event of this kind (an arm of HistoryEvent), its attributes there and all unset, its time
 * now (never before the event before it), its version the context's. Not in the history yet. */
API(HistoryEvent) *mutation_new_event(struct mutation *mutation,
                                      API(HistoryEvent__AttributesCase) kind);
/* Puts it into the history, or into the buffer while a decision is started and the kind may be
 * buffered, and applies it. Returns its id, or EVENT_BUFFERED. The event is made canonical:
 * whole seconds, map keys sorted and unique. */
int64_t mutation_add_event(struct mutation *mutation, API(HistoryEvent) *event);
/* A list of decisions begins: until mutation_release_events only the events of the decisions
 * themselves are written. What comes of them at once (a start, a cancellation) is applied but has
 * no id yet: workers count on the events of their decisions being consecutive. */
void mutation_hold_events(struct mutation *mutation);
/* The list is over: what was held back is written behind everything that was buffered before, in
 * its order; of a run that has closed it is dropped. */
void mutation_release_events(struct mutation *mutation);
/* Takes a buffered TimerFired of this timer back out: the timer is pending again. False:
 * there is none. */
bool mutation_unbuffer_timer(struct mutation *mutation, const char *timer_id);
/* Gives ids to what was buffered, now; no decision may be started. For those who must write behind
 * it: a forced close, a new decision. False: nothing was buffered. */
bool mutation_flush_buffered(struct mutation *mutation);
/* Drops what is still buffered: the run has closed, or gives way after memory was lost. */
void mutation_drop_buffered(struct mutation *mutation);
/* The ids of the events so far (in this step): the first one, and how many have ids. */
int64_t mutation_first_event_id(const struct mutation *mutation);
/* The events of this step that have ids, for the few who look back. */
API(HistoryEvent) *const *mutation_events(const struct mutation *mutation, size_t *count);

/* Where the next decision goes: the sticky list, if there is one and it is not older than
 * history.stickyTTL, else the run's own. */
const API(TaskList) *mutation_decision_list(const struct mutation *mutation);

/* --- what is pending ------------------------------------------------------------------------- */

/* A change gives a fresh copy, which may be written to until the next change of the same record or
 * the next savepoint. Pointers from before still show the record as it was. */

/* The core, to change it. Texts and messages set in it must live in the run: see run_keep_*. */
STORED(RunRecord) *mutation_core(struct mutation *mutation);
STORED(PendingDecision) *
mutation_change_decision(struct mutation *mutation); /* there must be one */
STORED(PendingActivity) *mutation_change_activity(struct mutation *mutation, int64_t schedule_id);
/* `activity` lives in the run. */
void mutation_put_activity(struct mutation *mutation, STORED(PendingActivity) *activity);
void mutation_remove_activity(struct mutation *mutation, int64_t schedule_id);
void mutation_put_timer(struct mutation *mutation, STORED(PendingTimer) *timer);
void mutation_remove_timer(struct mutation *mutation, const char *timer_id);
void mutation_put_signal_request(struct mutation *mutation, const char *request_id);
STORED(PendingChild) *mutation_change_child(struct mutation *mutation, int64_t initiated_id);
void mutation_put_child(struct mutation *mutation, STORED(PendingChild) *child);
void mutation_remove_child(struct mutation *mutation, int64_t initiated_id);
STORED(PendingExternal) *mutation_change_external(struct mutation *mutation, int64_t initiated_id);
void mutation_put_external(struct mutation *mutation, STORED(PendingExternal) *external);
void mutation_remove_external(struct mutation *mutation, int64_t initiated_id);

/* Deep copies into the run's arena, for records. */
char *run_keep_text(struct run *run, const char *text);
struct slice run_keep_bytes(struct run *run, struct slice bytes);
/* NULL gives NULL. */
#define run_keep(run, message)                                                                     \
    ((__typeof__(message))run_keep_message(                                                        \
        (run), (message) == NULL ? NULL : (const ProtobufCMessage *)&(message)->base))
void *run_keep_message(struct run *run, const ProtobufCMessage *message);

/* run_next_deadline of the run as it is now, without looking at everything. */
int64_t mutation_next_deadline(struct mutation *mutation);
/* The pending activities and timers that are due at `now`, each once, the earliest first. */
const struct run_due *mutation_list_due(struct mutation *mutation, int64_t now, size_t *count);

/* The point that an open run goes back to because the domain says that the binary which worked from
 * there on is bad, and why; NULL: none. */
const API(ResetPointInfo) *
run_find_bad_point(const struct run *run, const struct run_context *context, const char **reason);

/* --- the outbox ------------------------------------------------------------------------------ */

/* Is it about a task for pollers? The others are work on another workflow, which the shard does. */
bool transfer_is_task(STORED(TransferType) type);
/* The row of a task has what says which pollers the run prefers. In the arena. */
void transfer_fill_partitions(STORED(TransferRow) *transfer, const STORED(RunRecord) *core,
                              struct arena *arena);
/* A row of the outbox, released when the step is durable. Domain, workflow, run, version and
 * created time are filled in. Returns its number; 0: the run is a zombie, of which only what is to
 * be applied again is sent. `transfer` lives in the arena. */
uint64_t mutation_add_transfer(struct mutation *mutation, STORED(TransferRow) *transfer);
/* The row's work is done or void: it goes with this step, if it is still there; one that this very
 * step added is not written at all. 0: does nothing. */
void mutation_drop_transfer(struct mutation *mutation, uint64_t row);

/* An open run has lost its workflow id to another one: none of its tasks is sent, nothing of it is
 * due any more; nothing may be buffered. Harmless for others. */
void mutation_become_zombie(struct mutation *mutation);
/* It has its id back; its tasks have to be sent again. False: it was not a zombie. */
bool mutation_revive(struct mutation *mutation);

/* Sends the task of the pending decision, which is not started, once more; the old row goes. One on
 * a list that the run does not know (any more) goes to the run's own. */
void mutation_resend_decision(struct mutation *mutation);
/* No worker is trusted to remember the run: decisions to come go to its own list. */
void mutation_clear_sticky(struct mutation *mutation);

/* --- the end --------------------------------------------------------------------------------- */

/* What the shard has to know of a finished step beside its batch. Lives in the arena. */
struct effects {
    struct transfer_effect {
        uint64_t row;
        const STORED(TransferRow) *transfer;
    } * added;
    size_t added_count;
    uint64_t *dropped; /* transfers that may go */
    size_t dropped_count;
    /* The run's one wake-up timer (run_next_deadline): the old row goes, a new one comes. The shard
     * writes and deletes them, since it knows its timer read level. */
    uint64_t alarm_row_old; /* 0: none */
    int64_t alarm_time_old;
    uint64_t alarm_row; /* 0: none new */
    int64_t alarm_time;
    struct history_node *nodes; /* batches of events that the step has written */
    size_t node_count;
    uint64_t visible_row; /* visibility is to show the run as it is now; 0: nothing new */
    /* What goes to other clusters: the shard makes rows of it. Empty where the domain is in one
     * cluster only, and for replicated events. */
    struct replication_effect {
        struct history_branch branch;
        API(HistoryEvent) *const *events;
        size_t event_count;
    } * to_replicate;
    size_t to_replicate_count;
    int64_t *activities; /* schedule ids of those that changed without an event */
    size_t activity_count;
    bool has_new_events;
    bool is_closed_now; /* the run closed in this step */
};

/* Closes the step: flushes what was buffered if no decision is started, sets the wake-up timer,
 * checks the run, and adds all rows of the run to the batch (core, pending, history nodes; outbox
 * rows; the row for visibility; not the wake-up timer, not the current-run record). The run keeps
 * its new state. */
void mutation_finish(struct mutation *mutation, struct batch *batch, struct effects *effects);

#endif
