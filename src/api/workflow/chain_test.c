/* chain_test.c - runs that follow each other, by a cron schedule or a retry policy, where others
 * depend on them: parents are notified of the end of the chain, and end whichever run of it is
 * open; a reset run goes on as its base would have. */
#include "api/test/child_tree.h"

#define FAILED_CAUSE(name) API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_##name)

static API(StartChildWorkflowExecutionDecisionAttributes) *
attributes_of(API(Decision) *decision)
{
    return decision->start_child_workflow_execution_decision_attributes;
}

/* The first event of the child's current run. */
static const API(WorkflowExecutionStartedEventAttributes) *
current_start(struct fixture *fixture)
{
    return child_tree_await(fixture, "kid", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_STARTED))
        ->workflow_execution_started_event_attributes;
}

static const char *
current_run(struct fixture *fixture)
{
    return run_describe(fixture, "kid", "")->workflow_execution_info->workflow_execution->run_id;
}

/* How often the parent was told of an end. */
static size_t
count_ends(struct fixture *fixture)
{
    static const API(HistoryEvent__AttributesCase) kinds[] = {
        CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED),
        CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_FAILED),
        CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_CANCELED),
        CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_TIMED_OUT),
        CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_TERMINATED)};
    size_t count = 0;
    for (size_t i = 0; i < array_length(kinds); i++)
        count += child_tree_count(fixture, "parent", "", kinds[i]);
    return count;
}

/* --- by a schedule ---- */

/* A parent whose child has completed two runs, and waits for the third fire. Its first run. */
static const char *
begin_cron(struct fixture *fixture, API(ParentClosePolicy) policy)
{
    API(Decision) *decision = child_tree_start_child(fixture, "kid", policy);
    attributes_of(decision)->cron_schedule = "@every 3s";
    child_tree_begin(fixture, "parent", decision);
    const char *first =
        child_tree_await(fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_STARTED))
            ->child_workflow_execution_started_event_attributes->workflow_execution->run_id;
    EXPECT_EQ(current_start(fixture)->first_decision_task_backoff->seconds, 3);
    for (int i = 0; i < 2; i++)
        child_tree_decide(fixture, "kids", "kid", decide_end(fixture));
    const API(WorkflowExecutionStartedEventAttributes) *third = current_start(fixture);
    EXPECT_TEXT(third->cron_schedule, "@every 3s");
    EXPECT_TEXT(third->first_execution_run_id, first);
    EXPECT_TEXT(third->parent_execution_info->workflow_execution->workflow_id, "parent");
    EXPECT_EQ(count_ends(fixture), 0u);
    EXPECT_EQ(run_describe(fixture, "parent", "")->n_pending_children, 1u);
    return first;
}

SERVER_TEST(chain, a_child_by_a_schedule_runs_on_until_it_is_terminated, "A-167")
{
    const char *first = begin_cron(fixture, CHILD_TREE_POLICY(INVALID));
    const char *current = current_run(fixture);
    EXPECT(strcmp(first, current) != 0);
    terminate_run(fixture, "kid");
    const API(ChildWorkflowExecutionTerminatedEventAttributes) *terminated =
        child_tree_await(fixture, "parent", "",
                         CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_TERMINATED))
            ->child_workflow_execution_terminated_event_attributes;
    EXPECT_TEXT(terminated->workflow_execution->run_id, current);
    EXPECT_EQ(terminated->initiated_event_id, 5);
    child_tree_sleep(fixture, 10 * NS_PER_S);
    EXPECT_EQ(count_ends(fixture), 1u);
    EXPECT_TEXT(current_run(fixture), current); /* none came after it */
}

SERVER_TEST(chain, whichever_run_of_a_schedule_is_there_is_terminated_with_the_parent, "A-163",
            "A-167")
{
    begin_cron(fixture, CHILD_TREE_POLICY(TERMINATE));
    child_tree_decide(fixture, "work", "parent", decide_end(fixture));
    EXPECT_TEXT(
        child_tree_await(fixture, "kid", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_TERMINATED))
            ->workflow_execution_terminated_event_attributes->reason,
        "by parent close policy");
}

