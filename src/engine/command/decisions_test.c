/* Lists of decisions: the good, the bad and the unknown. */
#include "base/check.h"
#include "engine/command/test/fixture.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define FIRST_THREE "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted"
#define CAUSE(name) API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_##name)

/* The decision failed, alone, with this cause and text. */
static void
expect_failed(struct fixture *fixture, int cause, const char *details)
{
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed");
    const API(DecisionTaskFailedEventAttributes) *failed =
        fixture_event(fixture, 4)->decision_task_failed_event_attributes;
    EXPECT_EQ(failed->cause, cause);
    EXPECT_TEXT(arena_text_of(fixture->arena, presence_read_bytes(failed->failure->details)),
                details);
    EXPECT_TEXT(failed->identity, "worker");
    EXPECT(run_has_pending_decision(fixture_run(fixture)));
}

COMMAND_TEST_IN(decisions, an_unknown_one_is_refused_and_changes_nothing, fixture_new_deciding(),
                "A-073")
{
    API(Decision) *unknown = API_NEW(fixture->arena, decision);
    struct error *refusal = fixture_complete(fixture, fixture_marker(fixture, "m"),
                                             fixture_complete_run(fixture), unknown);
    EXPECT_KIND(refusal, ERR_BAD_REQUEST);
    EXPECT(strncmp(refusal->message, "Unknown decision type: ", 23) == 0);
    EXPECT_HISTORY(fixture, FIRST_THREE);
    EXPECT_OK(fixture_complete(fixture)); /* the token is still good */
}

COMMAND_TEST_IN(decisions, a_bad_one_fails_the_task_and_drops_the_list, fixture_new_deciding(),
                "A-074")
{
    EXPECT_OK(fixture_complete(fixture, fixture_timer(fixture, "t", 5),
                               fixture_marker(fixture, "good"), fixture_marker(fixture, ""),
                               fixture_complete_run(fixture)));
    expect_failed(fixture, CAUSE(BAD_RECORD_MARKER_ATTRIBUTES),
                  "MarkerName is not set on decision.");
    EXPECT(run_find_timer(fixture_run(fixture), "t") == NULL);
    EXPECT_EQ(fixture_run(fixture)->core->previous_started_event_id, 0);
}

TEST(decisions, each_kind_has_its_cause, "A-075")
{
    static const struct {
        API(Decision__AttributesCase) kind;
        int cause;
        const char *details;
    } cases[] = {
#define KIND(name) API_VALUE(DECISION__ATTRIBUTES_##name##_DECISION_ATTRIBUTES)
        {KIND(RECORD_MARKER), 6, "MarkerName is not set on decision."},
        {KIND(FAIL_WORKFLOW_EXECUTION), 8, "Reason is not set on decision."},
        {KIND(UPSERT_WORKFLOW_SEARCH_ATTRIBUTES), 23, "SearchAttributes is not set on decision."},
        {KIND(REQUEST_CANCEL_ACTIVITY_TASK), 3, "ActivityId is not set on decision."},
        {KIND(START_TIMER), 4, "TimerId is not set on decision."},
        {KIND(CANCEL_TIMER), 5, "TimerId is not set on decision."},
        {KIND(SCHEDULE_ACTIVITY_TASK), 2, "ActivityId is not set on decision."},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new_deciding();
        EXPECT_OK(fixture_complete(fixture, fixture_decision(fixture, cases[i].kind)));
        expect_failed(fixture, cases[i].cause, cases[i].details);
    }
}

TEST(decisions, closing_without_having_seen_all_events_is_refused, "A-076")
{
    scoped(fixture_drop) struct fixture *maker = fixture_new();
    API(Decision) *closing[] = {fixture_complete_run(maker), fixture_fail_run(maker, "why"),
                                fixture_cancel_run(maker), fixture_continue_as_new(maker)};
    for (size_t i = 0; i < array_length(closing); i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new_deciding();
        EXPECT_OK(fixture_signal(fixture, "unseen", ""));
        EXPECT_OK(fixture_complete(fixture, fixture_marker(fixture, "m"), closing[i]));
        EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed WorkflowExecutionSignaled "
                                            "DecisionTaskScheduled");
        const API(DecisionTaskFailedEventAttributes) *failed =
            fixture_event(fixture, 4)->decision_task_failed_event_attributes;
        EXPECT_EQ(failed->cause, CAUSE(UNHANDLED_DECISION));
        EXPECT_EQ(fixture->run_count, 1);
        EXPECT(fixture_poll_decision(fixture));
        EXPECT_OK(fixture_complete(fixture, closing[i]));
        EXPECT(!run_is_open(fixture_run_at(fixture, 0)));
    }
}

