/* bulk_children_test.c - a batch job and the children of the runs that it finds. */
#include "api/test/child_tree.h"
#include "system/bulk.h"
#include "system/test_fixture.h"

static void
start_batch(struct fixture *fixture, const char *id, const char *more)
{
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, id);
    start->domain = BULK_DOMAIN;
    start->workflow_type->name = BULK_TYPE_V2;
    start->task_list = fixture_list(fixture, BULK_LIST);
    start->input = fixture_payload(
        fixture, arena_format(fixture->arena,
                              "{\"DomainName\":\"orders\",\"Query\":\"WorkflowType = 'order' and "
                              "CloseTime = missing\",\"Reason\":\"r\",%s}",
                              more));
    EXPECT_OK(fixture_call(fixture, start, NULL));
}

static void
begin(struct fixture *fixture, const char *parent, const char *child)
{
    child_tree_begin(fixture, parent,
                     child_tree_start_child(fixture, child, CHILD_TREE_POLICY(ABANDON)));
    child_tree_await(fixture, parent, "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED));
}

static void
children(struct fixture *fixture)
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    begin(fixture, "one", "kid-1");
    start_batch(fixture, "alone",
                "\"BatchType\":\"terminate\",\"TerminateParams\":"
                "{\"TerminateChildren\":false}");
    child_tree_await(fixture, "one", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_TERMINATED));
    begin(fixture, "two", "kid-2");
    start_batch(fixture, "together", "\"BatchType\":\"terminate\"");
    child_tree_await(fixture, "two", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_TERMINATED));
    child_tree_await(fixture, "kid-2", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_TERMINATED));
    begin(fixture, "three", "kid-3");
    start_batch(fixture, "asked",
                "\"BatchType\":\"cancel\",\"CancelParams\":"
                "{\"CancelChildren\":true}");
    child_tree_await(fixture, "three", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED));
    child_tree_await(fixture, "kid-3", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED));
    EXPECT_EQ(
        child_tree_count(fixture, "kid-1", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_TERMINATED)), 0);
}

TEST(batch, children_go_with_their_parents_where_that_is_wanted, "A-263")
{
    fixture_run(children);
}
