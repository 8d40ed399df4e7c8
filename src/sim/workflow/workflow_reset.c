/* workflow_reset.c - a client that puts a workflow back to one of its decisions. See
 * workflow_load.h.
 *
 * It reads the history of the run that it started, chooses a decision in it by chance, and insists
 * on the reset. Whatever the run is by then, open, completed or gone on as another one: the
 * workflow goes on in the run that the reset made, with every signal that was acknowledged. */
#include <stdio.h>

#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "wire/message.h"

#define EVENT(name) API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)

static bool
is_fork(const API(HistoryEvent) *event)
{
    int kind = (int)event->attributes_case;
    return kind == EVENT(DECISION_TASK_STARTED) || kind == EVENT(DECISION_TASK_COMPLETED) ||
           kind == EVENT(DECISION_TASK_FAILED) || kind == EVENT(DECISION_TASK_TIMED_OUT);
}

const char *
workflow_run_id(const struct workflow_entry *entry)
{
    return entry->reset_run_id[0] != '\0' ? entry->reset_run_id : entry->run_id;
}

bool
workflow_choose_fork(struct client_context *client_context, struct load_call *call, int which)
{
    (void)which;
    struct workflow_entry *entry = client_context->entry;
    struct history_seen seen;
    struct error *err =
        workflow_read_history(client_context->load, call, entry->id, entry->run_id, &seen);
    if (err != NULL)
        return false;
    if (entry->fork != 0)
        return true; /* asked once more, but it is chosen */
    ledger_see(client_context->load, entry->run_id, seen.events, seen.count);
    uint64_t found = 0;
    for (size_t i = 0; i < seen.count; i++)
        if (is_fork(seen.events[i]) && (entry->is_heavy || entropy_below(++found) == 0))
            entry->fork = seen.events[i]->event_id;
    return true;
}

bool
workflow_try_reset(struct client_context *client_context, struct load_call *call, int which)
{
    (void)which;
    struct workflow_entry *entry = client_context->entry;
    struct workflow_load *load = client_context->load;
    API(ResetWorkflowExecutionRequest) *request =
        API_NEW(call->arena, reset_workflow_execution_request, .domain = WORKFLOW_DOMAIN,
                .workflow_execution = workflow_execution(call->arena, entry->id, entry->run_id),
                .reason = "once more", .decision_finish_event_id = entry->fork,
                .request_id = entry->reset_request_id);
    API(ResetWorkflowExecutionResponse) *response = NULL;
    struct error *err = workflow_call(load, call, request, &response);
    if (err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS)
        verdict_violate(&load->verdict, "%s: its reset was refused: %s", entry->id, err->message);
    if (err != NULL)
        return false;
    if (entry->reset_run_id[0] != '\0' && strcmp(entry->reset_run_id, response->run_id) != 0)
        verdict_violate(&load->verdict, "%s: one request reset it twice", entry->id);
    snprintf(entry->reset_run_id, sizeof entry->reset_run_id, "%s", response->run_id);
    return true;
}