COMMAND_TEST_IN(decisions, of_two_closing_ones_only_the_first_counts, fixture_new_deciding(),
                "A-077")
{
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture),
                               fixture_fail_run(fixture, "why"), fixture_marker(fixture, "")));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskCompleted WorkflowExecutionCompleted");
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(
        fixture_complete(fixture, fixture_continue_as_new(fixture), fixture_complete_run(fixture)));
    EXPECT_EQ(fixture->run_count, 3);
    EXPECT_HISTORY_OF(fixture, 1,
                      FIRST_THREE " DecisionTaskCompleted WorkflowExecutionContinuedAsNew");
}

COMMAND_TEST_IN(decisions, a_bad_binary_fails_the_task, fixture_new_deciding(), "A-071")
{
    STORED(DomainRecord) *record = fixture_domain_record(fixture);
    API(BadBinaries__BinariesEntry) *entry =
        message_new(fixture->arena, API_TYPE(bad_binaries__binaries_entry));
    entry->key = "bad";
    entry->value = API_NEW(fixture->arena, bad_binary_info);
    record->domain->bad_binaries =
        API_NEW(fixture->arena, bad_binaries, .binaries = &entry, .n_binaries = 1);
    fixture_set_domain(fixture, record);
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    API(Decision) *decision = fixture_complete_run(fixture);
    request->binary_checksum = "bad";
    request->decisions = &decision;
    request->n_decisions = 1;
    EXPECT_OK(fixture_respond(fixture, request));
    expect_failed(fixture, CAUSE(BAD_BINARY), "binary bad is already marked as bad deployment");
    EXPECT(fixture_run(fixture)->core->auto_reset_points == NULL);
}

/* ---- reset points ---- */

static void
complete_as(struct fixture *fixture, const char *binary)
{
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    request->binary_checksum = (char *)binary;
    request->force_create_new_decision_task = true;
    EXPECT_OK(fixture_respond(fixture, request));
    EXPECT(fixture_poll_decision(fixture));
}

COMMAND_TEST(decisions, the_first_completion_of_each_binary_is_a_reset_point, "A-208")
{
    fixture_configure(fixture, "history.historyMaxAutoResetPoints: [{value: 2}]\n");
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    complete_as(fixture, "one"); /* event 4 */
    complete_as(fixture, "one");
    complete_as(fixture, "tw\"o"); /* event 10 */
    const API(ResetPoints) *points = fixture_run(fixture)->core->auto_reset_points;
    EXPECT_EQ(points->n_points, 2);
    EXPECT_TEXT(points->points[0]->binary_checksum, "one");
    EXPECT_TEXT(points->points[0]->run_id, fixture_run(fixture)->core->run_id);
    EXPECT_EQ(points->points[0]->first_decision_completed_id, 4);
    EXPECT(points->points[0]->resettable && points->points[0]->created_time != NULL);
    EXPECT_EQ(points->points[1]->first_decision_completed_id, 10);
    const API(SearchAttributes) *found = fixture_run(fixture)->core->search_attributes;
    EXPECT_TEXT(
        fixture_payload_text(fixture, wire_map_find(found->indexed_fields, found->n_indexed_fields,
                                                    "BinaryChecksums")
                                          ->value),
        "[\"one\",\"tw\\\"o\"]");
    complete_as(fixture, "three"); /* the oldest goes */
    points = fixture_run(fixture)->core->auto_reset_points;
    EXPECT_EQ(points->n_points, 2);
    EXPECT_TEXT(points->points[0]->binary_checksum, "tw\"o");
    EXPECT_TEXT(points->points[1]->binary_checksum, "three");
}

/* ---- search attributes, markers ---- */

