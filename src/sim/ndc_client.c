/* ndc_client.c - who calls, who works, and who moves the domain. See ndc_load.h. */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "sim/ndc_load.h"
#include "sim/workflow_inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CALL_TIMEOUT (4 * NS_PER_S)
#define POLL_TIMEOUT (20 * NS_PER_S)
#define TRIES        12

static void
pass_time(int64_t at_most)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    fiber_set_deadline(NEVER);
    struct error *err = fiber_sleep((int64_t)entropy_below((uint64_t)at_most), arena);
    check(err == NULL);
}

static void
random_id(char *room, size_t size)
{
    uint8_t bytes[16];
    entropy_bytes(bytes, sizeof bytes);
    struct uuid uuid = uuid_v4(bytes);
    char text[UUID_TEXT_LENGTH + 1];
    uuid_format(&uuid, text);
    snprintf(room, size, "%s", text);
}

/* --- clients ---- */

/* One wish of a client. */
struct wish {
    struct ndc_load *load;
    struct workflow_entry *entry;
    unsigned which; /* signal */
    struct error *(*send)(struct wish *wish, struct load_call *call);
};

static struct error *
send_start(struct wish *wish, struct load_call *call)
{
    struct workflow_entry *entry = wish->entry;
    API(StartWorkflowExecutionRequest) *request = workflow_start_request(entry, call->arena);
    API(StartWorkflowExecutionResponse) *response = NULL;
    ndc_home_put(wish->load, (unsigned)(entry - wish->load->entries), false, call, request);
    struct error *err = ndc_call(wish->load, call, "WorkflowAPI/StartWorkflowExecution", request,
                                 start_workflow_execution_response, &response);
    if (err == NULL)
        snprintf(entry->run_id, sizeof entry->run_id, "%s", response->run_id);
    return err;
}

/* Somebody else starts the same workflow at the same time: where clusters do not hear of each
 * other, both may. */
static struct error *
send_rival(struct wish *wish, struct load_call *call)
{
    API(StartWorkflowExecutionRequest) *request = workflow_start_request(wish->entry, call->arena);
    char *request_id = arena_text(call->arena, request->request_id);
    request_id[0] = request_id[0] == 'a' ? 'b' : 'a';
    request->request_id = request_id;
    ndc_home_put(wish->load, (unsigned)(wish->entry - wish->load->entries), true, call, request);
    API(StartWorkflowExecutionResponse) *response = NULL;
    return ndc_call(wish->load, call, "WorkflowAPI/StartWorkflowExecution", request,
                    start_workflow_execution_response, &response);
}

static struct error *
send_signal(struct wish *wish, struct load_call *call)
{
    struct workflow_entry *entry = wish->entry;
    API(SignalWorkflowExecutionRequest) *request =
        message_new(call->arena, API_TYPE(signal_workflow_execution_request));
    request->domain = NDC_DOMAIN;
    request->workflow_execution = workflow_execution(call->arena, entry->id, "");
    request->signal_name = arena_format(call->arena, "s%u", wish->which);
    char *request_id = arena_text(call->arena, entry->start_request_id);
    request_id[0] = (char)('0' + wish->which % 10);
    request->request_id = request_id;
    request->signal_input = workflow_payload(call->arena, "hello");
    entry->signals_sent |= 1u << wish->which;
    API(SignalWorkflowExecutionResponse) *response = NULL;
    struct error *err = ndc_call(wish->load, call, "WorkflowAPI/SignalWorkflowExecution", request,
                                 signal_workflow_execution_response, &response);
    if (err == NULL) {
        entry->is_signal_acknowledged[wish->which] = true;
        wish->load->signals++;
    }
    return err;
}

static struct error *
send_cancel(struct wish *wish, struct load_call *call)
{
    API(RequestCancelWorkflowExecutionRequest) *request =
        message_new(call->arena, API_TYPE(request_cancel_workflow_execution_request));
    request->domain = NDC_DOMAIN;
    request->workflow_execution = workflow_execution(call->arena, wish->entry->id, "");
    request->request_id = wish->entry->start_request_id;
    API(RequestCancelWorkflowExecutionResponse) *response = NULL;
    struct error *err = ndc_call(wish->load, call, "WorkflowAPI/RequestCancelWorkflowExecution",
                                 request, request_cancel_workflow_execution_response, &response);
    wish->entry->is_end_acknowledged = wish->entry->is_end_acknowledged || err == NULL;
    return err;
}

static struct error *
send_terminate(struct wish *wish, struct load_call *call)
{
    API(TerminateWorkflowExecutionRequest) *request =
        message_new(call->arena, API_TYPE(terminate_workflow_execution_request));
    request->domain = NDC_DOMAIN;
    request->workflow_execution = workflow_execution(call->arena, wish->entry->id, "");
    request->reason = "enough";
    API(TerminateWorkflowExecutionResponse) *response = NULL;
    struct error *err = ndc_call(wish->load, call, "WorkflowAPI/TerminateWorkflowExecution",
                                 request, terminate_workflow_execution_response, &response);
    wish->entry->is_end_acknowledged = wish->entry->is_end_acknowledged || err == NULL;
    return err;
}

