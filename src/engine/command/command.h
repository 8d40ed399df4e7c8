/* command.h - requests: each becomes events, or a refusal. Pure.
 *
 * A step is everything that one commit changes for one workflow id: the run that a request is
 * about, a run that begins, and the pointer to the current one. A command gets a step whose runs
 * are loaded and locked, adds events to their mutations, and fills an answer; or it returns an
 * error, and the step is taken back as a whole. A command that adds nothing (a repeat) leaves the
 * step empty. No command yields, does I/O or looks at a clock.
 *
 * One file per verb; decision lists are a table from decision to handler (decisions.c). Errors and
 * their texts are Cadence's where clients look at them. */
#ifndef CADENZA_ENGINE_COMMAND_COMMAND_H
#define CADENZA_ENGINE_COMMAND_COMMAND_H

#include "engine/run/mutation.h"
#include "uber/cadence/api/v1/decision.pb-c.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"

/* Of a start, a child or a run that goes on that names what its domain does not have (G-012). */
#define UNKNOWN_ATTRIBUTE_FAULT                                                                    \
    "Cannot start workflow with a cluster attribute that is not found in the domain's metadata."
#define DELETED_ENTITY_FAULT                                                                       \
    "Cannot start workflow for '%s' of type '%s': it was deleted, and takes no new ones."

struct step {
    struct arena *arena;
    const struct run_context *context;
    const char *domain_id, *workflow_id;
    /* The current run of the workflow id before the step; NULL: it never had one. */
    const STORED(CurrentRecord) *current;
    /* The run that the request is about (the one asked for, or the current one); NULL: none. */
    struct mutation *mutation;
    /* A run that this step begins and that becomes the current one; NULL: none. See step_begin_run.
     */
    struct mutation *begun;
    /* Batches that the history of that run begins with and that are not stored yet: they go with
     * the step. */
    const struct history_node *nodes;
    size_t node_count;
};

/* Begins a run in this step: an empty one with an id of its own, which will be the current one. */
struct mutation *step_begin_run(struct step *step);
/* Takes that back; harmless if none was begun. */
void step_forget_begun(struct step *step);
/* The run of the request if it is open. Errors: ERR_ENTITY_NOT_EXISTS (no such run),
 * ERR_ALREADY_COMPLETED. */
must_use struct error *step_open_run(struct step *step, struct mutation **mutation);

/* --- from clients ---------------------------------------------------------------------------- */

/* Start, and the start half of signal-with-start. The request was validated by the door. */
struct start_command {
    const API(StartWorkflowExecutionRequest) *request;
    const API(SignalWithStartWorkflowExecutionRequest) *signal; /* NULL: a plain start */
    /* From the caller's headers. */
    const char *const *partition_keys, *const *partition_values;
    size_t partition_count;
    const API(ParentExecutionInfo) *parent; /* of a child; NULL: it is not one */
};
struct start_answer {
    const char *run_id; /* in the arena */
    bool is_new;        /* false: an earlier request, or the open run was signalled */
};
must_use struct error *command_start(struct step *step, const struct start_command *command,
                                     struct start_answer *answer);
/* Needs the step's run if there is a current one: signals it if it is open, else starts. */
must_use struct error *command_signal_with_start(struct step *step,
                                                 const struct start_command *command,
                                                 struct start_answer *answer);
must_use struct error *command_signal(struct step *step,
                                      const API(SignalWorkflowExecutionRequest) *request);
must_use struct error *
command_request_cancel(struct step *step,
                       const API(RequestCancelWorkflowExecutionRequest) *request);
must_use struct error *command_terminate(struct step *step,
                                         const API(TerminateWorkflowExecutionRequest) *request);

/* A reset: what was read of the runs that it is about, under the lock of the workflow id. */
struct reset_command {
    const API(ResetWorkflowExecutionRequest) *request;
    /* A run of its own with the events of the base run before the fork. The command takes it, then
     * this is NULL. */
    struct run *rebuilt;
    const char *base_run_id;
    int64_t fork_version;         /* of the last event before the fork */
    const char *chain_request_id; /* of the start that began the chain of runs */
    int64_t jitter_start;         /* of the base run */
    int64_t children;             /* that were open at the fork */
    /* What came after the fork and is taken again, in order. */
    const API(WorkflowExecutionSignaledEventAttributes) *const *signals;
    size_t signal_count;
};
/* The run that an earlier reset with this request made, if the current run is it or continues it;
 * NULL: none. */
const char *reset_find_repeat(const struct run *current,
                              const API(ResetWorkflowExecutionRequest) *request);
/* May the base run be reset there? Error: ERR_BAD_REQUEST. */
must_use struct error *reset_check_base(const struct run *base,
                                        const API(ResetWorkflowExecutionRequest) *request,
                                        struct arena *arena);
