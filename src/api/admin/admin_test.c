/* admin_test.c - what operators see of runs and shards (E-076). */
#include <jansson.h>

#include "api/test/fixture.h"
#include "uber/cadence/admin/v1/service.pb-c.h"

#define ADMIN_API "/uber.cadence.admin.v1.AdminAPI/"

/* Numbers as Cadence has them. */
static void
expect_state(const json_t *info, int state, int close_status)
{
    EXPECT_EQ(json_integer_value(json_object_get(info, "State")), state);
    EXPECT_EQ(json_integer_value(json_object_get(info, "CloseStatus")), close_status);
}

static void
see_run(struct fixture *fixture)
{
    run_start(fixture, "wf");
    ADMIN(DescribeWorkflowExecutionRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(describe_workflow_execution_request));
    ADMIN(DescribeWorkflowExecutionResponse) *response;
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, "wf");
    EXPECT_OK(fixture_call(fixture, ADMIN_API "DescribeWorkflowExecution", &request->base,
                           ADMIN_TYPE(describe_workflow_execution_response), &response));
    EXPECT_TEXT(response->mutable_state_in_cache, response->mutable_state_in_database);
    json_t *state = json_loads(response->mutable_state_in_database, 0, NULL);
    EXPECT(state != NULL);
    const json_t *info = json_object_get(state, "ExecutionInfo");
    EXPECT_TEXT(json_string_value(json_object_get(info, "WorkflowID")), "wf");
    EXPECT_EQ(json_integer_value(json_object_get(info, "NextEventID")), 3);
    expect_state(info, 1, 0); /* running */
    const json_t *record = json_object_get(state, "Record");
    EXPECT_TEXT(json_string_value(json_object_get(record, "workflow_id")), "wf");
    json_decref(state);
    terminate_run(fixture, "wf");
    EXPECT_OK(fixture_call(fixture, ADMIN_API "DescribeWorkflowExecution", &request->base,
                           ADMIN_TYPE(describe_workflow_execution_response), &response));
    state = json_loads(response->mutable_state_in_database, 0, NULL);
    expect_state(json_object_get(state, "ExecutionInfo"), 2, 4); /* completed, terminated */
    json_decref(state);
    request->workflow_execution->workflow_id = "nobody";
    EXPECT_KIND(fixture_call(fixture, ADMIN_API "DescribeWorkflowExecution", &request->base,
                             ADMIN_TYPE(describe_workflow_execution_response), &response),
                ERR_ENTITY_NOT_EXISTS);
}

TEST(admin, a_run_is_shown_from_inside_as_it_is_in_memory_and_in_the_store, "E-076")
{
    fixture_run(see_run);
}

static ADMIN(DescribeHistoryHostResponse) *
see_host(struct fixture *fixture)
{
    ADMIN(DescribeHistoryHostRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(describe_history_host_request));
    ADMIN(DescribeHistoryHostResponse) *response;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "DescribeHistoryHost", &request->base,
                           ADMIN_TYPE(describe_history_host_response), &response));
    return response;
}

static const char *
see_queue(struct fixture *fixture, int shard)
{
    ADMIN(DescribeQueueRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(describe_queue_request));
    ADMIN(DescribeQueueResponse) *response;
    request->shard_id = shard;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "DescribeQueue", &request->base,
                           ADMIN_TYPE(describe_queue_response), &response));
    EXPECT_EQ(response->n_processing_queue_states, 1);
    return response->processing_queue_states[0];
}

static void
shards(struct fixture *fixture)
{
    run_start(fixture, "wf");
    ADMIN(DescribeHistoryHostResponse) *host = see_host(fixture);
    EXPECT_EQ(host->number_of_shards, FIXTURE_SHARDS);
    EXPECT_EQ(host->n_shard_ids, FIXTURE_SHARDS);
    EXPECT(host->domain_cache->num_of_items_in_cache_by_id >= 1);

    ADMIN(DescribeShardDistributionRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(describe_shard_distribution_request));
    ADMIN(DescribeShardDistributionResponse) *response;
    request->page_size = 3;
    request->page_id = 1;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "DescribeShardDistribution", &request->base,
                           ADMIN_TYPE(describe_shard_distribution_response), &response));
    EXPECT_EQ(response->number_of_shards, FIXTURE_SHARDS);
    EXPECT_EQ(response->n_shards, 1);
    EXPECT_EQ(response->shards[0]->key, 3);
    EXPECT_TEXT(response->shards[0]->value, host->address);
}

TEST(admin, shards_are_listed_with_their_host, "E-076")
{
    fixture_run(shards);
}

/* A shard that is closed is read again, and the work goes on. */
static void
close_shard(struct fixture *fixture)
{
    run_start(fixture, "wf");
    int shard = (int)engine_shard_of(atomic_load(&fixture->engine), "wf");
    const char *before = see_queue(fixture, shard);
    EXPECT(strstr(before, "1 rows in memory") != NULL);
    ADMIN(CloseShardRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(close_shard_request));
    ADMIN(CloseShardResponse) *response;
    request->shard_id = shard;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "CloseShard", &request->base,
                           ADMIN_TYPE(close_shard_response), &response));
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->task_token.len > 0);
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
    EXPECT(strcmp(before, see_queue(fixture, shard)) != 0);
    request->shard_id = 99;
    EXPECT_KIND(fixture_call(fixture, ADMIN_API "CloseShard", &request->base,
                             ADMIN_TYPE(close_shard_response), &response),
                ERR_BAD_REQUEST);
}

TEST(admin, a_shard_that_is_closed_is_taken_again_and_goes_on, "E-076")
{
    fixture_run(close_shard);
}

static void
no_meaning(struct fixture *fixture)
{
    ADMIN(ResetQueueRequest) *reset = message_new(fixture->arena, ADMIN_TYPE(reset_queue_request));
    ADMIN(ResetQueueResponse) *response;
    struct error *err = fixture_call(fixture, ADMIN_API "ResetQueue", &reset->base,
                                     ADMIN_TYPE(reset_queue_response), &response);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "CloseShard") != NULL);
    ADMIN(RemoveTaskRequest) *removed =
        message_new(fixture->arena, ADMIN_TYPE(remove_task_request));
    ADMIN(RemoveTaskResponse) *done;
    err = fixture_call(fixture, ADMIN_API "RemoveTask", &removed->base,
                       ADMIN_TYPE(remove_task_response), &done);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "RefreshWorkflowTasks") != NULL);
}

TEST(admin, what_has_no_meaning_says_what_has, "E-076")
{
    fixture_run(no_meaning);
}

static void
refresh(struct fixture *fixture)
{
    run_start(fixture, "wf");
    ADMIN(RefreshWorkflowTasksRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(refresh_workflow_tasks_request));
    ADMIN(RefreshWorkflowTasksResponse) *response;
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, "wf");
    EXPECT_OK(fixture_call(fixture, ADMIN_API "RefreshWorkflowTasks", &request->base,
                           ADMIN_TYPE(refresh_workflow_tasks_response), &response));
    EXPECT(poll_decision(fixture, "work")->task_token.len > 0);
}

TEST(admin, tasks_are_sent_again_by_the_operators_call_too, "E-076")
{
    fixture_run(refresh);
}
