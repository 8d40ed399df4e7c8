package main

// What makes workflow code replayable: sessions, local activities, side effects, versions.

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/cadence"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/worker"
	"go.uber.org/cadence/workflow"
)

// ---- sessions ----

func sessionOptions(limit time.Duration) *workflow.SessionOptions {
	return &workflow.SessionOptions{CreationTimeout: limit, ExecutionTimeout: patience, HeartbeatTimeout: 10 * time.Second}
}

// inSession runs some activities and says where they ran, when that was one place.
func inSession(ctx workflow.Context) (string, error) {
	place := ""
	for i := 0; i < 4; i++ {
		var here string
		if err := workflow.ExecuteActivity(ctx, whereActivity).Get(ctx, &here); err != nil {
			return "", err
		}
		if place != "" && place != here {
			return "", fmt.Errorf("one session was on %s and on %s", place, here)
		}
		place = here
	}
	return place, nil
}

func sessionWorkflow(ctx workflow.Context) (string, error) {
	ctx = withActivities(ctx)
	session, err := workflow.CreateSession(ctx, sessionOptions(patience))
	if err != nil {
		return "", err
	}
	place, err := inSession(session)
	token := workflow.GetSessionInfo(session).GetRecreateToken()
	workflow.CompleteSession(session)
	if err != nil {
		return "", err
	}
	again, err := workflow.RecreateSession(ctx, token, sessionOptions(patience))
	if err != nil {
		return "", err
	}
	defer workflow.CompleteSession(again)
	second, err := inSession(again)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(place == second), nil
}

func proveSessions(w *world) error {
	for i := 0; i < 5; i++ {
		if err := w.expect(fmt.Sprintf("session-%d", i), "true", sessionWorkflow); err != nil {
			return err
		}
	}
	return nil
}

// Two sessions at once on a worker that takes one; the second is told so, and gets in when there is room.
func twoSessionsWorkflow(ctx workflow.Context) (string, error) {
	ctx = withActivities(ctx)
	first, err := workflow.CreateSession(ctx, sessionOptions(patience))
	if err != nil {
		return "", err
	}
	_, err = workflow.CreateSession(ctx, sessionOptions(time.Second))
	workflow.CompleteSession(first)
	if err == nil {
		return "", errors.New("the second session was let in")
	}
	third, err := workflow.CreateSession(ctx, sessionOptions(patience))
	if err != nil {
		return "", err
	}
	workflow.CompleteSession(third)
	return "full", nil
}

func proveFullSessions(w *world) error {
	list := "one-session"
	one := w.newWorker(list, "small", worker.Options{EnableSessionWorker: true, MaxConcurrentSessionExecutionSize: 1})
	one.RegisterWorkflow(twoSessionsWorkflow)
	must(one.Start())
	defer one.Stop()
	how := options("full-session")
	how.TaskList = list
	run, err := w.client.ExecuteWorkflow(w.context, how, twoSessionsWorkflow)
	if err != nil {
		return err
	}
	return w.expectResult(run, "full")
}

// ---- local activities ----

var localTries atomic.Int32

func flakyLocal(ctx context.Context) (int32, error) {
	if tries := localTries.Add(1); tries < 3 {
		return 0, errors.New("not yet")
	}
	return 3, nil
}

func slowLocal(ctx context.Context) (string, error) {
	time.Sleep(4 * time.Second) // longer than a decision may take
	return "slow", nil
}

func localWorkflow(ctx workflow.Context) (string, error) {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: patience,
		RetryPolicy: &cadence.RetryPolicy{
			InitialInterval:    10 * time.Millisecond,
			BackoffCoefficient: 1,
			MaximumAttempts:    5,
		},
	})
	var tries int32
	var slow string
	if err := workflow.ExecuteLocalActivity(ctx, flakyLocal).Get(ctx, &tries); err != nil {
		return "", err
	}
	if err := workflow.ExecuteLocalActivity(ctx, slowLocal).Get(ctx, &slow); err != nil {
		return "", err
	}
	return fmt.Sprint(tries, " ", slow), nil
}

