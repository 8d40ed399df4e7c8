/* poll_test.c - workers that wait for tasks, as they see it. */
#include "api/test/fixture.h"
#include "fiber/sync.h"
#include "wire/names.h"

static struct error *
try_poll(struct fixture *fixture, const API(PollForDecisionTaskRequest) *request)
{
    return fixture_call(fixture, request, NULL);
}

SERVER_TEST(poll, a_poll_needs_time, "A-014")
{
    fixture->timeout = 0;
    struct error *err = try_poll(fixture, fixture_poll(fixture, "work"));
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Context timeout is not set.");
    fixture->timeout = 1500 * NS_PER_MS;
    err = try_poll(fixture, fixture_poll(fixture, "work"));
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Context timeout is too short.");
    fixture->timeout = 3 * NS_PER_S;
    EXPECT_OK(try_poll(fixture, fixture_poll(fixture, "work")));
}

SERVER_TEST(poll, without_a_task_the_answer_is_empty_a_second_before_the_deadline_or_after_a_minute,
            "A-053")
{
    int64_t began = clock_monotonic();
    fixture->timeout = 10 * NS_PER_S;
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_EQ(task->task_token.len, 0);
    EXPECT(task->history == NULL && task->query == NULL);
    int64_t took = clock_monotonic() - began;
    EXPECT(took > 8900 * NS_PER_MS && took < 9500 * NS_PER_MS);

    fixture->timeout = 150 * NS_PER_S;
    began = clock_monotonic();
    EXPECT_EQ(poll_activity(fixture, "work")->task_token.len, 0);
    took = clock_monotonic() - began;
    EXPECT(took > 59 * NS_PER_S && took < 61 * NS_PER_S);
}

SERVER_TEST(poll, a_decision_has_all_that_a_worker_needs, "A-054", "A-055")
{
    const char *run_id = run_start(fixture, "wf");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->task_token.len > 0);
    EXPECT_TEXT(task->workflow_execution->workflow_id, "wf");
    EXPECT_TEXT(task->workflow_execution->run_id, run_id);
    EXPECT_TEXT(task->workflow_type->name, "order");
    EXPECT_TEXT(task->workflow_execution_task_list->name, "work");
    EXPECT(task->previous_started_event_id == NULL);
    EXPECT_EQ(task->started_event_id, 3);
    EXPECT_EQ(task->next_event_id, 4);
    EXPECT_EQ(task->attempt, 0);
    EXPECT(task->scheduled_time != NULL && task->started_time != NULL);
    EXPECT(task->total_history_bytes > 0);
    EXPECT_EQ(task->next_page_token.len, 0);
    EXPECT(task->query == NULL && task->n_queries == 0);
    EXPECT_EQ(task->history->n_events, 3);
    for (size_t i = 0; i < 3; i++)
        EXPECT_EQ(task->history->events[i]->event_id, i + 1);
    EXPECT_EQ(task->history->events[2]->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_STARTED_EVENT_ATTRIBUTES));
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_marker(fixture)));

    run_signal(fixture, "wf", "go");
    task = poll_decision(fixture, "work");
    EXPECT(task->previous_started_event_id != NULL);
    EXPECT_EQ(task->previous_started_event_id->value, 3);
    EXPECT_EQ(task->history->events[0]->event_id, 1);
    EXPECT_EQ(task->history->n_events, task->next_event_id - 1);
}

/* Somebody polls the sticky list. The poll, ready to be sent again. */
static API(PollForDecisionTaskRequest) *
poll_sticky_list(struct fixture *fixture)
{
    API(PollForDecisionTaskRequest) *request = fixture_poll(fixture, "host:1");
    request->task_list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
    request->task_list->base_name = "work";
    fixture->timeout = 2500 * NS_PER_MS;
    EXPECT_OK(try_poll(fixture, request));
    fixture->timeout = 10 * NS_PER_S;
    return request;
}

/* The worker keeps the run, and wants its next decisions on that list. */
static void
complete_sticky(struct fixture *fixture, const API(PollForDecisionTaskResponse) *task,
                API(TaskList) *list)
{
    API(RespondDecisionTaskCompletedRequest) *answer =
        fixture_complete(fixture, task->task_token, decide_marker(fixture));
    answer->sticky_attributes =
        API_NEW(fixture->arena, sticky_execution_attributes, .worker_task_list = list,
                .schedule_to_start_timeout = presence_make_duration(fixture->arena, 5));
    run_complete(fixture, answer);
}

