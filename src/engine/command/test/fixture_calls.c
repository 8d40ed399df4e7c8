/* fixture_calls.c - what clients and workers do in the world of fixture.h. */
#include "base/check.h"
#include "engine/command/test/fixture.h"
#include "wire/message.h"
#include "wire/presence.h"

/* ---- makers ---- */

char *
fixture_request_id(struct fixture *fixture)
{
    return arena_format(fixture->arena, "00000000-0000-4000-8000-%012llx",
                        (unsigned long long)++fixture->request_count);
}

GOOGLE(Duration) *
fixture_duration(struct fixture *fixture, int64_t seconds)
{
    return GOOGLE_NEW(fixture->arena, duration, .seconds = seconds); /* clients send any number */
}

API(Payload) *
fixture_payload(struct fixture *fixture, const char *text)
{
    API(Payload) *payload =
        API_NEW(fixture->arena, payload,
                .data = presence_make_bytes(slice_text(arena_text(fixture->arena, text))));
    return payload;
}

const char *
fixture_payload_text(struct fixture *fixture, const API(Payload) *payload)
{
    return payload == NULL ? "(none)"
                           : arena_text_of(fixture->arena, presence_read_bytes(payload->data));
}

API(StartWorkflowExecutionRequest) *
fixture_start_request(struct fixture *fixture)
{
    return API_NEW(
        fixture->arena, start_workflow_execution_request, .domain = "orders", .workflow_id = "wf",
        .workflow_type = API_NEW(fixture->arena, workflow_type, .name = "type"),
        .task_list = API_NEW(fixture->arena, task_list, .name = "list",
                             .kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL)),
        .execution_start_to_close_timeout = fixture_duration(fixture, 100),
        .task_start_to_close_timeout = fixture_duration(fixture, 10), .identity = "client",
        .request_id = fixture_request_id(fixture),
        .workflow_id_reuse_policy =
            API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE));
}

/* ---- clients ---- */

struct start_call {
    struct start_command command;
    struct start_answer answer;
};

static struct error *
decide_start(void *context, struct step *step)
{
    struct start_call *call = context;
    if (call->command.signal != NULL)
        return command_signal_with_start(step, &call->command, &call->answer);
    return command_start(step, &call->command, &call->answer);
}

static struct error *
start(struct fixture *fixture, const struct start_command *command)
{
    struct start_call call = {.command = *command};
    size_t count = fixture->run_count;
    struct error *refusal = fixture_step(fixture, decide_start, &call);
    fixture->started = call.answer;
    if (refusal == NULL)
        EXPECT_EQ(call.answer.is_new, fixture->run_count > count);
    return refusal;
}

struct error *
fixture_start(struct fixture *fixture, const API(StartWorkflowExecutionRequest) *request)
{
    return start(fixture, &(struct start_command){.request = request});
}

void
fixture_begin(struct fixture *fixture)
{
    EXPECT_OK(fixture_start(fixture, fixture_start_request(fixture)));
    EXPECT(fixture->started.is_new);
}

struct error *
fixture_signal_with_start(struct fixture *fixture,
                          const API(StartWorkflowExecutionRequest) *request, const char *name)
{
    API(SignalWithStartWorkflowExecutionRequest) *signal =
        API_NEW(fixture->arena, signal_with_start_workflow_execution_request,
                .start_request = (API(StartWorkflowExecutionRequest) *)request,
                .signal_name = (char *)name, .signal_input = fixture_payload(fixture, name));
    return start(fixture, &(struct start_command){.request = request, .signal = signal});
}

static struct error *
decide_signal(void *context, struct step *step)
{
    return command_signal(step, context);
}

struct error *
fixture_signal(struct fixture *fixture, const char *name, const char *request_id)
{
    API(SignalWorkflowExecutionRequest) *request =
        API_NEW(fixture->arena, signal_workflow_execution_request, .signal_name = (char *)name,
                .signal_input = fixture_payload(fixture, name), .identity = "client",
                .request_id = (char *)request_id);
    return fixture_step(fixture, decide_signal, request);
}

static struct error *
decide_request_cancel(void *context, struct step *step)
{
    return command_request_cancel(step, context);
}

struct error *
fixture_request_cancel(struct fixture *fixture, const char *request_id)
{
    API(RequestCancelWorkflowExecutionRequest) *request =
        API_NEW(fixture->arena, request_cancel_workflow_execution_request, .identity = "client",
                .cause = "enough", .request_id = (char *)request_id);
    return fixture_step(fixture, decide_request_cancel, request);
}

static struct error *
decide_terminate(void *context, struct step *step)
{
    return command_terminate(step, context);
}

struct error *
fixture_terminate(struct fixture *fixture)
{
    API(TerminateWorkflowExecutionRequest) *request =
        API_NEW(fixture->arena, terminate_workflow_execution_request, .reason = "reason",
                .details = fixture_payload(fixture, "details"), .identity = "client");
    return fixture_step(fixture, decide_terminate, request);
}

