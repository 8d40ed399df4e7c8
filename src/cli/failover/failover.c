/* failover.c - admin cluster failover and rebalance: what is started. See failover.h. */
#include "cli/failover/failover.h"

#include <string.h>

#include "cli/base/commands.h"
#include "cli/output/render.h"
#include "fiber/clock.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define TIMEOUT         (10 * NS_PER_S)
#define NUMBER_MAX      100000000
#define REBALANCE_BATCH 100 /* domains */
#define REBALANCE_WAIT  10  /* seconds between two batches */
#define DECISION_TIME   10

/* ---- starting ---- */

static API(Memo) *
make_memo(struct arena *arena)
{
    json_t *name = json_string(cli_identity(arena));
    const char *quoted = render_compact(name, arena);
    json_decref(name);
    API(Memo) *memo = message_new(arena, API_TYPE(memo));
    API(Memo__FieldsEntry) *entry = message_new(arena, API_TYPE(memo__fields_entry));
    entry->key = "operator";
    entry->value = presence_make_payload(arena, (struct maybe_bytes){true, slice_text(quoted)});
    memo->fields = arena_zalloc(arena, 1, sizeof *memo->fields);
    memo->fields[memo->n_fields++] = entry;
    return memo;
}

static struct error *
send_start(struct cli_call *call, const struct failover_plan *plan, const char **run_id)
{
    static const struct cli_rpc rpc = {.request = API_TYPE(start_workflow_execution_request),
                                       .fields = ""};
    struct arena *arena = call->arena;
    ProtobufCMessage *message = NULL, *answer = NULL;
    struct error *err = cli_make_request(call, &rpc, &message);
    if (err != NULL)
        return err;
    API(StartWorkflowExecutionRequest) *start = (API(StartWorkflowExecutionRequest) *)message;
    start->domain = FAILOVER_DOMAIN;
    start->workflow_id = (char *)plan->workflow_id;
    start->workflow_type = message_new(arena, API_TYPE(workflow_type));
    start->workflow_type->name = (char *)plan->type;
    start->task_list = message_new(arena, API_TYPE(task_list));
    start->task_list->name = MANAGED_LIST;
    start->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE);
    start->execution_start_to_close_timeout = presence_make_duration(arena, plan->timeout);
    start->task_start_to_close_timeout = presence_make_duration(arena, DECISION_TIME);
    start->memo = make_memo(arena);
    start->cron_schedule = (char *)plan->cron;
    start->input =
        presence_make_payload(arena, (struct maybe_bytes){true, slice_text(plan->input)});
    err = cli_ask(call, WORKFLOW_API("StartWorkflowExecution"), message, TIMEOUT,
                  API_TYPE(start_workflow_execution_response), &answer);
    if (err != NULL && err->kind == ERR_ALREADY_STARTED)
        return error_new(arena, err->kind,
                         "%s (one is under way: cadenza admin cluster failover query shows it, "
                         "failover abort ends it)",
                         err->message);
    if (err == NULL)
        *run_id = ((const API(StartWorkflowExecutionResponse) *)answer)->run_id;
    return err;
}

static struct error *
start_or_preview(struct cli_call *call, const struct failover_plan *plan)
{
    if (cli_is_on(call, "dry_run"))
        return failover_preview(call, plan);
    bool is_watched = cli_is_on(call, "managed_watch");
    const char *run_id = NULL;
    struct error *err = send_start(call, plan, &run_id);
    if (err != NULL)
        return err;
    if (!call->as_json)
        cli_print("%s workflow started\nwid: %s\nrid: %s\n", plan->title, plan->workflow_id,
                  run_id);
    else if (!is_watched)
        cli_print_json(json_pack("{s:s, s:s}", "workflowId", plan->workflow_id, "runId", run_id));
    return is_watched ? failover_watch(call, plan->workflow_id, run_id) : NULL;
}

/* ---- plans ---- */

