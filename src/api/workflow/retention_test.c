/* retention_test.c - what clients see of a run whose retention has passed: nothing. */
#include "api/test/child_tree.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"

#define DAY (24 * 3600 * NS_PER_S)

static struct error *
read_events(struct fixture *fixture, const char *run_id)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    request->workflow_execution->run_id = (char *)run_id;
    return fixture_call(fixture, request, NULL);
}

static struct error *
signal(struct fixture *fixture, const char *run_id)
{
    return API_CALL(fixture, NULL, signal_workflow_execution, .domain = "orders",
                    .workflow_execution = fixture_execution_of(fixture, "wf", run_id),
                    .signal_name = "too late");
}

static struct error *
reset(struct fixture *fixture, const char *run_id)
{
    return API_CALL(fixture, NULL, reset_workflow_execution, .domain = "orders",
                    .workflow_execution = fixture_execution_of(fixture, "wf", run_id),
                    .decision_finish_event_id = 4, .request_id = fixture_uuid(fixture));
}

static struct error *
restart(struct fixture *fixture, const char *run_id)
{
    return API_CALL(fixture, NULL, restart_workflow_execution, .domain = "orders",
                    .workflow_execution = fixture_execution_of(fixture, "wf", run_id));
}

static void
expect_gone(struct fixture *fixture, const char *run_id)
{
    EXPECT_KIND(run_try_describe(fixture, "wf", run_id), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(read_events(fixture, run_id), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(signal(fixture, run_id), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(reset(fixture, run_id), ERR_ENTITY_NOT_EXISTS);
    struct error *err = restart(fixture, run_id);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message,
                "Requested workflow history not found, may have passed retention period.");
}

/* The domain keeps runs for a day; spread over less than an hour more, they go. */
SERVER_TEST(retention, a_run_is_there_for_the_days_of_its_domain_and_then_for_nobody, "A-048",
            "A-256", "A-260")
{
    const char *run_id = run_start(fixture, "wf");
    child_tree_decide(fixture, "work", "wf", decide_end(fixture));
    child_tree_sleep(fixture, DAY - 60 * NS_PER_S);
    EXPECT_OK(run_try_describe(fixture, "wf", run_id));
    EXPECT_OK(read_events(fixture, run_id));
    child_tree_sleep(fixture, 2 * 3600 * NS_PER_S);
    expect_gone(fixture, run_id);
    expect_gone(fixture, "");
    run_id = run_start(fixture, "wf"); /* the id is free, whatever the policy says */
    EXPECT_OK(run_try_describe(fixture, "wf", run_id));
}

/* The runs of a schedule go one by one behind it; the newest stays. */
SERVER_TEST(retention, the_runs_of_a_schedule_go_one_by_one_behind_it, "A-256")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->cron_schedule = "@every 8h";
    run_start_by(fixture, request);
    const char *runs[7];
    for (size_t i = 0; i < array_length(runs); i++) {
        runs[i] =
            run_describe(fixture, "wf", "")->workflow_execution_info->workflow_execution->run_id;
        child_tree_sleep(fixture, DAY / 3 + NS_PER_S);
        child_tree_decide(fixture, "work", "wf", decide_end(fixture));
    }
    expect_gone(fixture, runs[0]);
    expect_gone(fixture, runs[1]);
    EXPECT_OK(run_try_describe(fixture, "wf", runs[array_length(runs) - 1]));
    EXPECT_OK(run_try_describe(fixture, "wf", ""));
}

/* --- at an operator's word ---- */

static struct error *
delete_run(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    ADMIN(DeleteWorkflowResponse) *response;
    struct error *err =
        ADMIN_CALL(fixture, &response, delete_workflow, .domain = "orders",
                   .workflow_execution = fixture_execution_of(fixture, workflow_id, run_id));
    EXPECT(err != NULL || (response->history_deleted && response->executions_deleted &&
                           response->visibility_deleted));
    return err;
}

static int64_t
count_runs(struct fixture *fixture)
{
    API(CountWorkflowExecutionsResponse) *response =
        API_OK(fixture, count_workflow_executions, .domain = "orders");
    return response->count;
}

static void
deleted(struct fixture *fixture)
{
    const char *first = run_start(fixture, "wf");
    child_tree_decide(fixture, "work", "wf", child_tree_fail(fixture));
    const char *second = run_start(fixture, "wf"); /* is open */
    EXPECT_OK(delete_run(fixture, "wf", first));
    expect_gone(fixture, first);
    EXPECT_OK(run_try_describe(fixture, "wf", second));
    EXPECT_EQ(count_runs(fixture), 1);
    EXPECT_OK(delete_run(fixture, "wf", ""));
    expect_gone(fixture, second);
    expect_gone(fixture, "");
    EXPECT_EQ(count_runs(fixture), 0);
    EXPECT_KIND(delete_run(fixture, "wf", first), ERR_ENTITY_NOT_EXISTS);
    EXPECT_OK(run_try_describe(fixture, "wf", run_start(fixture, "wf"))); /* the id is free */
    child_tree_sleep(fixture, 2 * DAY); /* no wake-up timer of theirs fires */
}

TEST(removal, a_deleted_run_is_nowhere_and_its_id_is_free, "A-259", "A-260")
{
    fixture_run(deleted);
}

/* Parents and children of a run that is deleted while it is open are notified as of any other end.
 */
SERVER_TEST(removal, parent_and_children_of_a_deleted_run_are_told, "A-259")
{
    const char *parent = child_tree_begin(
        fixture, "parent", child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(TERMINATE)));
    API(HistoryEvent) *started = child_tree_await(
        fixture, "parent", parent, CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED));
    EXPECT(started != NULL);
    EXPECT_OK(delete_run(fixture, "kid", ""));
    child_tree_await(fixture, "parent", parent,
                     CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_TERMINATED));
    child_tree_decide(fixture, "work", "parent",
                      child_tree_start_child(fixture, "other", CHILD_TREE_POLICY(TERMINATE)));
    child_tree_await(fixture, "other", "", CHILD_TREE_EVENT(DECISION_TASK_SCHEDULED));
    EXPECT_OK(delete_run(fixture, "parent", parent));
    child_tree_await(fixture, "other", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_TERMINATED));
    EXPECT_EQ(count_runs(fixture), 1);
}