func proveLocalActivities(w *world) error {
	if err := w.expect("local", "3 slow", localWorkflow); err != nil {
		return err
	}
	late, err := w.count("local", "", shared.EventTypeDecisionTaskTimedOut)
	if err != nil || late > 0 {
		return fmt.Errorf("%d decisions were too late, %v", late, err)
	}
	taken, err := w.count("local", "", shared.EventTypeDecisionTaskCompleted)
	if err != nil || taken < 2 {
		return fmt.Errorf("%d decisions, though one cannot be long enough, %v", taken, err)
	}
	return nil
}

// ---- side effects ----

var diceThrown, changesSeen atomic.Int64

func sideEffectWorkflow(ctx workflow.Context) (string, error) {
	var thrown int64
	err := workflow.SideEffect(ctx, func(workflow.Context) interface{} { return diceThrown.Add(1) }).Get(&thrown)
	if err != nil {
		return "", err
	}
	changes := ""
	for i := 0; i < 4; i++ {
		var value int
		err := workflow.MutableSideEffect(ctx, "half",
			func(workflow.Context) interface{} { return i / 2 },
			func(a, b interface{}) bool { return a == b }).Get(&value)
		if err != nil {
			return "", err
		}
		changes += fmt.Sprint(value)
		if err := workflow.Sleep(ctx, time.Second); err != nil { // a decision of its own, replayed from the start
			return "", err
		}
	}
	return fmt.Sprint(thrown, " ", changes), nil
}

func proveSideEffects(w *world) error {
	how := options("side-effects")
	how.TaskList = "forgetful-" + listName
	run, err := w.start(how, sideEffectWorkflow)
	if err != nil {
		return err
	}
	if err := w.expectResult(run, "1 0011"); err != nil {
		return err
	}
	markers, err := w.count("side-effects", "", shared.EventTypeMarkerRecorded)
	if err != nil || markers != 3 {
		return fmt.Errorf("%d markers, %v", markers, err)
	}
	return nil
}

// ---- versions ----

func waitForGo(ctx workflow.Context) { workflow.GetSignalChannel(ctx, "go").Receive(ctx, nil) }

func yesterdaysCode(ctx workflow.Context) (string, error) {
	waitForGo(ctx)
	return "yesterday", nil
}

func todaysCode(ctx workflow.Context) (string, error) {
	before := workflow.GetVersion(ctx, "wording", workflow.DefaultVersion, 1)
	waitForGo(ctx)
	after := workflow.GetVersion(ctx, "wording", workflow.DefaultVersion, 1)
	return fmt.Sprint(before, " ", after), nil
}

func (w *world) startCode(list string, code interface{}) worker.Worker {
	// Workers of one process share what they remember of runs, so this one remembers nothing.
	one := w.newWorker(list, "versions", worker.Options{DisableStickyExecution: true})
	one.RegisterWorkflowWithOptions(code, workflow.RegisterOptions{Name: "changing"})
	must(one.Start())
	return one
}

// startDecided starts the workflow and waits for its first decision.
func (w *world) startDecided(list, id string) error {
	how := options(id)
	how.TaskList = list
	if _, err := w.client.StartWorkflow(w.context, how, "changing"); err != nil {
		return err
	}
	return w.until("the first decision", func() bool {
		count, err := w.count(id, "", shared.EventTypeDecisionTaskCompleted)
		return err == nil && count == 1
	})
}

func (w *world) goAndExpect(id, want string) error {
	if err := w.client.SignalWorkflow(w.context, id, "", "go", nil); err != nil {
		return err
	}
	return w.expectResult(w.client.GetWorkflow(w.context, id, ""), want)
}

func proveVersions(w *world) error {
	list := "changing-list"
	old := w.startCode(list, yesterdaysCode)
	err := w.startDecided(list, "old-code")
	old.Stop()
	if err != nil {
		return err
	}
	defer w.startCode(list, todaysCode).Stop()
	if err := w.startDecided(list, "new-code"); err != nil {
		return err
	}
	described, err := w.client.DescribeWorkflowExecution(w.context, "new-code", "")
	if err != nil {
		return err
	}
	found := described.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()["CadenceChangeVersion"]
	if err := same("the version as a search attribute", `["wording-1"]`, string(found)); err != nil {
		return err
	}
	if err := w.goAndExpect("old-code", "-1 -1"); err != nil {
		return err
	}
	return w.goAndExpect("new-code", "1 1")
}