static void
sticky(struct fixture *fixture)
{
    run_start(fixture, "wf");
    API(PollForDecisionTaskRequest) *request = poll_sticky_list(fixture);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    complete_sticky(fixture, task, request->task_list);

    run_signal(fixture, "wf", "go");
    task = fixture_ok(fixture, request);
    EXPECT_EQ(task->previous_started_event_id->value, 3);
    EXPECT_EQ(task->history->events[0]->event_id, 4);
    EXPECT_EQ(task->history->events[task->history->n_events - 1]->event_id, task->started_event_id);
    EXPECT_TEXT(task->workflow_execution_task_list->name, "work");
}

TEST(poll, a_worker_that_has_the_run_gets_only_what_is_new, "A-055", "A-081")
{
    fixture_run(sticky);
}

/* The events of a transient decision are stored with its completion, in one batch: what the worker
 * has not seen begins in the middle of it. */
SERVER_TEST(poll, what_is_new_may_begin_inside_a_batch, "A-055")
{
    run_start(fixture, "wf");
    run_fail_decision(fixture, poll_decision(fixture, "work")->task_token);
    API(PollForDecisionTaskRequest) *request = poll_sticky_list(fixture);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_EQ(task->attempt, 1);
    complete_sticky(fixture, task, request->task_list);
    run_signal(fixture, "wf", "go");
    task = fixture_ok(fixture, request);
    EXPECT_EQ(task->previous_started_event_id->value, 6);
    EXPECT_EQ(task->history->events[0]->event_id, 7);
    EXPECT_EQ(task->history->events[0]->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_COMPLETED_EVENT_ATTRIBUTES));
}

/* The first page holds two batches; the others are fetched by the token. */
SERVER_TEST(poll, a_long_history_comes_in_pages_that_end_with_the_decision, "A-056")
{
    run_start(fixture, "wf");
    for (int i = 0; i < 5; i++) {
        API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
        run_complete(fixture, fixture_complete(fixture, task->task_token, decide_marker(fixture)));
        run_signal(fixture, "wf", "go");
    }
    fixture_set(fixture, "frontend.historyMaxPageSize:\n- value: 2\n");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->next_page_token.len > 0);
    run_signal(fixture, "wf", "late"); /* must not show in the pages of this decision */
    int64_t next = task->history->n_events + 1;
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    request->workflow_execution->run_id = task->workflow_execution->run_id;
    request->next_page_token = task->next_page_token;
    int pages = 0;
    while (request->next_page_token.len > 0) {
        API(GetWorkflowExecutionHistoryResponse) *page = read_history(fixture, request);
        for (size_t i = 0; i < page->history->n_events; i++)
            EXPECT_EQ(page->history->events[i]->event_id, next++);
        request->next_page_token = page->next_page_token;
        pages++;
    }
    EXPECT(pages > 2);
    EXPECT_EQ(next, task->next_event_id);
}

static void
transient(struct fixture *fixture)
{
    run_start(fixture, "wf");
    run_fail_decision(fixture, poll_decision(fixture, "work")->task_token);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_EQ(task->attempt, 1);
    EXPECT_EQ(task->started_event_id, 6);
    EXPECT_EQ(task->next_event_id, 5);
    EXPECT_EQ(task->history->n_events, 6);
    EXPECT_EQ(task->history->events[5]->event_id, 6);
    EXPECT_EQ(task->history->events[5]->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_STARTED_EVENT_ATTRIBUTES));
    EXPECT_EQ(read_history(fixture, fixture_history(fixture, "wf"))->history->n_events, 4);

    fixture_set(fixture, "frontend.historyMaxPageSize:\n- value: 1\n");
    run_fail_decision(fixture, task->task_token);
    task = poll_decision(fixture, "work");
    EXPECT_EQ(task->attempt, 2);
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    request->next_page_token = task->next_page_token;
    int64_t next = task->history->n_events + 1;
    while (request->next_page_token.len > 0) {
        API(GetWorkflowExecutionHistoryResponse) *page = read_history(fixture, request);
        for (size_t i = 0; i < page->history->n_events; i++)
            EXPECT_EQ(page->history->events[i]->event_id, next++);
        request->next_page_token = page->next_page_token;
    }
    EXPECT_EQ(next, 7); /* 1 to 4 are stored, 5 and 6 are the transient ones */
}

