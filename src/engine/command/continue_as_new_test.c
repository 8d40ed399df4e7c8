/* A run that goes on as another. */
#include "base/check.h"
#include "engine/command/test/fixture.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define FIRST_TWO  "WorkflowExecutionStarted DecisionTaskScheduled"
#define FIRST_FOUR FIRST_TWO " DecisionTaskStarted DecisionTaskCompleted"

typedef API(ContinueAsNewWorkflowExecutionDecisionAttributes) request_t;

static request_t *
request_of(API(Decision) *decision)
{
    return decision->continue_as_new_workflow_execution_decision_attributes;
}

static void
decide(struct fixture *fixture, API(Decision) *decision)
{
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, decision));
}

static const API(WorkflowExecutionStartedEventAttributes) *
first_event(struct fixture *fixture)
{
    return fixture_event(fixture, 1)->workflow_execution_started_event_attributes;
}

COMMAND_TEST(continue_as_new, one_run_ends_and_one_begins_in_one_step_with_the_old_settings,
             "A-174")
{
    fixture_begin(fixture);
    decide(fixture, fixture_continue_as_new(fixture));
    EXPECT_EQ(fixture->run_count, 2);
    EXPECT_HISTORY_OF(fixture, 0, FIRST_FOUR " WorkflowExecutionContinuedAsNew");
    EXPECT_HISTORY_OF(fixture, 1, FIRST_TWO);
    const API(WorkflowExecutionContinuedAsNewEventAttributes) *continued =
        fixture_event_of(fixture, 0, 5)->workflow_execution_continued_as_new_event_attributes;
    EXPECT_TEXT(continued->new_execution_run_id, fixture_run_at(fixture, 1)->core->run_id);
    EXPECT_EQ(continued->decision_task_completed_event_id, 4);
    const API(WorkflowExecutionStartedEventAttributes) *first = first_event(fixture);
    EXPECT_TEXT(first->task_list->name, "list");
    EXPECT_TEXT(first->workflow_type->name, "type");
    EXPECT_EQ(first->execution_start_to_close_timeout->seconds, 100);
    EXPECT_EQ(first->task_start_to_close_timeout->seconds, 10);
    EXPECT_TEXT(fixture->current->run_id, fixture_run_at(fixture, 1)->core->run_id);
    EXPECT(run_is_open(fixture_run(fixture)));
}

COMMAND_TEST(continue_as_new, the_new_run_knows_where_it_comes_from, "A-175")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->memo = API_NEW(fixture->arena, memo);
    EXPECT_OK(fixture_start(fixture, request));
    for (int i = 0; i < 2; i++) {
        API(Decision) *decision = fixture_continue_as_new(fixture);
        request_of(decision)->header = API_NEW(fixture->arena, header);
        request_of(decision)->input = fixture_payload(fixture, "input");
        request_of(decision)->search_attributes = API_NEW(fixture->arena, search_attributes);
        decide(fixture, decision);
    }
    const API(WorkflowExecutionStartedEventAttributes) *first = first_event(fixture);
    EXPECT_TEXT(first->continued_execution_run_id, fixture_run_at(fixture, 1)->core->run_id);
    EXPECT_TEXT(first->first_execution_run_id, fixture_run_at(fixture, 0)->core->run_id);
    EXPECT_TEXT(first->original_execution_run_id, fixture_run_at(fixture, 2)->core->run_id);
    EXPECT_EQ(first->initiator,
              API_VALUE(CONTINUE_AS_NEW_INITIATOR__CONTINUE_AS_NEW_INITIATOR_DECIDER));
    EXPECT(first->header != NULL && first->memo != NULL && first->search_attributes != NULL);
    EXPECT_TEXT(fixture_payload_text(fixture, first->input), "input");
    EXPECT_EQ(first->attempt, 0);
}