/* At any cluster, until one takes it, or it is told that it cannot be. */
static void
make_wish(struct wish *wish, struct load_clients *clients)
{
    for (int try = 0; try < TRIES && wish->load->verdict.violation == NULL; try++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {.clients = clients,
                                 .host = (unsigned)entropy_below(wish->load->sim->count),
                                 .arena = arena};
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        struct error *err = wish->send(wish, &call);
        bool is_final = err == NULL || err->kind == ERR_ALREADY_COMPLETED ||
                        err->kind == ERR_ALREADY_STARTED ||
                        err->kind == ERR_CANCELLATION_ALREADY_REQUESTED;
        if (is_final)
            return;
        pass_time(300 * NS_PER_MS);
    }
}

static struct workflow_entry *
new_entry(struct ndc_load *load)
{
    unsigned number = load->entry_count++;
    struct workflow_entry *entry = &load->entries[number];
    snprintf(entry->id, sizeof entry->id, "w%u", number);
    ndc_home_choose(load, number);
    random_id(entry->start_request_id, sizeof entry->start_request_id);
    entry->plan = (struct plan){
        .activities = (unsigned)entropy_below(4),
        .timers = (unsigned)entropy_below(5),
        .runs = entropy_below(3) == 0,
    };
    entry->fate = entropy_below(6) == 0   ? FATE_CANCEL
                  : entropy_below(6) == 0 ? FATE_TERMINATE
                                          : FATE_COMPLETE;
    return entry;
}

static void
client_step(struct ndc_load *load, struct load_clients *clients)
{
    struct wish wish = {.load = load};
    uint64_t what = entropy_below(10);
    if (what < 3 && load->entry_count < load->options.workflows_max) {
        wish.entry = new_entry(load);
        wish.send = send_start;
        make_wish(&wish, clients);
        wish.send = send_rival;
        if (entropy_below(3) == 0)
            make_wish(&wish, clients);
        return;
    }
    if (load->entry_count == 0)
        return;
    wish.entry = &load->entries[entropy_below(load->entry_count)];
    if (wish.entry->run_id[0] == '\0')
        return;
    wish.which = (unsigned)entropy_below(WORKFLOW_SIGNALS_FEW);
    wish.send = send_signal;
    if (what == 9 && wish.entry->fate == FATE_CANCEL)
        wish.send = send_cancel;
    if (what == 9 && wish.entry->fate == FATE_TERMINATE)
        wish.send = send_terminate;
    make_wish(&wish, clients);
}

void
ndc_client_main(void *argument)
{
    struct ndc_part *part = argument;
    struct ndc_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    while (!load->is_over && load->verdict.violation == NULL) {
        client_step(load, clients);
        pass_time(load->options.think_max);
    }
    load_clients_free(clients);
    load->clients_running--;
}

/* --- who moves the domain ---- */

void
ndc_mover_main(void *argument)
{
    struct ndc_part *part = argument;
    struct ndc_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    while (!load->is_over && load->verdict.violation == NULL) {
        pass_time(load->options.move_pause_max);
        scoped(arena_drop) struct arena *arena = arena_new(0);
        unsigned to = (unsigned)entropy_below(load->sim->count);
        struct load_call call = {.clients = clients, .host = to, .arena = arena};
        struct load_failover failover = {.name = NDC_DOMAIN,
                                         .cluster = arena_format(arena, "cluster%u", to)};
        API(Domain) *domain = NULL;
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        struct error *err = load_failover(&call, &failover, &domain);
        load->failovers += err == NULL;
    }
    load_clients_free(clients);
    load->movers_running--;
}

/* --- workers of one cluster ---- */

struct shift {
    struct ndc_load *load;
    unsigned cluster, number;
    uint64_t sequence;
    struct load_call call;
};

static void
see_decision(struct shift *shift, const API(PollForDecisionTaskResponse) *task)
{
    struct ndc_load *load = shift->load;
    size_t count = task->history == NULL ? 0 : task->history->n_events;
    if (count == 0 || task->next_page_token.len > 0)
        return;
    const API(HistoryEvent) *last = task->history->events[count - 1];
    load->decisions++;
    if (last->event_id != task->started_event_id)
        verdict_violate(&load->verdict, "%s: the history given does not end with the start",
                        task->workflow_execution->workflow_id);
    else if (sim_group_of_version(last->version) != (int)shift->cluster)
        verdict_violate(&load->verdict, "cluster%u hands out a decision of version %" PRId64,
                        shift->cluster, last->version);
}

