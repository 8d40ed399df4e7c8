/* reset_test.c - ResetWorkflowExecution and RefreshWorkflowTasks through the door. */
#include "api/test/fixture.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "engine/run/apply.h" /* event_name */
#include "wire/names.h"

static API(ResetWorkflowExecutionRequest) *
reset_request(struct fixture *fixture, const char *run_id, int64_t fork)
{
    return API_NEW(fixture->arena, reset_workflow_execution_request, .domain = "orders",
                   .workflow_execution = fixture_execution_of(fixture, "wf", run_id),
                   .reason = "bad code", .decision_finish_event_id = fork,
                   .request_id = fixture_uuid(fixture));
}

static struct error *
reset(struct fixture *fixture, const API(ResetWorkflowExecutionRequest) *request,
      const char **run_id)
{
    API(ResetWorkflowExecutionResponse) *response = NULL;
    struct error *err = fixture_call(fixture, request, &response);
    if (err == NULL)
        *run_id = response->run_id;
    return err;
}

static const API(History) *
history_of(struct fixture *fixture, const char *run_id)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    request->workflow_execution->run_id = (char *)run_id;
    return read_history(fixture, request)->history;
}

/* "WorkflowExecutionStarted DecisionTaskScheduled", of a page. */
static const char *
names_of(struct fixture *fixture, const char *run_id)
{
    const API(History) *history = history_of(fixture, run_id);
    const char *text = "";
    for (size_t i = 0; i < history->n_events; i++) {
        EXPECT_EQ(history->events[i]->event_id, (int64_t)i + 1);
        text = arena_format(fixture->arena, "%s%s%s", text, i == 0 ? "" : " ",
                            event_name(history->events[i]->attributes_case));
    }
    return text;
}

/* One decision of the run, with or without something to do. */
static void
decide(struct fixture *fixture, API(Decision) *decision)
{
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decision));
}

static API(Decision) *
decide_again(struct fixture *fixture)
{
    return API_DECISION(fixture->arena, continue_as_new_workflow_execution);
}

SERVER_TEST(reset, a_closed_run_and_a_run_of_a_reset_can_be_reset, "A-199", "A-201", "A-202")
{
    const char *first = run_start(fixture, "wf"), *second = NULL, *third = NULL;
    decide(fixture, decide_marker(fixture));
    run_signal(fixture, "wf", "one");
    decide(fixture, decide_end(fixture));
    int64_t before = clock_wall();
    EXPECT_OK(fiber_sleep(20 * NS_PER_S, fixture->arena));
    EXPECT_OK(reset(fixture, reset_request(fixture, first, 4), &second));
    EXPECT_TEXT(names_of(fixture, second),
                "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                "DecisionTaskFailed WorkflowExecutionSignaled DecisionTaskScheduled");
    EXPECT_TEXT(
        run_describe(fixture, "wf", "")->workflow_execution_info->workflow_execution->run_id,
        second);
    EXPECT(run_describe(fixture, "wf", second)->workflow_execution_info->start_time->seconds >=
           before / NS_PER_S + 20);
    decide(fixture, decide_marker(fixture));
    EXPECT_OK(reset(fixture, reset_request(fixture, "", 8), &third));
    EXPECT_OK(reset(fixture, reset_request(fixture, "", 10), &third)); /* its pending decision */
    EXPECT(strstr(names_of(fixture, second), "WorkflowExecutionTerminated") != NULL);
    decide(fixture, decide_end(fixture));
    EXPECT(strstr(names_of(fixture, third), "WorkflowExecutionCompleted") != NULL);
}

/* Signals of the first run after the fork, of the run it went on as, and one that is buffered. */
SERVER_TEST(reset, signals_along_the_chain_come_again_in_order, "A-203", "A-207")
{
    const char *first = run_start(fixture, "wf"), *made = NULL, *bare = NULL;
    decide(fixture, decide_marker(fixture));
    run_signal(fixture, "wf", "one");
    decide(fixture, decide_again(fixture));
    run_signal(fixture, "wf", "two");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->task_token.len > 0);
    run_signal(fixture, "wf", "three"); /* behind the started decision */
    int64_t begun = clock_monotonic();
    EXPECT_OK(reset(fixture, reset_request(fixture, first, 4), &made));
    EXPECT(clock_monotonic() - begun < NS_PER_S); /* nobody waits for himself */
    const API(History) *history = history_of(fixture, made);
    EXPECT_EQ(history->n_events, 8);
    const char *const names[] = {"one", "two", "three"};
    for (size_t i = 0; i < 3; i++)
        EXPECT_TEXT(
            history->events[4 + i]->workflow_execution_signaled_event_attributes->signal_name,
            names[i]);

    API(ResetWorkflowExecutionRequest) *request = reset_request(fixture, first, 4);
    request->skip_signal_reapply = true;
    EXPECT_OK(reset(fixture, request, &bare));
    EXPECT_EQ(history_of(fixture, bare)->n_events, 5);
}

