/* validate_start.c - what is wrong with a request to start a run. See validate.h. */
#include "api/call/validate.h"
#include "base/uuid.h"
#include "engine/command/schedule.h"
#include "fiber/clock.h"
#include "wire/presence.h"

static struct error *
bad(struct arena *arena, const char *sentence)
{
    return error_new(arena, ERR_BAD_REQUEST, "%s", sentence);
}

/* Whole seconds; unset is 0. */
static struct error *
read_seconds(struct arena *arena, const char *field, const GOOGLE(Duration) *duration,
             int64_t *seconds)
{
    struct maybe_int64 read = {0};
    struct error *err = presence_read_duration(arena, field, duration, &read);
    *seconds = read.value;
    return err;
}

struct retry_seconds {
    int64_t initial, maximum, expiration;
};

static const char *
retry_fault(const API(RetryPolicy) *policy, const struct retry_seconds *seconds)
{
    if (seconds->initial <= 0)
        return "InitialIntervalInSeconds must be greater than 0 on retry policy.";
    if (!(policy->backoff_coefficient >= 1)) /* so that NaN is refused too */
        return "BackoffCoefficient cannot be less than 1 on retry policy.";
    if (seconds->maximum < 0)
        return "MaximumIntervalInSeconds cannot be less than 0 on retry policy.";
    if (seconds->maximum > 0 && seconds->maximum < seconds->initial)
        return "MaximumIntervalInSeconds cannot be less than InitialIntervalInSeconds on retry "
               "policy.";
    if (policy->maximum_attempts < 0)
        return "MaximumAttempts cannot be less than 0 on retry policy.";
    if (seconds->expiration < 0)
        return "ExpirationIntervalInSeconds cannot be less than 0 on retry policy.";
    if (policy->maximum_attempts == 0 && seconds->expiration == 0)
        return "MaximumAttempts and ExpirationIntervalInSeconds are both 0. At least one of them "
               "must be specified.";
    return NULL;
}

struct error *
validate_retry_policy(const API(RetryPolicy) *policy, struct arena *arena)
{
    if (policy == NULL)
        return NULL;
    struct retry_seconds seconds;
    struct error *err = read_seconds(arena, "retry_policy.initial_interval",
                                     policy->initial_interval, &seconds.initial);
    if (err == NULL)
        err = read_seconds(arena, "retry_policy.maximum_interval", policy->maximum_interval,
                           &seconds.maximum);
    if (err == NULL)
        err = read_seconds(arena, "retry_policy.expiration_interval", policy->expiration_interval,
                           &seconds.expiration);
    if (err != NULL)
        return err;
    const char *fault = retry_fault(policy, &seconds);
    return fault == NULL ? NULL : bad(arena, fault);
}

static struct error *
check_times(const struct limits *limits, const API(StartWorkflowExecutionRequest) *request)
{
    const struct {
        const char *field;
        const GOOGLE(Duration) *duration;
        int64_t least;
        const char *sentence;
    } rules[] = {
        {"execution_start_to_close_timeout", request->execution_start_to_close_timeout, 1,
         "A valid ExecutionStartToCloseTimeoutSeconds is not set on request."},
        {"task_start_to_close_timeout", request->task_start_to_close_timeout, 1,
         "A valid TaskStartToCloseTimeoutSeconds is not set on request."},
        {"delay_start", request->delay_start, 0,
         "A valid DelayStartSeconds is not set on request."},
        {"jitter_start", request->jitter_start, 0,
         "A valid JitterStartSeconds is not set on request (negative)."},
    };
    for (size_t i = 0; i < array_length(rules); i++) {
        int64_t seconds = 0;
        struct error *err =
            read_seconds(limits->arena, rules[i].field, rules[i].duration, &seconds);
        if (err != NULL)
            return err;
        if (seconds < rules[i].least || seconds > INT32_MAX)
            return bad(limits->arena, rules[i].sentence);
    }
    struct maybe_int64 first_run_at;
    return presence_read_timestamp(limits->arena, "first_run_at", request->first_run_at,
                                   &first_run_at);
}

