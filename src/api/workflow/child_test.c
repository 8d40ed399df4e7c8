/* child_test.c - children as clients and workers see them, from the decision to the end of the
 * parent. Parent and child live in different shards, on either side of the outbox. */
#include "api/test/child_tree.h"

/* --- a whole life ---- */

static void
life(struct fixture *fixture)
{
    API(Decision) *decision = child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(INVALID));
    API(StartChildWorkflowExecutionDecisionAttributes) *attributes =
        decision->start_child_workflow_execution_decision_attributes;
    attributes->header = API_NEW(fixture->arena, header);
    API(Header__FieldsEntry) *entry = message_new(fixture->arena, API_TYPE(header__fields_entry));
    entry->key = "trace";
    entry->value = fixture_payload(fixture, "7");
    attributes->header->fields = &entry;
    attributes->header->n_fields = 1;
    attributes->memo = API_NEW(fixture->arena, memo);
    API(Memo__FieldsEntry) *note = message_new(fixture->arena, API_TYPE(memo__fields_entry));
    note->key = "note";
    note->value = fixture_payload(fixture, "1");
    attributes->memo->fields = &note;
    attributes->memo->n_fields = 1;
    const char *parent_run = child_tree_begin(fixture, "parent", decision);

    const API(HistoryEvent) *event =
        child_tree_await(fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED));
    const API(ChildWorkflowExecutionStartedEventAttributes) *started =
        event->child_workflow_execution_started_event_attributes;
    EXPECT_TEXT(started->domain, "orders");
    EXPECT_TEXT(started->workflow_execution->workflow_id, "kid");
    EXPECT_TEXT(started->workflow_type->name, "kid");
    EXPECT_EQ(started->initiated_event_id, 5);
    EXPECT_TEXT(started->header->fields[0]->key, "trace");
    const API(WorkflowExecutionStartedEventAttributes) *first =
        child_tree_await(fixture, "kid", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_STARTED))
            ->workflow_execution_started_event_attributes;
    EXPECT_TEXT(first->parent_execution_info->domain_name, "orders");
    EXPECT_TEXT(first->parent_execution_info->workflow_execution->workflow_id, "parent");
    EXPECT_TEXT(first->parent_execution_info->workflow_execution->run_id, parent_run);
    EXPECT_EQ(first->parent_execution_info->initiated_id, 5);
    EXPECT_TEXT(first->header->fields[0]->key, "trace");
    EXPECT_TEXT(first->memo->fields[0]->key, "note");
    /* What was not given is the parent's. */
    EXPECT_EQ(first->execution_start_to_close_timeout->seconds, 600);
    EXPECT_EQ(first->task_start_to_close_timeout->seconds, 10);

    API(DescribeWorkflowExecutionResponse) *described = run_describe(fixture, "parent", "");
    EXPECT_EQ(described->n_pending_children, 1);
    const API(PendingChildExecutionInfo) *pending = described->pending_children[0];
    EXPECT_TEXT(pending->domain, "orders");
    EXPECT_TEXT(pending->workflow_execution->workflow_id, "kid");
    EXPECT_TEXT(pending->workflow_execution->run_id, started->workflow_execution->run_id);
    EXPECT_TEXT(pending->workflow_type_name, "kid");
    EXPECT_EQ(pending->initiated_id, 5);
    EXPECT_EQ(pending->parent_close_policy, CHILD_TREE_POLICY(TERMINATE)); /* the default */

    child_tree_decide(fixture, "kids", "kid", decide_end(fixture));
    const API(ChildWorkflowExecutionCompletedEventAttributes) *completed =
        child_tree_await(fixture, "parent", "",
                         CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED))
            ->child_workflow_execution_completed_event_attributes;
    EXPECT_EQ(completed->initiated_event_id, 5);
    EXPECT_EQ(completed->started_event_id, event->event_id);
    EXPECT(slice_equal(presence_read_bytes(completed->result->data), slice_text("done")));
    EXPECT_EQ(run_describe(fixture, "parent", "")->n_pending_children, 0);
}

TEST(child, a_parent_hears_of_its_start_and_its_end, "A-156", "A-157", "A-158", "A-162", "A-173")
{
    fixture_run(life);
}

/* --- how it can end ---- */

SERVER_TEST(child, a_failure_reaches_the_parent_with_its_reason, "A-156")
{
    child_tree_begin(fixture, "parent",
                     child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(ABANDON)));
    child_tree_decide(fixture, "kids", "kid", child_tree_fail(fixture));
    const API(ChildWorkflowExecutionFailedEventAttributes) *failed =
        child_tree_await(fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_FAILED))
            ->child_workflow_execution_failed_event_attributes;
    EXPECT_TEXT(failed->failure->reason, "broken");
    EXPECT(slice_equal(presence_read_bytes(failed->failure->details), slice_text("why")));
}

