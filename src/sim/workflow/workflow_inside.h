/* workflow_inside.h - what the parts of the workflow load share. Only workflow_*.c and ndc_*.c
 * include it. */
#ifndef CADENZA_SIM_WORKFLOW_WORKFLOW_INSIDE_H
#define CADENZA_SIM_WORKFLOW_WORKFLOW_INSIDE_H

#include "sim/workflow/workflow_load.h"
#include "sim/world/calls.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"

#define WORKFLOW_DOMAIN "flows"
#define WORKFLOW_LIST   "list"
#define WORKFLOW_HOME   "cluster0"
#define WORKFLOW_AWAY   "cluster1"

/* One call to one host; counts it. An error that no server should give is a violation. */
#define workflow_call(load, call, request, response)                                               \
    workflow_call_at((load), (call), &(request)->base, (ProtobufCMessage **)(response))
must_use struct error *workflow_call_at(struct workflow_load *load, struct load_call *call,
                                        const ProtobufCMessage *request,
                                        ProtobufCMessage **response);
/* Errors that a server gives while it is hurt, or because a call came late or twice. */
bool workflow_is_expected(const struct error *err);
/* A host by chance. */
unsigned workflow_any_host(const struct workflow_load *load);
API(TaskList) *workflow_task_list(struct arena *arena);
API(WorkflowExecution) *workflow_execution(struct arena *arena, const char *workflow_id,
                                           const char *run_id);
API(Payload) *workflow_payload(struct arena *arena, const char *text);
const char *workflow_payload_text(struct arena *arena, const API(Payload) *payload);

/* The whole history of a run, as one array, from one host. */
struct history_seen {
    API(HistoryEvent) **events;
    size_t count;
};
must_use struct error *workflow_read_history(struct workflow_load *load, struct load_call *call,
                                             const char *workflow_id, const char *run_id,
                                             struct history_seen *seen);

/* The plan as text and back. */
const char *workload_print(const struct workload *workload, struct arena *arena);
must_use bool workload_parse(const char *text, struct workload *workload);

/* What to do next, after this history: fills decisions (in the arena), each list with a marker of
 * its own name. */
struct workload_step {
    API(Decision) *decisions[8];
    size_t count;
    bool is_closing;   /* the run ends with it, if nothing came in between */
    bool has_children; /* it asks for them */
};
void workload_decide(const struct history_seen *seen, const char *workflow_id, const char *marker,
                     struct arena *arena, struct workload_step *step);
/* A task must have the input that the plan gave its activity. */
void workload_check_activity(const API(PollForActivityTaskResponse) *task, struct verdict *verdict,
                             struct arena *arena);

/* How far a parent is with its children (workflow_children.c). */
struct children_progress {
    unsigned initiated, started, ended; /* children */
    unsigned asked, answered;           /* signals or cancel requests for them */
    unsigned refused, unheard;          /* children that were not started, requests that failed */
};
void children_follow(struct children_progress *progress, const API(HistoryEvent) *event);
/* Adds what is to be done about them to the step. True: there is something to do or to wait for
 * before the rest of the plan. */
bool children_decide(const struct workload *workload, const struct children_progress *progress,
                     const char *workflow_id, struct arena *arena, struct workload_step *step);
API(Decision) *workload_new_decision(struct arena *arena, int kind);
/* What a child of this parent does, and how its runs follow each other. */
void children_entry(const struct workload *workload, struct workflow_entry *child);
/* The retry policy of a plan with failures. */
API(RetryPolicy) *workload_retry_policy(struct arena *arena);

/* The answer to a query after this history: which signals it has, as a number of bits. */
const char *workload_answer(const struct history_seen *seen, struct arena *arena);

/* The ledger: notes what a worker saw; checks it against what was seen before. `stored` events are
 * in the history for ever (those of a transient decision are not). */
void ledger_see(struct workflow_load *load, const char *run_id, API(HistoryEvent) *const *events,
                size_t stored);
/* The name under which the history says that a closing list was void. */
const char *ledger_unhandled_name(const char *run_id, int64_t started_id, struct arena *arena);
/* A name that will stand in a history; tell when it was acknowledged. */
struct reported *ledger_promise(struct workflow_load *load, const char *name);
/* A task was given to a worker: nobody else has been or will be given it. */
void ledger_hand_out(struct workflow_load *load, const char *name);
/* A refusal may say that the workflow is over: then it must have been. */
void ledger_note_refusal(struct workflow_load *load, struct workflow_entry *entry,
                         const struct error *err);
/* Somebody is about to end a workflow at a host: observers are curious. NULL (a child): no. */
void ledger_note_ending(struct workflow_load *load, struct workflow_entry *entry, unsigned host);
/* The workflow of this id; NULL: it is a child. */
struct workflow_entry *ledger_find(struct workflow_load *load, const char *workflow_id);
/* Ids rise by one, times do not go back, timers are not early. */
void ledger_check_history(struct workflow_load *load, const char *run_id,
                          const struct history_seen *seen);

