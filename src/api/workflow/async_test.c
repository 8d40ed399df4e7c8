/* async_test.c - starts that are accepted now and done later, as clients and operators see them. */
#include "api/test/moving.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/names.h"

static struct error *
set_queue(struct fixture *fixture, const char *domain, API(AsyncWorkflowConfiguration) *queue)
{
    return ADMIN_CALL(fixture, NULL, update_domain_async_workflow_configuraton,
                      .domain = (char *)domain, .configuration = queue);
}

static API(AsyncWorkflowConfiguration) *
make_queue(struct fixture *fixture, bool is_enabled)
{
    return API_NEW(fixture->arena, async_workflow_configuration, .enabled = is_enabled,
                   .predefined_queue_name = "queue1");
}

static void
enable(struct fixture *fixture)
{
    EXPECT_OK(set_queue(fixture, "orders", make_queue(fixture, true)));
}

static struct error *
start_later(struct fixture *fixture, API(StartWorkflowExecutionRequest) *start)
{
    return API_CALL(fixture, NULL, start_workflow_execution_async, .request = start);
}

/* The first event of the current run, once there is one. */
static const API(WorkflowExecutionStartedEventAttributes) *
wait_started(struct fixture *fixture, const char *domain, const char *workflow_id)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, workflow_id);
    API(GetWorkflowExecutionHistoryResponse) *response = NULL;
    request->domain = (char *)domain;
    struct error *err = NULL;
    for (int i = 0; i < 600; i++) {
        err = fixture_call(fixture, request, &response);
        if (err == NULL)
            return response->history->events[0]->workflow_execution_started_event_attributes;
        EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
        EXPECT_OK(fiber_sleep(100 * NS_PER_MS, fixture->arena));
    }
    EXPECT_OK(err);
    return NULL;
}

SERVER_TEST(async, a_start_is_accepted_unless_the_domain_switches_it_off_and_the_run_appears_later,
            "A-049")
{
    ADMIN(GetDomainAsyncWorkflowConfiguratonRequest) *get = ADMIN_NEW(
        fixture->arena, get_domain_async_workflow_configuraton_request, .domain = "orders");
    ADMIN(GetDomainAsyncWorkflowConfiguratonResponse) *shown;
#define GET fixture_call(fixture, get, &shown)
    EXPECT_OK(GET);
    EXPECT(shown->configuration != NULL && shown->configuration->enabled); /* nobody set anything */
    EXPECT_OK(start_later(fixture, fixture_start(fixture, "unset")));
    EXPECT(wait_started(fixture, "orders", "unset") != NULL);
    EXPECT(poll_decision(fixture, "work")->task_token.len > 0);
    EXPECT_OK(set_queue(fixture, "orders", make_queue(fixture, false)));
    EXPECT_OK(GET);
    EXPECT(!shown->configuration->enabled);
    struct error *err = start_later(fixture, fixture_start(fixture, "wf"));
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message,
                "async workflow is not enabled for domain orders: its configuration switches it "
                "off; 'cadenza admin async-wf-queue update' changes that");
    API(AsyncWorkflowConfiguration) *bare = API_NEW(fixture->arena, async_workflow_configuration);
    EXPECT_OK(set_queue(fixture, "orders", bare)); /* {"Enabled": false}, and nothing else */
    EXPECT_KIND(start_later(fixture, fixture_start(fixture, "wf")), ERR_BAD_REQUEST);
    enable(fixture);
    EXPECT_OK(GET);
    EXPECT(shown->configuration->enabled);
    EXPECT_TEXT(shown->configuration->predefined_queue_name, "queue1");
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, "wf");
    EXPECT_OK(start_later(fixture, start));
    EXPECT_TEXT(wait_started(fixture, "orders", "wf")->request_id, start->request_id);
    EXPECT(poll_decision(fixture, "work")->task_token.len > 0);
    EXPECT_OK(set_queue(fixture, "orders", NULL)); /* takes it away */
    EXPECT_OK(GET);
    EXPECT(shown->configuration->enabled);
    EXPECT_TEXT(shown->configuration->predefined_queue_name, "");
    EXPECT_OK(start_later(fixture, fixture_start(fixture, "other")));
    get->domain = "nobody";
    EXPECT_KIND(GET, ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(set_queue(fixture, "nobody", NULL), ERR_ENTITY_NOT_EXISTS);
}