static struct error *
check_enums(const struct limits *limits, const API(StartWorkflowExecutionRequest) *request)
{
    int ignored;
    struct error *err = presence_read_enum(limits->arena, "workflow_id_reuse_policy",
                                           API_TYPE(workflow_id_reuse_policy),
                                           request->workflow_id_reuse_policy, 0, &ignored);
    if (err == NULL)
        err =
            presence_read_enum(limits->arena, "cron_overlap_policy", API_TYPE(cron_overlap_policy),
                               request->cron_overlap_policy, 0, &ignored);
    if (err == NULL && request->task_list != NULL)
        err = presence_read_enum(limits->arena, "task_list.kind", API_TYPE(task_list_kind),
                                 request->task_list->kind, 0, &ignored);
    return err;
}

static struct error *
check_ids(const struct limits *limits, const API(StartWorkflowExecutionRequest) *request,
          bool needs_uuid)
{
    struct uuid ignored;
    struct arena *arena = limits->arena;
    if (limits->domain[0] == '\0')
        return bad(arena, "Domain not set on request.");
    if (request->workflow_id[0] == '\0')
        return bad(arena, "WorkflowId is not set on request.");
    if (needs_uuid && !uuid_parse(slice_text(request->request_id), &ignored))
        return error_new(arena, ERR_BAD_REQUEST, "requestId \"%s\" is not a valid UUID",
                         request->request_id);
    if (request->request_id[0] == '\0')
        return bad(arena, "Missing request ID.");
    if (request->workflow_type == NULL || request->workflow_type->name[0] == '\0')
        return bad(arena, "WorkflowType is not set on request.");
    return NULL;
}

static struct error *
check_lengths(const struct limits *limits, const API(StartWorkflowExecutionRequest) *request)
{
    struct error *err = validate_domain_name(limits);
    if (err == NULL)
        err =
            validate_length(limits, DYNAMIC_WORKFLOW_ID_LENGTH, request->workflow_id, "WorkflowID");
    if (err == NULL)
        err = validate_length(limits, DYNAMIC_WORKFLOW_TYPE_LENGTH, request->workflow_type->name,
                              "WorkflowType");
    if (err == NULL)
        err = validate_length(limits, DYNAMIC_REQUEST_ID_LENGTH, request->request_id, "RequestID");
    if (err == NULL)
        err = validate_length(limits, DYNAMIC_IDENTITY_LENGTH, request->identity, "Identity");
    return err;
}

/* The cron schedule must be valid, and jitter must not reach beyond the next start. */
static struct error *
check_schedule(const struct limits *limits, const API(StartWorkflowExecutionRequest) *request)
{
    const char *fault = schedule_fault(request->cron_schedule, clock_wall(), limits->arena);
    if (fault != NULL)
        return bad(limits->arena, fault);
    int64_t jitter = request->jitter_start == NULL ? 0 : request->jitter_start->seconds;
    if (request->cron_schedule[0] == '\0' || jitter <= schedule_period(request->cron_schedule))
        return NULL;
    return bad(limits->arena, "A valid JitterStartSeconds is not set on request (larger than cron "
                              "duration).");
}

struct error *
validate_start(const struct limits *limits, const API(StartWorkflowExecutionRequest) *request,
               bool needs_uuid)
{
    struct error *err = check_ids(limits, request, needs_uuid);
    if (err == NULL)
        err = check_lengths(limits, request);
    if (err == NULL)
        err = validate_retry_policy(request->retry_policy, limits->arena);
    if (err == NULL)
        err = validate_task_list(limits, request->task_list);
    if (err == NULL)
        err = check_times(limits, request);
    if (err == NULL)
        err = check_schedule(limits, request);
    if (err == NULL)
        err = check_enums(limits, request);
    return err;
}

struct error *
validate_start_blobs(const struct limits *limits, const API(StartWorkflowExecutionRequest) *request)
{
    size_t size = validate_payload_size(request->input);
    const API(Memo) *memo = request->memo;
    for (size_t i = 0; memo != NULL && i < memo->n_fields; i++)
        size += strlen(memo->fields[i]->key) + validate_payload_size(memo->fields[i]->value);
    return validate_blob(limits, size);
}
