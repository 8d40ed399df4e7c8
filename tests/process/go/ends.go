package main

// How runs end and go on: continue as new, resets, errors of the client.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/cadence"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/workflow"
)

// ---- headers ----

type traceKey struct{}

// traceCarrier brings one word from who starts a workflow to its code, through the header.
type traceCarrier struct{}

func (traceCarrier) Inject(ctx context.Context, out workflow.HeaderWriter) error {
	if word, is := ctx.Value(traceKey{}).(string); is {
		out.Set("trace", []byte(word))
	}
	return nil
}

func (traceCarrier) InjectFromWorkflow(ctx workflow.Context, out workflow.HeaderWriter) error {
	if word, is := ctx.Value(traceKey{}).(string); is {
		out.Set("trace", []byte(word))
	}
	return nil
}

func (traceCarrier) Extract(ctx context.Context, in workflow.HeaderReader) (context.Context, error) {
	err := in.ForEachKey(func(key string, value []byte) error {
		if key == "trace" {
			ctx = context.WithValue(ctx, traceKey{}, string(value))
		}
		return nil
	})
	return ctx, err
}

func (traceCarrier) ExtractToWorkflow(ctx workflow.Context, in workflow.HeaderReader) (workflow.Context, error) {
	err := in.ForEachKey(func(key string, value []byte) error {
		if key == "trace" {
			ctx = workflow.WithValue(ctx, traceKey{}, string(value))
		}
		return nil
	})
	return ctx, err
}

// ---- continue as new ----

func memoWorkflow(ctx workflow.Context, left int) (string, error) {
	if left > 0 {
		return "", workflow.NewContinueAsNewError(ctx, memoWorkflow, left-1)
	}
	memo := workflow.GetInfo(ctx).Memo.GetFields()["colour"]
	attributes := workflow.GetInfo(ctx).SearchAttributes.GetIndexedFields()["CustomKeywordField"]
	trace, _ := ctx.Value(traceKey{}).(string)
	return fmt.Sprint(strings.TrimSpace(string(memo)), " ", string(attributes), " ", trace), nil
}

func proveContinueAsNew(w *world) error {
	how := options("memo")
	how.Memo = map[string]interface{}{"colour": "blue"}
	how.SearchAttributes = map[string]interface{}{"CustomKeywordField": "word"}
	ctx := context.WithValue(w.context, traceKey{}, "from far")
	run, err := w.client.ExecuteWorkflow(ctx, how, memoWorkflow, 5)
	if err != nil {
		return err
	}
	return w.expectResult(run, `"blue" "word" from far`)
}

// ---- long histories ----

func longWorkflow(ctx workflow.Context, count int) (string, error) {
	ctx = withActivities(ctx)
	block := strings.Repeat("x", 1000)
	for i := 0; i < count; i++ {
		err := workflow.SideEffect(ctx, func(workflow.Context) interface{} { return block }).Get(&block)
		if err != nil {
			return "", err
		}
		if i%100 == 99 {
			if err := workflow.ExecuteActivity(ctx, echoActivity, "page").Get(ctx, nil); err != nil {
				return "", err
			}
		}
	}
	return "long", nil
}

func proveLongHistory(w *world) error {
	how := options("long")
	how.TaskList = "forgetful-" + listName // each decision reads all of it
	how.DecisionTaskStartToCloseTimeout = 10 * time.Second
	run, err := w.start(how, longWorkflow, 1500)
	if err != nil {
		return err
	}
	if err := w.expectResult(run, "long"); err != nil {
		return err
	}
	events, err := w.events("long", "")
	if err != nil || len(events) < 1500 {
		return fmt.Errorf("%d events, %v", len(events), err)
	}
	described, err := w.client.DescribeWorkflowExecution(w.context, "long", "")
	if err != nil {
		return err
	}
	return same("the length as described", fmt.Sprint(len(events)),
		fmt.Sprint(described.GetWorkflowExecutionInfo().GetHistoryLength()))
}

// ---- resets ----

