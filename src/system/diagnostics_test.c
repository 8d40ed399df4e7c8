/* diagnostics_test.c - what is wrong with a run, as its diagnosis says. */
#include "api/workflow/diagnose.h"
#include "system/diagnosis.h"
#include "system/test_fixture.h"
#include "wire/names.h"

static API(DiagnoseWorkflowExecutionResponse) *
diagnose(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    API(DiagnoseWorkflowExecutionRequest) *request = API_NEW(
        fixture->arena, diagnose_workflow_execution_request, .domain = "orders",
        .workflow_execution = fixture_execution_of(fixture, workflow_id, run_id), .identity = "me");
    return fixture_ok(fixture, request);
}

/* How the diagnosis ended: its last event. */
static const API(HistoryEvent) *
wait_closed(struct fixture *fixture, const API(DiagnoseWorkflowExecutionResponse) *diagnosis)
{
    API(GetWorkflowExecutionHistoryRequest) *request =
        fixture_history(fixture, diagnosis->diagnostic_workflow_execution->workflow_id);
    request->domain = diagnosis->domain;
    request->wait_for_new_event = true;
    request->history_event_filter_type =
        API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT);
    const API(History) *history = read_history(fixture, request)->history;
    EXPECT_EQ(history->n_events, 1);
    return history->events[0];
}

static const char *
wait_report(struct fixture *fixture, const API(DiagnoseWorkflowExecutionResponse) *diagnosis)
{
    const API(HistoryEvent) *last = wait_closed(fixture, diagnosis);
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED));
    return arena_text_of(
        fixture->arena,
        presence_read_payload(last->workflow_execution_completed_event_attributes->result).bytes);
}

static const char *
query_report(struct fixture *fixture, const API(DiagnoseWorkflowExecutionResponse) *diagnosis)
{
    API(QueryWorkflowRequest) *request = API_NEW(
        fixture->arena, query_workflow_request, .domain = diagnosis->domain,
        .workflow_execution = diagnosis->diagnostic_workflow_execution,
        .query = API_NEW(fixture->arena, workflow_query, .query_type = "query-diagnostics-report"));
    API(QueryWorkflowResponse) *response = fixture_ok(fixture, request);
    return arena_text_of(fixture->arena, presence_read_payload(response->query_result).bytes);
}

SERVER_TEST(diagnose, a_diagnosis_is_a_run_of_the_systems_domain_whose_result_is_the_report,
            "A-261", "A-262")
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    const char *run_id = run_start(fixture, "wf");
    const API(DiagnoseWorkflowExecutionResponse) *diagnosis = diagnose(fixture, "wf", run_id);
    EXPECT_TEXT(diagnosis->domain, "cadence-system");
    EXPECT_TEXT(diagnosis->diagnostic_workflow_execution->workflow_id,
                arena_format(fixture->arena, "orders-%s", run_id));
    const char *report = wait_report(fixture, diagnosis);
    EXPECT_TEXT(report, "{\"DiagnosticsResult\":{\"Timeouts\":null,\"Failures\":null,"
                        "\"Retries\":null},\"DiagnosticsCompleted\":true}\n");
    EXPECT_TEXT(query_report(fixture, diagnosis), report);
    /* Once more: another run of the same id. */
    const API(DiagnoseWorkflowExecutionResponse) *again = diagnose(fixture, "wf", run_id);
    EXPECT(strcmp(again->diagnostic_workflow_execution->run_id,
                  diagnosis->diagnostic_workflow_execution->run_id) != 0);
    EXPECT_TEXT(wait_report(fixture, again), report);
}

SERVER_TEST(diagnose, a_run_must_be_named_and_be_there, "A-261")
{
    API(DiagnoseWorkflowExecutionRequest) *request =
        API_NEW(fixture->arena, diagnose_workflow_execution_request);
#define DIAGNOSE fixture_call(fixture, request, NULL)
    struct error *err = DIAGNOSE;
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Domain not set on request.");
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, "wf");
    err = DIAGNOSE;
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Execution is not set on request.");
    /* What is not there cannot be looked at: the diagnosis fails. */
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    const API(HistoryEvent) *last =
        wait_closed(fixture, diagnose(fixture, "nobody", fixture_uuid(fixture)));
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_FAILED));
}

/* --- reports ---- */

