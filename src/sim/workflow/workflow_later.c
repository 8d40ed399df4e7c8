/* workflow_later.c - workflows whose start is accepted and done later. See workflow_load.h.
 *
 * The client hears only that the start was accepted. It then looks until the workflow is there: it
 * must come, however the hosts crash, by the request that was accepted first. A competing request
 * for the same id, accepted behind it, allows no run before it; so it is dropped, if requests do
 * not overtake each other. */
#include <limits.h>
#include <stdio.h>

#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"

#define SEARCHES_MAX 2000 /* when all is healed: that takes minutes */

struct error *
workflow_allow_later(struct load_call *call)
{
    ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest) *request = ADMIN_NEW(
        call->arena, update_domain_async_workflow_configuraton_request, .domain = WORKFLOW_DOMAIN,
        .configuration = API_NEW(call->arena, async_workflow_configuration, .enabled = true));
    return load_send(call, request, NULL);
}

/* A repeat of a signal is known by the run that got it: so there is only that one. */
void
workflow_choose_start(struct workflow_entry *entry, unsigned number)
{
    static const enum workflow_start starts[] = {START_NOW, START_LATER,
                                                 START_NOW, START_LATER_WITH_COMPETITOR,
                                                 START_NOW, START_LATER_SIGNALED};
    entry->start = starts[number % array_length(starts)];
    if (entry->start != START_LATER_SIGNALED)
        return;
    entry->start_request_id[0] = 'a'; /* is that of no other signal */
    entry->workload.runs = entry->workload.failures = entry->workload.fires = 0;
    entry->workload.signals = entry->workload.signals == 0 ? 1 : entry->workload.signals;
    entry->reset_after = UINT_MAX;
    entry->is_heavy = false;
}

static bool
try_signaled(struct client_context *client_context, struct load_call *call)
{
    struct workflow_entry *entry = client_context->entry;
    API(SignalWithStartWorkflowExecutionAsyncRequest) *request =
        API_NEW(call->arena, signal_with_start_workflow_execution_async_request,
                .request = API_NEW(call->arena, signal_with_start_workflow_execution_request,
                                   .start_request = workflow_start_request(entry, call->arena),
                                   .signal_name = "s0"));
    entry->signals_sent |= 1;
    struct error *err = workflow_call(client_context->load, call, request, NULL);
    entry->is_signal_acknowledged[0] = entry->is_signal_acknowledged[0] || err == NULL;
    return err == NULL;
}

static bool
send_later(struct client_context *client_context, struct load_call *call,
           API(StartWorkflowExecutionRequest) *start)
{
    return workflow_call(
               client_context->load, call,
               API_NEW(call->arena, start_workflow_execution_async_request, .request = start),
               NULL) == NULL;
}

bool
workflow_try_start_later(struct client_context *client_context, struct load_call *call, int which)
{
    if (client_context->entry->start == START_LATER_SIGNALED)
        return try_signaled(client_context, call);
    return send_later(client_context, call,
                      workflow_start_request(client_context->entry, call->arena));
}

bool
workflow_try_competing_start(struct client_context *client_context, struct load_call *call,
                             int which)
{
    API(StartWorkflowExecutionRequest) *start =
        workflow_start_request(client_context->entry, call->arena);
    struct uuid uuid = uuid_new_v4();
    start->request_id = arena_zalloc(call->arena, UUID_TEXT_LENGTH + 1, 1);
    uuid_format(&uuid, start->request_id);
    start->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE);
    return send_later(client_context, call, start);
}

bool
workflow_try_find(struct client_context *client_context, struct load_call *call, int which)
{
    struct workflow_entry *entry = client_context->entry;
    struct history_seen seen;
    struct error *err = workflow_read_history(client_context->load, call, entry->id, "", &seen);
    entry->searches += client_context->load->is_over;
    if (entry->searches > SEARCHES_MAX)
        verdict_violate(&client_context->load->verdict, "%s: its start was accepted and never came",
                        entry->id);
    if (err != NULL || seen.count == 0)
        return false;
    const API(WorkflowExecutionStartedEventAttributes) *started =
        seen.events[0]->workflow_execution_started_event_attributes;
    bool is_first = started->continued_execution_run_id[0] == '\0';
    if (is_first && strcmp(started->request_id, entry->start_request_id) != 0)
        verdict_violate(&client_context->load->verdict,
                        "%s: started by request %s, accepted before was %s", entry->id,
                        started->request_id, entry->start_request_id);
    if (entry->run_id[0] != '\0' && strcmp(entry->run_id, started->first_execution_run_id) != 0)
        verdict_violate(&client_context->load->verdict, "%s: one request started two runs",
                        entry->id);
    snprintf(entry->run_id, sizeof entry->run_id, "%s", started->first_execution_run_id);
    world_probe(client_context->load->sim->world, "accepted_start_found");
    return true;
}
