/* batch.c - workflow batch: jobs are workflows of the server's own, in domain cadence-batcher. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/commands.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "cli/workflow/run_list.h"
#include "fiber/clock.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define BATCH_DOMAIN    "cadence-batcher"
#define BATCH_TYPE      "cadence-sys-batch-workflow"
#define BATCH_TASK_LIST "cadence-sys-batcher-tasklist"
#define LONG_SECONDS    (20LL * 365 * 24 * 3600)
#define TIMEOUT         (10 * NS_PER_S)
#define NUMBER_MAX      100000

static struct error *
wrong(struct cli_call *call, const char *sentence)
{
    return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST, "%s", sentence));
}

/* ---- start ---- */

static struct error *
check_type(struct cli_call *call, const char *type)
{
    static const char *const types[] = {"terminate", "cancel", "signal", "replicate", "refresh"};
    const char *unused;
    size_t i = 0;
    while (i < array_length(types) && strcmp(types[i], type) != 0)
        i++;
    if (i == array_length(types))
        return wrong(
            call,
            arena_format(
                call->arena,
                "--batch_type: '%s' is not one of terminate, cancel, signal, replicate, refresh",
                type));
    const char *const needs[][2] = {{"batch_signal", "batch_input"},
                                    {"from_cluster", "target_cluster"}};
    bool is_signal = strcmp(type, "signal") == 0, is_replicate = strcmp(type, "replicate") == 0;
    struct error *err = NULL;
    for (size_t k = 0; (is_signal || is_replicate) && err == NULL && k < 2; k++)
        err = cli_need(call, needs[is_replicate][k], &unused);
    return err;
}

static struct error *
put_number(struct cli_call *call, json_t *params, const char *name, const char *key, int64_t factor)
{
    int64_t number;
    struct error *err = cli_number(call, key, 1, NUMBER_MAX, 0, &number);
    if (err == NULL)
        json_object_set_new(params, name, json_integer((json_int_t)(number * factor)));
    return err;
}

static const char *
given(const struct cli_call *call, const char *key)
{
    const char *text = cli_text(call, key);
    return text != NULL ? text : "";
}

/* The job's input, with the names that the server's worker knows. */
static struct error *
make_params(struct cli_call *call, const char *domain, const char *type, const char **text)
{
    json_t *params =
        json_pack("{s:s, s:s, s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s}}", "DomainName", domain, "Query",
                  cli_text(call, "query"), "Reason", cli_text(call, "why"), "BatchType", type,
                  "SignalParams", "SignalName", given(call, "batch_signal"), "Input",
                  given(call, "batch_input"), "ReplicateParams", "SourceCluster",
                  given(call, "from_cluster"), "TargetCluster", given(call, "target_cluster"));
    struct error *err = put_number(call, params, "RPS", "rps", 1);
    if (err == NULL)
        err = put_number(call, params, "Concurrency", "concurrency", 1);
    if (err == NULL)
        err = put_number(call, params, "PageSize", "batch_page_size", 1);
    if (err == NULL)
        err = put_number(call, params, "AttemptsOnRetryableError", "batch_attempts", 1);
    if (err == NULL)
        err = put_number(call, params, "ActivityHeartBeatTimeout", "heart_beat_timeout_seconds",
                         NS_PER_S);
    *text = render_compact(params, call->arena);
    json_decref(params);
    return err;
}

static struct error *
count_workflows(struct cli_call *call, const char *domain, long long *count)
{
    API(CountWorkflowExecutionsRequest) request =
        API_VALUE(COUNT_WORKFLOW_EXECUTIONS_REQUEST__INIT);
    request.domain = (char *)domain;
    request.query = presence_make_text(cli_text(call, "query"));
    ProtobufCMessage *answer = NULL;
    struct error *err =
        cli_ask(call, "/uber.cadence.api.v1.VisibilityAPI/CountWorkflowExecutions", &request.base,
                TIMEOUT, API_TYPE(count_workflow_executions_response), &answer);
    if (err != NULL)
        return cli_advise(call, err);
    *count = ((const API(CountWorkflowExecutionsResponse) *)answer)->count;
    return NULL;
}

static API(Payload) *
json_payload(const char *text, struct arena *arena)
{
    json_t *json = json_string(text);
    const char *quoted = render_compact(json, arena);
    json_decref(json);
    return presence_make_payload(arena, (struct maybe_bytes){true, slice_text(quoted)});
}