/* ---- workers ---- */

struct start_task_call {
    struct task_name task;
    const char *request_id;
    struct decision_start *decision;
    struct activity_start *activity;
};

static struct error *
decide_start_task(void *context, struct step *step)
{
    struct start_task_call *call = context;
    if (call->activity != NULL)
        return command_start_activity(step, &call->task, call->request_id, "worker",
                                      call->activity);
    return command_start_decision(step, &call->task, call->request_id, "worker", call->decision);
}

const STORED(TransferRow) *
fixture_task(const struct fixture *fixture, STORED(TransferType) type)
{
    for (size_t i = 0; i < fixture->tasks.count; i++)
        if (fixture->tasks.items[i].transfer->type == type)
            return fixture->tasks.items[i].transfer;
    return NULL;
}

/* The run that a task is of. */
static size_t
run_of(const struct fixture *fixture, const char *run_id)
{
    for (size_t i = 0; i < fixture->run_count; i++)
        if (strcmp(fixture->runs[i].run->core->run_id, run_id) == 0)
            return i;
    TEST_FAIL("no run %s", run_id);
}

static bool
start_oldest(struct fixture *fixture, STORED(TransferType) type, struct start_task_call *call)
{
    const STORED(TransferRow) *task = fixture_task(fixture, type);
    if (task == NULL)
        return false;
    call->task = (struct task_name){
        .schedule_id = task->schedule_id, .attempt = task->attempt, .activity_id = ""};
    call->request_id = fixture_request_id(fixture);
    EXPECT_OK(fixture_step_on(fixture, run_of(fixture, task->run_id), decide_start_task, call));
    return true;
}

bool
fixture_poll_decision(struct fixture *fixture)
{
    struct start_task_call call = {.decision = &fixture->decision};
    return start_oldest(fixture, CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_DECISION,
                        &call);
}

bool
fixture_poll_activity(struct fixture *fixture, struct activity_start *activity)
{
    struct start_task_call call = {.activity = activity};
    return start_oldest(fixture, CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY,
                        &call);
}

struct error *
fixture_start_decision(struct fixture *fixture, const struct task_name *task,
                       const char *request_id)
{
    struct start_task_call call = {
        .task = *task, .request_id = request_id, .decision = &fixture->decision};
    return fixture_step(fixture, decide_start_task, &call);
}

struct task_name
fixture_decision_name(const struct fixture *fixture)
{
    return (struct task_name){.schedule_id = fixture->decision.schedule_id,
                              .attempt = fixture->decision.attempt,
                              .activity_id = ""};
}

API(RespondDecisionTaskCompletedRequest) *
fixture_completion(struct fixture *fixture)
{
    return API_NEW(fixture->arena, respond_decision_task_completed_request, .identity = "worker");
}

struct complete_call {
    struct complete_command command;
    struct complete_answer answer;
};

static struct error *
decide_completion(void *context, struct step *step)
{
    struct complete_call *call = context;
    return command_complete_decision(step, &call->command, &call->answer);
}

struct error *
fixture_respond(struct fixture *fixture, const API(RespondDecisionTaskCompletedRequest) *request)
{
    struct complete_call call = {
        .command = {.request = request,
                    .task = fixture_decision_name(fixture),
                    .client_name = "",
                    .client_feature_version = "",
                    .client_library_version = ""},
    };
    struct error *refusal = fixture_step(fixture, decide_completion, &call);
    if (refusal != NULL)
        return refusal;
    fixture->completed = call.answer;
    if (call.answer.has_started_decision)
        fixture->decision = call.answer.start;
    return call.answer.late_refusal;
}

struct error *
fixture_complete_list(struct fixture *fixture, API(Decision) **decisions, size_t count)
{
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    request->decisions = decisions;
    request->n_decisions = count;
    return fixture_respond(fixture, request);
}

struct fail_call {
    struct task_name task;
    const API(RespondDecisionTaskFailedRequest) *request;
};

static struct error *
decide_fail_decision(void *context, struct step *step)
{
    const struct fail_call *call = context;
    return command_fail_decision(step, &call->task, call->request);
}

struct error *
fixture_fail_decision_with(struct fixture *fixture, API(DecisionTaskFailedCause) cause)
{
    API(RespondDecisionTaskFailedRequest) *request =
        API_NEW(fixture->arena, respond_decision_task_failed_request, .identity = "worker",
                .details = fixture_payload(fixture, "broken"), .cause = cause);
    struct fail_call call = {.task = fixture_decision_name(fixture), .request = request};
    return fixture_step(fixture, decide_fail_decision, &call);
}

struct error *
fixture_fail_decision(struct fixture *fixture)
{
#define CAUSE(name) API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_##name)
    return fixture_fail_decision_with(fixture, CAUSE(WORKFLOW_WORKER_UNHANDLED_FAILURE));
}