SERVER_TEST(reset, the_same_request_is_one_reset, "A-206")
{
    const char *first = run_start(fixture, "wf"), *made = NULL, *again = NULL;
    decide(fixture, decide_marker(fixture));
    API(ResetWorkflowExecutionRequest) *request = reset_request(fixture, first, 4);
    EXPECT_OK(reset(fixture, request, &made));
    EXPECT_OK(reset(fixture, request, &again));
    EXPECT_TEXT(again, made);
    decide(fixture, decide_again(fixture));
    EXPECT_OK(reset(fixture, request, &again));
    EXPECT_TEXT(again, made);
    struct error *err = fixture_call(fixture, fixture_start(fixture, "wf"), NULL);
    EXPECT_KIND(err, ERR_ALREADY_STARTED); /* the id is in use */
}

/* The first try closes the run before any decision was completed. */
SERVER_TEST(reset, the_same_request_is_one_reset_also_of_a_run_that_completed_no_decision)
{
    const char *first = run_start(fixture, "wf"), *made = NULL, *again = NULL;
    API(ResetWorkflowExecutionRequest) *request = reset_request(fixture, first, 3);
    EXPECT_OK(reset(fixture, request, &made));
    EXPECT_OK(reset(fixture, request, &again));
    EXPECT_TEXT(again, made);
}

static void
expect_refused(struct fixture *fixture, const API(ResetWorkflowExecutionRequest) *request,
               enum error_kind kind, const char *why)
{
    const char *run_id = NULL;
    struct error *err = reset(fixture, request, &run_id);
    EXPECT_KIND(err, kind);
    EXPECT(strstr(err->message, why) != NULL);
}

SERVER_TEST(reset, what_cannot_be_reset_is_left_alone, "A-205")
{
    const char *first = run_start(fixture, "wf");
    decide(fixture, decide_marker(fixture));
    const char *bounds = "Decision finish ID must be > 1 && <= workflow next event ID.";
    expect_refused(fixture, reset_request(fixture, first, 1), ERR_BAD_REQUEST, bounds);
    expect_refused(fixture, reset_request(fixture, first, 99), ERR_BAD_REQUEST, bounds);
    expect_refused(fixture, reset_request(fixture, first, 5), ERR_BAD_REQUEST,
                   "Attempting to reset on event type: MarkerRecorded");
    expect_refused(fixture, reset_request(fixture, fixture_uuid(fixture), 4), ERR_ENTITY_NOT_EXISTS,
                   "Workflow execution not found");
    API(ResetWorkflowExecutionRequest) *request = reset_request(fixture, first, 4);
    request->workflow_execution->workflow_id = "nobody";
    expect_refused(fixture, request, ERR_ENTITY_NOT_EXISTS, "Workflow execution not found");
    request->workflow_execution = NULL;
    expect_refused(fixture, request, ERR_BAD_REQUEST, "Execution is not set on request.");
    EXPECT(run_describe(fixture, "wf", first)->workflow_execution_info->close_status == 0);
}

