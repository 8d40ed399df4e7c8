/* activity_test.c - activities as workers see them: polled, answered by token and by id. */
#include "api/test/fixture.h"
#include "wire/names.h"

/* A run that has scheduled the activity. */
static API(PollForActivityTaskResponse) *
scheduled(struct fixture *fixture, const char *workflow_id, const char *activity_id)
{
    run_start(fixture, workflow_id);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token,
                                           decide_activity(fixture, activity_id)));
    API(PollForActivityTaskResponse) *activity = poll_activity(fixture, "work");
    EXPECT(activity->task_token.len > 0);
    return activity;
}

/* The newest event of the run's history as its next decision shows it, before the decision's own.
 */
static API(HistoryEvent) *
last_event(struct fixture *fixture)
{
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->history->n_events > 3);
    return task->history->events[task->history->n_events - 3];
}

SERVER_TEST(activity, a_worker_gets_all_that_it_needs, "A-101")
{
    API(PollForActivityTaskResponse) *task = scheduled(fixture, "wf", "7");
    EXPECT_TEXT(task->activity_id, "7");
    EXPECT_TEXT(task->activity_type->name, "charge");
    EXPECT_TEXT(task->workflow_execution->workflow_id, "wf");
    EXPECT_TEXT(task->workflow_type->name, "order");
    EXPECT_TEXT(task->workflow_domain, "orders");
    EXPECT(slice_equal(presence_read_bytes(task->input->data), slice_text("input")));
    EXPECT_EQ(task->schedule_to_close_timeout->seconds, 100);
    EXPECT_EQ(task->start_to_close_timeout->seconds, 60);
    EXPECT_EQ(task->heartbeat_timeout->seconds, 30);
    EXPECT_EQ(task->attempt, 0);
    EXPECT(task->scheduled_time != NULL && task->started_time != NULL);
    EXPECT(task->scheduled_time_of_this_attempt != NULL);
    EXPECT(task->heartbeat_details == NULL);
}

/* What a list is left with when it stored the task of a step that a crash took back, and the ids of
 * that step went to another activity. Row 0: no row of the outbox stands behind it. */
static void
add_stray(struct fixture *fixture, const char *run_id, const char *list, int64_t schedule_id)
{
    const char *domain_id = domains_find_name(fixture->domains, "orders")->id;
    EXPECT(matching_add(fixture->matching, &(struct task){.type = TASK_ACTIVITY,
                                                          .domain_id = domain_id,
                                                          .list = list,
                                                          .normal_list = "",
                                                          .run_domain_id = domain_id,
                                                          .workflow_id = "wf",
                                                          .run_id = run_id,
                                                          .schedule_id = schedule_id,
                                                          .created_time = clock_wall()}));
}

static int
count_started(struct fixture *fixture)
{
    const API(History) *history = read_history(fixture, fixture_history(fixture, "wf"))->history;
    int count = 0;
    for (size_t i = 0; i < history->n_events; i++)
        count += history->events[i]->attributes_case ==
                 API_VALUE(HISTORY_EVENT__ATTRIBUTES_ACTIVITY_TASK_STARTED_EVENT_ATTRIBUTES);
    return count;
}

SERVER_TEST(activity, a_task_of_a_step_that_never_was_starts_no_activity_of_another_list, "A-102")
{
    fixture->timeout = 10 * NS_PER_S;
    const char *run_id = run_start(fixture, "wf");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture,
                 fixture_complete(fixture, task->task_token, decide_activity(fixture, "7")));
    add_stray(fixture, run_id, "elsewhere", 5); /* the id of the activity, on another list */
    EXPECT_EQ(poll_activity(fixture, "elsewhere")->task_token.len, 0);
    add_stray(fixture, run_id, "elsewhere", 6); /* an id that nothing has */
    EXPECT_EQ(poll_activity(fixture, "elsewhere")->task_token.len, 0);
    EXPECT_EQ(count_started(fixture), 0);
    API(PollForActivityTaskResponse) *activity = poll_activity(fixture, "work");
    EXPECT_TEXT(activity->activity_id, "7");
    EXPECT_EQ(count_started(fixture), 1);
    add_stray(fixture, run_id, "work", 5); /* it is started already */
    EXPECT_EQ(poll_activity(fixture, "work")->task_token.len, 0);
    EXPECT_EQ(count_started(fixture), 1);
}