static struct error *
answer_decision(struct shift *shift, const API(PollForDecisionTaskResponse) *task)
{
    struct arena *arena = shift->call.arena;
    struct history_seen seen = {task->history->events, task->history->n_events};
    struct plan_step step;
    char *name = arena_format(arena, "m%u.%" PRIu64, shift->number, shift->sequence++);
    plan_decide(&seen, task->workflow_execution->workflow_id, name, arena, &step);
    API(RespondDecisionTaskCompletedRequest) *request =
        message_new(arena, API_TYPE(respond_decision_task_completed_request));
    request->task_token = task->task_token;
    request->decisions = step.decisions;
    request->n_decisions = step.count;
    request->identity = "decider";
    API(RespondDecisionTaskCompletedResponse) *response = NULL;
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    return ndc_call(shift->load, &shift->call, "WorkerAPI/RespondDecisionTaskCompleted", request,
                    respond_decision_task_completed_response, &response);
}

static struct error *
decide_once(struct shift *shift)
{
    API(PollForDecisionTaskRequest) *request =
        message_new(shift->call.arena, API_TYPE(poll_for_decision_task_request));
    request->domain = NDC_DOMAIN;
    request->task_list = workflow_task_list(shift->call.arena);
    request->identity = "decider";
    API(PollForDecisionTaskResponse) *task = NULL;
    struct error *err = ndc_call(shift->load, &shift->call, "WorkerAPI/PollForDecisionTask",
                                 request, poll_for_decision_task_response, &task);
    if (err != NULL || task->task_token.len == 0)
        return err;
    see_decision(shift, task);
    if (entropy_below(15) == 0)
        return NULL; /* forgotten: a timeout covers it */
    return answer_decision(shift, task);
}

static struct error *
work_once(struct shift *shift)
{
    struct arena *arena = shift->call.arena;
    API(PollForActivityTaskRequest) *request =
        message_new(arena, API_TYPE(poll_for_activity_task_request));
    request->domain = NDC_DOMAIN;
    request->task_list = workflow_task_list(arena);
    request->identity = "worker";
    API(PollForActivityTaskResponse) *task = NULL;
    struct error *err = ndc_call(shift->load, &shift->call, "WorkerAPI/PollForActivityTask",
                                 request, poll_for_activity_task_response, &task);
    if (err != NULL || task->task_token.len == 0)
        return err;
    uint64_t what = entropy_below(8);
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    if (what == 0)
        return NULL;
    if (what == 1) {
        API(RespondActivityTaskFailedRequest) *failed =
            message_new(arena, API_TYPE(respond_activity_task_failed_request));
        failed->task_token = task->task_token;
        failed->failure = message_new(arena, API_TYPE(failure));
        failed->failure->reason = "not today";
        API(RespondActivityTaskFailedResponse) *response = NULL;
        return ndc_call(shift->load, &shift->call, "WorkerAPI/RespondActivityTaskFailed", failed,
                        respond_activity_task_failed_response, &response);
    }
    if (what < 4) {
        API(RecordActivityTaskHeartbeatRequest) *beat =
            message_new(arena, API_TYPE(record_activity_task_heartbeat_request));
        beat->task_token = task->task_token;
        beat->details = workflow_payload(arena, "beat");
        API(RecordActivityTaskHeartbeatResponse) *beaten = NULL;
        err = ndc_call(shift->load, &shift->call, "WorkerAPI/RecordActivityTaskHeartbeat", beat,
                       record_activity_task_heartbeat_response, &beaten);
        if (err != NULL)
            return err;
    }
    API(RespondActivityTaskCompletedRequest) *done =
        message_new(arena, API_TYPE(respond_activity_task_completed_request));
    done->task_token = task->task_token;
    done->result = workflow_payload(arena, "done");
    API(RespondActivityTaskCompletedResponse) *response = NULL;
    return ndc_call(shift->load, &shift->call, "WorkerAPI/RespondActivityTaskCompleted", done,
                    respond_activity_task_completed_response, &response);
}

static void
run_shifts(struct ndc_part *part, struct error *(*once)(struct shift *shift))
{
    struct ndc_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    struct shift shift = {.load = load, .cluster = part->cluster, .number = part->number};
    while (!load->is_audited && load->verdict.violation == NULL) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        shift.call = (struct load_call){
            .clients = clients, .host = part->cluster, .arena = arena, .is_worker = true};
        fiber_set_deadline(clock_monotonic() + POLL_TIMEOUT);
        struct error *err = once(&shift);
        if (err != NULL)
            pass_time(500 * NS_PER_MS);
    }
    load_clients_free(clients);
    load->workers_running--;
}

void
ndc_decider_main(void *argument)
{
    run_shifts(argument, decide_once);
}

void
ndc_activity_main(void *argument)
{
    run_shifts(argument, work_once);
}