/* More than a page before the fork: batches are written ahead of the step. */
SERVER_TEST(reset, a_long_history_is_copied_in_portions, "A-199")
{
    const char *first = run_start(fixture, "wf"), *made = NULL;
    char *big = arena_alloc(fixture->arena, 100001);
    memset(big, 'x', 100000);
    big[100000] = '\0';
    for (int i = 0; i < 25; i++) {
        EXPECT_OK(API_CALL(fixture, NULL, signal_workflow_execution, .domain = "orders",
                           .workflow_execution = fixture_execution(fixture, "wf"),
                           .signal_name = "big", .signal_input = fixture_payload(fixture, big)));
    }
    decide(fixture, decide_marker(fixture));
    EXPECT_OK(reset(fixture, reset_request(fixture, first, 29), &made));
    const API(DescribeWorkflowExecutionResponse) *old = run_describe(fixture, "wf", first);
    const API(DescribeWorkflowExecutionResponse) *new = run_describe(fixture, "wf", made);
    EXPECT_EQ(new->workflow_execution_info->history_length, 30);
    EXPECT_EQ(old->workflow_execution_info->history_length, 31);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->task_token.len > 0);
    const API(History) *history = history_of(fixture, made);
    for (int i = 2; i < 26 && (size_t)i < history->n_events; i++)
        EXPECT(history->events[i]->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED));
}

SERVER_TEST(refresh, tasks_come_again_without_an_event, "A-210")
{
    run_start(fixture, "wf");
    decide(fixture, decide_activity(fixture, "a"));
    const char *before = names_of(fixture, "");
    API(RefreshWorkflowTasksRequest) *request =
        API_NEW(fixture->arena, refresh_workflow_tasks_request, .domain = "orders",
                .workflow_execution = fixture_execution(fixture, "wf"));
    EXPECT_OK(fixture_call(fixture, request, NULL));
    EXPECT_TEXT(names_of(fixture, ""), before);
    EXPECT(poll_activity(fixture, "work")->task_token.len > 0);
    request->workflow_execution->workflow_id = "nobody";
    EXPECT_KIND(fixture_call(fixture, request, NULL), ERR_ENTITY_NOT_EXISTS);
}

SERVER_TEST(rebuild, operators_see_that_a_run_is_what_its_history_says)
{
    run_start(fixture, "wf");
    decide(fixture, decide_activity(fixture, "a"));
    STORE_API(DescribeRebuildRequest) *request = STORE_API_NEW(
        fixture->arena, describe_rebuild_request, .domain = "orders", .workflow_id = "wf");
    STORE_API(DescribeRebuildResponse) *response = fixture_ok(fixture, request);
    EXPECT(response->is_comparable && response->run_id[0] != '\0');
    EXPECT_TEXT(response->stored_checksum, response->rebuilt_checksum);
    request->workflow_id = "nobody";
    EXPECT_KIND(fixture_call(fixture, request, &response), ERR_ENTITY_NOT_EXISTS);

    STORE_API(ListDivergencesRequest) *list =
        STORE_API_NEW(fixture->arena, list_divergences_request);
    STORE_API(ListDivergencesResponse) *lost = fixture_ok(fixture, list);
    EXPECT_EQ(lost->n_divergences, 0); /* there is one cluster */
    list->workflow_id = "wf";
    EXPECT_KIND(fixture_call(fixture, list, &lost), ERR_BAD_REQUEST);
    list->domain = "nowhere";
    EXPECT_KIND(fixture_call(fixture, list, &lost), ERR_ENTITY_NOT_EXISTS);
}

