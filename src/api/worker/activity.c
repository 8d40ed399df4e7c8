/* activity.c - WorkerAPI: what workers answer about activities, by token and by id.
 *
 * What is too large is not an error for the worker, which could do nothing about it: the activity
 * fails with a reason that says so. */
#include "api/worker/worker.h"
#include "base/check.h"
#include "wire/message.h"

/* The server fails the activity: what the worker sent is too large. */
static struct error *
fail_for_size(struct rpc_call *call, const struct target *target, const char *reason,
              const API(Payload) *payload)
{
    size_t most = validate_blob_max(&target->limits);
    check(payload->data.len > most);
    API(Failure) *failure = message_new(call->arena, API_TYPE(failure));
    failure->reason = (char *)reason;
    failure->details = payload->data;
    failure->details.len = most;
    struct activity_report report = {
        .task = target->task, .identity = target->identity, .failure = failure};
    return engine_fail_activity(api_of(call)->options.engine, &target->key, &report, call->arena);
}

static bool
is_too_large(const struct target *target, const API(Payload) *payload)
{
    return validate_payload_size(payload) > validate_blob_max(&target->limits);
}

static struct error *
complete(struct rpc_call *call, const struct target *target, const API(Payload) *result)
{
    if (is_too_large(target, result))
        return fail_for_size(call, target, "COMPLETE_RESULT_EXCEEDS_LIMIT", result);
    struct activity_report report = {
        .task = target->task, .identity = target->identity, .payload = result};
    return engine_complete_activity(api_of(call)->options.engine, &target->key, &report,
                                    call->arena);
}

struct error *
api_complete_activity(struct rpc_call *call)
{
    const API(RespondActivityTaskCompletedRequest) *request =
        (const API(RespondActivityTaskCompletedRequest) *)call->request;
    struct target target;
    struct error *err = target_by_token(call, request->task_token, request->identity, &target);
    return err != NULL ? err : complete(call, &target, request->result);
}

struct error *
api_complete_activity_by_id(struct rpc_call *call)
{
    const API(RespondActivityTaskCompletedByIDRequest) *request =
        (const API(RespondActivityTaskCompletedByIDRequest) *)call->request;
    struct target target;
    struct error *err = target_by_id(call, PATH_OF(request), &target);
    return err != NULL ? err : complete(call, &target, request->result);
}

static struct error *
fail(struct rpc_call *call, const struct target *target, const API(Failure) *given)
{
    API(Failure) *failure = message_new(call->arena, API_TYPE(failure));
    if (given != NULL)
        *failure = *given;
    size_t most = validate_blob_max(&target->limits);
    if (failure->details.len > most) {
        failure->reason = "FAILURE_DETAILS_EXCEEDS_LIMIT";
        failure->details.len = most;
    }
    struct activity_report report = {
        .task = target->task, .identity = target->identity, .failure = failure};
    return engine_fail_activity(api_of(call)->options.engine, &target->key, &report, call->arena);
}

struct error *
api_fail_activity(struct rpc_call *call)
{
    const API(RespondActivityTaskFailedRequest) *request =
        (const API(RespondActivityTaskFailedRequest) *)call->request;
    struct target target;
    struct error *err = target_by_token(call, request->task_token, request->identity, &target);
    return err != NULL ? err : fail(call, &target, request->failure);
}

struct error *
api_fail_activity_by_id(struct rpc_call *call)
{
    const API(RespondActivityTaskFailedByIDRequest) *request =
        (const API(RespondActivityTaskFailedByIDRequest) *)call->request;
    struct target target;
    struct error *err = target_by_id(call, PATH_OF(request), &target);
    return err != NULL ? err : fail(call, &target, request->failure);
}

static struct error *
cancel(struct rpc_call *call, const struct target *target, const API(Payload) *details)
{
    if (is_too_large(target, details))
        return fail_for_size(call, target, "CANCEL_DETAILS_EXCEEDS_LIMIT", details);
    struct activity_report report = {
        .task = target->task, .identity = target->identity, .payload = details};
    return engine_cancel_activity(api_of(call)->options.engine, &target->key, &report, call->arena);
}

struct error *
api_cancel_activity(struct rpc_call *call)
{
    const API(RespondActivityTaskCanceledRequest) *request =
        (const API(RespondActivityTaskCanceledRequest) *)call->request;
    struct target target;
    struct error *err = target_by_token(call, request->task_token, request->identity, &target);
    return err != NULL ? err : cancel(call, &target, request->details);
}

struct error *
api_cancel_activity_by_id(struct rpc_call *call)
{
    const API(RespondActivityTaskCanceledByIDRequest) *request =
        (const API(RespondActivityTaskCanceledByIDRequest) *)call->request;
    struct target target;
    struct error *err = target_by_id(call, PATH_OF(request), &target);
    return err != NULL ? err : cancel(call, &target, request->details);
}

static struct error *
heartbeat(struct rpc_call *call, const struct target *target, const API(Payload) *details,
          bool *is_cancel_requested)
{
    if (is_too_large(target, details)) {
        *is_cancel_requested = true; /* it has failed: the worker should stop */
        return fail_for_size(call, target, "HEARTBEAT_EXCEEDS_LIMIT", details);
    }
    struct activity_report report = {
        .task = target->task, .identity = target->identity, .payload = details};
    return engine_heartbeat_activity(api_of(call)->options.engine, &target->key, &report,
                                     call->arena, is_cancel_requested);
}

struct error *
api_heartbeat_activity(struct rpc_call *call)
{
    const API(RecordActivityTaskHeartbeatRequest) *request =
        (const API(RecordActivityTaskHeartbeatRequest) *)call->request;
    API(RecordActivityTaskHeartbeatResponse) *response =
        (API(RecordActivityTaskHeartbeatResponse) *)call->response;
    bool is_cancel_requested = false;
    struct target target;
    struct error *err = target_by_token(call, request->task_token, request->identity, &target);
    if (err == NULL)
        err = heartbeat(call, &target, request->details, &is_cancel_requested);
    response->cancel_requested = is_cancel_requested;
    return err;
}

struct error *
api_heartbeat_activity_by_id(struct rpc_call *call)
{
    const API(RecordActivityTaskHeartbeatByIDRequest) *request =
        (const API(RecordActivityTaskHeartbeatByIDRequest) *)call->request;
    API(RecordActivityTaskHeartbeatByIDResponse) *response =
        (API(RecordActivityTaskHeartbeatByIDResponse) *)call->response;
    bool is_cancel_requested = false;
    struct target target;
    struct error *err = target_by_id(call, PATH_OF(request), &target);
    if (err == NULL)
        err = heartbeat(call, &target, request->details, &is_cancel_requested);
    response->cancel_requested = is_cancel_requested;
    return err;
}