SERVER_TEST(activity, it_is_answered_by_token, "A-103", "A-104")
{
    API(PollForActivityTaskResponse) *task = scheduled(fixture, "wf", "7");
    API(RecordActivityTaskHeartbeatResponse) *beaten =
        API_OK(fixture, record_activity_task_heartbeat, .task_token = task->task_token);
    EXPECT(!beaten->cancel_requested);

    API(RespondActivityTaskCompletedRequest) *request =
        API_NEW(fixture->arena, respond_activity_task_completed_request,
                .task_token = task->task_token, .result = fixture_payload(fixture, "paid"));
#define COMPLETE fixture_call(fixture, request, NULL)
    EXPECT_OK(COMPLETE);
    EXPECT_KIND(COMPLETE, ERR_ENTITY_NOT_EXISTS);
    request->task_token = (ProtobufCBinaryData){0};
    struct error *err = COMPLETE;
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Task token not set on request.");
    request->task_token = presence_make_bytes(slice_text("{\"domainId\":"));
    err = COMPLETE;
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Invalid TaskToken.");
    API(HistoryEvent) *event = last_event(fixture);
    EXPECT_EQ(event->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_ACTIVITY_TASK_COMPLETED_EVENT_ATTRIBUTES));
}

SERVER_TEST(activity, it_is_answered_by_its_id, "A-103", "A-123")
{
    scheduled(fixture, "wf", "7");
    API(RecordActivityTaskHeartbeatByIDRequest) *beat =
        API_NEW(fixture->arena, record_activity_task_heartbeat_by_idrequest, .domain = "orders",
                .workflow_execution = fixture_execution(fixture, "wf"), .activity_id = "7");
    EXPECT_OK(fixture_call(fixture, beat, NULL));

    API(RespondActivityTaskFailedByIDRequest) *request =
        API_NEW(fixture->arena, respond_activity_task_failed_by_idrequest);
#define FAIL fixture_call(fixture, request, NULL)
    EXPECT_KIND(FAIL, ERR_BAD_REQUEST);
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, "wf");
    struct error *err = FAIL;
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "ActivityID is not set on request.");
    request->activity_id = "8";
    EXPECT_KIND(FAIL, ERR_ENTITY_NOT_EXISTS);
    request->activity_id = "7";
    request->failure = API_NEW(fixture->arena, failure, .reason = "no money");
    EXPECT_OK(FAIL);
    API(HistoryEvent) *event = last_event(fixture);
    EXPECT_EQ(event->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_ACTIVITY_TASK_FAILED_EVENT_ATTRIBUTES));
    EXPECT_TEXT(event->activity_task_failed_event_attributes->failure->reason, "no money");
}

/* The state of the run's only pending activity. */
static int
pending_state(struct fixture *fixture)
{
    const API(DescribeWorkflowExecutionResponse) *response = run_describe(fixture, "wf", "");
    EXPECT_EQ(response->n_pending_activities, 1);
    EXPECT_TEXT(response->pending_activities[0]->activity_id, "7");
    return response->pending_activities[0]->state;
}