COMMAND_TEST(continue_as_new, what_the_decision_says_counts_but_not_the_kind_of_list, "A-174",
             "A-176")
{
    fixture_begin(fixture);
    API(Decision) *decision = fixture_continue_as_new(fixture);
    request_of(decision)->task_list = API_NEW(fixture->arena, task_list);
    request_of(decision)->task_list->name = "other list";
    request_of(decision)->task_list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_EPHEMERAL);
    request_of(decision)->workflow_type = API_NEW(fixture->arena, workflow_type);
    request_of(decision)->workflow_type->name = "other type";
    request_of(decision)->execution_start_to_close_timeout = fixture_duration(fixture, 1);
    request_of(decision)->task_start_to_close_timeout = fixture_duration(fixture, 1);
    decide(fixture, decision);
    const API(WorkflowExecutionStartedEventAttributes) *first = first_event(fixture);
    EXPECT_TEXT(first->task_list->name, "other list");
    EXPECT_EQ(first->task_list->kind, API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL));
    EXPECT_TEXT(first->workflow_type->name, "other type");
    fixture_advance(fixture, 1);
    EXPECT_HISTORY(fixture, FIRST_TWO " WorkflowExecutionTimedOut");
    EXPECT_EQ(
        fixture_event(fixture, 3)->workflow_execution_timed_out_event_attributes->timeout_type,
        API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE));
}

/* The fixture checks of every event that its task id is higher than all before. */
COMMAND_TEST(continue_as_new, task_ids_rise_within_and_over_the_runs, "A-177")
{
    fixture_begin(fixture);
    int64_t last = 0;
    for (int i = 0; i < 3; i++)
        decide(fixture, fixture_continue_as_new(fixture));
    for (size_t i = 0; i < fixture->run_count; i++)
        vector_each(event, &fixture->runs[i].events) {
            EXPECT((*event)->task_id > last);
            last = (*event)->task_id;
        }
    EXPECT_EQ(fixture->run_count, 4);
}

static void
put_memo(struct fixture *fixture, API(Memo) **memo, const char *text)
{
    API(Memo__FieldsEntry) *entry = message_new(fixture->arena, API_TYPE(memo__fields_entry));
    entry->key = "key";
    entry->value = fixture_payload(fixture, text);
    *memo = API_NEW(fixture->arena, memo);
    (*memo)->fields = arena_zalloc(fixture->arena, 1, sizeof entry);
    (*memo)->fields[0] = entry;
    (*memo)->n_fields = 1;
}

static API(SearchAttributes) *
make_search_attributes(struct fixture *fixture, const char *key)
{
    API(SearchAttributes) *attributes = API_NEW(fixture->arena, search_attributes);
    API(SearchAttributes__IndexedFieldsEntry) *entry =
        message_new(fixture->arena, API_TYPE(search_attributes__indexed_fields_entry));
    entry->key = (char *)key;
    entry->value = fixture_payload(fixture, "1");
    attributes->indexed_fields = arena_zalloc(fixture->arena, 1, sizeof entry);
    attributes->indexed_fields[0] = entry;
    attributes->n_indexed_fields = 1;
    return attributes;
}

COMMAND_TEST(continue_as_new, memo_and_search_attributes_carry_over_unless_replaced, "A-178")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    put_memo(fixture, &request->memo, "old");
    request->search_attributes = make_search_attributes(fixture, "CustomIntField");
    EXPECT_OK(fixture_start(fixture, request));
    for (int i = 0; i < 4; i++) {
        decide(fixture, fixture_continue_as_new(fixture));
        EXPECT_TEXT(fixture_payload_text(fixture, first_event(fixture)->memo->fields[0]->value),
                    "old");
        EXPECT_TEXT(first_event(fixture)->search_attributes->indexed_fields[0]->key,
                    "CustomIntField");
    }
    API(Decision) *decision = fixture_continue_as_new(fixture);
    put_memo(fixture, &request_of(decision)->memo, "new");
    decide(fixture, decision);
    EXPECT_TEXT(fixture_payload_text(fixture, first_event(fixture)->memo->fields[0]->value), "new");
}

COMMAND_TEST(continue_as_new, a_wait_delays_the_first_decision_a_negative_one_is_bad, "A-179")
{
    fixture_begin(fixture);
    API(Decision) *decision = fixture_continue_as_new(fixture);
    request_of(decision)->backoff_start_interval = fixture_duration(fixture, -1);
    decide(fixture, decision);
    EXPECT_EQ(fixture->run_count, 1);
    const API(DecisionTaskFailedEventAttributes) *failed =
        fixture_event(fixture, 4)->decision_task_failed_event_attributes;
    EXPECT_EQ(
        failed->cause,
        API_VALUE(
            DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_BAD_CONTINUE_AS_NEW_ATTRIBUTES));
    EXPECT(slice_equal(presence_read_bytes(failed->failure->details),
                       slice_text("BackoffStartInterval is less than 0.")));

    request_of(decision)->backoff_start_interval = fixture_duration(fixture, 10);
    decide(fixture, decision);
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted");
    fixture_advance(fixture, 9);
    EXPECT(!fixture_poll_decision(fixture));
    fixture_advance(fixture, 1);
    EXPECT_HISTORY(fixture, FIRST_TWO);
}

