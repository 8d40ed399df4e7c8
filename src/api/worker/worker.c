/* worker.c - WorkerAPI: what workers answer about decisions. The polls are poll.c, activities
 * activity.c. */
#include "api/worker/worker.h"

#include "api/call/subject.h"
#include "api/call/tokens.h"
#include "api/entity/entity.h"
#include "api/worker/decision.h"
#include "api/worker/local.h"
#include "base/check.h"
#include "wire/message.h"
#include "wire/presence.h"

#define RESPONSE_DECISION_TASK 1 /* field of RespondDecisionTaskCompletedResponse */

/* --- what an answer is about ---- */

static struct error *
set_domain(struct rpc_call *call, struct target *target)
{
    target->limits =
        (struct limits){api_of(call)->options.dynamic, target->domain.name, call->arena};
    target->key.domain_id = target->domain.id;
    return validate_length(&target->limits, DYNAMIC_IDENTITY_LENGTH, target->identity, "Identity");
}

struct error *
target_by_token(struct rpc_call *call, ProtobufCBinaryData bytes, const char *identity,
                struct target *target)
{
    const struct task_token *token = NULL;
    struct error *err = subject_token(call, bytes, &token);
    *target = (struct target){.identity = identity};
    if (err == NULL)
        err = validate_domain_id(call, token->domain_id, &target->domain);
    if (err != NULL)
        return err;
    check(token->schedule_attempt >= INT32_MIN && token->schedule_attempt <= INT32_MAX);
    target->key.workflow_id = token->workflow_id;
    target->key.run_id = token->run_id;
    target->task = (struct task_name){.schedule_id = token->schedule_id,
                                      .attempt = (int32_t)token->schedule_attempt,
                                      .activity_id = token->activity_id};
    return set_domain(call, target);
}

struct error *
target_by_id(struct rpc_call *call, const struct activity_path *path, struct target *target)
{
    *target = (struct target){.identity = path->identity};
    struct error *err = validate_domain(call, path->domain, &target->domain);
    if (err == NULL)
        err = validate_execution(path->execution, call->arena);
    if (err == NULL && path->activity_id[0] == '\0')
        err = error_new(call->arena, ERR_BAD_REQUEST, "ActivityID is not set on request.");
    if (err != NULL)
        return err;
    target->key.workflow_id = path->execution->workflow_id;
    target->key.run_id = path->execution->run_id;
    target->task = (struct task_name){.schedule_id = EVENT_NONE, .activity_id = path->activity_id};
    return set_domain(call, target);
}

/* --- decisions -----------------------------------------------------------------------------------
 */

static struct error *
check_decisions(const struct target *target,
                const API(RespondDecisionTaskCompletedRequest) *request)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = target->domain.name;
    int64_t most = dynamic_integer(target->limits.dynamic, DYNAMIC_DECISION_RESULT_COUNT, &filter);
    if (most > 0 && request->n_decisions > (size_t)most)
        return error_new(target->limits.arena, ERR_BAD_REQUEST,
                         "Decision result count exceeds limit.");
    const API(StickyExecutionAttributes) *sticky = request->sticky_attributes;
    if (sticky == NULL || sticky->worker_task_list == NULL)
        return NULL;
    return validate_length(&target->limits, DYNAMIC_TASK_LIST_NAME_LENGTH,
                           sticky->worker_task_list->name, "TaskList");
}

/* The next decision is started already: it goes out with the answer. */
static struct error *
show_next_decision(struct rpc_call *call, const struct target *target,
                   const struct decision_start *start)
{
    struct started_decision decision = {.domain_id = target->domain.id,
                                        .domain_name = target->domain.name,
                                        .workflow_id = target->key.workflow_id,
                                        .start = start};
    API(PollForDecisionTaskResponse) *task =
        message_new(call->arena, API_TYPE(poll_for_decision_task_response));
    struct pieces history;
    struct error *err = decision_show(api_of(call), &decision, call->arena, task, &history);
    if (err != NULL)
        return err;
    pieces_nest(&history, RESPONSE_DECISION_TASK, message_encode(call->arena, &task->base));
    call->pieces = history.list.items;
    call->piece_count = history.list.count;
    return NULL;
}

/* Workers that do not send a name and a version are assumed to know such queries. */
static bool
refuses_queries(const struct caller *caller, struct arena *arena)
{
    return caller->name[0] != '\0' && caller->feature_version[0] != '\0' &&
           caller_check_strong_queries(caller, arena) != NULL;
}

struct error *
api_complete_decision(struct rpc_call *call)
{
    const API(RespondDecisionTaskCompletedRequest) *request =
        (const API(RespondDecisionTaskCompletedRequest) *)call->request;
    struct target target;
    struct error *err = target_by_token(call, request->task_token, request->identity, &target);
    if (err == NULL)
        err = check_decisions(&target, request);
    if (err != NULL)
        return err;
    struct caller caller = api_caller(call);
    const char *const *child_faults = NULL;
    err = entity_children(call, target.domain.name, request, &child_faults);
    if (err != NULL)
        return err;
    struct complete_command command = {
        .request = request,
        .child_faults = child_faults,
        .task = target.task,
        .client_name = caller.name,
        .client_feature_version = caller.feature_version,
        .client_library_version = caller.library_version,
        .refuses_queries = refuses_queries(&caller, call->arena),
        .query_answer_max = validate_blob_max(&target.limits),
    };
    struct complete_answer answer = {0};
    err = engine_complete_decision(api_of(call)->options.engine, &target.key, &command, call->arena,
                                   &answer);
    if (err != NULL || answer.late_refusal != NULL)
        return err != NULL ? err : answer.late_refusal;
    local_show(&target.key, &answer, call->arena,
               (API(RespondDecisionTaskCompletedResponse) *)call->response);
    if (!request->return_new_decision_task || !answer.has_started_decision)
        return NULL;
    return show_next_decision(call, &target, &answer.start);
}

/* The payload, cut to what is allowed. */
static API(Payload) *
cut_payload(const API(Payload) *payload, size_t most, struct arena *arena)
{
    check(payload->data.len > most);
    API(Payload) *cut = message_new(arena, API_TYPE(payload));
    cut->data = payload->data;
    cut->data.len = most;
    return cut;
}

struct error *
api_fail_decision(struct rpc_call *call)
{
    const API(RespondDecisionTaskFailedRequest) *request =
        (const API(RespondDecisionTaskFailedRequest) *)call->request;
    struct target target;
    struct error *err = target_by_token(call, request->task_token, request->identity, &target);
    if (err != NULL)
        return err;
    size_t most = validate_blob_max(&target.limits);
    API(RespondDecisionTaskFailedRequest) kept = *request;
    if (validate_payload_size(request->details) > most)
        kept.details = cut_payload(request->details, most, call->arena);
    return engine_fail_decision(api_of(call)->options.engine, &target.key, &target.task, &kept,
                                call->arena);
}
