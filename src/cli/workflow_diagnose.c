/* workflow_diagnose.c - workflow diagnose: the server writes its report as a run of its own; this
 * waits for that run and shows what it found. */
#include <jansson.h>

#include "cli/history.h"
#include "cli/render.h"
#include "cli/timeline.h"
#include "cli/workflow_describe.h"

/* The report: issues by kind; said so when there are none. */
static void
print_report(struct cli_call *call, json_t *report)
{
    json_t *issues = json_object_get(report, "Issues");
    if (json_array_size(issues) == 0 && json_is_array(issues) && !call->as_json)
        cli_print("Nothing is wrong as far as its history tells.\n");
    cli_print_json(json_incref(report));
}

struct error *
workflow_show_diagnosis(struct cli_call *call, const ProtobufCMessage *message)
{
    const API(DiagnoseWorkflowExecutionResponse) *response =
        (const API(DiagnoseWorkflowExecutionResponse) *)message;
    const API(WorkflowExecution) *run = response->diagnostic_workflow_execution;
    struct history_reader reader = {.call = call,
                                    .domain = response->domain,
                                    .workflow_id = run->workflow_id,
                                    .run_id = run->run_id,
                                    .waits = true};
    const API(HistoryEvent) *last = NULL;
    struct error *err = NULL;
    while (err == NULL && !reader.is_over) {
        API(History) *page = NULL;
        err = history_next(&reader, &page);
        if (err == NULL && page->n_events > 0)
            last = page->events[page->n_events - 1];
    }
    if (err != NULL)
        return err;
    bool is_completed =
        last != NULL &&
        last->attributes_case ==
            API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES);
    json_t *report =
        is_completed ? render_payload(last->workflow_execution_completed_event_attributes->result,
                                      RENDER_READABLE, call->arena)
                     : NULL;
    if (report == NULL)
        return error_new(call->arena, ERR_INTERNAL,
                         "the diagnostics run %s in domain %s ended without a report; cadenza "
                         "workflow show --domain %s -w %s tells why",
                         run->workflow_id, response->domain, response->domain, run->workflow_id);
    print_report(call, report);
    json_decref(report);
    return NULL;
}

struct error *
cli_workflow_query_types(struct cli_call *call)
{
    cli_give(call, "query_type", "__query_types");
    return cli_run_rpc(call);
}