SERVER_TEST(child, its_termination_reaches_the_parent, "A-156")
{
    child_tree_begin(fixture, "parent",
                     child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(ABANDON)));
    child_tree_await(fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED));
    terminate_run(fixture, "kid");
    const API(ChildWorkflowExecutionTerminatedEventAttributes) *terminated =
        child_tree_await(fixture, "parent", "",
                         CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_TERMINATED))
            ->child_workflow_execution_terminated_event_attributes;
    EXPECT_EQ(terminated->initiated_event_id, 5);
}

SERVER_TEST(child, its_timeout_reaches_the_parent, "A-156")
{
    API(Decision) *decision = child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(ABANDON));
    decision->start_child_workflow_execution_decision_attributes->execution_start_to_close_timeout =
        presence_make_duration(fixture->arena, 5);
    child_tree_begin(fixture, "parent", decision);
    child_tree_sleep(fixture, 6 * NS_PER_S);
    const API(ChildWorkflowExecutionTimedOutEventAttributes) *timed_out =
        child_tree_await(fixture, "parent", "",
                         CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_TIMED_OUT))
            ->child_workflow_execution_timed_out_event_attributes;
    EXPECT_EQ(timed_out->timeout_type, API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE));
}

SERVER_TEST(child, one_that_its_parent_cancels_ends_cancelled, "A-156", "A-169")
{
    API(Decision) *cancel = child_tree_cancel(fixture, "kid");
    cancel->request_cancel_external_workflow_execution_decision_attributes->child_workflow_only =
        true;
    child_tree_begin(fixture, "parent",
                     child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(ABANDON)));
    child_tree_decide(fixture, "kids", "kid", decide_marker(fixture));
    child_tree_decide(fixture, "work", "parent", cancel);
    child_tree_decide(fixture, "kids", "kid", child_tree_end_canceled(fixture));
    const API(ChildWorkflowExecutionCanceledEventAttributes) *canceled =
        child_tree_await(fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_CANCELED))
            ->child_workflow_execution_canceled_event_attributes;
    EXPECT(slice_equal(presence_read_bytes(canceled->details->data), slice_text("as you like")));
}

/* --- the id ---- */

#define FAILED(name)                                                                               \
    API_VALUE(CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE__CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_##name)

SERVER_TEST(child, an_id_that_runs_already_is_refused, "A-160")
{
    run_start(fixture, "kid");
    API(Decision) *decision = child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(INVALID));
    decision->start_child_workflow_execution_decision_attributes->control =
        presence_make_bytes(slice_text("c"));
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_TEXT(task->workflow_execution->workflow_id, "kid");
    child_tree_begin(fixture, "parent", decision);
    const API(StartChildWorkflowExecutionFailedEventAttributes) *failed =
        child_tree_await(fixture, "parent", "",
                         CHILD_TREE_EVENT(START_CHILD_WORKFLOW_EXECUTION_FAILED))
            ->start_child_workflow_execution_failed_event_attributes;
    EXPECT_EQ(failed->cause, FAILED(WORKFLOW_ALREADY_RUNNING));
    EXPECT_EQ(failed->initiated_event_id, 5);
    EXPECT_EQ(failed->decision_task_completed_event_id, 4);
    EXPECT(slice_equal(presence_read_bytes(failed->control), slice_text("c")));
    EXPECT_EQ(run_describe(fixture, "parent", "")->n_pending_children, 0);
}

/* A child that ended so, then another of its id with this policy. */
static void
reuse(struct fixture *fixture, bool is_good, API(WorkflowIdReusePolicy) policy,
      API(HistoryEvent__AttributesCase) expected)
{
    const char *parent = arena_format(fixture->arena, "parent-%d-%d", is_good, (int)policy);
    const char *kid = arena_format(fixture->arena, "kid-%d-%d", is_good, (int)policy);
    API(Decision) *again = child_tree_start_child(fixture, kid, CHILD_TREE_POLICY(ABANDON));
    again->start_child_workflow_execution_decision_attributes->workflow_id_reuse_policy = policy;
    child_tree_begin(fixture, parent,
                     child_tree_start_child(fixture, kid, CHILD_TREE_POLICY(ABANDON)));
    child_tree_decide(fixture, "kids", kid,
                      is_good ? decide_end(fixture) : child_tree_fail(fixture));
    child_tree_await(fixture, parent, "",
                     is_good ? CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED)
                             : CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_FAILED));
    child_tree_decide(fixture, "work", parent, again);
    bool is_refused = expected == CHILD_TREE_EVENT(START_CHILD_WORKFLOW_EXECUTION_FAILED);
    child_tree_await(fixture, parent, "",
                     is_refused ? expected
                                : CHILD_TREE_EVENT(START_CHILD_WORKFLOW_EXECUTION_INITIATED));
    child_tree_sleep(fixture, NS_PER_S);
    EXPECT_EQ(
        child_tree_count(fixture, parent, "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED)),
        is_refused ? 1u : 2u);
    EXPECT_EQ(child_tree_count(fixture, parent, "",
                               CHILD_TREE_EVENT(START_CHILD_WORKFLOW_EXECUTION_FAILED)),
              is_refused ? 1u : 0u);
    terminate_run(fixture, parent);
    if (!is_refused)
        child_tree_decide(fixture, "kids", kid, decide_end(fixture));
}