COMMAND_TEST_IN(decisions, search_attributes_are_merged_by_key, fixture_new_deciding(), "A-246")
{
    static const char *const keys[] = {"b", "a", "b"};
    API(Decision) *decisions[3];
    for (int i = 0; i < 3; i++) {
        decisions[i] = API_DECISION(fixture->arena, upsert_workflow_search_attributes);
        API(SearchAttributes__IndexedFieldsEntry) *entry =
            message_new(fixture->arena, API_TYPE(search_attributes__indexed_fields_entry));
        entry->key = (char *)keys[i];
        entry->value = fixture_payload(fixture, arena_format(fixture->arena, "%d", i));
        API(SearchAttributes) *attributes =
            API_NEW(fixture->arena, search_attributes,
                    .indexed_fields = arena_zalloc(fixture->arena, 1, sizeof entry));
        attributes->indexed_fields[0] = entry;
        attributes->n_indexed_fields = 1;
        decisions[i]->upsert_workflow_search_attributes_decision_attributes->search_attributes =
            attributes;
    }
    EXPECT_OK(fixture_complete_list(fixture, decisions, 3));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskCompleted UpsertWorkflowSearchAttributes "
                                        "UpsertWorkflowSearchAttributes "
                                        "UpsertWorkflowSearchAttributes");
    const API(SearchAttributes) *found = fixture_run(fixture)->core->search_attributes;
    EXPECT_EQ(found->n_indexed_fields, 2);
    EXPECT_TEXT(fixture_payload_text(fixture, found->indexed_fields[0]->value), "1");
    EXPECT_TEXT(fixture_payload_text(fixture, found->indexed_fields[1]->value), "2");
}

COMMAND_TEST_IN(decisions, a_marker_keeps_name_details_and_header, fixture_new_deciding(), "A-247")
{
    API(Decision) *decision = fixture_marker(fixture, "Version");
    decision->record_marker_decision_attributes->header = API_NEW(fixture->arena, header);
    EXPECT_OK(fixture_complete(fixture, decision));
    const API(MarkerRecordedEventAttributes) *marker =
        fixture_event(fixture, 5)->marker_recorded_event_attributes;
    EXPECT_TEXT(marker->marker_name, "Version");
    EXPECT_TEXT(fixture_payload_text(fixture, marker->details), "Version");
    EXPECT(marker->header != NULL);
    EXPECT_EQ(marker->decision_task_completed_event_id, 4);
}

/* Cadence ends the whole run when one of its decisions is too large. */
TEST(decisions, a_blob_that_is_too_large_fails_the_run, "A-251")
{
    scoped(fixture_drop) struct fixture *maker = fixture_new();
    API(Decision) *large[] = {fixture_complete_run(maker), fixture_fail_run(maker, "why"),
                              fixture_marker(maker, "marker"), fixture_continue_as_new(maker)};
    static const char *const details[] = {
        "CompleteWorkflowExecutionDecisionAttributes.Result exceeds size limit.",
        "FailWorkflowExecutionDecisionAttributes.Details exceeds size limit.",
        "RecordMarkerDecisionAttributes.Details exceeds size limit.",
        "ContinueAsNewWorkflowExecutionDecisionAttributes. Input exceeds size limit."};
    large[3]->continue_as_new_workflow_execution_decision_attributes->input =
        fixture_payload(maker, "input");
    for (size_t i = 0; i < array_length(large); i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new_deciding();
        fixture_configure(fixture, "limit.blobSize.error: [{value: 4}]\n");
        EXPECT_OK(fixture_complete(fixture, large[i], fixture_complete_run(fixture)));
        EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskCompleted WorkflowExecutionFailed");
        const API(Failure) *failure =
            fixture_event(fixture, 5)->workflow_execution_failed_event_attributes->failure;
        EXPECT_TEXT(failure->reason, "DECISION_BLOB_SIZE_EXCEEDS_LIMIT");
        EXPECT_TEXT(arena_text_of(fixture->arena, presence_read_bytes(failure->details)),
                    details[i]);
        EXPECT_EQ(fixture->run_count, 1);
    }
}

TEST(decisions, a_list_that_is_longer_than_any_step_may_be_is_refused)
{
    enum { COUNT = 100001 };
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    API(Decision) **markers = arena_zalloc(fixture->arena, COUNT, sizeof markers[0]);
    API(Decision) *marker = fixture_marker(fixture, "same");
    for (int i = 0; i < COUNT; i++)
        markers[i] = marker;
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_KIND(fixture_complete_list(fixture, markers, COUNT), ERR_BAD_REQUEST);
    EXPECT_OK(fixture_complete_list(fixture, markers, COUNT - 1));
}
