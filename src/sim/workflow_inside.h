/* workflow_inside.h - what the parts of the workflow load share. Only workflow_*.c include it. */
#ifndef CADENZA_SIM_WORKFLOW_INSIDE_H
#define CADENZA_SIM_WORKFLOW_INSIDE_H

#include "sim/calls.h"
#include "sim/workflow_load.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"

#define WORKFLOW_DOMAIN "flows"
#define WORKFLOW_LIST   "list"

/* One call to one host; counts it. An error that no server should give is a violation. */
#define workflow_call(load, call, path, request, type, response)                                   \
    workflow_call_at((load), (call), "/uber.cadence.api.v1." path, &(request)->base,               \
                     API_TYPE(type), (ProtobufCMessage **)(response))
must_use struct error *workflow_call_at(struct workflow_load *load, struct load_call *call,
                                        const char *path, const ProtobufCMessage *request,
                                        const ProtobufCMessageDescriptor *type,
                                        ProtobufCMessage **response);
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
const char *plan_print(const struct plan *plan, struct arena *arena);
must_use bool plan_parse(const char *text, struct plan *plan);

/* What to do next, after this history: fills decisions (in the arena), each list with a marker of
 * its own name. */
struct plan_step {
    API(Decision) *decisions[4];
    size_t count;
    bool is_closing; /* the run ends with it, if nothing came in between */
};
void plan_decide(const struct history_seen *seen, const char *marker, struct arena *arena,
                 struct plan_step *step);

/* The ledger: notes what a worker saw; checks it against what was seen before. `stored` events are
 * in the history for ever (those of a transient decision are not). */
void ledger_see(struct workflow_load *load, const char *run_id, API(HistoryEvent) *const *events,
                size_t stored);
/* The name under which the history says that a closing list was void. */
const char *ledger_unhandled_name(const char *run_id, int64_t started_id, struct arena *arena);
/* A name that will stand in a history; tell when it was acknowledged. */
struct told *ledger_promise(struct workflow_load *load, const char *name);
/* Ids rise by one, times do not go back, timers are not early. */
void ledger_check_history(struct workflow_load *load, const char *run_id,
                          const struct history_seen *seen);

/* How a run of a chain begins: as it must after the run before it (its first event; NULL: it is the
 * first), and its first decision not before its time. */
void chain_check_begin(struct workflow_load *load, const struct workflow_entry *entry,
                       const API(HistoryEvent) *before, const struct history_seen *seen);
/* Runs of a workflow that nobody ends early. */
unsigned chain_length(const struct plan *plan);

/* Waits until every workflow has ended, and checks them all. Yields. */
void workflow_audit(struct workflow_load *load);

/* Fibers. */
void workflow_client_main(void *argument);
void workflow_decider_main(void *argument);
void workflow_activity_main(void *argument);

/* One of them. */
struct workflow_part {
    struct workflow_load *load;
    unsigned number;
};

#endif
