/* limited_test.c - one workflow id that is called too often, through the door (H.1). */
#include "api/test/fixture.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "fiber/fiber.h"
#include "wire/names.h"

#define PER_SECOND 3

static void
pass_a_minute(struct fixture *fixture)
{
    EXPECT_OK(fiber_sleep(60 * NS_PER_S, fixture->arena));
}

/* --- the calls ---- */

static struct error *
start(struct fixture *fixture)
{
    API(StartWorkflowExecutionResponse) *response;
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "busy");
    request->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING);
    return fixture_call(fixture, WORKFLOW_API "StartWorkflowExecution", &request->base,
                        API_TYPE(start_workflow_execution_response), &response);
}

static struct error *
call_signal(struct fixture *fixture)
{
    API(SignalWorkflowExecutionRequest) *request =
        message_new(fixture->arena, API_TYPE(signal_workflow_execution_request));
    API(SignalWorkflowExecutionResponse) *response;
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, "busy");
    request->signal_name = "go";
    return fixture_call(fixture, WORKFLOW_API "SignalWorkflowExecution", &request->base,
                        API_TYPE(signal_workflow_execution_response), &response);
}

static struct error *
signal_with_start(struct fixture *fixture)
{
    API(SignalWithStartWorkflowExecutionRequest) *request =
        message_new(fixture->arena, API_TYPE(signal_with_start_workflow_execution_request));
    API(SignalWithStartWorkflowExecutionResponse) *response;
    request->start_request = fixture_start(fixture, "busy");
    request->signal_name = "go";
    return fixture_call(fixture, WORKFLOW_API "SignalWithStartWorkflowExecution", &request->base,
                        API_TYPE(signal_with_start_workflow_execution_response), &response);
}

static struct error *
request_cancel(struct fixture *fixture)
{
    API(RequestCancelWorkflowExecutionRequest) *request =
        message_new(fixture->arena, API_TYPE(request_cancel_workflow_execution_request));
    API(RequestCancelWorkflowExecutionResponse) *response;
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, "busy");
    return fixture_call(fixture, WORKFLOW_API "RequestCancelWorkflowExecution", &request->base,
                        API_TYPE(request_cancel_workflow_execution_response), &response);
}

static struct error *
reset(struct fixture *fixture)
{
    API(ResetWorkflowExecutionRequest) *request =
        message_new(fixture->arena, API_TYPE(reset_workflow_execution_request));
    API(ResetWorkflowExecutionResponse) *response;
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, "busy");
    request->decision_finish_event_id = 4;
    request->request_id = fixture_uuid(fixture);
    return fixture_call(fixture, WORKFLOW_API "ResetWorkflowExecution", &request->base,
                        API_TYPE(reset_workflow_execution_response), &response);
}

static struct error *
describe(struct fixture *fixture)
{
    return run_try_describe(fixture, "busy", "");
}

static struct error *
query(struct fixture *fixture)
{
    API(QueryWorkflowRequest) *request =
        message_new(fixture->arena, API_TYPE(query_workflow_request));
    API(QueryWorkflowResponse) *response;
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, "busy");
    request->query = message_new(fixture->arena, API_TYPE(workflow_query));
    request->query->query_type = "state";
    fixture->timeout = NS_PER_S / 10; /* no worker answers */
    struct error *err = fixture_call(fixture, WORKFLOW_API "QueryWorkflow", &request->base,
                                     API_TYPE(query_workflow_response), &response);
    fixture->timeout = 0;
    return err;
}

static struct error *
terminate(struct fixture *fixture)
{
    API(TerminateWorkflowExecutionRequest) *request =
        message_new(fixture->arena, API_TYPE(terminate_workflow_execution_request));
    API(TerminateWorkflowExecutionResponse) *response;
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, "busy");
    return fixture_call(fixture, WORKFLOW_API "TerminateWorkflowExecution", &request->base,
                        API_TYPE(terminate_workflow_execution_response), &response);
}

static struct error *
history(struct fixture *fixture)
{
    API(GetWorkflowExecutionHistoryResponse) *response;
    return fixture_call(fixture, WORKFLOW_API "GetWorkflowExecutionHistory",
                        &fixture_history(fixture, "busy")->base,
                        API_TYPE(get_workflow_execution_history_response), &response);
}