/* --domains a,b --domains c */
static json_t *
read_domains(const struct cli_call *call)
{
    const struct flag_list *list = cli_list(call, "failover_domains");
    json_t *all = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const char *at = list->items[i];
        while (*at != '\0') {
            size_t length = strcspn(at, ",");
            if (length > 0)
                json_array_append_new(all, json_stringn(at, length));
            at += length + strspn(at + length, ",");
        }
    }
    return all;
}

static struct error *
add_attributes(struct cli_call *call, json_t *params)
{
    const char *text = cli_text(call, "cluster_attributes_json");
    json_error_t wrong;
    json_t *attributes = text == NULL ? NULL : json_loads(text, 0, &wrong);
    if (text != NULL && !json_is_array(attributes)) {
        json_decref(attributes);
        return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST,
                                         "--cluster_attributes_json: give a list as "
                                         "[{\"scope\":\"region\",\"name\":\"oslo\"}]"));
    }
    if (attributes != NULL)
        json_object_set_new(params, "ClusterAttributes", attributes);
    return NULL;
}

struct failover_numbers {
    int64_t batch, wait, timeout, run_timeout;
};

static struct error *
read_numbers(struct cli_call *call, struct failover_numbers *failover_numbers)
{
    struct error *err =
        cli_number(call, "failover_batch_size", 1, NUMBER_MAX, 0, &failover_numbers->batch);
    if (err == NULL)
        err = cli_number(call, "failover_wait_time_second", 1, NUMBER_MAX, 0,
                         &failover_numbers->wait);
    if (err == NULL)
        err = cli_number(call, "managed_timeout", 0, NUMBER_MAX, 0, &failover_numbers->timeout);
    if (err == NULL)
        err = cli_number(call, "managed_run_timeout", 1, NUMBER_MAX, 0,
                         &failover_numbers->run_timeout);
    return err;
}

static json_t *
make_params(const char *source, const char *target, json_t *domains,
            const struct failover_numbers *failover_numbers)
{
    json_t *params = json_pack(
        "{s:s, s:s, s:I, s:I, s:O}", "TargetCluster", target, "SourceCluster", source,
        "BatchFailoverSize", (json_int_t)failover_numbers->batch, "BatchFailoverWaitTimeInSeconds",
        (json_int_t)failover_numbers->wait, "Domains", domains);
    if (failover_numbers->timeout > 0)
        json_object_set_new(params, "GracefulFailoverTimeoutInSeconds",
                            json_integer((json_int_t)failover_numbers->timeout));
    return params;
}

static struct error *
check_way(struct cli_call *call, const char *source, const char *target)
{
    if (strcmp(source, target) != 0)
        return NULL;
    return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST,
                                     "--source_cluster and --target_cluster are the same"));
}

/* From one cluster to another, the domains that are named; numbers as in the flags. Pure. */
static struct error *
failover_plan_between(struct cli_call *call, const char *source, const char *target,
                      json_t *domains, struct failover_plan *plan)
{
    struct failover_numbers failover_numbers;
    struct error *err = check_way(call, source, target);
    if (err == NULL)
        err = read_numbers(call, &failover_numbers);
    if (err != NULL)
        return err;
    json_t *params = make_params(source, target, domains, &failover_numbers);
    *plan = (struct failover_plan){.kind = KIND_FAILOVER,
                                   .workflow_id = FAILOVER_ID,
                                   .type = MANAGED_FAILOVER,
                                   .input = render_compact(params, call->arena),
                                   .cron = "",
                                   .timeout = failover_numbers.run_timeout,
                                   .title = "Failover"};
    json_decref(params);
    return NULL;
}

