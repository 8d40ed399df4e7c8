/* diagnosis_issues.c - which events of a history are issues, and what is behind them: timeouts,
 * failures, and retry policies by which nothing is ever tried again. See diagnosis.h. */
#include <string.h>

#include "engine/run/apply.h"
#include "system/diagnosis_inside.h"

static const char *
timeout_name(API(TimeoutType) type)
{
    switch (type) {
    case API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START):
        return "SCHEDULE_TO_START";
    case API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_CLOSE):
        return "SCHEDULE_TO_CLOSE";
    case API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_HEARTBEAT):
        return "HEARTBEAT";
    default:
        return "START_TO_CLOSE";
    }
}

/* --- timeouts ---- */

static void
add_timeout(struct diagnosis *diagnosis, const char *kind, const char *reason, const char *place,
            const char *metadata, size_t *id, bool *is_added)
{
    static const char *const places[] = {"ExecutionTimeout", "ActivityTimeout", "ChildWfTimeout",
                                         "DecisionTimeout"};
    char *text = "{";
    for (size_t i = 0; i < array_length(places); i++)
        text = arena_format(diagnosis->arena, "%s%s\"%s\":%s", text, i == 0 ? "" : ",", places[i],
                            strcmp(places[i], place) == 0 ? metadata : "null");
    text = arena_format(diagnosis->arena, "%s}", text);
    *is_added = report_add_issue(diagnosis, &diagnosis->timeouts, kind, reason, text, id);
}

static void
suspect_list(struct diagnosis *diagnosis, size_t issue, bool is_decision, const API(TaskList) *list)
{
    if (list == NULL)
        return;
    struct suspect suspect = {issue, is_decision, arena_text(diagnosis->arena, list->name)};
    vector_push_in(&diagnosis->suspects, diagnosis->arena, suspect);
}

static const char *
last_event_json(const struct diagnosis *diagnosis)
{
    return arena_format(diagnosis->arena,
                        "{\"eventId\":%lld,\"timestamp\":%lld,\"eventType\":\"%s\","
                        "\"version\":%lld,\"taskId\":%lld}",
                        (long long)diagnosis->last.id, (long long)diagnosis->last.time,
                        event_name(diagnosis->last.kind), (long long)diagnosis->last.version,
                        (long long)diagnosis->last.task_id);
}

static void
run_timed_out(struct diagnosis *diagnosis, const API(HistoryEvent) *event)
{
    const API(WorkflowExecutionStartedEventAttributes) *started = diagnosis->started;
    if (started == NULL)
        return;
    size_t id;
    bool is_added;
    const char *metadata = arena_format(
        diagnosis->arena,
        "{\"ExecutionTime\":%lld,\"ConfiguredTimeout\":%lld,\"Tasklist\":%s,"
        "\"LastOngoingEvent\":%s}",
        (long long)report_elapsed(diagnosis, 1, event),
        (long long)(report_seconds(started->execution_start_to_close_timeout) * SECOND),
        report_list(diagnosis, started->task_list), last_event_json(diagnosis));
    API(TimeoutType) type = event->workflow_execution_timed_out_event_attributes->timeout_type;
    add_timeout(diagnosis, "The Workflow Execution has timed out", timeout_name(type),
                "ExecutionTimeout", metadata, &id, &is_added);
    if (is_added)
        suspect_list(diagnosis, id, true, started->task_list);
}

/* Did it beat, and would that have helped? NULL: that was not the question. */
static const char *
heartbeat_cause(const API(ActivityTaskScheduledEventAttributes) *scheduled, API(TimeoutType) type)
{
    bool has_policy = scheduled->retry_policy != NULL;
    bool beats = report_seconds(scheduled->heartbeat_timeout) > 0;
    if (!beats && type != API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START))
        return has_policy
                   ? "Heartbeat timeout not enabled for activity but there is a retry policy "
                     "configured"
                   : "Heartbeat timeout and retry policy are not configured";
    if (beats && type == API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_HEARTBEAT))
        return has_policy ? "Heartbeat timeout enabled for activity but timed out due to missing "
                            "heartbeat"
                          : "Heartbeat timeout enabled for activity but there is no retry policy "
                            "configured";
    return NULL;
}