SERVER_TEST(activity, a_cancellation_is_seen_by_readers_and_by_the_worker, "A-113", "A-115")
{
    run_start(fixture, "wf");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture,
                 fixture_complete(fixture, task->task_token, decide_activity(fixture, "7")));
    EXPECT_EQ(pending_state(fixture),
              API_VALUE(PENDING_ACTIVITY_STATE__PENDING_ACTIVITY_STATE_SCHEDULED));
    API(PollForActivityTaskResponse) *activity = poll_activity(fixture, "work");
    EXPECT_EQ(pending_state(fixture),
              API_VALUE(PENDING_ACTIVITY_STATE__PENDING_ACTIVITY_STATE_STARTED));

    run_signal(fixture, "wf", "stop");
    API(Decision) *decision =
        API_DECISION(fixture->arena, request_cancel_activity_task, .activity_id = "7");
    task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decision));
    EXPECT_EQ(pending_state(fixture),
              API_VALUE(PENDING_ACTIVITY_STATE__PENDING_ACTIVITY_STATE_CANCEL_REQUESTED));

    API(RecordActivityTaskHeartbeatResponse) *beaten =
        API_OK(fixture, record_activity_task_heartbeat, .task_token = activity->task_token);
    EXPECT(beaten->cancel_requested);
    API(RespondActivityTaskCanceledByIDRequest) *request =
        API_NEW(fixture->arena, respond_activity_task_canceled_by_idrequest, .domain = "orders",
                .workflow_execution = fixture_execution(fixture, "wf"), .activity_id = "7");
    EXPECT_OK(fixture_call(fixture, request, NULL));
    EXPECT_EQ(last_event(fixture)->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_ACTIVITY_TASK_CANCELED_EVENT_ATTRIBUTES));
}

/* --- what is too large ---------------------------------------------------------------------------
 */

#define LARGE   "12345678901"
#define LARGEST 10

static void
expect_failure(struct fixture *fixture, const char *reason)
{
    API(HistoryEvent) *event = last_event(fixture);
    EXPECT_EQ(event->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_ACTIVITY_TASK_FAILED_EVENT_ATTRIBUTES));
    const API(Failure) *failure = event->activity_task_failed_event_attributes->failure;
    EXPECT_TEXT(failure->reason, reason);
    EXPECT_EQ(failure->details.len, LARGEST);
}

SERVER_TEST(activity, a_result_that_is_too_large_fails_it, "A-118")
{
    fixture_set(fixture, "limit.blobSize.error:\n- value: 10\n");
    EXPECT_OK(API_CALL(fixture, NULL, respond_activity_task_completed,
                       .task_token = scheduled(fixture, "wf", "7")->task_token,
                       .result = fixture_payload(fixture, LARGE)));
    expect_failure(fixture, "COMPLETE_RESULT_EXCEEDS_LIMIT");
}

SERVER_TEST(activity, details_of_a_cancellation_that_are_too_large_fail_it, "A-118")
{
    fixture_set(fixture, "limit.blobSize.error:\n- value: 10\n");
    EXPECT_OK(API_CALL(fixture, NULL, respond_activity_task_canceled,
                       .task_token = scheduled(fixture, "wf", "7")->task_token,
                       .details = fixture_payload(fixture, LARGE)));
    expect_failure(fixture, "CANCEL_DETAILS_EXCEEDS_LIMIT");
}

SERVER_TEST(activity, details_of_a_failure_are_cut, "A-118")
{
    fixture_set(fixture, "limit.blobSize.error:\n- value: 10\n");
    EXPECT_OK(API_CALL(fixture, NULL, respond_activity_task_failed,
                       .task_token = scheduled(fixture, "wf", "7")->task_token,
                       .failure = API_NEW(fixture->arena, failure, .reason = "mine",
                                          .details = presence_make_bytes(slice_text(LARGE)))));
    expect_failure(fixture, "FAILURE_DETAILS_EXCEEDS_LIMIT");
}

SERVER_TEST(activity, a_heartbeat_that_is_too_large_fails_it_and_tells_the_worker_to_stop, "A-118")
{
    fixture_set(fixture, "limit.blobSize.error:\n- value: 10\n");
    API(RecordActivityTaskHeartbeatResponse) *response =
        API_OK(fixture, record_activity_task_heartbeat,
               .task_token = scheduled(fixture, "wf", "7")->task_token,
               .details = fixture_payload(fixture, LARGE));
    EXPECT(response->cancel_requested);
    expect_failure(fixture, "HEARTBEAT_EXCEEDS_LIMIT");
}
