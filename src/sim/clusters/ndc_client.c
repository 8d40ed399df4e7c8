/* ndc_client.c - who calls, and who moves the domain. See ndc_load.h. */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "sim/clusters/ndc_load.h"
#include "sim/workflow/workflow_inside.h"
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

/* One request of a client. */
struct client_request {
    struct ndc_load *load;
    struct workflow_entry *entry;
    unsigned which; /* signal */
    struct error *(*send)(struct client_request *client_request, struct load_call *call);
};

static struct error *
send_start(struct client_request *client_request, struct load_call *call)
{
    struct workflow_entry *entry = client_request->entry;
    API(StartWorkflowExecutionRequest) *request = workflow_start_request(entry, call->arena);
    API(StartWorkflowExecutionResponse) *response = NULL;
    ndc_home_put(client_request->load, (unsigned)(entry - client_request->load->entries), false,
                 call, request);
    struct error *err = ndc_call(client_request->load, call, request, &response);
    if (err == NULL)
        snprintf(entry->run_id, sizeof entry->run_id, "%s", response->run_id);
    return err;
}

/* Somebody else starts the same workflow at the same time: where clusters do not hear of each
 * other, both may. */
static struct error *
send_competing_start(struct client_request *client_request, struct load_call *call)
{
    API(StartWorkflowExecutionRequest) *request =
        workflow_start_request(client_request->entry, call->arena);
    char *request_id = arena_text(call->arena, request->request_id);
    request_id[0] = request_id[0] == 'a' ? 'b' : 'a';
    request->request_id = request_id;
    ndc_home_put(client_request->load,
                 (unsigned)(client_request->entry - client_request->load->entries), true, call,
                 request);
    return ndc_call(client_request->load, call, request, NULL);
}

static struct error *
send_signal(struct client_request *client_request, struct load_call *call)
{
    struct workflow_entry *entry = client_request->entry;
    API(SignalWorkflowExecutionRequest) *request =
        API_NEW(call->arena, signal_workflow_execution_request, .domain = NDC_DOMAIN,
                .workflow_execution = workflow_execution(call->arena, entry->id, ""),
                .signal_name = arena_format(call->arena, "s%u", client_request->which));
    char *request_id = arena_text(call->arena, entry->start_request_id);
    request_id[0] = (char)('0' + client_request->which % 10);
    request->request_id = request_id;
    request->signal_input = workflow_payload(call->arena, "hello");
    entry->signals_sent |= 1u << client_request->which;
    struct error *err = ndc_call(client_request->load, call, request, NULL);
    if (err == NULL) {
        entry->is_signal_acknowledged[client_request->which] = true;
        client_request->load->signals++;
    }
    return err;
}

static struct error *
send_cancel(struct client_request *client_request, struct load_call *call)
{
    API(RequestCancelWorkflowExecutionRequest) *request = API_NEW(
        call->arena, request_cancel_workflow_execution_request, .domain = NDC_DOMAIN,
        .workflow_execution = workflow_execution(call->arena, client_request->entry->id, ""),
        .request_id = client_request->entry->start_request_id);
    struct error *err = ndc_call(client_request->load, call, request, NULL);
    client_request->entry->is_end_acknowledged =
        client_request->entry->is_end_acknowledged || err == NULL;
    return err;
}

static struct error *
send_terminate(struct client_request *client_request, struct load_call *call)
{
    API(TerminateWorkflowExecutionRequest) *request = API_NEW(
        call->arena, terminate_workflow_execution_request, .domain = NDC_DOMAIN,
        .workflow_execution = workflow_execution(call->arena, client_request->entry->id, ""),
        .reason = "enough");
    struct error *err = ndc_call(client_request->load, call, request, NULL);
    client_request->entry->is_end_acknowledged =
        client_request->entry->is_end_acknowledged || err == NULL;
    return err;
}

/* At any cluster, until one takes it, or it is told that it cannot be. */
static void
send_until_answered(struct client_request *client_request, struct load_clients *clients)
{
    for (int try = 0; try < TRIES && client_request->load->verdict.violation == NULL; try++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {.clients = clients,
                                 .host = (unsigned)entropy_below(client_request->load->sim->count),
                                 .arena = arena};
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        struct error *err = client_request->send(client_request, &call);
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
    entry->workload = (struct workload){
        .activities = (unsigned)entropy_below(4),
        .timers = (unsigned)entropy_below(5),
        .runs = entropy_below(3) == 0,
        .failures = entropy_below(5) == 0,
        .fires = entropy_below(8) == 0 ? 2 : 0,
        .is_mild = 1,
    };
    if (entropy_below(3) == 0) {
        entry->workload.children = 1 + (unsigned)entropy_below(2);
        entry->workload.child_policy = (unsigned)entropy_below(CHILD_POLICY_COUNT);
        entry->workload.child_runs = entropy_below(3) == 0;
        entry->workload.child_failures = entropy_below(4) == 0;
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
    struct client_request client_request = {.load = load};
    uint64_t what = entropy_below(10);
    if (what < 3 && load->entry_count < load->options.workflows_max) {
        client_request.entry = new_entry(load);
        client_request.send = send_start;
        send_until_answered(&client_request, clients);
        client_request.send = send_competing_start;
        if (!load->options.has_no_competing_starts && entropy_below(3) == 0)
            send_until_answered(&client_request, clients);
        return;
    }
    if (load->entry_count == 0)
        return;
    client_request.entry = &load->entries[entropy_below(load->entry_count)];
    if (client_request.entry->run_id[0] == '\0')
        return;
    if (what == 8 && entropy_below(3) == 0) {
        ndc_reset(load, clients, client_request.entry);
        return;
    }
    if (what == 7 && entropy_below(2) == 0) {
        ndc_resend(load, clients, client_request.entry);
        return;
    }
    if (what == 6 && entropy_below(3) == 0) {
        ndc_rebuild(load, clients, client_request.entry);
        return;
    }
    client_request.which = (unsigned)entropy_below(WORKFLOW_SIGNALS_FEW);
    client_request.send = send_signal;
    if (what == 9 && client_request.entry->fate == FATE_CANCEL)
        client_request.send = send_cancel;
    if (what == 9 && client_request.entry->fate == FATE_TERMINATE)
        client_request.send = send_terminate;
    send_until_answered(&client_request, clients);
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
        ndc_rest(load);
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
        ndc_rest(load);
        scoped(arena_drop) struct arena *arena = arena_new(0);
        unsigned to = (unsigned)entropy_below(load->sim->count);
        struct load_call call = {.clients = clients, .host = to, .arena = arena};
        struct load_failover failover = {.name = NDC_DOMAIN,
                                         .cluster = arena_format(arena, "cluster%u", to)};
        API(Domain) *domain = NULL;
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        struct error *err = load_failover(&call, &failover, &domain);
        load->failovers += err == NULL;
        if (err == NULL)
            load->moved_to[0] = to;
    }
    load_clients_free(clients);
    load->movers_running--;
}
