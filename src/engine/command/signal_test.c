/* Signals, signal-with-start and requests to cancel. */
#include "base/check.h"
#include "engine/command/test/fixture.h"
#include "wire/errors.h"
#include "wire/message.h"

#define POLICY(name) API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_##name)
#define FIRST_TWO    "WorkflowExecutionStarted DecisionTaskScheduled"
#define FIRST_FOUR   FIRST_TWO " DecisionTaskStarted DecisionTaskCompleted"

/* A run that waits: its first decision is done. */
static struct fixture *
waiting_run(void)
{
    struct fixture *fixture = fixture_new();
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture));
    return fixture;
}

static void
end_run(struct fixture *fixture, API(Decision) *how)
{
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, how));
}

COMMAND_TEST_IN(signal, a_signal_is_written_and_schedules_a_decision, waiting_run(), "A-129")
{
    EXPECT_OK(fixture_signal(fixture, "go", "r1"));
    EXPECT_HISTORY(fixture, FIRST_FOUR " WorkflowExecutionSignaled DecisionTaskScheduled");
    const API(WorkflowExecutionSignaledEventAttributes) *signal =
        fixture_event(fixture, 5)->workflow_execution_signaled_event_attributes;
    EXPECT_TEXT(signal->signal_name, "go");
    EXPECT_TEXT(fixture_payload_text(fixture, signal->input), "go");
    EXPECT_TEXT(signal->identity, "client");
    EXPECT_TEXT(signal->request_id, "r1");
}

COMMAND_TEST(signal, without_a_run_or_after_its_end_it_is_refused, "A-130")
{
    EXPECT_KIND(fixture_signal(fixture, "go", ""), ERR_ENTITY_NOT_EXISTS);
    fixture_begin(fixture);
    end_run(fixture, fixture_complete_run(fixture));
    EXPECT_KIND(fixture_signal(fixture, "go", ""), ERR_ALREADY_COMPLETED);
}

COMMAND_TEST_IN(signal, the_same_request_twice_is_one_event_also_after_the_end, waiting_run(),
                "A-131")
{
    EXPECT_OK(fixture_signal(fixture, "go", "r1"));
    EXPECT_OK(fixture_signal(fixture, "go", "r1"));
    EXPECT_HISTORY(fixture, FIRST_FOUR " WorkflowExecutionSignaled DecisionTaskScheduled");
    end_run(fixture, fixture_complete_run(fixture));
    EXPECT_OK(fixture_signal(fixture, "go", "r1"));
    EXPECT_KIND(fixture_signal(fixture, "go", "r2"), ERR_ALREADY_COMPLETED);
}

COMMAND_TEST_IN(signal, signals_keep_their_order_and_share_a_decision, waiting_run(), "A-133")
{
    EXPECT_OK(fixture_signal(fixture, "one", ""));
    EXPECT_OK(fixture_signal(fixture, "two", ""));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_signal(fixture, "three", "")); /* buffered */
    EXPECT_OK(fixture_signal(fixture, "four", ""));
    EXPECT_OK(fixture_complete(fixture));
    EXPECT_HISTORY(fixture, FIRST_FOUR " WorkflowExecutionSignaled DecisionTaskScheduled "
                                       "WorkflowExecutionSignaled DecisionTaskStarted "
                                       "DecisionTaskCompleted WorkflowExecutionSignaled "
                                       "WorkflowExecutionSignaled DecisionTaskScheduled");
    static const struct {
        int64_t event_id;
        const char *name;
    } wanted[] = {{5, "one"}, {7, "two"}, {10, "three"}, {11, "four"}};
    for (size_t i = 0; i < array_length(wanted); i++)
        EXPECT_TEXT(fixture_event(fixture, wanted[i].event_id)
                        ->workflow_execution_signaled_event_attributes->signal_name,
                    wanted[i].name);
}

