/* workflow_client.c - who starts, signals, cancels and terminates workflows. See workflow_load.h.
 *
 * A client sends a call again and again with the same request id, to any host, until it is
 * answered; one in four is sent once more after that. */
#include <limits.h>
#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "sim/workflow_inside.h"
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
insist(struct errand *errand, bool (*try)(struct errand *errand, struct load_call *call, int which),
       int which)
{
    bool is_answered = false;
    int more = entropy_below(4) == 0 ? 1 : 0;
    while (errand->load->verdict.violation == NULL && (!is_answered || more-- > 0)) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {
            .clients = errand->clients, .host = workflow_any_host(errand->load), .arena = arena};
        errand->load->repeats += is_answered;
        bool is_repeat = is_answered;
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        bool is_good = try(errand, &call, which);
        fiber_set_deadline(NEVER);
        is_answered = is_answered || is_good;
        if (is_repeat && is_good)
            world_mark(errand->load->sim->world, "request_repeated");
        if (!is_good)
            think(errand->load);
    }
}

/* What makes runs follow each other. */
static void
put_succession(const struct workflow_entry *entry, API(StartWorkflowExecutionRequest) *request,
               struct arena *arena)
{
    if (entry->plan.failures > 0)
        request->retry_policy = plan_retry_policy(arena);
    if (entry->plan.fires == 0)
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
    API(StartWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(start_workflow_execution_request));
    request->domain = WORKFLOW_DOMAIN;
    request->workflow_id = entry->id;
    request->workflow_type = message_new(arena, API_TYPE(workflow_type));
    request->workflow_type->name = "plan";
    request->task_list = workflow_task_list(arena);
    request->input = workflow_payload(arena, plan_print(&entry->plan, arena));
    request->execution_start_to_close_timeout = presence_make_duration(arena, 24 * 3600);
    request->task_start_to_close_timeout = presence_make_duration(arena, 3);
    request->request_id = entry->start_request_id;
    request->identity = "client";
    put_succession(entry, request, arena);
    return request;
}

