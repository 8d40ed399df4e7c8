/* child_tree.c - see child_tree.h. */
#include "api/test/child_tree.h"

#define TRIES_MAX 2000
#define PAUSE     (10 * NS_PER_MS)

API(Decision) *
child_tree_start_child(struct fixture *fixture, const char *workflow_id,
                       API(ParentClosePolicy) policy)
{
    return API_DECISION(
        fixture->arena, start_child_workflow_execution, .workflow_id = (char *)workflow_id,
        .workflow_type = API_NEW(fixture->arena, workflow_type, .name = "kid"),
        .task_list = fixture_list(fixture, "kids"), .input = fixture_payload(fixture, "\"input\""),
        .parent_close_policy = policy,
        .workflow_id_reuse_policy =
            API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE));
}

API(Decision) *
child_tree_signal(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    return API_DECISION(fixture->arena, signal_external_workflow_execution,
                        .workflow_execution = fixture_execution_of(fixture, workflow_id, run_id),
                        .signal_name = "hello", .input = fixture_payload(fixture, "\"there\""),
                        .control = presence_make_bytes(slice_text("control")));
}

API(Decision) *
child_tree_cancel(struct fixture *fixture, const char *workflow_id)
{
    return API_DECISION(fixture->arena, request_cancel_external_workflow_execution,
                        .workflow_execution = fixture_execution(fixture, workflow_id));
}

API(Decision) *
child_tree_end_canceled(struct fixture *fixture)
{
    return API_DECISION(fixture->arena, cancel_workflow_execution,
                        .details = fixture_payload(fixture, "as you like"));
}

API(Decision) *
child_tree_fail(struct fixture *fixture)
{
    return API_DECISION(fixture->arena, fail_workflow_execution,
                        .failure = API_NEW(fixture->arena, failure, .reason = "broken",
                                           .details = presence_make_bytes(slice_text("why"))));
}

void
child_tree_decide_list(struct fixture *fixture, const char *list, const char *workflow_id,
                       API(Decision) **decisions, size_t count)
{
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, list);
    EXPECT(task->task_token.len > 0);
    EXPECT_TEXT(task->workflow_execution->workflow_id, workflow_id);
    API(RespondDecisionTaskCompletedRequest) *request =
        fixture_complete(fixture, task->task_token, NULL);
    request->decisions = decisions;
    request->n_decisions = count;
    run_complete(fixture, request);
}

void
child_tree_sleep(struct fixture *fixture, int64_t nanoseconds)
{
    fiber_set_deadline(NEVER);
    EXPECT_OK(fiber_sleep(nanoseconds, fixture->arena));
}

static API(History) *
whole_history(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, workflow_id);
    request->workflow_execution->run_id = (char *)run_id;
    return read_history(fixture, request)->history;
}

/* A workflow that another one starts may not be there yet. */
static bool
exists(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, workflow_id);
    request->workflow_execution->run_id = (char *)run_id;
    struct error *err = fixture_call(fixture, request, NULL);
    EXPECT(err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS);
    return err == NULL;
}

API(HistoryEvent) *
child_tree_await(struct fixture *fixture, const char *workflow_id, const char *run_id,
                 API(HistoryEvent__AttributesCase) kind)
{
    for (int try = 0; try < TRIES_MAX; try++) {
        const API(History) *history = exists(fixture, workflow_id, run_id)
                                          ? whole_history(fixture, workflow_id, run_id)
                                          : NULL;
        for (size_t i = 0; history != NULL && i < history->n_events; i++)
            if (history->events[i]->attributes_case == kind)
                return history->events[i];
        child_tree_sleep(fixture, PAUSE);
    }
    TEST_FAIL("%s has no %s", workflow_id, event_name(kind));
}

size_t
child_tree_count(struct fixture *fixture, const char *workflow_id, const char *run_id,
                 API(HistoryEvent__AttributesCase) kind)
{
    const API(History) *history = whole_history(fixture, workflow_id, run_id);
    size_t count = 0;
    for (size_t i = 0; i < history->n_events; i++)
        count += history->events[i]->attributes_case == kind;
    return count;
}