COMMAND_TEST(signal, a_run_takes_so_many_signals_and_no_more, "A-134")
{
    fixture_configure(fixture, "history.maximumSignalsPerExecution: [{value: 3}]\n");
    fixture_begin(fixture);
    for (int i = 0; i < 3; i++)
        EXPECT_OK(fixture_signal(fixture, "go", ""));
    struct error *refusal = fixture_signal(fixture, "go", "");
    EXPECT_KIND(refusal, ERR_LIMIT_EXCEEDED);
    EXPECT_TEXT(refusal->message, "exceeded workflow execution limit for signal events");
    EXPECT_KIND(fixture_signal_with_start(fixture, fixture_start_request(fixture), "go"),
                ERR_LIMIT_EXCEEDED);
}

COMMAND_TEST_IN(signal, a_deprecated_domain_takes_no_signal_but_a_termination, waiting_run(),
                "A-136", "A-197")
{
    STORED(DomainRecord) *record = fixture_domain_record(fixture);
    record->domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED);
    fixture_set_domain(fixture, record);
    struct error *refusal = fixture_signal(fixture, "go", "");
    EXPECT_KIND(refusal, ERR_BAD_REQUEST);
    EXPECT_TEXT(refusal->message, "Domain is deprecated.");
    EXPECT_OK(fixture_terminate(fixture));
}

COMMAND_TEST(signal, a_signal_while_the_last_decision_is_made_is_not_lost, "A-137")
{
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_signal(fixture, "late", ""));
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
    EXPECT(run_is_open(fixture_run(fixture)));
    EXPECT_HISTORY(fixture, FIRST_TWO " DecisionTaskStarted DecisionTaskFailed "
                                      "WorkflowExecutionSignaled DecisionTaskScheduled");
}

/* ---- signal with start ---- */

COMMAND_TEST_IN(signal_with_start, an_open_run_is_signalled, waiting_run(), "A-138")
{
    EXPECT_OK(fixture_signal_with_start(fixture, fixture_start_request(fixture), "go"));
    EXPECT_TEXT(fixture->started.run_id, fixture_run(fixture)->core->run_id);
    EXPECT(!fixture->started.is_new);
    EXPECT_HISTORY(fixture, FIRST_FOUR " WorkflowExecutionSignaled DecisionTaskScheduled");
}

COMMAND_TEST(signal_with_start, without_an_open_run_one_begins_with_the_signal, "A-139")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->header = API_NEW(fixture->arena, header);
    for (int i = 0; i < 2; i++) {
        request->request_id = fixture_request_id(fixture);
        EXPECT_OK(fixture_signal_with_start(fixture, request, "go"));
        EXPECT(fixture->started.is_new);
        EXPECT_HISTORY(fixture, "WorkflowExecutionStarted WorkflowExecutionSignaled "
                                "DecisionTaskScheduled");
        EXPECT(fixture_event(fixture, 1)->workflow_execution_started_event_attributes->header !=
               NULL);
        end_run(fixture, fixture_complete_run(fixture));
    }
    EXPECT_EQ(fixture->run_count, 2);
}

COMMAND_TEST(signal_with_start, a_delayed_run_begins_with_the_signal_and_waits, "A-041")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->delay_start = fixture_duration(fixture, 10);
    EXPECT_OK(fixture_signal_with_start(fixture, request, "go"));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted WorkflowExecutionSignaled");
    fixture_advance(fixture, 10);
    EXPECT_HISTORY(fixture,
                   "WorkflowExecutionStarted WorkflowExecutionSignaled DecisionTaskScheduled");
}

