package main

// Workflows that concern other workflows: children, signals, cancels.

import (
	"errors"
	"fmt"

	"go.uber.org/cadence"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/workflow"
)

func withChildren(ctx workflow.Context, id string, policy client.ParentClosePolicy) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:                   id,
		ExecutionStartToCloseTimeout: patience,
		ParentClosePolicy:            policy,
	})
}

func doubleWorkflow(ctx workflow.Context, number int) (int, error) { return 2 * number, nil }

func brokenWorkflow(ctx workflow.Context) error { return cadence.NewCustomError("broken", "in two") }

func sleepWorkflow(ctx workflow.Context) error { return workflow.Sleep(ctx, patience) }

// ---- children ----

func parentWorkflow(ctx workflow.Context, count int) (string, error) {
	ctx = withChildren(ctx, "", client.ParentClosePolicyTerminate)
	var children []workflow.ChildWorkflowFuture
	for i := 0; i < count; i++ {
		children = append(children, workflow.ExecuteChildWorkflow(ctx, doubleWorkflow, i))
	}
	sum := 0
	for _, child := range children {
		var number int
		if err := child.Get(ctx, &number); err != nil {
			return "", err
		}
		sum += number
	}
	err := workflow.ExecuteChildWorkflow(ctx, brokenWorkflow).Get(ctx, nil)
	var broken *cadence.CustomError
	if !errors.As(err, &broken) {
		return "", fmt.Errorf("the broken child ended with %v", err)
	}
	taken := withChildren(ctx, "parent", client.ParentClosePolicyTerminate) // its own id
	err = workflow.ExecuteChildWorkflow(taken, doubleWorkflow, 1).Get(ctx, nil)
	var there *shared.WorkflowExecutionAlreadyStartedError
	if !errors.As(err, &there) {
		return "", fmt.Errorf("the child with an id that is taken ended with %v", err)
	}
	return fmt.Sprint(sum, " ", broken.Reason()), nil
}

func proveChildren(w *world) error {
	if err := w.expect("parent", "380 broken", parentWorkflow, 20); err != nil {
		return err
	}
	for kind, want := range map[shared.EventType]int{
		shared.EventTypeStartChildWorkflowExecutionInitiated: 22,
		shared.EventTypeChildWorkflowExecutionStarted:        21,
		shared.EventTypeChildWorkflowExecutionCompleted:      20,
		shared.EventTypeChildWorkflowExecutionFailed:         1,
		shared.EventTypeStartChildWorkflowExecutionFailed:    1,
	} {
		if got, err := w.count("parent", "", kind); err != nil || got != want {
			return fmt.Errorf("%v: %d events, %v", kind, got, err)
		}
	}
	return nil
}

// ---- what a parent's end means ----

var policies = map[string]client.ParentClosePolicy{
	"heir-terminated": client.ParentClosePolicyTerminate,
	"heir-cancelled":  client.ParentClosePolicyRequestCancel,
	"heir-abandoned":  client.ParentClosePolicyAbandon,
}

func heirWorkflow(ctx workflow.Context) error {
	for _, id := range []string{"heir-terminated", "heir-cancelled", "heir-abandoned"} {
		child := workflow.ExecuteChildWorkflow(withChildren(ctx, id, policies[id]), sleepWorkflow)
		if err := child.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

func proveParentClosePolicies(w *world) error {
	run, err := w.start(options("heirs"), heirWorkflow)
	if err != nil {
		return err
	}
	if err := run.Get(w.context, nil); err != nil {
		return err
	}
	err = w.client.GetWorkflow(w.context, "heir-terminated", "").Get(w.context, nil)
	if _, is := err.(*workflow.TerminatedError); !is {
		return fmt.Errorf("the child to be terminated ended with %v", err)
	}
	var cancelled *cadence.CanceledError
	err = w.client.GetWorkflow(w.context, "heir-cancelled", "").Get(w.context, nil)
	if !errors.As(err, &cancelled) {
		return fmt.Errorf("the child to be cancelled ended with %v", err)
	}
	described, err := w.client.DescribeWorkflowExecution(w.context, "heir-abandoned", "")
	if err != nil || described.GetWorkflowExecutionInfo().CloseStatus != nil {
		return fmt.Errorf("the child to be left alone: %v, %v", described, err)
	}
	return w.client.TerminateWorkflow(w.context, "heir-abandoned", "", "the test is over", nil)
}

// ---- calls to others ----

func callerWorkflow(ctx workflow.Context, stranger, sleeper string) (string, error) {
	ctx = withChildren(ctx, "", client.ParentClosePolicyTerminate)
	child := workflow.ExecuteChildWorkflow(ctx, listenWorkflow, 2)
	for _, word := range []string{"one", "two"} {
		if err := child.SignalChildWorkflow(ctx, "say", word).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	var heard string
	if err := child.Get(ctx, &heard); err != nil {
		return "", err
	}
	if err := workflow.SignalExternalWorkflow(ctx, stranger, "", "say", "hello").Get(ctx, nil); err != nil {
		return "", err
	}
	if err := workflow.RequestCancelExternalWorkflow(ctx, sleeper, "").Get(ctx, nil); err != nil {
		return "", err
	}
	err := workflow.SignalExternalWorkflow(ctx, "nobody", "", "say", "hello").Get(ctx, nil)
	if _, is := err.(*workflow.UnknownExternalWorkflowExecutionError); !is {
		return "", fmt.Errorf("a signal to nobody ended with %v", err)
	}
	stopping, stop := workflow.WithCancel(ctx)
	sleeping := workflow.ExecuteChildWorkflow(stopping, sleepWorkflow)
	if err := sleeping.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		return "", err
	}
	stop()
	var cancelled *cadence.CanceledError
	if err := sleeping.Get(ctx, nil); !errors.As(err, &cancelled) {
		return "", fmt.Errorf("the cancelled child ended with %v", err)
	}
	return heard, nil
}

func proveExternalCalls(w *world) error {
	stranger, err := w.start(options("stranger"), listenWorkflow, 1)
	if err != nil {
		return err
	}
	sleeper, err := w.start(options("sleeper"), sleepWorkflow)
	if err != nil {
		return err
	}
	if err := w.expect("caller", "one,two", callerWorkflow, "stranger", "sleeper"); err != nil {
		return err
	}
	if err := w.expectResult(stranger, "hello"); err != nil {
		return err
	}
	var cancelled *cadence.CanceledError
	if err := sleeper.Get(w.context, nil); !errors.As(err, &cancelled) {
		return fmt.Errorf("the sleeper ended with %v", err)
	}
	return nil
}

// ---- a chain as a child ----

func countdownWorkflow(ctx workflow.Context, left int) (string, error) {
	if left > 0 {
		return "", workflow.NewContinueAsNewError(ctx, countdownWorkflow, left-1)
	}
	return "landed", nil
}

func grandparentWorkflow(ctx workflow.Context) (string, error) {
	ctx = withChildren(ctx, "countdown-child", client.ParentClosePolicyTerminate)
	var said string
	err := workflow.ExecuteChildWorkflow(ctx, countdownWorkflow, 5).Get(ctx, &said)
	return said, err
}

func proveChildContinues(w *world) error {
	if err := w.expect("grandparent", "landed", grandparentWorkflow); err != nil {
		return err
	}
	started, err := w.count("grandparent", "", shared.EventTypeChildWorkflowExecutionStarted)
	if err != nil || started != 1 {
		return fmt.Errorf("%d children started, %v", started, err)
	}
	return nil
}