static bool
no_pollers(void *context, bool is_decision, const char *list, int64_t *backlog)
{
    *backlog = 7;
    return false;
}

struct story {
    struct arena *arena;
    struct diagnosis *diagnosis;
    int64_t next_id;
};

/* An event a second after the one before. */
static API(HistoryEvent) *
new_event(struct story *story, API(HistoryEvent__AttributesCase) kind)
{
    const ProtobufCFieldDescriptor *field =
        message_find_field(API_TYPE(history_event), (uint32_t)kind);
    API(HistoryEvent) *event = API_NEW(story->arena, history_event);
    void *attributes = message_new(story->arena, field->descriptor);
    memcpy((char *)event + field->offset, &attributes, sizeof attributes);
    event->attributes_case = kind;
    event->event_id = story->next_id++;
    event->event_time = presence_make_timestamp(story->arena, event->event_id * NS_PER_S);
    return event;
}

static void
add_event(struct story *story, const API(HistoryEvent) *event)
{
    diagnosis_add(story->diagnosis, event);
}

static void
add_start(struct story *story)
{
    API(HistoryEvent) *event = new_event(story, EVENT_KIND(WORKFLOW_EXECUTION_STARTED));
    API(WorkflowExecutionStartedEventAttributes) *started =
        event->workflow_execution_started_event_attributes;
    started->execution_start_to_close_timeout = presence_make_duration(story->arena, 60);
    started->task_list = API_NEW(story->arena, task_list, .name = "wo\"rk");
    add_event(story, event);
}

static int64_t
add_activity(struct story *story, int64_t start_to_close, int64_t heartbeat, int32_t attempts)
{
    API(HistoryEvent) *event = new_event(story, EVENT_KIND(ACTIVITY_TASK_SCHEDULED));
    API(ActivityTaskScheduledEventAttributes) *scheduled =
        event->activity_task_scheduled_event_attributes;
    scheduled->activity_type = API_NEW(story->arena, activity_type, .name = "charge");
    scheduled->task_list = API_NEW(story->arena, task_list, .name = "money");
    scheduled->start_to_close_timeout = presence_make_duration(story->arena, start_to_close);
    scheduled->heartbeat_timeout = presence_make_duration(story->arena, heartbeat);
    if (attempts > 0) {
        scheduled->retry_policy = API_NEW(
            story->arena, retry_policy, .initial_interval = presence_make_duration(story->arena, 1),
            .backoff_coefficient = 1.5, .maximum_attempts = attempts);
    }
    add_event(story, event);
    API(HistoryEvent) *started = new_event(story, EVENT_KIND(ACTIVITY_TASK_STARTED));
    add_event(story, started);
    return event->event_id;
}

static const char *
end_story(struct story *story)
{
    struct pollers_port port = {no_pollers, NULL};
    const char *report = arena_text_of(story->arena, diagnosis_end(story->diagnosis, &port));
    diagnosis_free(story->diagnosis);
    return report;
}

static void
expect_part(const char *report, const char *part)
{
    if (strstr(report, part) == NULL)
        TEST_FAIL("%s is not in %s", part, report);
}

ARENA_TEST(diagnose, timeouts_are_told_with_what_was_configured_and_who_could_have_worked, "A-262")
{
    struct story story = {arena, diagnosis_begin(arena), 1};
    add_start(&story);
    int64_t scheduled = add_activity(&story, 5, 0, 0);
    API(HistoryEvent) *event = new_event(&story, EVENT_KIND(ACTIVITY_TASK_TIMED_OUT));
    event->activity_task_timed_out_event_attributes->scheduled_event_id = scheduled;
    event->activity_task_timed_out_event_attributes->started_event_id = scheduled + 1;
    event->activity_task_timed_out_event_attributes->timeout_type =
        API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE);
    add_event(&story, event);
    add_event(&story, new_event(&story, EVENT_KIND(WORKFLOW_EXECUTION_TIMED_OUT)));
    const char *report = end_story(&story);
    expect_part(report, "{\"IssueID\":0,\"InvariantType\":\"Activity task has timed out\","
                        "\"Reason\":\"START_TO_CLOSE\",\"Metadata\":{\"ExecutionTimeout\":null,"
                        "\"ActivityTimeout\":{\"TimeoutType\":\"START_TO_CLOSE\","
                        "\"ConfiguredTimeout\":5000000000,\"TimeElapsed\":1000000000,"
                        "\"RetryPolicy\":null,\"HeartBeatTimeout\":0,"
                        "\"Tasklist\":{\"name\":\"money\",\"kind\":\"NORMAL\"}}");
    expect_part(report, "\"InvariantType\":\"The Workflow Execution has timed out\"");
    expect_part(report, "\"ConfiguredTimeout\":60000000000,"
                        "\"Tasklist\":{\"name\":\"wo\\\"rk\",\"kind\":\"NORMAL\"},"
                        "\"LastOngoingEvent\":{\"eventId\":4,");
    expect_part(report, "{\"IssueID\":0,\"RootCauseType\":"
                        "\"Heartbeat timeout and retry policy are not configured\"");
    expect_part(report,
                "{\"IssueID\":1,\"RootCauseType\":\"There are no pollers for the tasklist\","
                "\"Metadata\":{\"PollersMetadata\":{\"TaskListName\":\"wo\\\"rk\","
                "\"TaskListBacklog\":7}");
    expect_part(report, "\"Failures\":null,\"Retries\":null");
}

