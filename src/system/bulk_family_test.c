/* bulk_family_test.c - a batch and the children of the runs that it finds. */
#include "api/family.h"
#include "system/bulk.h"
#include "system/fixture.h"

static void
start_batch(struct fixture *fixture, const char *id, const char *more)
{
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, id);
    API(StartWorkflowExecutionResponse) *started;
    start->domain = BULK_DOMAIN;
    start->workflow_type->name = BULK_TYPE_V2;
    start->task_list = fixture_list(fixture, BULK_LIST);
    start->input = fixture_payload(
        fixture, arena_format(fixture->arena,
                              "{\"DomainName\":\"orders\",\"Query\":\"WorkflowType = 'order' and "
                              "CloseTime = missing\",\"Reason\":\"r\",%s}",
                              more));
    EXPECT_OK(fixture_call(fixture, WORKFLOW_API "StartWorkflowExecution", &start->base,
                           API_TYPE(start_workflow_execution_response), &started));
}

static void
begin(struct fixture *fixture, const char *parent, const char *child)
{
    family_begin(fixture, parent, family_start_child(fixture, child, FAMILY_POLICY(ABANDON)));
    family_await(fixture, parent, "", FAMILY_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED));
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
    family_await(fixture, "one", "", FAMILY_EVENT(WORKFLOW_EXECUTION_TERMINATED));
    begin(fixture, "two", "kid-2");
    start_batch(fixture, "together", "\"BatchType\":\"terminate\"");
    family_await(fixture, "two", "", FAMILY_EVENT(WORKFLOW_EXECUTION_TERMINATED));
    family_await(fixture, "kid-2", "", FAMILY_EVENT(WORKFLOW_EXECUTION_TERMINATED));
    begin(fixture, "three", "kid-3");
    start_batch(fixture, "asked",
                "\"BatchType\":\"cancel\",\"CancelParams\":"
                "{\"CancelChildren\":true}");
    family_await(fixture, "three", "", FAMILY_EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED));
    family_await(fixture, "kid-3", "", FAMILY_EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED));
    EXPECT_EQ(family_count(fixture, "kid-1", "", FAMILY_EVENT(WORKFLOW_EXECUTION_TERMINATED)), 0);
}

TEST(batch, children_go_with_their_parents_where_that_is_wanted, "A-263")
{
    fixture_run(children);
}
