/* external_test.c - workflows that signal others and ask for their end. */
#include "api/test/child_tree.h"

#define JOINED(first, second, third) API_VALUE(first##second##third)
#define CAUSE(kind, name)                                                                          \
    JOINED(kind##_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE__,                                      \
           kind##_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_, name)

/* Another workflow, which polls list "work" too and has decided once. */
static const char *
begin_target(struct fixture *fixture)
{
    return child_tree_begin(fixture, "target", decide_marker(fixture));
}

static void
expect_signaled(struct fixture *fixture, const char *run_id)
{
    const API(HistoryEvent) *event = child_tree_await(
        fixture, "source", "", CHILD_TREE_EVENT(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED));
    const API(ExternalWorkflowExecutionSignaledEventAttributes) *signaled =
        event->external_workflow_execution_signaled_event_attributes;
    EXPECT_EQ(signaled->initiated_event_id, 5);
    EXPECT_TEXT(signaled->domain, "orders");
    EXPECT_TEXT(signaled->workflow_execution->workflow_id, "target");
    EXPECT_TEXT(signaled->workflow_execution->run_id, run_id);
    EXPECT(slice_equal(presence_read_bytes(signaled->control), slice_text("control")));
    const API(WorkflowExecutionSignaledEventAttributes) *arrived =
        child_tree_await(fixture, "target", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_SIGNALED))
            ->workflow_execution_signaled_event_attributes;
    EXPECT_TEXT(arrived->signal_name, "hello");
    EXPECT_TEXT(arrived->identity, "history-service");
    EXPECT(slice_equal(presence_read_bytes(arrived->input->data), slice_text("\"there\"")));
}

SERVER_TEST(external, a_signal_reaches_the_run_and_its_sender_hears_of_it, "A-145")
{
    const char *run_id = begin_target(fixture);
    child_tree_begin(fixture, "source", child_tree_signal(fixture, "target", run_id));
    expect_signaled(fixture, run_id);
    EXPECT_EQ(child_tree_count(fixture, "source", "",
                               CHILD_TREE_EVENT(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED)),
              1u);
}

SERVER_TEST(external, without_a_run_id_the_current_run_is_signalled, "A-146")
{
    begin_target(fixture);
    child_tree_begin(fixture, "source", child_tree_signal(fixture, "target", ""));
    expect_signaled(fixture, "");
}

static void
expect_signal_failed(struct fixture *fixture, const char *target)
{
    const API(SignalExternalWorkflowExecutionFailedEventAttributes) *failed =
        child_tree_await(fixture, "source", "",
                         CHILD_TREE_EVENT(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED))
            ->signal_external_workflow_execution_failed_event_attributes;
    EXPECT_EQ(failed->cause, CAUSE(SIGNAL, UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION));
    EXPECT_EQ(failed->initiated_event_id, 5);
    EXPECT_TEXT(failed->workflow_execution->workflow_id, target);
    EXPECT(poll_decision(fixture, "work")->task_token.len > 0); /* the worker is told */
}

SERVER_TEST(external, a_signal_for_nobody_fails, "A-147")
{
    child_tree_begin(fixture, "source", child_tree_signal(fixture, "nobody", ""));
    expect_signal_failed(fixture, "nobody");
}

SERVER_TEST(external, a_workflow_does_not_signal_itself, "A-148")
{
    child_tree_begin(fixture, "source", child_tree_signal(fixture, "source", ""));
    expect_signal_failed(fixture, "source");
}

static void
signal_a_stranger(struct fixture *fixture)
{
    API(Decision) *decision = child_tree_signal(fixture, "target", "");
    decision->signal_external_workflow_execution_decision_attributes->child_workflow_only = true;
    begin_target(fixture);
    child_tree_begin(fixture, "source", decision);
    expect_signal_failed(fixture, "target");
    EXPECT_EQ(
        child_tree_count(fixture, "target", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_SIGNALED)), 0u);
}

static void
signal_a_child(struct fixture *fixture)
{
    API(Decision) *decision = child_tree_signal(fixture, "kid", "");
    decision->signal_external_workflow_execution_decision_attributes->child_workflow_only = true;
    child_tree_begin(fixture, "source",
                     child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(INVALID)));
    child_tree_decide(fixture, "work", "source", decision);
    child_tree_await(fixture, "source", "", CHILD_TREE_EVENT(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED));
    EXPECT_EQ(child_tree_count(fixture, "kid", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_SIGNALED)),
              1u);
}

TEST(external, a_signal_for_children_reaches_children_only, "A-149")
{
    fixture_run(signal_a_stranger);
    fixture_run(signal_a_child);
}

SERVER_TEST(external, a_cancel_request_names_who_asked, "A-153")
{
    begin_target(fixture);
    const char *source_run =
        child_tree_begin(fixture, "source", child_tree_cancel(fixture, "target"));
    const API(ExternalWorkflowExecutionCancelRequestedEventAttributes) *requested =
        child_tree_await(fixture, "source", "",
                         CHILD_TREE_EVENT(EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED))
            ->external_workflow_execution_cancel_requested_event_attributes;
    EXPECT_EQ(requested->initiated_event_id, 5);
    EXPECT_TEXT(requested->workflow_execution->workflow_id, "target");
    const API(WorkflowExecutionCancelRequestedEventAttributes) *arrived =
        child_tree_await(fixture, "target", "",
                         CHILD_TREE_EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED))
            ->workflow_execution_cancel_requested_event_attributes;
    EXPECT_TEXT(arrived->identity, "history-service");
    EXPECT_TEXT(arrived->external_execution_info->workflow_execution->workflow_id, "source");
    EXPECT_TEXT(arrived->external_execution_info->workflow_execution->run_id, source_run);
    EXPECT_EQ(arrived->external_execution_info->initiated_id, 5);
}

static void
expect_cancel_failed(struct fixture *fixture, int cause)
{
    const API(RequestCancelExternalWorkflowExecutionFailedEventAttributes) *failed =
        child_tree_await(fixture, "source", "",
                         CHILD_TREE_EVENT(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED))
            ->request_cancel_external_workflow_execution_failed_event_attributes;
    EXPECT_EQ(failed->cause, cause);
    EXPECT_EQ(failed->initiated_event_id, 5);
}

static void
cancel_nobody(struct fixture *fixture)
{
    child_tree_begin(fixture, "source", child_tree_cancel(fixture, "nobody"));
    expect_cancel_failed(fixture, CAUSE(CANCEL, UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION));
}

static void
cancel_a_closed_one(struct fixture *fixture)
{
    begin_target(fixture);
    terminate_run(fixture, "target");
    child_tree_begin(fixture, "source", child_tree_cancel(fixture, "target"));
    expect_cancel_failed(fixture, CAUSE(CANCEL, WORKFLOW_ALREADY_COMPLETED));
}

static void
cancel_twice(struct fixture *fixture)
{
    begin_target(fixture);
    child_tree_begin(fixture, "source", child_tree_cancel(fixture, "target"),
                     child_tree_cancel(fixture, "target"));
    child_tree_sleep(fixture, NS_PER_S);
    EXPECT_EQ(child_tree_count(fixture, "source", "",
                               CHILD_TREE_EVENT(EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED)),
              2u); /* one that was asked for already is a success */
    EXPECT_EQ(child_tree_count(fixture, "target", "",
                               CHILD_TREE_EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED)),
              1u);
}

TEST(external, a_cancel_request_for_nobody_fails_and_says_why, "A-154")
{
    fixture_run(cancel_nobody);
    fixture_run(cancel_a_closed_one);
    fixture_run(cancel_twice);
}