/* Is the event at the fork one of a decision task? Error: ERR_BAD_REQUEST. */
must_use struct error *reset_check_event(const API(HistoryEvent) *event, struct arena *arena);
/* A run with the names that a reset of `base` needs: new ids, a new branch of the same tree. */
struct run *reset_new_run(const struct run *base, const struct run_context *context);
/* The step's run is the current one: it is terminated if it is open, and the rebuilt one begins.
 * Errors: ERR_BAD_REQUEST (open children), ERR_INTERNAL (it has events of a later version). */
must_use struct error *command_reset(struct step *step, struct reset_command *command,
                                     const char **run_id);
/* Sends the tasks of an open run again, and sets its wake-up timer again. */
must_use struct error *command_refresh(struct step *step);

/* --- when a domain moves -----------------------------------------------------------------------
 */

/* The step's run, which is open, moves away, or replicated events come: a started decision fails
 * (FAILOVER_CLOSE_DECISION), what was buffered goes into the history (E-009). */
void command_close_decision(struct step *step);
/* A decision that is in no history is forgotten: events of another cluster come. */
void command_drop_transient(struct step *step);
/* The open run ends since another one has its workflow id in all clusters (E-046); `details` says
 * which one, and why. */
void command_give_way(struct step *step, const char *details);
/* Is it the end of a run that gave way, in whichever cluster, a Cadence too? */
bool command_event_gives_way(const API(HistoryEvent) *event);
/* What clients did to a history or a run that lost. */
struct reapply_command {
    const char *run_id;   /* that had them */
    int64_t last_version; /* of the current run, before anything of this */
    API(HistoryEvent) *const *events;
    size_t count;
};
struct reapply_answer {
    const char *run_id;     /* the step's run, in the arena */
    int64_t reset_event_id; /* it is closed: to be reset there first; 0: no */
    bool is_dropped;        /* it is closed, and had no decision to go back to */
};
/* The step's run, the current one, gets what it does not have yet (E-048 … E-053). */
must_use struct error *command_reapply(struct step *step, const struct reapply_command *command,
                                       struct reapply_answer *answer);
/* The name by which an event that is applied again is known; in the arena or the event. */
const char *reapply_name(const char *run_id, const API(HistoryEvent) *event, struct arena *arena);
/* Does the run, which another version wrote last, have anything to end before anything else happens
 * to it here? */
bool take_over_is_needed(const struct run *run);
/* It goes on here: its decision starts again, as a first attempt, and no worker is trusted to
 * remember the run (E-010, E-011). `was_closed`: a decision was closed before. */
void command_take_over(struct step *step, bool was_closed);

/* --- from other workflows ----------------------------------------------------------------------
 */

/* The run that asks, by its outbox. */
struct origin {
    const char *workflow_id, *run_id;
    int64_t initiated_id; /* its event; 0: none, its end asks */
    bool is_child_only;   /* the run asked must be its child, else ERR_ENTITY_NOT_EXISTS */
    int64_t child_id;     /* ... and this one, by its initiated event; 0: any */
};
/* As those of clients. */
must_use struct error *command_signal_from(struct step *step,
                                           const API(SignalWorkflowExecutionRequest) *request,
                                           const struct origin *origin);
must_use struct error *
command_request_cancel_from(struct step *step,
                            const API(RequestCancelWorkflowExecutionRequest) *request,
                            const struct origin *origin);
must_use struct error *command_terminate_from(struct step *step,
                                              const API(TerminateWorkflowExecutionRequest) *request,
                                              const struct origin *origin);
/* A child's parent has recorded that it started: it gets its first decision, if it has not.
 */
must_use struct error *command_parent_knows(struct step *step, const struct origin *origin);

/* What came of a signal or cancel request for another workflow. */
enum external_end {
    EXTERNAL_DELIVERED,
    EXTERNAL_UNKNOWN,   /* there is no such workflow to ask */
    EXTERNAL_COMPLETED, /* it had ended before */
};
/* A repeat adds nothing. Errors: those of step_open_run. */
must_use struct error *command_end_external(struct step *step, int64_t initiated_id,
                                            enum external_end end);
/* A child started; its id could not be used; it ended. Repeats add nothing. Errors: those of
 * step_open_run. */
must_use struct error *command_child_started(struct step *step, int64_t initiated_id,
                                             const char *run_id);
must_use struct error *command_child_refused(struct step *step, int64_t initiated_id);
struct child_close {
    const char *workflow_id, *run_id; /* of the run that ended */
    const char *first_run_id;         /* of its chain */
    const API(HistoryEvent) *event;   /* how */
};
must_use struct error *command_child_closed(struct step *step, int64_t initiated_id,
                                            const struct child_close *close);

/* --- from matching and workers: decisions ----------------------------------------------------- */