SERVER_TEST(chain, a_child_by_a_schedule_that_is_asked_to_end_has_no_next_run, "A-163", "A-187")
{
    begin_cron(fixture, CHILD_TREE_POLICY(REQUEST_CANCEL));
    const char *current = current_run(fixture);
    child_tree_decide(fixture, "work", "parent", decide_end(fixture));
    child_tree_await(fixture, "kid", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED));
    child_tree_decide(fixture, "kids", "kid", child_tree_end_canceled(fixture));
    child_tree_sleep(fixture, 10 * NS_PER_S);
    EXPECT_TEXT(current_run(fixture), current);
}

SERVER_TEST(chain, a_child_with_a_schedule_that_is_none_is_refused, "A-182")
{
    API(Decision) *decision = child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(INVALID));
    attributes_of(decision)->cron_schedule = "* * *";
    child_tree_begin(fixture, "parent", decision);
    const API(DecisionTaskFailedEventAttributes) *failed =
        child_tree_await(fixture, "parent", "", CHILD_TREE_EVENT(DECISION_TASK_FAILED))
            ->decision_task_failed_event_attributes;
    EXPECT_EQ(failed->cause, FAILED_CAUSE(BAD_START_CHILD_EXECUTION_ATTRIBUTES));
    EXPECT(slice_equal(presence_read_bytes(failed->failure->details),
                       slice_text("Invalid CronSchedule, failed to parse: \"* * *\", err: expected "
                                  "exactly 5 fields, found 3: [* * *]")));
}

/* --- tried again ---- */

static API(Decision) *
start_with_attempts(struct fixture *fixture, int attempts)
{
    API(Decision) *decision = child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(INVALID));
    API(RetryPolicy) *policy = API_NEW(
        fixture->arena, retry_policy, .initial_interval = presence_make_duration(fixture->arena, 1),
        .backoff_coefficient = 1, .maximum_attempts = attempts);
    attributes_of(decision)->retry_policy = policy;
    return decision;
}

SERVER_TEST(chain, a_parent_hears_of_the_last_attempt_of_its_child, "A-168")
{
    child_tree_begin(fixture, "parent", start_with_attempts(fixture, 3));
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(count_ends(fixture), 0u);
        EXPECT_EQ(current_start(fixture)->attempt, i);
        child_tree_decide(fixture, "kids", "kid", child_tree_fail(fixture));
    }
    const API(ChildWorkflowExecutionFailedEventAttributes) *failed =
        child_tree_await(fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_FAILED))
            ->child_workflow_execution_failed_event_attributes;
    EXPECT_TEXT(failed->failure->reason, "broken");
    EXPECT_TEXT(failed->workflow_execution->run_id, current_run(fixture));
    EXPECT_EQ(count_ends(fixture), 1u);
    EXPECT_EQ(current_start(fixture)->attempt, 2);
}

SERVER_TEST(chain, attempts_that_time_out_count_too, "A-168")
{
    API(Decision) *decision = start_with_attempts(fixture, 3);
    attributes_of(decision)->execution_start_to_close_timeout =
        presence_make_duration(fixture->arena, 5);
    child_tree_begin(fixture, "parent", decision);
    child_tree_sleep(fixture,
                     2 * 6 * NS_PER_S + NS_PER_S); /* two attempts and what comes between */
    EXPECT_EQ(count_ends(fixture), 0u);
    EXPECT_EQ(current_start(fixture)->attempt, 2);
    EXPECT_TEXT(current_start(fixture)->continued_failure->reason,
                "cadenceInternal:Timeout START_TO_CLOSE");
    child_tree_sleep(fixture, 6 * NS_PER_S);
    child_tree_await(fixture, "parent", "", CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_TIMED_OUT));
    EXPECT_EQ(count_ends(fixture), 1u);
}

SERVER_TEST(chain, a_child_that_succeeds_at_last_has_completed, "A-168")
{
    child_tree_begin(fixture, "parent", start_with_attempts(fixture, 3));
    child_tree_decide(fixture, "kids", "kid", child_tree_fail(fixture));
    child_tree_decide(fixture, "kids", "kid", decide_end(fixture));
    const API(ChildWorkflowExecutionCompletedEventAttributes) *completed =
        child_tree_await(fixture, "parent", "",
                         CHILD_TREE_EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED))
            ->child_workflow_execution_completed_event_attributes;
    EXPECT_TEXT(completed->workflow_execution->run_id, current_run(fixture));
    EXPECT_EQ(count_ends(fixture), 1u);
}

