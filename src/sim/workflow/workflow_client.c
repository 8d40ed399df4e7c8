/* workflow_client.c - who starts, signals, cancels and terminates workflows. See workflow_load.h.
 *
 * A client sends a call again and again with the same request id, to any host, until it is
 * answered; one in four is sent once more after that. */
#include <limits.h>
#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CALL_TIMEOUT (5 * NS_PER_S)
#define HASTE_MAX    (3 * NS_PER_S)
#define HEAVY_BYTES  400000 /* three of them are more than a page of a reset */

static void
new_request_id(char room[40])
{
    struct uuid uuid = uuid_new_v4();
    uuid_format(&uuid, room);
}

static void
doze(int64_t longest)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = fiber_sleep((int64_t)entropy_below((uint64_t)longest), arena);
    check(err == NULL);
}

static void
think(const struct workflow_load *load)
{
    doze(load->think_max);
}

/* Sends until it is answered, then perhaps once more. `try` says whether that was an answer. */
static void
insist(struct client_context *client_context,
       bool (*try)(struct client_context *client_context, struct load_call *call, int which),
       int which)
{
    bool is_answered = false;
    int more = entropy_below(4) == 0 ? 1 : 0;
    while (client_context->load->verdict.violation == NULL && (!is_answered || more-- > 0)) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {.clients = client_context->clients,
                                 .host = workflow_any_host(client_context->load),
                                 .arena = arena};
        client_context->load->repeats += is_answered;
        bool is_repeat = is_answered;
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        bool is_good = try(client_context, &call, which);
        fiber_set_deadline(NEVER);
        is_answered = is_answered || is_good;
        if (is_repeat && is_good)
            world_probe(client_context->load->sim->world, "request_repeated");
        if (!is_good)
            think(client_context->load);
    }
}

/* What makes runs follow each other. */
static void
put_succession(const struct workflow_entry *entry, API(StartWorkflowExecutionRequest) *request,
               struct arena *arena)
{
    if (entry->workload.failures > 0)
        request->retry_policy = workload_retry_policy(arena);
    if (entry->workload.fires == 0)
        return;
    request->cron_schedule = (char *)entry->schedule;
    request->cron_overlap_policy =
        entry->is_buffered ? API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_BUFFER_ONE)
                           : API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_SKIPPED);
    request->jitter_start = presence_make_duration(arena, entry->jitter);
}

API(StartWorkflowExecutionRequest) *
workflow_start_request(struct workflow_entry *entry, struct arena *arena)
{
    API(StartWorkflowExecutionRequest) *request = API_NEW(
        arena, start_workflow_execution_request, .domain = WORKFLOW_DOMAIN,
        .workflow_id = entry->id, .workflow_type = API_NEW(arena, workflow_type, .name = "plan"),
        .task_list = workflow_task_list(arena),
        .input = workflow_payload(arena, workload_print(&entry->workload, arena)),
        .execution_start_to_close_timeout = presence_make_duration(arena, 24 * 3600),
        .task_start_to_close_timeout = presence_make_duration(arena, 3),
        .request_id = entry->start_request_id, .identity = "client");
    put_succession(entry, request, arena);
    return request;
}

static bool
try_start(struct client_context *client_context, struct load_call *call, int which)
{
    struct workflow_entry *entry = client_context->entry;
    API(StartWorkflowExecutionResponse) *response = NULL;
    struct error *err = workflow_call(client_context->load, call,
                                      workflow_start_request(entry, call->arena), &response);
    if (err != NULL && err->kind == ERR_ALREADY_STARTED)
        verdict_violate(&client_context->load->verdict, "%s: its own start was refused: %s",
                        entry->id, err->message);
    if (err != NULL)
        return false;
    if (entry->run_id[0] != '\0' && strcmp(entry->run_id, response->run_id) != 0)
        verdict_violate(&client_context->load->verdict, "%s: one request started two runs",
                        entry->id);
    snprintf(entry->run_id, sizeof entry->run_id, "%s", response->run_id);
    return true;
}

/* The request id of a signal follows from its name, so that a repeat is the same request. */
static const char *
signal_request_id(const struct workflow_entry *entry, int which, struct arena *arena)
{
    char *text = arena_text(arena, entry->start_request_id);
    text[0] = (char)('0' + which % 10);
    if (which >= 10)
        text[1] = (char)('A' + which / 10); /* no digit of a UUID */
    return text;
}

static const char *
heavy_text(struct arena *arena)
{
    char *text = arena_alloc(arena, HEAVY_BYTES + 1);
    memset(text, 'x', HEAVY_BYTES);
    text[HEAVY_BYTES] = '\0';
    return text;
}