static bool
try_start(struct errand *errand, struct load_call *call, int which)
{
    struct workflow_entry *entry = errand->entry;
    API(StartWorkflowExecutionRequest) *request = workflow_start_request(entry, call->arena);
    API(StartWorkflowExecutionResponse) *response = NULL;
    struct error *err = workflow_call(errand->load, call, "WorkflowAPI/StartWorkflowExecution",
                                      request, start_workflow_execution_response, &response);
    if (err != NULL && err->kind == ERR_ALREADY_STARTED)
        verdict_violate(&errand->load->verdict, "%s: its own start was refused: %s", entry->id,
                        err->message);
    if (err != NULL)
        return false;
    if (entry->run_id[0] != '\0' && strcmp(entry->run_id, response->run_id) != 0)
        verdict_violate(&errand->load->verdict, "%s: one request started two runs", entry->id);
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
try_signal(struct errand *errand, struct load_call *call, int which)
{
    struct workflow_entry *entry = errand->entry;
    API(SignalWorkflowExecutionRequest) *request =
        message_new(call->arena, API_TYPE(signal_workflow_execution_request));
    request->domain = WORKFLOW_DOMAIN;
    request->workflow_execution =
        workflow_execution(call->arena, entry->id, workflow_run_id(entry));
    request->signal_name = arena_format(call->arena, "s%d", which);
    request->request_id = (char *)signal_request_id(entry, which, call->arena);
    request->identity = "client";
    entry->signals_sent |= which < QUERIED_SIGNALS ? 1u << which : 0;
    if (entry->is_heavy)
        request->signal_input = workflow_payload(call->arena, heavy_text(call->arena));
    API(SignalWorkflowExecutionResponse) *response = NULL;
    struct error *err = workflow_call(errand->load, call, "WorkflowAPI/SignalWorkflowExecution",
                                      request, signal_workflow_execution_response, &response);
    entry->is_signal_acknowledged[which] = entry->is_signal_acknowledged[which] || err == NULL;
    /* Nothing but the plan's own end comes before its signals, except when it is cancelled. */
    bool is_gone =
        err != NULL && (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED);
    if (is_gone && entry->fate == FATE_COMPLETE && !entry->is_signal_acknowledged[which])
        verdict_violate(&errand->load->verdict, "%s: gone before its signal %d: %s", entry->id,
                        which, err->message);
    return err == NULL || is_gone;
}

static bool
try_end(struct errand *errand, struct load_call *call, int which)
{
    struct workflow_entry *entry = errand->entry;
    struct arena *arena = call->arena;
    struct error *err;
    ledger_note_ending(errand->load, entry, call->host);
    if (entry->fate == FATE_CANCEL) {
        API(RequestCancelWorkflowExecutionRequest) *request =
            message_new(arena, API_TYPE(request_cancel_workflow_execution_request));
        request->domain = WORKFLOW_DOMAIN;
        request->workflow_execution = workflow_execution(arena, entry->id, "");
        request->request_id = (char *)signal_request_id(entry, 9, arena);
        API(RequestCancelWorkflowExecutionResponse) *response = NULL;
        err = workflow_call(errand->load, call, "WorkflowAPI/RequestCancelWorkflowExecution",
                            request, request_cancel_workflow_execution_response, &response);
    } else {
        API(TerminateWorkflowExecutionRequest) *request =
            message_new(arena, API_TYPE(terminate_workflow_execution_request));
        request->domain = WORKFLOW_DOMAIN;
        request->workflow_execution = workflow_execution(arena, entry->id, "");
        request->reason = "enough";
        API(TerminateWorkflowExecutionResponse) *response = NULL;
        err = workflow_call(errand->load, call, "WorkflowAPI/TerminateWorkflowExecution", request,
                            terminate_workflow_execution_response, &response);
    }
    entry->is_end_acknowledged = entry->is_end_acknowledged || err == NULL;
    if (err != NULL)
        ledger_note_refusal(errand->load, entry, err);
    return err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS ||
           err->kind == ERR_ALREADY_COMPLETED || err->kind == ERR_CANCELLATION_ALREADY_REQUESTED;
}

/* Some are tried again, some run by a schedule, some both. */
static void
plan_succession(struct workflow_entry *entry)
{
    static const char *const schedules[] = {"@every 2s", "@every 5s", "* * * * *"};
    if (entropy_below(5) == 0)
        entry->plan.failures = 1 + (unsigned)entropy_below(3);
    if (entropy_below(5) != 0)
        return;
    entry->plan.fires = 1 + (unsigned)entropy_below(3);
    entry->schedule = schedules[entropy_below(array_length(schedules))];
    entry->is_buffered = entropy_below(2) == 0;
    entry->jitter = (unsigned)entropy_below(3);
}

static struct workflow_entry *
new_entry(struct workflow_load *load)
{
    struct workflow_entry *entry = &load->entries[load->entry_count];
    *entry = (struct workflow_entry){
        .plan = {.activities = (unsigned)entropy_below(3),
                 .timers = (unsigned)entropy_below(3),
                 .signals = (unsigned)entropy_below(WORKFLOW_SIGNALS_FEW),
                 .runs = entropy_below(4) == 0 ? 1 : 0},
        .fate = entropy_below(6) == 0 ? (entropy_below(2) == 0 ? FATE_CANCEL : FATE_TERMINATE)
                                      : FATE_COMPLETE,
    };
    bool is_reset = !load->is_hasty && load->shard_log == NULL && entry->fate == FATE_COMPLETE &&
                    entropy_below(3) == 0;
    if (!is_reset && (load->is_hasty || entropy_below(2) == 0)) { /* open children forbid a reset */
        entry->plan.children = 1 + (unsigned)entropy_below(2);
        entry->plan.family = (unsigned)entropy_below(FAMILY_COUNT);
        entry->plan.child_runs = (unsigned)entropy_below(2);
        entry->plan.child_failures = entropy_below(4) == 0 ? 1 + (unsigned)entropy_below(2) : 0;
        entry->plan.child_fires = entropy_below(4) == 0 ? 1 + (unsigned)entropy_below(2) : 0;
    }
    plan_succession(entry);
    if (load->is_hasty) {
        entry->fate = FATE_TERMINATE;
        entry->plan.signals = 0;
    }
    if (load->is_signaling) {
        entry->plan = (struct plan){.children = 2, .family = FAMILY_WAITS, .child_runs = 1};
        entry->fate = FATE_COMPLETE;
        is_reset = false;
    }
    unsigned number = load->entry_count++;
    snprintf(entry->id, sizeof entry->id, "flow-%u", number);
    new_request_id(entry->start_request_id);
    new_request_id(entry->reset_request_id);
    entry->reset_after = is_reset ? (unsigned)entropy_below(entry->plan.signals + 1) : UINT_MAX;
    entry->is_heavy = is_reset && entropy_below(4) == 0;
    if (entry->is_heavy)
        entry->reset_after = entry->plan.signals = WORKFLOW_SIGNALS_FEW - 1;
    workflow_choose_start(entry, number);
    return entry;
}

static void
reset_when_due(struct errand *errand, unsigned signals_sent)
{
    if (errand->entry->reset_after != signals_sent)
        return;
    for (uint64_t i = entropy_below(4); i > 0; i--)
        think(errand->load); /* it may go far meanwhile, or end */
    insist(errand, workflow_choose_fork, 0);
    if (errand->entry->fork != 0)
        insist(errand, workflow_try_reset, 0);
}

/* Now; or later, and then it is looked for. */
static void
start(struct errand *errand)
{
    if (errand->entry->start == START_NOW) {
        insist(errand, try_start, 0);
        return;
    }
    insist(errand, workflow_try_start_later, 0);
    if (errand->entry->start == START_LATER_WITH_RIVAL)
        insist(errand, workflow_try_rival, 0);
    insist(errand, workflow_try_find, 0);
}

/* Its children are being started: the owner that does it may be overtaken by the one that ends
 * their parent. Answers get lost, so it does not wait for long. */
static void
wait_for_children(const struct errand *errand)
{
    int64_t end = clock_monotonic() + HASTE_MAX;
    while (!errand->entry->has_asked && clock_monotonic() < end)
        doze(5 * NS_PER_MS);
    doze(entropy_below(2) == 0 ? 5 * NS_PER_MS : 200 * NS_PER_MS);
}

static void
live_through(struct errand *errand)
{
    errand->entry = new_entry(errand->load);
    start(errand);
    if (entropy_below(4) == 0 && errand->entry->run_id[0] != '\0')
        workflow_ask_lists(errand->load, errand->entry, errand->clients);
    unsigned first = errand->entry->start == START_LATER_SIGNALED ? 1 : 0;
    for (unsigned i = first; i < errand->entry->plan.signals; i++) {
        reset_when_due(errand, i);
        think(errand->load);
        insist(errand, try_signal, (int)i);
        if (entropy_below(3) == 0)
            workflow_query(errand->load, errand->entry, errand->clients);
    }
    reset_when_due(errand, errand->entry->plan.signals);
    if (errand->load->is_hasty)
        wait_for_children(errand);
    if (errand->entry->fate != FATE_COMPLETE)
        insist(errand, try_end, 0);
    if (entropy_below(4) == 0)
        workflow_query(errand->load, errand->entry, errand->clients);
}

/* One id that all clients signal at once: its steps queue behind each other, and most of its
 * signals come while a decision is started. The first client starts it. */
static void
besiege(struct errand *errand, unsigned number)
{
    struct workflow_load *load = errand->load;
    struct workflow_entry *entry = errand->entry = &load->entries[0];
    if (number == 0) {
        load->entry_count = 1;
        *entry = (struct workflow_entry){
            .plan = {.activities = 2, .timers = 1, .signals = load->busy_signals, .runs = 1},
            .reset_after = UINT_MAX};
        snprintf(entry->id, sizeof entry->id, "busy");
        new_request_id(entry->start_request_id);
        insist(errand, try_start, 0);
    }
    while (entry->run_id[0] == '\0' && load->verdict.violation == NULL)
        think(load);
    for (unsigned i = number; i < load->busy_signals; i += load->client_count)
        insist(errand, try_signal, (int)i);
}

void
workflow_client_main(void *argument)
{
    struct workflow_part *part = argument;
    struct workflow_load *load = part->load;
    struct errand errand = {.load = load, .clients = load_clients_new(load->sim)};
    if (load->busy_signals > 0)
        besiege(&errand, part->number - load->worker_count);
    while (!load->is_over && load->verdict.violation == NULL &&
           load->entry_count < load->entries_max) {
        live_through(&errand);
        think(load);
    }
    load_clients_free(errand.clients);
    load->clients_running--;
}