static int64_t
configured_timeout(const API(ActivityTaskScheduledEventAttributes) *scheduled,
                   API(TimeoutType) type)
{
    switch (type) {
    case API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START):
        return report_seconds(scheduled->schedule_to_start_timeout);
    case API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_CLOSE):
        return report_seconds(scheduled->schedule_to_close_timeout);
    case API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_HEARTBEAT):
        return report_seconds(scheduled->heartbeat_timeout);
    default:
        return report_seconds(scheduled->start_to_close_timeout);
    }
}

static void
activity_timed_out(struct diagnosis *diagnosis, const API(HistoryEvent) *event)
{
    const API(ActivityTaskTimedOutEventAttributes) *timed_out =
        event->activity_task_timed_out_event_attributes;
    const API(ActivityTaskScheduledEventAttributes) *scheduled =
        report_find(diagnosis, timed_out->scheduled_event_id,
                    API_TYPE(activity_task_scheduled_event_attributes));
    if (scheduled == NULL)
        return;
    API(TimeoutType) type = timed_out->timeout_type;
    bool since_start = type == API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE) ||
                       type == API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_HEARTBEAT);
    long long took = report_elapsed(
        diagnosis, since_start ? timed_out->started_event_id : timed_out->scheduled_event_id,
        event);
    const char *policy = report_policy(diagnosis, scheduled->retry_policy);
    const char *metadata = arena_format(
        diagnosis->arena,
        "{\"TimeoutType\":\"%s\",\"ConfiguredTimeout\":%lld,\"TimeElapsed\":%lld,"
        "\"RetryPolicy\":%s,\"HeartBeatTimeout\":%lld,\"Tasklist\":%s}",
        timeout_name(type), (long long)(configured_timeout(scheduled, type) * SECOND), took, policy,
        (long long)(report_seconds(scheduled->heartbeat_timeout) * SECOND),
        report_list(diagnosis, scheduled->task_list));
    size_t id;
    bool is_added;
    add_timeout(diagnosis, "Activity task has timed out", timeout_name(type), "ActivityTimeout",
                metadata, &id, &is_added);
    const char *cause = heartbeat_cause(scheduled, type);
    if (!is_added)
        return;
    suspect_list(diagnosis, id, false, scheduled->task_list);
    if (cause != NULL)
        report_add_cause(diagnosis, &diagnosis->timeout_causes, id, cause,
                         arena_format(diagnosis->arena,
                                      "{\"PollersMetadata\":null,\"HeartBeatingMetadata\":"
                                      "{\"TimeElapsed\":%lld,\"RetryPolicy\":%s}}",
                                      took, policy));
}

static void
decision_timed_out(struct diagnosis *diagnosis, const API(HistoryEvent) *event)
{
    const API(DecisionTaskTimedOutEventAttributes) *timed_out =
        event->decision_task_timed_out_event_attributes;
    const API(DecisionTaskScheduledEventAttributes) *scheduled =
        report_find(diagnosis, timed_out->scheduled_event_id,
                    API_TYPE(decision_task_scheduled_event_attributes));
    bool is_reset = timed_out->cause ==
                    API_VALUE(DECISION_TASK_TIMED_OUT_CAUSE__DECISION_TASK_TIMED_OUT_CAUSE_RESET);
    const char *reason = is_reset ? arena_format(diagnosis->arena, "%s - New run ID: %s",
                                                 timed_out->reason, timed_out->new_run_id)
                                  : timeout_name(timed_out->timeout_type);
    int64_t timeout = scheduled == NULL ? 0 : report_seconds(scheduled->start_to_close_timeout);
    size_t id;
    bool is_added;
    add_timeout(diagnosis, "Decision task has timed out", reason, "DecisionTimeout",
                arena_format(diagnosis->arena, "{\"ConfiguredTimeout\":%lld}",
                             (long long)(timeout * SECOND)),
                &id, &is_added);
}