static API(SearchAttributes) *
make_attributes(const char *domain, struct arena *arena)
{
    const char *user = getenv("USER");
    const char *const pairs[][2] = {{"CustomDomain", domain},
                                    {"Operator", user != NULL ? user : "unknown"}};
    API(SearchAttributes) *all = message_new(arena, API_TYPE(search_attributes));
    all->indexed_fields = arena_zalloc(arena, array_length(pairs), sizeof *all->indexed_fields);
    for (size_t i = 0; i < array_length(pairs); i++) {
        API(SearchAttributes__IndexedFieldsEntry) *entry =
            message_new(arena, API_TYPE(search_attributes__indexed_fields_entry));
        entry->key = (char *)pairs[i][0];
        entry->value = json_payload(pairs[i][1], arena);
        all->indexed_fields[all->n_indexed_fields++] = entry;
    }
    return all;
}

static API(Memo) *
make_memo(const char *reason, struct arena *arena)
{
    API(Memo) *memo = message_new(arena, API_TYPE(memo));
    API(Memo__FieldsEntry) *entry = message_new(arena, API_TYPE(memo__fields_entry));
    entry->key = "Reason";
    entry->value = json_payload(reason, arena);
    memo->fields = arena_zalloc(arena, 1, sizeof *memo->fields);
    memo->fields[memo->n_fields++] = entry;
    return memo;
}

static struct error *
start_job(struct cli_call *call, const char *domain, const char *params)
{
    struct arena *arena = call->arena;
    API(StartWorkflowExecutionRequest) *start =
        message_new(arena, API_TYPE(start_workflow_execution_request));
    start->domain = BATCH_DOMAIN;
    start->workflow_id = uuid_new_text(arena);
    start->request_id = uuid_new_text(arena);
    start->identity = (char *)cli_identity(arena);
    start->workflow_type = message_new(arena, API_TYPE(workflow_type));
    start->workflow_type->name = BATCH_TYPE;
    start->task_list = message_new(arena, API_TYPE(task_list));
    start->task_list->name = BATCH_TASK_LIST;
    start->execution_start_to_close_timeout = presence_make_duration(arena, LONG_SECONDS);
    start->task_start_to_close_timeout = presence_make_duration(arena, 10);
    start->memo = make_memo(cli_text(call, "why"), arena);
    start->search_attributes = make_attributes(domain, arena);
    start->input = presence_make_payload(arena, (struct maybe_bytes){true, slice_text(params)});
    ProtobufCMessage *answer = NULL;
    struct error *err = cli_ask(call, WORKFLOW_API("StartWorkflowExecution"), &start->base, TIMEOUT,
                                API_TYPE(start_workflow_execution_response), &answer);
    if (err != NULL)
        return cli_advise(call, err);
    cli_print_json(
        json_pack("{s:s, s:s}", "jobID", start->workflow_id, "msg", "batch job is started"));
    return NULL;
}

/* A Yes on standard input, or --yes. */
static bool
is_confirmed(struct cli_call *call)
{
    char answer[16] = "";
    if (call->domain.is_confirmed)
        return true;
    cli_print("Please confirm[Yes/No]:");
    ssize_t length = read(STDIN_FILENO, answer, sizeof answer - 1);
    return length >= 3 && strncasecmp(answer, "yes", 3) == 0;
}

struct error *
cli_batch_start(struct cli_call *call)
{
    const char *domain, *query, *reason, *type, *params = NULL;
    long long count = 0;
    struct error *err = cli_need_domain(call, &domain);
    if (err == NULL)
        err = cli_need(call, "query", &query);
    if (err == NULL)
        err = cli_need(call, "why", &reason);
    if (err == NULL)
        err = cli_need(call, "batch_type", &type);
    if (err == NULL)
        err = check_type(call, type);
    if (err == NULL)
        err = make_params(call, domain, type, &params);
    if (err == NULL)
        err = count_workflows(call, domain, &count);
    if (err != NULL)
        return err;
    cli_note("This batch job will be operating on %lld workflows.", count);
    if (!is_confirmed(call))
        return error_new(call->arena, ERR_CANCELLED,
                         "batch job is not started; answer Yes, or give --yes");
    return start_job(call, domain, params);
}

