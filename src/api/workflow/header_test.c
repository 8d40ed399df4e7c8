/* header_test.c - headers, in which clients carry what does not concern the server (traces,
 * tenants): what goes in at one end comes out at the other. */
#include "api/test/child_tree.h"

static API(Header) *
header(struct fixture *fixture, const char *value)
{
    API(Header) *made = API_NEW(fixture->arena, header);
    API(Header__FieldsEntry) *entry = message_new(fixture->arena, API_TYPE(header__fields_entry));
    entry->key = "trace";
    entry->value = fixture_payload(fixture, value);
    made->fields = arena_zalloc(fixture->arena, 1, sizeof *made->fields);
    made->fields[made->n_fields++] = entry;
    return made;
}

#define EXPECT_HEADER(header, wanted)                                                              \
    do {                                                                                           \
        const API(Header) *found_header = (header);                                                \
        EXPECT(found_header != NULL && found_header->n_fields == 1);                               \
        EXPECT_TEXT(found_header->fields[0]->key, "trace");                                        \
        EXPECT(slice_equal(presence_read_bytes(found_header->fields[0]->value->data),              \
                           slice_text(wanted)));                                                   \
    } while (0)

static const API(WorkflowExecutionStartedEventAttributes) *
first_event(struct fixture *fixture, const char *workflow_id)
{
    return child_tree_await(fixture, workflow_id, "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_STARTED))
        ->workflow_execution_started_event_attributes;
}

static void
start_with_header(struct fixture *fixture)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->header = header(fixture, "of the start");
    run_start_by(fixture, request);
    EXPECT_HEADER(first_event(fixture, "wf")->header, "of the start");
}

/* An activity, a child and a next run, each with a header of its own. */
static void
decide_all(struct fixture *fixture)
{
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_HEADER(task->history->events[0]->workflow_execution_started_event_attributes->header,
                  "of the start"); /* the worker has it */
    API(Decision) *decisions[] = {
        decide_activity(fixture, "a"),
        child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(ABANDON)),
    };
    decisions[0]->schedule_activity_task_decision_attributes->header =
        header(fixture, "of the activity");
    decisions[1]->start_child_workflow_execution_decision_attributes->header =
        header(fixture, "of the child");
    API(RespondDecisionTaskCompletedRequest) *completion =
        fixture_complete(fixture, task->task_token, NULL);
    completion->decisions = decisions;
    completion->n_decisions = array_length(decisions);
    run_complete(fixture, completion);
}

SERVER_TEST(header, it_goes_to_activities_children_and_the_next_run, "A-249")
{
    start_with_header(fixture);
    decide_all(fixture);
    EXPECT_HEADER(child_tree_await(fixture, "wf", "", CHILD_TREE_EVENT(ACTIVITY_TASK_SCHEDULED))
                      ->activity_task_scheduled_event_attributes->header,
                  "of the activity");
    EXPECT_HEADER(poll_activity(fixture, "work")->header, "of the activity");
    EXPECT_HEADER(child_tree_await(fixture, "wf", "",
                                   CHILD_TREE_EVENT(START_CHILD_WORKFLOW_EXECUTION_INITIATED))
                      ->start_child_workflow_execution_initiated_event_attributes->header,
                  "of the child");
    EXPECT_HEADER(
        child_tree_await(fixture, "wf", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED))
            ->child_workflow_execution_started_event_attributes->header,
        "of the child");
    EXPECT_HEADER(first_event(fixture, "kid")->header, "of the child");
    API(Decision) *again = API_DECISION(fixture->arena, continue_as_new_workflow_execution,
                                        .header = header(fixture, "of the next run"));
    child_tree_decide(fixture, "work", "wf", again);
    EXPECT_HEADER(first_event(fixture, "wf")->header, "of the next run");
}

/* A schedule and a retry policy start the next run as the first one was: its header too. */
SERVER_TEST(header, the_runs_of_a_schedule_have_that_of_its_start, "A-184", "A-249")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->header = header(fixture, "of the start");
    request->cron_schedule = "@every 1s";
    const char *run_id = run_start_by(fixture, request);
    child_tree_decide(fixture, "work", "wf", decide_end(fixture));
    const API(WorkflowExecutionStartedEventAttributes) *second = first_event(fixture, "wf");
    EXPECT_TEXT(second->continued_execution_run_id, run_id);
    EXPECT_HEADER(second->header, "of the start");
}