/* What a token names. */
struct task_name {
    int64_t schedule_id; /* EVENT_NONE: by activity id */
    int32_t attempt;
    const char *activity_id; /* "" unless by id */
};

/* What the poller needs beside the history. Lives in the arena. */
struct decision_start {
    int64_t schedule_id, started_id, previous_started_id;
    int32_t attempt;
    int64_t next_event_id;  /* of the stored history: the page to read ends here */
    int64_t first_event_id; /* where the history given begins: 1, or sticky: behind the last one */
    int64_t scheduled_time, started_time;
    bool is_sticky;
    int64_t history_bytes;
    const API(WorkflowType) *workflow_type;
    const API(TaskList) *task_list; /* the normal one */
    const char *run_id;
    struct history_lineage lineage;
    /* The two events of a transient decision, to be put behind the history; NULL: not transient. */
    const API(HistoryEvent) *transient_scheduled, *transient_started;
    /* The stored history, if the shard has it at hand; else count is 0 and it is to be read. The
     * shard's, as the queries are. */
    struct history_page recent;
    /* Queries that the decision carries, by id. The shard's: commands leave them out. */
    API(PollForDecisionTaskResponse__QueriesEntry) **queries;
    size_t query_count;
};
/* Records that a poller has it. `request_id` makes a repeat the same start. Errors:
 * ERR_ENTITY_NOT_EXISTS (closed, or no such decision: the task is void), ERR_EVENT_ALREADY_STARTED
 * (somebody else has it: the task is void). */
must_use struct error *command_start_decision(struct step *step, const struct task_name *task,
                                              const char *request_id, const char *identity,
                                              struct decision_start *start);

/* What a worker needs of an activity that it has. Lives in the arena. */
struct activity_start {
    const STORED(PendingActivity) *activity; /* a copy, as started */
    const API(WorkflowType) *workflow_type;
    const char *run_id;
};

struct complete_command {
    const API(RespondDecisionTaskCompletedRequest) *request;
    struct task_name task;
    const char *client_name, *client_feature_version, *client_library_version; /* headers, or "" */
    bool refuses_queries;    /* the worker is known not to understand queries on decisions */
    size_t query_answer_max; /* bytes of an answer to one */
    /* What the door found wrong with the start of a child, by decision, NULL where nothing is;
     * NULL: with none. The task fails with it. */
    const char *const *child_faults;
};
struct complete_answer {
    bool has_started_decision; /* the new decision is started already: return_new_decision_task */
    struct decision_start start;
    /* Activities that the worker has already, without a poll: it asked for them with the decisions
     * that scheduled them. Of a run that is still open. */
    struct activity_start *local;
    size_t local_count;
    /* A refusal that the worker gets although the step happened (decision heartbeat timeout);
     * NULL: none. */
    struct error *late_refusal;
};
must_use struct error *command_complete_decision(struct step *step,
                                                 const struct complete_command *command,
                                                 struct complete_answer *answer);
must_use struct error *command_fail_decision(struct step *step, const struct task_name *task,
                                             const API(RespondDecisionTaskFailedRequest) *request);
/* The worker has forgotten the run: stickiness ends. Harmless when there is none. */
must_use struct error *command_reset_sticky(struct step *step);

/* --- from matching and workers: activities ---------------------------------------------------- */

/* Errors as command_start_decision. */
must_use struct error *command_start_activity(struct step *step, const struct task_name *task,
                                              const char *request_id, const char *identity,
                                              struct activity_start *start);

/* How an activity ends, or says that it lives. */
struct activity_report {
    struct task_name task;
    const char *identity;
    const API(Payload) *payload; /* result, details, or NULL */
    const API(Failure) *failure; /* of a failure; else NULL */
};
must_use struct error *command_complete_activity(struct step *step,
                                                 const struct activity_report *report);
must_use struct error *command_fail_activity(struct step *step,
                                             const struct activity_report *report);
must_use struct error *command_cancel_activity(struct step *step,
                                               const struct activity_report *report);
must_use struct error *command_heartbeat_activity(struct step *step,
                                                  const struct activity_report *report,
                                                  bool *is_cancel_requested);

/* --- from the clock --------------------------------------------------------------------------- */

/* Does everything that is due at context->now, in order of its time: timeouts of the run, of its
 * decision and activities, user timers, next attempts, the delayed first decision. Nothing due:
 * adds no event (the end of the step sets the next wake-up timer). Never refuses. */
void command_wake(struct step *step);
/* Is a reset due because a binary is bad? Ask before command_wake, which puts it off
 * in case the reset fails. Texts live in the arena. */
struct auto_reset {
    const char *current_run_id;
    const char *run_id; /* the base run */
    const char *reason;
    int64_t fork;
};
bool command_wake_resets(const struct step *step, struct auto_reset *reset);

#endif
