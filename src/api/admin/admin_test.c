/* admin_test.c - what operators see of runs and shards (E-076). */
#include <jansson.h>

#include "api/test/fixture.h"
#include "uber/cadence/admin/v1/service.pb-c.h"

/* Numbers as Cadence has them. */
static void
expect_state(const json_t *info, int state, int close_status)
{
    EXPECT_EQ(json_integer_value(json_object_get(info, "State")), state);
    EXPECT_EQ(json_integer_value(json_object_get(info, "CloseStatus")), close_status);
}

SERVER_TEST(admin, a_run_is_shown_from_inside_as_it_is_in_memory_and_in_the_store, "E-076")
{
    run_start(fixture, "wf");
    ADMIN(DescribeWorkflowExecutionRequest) *request =
        ADMIN_NEW(fixture->arena, describe_workflow_execution_request, .domain = "orders",
                  .workflow_execution = fixture_execution(fixture, "wf"));
    ADMIN(DescribeWorkflowExecutionResponse) *response = fixture_ok(fixture, request);
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
    response = fixture_ok(fixture, request);
    state = json_loads(response->mutable_state_in_database, 0, NULL);
    expect_state(json_object_get(state, "ExecutionInfo"), 2, 4); /* completed, terminated */
    json_decref(state);
    request->workflow_execution->workflow_id = "nobody";
    EXPECT_KIND(fixture_call(fixture, request, &response), ERR_ENTITY_NOT_EXISTS);
}

static ADMIN(DescribeHistoryHostResponse) *
see_host(struct fixture *fixture)
{
    return ADMIN_OK(fixture, describe_history_host);
}

static const char *
see_queue(struct fixture *fixture, int shard)
{
    ADMIN(DescribeQueueResponse) *response = ADMIN_OK(fixture, describe_queue, .shard_id = shard);
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

    ADMIN(DescribeShardDistributionResponse) *response =
        ADMIN_OK(fixture, describe_shard_distribution, .page_size = 3, .page_id = 1);
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
SERVER_TEST(admin, a_shard_that_is_closed_is_taken_again_and_goes_on, "E-076")
{
    run_start(fixture, "wf");
    int shard = (int)engine_shard_of(atomic_load(&fixture->engine), "wf");
    const char *before = see_queue(fixture, shard);
    EXPECT(strstr(before, "1 rows in memory") != NULL);
    ADMIN(CloseShardRequest) *request =
        ADMIN_NEW(fixture->arena, close_shard_request, .shard_id = shard);
    EXPECT_OK(fixture_call(fixture, request, NULL));
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->task_token.len > 0);
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
    EXPECT(strcmp(before, see_queue(fixture, shard)) != 0);
    request->shard_id = 99;
    EXPECT_KIND(fixture_call(fixture, request, NULL), ERR_BAD_REQUEST);
}

SERVER_TEST(admin, what_has_no_meaning_says_what_has, "E-076")
{
    struct error *err = ADMIN_CALL(fixture, NULL, reset_queue);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "CloseShard") != NULL);
    err = ADMIN_CALL(fixture, NULL, remove_task);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "RefreshWorkflowTasks") != NULL);
}

SERVER_TEST(admin, tasks_are_sent_again_by_the_operators_call_too, "E-076")
{
    run_start(fixture, "wf");
    EXPECT_OK(ADMIN_CALL(fixture, NULL, refresh_workflow_tasks, .domain = "orders",
                         .workflow_execution = fixture_execution(fixture, "wf")));
    EXPECT(poll_decision(fixture, "work")->task_token.len > 0);
}