/* Its task is still to be had, and it goes on. */
SERVER_TEST(rebuild, a_run_is_replaced_by_what_its_history_says_and_goes_on)
{
    run_start(fixture, "wf");
    decide(fixture, decide_activity(fixture, "a"));
    STORE_API(RebuildRunRequest) *request =
        STORE_API_NEW(fixture->arena, rebuild_run_request, .domain = "orders",
                      .workflow_execution = fixture_execution(fixture, "wf"));
    STORE_API(RebuildRunResponse) *response = NULL;
    for (int i = 0; i < 2; i++) {
        response = fixture_ok(fixture, request);
        EXPECT(response->run_id[0] != '\0');
        EXPECT_TEXT(response->old_checksum, response->new_checksum);
    }
    API(RespondActivityTaskCompletedRequest) *done =
        API_NEW(fixture->arena, respond_activity_task_completed_request,
                .task_token = poll_activity(fixture, "work")->task_token);
    EXPECT(done->task_token.len > 0);
    EXPECT_OK(fixture_call(fixture, done, NULL));
    decide(fixture, decide_end(fixture));
    EXPECT_KIND(fixture_call(fixture, request, &response), ERR_BAD_REQUEST);
    request->workflow_execution->workflow_id = "nobody";
    EXPECT_KIND(fixture_call(fixture, request, &response), ERR_ENTITY_NOT_EXISTS);
}

/* The domain says that a binary is bad. */
static void
mark_bad(struct fixture *fixture, const char *checksum)
{
    struct arena *arena = fixture->arena;
    API(UpdateDomainRequest) *request = API_NEW(arena, update_domain_request);
    API(BadBinaries__BinariesEntry) *entry =
        message_new(arena, API_TYPE(bad_binaries__binaries_entry));
    entry->key = (char *)checksum;
    entry->value = API_NEW(arena, bad_binary_info, .reason = "lost mails");
    request->name = "orders";
    request->bad_binaries =
        API_NEW(arena, bad_binaries, .binaries = arena_zalloc(arena, 1, sizeof(void *)));
    request->bad_binaries->binaries[request->bad_binaries->n_binaries++] = entry;
    request->update_mask =
        GOOGLE_NEW(arena, field_mask, .paths = arena_zalloc(arena, 1, sizeof(char *)));
    request->update_mask->paths[request->update_mask->n_paths++] = "bad_binaries";
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

static void
decide_with(struct fixture *fixture, const char *checksum)
{
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    API(RespondDecisionTaskCompletedRequest) *request =
        fixture_complete(fixture, task->task_token, decide_marker(fixture));
    request->binary_checksum = (char *)checksum;
    run_complete(fixture, request);
}

SERVER_TEST(reset, a_bad_binary_is_undone_from_its_first_decision_on, "A-208", "A-209")
{
    const char *first = run_start(fixture, "wf");
    decide_with(fixture, "good");
    run_signal(fixture, "wf", "one");
    decide_with(fixture, "bad"); /* its first decision: event 9 */
    run_signal(fixture, "wf", "two");
    decide_with(fixture, "bad");
    mark_bad(fixture, "bad");
    EXPECT_OK(fiber_sleep(2 * NS_PER_S, fixture->arena));
    run_signal(fixture, "wf", "three"); /* the next step finds out */
    EXPECT_OK(fiber_sleep(2 * NS_PER_S, fixture->arena));
    const char *made =
        run_describe(fixture, "wf", "")->workflow_execution_info->workflow_execution->run_id;
    EXPECT(strcmp(made, first) != 0);
    EXPECT_TEXT(names_of(fixture, made),
                "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                "DecisionTaskCompleted MarkerRecorded WorkflowExecutionSignaled "
                "DecisionTaskScheduled DecisionTaskStarted DecisionTaskFailed "
                "WorkflowExecutionSignaled WorkflowExecutionSignaled DecisionTaskScheduled");
    const API(HistoryEvent) *failed = history_of(fixture, made)->events[8];
    EXPECT_TEXT(failed->decision_task_failed_event_attributes->failure->reason, "lost mails");
    EXPECT_OK(fiber_sleep(2 * NS_PER_S, fixture->arena));
    decide_with(fixture, "good"); /* it is not reset again */
    EXPECT_TEXT(
        run_describe(fixture, "wf", "")->workflow_execution_info->workflow_execution->run_id, made);
}