ARENA_TEST(diagnose, failures_are_told_apart_by_their_reasons, "A-262")
{
    struct story story = {arena, diagnosis_begin(arena), 1};
    static const char *const reasons[] = {"cadenceInternal:Generic", "cadenceInternal:Panic",
                                          "cadenceInternal:Timeout START_TO_CLOSE", "mine",
                                          "COMPLETE_RESULT_EXCEEDS_LIMIT"};
    add_start(&story);
    for (size_t i = 0; i < 3 * array_length(reasons); i++) {
        int64_t scheduled = add_activity(&story, 5, 0, 0);
        API(HistoryEvent) *event = new_event(&story, EVENT_KIND(ACTIVITY_TASK_FAILED));
        API(ActivityTaskFailedEventAttributes) *failed =
            event->activity_task_failed_event_attributes;
        failed->scheduled_event_id = scheduled;
        failed->failure =
            API_NEW(arena, failure, .reason = (char *)reasons[i % array_length(reasons)]);
        failed->identity = "me";
        add_event(&story, event);
    }
    const char *report = end_story(&story);
    expect_part(report, "{\"IssueID\":0,\"InvariantType\":\"Activity Failed\",\"Reason\":"
                        "\"The failure is because of an error returned from the service code\","
                        "\"Metadata\":{\"Identity\":\"me\",\"ActivityType\":\"charge\","
                        "\"ActivityScheduledID\":2,\"ActivityStartedID\":0}}");
    expect_part(report, "{\"IssueID\":1,\"RootCauseType\":"
                        "\"There is a panic in the activity/workflow that is causing a failure\","
                        "\"Metadata\":null}");
    expect_part(report, "\"Activity output has exceeded the blob size limit\"");
    expect_part(report, "\"IssueID\":9");
    EXPECT(strstr(report, "\"IssueID\":10") == NULL); /* so many are enough */
    expect_part(report, "{\"DiagnosticsResult\":{\"Timeouts\":null,");
}

ARENA_TEST(diagnose, retries_that_cannot_happen_are_reported, "A-262")
{
    struct story story = {arena, diagnosis_begin(arena), 1};
    add_start(&story);
    add_activity(&story, 5, 5, 1);
    add_activity(&story, 5, 0, 3);
    const char *report = end_story(&story);
    expect_part(report, "\"Retries\":{\"Issues\":[{\"IssueID\":0,"
                        "\"InvariantType\":\"Activity Retry configured but invalid\",\"Reason\":"
                        "\"MaximumAttempts set to 1 will not retry since maximum attempts includes "
                        "the first attempt.\",\"Metadata\":{\"EventID\":2,\"RetryPolicy\":"
                        "{\"initialIntervalInSeconds\":1,\"backoffCoefficient\":1.5,");
    expect_part(report, "{\"IssueID\":1,\"InvariantType\":"
                        "\"Activity Heartbeat configured but invalid\"");
    EXPECT(strstr(report, "\"IssueID\":2") == NULL);
    expect_part(report, "\"Runbook\":\"https://cadenceworkflow.io/docs/workflow-troubleshooting/"
                        "retries\"}}");
}