static void
complete_as(struct fixture *fixture, const char *binary, API(Decision) *decision)
{
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    request->binary_checksum = (char *)binary;
    request->decisions = &decision;
    request->n_decisions = decision != NULL;
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_respond(fixture, request));
}

COMMAND_TEST(continue_as_new, reset_points_of_earlier_runs_pass_on, "A-180")
{
    fixture_begin(fixture);
    complete_as(fixture, "one", fixture_continue_as_new(fixture));
    const API(ResetPoints) *passed = first_event(fixture)->prev_auto_reset_points;
    EXPECT_EQ(passed->n_points, 1);
    EXPECT_TEXT(passed->points[0]->binary_checksum, "one");
    EXPECT_TEXT(passed->points[0]->run_id, fixture_run_at(fixture, 0)->core->run_id);
    int64_t expiry = fixture->context.now / FIXTURE_SECOND + (int64_t)3 * 86400;
    EXPECT_EQ(passed->points[0]->expiring_time->seconds, expiry);
    EXPECT(fixture_run_at(fixture, 0)->core->auto_reset_points->points[0]->expiring_time == NULL);
    const API(ResetPoints) *points = fixture_run(fixture)->core->auto_reset_points;
    EXPECT_EQ(points->n_points, 1); /* goes when the run it is in is deleted */
    EXPECT_EQ(points->points[0]->expiring_time->seconds, expiry);
    complete_as(fixture, "two", NULL);
    EXPECT_EQ(fixture_run(fixture)->core->auto_reset_points->n_points, 2);
}

COMMAND_TEST(continue_as_new, signal_requests_of_the_old_run_do_not_block_the_new_one, "A-181")
{
    fixture_begin(fixture);
    EXPECT_OK(fixture_signal(fixture, "go", "r1"));
    decide(fixture, fixture_continue_as_new(fixture));
    EXPECT_OK(fixture_signal(fixture, "go", "r1"));
    EXPECT_HISTORY(fixture, FIRST_TWO " WorkflowExecutionSignaled");
}

/* A client that did not get the answer sends its start again, however far the chain has come. */
COMMAND_TEST(continue_as_new, a_repeat_of_the_start_answers_the_first_run_of_the_chain, "A-020",
             "A-027")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    EXPECT_OK(fixture_start(fixture, request));
    const char *run_id = arena_text(fixture->arena, fixture->started.run_id);
    for (int i = 0; i < 3; i++) {
        decide(fixture, fixture_continue_as_new(fixture));
        EXPECT_OK(fixture_start(fixture, request));
        EXPECT_TEXT(fixture->started.run_id, run_id);
        EXPECT(!fixture->started.is_new);
        EXPECT_EQ(fixture->run_count, i + 2);
    }
}

COMMAND_TEST(continue_as_new, bad_names_fail_the_decision)
{
    fixture_configure(fixture, "limit.taskListNameLength: [{value: 10}]\n"
                               "limit.workflowTypeLength: [{value: 10}]\n");
    fixture_begin(fixture);
    static const char *const lists[] = {"/__cadence_sys/list", "0123456789a", ""};
    static const char *const details[] = {"task list name exceeds length limit of 10",
                                          "task list name exceeds length limit of 10",
                                          "WorkflowType exceeds length limit."};
    for (size_t i = 0; i < array_length(lists); i++) {
        API(Decision) *decision = fixture_continue_as_new(fixture);
        request_of(decision)->task_list = API_NEW(fixture->arena, task_list);
        request_of(decision)->task_list->name = (char *)lists[i];
        request_of(decision)->workflow_type = API_NEW(fixture->arena, workflow_type);
        request_of(decision)->workflow_type->name = (char *)(i == 2 ? "0123456789a" : "type");
        EXPECT_OK(fixture_signal(fixture, "go", "")); /* so that the attempt is in the history */
        decide(fixture, decision);
        const STORED(RunRecord) *core = fixture_run(fixture)->core;
        const API(HistoryEvent) *failed = fixture_event(fixture, core->next_event_id - 1);
        EXPECT_EQ(failed->attributes_case,
                  API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_FAILED_EVENT_ATTRIBUTES));
        EXPECT(slice_equal(
            presence_read_bytes(failed->decision_task_failed_event_attributes->failure->details),
            slice_text(details[i])));
    }
}
