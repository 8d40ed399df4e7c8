/* ndc_client.c - who calls, and who moves the domain. See ndc_load.h. */
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
#define TRIES        12

void
ndc_pass_time(int64_t at_most)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    fiber_set_deadline(NEVER);
    struct error *err = fiber_sleep((int64_t)entropy_below((uint64_t)at_most), arena);
    check(err == NULL);
}

void
ndc_random_id(char *room, size_t size)
{
    uint8_t bytes[16];
    entropy_bytes(bytes, sizeof bytes);
    struct uuid uuid = uuid_v4(bytes);
    char text[UUID_TEXT_LENGTH + 1];
    uuid_format(&uuid, text);
    snprintf(room, size, "%s", text);
}

char *
ndc_identity(unsigned cluster, struct arena *arena)
{
    return arena_format(arena, "worker@%u", cluster);
}

int
ndc_cluster_of_identity(const char *identity)
{
    unsigned cluster;
    return sscanf(identity, "worker@%u", &cluster) == 1 ? (int)cluster : -1;
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
        ndc_pass_time(300 * NS_PER_MS);
    }
}

static struct workflow_entry *
new_entry(struct ndc_load *load)
{
    unsigned number = load->entry_count++;
    struct workflow_entry *entry = &load->entries[number];
    snprintf(entry->id, sizeof entry->id, "w%u", number);
    ndc_home_choose(load, number);
    ndc_random_id(entry->start_request_id, sizeof entry->start_request_id);
    entry->plan = (struct plan){
        .activities = (unsigned)entropy_below(4),
        .timers = (unsigned)entropy_below(5),
        .runs = entropy_below(3) == 0,
        .failures = entropy_below(5) == 0,
        .fires = entropy_below(8) == 0 ? 2 : 0,
        .is_mild = 1,
    };
    if (entropy_below(3) == 0) {
        entry->plan.children = 1 + (unsigned)entropy_below(2);
        entry->plan.family = (unsigned)entropy_below(FAMILY_COUNT);
        entry->plan.child_runs = entropy_below(3) == 0;
        entry->plan.child_failures = entropy_below(4) == 0;
    }
    entry->schedule = number % 2 == 0 ? "@every 2s" : "@every 3s";
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
        if (!load->options.has_no_rivals && entropy_below(3) == 0)
            make_wish(&wish, clients);
        return;
    }
    if (load->entry_count == 0)
        return;
    wish.entry = &load->entries[entropy_below(load->entry_count)];
    if (wish.entry->run_id[0] == '\0')
        return;
    if (what == 8 && entropy_below(3) == 0) {
        ndc_reset(load, clients, wish.entry);
        return;
    }
    if (what == 7 && entropy_below(2) == 0) {
        ndc_resend(load, clients, wish.entry);
        return;
    }
    if (what == 6 && entropy_below(3) == 0) {
        ndc_rebuild(load, clients, wish.entry);
        return;
    }
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
        ndc_pass_time(load->options.think_max);
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
        ndc_pass_time(load->options.move_pause_max);
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