COMMAND_TEST(signal_with_start, after_a_completed_run_the_policy_decides, "A-140")
{
    fixture_begin(fixture);
    end_run(fixture, fixture_complete_run(fixture));
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->workflow_id_reuse_policy = POLICY(REJECT_DUPLICATE);
    struct error *refusal = fixture_signal_with_start(fixture, request, "go");
    EXPECT_KIND(refusal, ERR_ALREADY_STARTED);
    EXPECT(strstr(refusal->message, "reject duplicate workflow ID") != NULL);
    request->workflow_id_reuse_policy = POLICY(ALLOW_DUPLICATE_FAILED_ONLY);
    refusal = fixture_signal_with_start(fixture, request, "go");
    EXPECT_KIND(refusal, ERR_ALREADY_STARTED);
    EXPECT(strstr(refusal->message, "allow duplicate workflow ID if last run failed") != NULL);

    fixture_begin(fixture);
    EXPECT_OK(fixture_terminate(fixture));
    EXPECT_OK(fixture_signal_with_start(fixture, request, "go"));
    EXPECT(fixture->started.is_new);
}

COMMAND_TEST_IN(signal_with_start, terminate_if_running_ends_the_open_run_first, waiting_run(),
                "A-141")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->workflow_id_reuse_policy = POLICY(TERMINATE_IF_RUNNING);
    EXPECT_OK(fixture_signal_with_start(fixture, request, "go"));
    EXPECT_HISTORY_OF(fixture, 0, FIRST_FOUR " WorkflowExecutionTerminated");
    EXPECT_HISTORY_OF(fixture, 1,
                      "WorkflowExecutionStarted WorkflowExecutionSignaled "
                      "DecisionTaskScheduled");
    EXPECT_TEXT(
        fixture_event_of(fixture, 0, 5)->workflow_execution_terminated_event_attributes->reason,
        "TerminateIfRunning Policy");
}

COMMAND_TEST(signal_with_start, a_repeat_changes_nothing_while_open_and_after, "A-142")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    EXPECT_OK(fixture_signal_with_start(fixture, request, "go"));
    const char *run_id = fixture->started.run_id;
    EXPECT_OK(fixture_signal_with_start(fixture, request, "go"));
    EXPECT_TEXT(fixture->started.run_id, run_id);
    EXPECT_HISTORY(fixture,
                   "WorkflowExecutionStarted WorkflowExecutionSignaled DecisionTaskScheduled");
    end_run(fixture, fixture_complete_run(fixture));
    EXPECT_OK(fixture_signal_with_start(fixture, request, "go"));
    EXPECT_TEXT(fixture->started.run_id, run_id);

    API(StartWorkflowExecutionRequest) *plain = fixture_start_request(fixture);
    EXPECT_OK(fixture_start(fixture, plain));
    run_id = fixture->started.run_id;
    end_run(fixture, fixture_complete_run(fixture));
    EXPECT_OK(fixture_signal_with_start(fixture, plain, "go"));
    EXPECT_TEXT(fixture->started.run_id, run_id);
    EXPECT_EQ(fixture->run_count, 2);
}

/* ---- cancel ---- */

COMMAND_TEST_IN(request_cancel, the_run_is_told_and_may_close_as_canceled, waiting_run(), "A-150")
{
    EXPECT_OK(fixture_request_cancel(fixture, "c1"));
    EXPECT_HISTORY(fixture, FIRST_FOUR " WorkflowExecutionCancelRequested DecisionTaskScheduled");
    const API(WorkflowExecutionCancelRequestedEventAttributes) *asked =
        fixture_event(fixture, 5)->workflow_execution_cancel_requested_event_attributes;
    EXPECT_TEXT(asked->cause, "enough");
    EXPECT_TEXT(asked->identity, "client");
    EXPECT_TEXT(asked->request_id, "c1");
    end_run(fixture, fixture_cancel_run(fixture));
    const API(WorkflowExecutionCanceledEventAttributes) *canceled =
        fixture_event(fixture, 9)->workflow_execution_canceled_event_attributes;
    EXPECT_TEXT(fixture_payload_text(fixture, canceled->details), "cancelled");
    EXPECT_EQ(canceled->decision_task_completed_event_id, 8);
}

