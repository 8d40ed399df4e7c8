/* inside.h - what the verbs share. Only files of engine/command/ include it. */
#ifndef CADENZA_ENGINE_COMMAND_INSIDE_H
#define CADENZA_ENGINE_COMMAND_INSIDE_H

#include "engine/command/command.h"

/* Who acts when nobody asked. */
#define HISTORY_SERVICE "history-service"
/* FAILED_CAUSE(BAD_BINARY): why a decision task failed. */
#define FAILED_CAUSE(name) API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_##name)

/* Asserts what is true of a step before and after a command: its runs are of its workflow id, and
 * at most one of them is open. */
void step_check(const struct step *step);

/* Copies into an arena: what events and answers hold is theirs. */
API(TaskList) *command_copy_list(const API(TaskList) *list, struct arena *arena);
/* As the events of a decision have it: its name alone. */
API(TaskList) *command_name_list(const API(TaskList) *list, struct arena *arena);
/* Bytes of a text as a payload; not copied. */
API(Payload) *command_text_payload(const char *text, struct arena *arena);
/* Whole seconds of a duration, parts cut off, at most what 32 bits hold, as in the history; none is
 * 0. */
int64_t command_seconds(const GOOGLE(Duration) *duration);

/* --- the decision task's life (decision_task.c): the table of its states is there ---------------
 */

/* Schedules one unless one is pending, or the run's first decision still waits for its time or its
 * parent, or the run is closed. To be called after each event from outside: when too many wait
 * behind a started decision, that one is failed and all get their ids. */
void decision_schedule_if_needed(struct mutation *mutation);
/* Schedules one; none may be pending. What was buffered gets its ids first.
 * `original_scheduled_time`: of a row of heartbeats, 0: now. */
void decision_schedule(struct mutation *mutation, int64_t original_scheduled_time);
/* Starts the pending one; the answer of a start. */
void decision_start(struct mutation *mutation, const char *request_id, const char *identity);
void decision_fill_start(const struct mutation *mutation, struct decision_start *start);
/* The open run whose started decision the token names. Errors: those of step_open_run,
 * ERR_ENTITY_NOT_EXISTS (a stale token, A-060). */
must_use struct error *decision_find_started(struct step *step, const struct task_name *task,
                                             struct mutation **mutation);
/* Writes DecisionTaskCompleted (of a transient one: Scheduled and Started before). Its id. */
int64_t decision_complete(struct mutation *mutation,
                          const API(RespondDecisionTaskCompletedRequest) *request);
struct decision_failure {
    API(DecisionTaskFailedCause) cause;
    const API(Failure) *failure; /* may be NULL */
    const char *details;         /* text, instead of a failure; may be NULL */
    const char *identity, *binary_checksum;
};
/* Fails the started one: an event at attempt 0, else only the attempt rises. None is pending then.
 */
void decision_fail(struct mutation *mutation, const struct decision_failure *failure);
/* The worker failed it, in this step. True: that happened so often that the next attempt waits
 * until core->decision_retry_time, or for news; false: the caller schedules one. */
must_use bool decision_pause(struct mutation *mutation, const struct decision_failure *failure);
/* That time has come. */
void decision_retry_due(struct mutation *mutation);
/* Times it out: start-to-close of a started one, schedule-to-start of a sticky one. None is pending
 * then; with too many attempts the run is terminated. */
void decision_time_out(struct mutation *mutation, API(TimeoutType) type);
/* Terminates the run if its decision, none of which is pending, failed more often than
 * history.decisionRetryMaxAttempts allows. `details` is what the terminated event says. */
void decision_limit_attempts(struct mutation *mutation, const char *details);

/* --- the run's life (lifecycle.c) ---------------------------------------------------------------
 */

/* What a new run begins with: from a start request, or from a run that goes on as another. */
struct run_birth {
    const API(WorkflowExecutionStartedEventAttributes) *attributes; /* of its first event */
    const char *create_request_id;
    const char *chain_request_id; /* of the start that began the chain; NULL: this is its start */
    int64_t jitter_start;         /* seconds; for the runs after it */
    bool has_first_decision;      /* false: the caller schedules one itself, after a signal */
};
/* Writes the first event into a begun run, and schedules the first decision or lets it wait. */
void run_begin(struct mutation *mutation, const struct run_birth *birth);
/* Makes room for a close: a started decision is failed (FORCE_CLOSE_DECISION), what was buffered
 * gets its ids. For closes that no decision asked for. */
void run_force_close_decision(struct mutation *mutation);
/* Ends the run as continued and begins the next one, as the request says; what that leaves out is
 * as in this run. `completed_id`: of the decision that asked for it, EVENT_NONE: none did. */
void run_go_on(struct step *step, struct mutation *mutation,
               const API(ContinueAsNewWorkflowExecutionDecisionAttributes) *request,
               int64_t completed_id);
/* How a run would end. */
struct run_end {
    const API(Failure) *failure; /* NULL: it completed */
    const API(Payload) *result;  /* of one that completed */
    int64_t completed_id;        /* of the decision that ended it; EVENT_NONE: none did */
};
/* Instead of ending the run goes on: after a failure as its next attempt, if its retry policy has
 * one left, else as the next run of its cron schedule. False: it has neither,
 * or was asked to cancel; the caller writes its end. */
bool run_is_followed(struct step *step, struct mutation *mutation, const struct run_end *end);
void run_terminate(struct mutation *mutation, const char *reason, const API(Payload) *details,
                   const char *identity);