/* A drill, and what is listed, are added to a plan between two clusters. */
static struct error *
complete_first(struct cli_call *call, struct failover_plan *plan)
{
    int64_t drill;
    const char *cron = cli_text(call, "cron");
    struct error *err = cli_number(call, "failover_drill_wait_second", 1, NUMBER_MAX, 0, &drill);
    if (err == NULL && cron != NULL && drill == 0)
        err = cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST,
                                        "--cron is for drills: give "
                                        "--failover_drill_wait_second SECONDS, too"));
    if (err != NULL)
        return err;
    json_t *params = json_loads(plan->input, 0, NULL);
    err = add_attributes(call, params);
    json_object_set_new(params, "DrillWaitTime", json_integer((json_int_t)(drill * NS_PER_S)));
    plan->input = render_compact(params, call->arena);
    json_decref(params);
    plan->cron = cron == NULL ? "" : cron;
    if (drill > 0)
        plan->workflow_id = FAILOVER_ID "-drill";
    return err;
}

/* The newer workflow is told the same by other names; how long a domain may take stands in its
 * data. */
static struct error *
plan_second(struct cli_call *call, const char *source, const char *target, json_t *domains,
            struct failover_plan *plan)
{
    struct failover_numbers failover_numbers;
    struct error *err = check_way(call, source, target);
    if (err == NULL)
        err = read_numbers(call, &failover_numbers);
    if (err == NULL && failover_numbers.timeout > 0)
        err = cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST,
                                        "--failover_timeout_seconds: with --v2 the data of each "
                                        "domain have it, as FailoverTimeoutInSeconds"));
    if (err != NULL)
        return err;
    json_t *params =
        json_pack("{s:[s], s:s, s:I, s:I, s:O}", "SourceClusters", source, "TargetCluster", target,
                  "BatchSize", (json_int_t)failover_numbers.batch, "WaitBetweenBatchSeconds",
                  (json_int_t)failover_numbers.wait, "Domains", domains);
    err = add_attributes(call, params);
    *plan = (struct failover_plan){.kind = KIND_FAILOVER_V2,
                                   .workflow_id = failover_workflow_id(call),
                                   .type = MANAGED_FAILOVER_V2,
                                   .input = render_compact(params, call->arena),
                                   .cron = "",
                                   .timeout = failover_numbers.run_timeout,
                                   .title = "Failover V2"};
    json_decref(params);
    return err;
}

struct error *
failover_plan_start(struct cli_call *call, struct failover_plan *plan)
{
    const char *source, *target;
    struct error *err = cli_need(call, "target_cluster", &target);
    if (err == NULL)
        err = cli_need(call, "from_cluster", &source);
    if (err != NULL)
        return err;
    bool is_second = cli_is_on(call, "v2");
    json_t *domains = read_domains(call);
    err = is_second ? plan_second(call, source, target, domains, plan)
                    : failover_plan_between(call, source, target, domains, plan);
    if (err == NULL && !is_second)
        err = complete_first(call, plan);
    json_decref(domains);
    return err;
}

void
failover_plan_rebalance(struct cli_call *call, struct failover_plan *plan)
{
    bool is_second = cli_is_on(call, "v2");
    const char *names[] = {is_second ? "BatchSize" : "BatchFailoverSize",
                           is_second ? "WaitBetweenBatchSeconds"
                                     : "BatchFailoverWaitTimeInSeconds"};
    *plan = (struct failover_plan){
        .kind = is_second ? KIND_REBALANCE_V2 : KIND_REBALANCE,
        .workflow_id = is_second ? "cadence-rebalance-v2" : "cadence-rebalance-workflow",
        .type = is_second ? MANAGED_REBALANCE_V2 : MANAGED_REBALANCE,
        .input = arena_format(call->arena, "{\"%s\":%d,\"%s\":%d}", names[0], REBALANCE_BATCH,
                              names[1], REBALANCE_WAIT),
        .cron = "",
        .timeout = 1200,
        .title = "Rebalance"};
}

/* ---- commands ---- */

