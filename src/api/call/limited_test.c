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
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "busy");
    request->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING);
    return fixture_call(fixture, request, NULL);
}

static struct error *
call_signal(struct fixture *fixture)
{
    return API_CALL(fixture, NULL, signal_workflow_execution, .domain = "orders",
                    .workflow_execution = fixture_execution(fixture, "busy"), .signal_name = "go");
}

static struct error *
signal_with_start(struct fixture *fixture)
{
    return API_CALL(fixture, NULL, signal_with_start_workflow_execution,
                    .start_request = fixture_start(fixture, "busy"), .signal_name = "go");
}

static struct error *
request_cancel(struct fixture *fixture)
{
    return API_CALL(fixture, NULL, request_cancel_workflow_execution, .domain = "orders",
                    .workflow_execution = fixture_execution(fixture, "busy"));
}

static struct error *
reset(struct fixture *fixture)
{
    return API_CALL(fixture, NULL, reset_workflow_execution, .domain = "orders",
                    .workflow_execution = fixture_execution(fixture, "busy"),
                    .decision_finish_event_id = 4, .request_id = fixture_uuid(fixture));
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
        API_NEW(fixture->arena, query_workflow_request, .domain = "orders",
                .workflow_execution = fixture_execution(fixture, "busy"),
                .query = API_NEW(fixture->arena, workflow_query, .query_type = "state"));
    fixture->timeout = NS_PER_S / 10; /* no worker answers */
    struct error *err = fixture_call(fixture, request, NULL);
    fixture->timeout = 0;
    return err;
}

static struct error *
terminate(struct fixture *fixture)
{
    return API_CALL(fixture, NULL, terminate_workflow_execution, .domain = "orders",
                    .workflow_execution = fixture_execution(fixture, "busy"));
}

static struct error *
history(struct fixture *fixture)
{
    return fixture_call(fixture, fixture_history(fixture, "busy"), NULL);
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

SERVER_TEST(limited, calls_of_one_id_are_held_off_in_the_words_that_clients_know, "H-006", "H-007",
            "H-009")
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

SERVER_TEST(limited, a_call_that_was_held_off_has_written_nothing, "H-006")
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

/* --- who is hot ---- */

SERVER_TEST(limited, the_hottest_ids_are_told_also_in_the_shadow, "H-004")
{
    fixture_set(fixture, "history.workflowIDExternalRPS: [{value: 3}]\n"
                         "history.workflowIDExternalRateLimitEnabled: [{value: false}]\n");
    EXPECT_OK(start(fixture));
    for (int i = 0; i < 10; i++)
        EXPECT_OK(call_signal(fixture));
    run_start(fixture, "calm");
    STORE_API(HotWorkflowsRequest) *request =
        STORE_API_NEW(fixture->arena, hot_workflows_request, .domain = "orders");
    STORE_API(HotWorkflowsResponse) *response = fixture_ok(fixture, request);
    EXPECT_EQ(response->n_workflows, 2);
    EXPECT_TEXT(response->workflows[0]->workflow_id, "busy");
    EXPECT_TEXT(response->workflows[0]->domain, "orders");
    EXPECT_EQ(response->workflows[0]->external_rate, 11);
    EXPECT(response->workflows[0]->is_external_limited); /* would have been */
    EXPECT_EQ(response->workflows[0]->internal_rate, 1);
    EXPECT(!response->workflows[1]->is_external_limited);
    request->count = -1;
    EXPECT_KIND(fixture_call(fixture, request, &response), ERR_BAD_REQUEST);
    request->count = 1;
    request->domain = "nowhere";
    EXPECT_KIND(fixture_call(fixture, request, &response), ERR_ENTITY_NOT_EXISTS);
}