func stepsWorkflow(ctx workflow.Context) (string, error) {
	ctx = withActivities(ctx)
	for _, step := range []string{"first", "second"} {
		if err := workflow.ExecuteActivity(ctx, echoActivity, step).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	var word string
	workflow.GetSignalChannel(ctx, "say").Receive(ctx, &word)
	return word, nil
}

func proveReset(w *world) error {
	first, err := w.start(options("reset"), stepsWorkflow)
	if err != nil {
		return err
	}
	if err := w.client.SignalWorkflow(w.context, "reset", "", "say", "again"); err != nil {
		return err
	}
	if err := w.expectResult(first, "again"); err != nil {
		return err
	}
	second, err := w.resetToFirstDecision(first.GetID(), first.GetRunID())
	if err != nil {
		return err
	}
	w.remember("reset", second)
	if err := w.expectResult(w.client.GetWorkflow(w.context, "reset", second), "again"); err != nil {
		return err
	}
	failed, err := w.count("reset", second, shared.EventTypeDecisionTaskFailed)
	if err != nil || failed != 1 {
		return fmt.Errorf("%d failed decisions in the new run, %v", failed, err)
	}
	return nil
}

func (w *world) resetToFirstDecision(id, run string) (string, error) {
	events, err := w.events(id, run)
	if err != nil {
		return "", err
	}
	at := int64(0)
	for _, event := range events {
		if at == 0 && event.GetEventType() == shared.EventTypeDecisionTaskCompleted {
			at = event.GetEventId()
		}
	}
	name, reason, request := domainName, "a test", "reset-of-"+run
	answer, err := w.client.ResetWorkflow(w.context, &shared.ResetWorkflowExecutionRequest{
		Domain:                &name,
		WorkflowExecution:     &shared.WorkflowExecution{WorkflowId: &id, RunId: &run},
		Reason:                &reason,
		DecisionFinishEventId: &at,
		RequestId:             &request,
	})
	return answer.GetRunId(), err
}

// ---- ends as errors ----

func proveEnds(w *world) error {
	run, err := w.start(options("broken"), brokenWorkflow)
	if err != nil {
		return err
	}
	var broken *cadence.CustomError
	if err := run.Get(w.context, nil); !errors.As(err, &broken) || broken.Reason() != "broken" {
		return fmt.Errorf("the broken run ended with %v", err)
	}
	if err := w.proveTimeout(); err != nil {
		return err
	}
	return w.proveReuse()
}

func (w *world) proveTimeout() error {
	how := options("late")
	how.TaskList, how.ExecutionStartToCloseTimeout = "nobody-polls-it", time.Second
	run, err := w.client.ExecuteWorkflow(w.context, how, sleepWorkflow)
	if err != nil {
		return err
	}
	err = run.Get(w.context, nil)
	if late, is := err.(*workflow.TimeoutError); !is || late.TimeoutType() != shared.TimeoutTypeStartToClose {
		return fmt.Errorf("the late run ended with %v", err)
	}
	return nil
}

func (w *world) proveReuse() error {
	how := options("reused")
	first, err := w.client.StartWorkflow(w.context, how, sleepWorkflow)
	if err != nil {
		return err
	}
	how.WorkflowIDReusePolicy = client.WorkflowIDReusePolicyTerminateIfRunning
	second, err := w.client.StartWorkflow(w.context, how, sleepWorkflow)
	if err != nil {
		return err
	}
	for _, run := range []string{first.RunID, second.RunID} {
		if run == second.RunID {
			if err := w.client.TerminateWorkflow(w.context, "reused", run, "enough", []byte("details")); err != nil {
				return err
			}
		}
		err := w.client.GetWorkflow(w.context, "reused", run).Get(w.context, nil)
		if _, is := err.(*workflow.TerminatedError); !is {
			return fmt.Errorf("run %s ended with %v", run, err)
		}
	}
	how.WorkflowIDReusePolicy = client.WorkflowIDReusePolicyRejectDuplicate
	_, err = w.client.StartWorkflow(w.context, how, sleepWorkflow)
	var there *shared.WorkflowExecutionAlreadyStartedError
	if !errors.As(err, &there) {
		return fmt.Errorf("the id was given again: %v", err)
	}
	return nil
}

// ---- runs that come again ----

// tickWorkflow counts the runs of its schedule by what the last one left.
func tickWorkflow(ctx workflow.Context) (int, error) {
	count := 0
	if workflow.HasLastCompletionResult(ctx) {
		if err := workflow.GetLastCompletionResult(ctx, &count); err != nil {
			return 0, err
		}
	}
	return count + 1, nil
}

func proveCron(w *world) error {
	how := options("tick")
	how.CronSchedule = "@every 1s"
	run, err := w.client.StartWorkflow(w.context, how, tickWorkflow)
	if err != nil {
		return err
	}
	for count := 1; count <= 3; count++ {
		next, result, err := w.continuation("tick", run.RunID, shared.ContinueAsNewInitiatorCronSchedule)
		if err != nil {
			return err
		}
		if err := same("the result", fmt.Sprint(count), strings.TrimSpace(result)); err != nil {
			return err
		}
		run.RunID = next
	}
	return w.client.TerminateWorkflow(w.context, "tick", "", "enough", nil)
}

// continuation waits until a run is followed by another: its id, and what it was given.
func (w *world) continuation(id, run string, why shared.ContinueAsNewInitiator) (string, string, error) {
	pages := w.client.GetWorkflowHistory(w.context, id, run, true, shared.HistoryEventFilterTypeCloseEvent)
	event, err := pages.Next()
	if err != nil {
		return "", "", err
	}
	next := event.WorkflowExecutionContinuedAsNewEventAttributes
	if next == nil || next.GetInitiator() != why {
		return "", "", fmt.Errorf("run %s of %s ended with %v", run, id, event)
	}
	return next.GetNewExecutionRunId(), string(next.GetLastCompletionResult()), nil
}

// stubbornWorkflow fails until its third attempt.
func stubbornWorkflow(ctx workflow.Context) (int32, error) {
	attempt := workflow.GetInfo(ctx).Attempt
	if attempt < 2 {
		return 0, fmt.Errorf("attempt %d", attempt)
	}
	return attempt, nil
}

func proveRunRetries(w *world) error {
	how := options("stubborn")
	how.RetryPolicy = &cadence.RetryPolicy{
		InitialInterval:    time.Second,
		BackoffCoefficient: 1,
		MaximumAttempts:    5,
	}
	run, err := w.client.ExecuteWorkflow(w.context, how, stubbornWorkflow)
	if err != nil {
		return err
	}
	if _, _, err := w.continuation("stubborn", run.GetRunID(), shared.ContinueAsNewInitiatorRetryPolicy); err != nil {
		return err
	}
	return w.expectResult(run, "2")
}
