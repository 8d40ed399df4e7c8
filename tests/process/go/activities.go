package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/cadence"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/activity"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/workflow"
)

type workerName struct{}

func withActivities(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToStartTimeout: patience,
		StartToCloseTimeout:    patience,
	})
}

// whereActivity says which worker runs it.
func whereActivity(ctx context.Context) (string, error) {
	return ctx.Value(workerName{}).(string), nil
}

func echoActivity(ctx context.Context, word string) (string, error) { return word, nil }

func doubleActivity(ctx context.Context, number int) (int, error) { return 2 * number, nil }

// ---- attempts ----

// fallSilentActivity beats once in its first attempt and is not heard again; later attempts tell what they find.
func fallSilentActivity(ctx context.Context) (int, error) {
	if activity.HasHeartbeatDetails(ctx) {
		var found int
		err := activity.GetHeartbeatDetails(ctx, &found)
		return found + int(activity.GetInfo(ctx).Attempt), err
	}
	activity.RecordHeartbeat(ctx, 41)
	<-ctx.Done() // the beat that is missing ends the attempt
	return 0, ctx.Err()
}

func refuseActivity(ctx context.Context) error { return cadence.NewCustomError("no use", "why", 7) }

func retryWorkflow(ctx workflow.Context) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToStartTimeout: patience,
		StartToCloseTimeout:    patience,
		HeartbeatTimeout:       2 * time.Second,
		RetryPolicy: &cadence.RetryPolicy{
			InitialInterval:          time.Second,
			BackoffCoefficient:       1,
			MaximumAttempts:          4,
			NonRetriableErrorReasons: []string{"no use"},
		},
	})
	var found int
	if err := workflow.ExecuteActivity(ctx, fallSilentActivity).Get(ctx, &found); err != nil {
		return "", err
	}
	err := workflow.ExecuteActivity(ctx, refuseActivity).Get(ctx, nil)
	var refused *cadence.CustomError
	if !errors.As(err, &refused) {
		return "", fmt.Errorf("the refusal came as %v", err)
	}
	var why string
	var number int
	if err := refused.Details(&why, &number); err != nil {
		return "", err
	}
	return fmt.Sprint(found, " ", refused.Reason(), " ", why, " ", number), nil
}

func proveActivityRetries(w *world) error {
	return w.expect("retry", "42 no use why 7", retryWorkflow)
}

// ---- completion by others ----

// pendingTokens are the tokens of activities that wait for somebody else, by workflow.
var pendingTokens sync.Map

func pendingActivity(ctx context.Context) (string, error) {
	info := activity.GetInfo(ctx)
	pendingTokens.Store(info.WorkflowExecution.ID, info.TaskToken)
	return "", activity.ErrResultPending
}

func asyncWorkflow(ctx workflow.Context) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             "the-one",
		ScheduleToStartTimeout: patience,
		StartToCloseTimeout:    patience,
		HeartbeatTimeout:       patience,
	})
	var said string
	err := workflow.ExecuteActivity(ctx, pendingActivity).Get(ctx, &said)
	return said, err
}

func proveAsyncCompletion(w *world) error {
	byToken, byID := "async-by-token", "async-by-id"
	for _, id := range []string{byToken, byID} {
		if _, err := w.start(options(id), asyncWorkflow); err != nil {
			return err
		}
		if err := w.until("its token", func() bool { _, is := pendingTokens.Load(id); return is }); err != nil {
			return err
		}
	}
	found, _ := pendingTokens.Load(byToken)
	token := found.([]byte)
	for _, err := range []error{
		w.client.RecordActivityHeartbeat(w.context, token, "alive"),
		w.client.CompleteActivity(w.context, token, "by token", nil),
		w.client.RecordActivityHeartbeatByID(w.context, domainName, byID, "", "the-one", "alive"),
		w.client.CompleteActivityByID(w.context, domainName, byID, "", "the-one", "by id", nil),
		w.expectResult(w.client.GetWorkflow(w.context, byToken, ""), "by token"),
		w.expectResult(w.client.GetWorkflow(w.context, byID, ""), "by id"),
	} {
		if err != nil {
			return err
		}
	}
	var gone *shared.EntityNotExistsError
	if err := w.client.CompleteActivity(w.context, token, "again", nil); !errors.As(err, &gone) {
		return fmt.Errorf("the second completion ended with %v", err)
	}
	return nil
}

// ---- cancellation ----

// beatActivity works until it is cancelled, which its heartbeats tell.
func beatActivity(ctx context.Context) error {
	for {
		activity.RecordHeartbeat(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func cleanupWorkflow(ctx workflow.Context) error {
	waiting := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToStartTimeout: patience,
		StartToCloseTimeout:    patience,
		HeartbeatTimeout:       2 * time.Second,
		WaitForCancellation:    true,
	})
	err := workflow.ExecuteActivity(waiting, beatActivity).Get(ctx, nil)
	apart, _ := workflow.NewDisconnectedContext(ctx)
	apart = withActivities(apart)
	var cleaned string
	if err := workflow.ExecuteActivity(apart, echoActivity, "clean").Get(apart, &cleaned); err != nil {
		return err
	}
	return err
}

func proveCancellation(w *world) error {
	run, err := w.start(options("cleanup"), cleanupWorkflow)
	if err != nil {
		return err
	}
	isBeating := func() bool {
		described, err := w.client.DescribeWorkflowExecution(w.context, "cleanup", "")
		return err == nil && len(described.PendingActivities) == 1 &&
			described.PendingActivities[0].GetState() == shared.PendingActivityStateStarted
	}
	if err := w.until("the activity to be started", isBeating); err != nil {
		return err
	}
	if err := w.client.CancelWorkflow(w.context, "cleanup", ""); err != nil {
		return err
	}
	var cancelled *cadence.CanceledError
	if err := run.Get(w.context, nil); !errors.As(err, &cancelled) {
		return fmt.Errorf("it ended with %v", err)
	}
	for kind, want := range map[shared.EventType]int{
		shared.EventTypeActivityTaskCanceled:  1,
		shared.EventTypeActivityTaskCompleted: 1,
	} {
		if got, err := w.count("cleanup", "", kind); err != nil || got != want {
			return fmt.Errorf("%v: %d events, %v", kind, got, err)
		}
	}
	return nil
}

// ---- many at once ----

func fanWorkflow(ctx workflow.Context, count int) (int, error) {
	ctx = withActivities(ctx)
	var calls []workflow.Future
	for i := 0; i < count; i++ {
		calls = append(calls, workflow.ExecuteActivity(ctx, doubleActivity, i))
	}
	sum := 0
	for _, call := range calls {
		var number int
		if err := call.Get(ctx, &number); err != nil {
			return 0, err
		}
		sum += number
	}
	return sum, nil
}

func proveFan(w *world) error {
	how := options("fan")
	how.DecisionTaskStartToCloseTimeout = 10 * time.Second
	how.WorkflowIDReusePolicy = client.WorkflowIDReusePolicyRejectDuplicate
	run, err := w.start(how, fanWorkflow, 200)
	if err != nil {
		return err
	}
	return w.expectResult(run, fmt.Sprint(2*199*200/2))
}