/* May the run take one more signal? Error: ERR_LIMIT_EXCEEDED. */
must_use struct error *run_check_signals(const struct mutation *mutation);
/* Was a signal with this request id taken? "" is never one. */
bool run_has_signal_request(const struct run *run, const char *request_id);
/* Writes the signal, and remembers its request. Schedules nothing. */
void run_add_signal(struct mutation *mutation, const char *name, const API(Payload) *input,
                    const char *identity, const char *request_id);
/* Does the run belong to the chain that began with this run? "" is any. Error:
 * ERR_ENTITY_NOT_EXISTS. */
must_use struct error *run_check_chain(const struct mutation *mutation, const char *first_run_id);
/* Where only a parent may ask: is the run a child of the run that asks? NULL: a client
 * asks. Error: ERR_ENTITY_NOT_EXISTS. */
must_use struct error *run_check_parent(const struct mutation *mutation,
                                        const struct origin *origin);
/* A run that goes on as another one hands down which reset it came from. */
void reset_hand_down(const struct mutation *mutation, struct mutation *begun);
/* The domain takes new work. Error: ERR_BAD_REQUEST, it is deprecated. */
must_use struct error *step_check_domain(const struct step *step);

/* --- activities (activity.c) --------------------------------------------------------------------
 */

/* Tries again after a failure or timeout, if the policy lets it. False: it is over,
 * and the caller writes its end. */
bool activity_retry(struct mutation *mutation, const STORED(PendingActivity) *activity,
                    const API(Failure) *failure);
/* The event that it was started, if that still waits for the end; its id. */
int64_t activity_started_event(struct mutation *mutation, const STORED(PendingActivity) *activity);
/* A worker has it now: an event, or, with a retry policy, only its record. */
void activity_begin(struct mutation *mutation, int64_t schedule_id, const char *request_id,
                    const char *identity);
/* What the worker that has it needs. A copy, in the arena. */
void activity_fill_start(const struct run *run, int64_t schedule_id, struct arena *arena,
                         struct activity_start *start);
/* Ends it as cancelled, which somebody must have asked for. */
void activity_canceled_event(struct mutation *mutation, const STORED(PendingActivity) *activity,
                             const API(Payload) *details, const char *identity);
/* Sends its task into the outbox. */
void activity_dispatch(struct mutation *mutation, int64_t schedule_id);
/* Finds the activity a report or a start is about. Error: ERR_ENTITY_NOT_EXISTS. */
must_use struct error *activity_find(struct mutation *mutation, const struct task_name *task,
                                     bool must_be_started,
                                     const STORED(PendingActivity) **activity);

/* --- decisions (decisions.c: the table) ---------------------------------------------------------
 */

/* One list of decisions while it is worked through. */
struct decision_list {
    struct step *step;
    struct mutation *mutation;
    int64_t completed_id; /* of DecisionTaskCompleted */
    const char *identity;
    const char *const *child_faults; /* as in struct complete_command */
    bool has_unhandled; /* events came that the worker has not seen: it may not close */
    bool is_closed;     /* a closing decision was taken; decisions after it are ignored */
    /* Schedule ids of activities that the worker got with the list itself. */
    vector_of(int64_t) local;
    /* Set by a handler: the list itself caused something that the worker must see. */
    bool needs_decision;
    /* Set by a handler that cannot take its decision: the task fails with it. */
    bool is_bad;
    struct decision_failure bad;
    /* Set by a handler: the whole run fails with this reason (a limit). NULL: no. */
    const char *run_failure_reason, *run_failure_details;
};
/* Says why the decision cannot be taken: the task fails with cause and text. */
void decision_list_refuse(struct decision_list *decision_list, API(DecisionTaskFailedCause) cause,
                          const char *format, ...) printf_like(3, 4);
/* A closing decision asks first: false means that it was refused because of events that the worker
 * has not seen. `what` is what it cannot do. */
bool decision_list_may_close(struct decision_list *decision_list, const char *what);
/* A decision with a blob asks first: false means that the blob is too large, which fails the run.
 * `what` is the blob's name for people. */
bool decision_list_may_hold(struct decision_list *decision_list, size_t size, const char *what);
/* Closes the run as canceled. */
void decision_list_close_canceled(struct decision_list *decision_list, const API(Payload) *details);
/* Works the list through. Error: ERR_BAD_REQUEST, an unknown decision type. */
must_use struct error *decisions_take(struct decision_list *decision_list,
                                      API(Decision) *const *decisions, size_t count);

/* Handlers: one file per verb. */
void decide_schedule_activity(struct decision_list *decision_list, const API(Decision) *decision);
void decide_request_cancel_activity(struct decision_list *decision_list,
                                    const API(Decision) *decision);
void decide_start_timer(struct decision_list *decision_list, const API(Decision) *decision);
void decide_cancel_timer(struct decision_list *decision_list, const API(Decision) *decision);
void decide_complete(struct decision_list *decision_list, const API(Decision) *decision);
void decide_fail(struct decision_list *decision_list, const API(Decision) *decision);
void decide_cancel(struct decision_list *decision_list, const API(Decision) *decision);
void decide_continue_as_new(struct decision_list *decision_list, const API(Decision) *decision);
void decide_record_marker(struct decision_list *decision_list, const API(Decision) *decision);
void decide_upsert_search_attributes(struct decision_list *decision_list,
                                     const API(Decision) *decision);
void decide_start_child(struct decision_list *decision_list, const API(Decision) *decision);
void decide_signal_external(struct decision_list *decision_list, const API(Decision) *decision);
void decide_cancel_external(struct decision_list *decision_list, const API(Decision) *decision);

#endif