/* The audit of one load, and of one chain of runs (workflow_verify.c). */
struct audit {
    struct workflow_load *load;
    struct load_clients *clients;
    struct map *found; /* names of markers and results → how often */
    size_t events;     /* in all runs */
};
struct chain {
    const struct workflow_entry *entry;     /* a child has one of its own */
    unsigned signals[WORKFLOW_SIGNALS_MAX]; /* how often each is there */
    unsigned cancels, terminates;
    unsigned runs;
    int close_kind; /* of the last run */
    int64_t close_time;
    const char *last_run_id, *next_run_id;
    struct history_seen first, newest; /* runs */
    int64_t counted_from; /* names of events before this were counted in another run; 0: none was */
    int64_t reset_time;   /* of the newest run, if a reset made it; 0: none did */
};
/* Follows a chain from next_run_id to its end. False: it cannot be. */
must_use bool audit_chain(struct audit *audit, struct chain *chain, struct arena *arena);
/* The children of a parent whose chain was followed (workflow_children_audit.c). */
void audit_children(struct audit *audit, const struct workflow_entry *entry,
                    const struct chain *chain, struct arena *arena);
/* How the run behind the newest one begins (workflow_chain.c): as it must after that, or as the
 * first one, and its first decision not before its time. */
void chain_check_begin(struct workflow_load *load, const struct chain *chain,
                       const struct history_seen *seen);
/* Runs of a workflow that nobody ends early. */
unsigned chain_length(const struct workload *workload);

/* Waits until every workflow has ended, and checks them all. Yields. */
void workflow_audit(struct workflow_load *load);

/* Waits until the store holds nothing that waits to be done; what stays is a violation. Yields. */
void workflow_check_rows(struct workflow_load *load);
/* The same for everything that there is of any run. */
void workflow_check_gone(struct workflow_load *load);
/* Waits until every shard has handled all changes of domains; what does not is a violation. Yields.
 */
void workflow_check_level(struct workflow_load *load);
/* Visibility has what the stores have; what differs is a violation (workflow_visibility.c). Yields.
 */
void workflow_check_visibility(struct workflow_load *load);
/* A client looks for the run that it started in a list that must have it. */
void workflow_ask_visibility(struct workflow_load *load, const struct workflow_entry *entry,
                             struct load_clients *clients);
/* A client asks about its workflow, and judges the answer. */
void workflow_query(struct workflow_load *load, struct workflow_entry *entry,
                    struct load_clients *clients);

/* What a worker does with queries: the task is one alone; or it has some beside a decision, whose
 * results go into the completion. */
void workflow_answer_query(struct workflow_load *load, struct load_call *call,
                           const API(PollForDecisionTaskResponse) *task,
                           const struct history_seen *seen);
void workflow_add_results(const API(PollForDecisionTaskResponse) *task,
                          const struct history_seen *seen, struct arena *arena,
                          API(RespondDecisionTaskCompletedRequest) *completion);
/* What a client is doing. */
struct client_context {
    struct workflow_load *load;
    struct workflow_entry *entry;
    struct load_clients *clients;
};
/* The run that a client means: the one that it started, or the one that its reset made. */
const char *workflow_run_id(const struct workflow_entry *entry);
/* The start of its workflow. */
API(StartWorkflowExecutionRequest) *workflow_start_request(struct workflow_entry *entry,
                                                           struct arena *arena);
/* How a workflow is started, by its number. Starts it later, with a competing one behind it; finds
 * out which run that made. True: that was an answer. The calls yield. */
void workflow_choose_start(struct workflow_entry *entry, unsigned number);
bool workflow_try_start_later(struct client_context *client_context, struct load_call *call,
                              int which);
bool workflow_try_competing_start(struct client_context *client_context, struct load_call *call,
                                  int which);
bool workflow_try_find(struct client_context *client_context, struct load_call *call, int which);
/* The domain takes such starts. Yields. */
must_use struct error *workflow_allow_later(struct load_call *call);
/* Chooses the decision that the run is reset to; resets it. True: that was an answer. Yield. */
bool workflow_choose_fork(struct client_context *client_context, struct load_call *call, int which);
bool workflow_try_reset(struct client_context *client_context, struct load_call *call, int which);

/* Fibers. */
void workflow_observer_main(void *argument);
/* Divides the task lists. */
void workflow_divider_main(void *argument);
void workflow_client_main(void *argument);
void workflow_decider_main(void *argument);
void workflow_activity_main(void *argument);
void workflow_mover_main(void *argument);
/* Changes the domain beside it, so that a move may come while a shard stores a change. */
void workflow_toucher_main(void *argument);

/* One of them. */
struct workflow_part {
    struct workflow_load *load;
    unsigned number;
};

#endif