static bool
try_signal(struct client_context *client_context, struct load_call *call, int which)
{
    struct workflow_entry *entry = client_context->entry;
    API(SignalWorkflowExecutionRequest) *request = API_NEW(
        call->arena, signal_workflow_execution_request, .domain = WORKFLOW_DOMAIN,
        .workflow_execution = workflow_execution(call->arena, entry->id, workflow_run_id(entry)),
        .signal_name = arena_format(call->arena, "s%d", which),
        .request_id = (char *)signal_request_id(entry, which, call->arena), .identity = "client");
    entry->signals_sent |= which < QUERIED_SIGNALS ? 1u << which : 0;
    if (entry->is_heavy)
        request->signal_input = workflow_payload(call->arena, heavy_text(call->arena));
    struct error *err = workflow_call(client_context->load, call, request, NULL);
    entry->is_signal_acknowledged[which] = entry->is_signal_acknowledged[which] || err == NULL;
    /* Only a cancellation ends it before its signals have come. */
    bool is_gone =
        err != NULL && (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED);
    if (is_gone && entry->fate == FATE_COMPLETE && !entry->is_signal_acknowledged[which])
        verdict_violate(&client_context->load->verdict, "%s: gone before its signal %d: %s",
                        entry->id, which, err->message);
    return err == NULL || is_gone;
}

static bool
try_end(struct client_context *client_context, struct load_call *call, int which)
{
    struct workflow_entry *entry = client_context->entry;
    struct arena *arena = call->arena;
    struct error *err;
    ledger_note_ending(client_context->load, entry, call->host);
    if (entry->fate == FATE_CANCEL) {
        API(RequestCancelWorkflowExecutionRequest) *request =
            API_NEW(arena, request_cancel_workflow_execution_request, .domain = WORKFLOW_DOMAIN,
                    .workflow_execution = workflow_execution(arena, entry->id, ""),
                    .request_id = (char *)signal_request_id(entry, 9, arena));
        API(RequestCancelWorkflowExecutionResponse) *response = NULL;
        err = workflow_call(client_context->load, call, request, &response);
    } else {
        API(TerminateWorkflowExecutionRequest) *request = API_NEW(
            arena, terminate_workflow_execution_request, .domain = WORKFLOW_DOMAIN,
            .workflow_execution = workflow_execution(arena, entry->id, ""), .reason = "enough");
        API(TerminateWorkflowExecutionResponse) *response = NULL;
        err = workflow_call(client_context->load, call, request, &response);
    }
    entry->is_end_acknowledged = entry->is_end_acknowledged || err == NULL;
    if (err != NULL)
        ledger_note_refusal(client_context->load, entry, err);
    return err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS ||
           err->kind == ERR_ALREADY_COMPLETED || err->kind == ERR_CANCELLATION_ALREADY_REQUESTED;
}

/* Some are tried again, some run by a schedule, some both. */
static void
choose_succession(struct workflow_entry *entry)
{
    static const char *const schedules[] = {"@every 2s", "@every 5s", "* * * * *"};
    if (entropy_below(5) == 0)
        entry->workload.failures = 1 + (unsigned)entropy_below(3);
    if (entropy_below(5) != 0)
        return;
    entry->workload.fires = 1 + (unsigned)entropy_below(3);
    entry->schedule = schedules[entropy_below(array_length(schedules))];
    entry->is_buffered = entropy_below(2) == 0;
    entry->jitter = (unsigned)entropy_below(3);
}

static struct workflow_entry *
new_entry(struct workflow_load *load)
{
    struct workflow_entry *entry = &load->entries[load->entry_count];
    *entry = (struct workflow_entry){
        .workload = {.activities = (unsigned)entropy_below(3),
                     .timers = (unsigned)entropy_below(3),
                     .signals = (unsigned)entropy_below(WORKFLOW_SIGNALS_FEW),
                     .runs = entropy_below(4) == 0 ? 1 : 0},
        .fate = entropy_below(6) == 0 ? (entropy_below(2) == 0 ? FATE_CANCEL : FATE_TERMINATE)
                                      : FATE_COMPLETE,
    };
    bool is_reset = !load->is_hasty && load->shard_log == NULL && entry->fate == FATE_COMPLETE &&
                    entropy_below(3) == 0;
    if (!is_reset && (load->is_hasty || entropy_below(2) == 0)) { /* open children forbid a reset */
        entry->workload.children = 1 + (unsigned)entropy_below(2);
        entry->workload.child_policy = (unsigned)entropy_below(CHILD_POLICY_COUNT);
        entry->workload.child_runs = (unsigned)entropy_below(2);
        entry->workload.child_failures = entropy_below(4) == 0 ? 1 + (unsigned)entropy_below(2) : 0;
        entry->workload.child_fires = entropy_below(4) == 0 ? 1 + (unsigned)entropy_below(2) : 0;
    }
    choose_succession(entry);
    if (load->is_hasty) {
        entry->fate = FATE_TERMINATE;
        entry->workload.signals = 0;
    }
    if (load->is_signaling) {
        entry->workload =
            (struct workload){.children = 2, .child_policy = CHILD_POLICY_WAITS, .child_runs = 1};
        entry->fate = FATE_COMPLETE;
        is_reset = false;
    }
    unsigned number = load->entry_count++;
    snprintf(entry->id, sizeof entry->id, "flow-%u", number);
    new_request_id(entry->start_request_id);
    new_request_id(entry->reset_request_id);
    entry->reset_after = is_reset ? (unsigned)entropy_below(entry->workload.signals + 1) : UINT_MAX;
    entry->is_heavy = is_reset && entropy_below(4) == 0;
    if (entry->is_heavy)
        entry->reset_after = entry->workload.signals = WORKFLOW_SIGNALS_FEW - 1;
    workflow_choose_start(entry, number);
    return entry;
}