/* --- reset ---- */

/* Back to the first decision of this run. */
static const char *
reset(struct fixture *fixture, const char *run_id)
{
    API(ResetWorkflowExecutionRequest) *request = API_NEW(
        fixture->arena, reset_workflow_execution_request, .domain = "orders",
        .workflow_execution = fixture_execution_of(fixture, "wf", run_id), .reason = "bad code",
        .decision_finish_event_id = 4, .request_id = fixture_uuid(fixture));
    API(ResetWorkflowExecutionResponse) *response = fixture_ok(fixture, request);
    return response->run_id;
}

static const API(WorkflowExecutionInfo) *
current_of(struct fixture *fixture, const char *workflow_id)
{
    return run_describe(fixture, workflow_id, "")->workflow_execution_info;
}

/* The base run waited most of an hour for its fire; the one that the reset made waits for nothing.
 * What comes after it is counted from the reset: no fire is skipped. */
SERVER_TEST(chain, a_run_that_was_reset_goes_on_by_its_schedule, "A-184", "A-202")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->cron_schedule = "@every 1h";
    const char *first = run_start_by(fixture, request);
    child_tree_sleep(fixture, 3600 * NS_PER_S);
    child_tree_decide(fixture, "work", "wf", decide_end(fixture));
    child_tree_sleep(fixture, 600 * NS_PER_S); /* the second run waits */
    const char *second = current_of(fixture, "wf")->workflow_execution->run_id;
    EXPECT(strcmp(first, second) != 0);
    const char *third = reset(fixture, first);
    const API(WorkflowExecutionInfo) *info = current_of(fixture, "wf");
    EXPECT_TEXT(info->workflow_execution->run_id, third);
    EXPECT_EQ(info->execution_time->seconds, info->start_time->seconds);
    child_tree_await(fixture, "wf", second, CHILD_TREE_EVENT(WORKFLOW_EXECUTION_TERMINATED));
    child_tree_decide(fixture, "work", "wf", decide_end(fixture));
    const API(WorkflowExecutionContinuedAsNewEventAttributes) *last =
        child_tree_await(fixture, "wf", third,
                         CHILD_TREE_EVENT(WORKFLOW_EXECUTION_CONTINUED_AS_NEW))
            ->workflow_execution_continued_as_new_event_attributes;
    EXPECT(last->backoff_start_interval->seconds > 3590 &&
           last->backoff_start_interval->seconds <= 3600);
    const API(WorkflowExecutionStartedEventAttributes) *next =
        child_tree_await(fixture, "wf", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_STARTED))
            ->workflow_execution_started_event_attributes;
    EXPECT_TEXT(next->cron_schedule, "@every 1h");
    EXPECT_TEXT(next->first_execution_run_id, first);
    EXPECT(slice_equal(presence_read_bytes(next->input->data), slice_text("{}")));
}

SERVER_TEST(chain, a_run_that_was_reset_is_tried_again_as_its_base_was, "A-190")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->retry_policy = API_NEW(fixture->arena, retry_policy,
                                    .initial_interval = presence_make_duration(fixture->arena, 1),
                                    .backoff_coefficient = 1, .maximum_attempts = 2);
    const char *first = run_start_by(fixture, request);
    for (int i = 0; i < 2; i++)
        child_tree_decide(fixture, "work", "wf", child_tree_fail(fixture));
    child_tree_await(fixture, "wf", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_FAILED));
    (void)reset(fixture, first); /* it has all its attempts again */
    for (int i = 0; i < 2; i++)
        child_tree_decide(fixture, "work", "wf", child_tree_fail(fixture));
    child_tree_await(fixture, "wf", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_FAILED));
    EXPECT_EQ(child_tree_await(fixture, "wf", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_STARTED))
                  ->workflow_execution_started_event_attributes->attempt,
              1);
}
