/* child_tree.c - see child_tree.h. */
#include "api/test/child_tree.h"

#define TRIES_MAX 2000
#define PAUSE     (10 * NS_PER_MS)

API(Decision) *
child_tree_decision(struct fixture *fixture, API(Decision__AttributesCase) kind)
{
    const ProtobufCFieldDescriptor *field = message_find_field(API_TYPE(decision), (uint32_t)kind);
    API(Decision) *decision = message_new(fixture->arena, API_TYPE(decision));
    void *attributes = message_new(fixture->arena, field->descriptor);
    memcpy((char *)decision + field->offset, &attributes, sizeof attributes);
    decision->attributes_case = kind;
    return decision;
}

API(Decision) *
child_tree_start_child(struct fixture *fixture, const char *workflow_id,
                       API(ParentClosePolicy) policy)
{
    API(Decision) *decision = CHILD_TREE_DECISION(fixture, START_CHILD_WORKFLOW_EXECUTION);
    API(StartChildWorkflowExecutionDecisionAttributes) *child =
        decision->start_child_workflow_execution_decision_attributes;
    child->workflow_id = (char *)workflow_id;
    child->workflow_type = message_new(fixture->arena, API_TYPE(workflow_type));
    child->workflow_type->name = "kid";
    child->task_list = fixture_list(fixture, "kids");
    child->input = fixture_payload(fixture, "\"input\"");
    child->parent_close_policy = policy;
    child->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE);
    return decision;
}

API(Decision) *
child_tree_signal(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    API(Decision) *decision = CHILD_TREE_DECISION(fixture, SIGNAL_EXTERNAL_WORKFLOW_EXECUTION);
    API(SignalExternalWorkflowExecutionDecisionAttributes) *signal =
        decision->signal_external_workflow_execution_decision_attributes;
    signal->workflow_execution = fixture_execution(fixture, workflow_id);
    signal->workflow_execution->run_id = (char *)run_id;
    signal->signal_name = "hello";
    signal->input = fixture_payload(fixture, "\"there\"");
    signal->control = presence_make_bytes(slice_text("control"));
    return decision;
}

API(Decision) *
child_tree_cancel(struct fixture *fixture, const char *workflow_id)
{
    API(Decision) *decision =
        CHILD_TREE_DECISION(fixture, REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION);
    decision->request_cancel_external_workflow_execution_decision_attributes->workflow_execution =
        fixture_execution(fixture, workflow_id);
    return decision;
}

API(Decision) *
child_tree_end_canceled(struct fixture *fixture)
{
    API(Decision) *decision = CHILD_TREE_DECISION(fixture, CANCEL_WORKFLOW_EXECUTION);
    decision->cancel_workflow_execution_decision_attributes->details =
        fixture_payload(fixture, "as you wish");
    return decision;
}

API(Decision) *
child_tree_fail(struct fixture *fixture)
{
    API(Decision) *decision = CHILD_TREE_DECISION(fixture, FAIL_WORKFLOW_EXECUTION);
    API(Failure) *failure = message_new(fixture->arena, API_TYPE(failure));
    failure->reason = "broken";
    failure->details = presence_make_bytes(slice_text("why"));
    decision->fail_workflow_execution_decision_attributes->failure = failure;
    return decision;
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
    API(GetWorkflowExecutionHistoryResponse) *response;
    struct error *err =
        fixture_call(fixture, WORKFLOW_API "GetWorkflowExecutionHistory", &request->base,
                     API_TYPE(get_workflow_execution_history_response), &response);
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