static void
child_timed_out(struct diagnosis *diagnosis, const API(HistoryEvent) *event)
{
    const API(ChildWorkflowExecutionTimedOutEventAttributes) *timed_out =
        event->child_workflow_execution_timed_out_event_attributes;
    const API(StartChildWorkflowExecutionInitiatedEventAttributes) *initiated =
        report_find(diagnosis, timed_out->initiated_event_id,
                    API_TYPE(start_child_workflow_execution_initiated_event_attributes));
    const API(WorkflowExecution) *child = timed_out->workflow_execution;
    int64_t timeout =
        initiated == NULL ? 0 : report_seconds(initiated->execution_start_to_close_timeout);
    size_t id;
    bool is_added;
    add_timeout(
        diagnosis, "Child Workflow Execution has timed out", timeout_name(timed_out->timeout_type),
        "ChildWfTimeout",
        arena_format(diagnosis->arena,
                     "{\"ExecutionTime\":%lld,\"ConfiguredTimeout\":%lld,\"Execution\":"
                     "{\"workflowId\":%s,\"runId\":%s}}",
                     (long long)report_elapsed(diagnosis, timed_out->started_event_id, event),
                     (long long)(timeout * SECOND),
                     report_quote(diagnosis, child == NULL ? "" : child->workflow_id),
                     report_quote(diagnosis, child == NULL ? "" : child->run_id)),
        &id, &is_added);
}

/* --- failures ---- */

#define CUSTOM_ERROR                                                                               \
    "The failure is caused by a specific custom error returned from the service code"
#define GENERIC_ERROR "The failure is because of an error returned from the service code"
#define PANIC_ERROR   "The failure is caused by a panic in the service code"

/* What a reason means; *cause: what is behind it, NULL: nothing that is known. */
static const char *
explain_reason(const char *reason, const char **cause)
{
    static const struct {
        const char *part, *sentence, *cause;
        bool is_whole;
    } reasons[] = {
        {"DECISION_BLOB_SIZE_EXCEEDS_LIMIT", "Decision result caused to exceed blob size limit",
         NULL, true},
        {"HEARTBEAT_EXCEEDS_LIMIT", "Heartbeat details has exceeded the blob size limit", NULL,
         true},
        {"COMPLETE_RESULT_EXCEEDS_LIMIT", "Activity output has exceeded the blob size limit", NULL,
         true},
        {"Generic", GENERIC_ERROR,
         "There is an issue in the worker service that is causing a failure. Check identity for "
         "service logs",
         false},
        {"Panic", PANIC_ERROR,
         "There is a panic in the activity/workflow that is causing a failure", false},
        {"Timeout", "The failure is caused by a timeout during the execution", NULL, false},
        {"", CUSTOM_ERROR, "Customised error returned by the activity/workflow", false},
    };
    size_t i = 0;
    while (reasons[i].is_whole ? strcmp(reason, reasons[i].part) != 0
                               : strstr(reason, reasons[i].part) == NULL)
        i++;
    *cause = reasons[i].cause;
    return reasons[i].sentence;
}

struct failed {
    const char *kind, *identity, *activity_type;
    int64_t scheduled_id, started_id;
};

static void
add_failure(struct diagnosis *diagnosis, const API(Failure) *failure, const struct failed *failed)
{
    const char *cause;
    const char *reason = explain_reason(failure->reason, &cause);
    const char *metadata = arena_format(
        diagnosis->arena,
        "{\"Identity\":%s,\"ActivityType\":%s,\"ActivityScheduledID\":%lld,"
        "\"ActivityStartedID\":%lld}",
        report_quote(diagnosis, failed->identity), report_quote(diagnosis, failed->activity_type),
        (long long)failed->scheduled_id, (long long)failed->started_id);
    size_t id;
    if (report_add_issue(diagnosis, &diagnosis->failures, failed->kind, reason, metadata, &id) &&
        cause != NULL)
        report_add_cause(diagnosis, &diagnosis->failure_causes, id, cause, "null");
}

static void
run_failed(struct diagnosis *diagnosis, const API(HistoryEvent) *event)
{
    const API(WorkflowExecutionFailedEventAttributes) *attributes =
        event->workflow_execution_failed_event_attributes;
    const API(DecisionTaskCompletedEventAttributes) *completed =
        report_find(diagnosis, attributes->decision_task_completed_event_id,
                    API_TYPE(decision_task_completed_event_attributes));
    if (attributes->failure == NULL)
        return;
    bool is_blob = strcmp(attributes->failure->reason, "DECISION_BLOB_SIZE_EXCEEDS_LIMIT") == 0;
    struct failed failed = {.kind = is_blob ? "Decision caused failure" : "Workflow Failed",
                            .identity = completed == NULL ? "" : completed->identity,
                            .activity_type = ""};
    add_failure(diagnosis, attributes->failure, &failed);
}

