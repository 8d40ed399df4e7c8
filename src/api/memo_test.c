/* memo_test.c - what a client notes with a run is shown with it. Lists of runs are not here yet. */
#include "api/fixture.h"
#include "wire/names.h"

static API(Memo) *
make_memo(struct fixture *fixture)
{
    API(Memo) *memo = message_new(fixture->arena, API_TYPE(memo));
    API(Memo__FieldsEntry) *entry = message_new(fixture->arena, API_TYPE(memo__fields_entry));
    entry->key = "note";
    entry->value = fixture_payload(fixture, "\"hello\"");
    memo->fields = arena_zalloc(fixture->arena, 1, sizeof(void *));
    memo->fields[memo->n_fields++] = entry;
    return memo;
}

static void
expect_memo(const API(Memo) *memo)
{
    EXPECT(memo != NULL);
    EXPECT_EQ(memo->n_fields, 1);
    EXPECT_TEXT(memo->fields[0]->key, "note");
    EXPECT(slice_equal(presence_read_bytes(memo->fields[0]->value->data), slice_text("\"hello\"")));
}

static void
signal_with_start(struct fixture *fixture)
{
    API(SignalWithStartWorkflowExecutionRequest) *request =
        message_new(fixture->arena, API_TYPE(signal_with_start_workflow_execution_request));
    API(SignalWithStartWorkflowExecutionResponse) *response;
    request->start_request = fixture_start(fixture, "wf");
    request->start_request->memo = make_memo(fixture);
    request->signal_name = "go";
    EXPECT_OK(fixture_call(fixture, WORKFLOW_API "SignalWithStartWorkflowExecution", &request->base,
                           API_TYPE(signal_with_start_workflow_execution_response), &response));
    const API(History) *history = read_history(fixture, fixture_history(fixture, "wf"))->history;
    expect_memo(history->events[0]->workflow_execution_started_event_attributes->memo);

    API(DescribeWorkflowExecutionRequest) *describe =
        message_new(fixture->arena, API_TYPE(describe_workflow_execution_request));
    API(DescribeWorkflowExecutionResponse) *described;
    describe->domain = "orders";
    describe->workflow_execution = fixture_execution(fixture, "wf");
    EXPECT_OK(fixture_call(fixture, WORKFLOW_API "DescribeWorkflowExecution", &describe->base,
                           API_TYPE(describe_workflow_execution_response), &described));
    expect_memo(described->workflow_execution_info->memo);
}

TEST(memo, of_a_run_started_with_a_signal_it_is_in_the_first_event_and_described)
{
    fixture_run(signal_with_start);
}