/* --- what is limited ---- */

static bool
is_held_off(const struct error *err)
{
    return err != NULL && err->kind == ERR_SERVICE_BUSY &&
           strcmp(err->message, "Too many requests for the workflow ID") == 0;
}

typedef struct error *call_function(struct fixture *fixture);

/* The id has used up its second: the call is held off. After a rest it is not. */
static void
expect_limited(struct fixture *fixture, call_function *call)
{
    pass_a_minute(fixture);
    EXPECT(!is_held_off(call(fixture)));
    pass_a_minute(fixture);
    for (int i = 0; i < PER_SECOND; i++)
        EXPECT(!is_held_off(describe(fixture)));
    EXPECT(is_held_off(call(fixture)));
}

static void
one_busy_id(struct fixture *fixture)
{
    fixture_set(fixture, "history.workflowIDExternalRPS: [{value: 3}]\n");
    call_function *const limited[] = {
        start, call_signal, signal_with_start, request_cancel, reset, describe, query};
    for (size_t i = 0; i < array_length(limited); i++)
        expect_limited(fixture, limited[i]);
    run_start(fixture, "calm");
    run_signal(fixture, "calm", "go");
    while (!is_held_off(describe(fixture)))
        continue;
    EXPECT(!is_held_off(history(fixture)));
    EXPECT(!is_held_off(terminate(fixture)));
    EXPECT(is_held_off(describe(fixture)));
}

TEST(limited, calls_of_one_id_are_held_off_in_the_words_that_clients_know, "H-006", "H-007",
     "H-009")
{
    fixture_run(one_busy_id);
}

static void
nothing_written(struct fixture *fixture)
{
    fixture_set(fixture, "history.workflowIDExternalRPS: [{value: 3}]\n");
    EXPECT_OK(start(fixture));
    EXPECT_OK(call_signal(fixture));
    EXPECT_OK(call_signal(fixture));
    for (int i = 0; i < 10; i++)
        EXPECT(is_held_off(call_signal(fixture)));
    API(GetWorkflowExecutionHistoryResponse) *read =
        read_history(fixture, fixture_history(fixture, "busy"));
    EXPECT_EQ(read->history->n_events, 4); /* started, scheduled, two signals */
}

TEST(limited, a_call_that_was_held_off_has_written_nothing, "H-006")
{
    fixture_run(nothing_written);
}

/* --- who is hot ---- */

static void
hot_ids(struct fixture *fixture)
{
    fixture_set(fixture, "history.workflowIDExternalRPS: [{value: 3}]\n"
                         "history.workflowIDExternalRateLimitEnabled: [{value: false}]\n");
    EXPECT_OK(start(fixture));
    for (int i = 0; i < 10; i++)
        EXPECT_OK(call_signal(fixture));
    run_start(fixture, "calm");
    STORE_API(HotWorkflowsRequest) request = CADENZA__ADMIN__V1__HOT_WORKFLOWS_REQUEST__INIT;
    STORE_API(HotWorkflowsResponse) *response;
    const ProtobufCMessageDescriptor *type =
        &cadenza__admin__v1__hot_workflows_response__descriptor;
    const char *path = "/cadenza.admin.v1.LimitsAPI/HotWorkflows";
    request.domain = "orders";
    EXPECT_OK(fixture_call(fixture, path, &request.base, type, &response));
    EXPECT_EQ(response->n_workflows, 2);
    EXPECT_TEXT(response->workflows[0]->workflow_id, "busy");
    EXPECT_TEXT(response->workflows[0]->domain, "orders");
    EXPECT_EQ(response->workflows[0]->external_rate, 11);
    EXPECT(response->workflows[0]->is_external_limited); /* would have been */
    EXPECT_EQ(response->workflows[0]->internal_rate, 1);
    EXPECT(!response->workflows[1]->is_external_limited);
    request.count = -1;
    EXPECT_KIND(fixture_call(fixture, path, &request.base, type, &response), ERR_BAD_REQUEST);
    request.count = 1;
    request.domain = "nowhere";
    EXPECT_KIND(fixture_call(fixture, path, &request.base, type, &response), ERR_ENTITY_NOT_EXISTS);
}

TEST(limited, the_hottest_ids_are_told_also_in_the_shadow, "H-004")
{
    fixture_run(hot_ids);
}