SERVER_TEST(async, a_start_is_checked_like_any_other_and_the_callers_headers_are_kept, "A-050")
{
    enable(fixture);
    EXPECT_KIND(start_later(fixture, NULL), ERR_BAD_REQUEST);
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, "wf");
    start->request_id = "no uuid";
    struct error *err = start_later(fixture, start);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "requestId \"no uuid\" is not a valid UUID");
    start = fixture_start(fixture, "wf");
    start->task_list = NULL;
    EXPECT_KIND(start_later(fixture, start), ERR_BAD_REQUEST);
    start = fixture_start(fixture, "wf");
    start->domain = "nobody";
    EXPECT_KIND(start_later(fixture, start), ERR_ENTITY_NOT_EXISTS);

    static const struct call_header group = {SLICE_LITERAL("cadence-client-isolation-group"),
                                             SLICE_LITERAL("zone-1")};
    fixture->headers = &group;
    fixture->header_count = 1;
    fixture_set(fixture, "system.enableTasklistIsolation: [{value: true}]\n");
    EXPECT_OK(start_later(fixture, fixture_start(fixture, "wf")));
    const API(WorkflowExecutionStartedEventAttributes) *started =
        wait_started(fixture, "orders", "wf");
    EXPECT_EQ(started->n_partition_config, 1);
    EXPECT_TEXT(started->partition_config[0]->value, "zone-1");
}

static struct error *
signal_later(struct fixture *fixture, API(StartWorkflowExecutionRequest) *start, const char *name)
{
    return API_CALL(fixture, NULL, signal_with_start_workflow_execution_async,
                    .request = API_NEW(fixture->arena, signal_with_start_workflow_execution_request,
                                       .start_request = start, .signal_name = (char *)name));
}

/* Signals of the current run, once there are so many. */
static size_t
wait_signals(struct fixture *fixture, const char *workflow_id, size_t wanted)
{
    size_t count = 0;
    for (int i = 0; i < 100 && count < wanted; i++) {
        const API(History) *history =
            read_history(fixture, fixture_history(fixture, workflow_id))->history;
        count = 0;
        for (size_t e = 0; e < history->n_events; e++)
            count += history->events[e]->workflow_execution_signaled_event_attributes != NULL &&
                     history->events[e]->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED);
        EXPECT_OK(fiber_sleep(100 * NS_PER_MS, fixture->arena));
    }
    return count;
}

SERVER_TEST(async, a_signal_with_start_is_done_later_too, "A-051")
{
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, "wf");
    EXPECT_OK(set_queue(fixture, "orders", make_queue(fixture, false)));
    EXPECT_KIND(signal_later(fixture, start, "go"), ERR_BAD_REQUEST); /* it is off */
    EXPECT_OK(set_queue(fixture, "orders", NULL));
    EXPECT_KIND(signal_later(fixture, start, ""), ERR_BAD_REQUEST);
    EXPECT_KIND(signal_later(fixture, NULL, "go"), ERR_BAD_REQUEST);
    EXPECT_OK(signal_later(fixture, start, "go"));
    EXPECT_TEXT(wait_started(fixture, "orders", "wf")->request_id, start->request_id);
    EXPECT_EQ(wait_signals(fixture, "wf", 1), 1);
    EXPECT_OK(signal_later(fixture, start, "go")); /* a repeat: nothing comes of it */
    EXPECT_OK(signal_later(fixture, fixture_start(fixture, "wf"), "go")); /* the open run */
    EXPECT_EQ(wait_signals(fixture, "wf", 2), 2);
    EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
    EXPECT_EQ(wait_signals(fixture, "wf", 2), 2);
}

/* Requests of one id are done in order, so a signal can follow them as a sign that they were. */
SERVER_TEST(async, a_repeat_starts_one_run_and_what_a_run_does_not_allow_is_dropped)
{
    enable(fixture);
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, "wf");
    EXPECT_OK(start_later(fixture, start));
    EXPECT_OK(start_later(fixture, start));                        /* the same request */
    EXPECT_OK(start_later(fixture, fixture_start(fixture, "wf"))); /* another: one runs */
    EXPECT_OK(signal_later(fixture, fixture_start(fixture, "wf"), "go"));
    EXPECT_TEXT(wait_started(fixture, "orders", "wf")->request_id, start->request_id);
    EXPECT_EQ(wait_signals(fixture, "wf", 1), 1);
    EXPECT_TEXT(wait_started(fixture, "orders", "wf")->request_id, start->request_id);
}

/* Its domain is active in a cluster that cannot be called. */
SERVER_TEST_IN(async, a_request_waits_until_the_active_cluster_can_do_it,
               fixture_run_in(sample_group(EAST), body))
{
    fixture_set(fixture, "frontend.failoverCoolDown: [{value: 0s}]\n");
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, "wf");
    start->domain = "moving";
    moving_register(fixture);
    moving_go(fixture, "west");
    EXPECT_OK(start_later(fixture, start));
    EXPECT_OK(fiber_sleep(30 * NS_PER_S, fixture->arena));
    API(DescribeWorkflowExecutionRequest) *describe = fixture_describe(fixture, "wf", "");
    describe->domain = "moving";
    EXPECT_KIND(fixture_call(fixture, describe, NULL), ERR_ENTITY_NOT_EXISTS);
    moving_go(fixture, "east");
    EXPECT_TEXT(wait_started(fixture, "moving", "wf")->request_id, start->request_id);
}
