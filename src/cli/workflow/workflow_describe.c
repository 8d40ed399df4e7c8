/* workflow_describe.c - see workflow_describe.h. */
#include "cli/workflow/workflow_describe.h"

#include <jansson.h>
#include <string.h>

#include "base/check.h"
#include "cli/base/request.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "fiber/clock.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/names.h"
#include "wire/presence.h"

/* ---- describe ---- */

static json_t *
time_of(struct cli_call *call, const GOOGLE(Timestamp) *time)
{
    if (time == NULL)
        return json_null();
    int64_t nanoseconds = presence_time(time);
    if (cli_is_on(call, "print_raw"))
        return json_integer((json_int_t)nanoseconds);
    return json_string(render_time(nanoseconds, call->arena));
}

static json_t *
or_null(const ProtobufCMessage *message, enum render dialect, struct arena *arena)
{
    return message == NULL ? json_null() : render_message(message, dialect, arena);
}
#define OR_NULL(message, dialect, arena)                                                           \
    or_null((message) == NULL ? NULL : &(message)->base, (dialect), (arena))

static json_t *
info_of(struct cli_call *call, const API(WorkflowExecutionInfo) *info)
{
    struct arena *arena = call->arena;
    enum render dialect = cli_is_on(call, "print_raw") ? RENDER_CADENCE : RENDER_READABLE;
    json_t *out = json_object();
    bool is_closed = info->close_time != NULL && info->close_time->seconds > 0;
    const char *status =
        show_enum(API_TYPE(workflow_execution_close_status), "WORKFLOW_EXECUTION_CLOSE_STATUS_",
                  (int)info->close_status, arena);
    const API(ParentExecutionInfo) *parent = info->parent_execution_info;
    json_object_set_new(out, "Execution", OR_NULL(info->workflow_execution, RENDER_CADENCE, arena));
    json_object_set_new(out, "Type", OR_NULL(info->type, RENDER_CADENCE, arena));
    json_object_set_new(out, "StartTime", time_of(call, info->start_time));
    json_object_set_new(out, "CloseTime",
                        is_closed ? time_of(call, info->close_time) : json_null());
    json_object_set_new(out, "CloseStatus", is_closed ? json_string(status) : json_null());
    json_object_set_new(out, "HistoryLength", json_integer((json_int_t)info->history_length));
    json_object_set_new(out, "ParentDomain",
                        parent == NULL ? json_null() : json_string(parent->domain_name));
    json_object_set_new(
        out, "ParentExecution",
        parent == NULL ? json_null() : OR_NULL(parent->workflow_execution, RENDER_CADENCE, arena));
    json_object_set_new(out, "Memo", OR_NULL(info->memo, dialect, arena));
    json_object_set_new(out, "SearchAttributes", OR_NULL(info->search_attributes, dialect, arena));
    json_object_set_new(out, "AutoResetPoints", OR_NULL(info->auto_reset_points, dialect, arena));
    json_object_set_new(out, "CronSchedule",
                        info->cron_schedule[0] == '\0' ? json_null()
                                                       : json_string(info->cron_schedule));
    json_object_set_new(out, "ActiveClusterSelectionPolicy",
                        OR_NULL(info->active_cluster_selection_policy, dialect, arena));
    return out;
}

/* Each as it is; null for none, as in the cadence command line. */
static json_t *
list_of(ProtobufCMessage *const *items, size_t count, enum render dialect, struct arena *arena)
{
    json_t *out = json_array();
    if (count == 0) {
        json_decref(out);
        return json_null();
    }
    for (size_t i = 0; i < count; i++)
        json_array_append_new(out, render_message(items[i], dialect, arena));
    return out;
}

static json_t *
pending_decision_of(struct cli_call *call, const API(PendingDecisionInfo) *decision)
{
    json_t *out = json_object();
    if (decision == NULL) {
        json_decref(out);
        return json_null();
    }
    json_object_set_new(
        out, "State",
        json_string(show_enum(API_TYPE(pending_decision_state), "PENDING_DECISION_STATE_",
                              (int)decision->state, call->arena)));
    json_object_set_new(out, "ScheduledTimestamp", time_of(call, decision->scheduled_time));
    if (decision->started_time != NULL)
        json_object_set_new(out, "StartedTimestamp", time_of(call, decision->started_time));
    if (decision->attempt != 0)
        json_object_set_new(out, "Attempt", json_integer(decision->attempt));
    json_object_set_new(out, "ScheduleID", json_integer((json_int_t)decision->schedule_id));
    return out;
}

struct error *
workflow_show_description(struct cli_call *call, const ProtobufCMessage *message)
{
    const API(DescribeWorkflowExecutionResponse) *response =
        (const API(DescribeWorkflowExecutionResponse) *)message;
    struct arena *arena = call->arena;
    enum render dialect = cli_is_on(call, "print_raw") ? RENDER_CADENCE : RENDER_READABLE;
    check(response->base.descriptor == API_TYPE(describe_workflow_execution_response));
    if (cli_is_on(call, "reset_points_only")) {
        cli_print_json(
            OR_NULL(response->workflow_execution_info->auto_reset_points, dialect, arena));
        return NULL;
    }
    json_t *out = json_object();
    json_object_set_new(out, "ExecutionConfiguration",
                        OR_NULL(response->execution_configuration, RENDER_CADENCE, arena));
    json_object_set_new(out, "WorkflowExecutionInfo",
                        info_of(call, response->workflow_execution_info));
    json_object_set_new(out, "PendingActivities",
                        list_of((ProtobufCMessage *const *)response->pending_activities,
                                response->n_pending_activities, dialect, arena));
    json_object_set_new(out, "PendingChildren",
                        list_of((ProtobufCMessage *const *)response->pending_children,
                                response->n_pending_children, dialect, arena));
    json_object_set_new(out, "PendingDecision",
                        pending_decision_of(call, response->pending_decision));
    if (response->active_cluster != NULL) /* of global domains */
        json_object_set_new(out, "ActiveCluster",
                            OR_NULL(response->active_cluster, RENDER_CADENCE, arena));
    cli_print_json(out);
    return NULL;
}

/* ---- queries ---- */

struct error *
workflow_show_answer(struct cli_call *call, const ProtobufCMessage *message)
{
    const API(QueryWorkflowResponse) *response = (const API(QueryWorkflowResponse) *)message;
    check(response->base.descriptor == API_TYPE(query_workflow_response));
    if (response->query_rejected != NULL) {
        const char *status =
            show_enum(API_TYPE(workflow_execution_close_status), "WORKFLOW_EXECUTION_CLOSE_STATUS_",
                      (int)response->query_rejected->close_status, call->arena);
        return error_new(call->arena, ERR_BAD_REQUEST,
                         "Query was rejected, workflow is in state: %s", status);
    }
    json_t *answer = render_payload(response->query_result, RENDER_READABLE, call->arena);
    if (answer == NULL) {
        cli_print("null\n");
        return NULL;
    }
    if (json_is_string(answer) && !call->as_json) {
        /* a stack trace has lines; what else it has must not steer the terminal */
        size_t count;
        const char **lines = words_cut(json_string_value(answer), '\n', call->arena, &count);
        for (size_t i = 0; i < count; i++)
            cli_print("%s\n", show_text(lines[i], call->arena));
        json_decref(answer);
        return NULL;
    }
    cli_print_json(answer);
    return NULL;
}