/* ---- looking and ending ---- */

struct error *
cli_batch_list(struct cli_call *call)
{
    struct run_list runs = {0};
    const char *domain;
    int64_t page_size;
    struct error *err = cli_need_domain(call, &domain);
    if (err == NULL)
        err = cli_number(call, "page_size", 1, NUMBER_MAX, 0, &page_size);
    if (err != NULL)
        return err;
    const char *query = arena_format(call->arena, "CustomDomain = '%s'", domain);
    call->domain.name = BATCH_DOMAIN;
    err = run_list_query(call, "ListWorkflowExecutions", query, page_size, false, &runs);
    if (err != NULL)
        return err;
    json_t *all = json_array();
    for (size_t i = 0; i < runs.count; i++) {
        const API(WorkflowExecutionInfo) *info = runs.items[i];
        const char *status = run_list_status(info, call->arena);
        json_t *job = json_pack("{s:s, s:s, s:s}", "jobID", info->workflow_execution->workflow_id,
                                "startTime", show_time(info->start_time, call->arena), "status",
                                strcmp(status, "OPEN") == 0 ? "RUNNING" : status);
        if (info->memo != NULL && info->memo->n_fields > 0)
            json_object_set_new(
                job, "reason",
                render_payload(info->memo->fields[0]->value, RENDER_READABLE, call->arena));
        json_array_append_new(all, job);
    }
    cli_print_json(all);
    return NULL;
}

static API(WorkflowExecution) *
job_of(struct cli_call *call, struct error **err)
{
    const char *id = NULL;
    API(WorkflowExecution) *execution = message_new(call->arena, API_TYPE(workflow_execution));
    *err = cli_need(call, "job_id", &id);
    execution->workflow_id = presence_make_text(id);
    return execution;
}

struct error *
cli_batch_describe(struct cli_call *call)
{
    API(DescribeWorkflowExecutionRequest)
    request = API_VALUE(DESCRIBE_WORKFLOW_EXECUTION_REQUEST__INIT);
    struct error *err = NULL;
    request.domain = BATCH_DOMAIN;
    request.workflow_execution = job_of(call, &err);
    ProtobufCMessage *answer = NULL;
    if (err == NULL)
        err = cli_ask(call, WORKFLOW_API("DescribeWorkflowExecution"), &request.base, TIMEOUT,
                      API_TYPE(describe_workflow_execution_response), &answer);
    if (err != NULL)
        return cli_advise(call, err);
    const API(DescribeWorkflowExecutionResponse) *job =
        (const API(DescribeWorkflowExecutionResponse) *)answer;
    const char *status = run_list_status(job->workflow_execution_info, call->arena);
    const char *message = strcmp(status, "OPEN") == 0        ? "batch job is running"
                          : strcmp(status, "COMPLETED") == 0 ? "batch job is finished successfully"
                                                             : "batch job stopped status: ";
    if (message[strlen(message) - 1] == ' ')
        message = arena_format(call->arena, "%s%s", message, status);
    json_t *out = json_pack("{s:s}", "msg", message);
    if (job->n_pending_activities > 0 && job->pending_activities[0]->heartbeat_details != NULL)
        json_object_set_new(out, "progress",
                            render_payload(job->pending_activities[0]->heartbeat_details,
                                           RENDER_READABLE, call->arena));
    cli_print_json(out);
    return NULL;
}

struct error *
cli_batch_terminate(struct cli_call *call)
{
    API(TerminateWorkflowExecutionRequest)
    request = API_VALUE(TERMINATE_WORKFLOW_EXECUTION_REQUEST__INIT);
    const char *reason = NULL;
    struct error *err = NULL;
    request.domain = BATCH_DOMAIN;
    request.workflow_execution = job_of(call, &err);
    if (err == NULL)
        err = cli_need(call, "why", &reason);
    request.reason = presence_make_text(reason);
    request.identity = (char *)cli_identity(call->arena);
    ProtobufCMessage *answer = NULL;
    if (err == NULL)
        err = cli_ask(call, WORKFLOW_API("TerminateWorkflowExecution"), &request.base, TIMEOUT,
                      API_TYPE(terminate_workflow_execution_response), &answer);
    if (err != NULL)
        return cli_advise(call, err);
    cli_print_json(json_pack("{s:s}", "msg", "batch job is terminated"));
    return NULL;
}