static void
activity_failed(struct diagnosis *diagnosis, const API(HistoryEvent) *event)
{
    const API(ActivityTaskFailedEventAttributes) *attributes =
        event->activity_task_failed_event_attributes;
    const API(ActivityTaskScheduledEventAttributes) *scheduled =
        report_find(diagnosis, attributes->scheduled_event_id,
                    API_TYPE(activity_task_scheduled_event_attributes));
    if (attributes->failure == NULL)
        return;
    bool has_type = scheduled != NULL && scheduled->activity_type != NULL;
    struct failed failed = {.kind = "Activity Failed",
                            .identity = attributes->identity,
                            .activity_type = has_type ? scheduled->activity_type->name : "",
                            .scheduled_id = attributes->scheduled_event_id,
                            .started_id = attributes->started_event_id};
    add_failure(diagnosis, attributes->failure, &failed);
}

/* --- retries ---- */

static void
add_retry(struct diagnosis *diagnosis, const char *kind, const char *reason, int64_t event_id,
          const API(RetryPolicy) *policy)
{
    size_t id;
    (void)report_add_issue(diagnosis, &diagnosis->retries, kind, reason,
                           arena_format(diagnosis->arena, "{\"EventID\":%lld,\"RetryPolicy\":%s}",
                                        (long long)event_id, report_policy(diagnosis, policy)),
                           &id);
}

/* A policy by which nothing is ever tried again. */
static void
check_policy(struct diagnosis *diagnosis, const char *kind, int64_t event_id,
             const API(RetryPolicy) *policy)
{
    if (policy == NULL)
        return;
    int64_t expiration = report_seconds(policy->expiration_interval);
    if (expiration == 0 && policy->maximum_attempts == 1)
        add_retry(diagnosis, kind,
                  "MaximumAttempts set to 1 will not retry since maximum attempts includes the "
                  "first attempt.",
                  event_id, policy);
    else if (policy->maximum_attempts == 0 && expiration < report_seconds(policy->initial_interval))
        add_retry(
            diagnosis, kind,
            "ExpirationIntervalInSeconds less than  InitialIntervalInSeconds  will not retry.",
            event_id, policy);
}

static void
check_activity(struct diagnosis *diagnosis, const API(HistoryEvent) *event)
{
    const API(ActivityTaskScheduledEventAttributes) *scheduled =
        event->activity_task_scheduled_event_attributes;
    check_policy(diagnosis, "Activity Retry configured but invalid", event->event_id,
                 scheduled->retry_policy);
    if (report_seconds(scheduled->start_to_close_timeout) <=
        report_seconds(scheduled->heartbeat_timeout))
        add_retry(diagnosis, "Activity Heartbeat configured but invalid",
                  "Heartbeat timeout being equal or higher than StartToClose timeout will not "
                  "provide any benefit.",
                  event->event_id, NULL);
}

/* --- all kinds ---- */

void
report_examine(struct diagnosis *diagnosis, const API(HistoryEvent) *event)
{
    switch (event->attributes_case) {
    case EVENT_KIND(WORKFLOW_EXECUTION_STARTED):
        return check_policy(diagnosis, "Workflow Retry configured but invalid", event->event_id,
                            event->workflow_execution_started_event_attributes->retry_policy);
    case EVENT_KIND(ACTIVITY_TASK_SCHEDULED):
        return check_activity(diagnosis, event);
    case EVENT_KIND(WORKFLOW_EXECUTION_TIMED_OUT):
        return run_timed_out(diagnosis, event);
    case EVENT_KIND(ACTIVITY_TASK_TIMED_OUT):
        return activity_timed_out(diagnosis, event);
    case EVENT_KIND(DECISION_TASK_TIMED_OUT):
        return decision_timed_out(diagnosis, event);
    case EVENT_KIND(CHILD_WORKFLOW_EXECUTION_TIMED_OUT):
        return child_timed_out(diagnosis, event);
    case EVENT_KIND(WORKFLOW_EXECUTION_FAILED):
        return run_failed(diagnosis, event);
    case EVENT_KIND(ACTIVITY_TASK_FAILED):
        return activity_failed(diagnosis, event);
    default:
        return;
    }
}