#define REUSE(name) API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_##name)

SERVER_TEST(child, an_id_is_used_again_as_its_policy_says, "A-160", "A-161")
{
    API(HistoryEvent__AttributesCase) refused =
                                          CHILD_TREE_EVENT(START_CHILD_WORKFLOW_EXECUTION_FAILED),
                                      taken = CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED);
    reuse(fixture, true, REUSE(REJECT_DUPLICATE), refused);
    reuse(fixture, true, REUSE(ALLOW_DUPLICATE_FAILED_ONLY), refused);
    reuse(fixture, true, REUSE(ALLOW_DUPLICATE), taken);
    reuse(fixture, false, REUSE(ALLOW_DUPLICATE_FAILED_ONLY), taken);
}

/* --- the first decision ---- */

SERVER_TEST(child, its_first_decision_waits_until_its_parent_has_recorded_the_start, "A-159")
{
    child_tree_begin(fixture, "parent",
                     child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(INVALID)));
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "kids");
    EXPECT_TEXT(task->workflow_execution->workflow_id, "kid");
    EXPECT_EQ(
        child_tree_count(fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED)),
        1u);
    const API(HistoryEvent) *known =
        child_tree_await(fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED));
    const API(HistoryEvent) *scheduled =
        child_tree_await(fixture, "kid", "", CHILD_TREE_EVENT(DECISION_TASK_SCHEDULED));
    int64_t parent_time = known->event_time->seconds * NS_PER_S + known->event_time->nanos;
    int64_t kid_time = scheduled->event_time->seconds * NS_PER_S + scheduled->event_time->nanos;
    EXPECT(parent_time <= kid_time);
}

/* --- continue-as-new ---- */

SERVER_TEST(child, of_one_that_continues_as_new_only_the_last_run_is_told, "A-165")
{
    child_tree_begin(fixture, "parent",
                     child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(INVALID)));
    child_tree_decide(fixture, "kids", "kid",
                      API_DECISION(fixture->arena, continue_as_new_workflow_execution));
    child_tree_decide(fixture, "kids", "kid", decide_end(fixture));
    const API(HistoryEvent) *event = child_tree_await(
        fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED));
    const API(HistoryEvent) *started =
        child_tree_await(fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED));
    const char *last =
        event->child_workflow_execution_completed_event_attributes->workflow_execution->run_id;
    const char *first =
        started->child_workflow_execution_started_event_attributes->workflow_execution->run_id;
    EXPECT(strcmp(first, last) != 0);
    const API(ParentExecutionInfo) *parent =
        child_tree_await(fixture, "kid", last, CHILD_TREE_EVENT(WORKFLOW_EXECUTION_STARTED))
            ->workflow_execution_started_event_attributes->parent_execution_info;
    EXPECT_TEXT(parent->workflow_execution->workflow_id, "parent");
}

/* --- the parent's end ---- */

/* The parent ends by this decision while its child runs. */
static void
part(struct fixture *fixture, API(ParentClosePolicy) policy, API(Decision) *end)
{
    child_tree_begin(fixture, "parent", child_tree_start_child(fixture, "kid", policy));
    child_tree_decide(fixture, "kids", "kid", decide_marker(fixture));
    child_tree_decide(fixture, "work", "parent", end);
    child_tree_sleep(fixture, NS_PER_S);
}

SERVER_TEST(child, it_is_terminated_with_its_parent, "A-163")
{
    part(fixture, CHILD_TREE_POLICY(TERMINATE), decide_end(fixture));
    const API(WorkflowExecutionTerminatedEventAttributes) *terminated =
        child_tree_await(fixture, "kid", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_TERMINATED))
            ->workflow_execution_terminated_event_attributes;
    EXPECT_TEXT(terminated->reason, "by parent close policy");
    EXPECT_TEXT(terminated->identity, "history-service");
}

