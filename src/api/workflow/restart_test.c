/* restart_test.c - a run starts once more, with what it was started with. */
#include "api/test/fixture.h"
#include "engine/run/mutation.h" /* EVENT_KIND */
#include "wire/names.h"

static struct error *
restart(struct fixture *fixture, const char *workflow_id, const char *run_id, const char **new_run)
{
    API(RestartWorkflowExecutionResponse) *response = NULL;
    struct error *err =
        API_CALL(fixture, &response, restart_workflow_execution, .domain = "orders",
                 .workflow_execution = fixture_execution_of(fixture, workflow_id, run_id),
                 .identity = "operator", .reason = "once more");
    if (err == NULL)
        *new_run = response->run_id;
    return err;
}

/* A start with everything that a restart takes over. */
static API(StartWorkflowExecutionRequest) *
full_start(struct fixture *fixture)
{
    struct arena *arena = fixture->arena;
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->identity = "client";
    request->delay_start = presence_make_duration(arena, 30);
    request->retry_policy =
        API_NEW(arena, retry_policy, .initial_interval = presence_make_duration(arena, 1),
                .backoff_coefficient = 2, .maximum_attempts = 4);
    request->memo = API_NEW(arena, memo);
    API(Memo__FieldsEntry) *memo = message_new(arena, API_TYPE(memo__fields_entry));
    memo->key = "note";
    memo->value = fixture_payload(fixture, "\"hello\"");
    request->memo->fields = arena_zalloc(arena, 1, sizeof(void *));
    request->memo->fields[request->memo->n_fields++] = memo;
    request->header = API_NEW(arena, header);
    API(Header__FieldsEntry) *field = message_new(arena, API_TYPE(header__fields_entry));
    field->key = "trace";
    field->value = fixture_payload(fixture, "t1");
    request->header->fields = arena_zalloc(arena, 1, sizeof(void *));
    request->header->fields[request->header->n_fields++] = field;
    return request;
}

static const API(WorkflowExecutionStartedEventAttributes) *
started_event(struct fixture *fixture, const char *run_id)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    request->workflow_execution->run_id = (char *)run_id;
    const API(History) *history = read_history(fixture, request)->history;
    EXPECT(history->n_events > 0);
    return history->events[0]->workflow_execution_started_event_attributes;
}

SERVER_TEST(restart, the_new_run_is_started_with_what_the_old_one_was_but_without_delay, "A-048")
{
    const char *run_id = NULL;
    const char *first = run_start_by(fixture, full_start(fixture));
    EXPECT_OK(restart(fixture, "wf", "", &run_id));
    EXPECT(strcmp(run_id, first) != 0);

    const API(WorkflowExecutionStartedEventAttributes) *old = started_event(fixture, first);
    const API(WorkflowExecutionStartedEventAttributes) *new = started_event(fixture, run_id);
    EXPECT_TEXT(new->workflow_type->name, "order");
    EXPECT_TEXT(new->task_list->name, "work");
    EXPECT(slice_equal(presence_read_bytes(new->input->data), slice_text("{}")));
    EXPECT_EQ(new->execution_start_to_close_timeout->seconds, 600);
    EXPECT_EQ(new->task_start_to_close_timeout->seconds, 10);
    EXPECT_EQ(new->retry_policy->maximum_attempts, 4);
    EXPECT_TEXT(new->memo->fields[0]->key, "note");
    EXPECT_TEXT(new->header->fields[0]->key, "trace");
    EXPECT_TEXT(new->identity, "operator");
    EXPECT_TEXT(new->first_execution_run_id, run_id); /* a chain of its own */
    EXPECT_TEXT(new->continued_execution_run_id, "");
    EXPECT(strcmp(new->request_id, old->request_id) != 0);
    EXPECT_EQ(old->first_decision_task_backoff->seconds, 30);
    EXPECT(new->first_decision_task_backoff == NULL ||
           new->first_decision_task_backoff->seconds == 0);
    EXPECT(poll_decision(fixture, "work")->task_token.len > 0); /* without the delay */
}

SERVER_TEST(restart, it_is_spread_in_time_again_if_the_start_was, "A-048")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    const char *run_id = NULL;
    request->jitter_start = presence_make_duration(fixture->arena, 1000000);
    run_start_by(fixture, request);
    EXPECT_OK(restart(fixture, "wf", "", &run_id));
    EXPECT(started_event(fixture, run_id)->first_decision_task_backoff->seconds > 0);
}

SERVER_TEST(restart, it_runs_by_its_schedule_again, "A-048")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    const char *run_id = NULL;
    request->cron_schedule = "@every 5s";
    request->cron_overlap_policy = API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_BUFFER_ONE);
    run_start_by(fixture, request);
    EXPECT_OK(restart(fixture, "wf", "", &run_id));
    const API(WorkflowExecutionStartedEventAttributes) *started = started_event(fixture, run_id);
    EXPECT_TEXT(started->cron_schedule, "@every 5s");
    EXPECT_EQ(started->cron_overlap_policy, request->cron_overlap_policy);
    EXPECT_EQ(started->first_decision_task_backoff->seconds, 5); /* its first fire is to come */
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_TEXT(task->workflow_execution->run_id, run_id);
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
    task = poll_decision(fixture, "work"); /* and it goes on */
    EXPECT(strcmp(task->workflow_execution->run_id, run_id) != 0);
}

SERVER_TEST(restart, it_takes_the_place_of_the_open_run_and_also_follows_one_that_has_closed,
            "A-048")
{
    const char *first = run_start(fixture, "wf"), *second, *third;
    EXPECT_OK(restart(fixture, "wf", first, &second));
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    request->workflow_execution->run_id = (char *)first;
    const API(History) *history = read_history(fixture, request)->history;
    const API(HistoryEvent) *last = history->events[history->n_events - 1];
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED));
    EXPECT_TEXT(last->workflow_execution_terminated_event_attributes->reason,
                "TerminateIfRunning Policy");

    /* An old run, while another is open, and the newest. */
    EXPECT_OK(restart(fixture, "wf", first, &third));
    EXPECT(strcmp(third, second) != 0);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_TEXT(task->workflow_execution->run_id, third);
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
    EXPECT_OK(restart(fixture, "wf", "", &third)); /* one that has ended well */
    EXPECT_TEXT(poll_decision(fixture, "work")->workflow_execution->run_id, third);
}

SERVER_TEST(restart, a_run_whose_history_is_gone_cannot_be, "A-048")
{
    const char *ignored;
    struct error *err = restart(fixture, "nobody", "", &ignored);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message,
                "Requested workflow history not found, may have passed retention period.");
    run_start(fixture, "wf");
    err = restart(fixture, "wf", fixture_uuid(fixture), &ignored);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    err = restart(fixture, "", "", &ignored);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "WorkflowId is not set on request.");
    err = restart(fixture, "wf", "no id", &ignored);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Invalid RunId.");
}