TEST(poll, events_of_a_transient_decision_are_shown_to_its_worker_alone, "A-063", "A-064", "A-233")
{
    fixture_run(transient);
}

SERVER_TEST(poll, the_next_decision_comes_with_the_answer_if_the_worker_asks_for_it, "A-058",
            "A-082")
{
    run_start(fixture, "wf");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    API(RespondDecisionTaskCompletedRequest) *answer =
        fixture_complete(fixture, task->task_token, decide_marker(fixture));
    answer->return_new_decision_task = true;
    answer->force_create_new_decision_task = true;
    answer->sticky_attributes = API_NEW(fixture->arena, sticky_execution_attributes,
                                        .worker_task_list = fixture_list(fixture, "host:1"));
    answer->sticky_attributes->worker_task_list->kind =
        API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
    answer->sticky_attributes->schedule_to_start_timeout =
        presence_make_duration(fixture->arena, 5);
    API(PollForDecisionTaskResponse) *next = run_complete(fixture, answer)->decision_task;
    EXPECT(next != NULL && next->task_token.len > 0);
    EXPECT_EQ(next->previous_started_event_id->value, 3);
    EXPECT_EQ(next->started_event_id, 7);
    EXPECT_EQ(next->history->n_events, 4);
    EXPECT_EQ(next->history->events[0]->event_id, 4);
    EXPECT_EQ(next->history->events[1]->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_MARKER_RECORDED_EVENT_ATTRIBUTES));

    API(RespondDecisionTaskCompletedRequest) *last =
        fixture_complete(fixture, next->task_token, decide_end(fixture));
    last->return_new_decision_task = true;
    EXPECT(run_complete(fixture, last)->decision_task == NULL);
}

/* --- polls that wait before there is a task ---- */

struct waiting_worker {
    struct fixture *fixture;
    struct latch done;
    API(PollForDecisionTaskResponse) *decision;
    API(PollForActivityTaskResponse) *activity;
};

static void
wait_for_decision(void *argument)
{
    struct waiting_worker *worker = argument;
    worker->decision = poll_decision(worker->fixture, "work");
    latch_done(&worker->done);
}

static void
wait_for_activity(void *argument)
{
    struct waiting_worker *worker = argument;
    worker->activity = poll_activity(worker->fixture, "work");
    latch_done(&worker->done);
}

static void
park(struct waiting_worker *worker, void (*poll)(void *argument))
{
    latch_init(&worker->done, 1);
    fiber_start("worker", poll, worker);
    EXPECT_OK(fiber_sleep(NS_PER_S, worker->fixture->arena));
}

SERVER_TEST(poll, a_workflow_whose_workers_wait_for_it_is_four_commits)
{
    struct waiting_worker decider = {fixture}, doer = {fixture};
    park(&decider, wait_for_decision);
    park(&doer, wait_for_activity);
    uint64_t before = memory_base_commits(fixture->base);
    (void)run_start(fixture, "wf");
    latch_wait(&decider.done);
    EXPECT_EQ(memory_base_commits(fixture->base), before + 1);
    EXPECT_EQ(decider.decision->started_event_id, 3);
    EXPECT_EQ(decider.decision->history->n_events, 3);
    run_complete(fixture, fixture_complete(fixture, decider.decision->task_token,
                                           decide_activity(fixture, "a")));
    latch_wait(&doer.done);
    EXPECT_EQ(memory_base_commits(fixture->base), before + 2);
    EXPECT_TEXT(doer.activity->activity_id, "a");
    EXPECT_TEXT(doer.activity->workflow_execution->workflow_id, "wf");
    EXPECT(doer.activity->started_time != NULL);

    park(&decider, wait_for_decision);
    EXPECT_OK(API_CALL(fixture, NULL, respond_activity_task_completed,
                       .task_token = doer.activity->task_token));
    latch_wait(&decider.done);
    EXPECT_EQ(memory_base_commits(fixture->base), before + 3);
    EXPECT_EQ(decider.decision->history->n_events, 9);
    run_complete(fixture,
                 fixture_complete(fixture, decider.decision->task_token, decide_end(fixture)));
    EXPECT_EQ(memory_base_commits(fixture->base), before + 4);
}