SERVER_TEST(child, it_is_asked_to_end_with_its_parent, "A-163")
{
    part(fixture, CHILD_TREE_POLICY(REQUEST_CANCEL), child_tree_fail(fixture));
    child_tree_await(fixture, "kid", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED));
    child_tree_decide(fixture, "kids", "kid", child_tree_end_canceled(fixture));
}

SERVER_TEST(child, an_abandoned_one_goes_on, "A-163")
{
    part(fixture, CHILD_TREE_POLICY(ABANDON), decide_end(fixture));
    run_signal(fixture, "kid", "go on");
    EXPECT_EQ(
        child_tree_count(fixture, "kid", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED)),
        0u);
    child_tree_decide(fixture, "kids", "kid", decide_end(fixture));
}

SERVER_TEST(child, without_the_feature_all_are_abandoned, "A-162")
{
    fixture_set(fixture, "history.enableParentClosePolicy: [{value: false}]\n");
    part(fixture, CHILD_TREE_POLICY(TERMINATE), decide_end(fixture));
    run_signal(fixture, "kid", "go on");
    child_tree_decide(fixture, "kids", "kid", decide_end(fixture));
}

SERVER_TEST(child, a_parent_that_continues_as_new_parts_from_its_children, "A-166")
{
    part(fixture, CHILD_TREE_POLICY(TERMINATE),
         API_DECISION(fixture->arena, continue_as_new_workflow_execution));
    child_tree_await(fixture, "kid", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_TERMINATED));
}

/* More children than one portion holds. */
SERVER_TEST(child, many_are_ended_in_portions, "A-164")
{
    enum { CHILDREN = 25 };
    API(Decision) *decisions[CHILDREN];
    fixture_set(fixture, "history.parentClosePolicyBatchSize: [{value: 10}]\n");
    for (int i = 0; i < CHILDREN; i++)
        decisions[i] = child_tree_start_child(fixture, arena_format(fixture->arena, "kid-%d", i),
                                              CHILD_TREE_POLICY(TERMINATE));
    run_start(fixture, "parent");
    child_tree_decide_list(fixture, "work", "parent", decisions, CHILDREN);
    for (int i = 0; i < CHILDREN; i++)
        EXPECT(poll_decision(fixture, "kids")->task_token.len > 0);
    terminate_run(fixture, "parent");
    for (int i = 0; i < CHILDREN; i++)
        child_tree_await(fixture, arena_format(fixture->arena, "kid-%d", i), "",
                         CHILD_TREE_EVENT(WORKFLOW_EXECUTION_TERMINATED));
}

/* A child that was asked for and not started yet when its parent ends is never started. */
SERVER_TEST(child, one_whose_parent_ends_with_the_same_list_is_not_started)
{
    child_tree_begin(fixture, "parent",
                     child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(ABANDON)),
                     decide_end(fixture));
    child_tree_sleep(fixture, 30 * NS_PER_S);
    EXPECT_KIND(fixture_call(fixture, fixture_history(fixture, "kid"), NULL),
                ERR_ENTITY_NOT_EXISTS);
}

/* --- where it belongs ---- */

SERVER_TEST(child, it_belongs_where_its_parent_does, "A-172")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "parent");
    request->active_cluster_selection_policy =
        API_NEW(fixture->arena, active_cluster_selection_policy);
    run_start_by(fixture, request);
    child_tree_decide(fixture, "work", "parent",
                      child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(INVALID)));
    EXPECT(child_tree_await(fixture, "kid", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_STARTED))
               ->workflow_execution_started_event_attributes->active_cluster_selection_policy !=
           NULL);
}

SERVER_TEST(child, it_may_live_in_another_local_domain, "A-171")
{
    API(RegisterDomainRequest) *domain = API_NEW(
        fixture->arena, register_domain_request, .name = "other",
        .workflow_execution_retention_period = presence_make_duration(fixture->arena, 86400));
    EXPECT_OK(fixture_call(fixture, domain, NULL));
    API(Decision) *decision = child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(INVALID));
    decision->start_child_workflow_execution_decision_attributes->domain = "other";
    child_tree_begin(fixture, "parent", decision);
    const API(HistoryEvent) *started =
        child_tree_await(fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED));
    EXPECT_TEXT(started->child_workflow_execution_started_event_attributes->domain, "other");
    EXPECT_OK(API_CALL(fixture, NULL, terminate_workflow_execution, .domain = "other",
                       .workflow_execution = fixture_execution(fixture, "kid")));
    const API(HistoryEvent) *ended = child_tree_await(
        fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_TERMINATED));
    EXPECT_TEXT(ended->child_workflow_execution_terminated_event_attributes->domain, "other");
}