/* A drill that is under way would move domains while a failover does. */
static struct error *
pause_drill(struct cli_call *call)
{
    static const struct cli_rpc rpc = {.request = API_TYPE(signal_workflow_execution_request),
                                       .fields = ""};
    ProtobufCMessage *message = NULL, *answer = NULL;
    struct error *err = cli_make_request(call, &rpc, &message);
    if (err != NULL)
        return err;
    API(SignalWorkflowExecutionRequest) *signal = (API(SignalWorkflowExecutionRequest) *)message;
    signal->domain = FAILOVER_DOMAIN;
    signal->workflow_execution = message_new(call->arena, API_TYPE(workflow_execution));
    signal->workflow_execution->workflow_id = FAILOVER_ID "-drill";
    signal->signal_name = MANAGED_PAUSE;
    err = cli_ask(call, WORKFLOW_API("SignalWorkflowExecution"), message, TIMEOUT,
                  API_TYPE(signal_workflow_execution_response), &answer);
    bool has_none =
        err != NULL && (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED);
    if (err == NULL)
        cli_note("A drill was in progress and is paused; cadenza admin cluster failover resume "
                 "--failover_drill resumes it.");
    return has_none ? NULL : err;
}

struct error *
cli_failover_start(struct cli_call *call)
{
    struct failover_plan plan;
    struct error *err = failover_plan_start(call, &plan);
    if (err != NULL)
        return err;
    if (!cli_is_on(call, "dry_run") && strcmp(plan.workflow_id, FAILOVER_ID) == 0)
        err = pause_drill(call);
    return err != NULL ? err : start_or_preview(call, &plan);
}

struct error *
cli_rebalance_start(struct cli_call *call)
{
    struct failover_plan plan;
    failover_plan_rebalance(call, &plan);
    return start_or_preview(call, &plan);
}

/* One that is under way is ended first. */
static struct error *
end_run(struct cli_call *call, const char *run_id)
{
    API(TerminateWorkflowExecutionRequest)
    request = API_VALUE(TERMINATE_WORKFLOW_EXECUTION_REQUEST__INIT);
    ProtobufCMessage *answer = NULL;
    request.domain = FAILOVER_DOMAIN;
    request.workflow_execution = message_new(call->arena, API_TYPE(workflow_execution));
    request.workflow_execution->workflow_id = FAILOVER_ID;
    request.workflow_execution->run_id = presence_make_text(run_id);
    request.reason = "Rollback";
    request.identity = (char *)cli_identity(call->arena);
    return cli_ask(call, WORKFLOW_API("TerminateWorkflowExecution"), &request.base, TIMEOUT,
                   API_TYPE(terminate_workflow_execution_response), &answer);
}

/* The domains that moved, and those whose state is unknown. */
static json_t *
touched_domains(const json_t *state)
{
    json_t *all = json_array();
    json_array_extend(all, json_object_get(state, "SuccessDomains"));
    json_array_extend(all, json_object_get(state, "FailedDomains"));
    return all;
}

static struct error *
roll_back(struct cli_call *call, const json_t *state)
{
    struct failover_plan plan;
    json_t *domains = touched_domains(state);
    struct error *err =
        json_array_size(domains) == 0 /* no names would mean all domains */
            ? error_new(call->arena, ERR_BAD_REQUEST,
                        "nothing to roll back: the failover has moved no domain")
            : failover_plan_between(
                  call, json_string_value(json_object_get(state, "TargetCluster")),
                  json_string_value(json_object_get(state, "SourceCluster")), domains, &plan);
    json_decref(domains);
    return err != NULL ? err : start_or_preview(call, &plan);
}

struct error *
cli_failover_rollback(struct cli_call *call)
{
    const char *run_id = cli_text(call, "run_id");
    struct failover_state state;
    struct error *err = failover_ask_state(call, FAILOVER_ID, run_id, &state);
    if (err != NULL)
        return err;
    if (state.is_open && !cli_is_on(call, "dry_run")) {
        json_decref(state.json);
        err = end_run(call, run_id);
        if (err == NULL)
            err = failover_ask_state(call, FAILOVER_ID, run_id, &state);
        if (err != NULL)
            return err;
    }
    err = roll_back(call, state.json);
    json_decref(state.json);
    return err;
}