static void
reset_when_due(struct client_context *client_context, unsigned signals_sent)
{
    if (client_context->entry->reset_after != signals_sent)
        return;
    for (uint64_t i = entropy_below(4); i > 0; i--)
        think(client_context->load); /* it may go far meanwhile, or end */
    insist(client_context, workflow_choose_fork, 0);
    if (client_context->entry->fork != 0)
        insist(client_context, workflow_try_reset, 0);
}

/* Now; or later, and then it is looked for. */
static void
start(struct client_context *client_context)
{
    if (client_context->entry->start == START_NOW) {
        insist(client_context, try_start, 0);
        return;
    }
    insist(client_context, workflow_try_start_later, 0);
    if (client_context->entry->start == START_LATER_WITH_COMPETITOR)
        insist(client_context, workflow_try_competing_start, 0);
    insist(client_context, workflow_try_find, 0);
}

/* Its children are being started: the owner that does it may be overtaken by the one that ends
 * their parent. Answers get lost, so it does not wait for long. */
static void
wait_for_children(const struct client_context *client_context)
{
    int64_t end = clock_monotonic() + HASTE_MAX;
    while (!client_context->entry->has_asked && clock_monotonic() < end)
        doze(5 * NS_PER_MS);
    doze(entropy_below(2) == 0 ? 5 * NS_PER_MS : 200 * NS_PER_MS);
}

static void
live_through(struct client_context *client_context)
{
    client_context->entry = new_entry(client_context->load);
    start(client_context);
    if (entropy_below(4) == 0 && client_context->entry->run_id[0] != '\0')
        workflow_ask_visibility(client_context->load, client_context->entry,
                                client_context->clients);
    unsigned first = client_context->entry->start == START_LATER_SIGNALED ? 1 : 0;
    for (unsigned i = first; i < client_context->entry->workload.signals; i++) {
        reset_when_due(client_context, i);
        think(client_context->load);
        insist(client_context, try_signal, (int)i);
        if (entropy_below(3) == 0)
            workflow_query(client_context->load, client_context->entry, client_context->clients);
    }
    reset_when_due(client_context, client_context->entry->workload.signals);
    if (client_context->load->is_hasty)
        wait_for_children(client_context);
    if (client_context->entry->fate != FATE_COMPLETE)
        insist(client_context, try_end, 0);
    if (entropy_below(4) == 0)
        workflow_query(client_context->load, client_context->entry, client_context->clients);
}

/* One id that all clients signal at once: its steps queue behind each other, and most of its
 * signals come while a decision is started. The first client starts it. */
static void
besiege(struct client_context *client_context, unsigned number)
{
    struct workflow_load *load = client_context->load;
    struct workflow_entry *entry = client_context->entry = &load->entries[0];
    if (number == 0) {
        load->entry_count = 1;
        *entry = (struct workflow_entry){
            .workload = {.activities = 2, .timers = 1, .signals = load->busy_signals, .runs = 1},
            .reset_after = UINT_MAX};
        snprintf(entry->id, sizeof entry->id, "busy");
        new_request_id(entry->start_request_id);
        insist(client_context, try_start, 0);
    }
    while (entry->run_id[0] == '\0' && load->verdict.violation == NULL)
        think(load);
    for (unsigned i = number; i < load->busy_signals; i += load->client_count)
        insist(client_context, try_signal, (int)i);
}

void
workflow_client_main(void *argument)
{
    struct workflow_part *part = argument;
    struct workflow_load *load = part->load;
    struct client_context client_context = {.load = load, .clients = load_clients_new(load->sim)};
    if (load->busy_signals > 0)
        besiege(&client_context, part->number - load->worker_count);
    while (!load->is_over && load->verdict.violation == NULL &&
           load->entry_count < load->entries_max) {
        live_through(&client_context);
        think(load);
    }
    load_clients_free(client_context.clients);
    load->clients_running--;
}