COMMAND_TEST_IN(request_cancel, a_second_one_is_refused_a_repeat_is_not, waiting_run(), "A-151")
{
    EXPECT_OK(fixture_request_cancel(fixture, "c1"));
    EXPECT_OK(fixture_request_cancel(fixture, "c1"));
    struct error *refusal = fixture_request_cancel(fixture, "c2");
    EXPECT_KIND(refusal, ERR_CANCELLATION_ALREADY_REQUESTED);
    EXPECT_TEXT(refusal->message, "cancellation already requested for this workflow execution");
    EXPECT_KIND(fixture_request_cancel(fixture, ""), ERR_CANCELLATION_ALREADY_REQUESTED);
    EXPECT_HISTORY(fixture, FIRST_FOUR " WorkflowExecutionCancelRequested DecisionTaskScheduled");
}

COMMAND_TEST_IN(request_cancel, after_the_end_only_the_request_that_ended_it_is_fine, waiting_run(),
                "A-152")
{
    EXPECT_OK(fixture_request_cancel(fixture, "c1"));
    end_run(fixture, fixture_cancel_run(fixture));
    EXPECT_OK(fixture_request_cancel(fixture, "c1"));
    EXPECT_KIND(fixture_request_cancel(fixture, "c2"), ERR_ALREADY_COMPLETED);
    EXPECT_KIND(fixture_request_cancel(fixture, ""), ERR_ALREADY_COMPLETED);

    fixture_begin(fixture);
    EXPECT_OK(fixture_request_cancel(fixture, "c1"));
    end_run(fixture, fixture_complete_run(fixture));
    EXPECT_KIND(fixture_request_cancel(fixture, "c1"), ERR_ALREADY_COMPLETED);
}

struct chain_call {
    API(RequestCancelWorkflowExecutionRequest) *cancel;
    API(TerminateWorkflowExecutionRequest) *terminate;
};

static struct error *
decide_in_chain(void *context, struct step *step)
{
    const struct chain_call *call = context;
    return call->cancel != NULL ? command_request_cancel(step, call->cancel)
                                : command_terminate(step, call->terminate);
}

COMMAND_TEST(request_cancel, of_another_chain_of_runs_it_does_not_exist, "A-155")
{
    fixture_begin(fixture);
    end_run(fixture, fixture_continue_as_new(fixture));
    EXPECT_EQ(fixture->run_count, 2);
    struct chain_call cancel = {
        .cancel = API_NEW(fixture->arena, request_cancel_workflow_execution_request)};
    struct chain_call terminate = {
        .terminate = API_NEW(fixture->arena, terminate_workflow_execution_request)};
    cancel.cancel->first_execution_run_id = "another";
    terminate.terminate->first_execution_run_id = fixture_run_at(fixture, 1)->core->run_id;
    struct error *refusal = fixture_step(fixture, decide_in_chain, &cancel);
    EXPECT_KIND(refusal, ERR_ENTITY_NOT_EXISTS);
    EXPECT_TEXT(refusal->message, "Workflow execution not found");
    EXPECT_KIND(fixture_step(fixture, decide_in_chain, &terminate), ERR_ENTITY_NOT_EXISTS);

    cancel.cancel->first_execution_run_id = fixture_run_at(fixture, 0)->core->run_id;
    terminate.terminate->first_execution_run_id = fixture_run_at(fixture, 0)->core->run_id;
    EXPECT_OK(fixture_step(fixture, decide_in_chain, &cancel));
    EXPECT_OK(fixture_step(fixture, decide_in_chain, &terminate));
    EXPECT(!run_is_open(fixture_run(fixture)));
}

COMMAND_TEST(request_cancel, a_delayed_run_is_told_at_once)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->delay_start = fixture_duration(fixture, 10);
    EXPECT_OK(fixture_start(fixture, request));
    EXPECT_OK(fixture_request_cancel(fixture, "c1"));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted WorkflowExecutionCancelRequested "
                            "DecisionTaskScheduled");
    fixture_advance(fixture, 20); /* and not a second time */
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted WorkflowExecutionCancelRequested "
                            "DecisionTaskScheduled");
}
