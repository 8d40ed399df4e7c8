/* workflow_diagnose.c - workflow diagnose: the server writes its report as a run of its own; this
 * waits for that run and shows what it found. */
#include <jansson.h>

#include "base/check.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "cli/workflow/history.h"
#include "cli/workflow/workflow_describe.h"
#include "fiber/clock.h"

#define TIMEOUT (5 * NS_PER_S)

static const char *
text_of(const json_t *object, const char *name, struct arena *arena)
{
    const char *text = json_string_value(json_object_get(object, name));
    return show_text(text != NULL ? text : "", arena);
}

/* The cause of an issue, where the report knows one. */
static const char *
cause_of(const json_t *section, json_int_t issue, struct arena *arena)
{
    json_t *causes = json_object_get(section, "RootCause"), *cause;
    size_t i;
    json_array_foreach(causes, i, cause)
    {
        if (json_integer_value(json_object_get(cause, "IssueID")) == issue)
            return text_of(cause, "RootCauseType", arena);
    }
    return "";
}

/* Timeouts, failures or retries; how many there are. */
static size_t
print_section(const char *name, const json_t *section, struct arena *arena)
{
    json_t *issues = json_object_get(section, "Issues"), *issue;
    size_t i;
    json_array_foreach(issues, i, issue)
    {
        const char *cause =
            cause_of(section, json_integer_value(json_object_get(issue, "IssueID")), arena);
        cli_print("%s: %s\n  %s\n", name, text_of(issue, "InvariantType", arena),
                  text_of(issue, "Reason", arena));
        if (cause[0] != '\0')
            cli_print("  cause: %s\n", cause);
        cli_print("  %s\n", render_line(json_object_get(issue, "Metadata"), 200, arena));
    }
    if (json_array_size(issues) > 0)
        cli_print("  see %s\n", text_of(section, "Runbook", arena));
    return json_array_size(issues);
}

static void
print_report(struct cli_call *call, json_t *report)
{
    json_t *result = json_object_get(report, "DiagnosticsResult"), *section;
    const char *name;
    size_t count = 0;
    if (call->as_json) {
        cli_print_json(json_incref(report));
        return;
    }
    json_object_foreach(result, name, section) count += print_section(name, section, call->arena);
    if (count == 0)
        cli_print("The history shows nothing wrong.\n");
}

/* The server wants to know which run. */
struct error *
workflow_complete_diagnosis(struct cli_call *call, ProtobufCMessage *message)
{
    API(DiagnoseWorkflowExecutionRequest) *request =
        (API(DiagnoseWorkflowExecutionRequest) *)message;
    API(DescribeWorkflowExecutionRequest)
    ask = API_VALUE(DESCRIBE_WORKFLOW_EXECUTION_REQUEST__INIT);
    ProtobufCMessage *answer = NULL;
    if (request->workflow_execution->run_id[0] != '\0')
        return NULL;
    ask.domain = request->domain;
    ask.workflow_execution = request->workflow_execution;
    struct error *err =
        cli_ask(call, "/uber.cadence.api.v1.WorkflowAPI/DescribeWorkflowExecution", &ask.base,
                TIMEOUT, API_TYPE(describe_workflow_execution_response), &answer);
    if (err != NULL)
        return cli_advise(call, err);
    request->workflow_execution->run_id = ((API(DescribeWorkflowExecutionResponse) *)answer)
                                              ->workflow_execution_info->workflow_execution->run_id;
    return NULL;
}

struct error *
workflow_show_diagnosis(struct cli_call *call, const ProtobufCMessage *message)
{
    check(message->descriptor == API_TYPE(diagnose_workflow_execution_response));
    const API(DiagnoseWorkflowExecutionResponse) *response =
        (const API(DiagnoseWorkflowExecutionResponse) *)message;
    const API(WorkflowExecution) *run = response->diagnostic_workflow_execution;
    struct cli_history_reader reader = {.call = call,
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
                         "workflow show --domain %s -w %s shows why",
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
