package main

// Signals and queries.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/workflow"
)

// listenWorkflow waits for some words and tells those it has heard.
func listenWorkflow(ctx workflow.Context, count int) (string, error) {
	var heard []string
	err := workflow.SetQueryHandler(ctx, "words", func() (string, error) { return strings.Join(heard, ","), nil })
	if err != nil {
		return "", err
	}
	err = workflow.SetQueryHandler(ctx, "word", func(number int) (string, error) {
		if number >= len(heard) {
			return "", fmt.Errorf("only %d words", len(heard))
		}
		return heard[number], nil
	})
	if err != nil {
		return "", err
	}
	said := workflow.GetSignalChannel(ctx, "say")
	for len(heard) < count {
		var word string
		said.Receive(ctx, &word)
		heard = append(heard, word)
	}
	return strings.Join(heard, ","), nil
}

// ---- signals ----

func proveSignals(w *world) error {
	const count = 50
	var want []string
	var run *workflow.Execution
	for i := 0; i < count; i++ {
		word := fmt.Sprint(i)
		want = append(want, word)
		if i%20 != 0 {
			if err := w.client.SignalWorkflow(w.context, "signals", "", "say", word); err != nil {
				return err
			}
			continue
		}
		found, err := w.client.SignalWithStartWorkflow(w.context, "signals", "say", word, options("signals"), listenWorkflow, count)
		if err != nil {
			return err
		}
		if run != nil && run.RunID != found.RunID {
			return fmt.Errorf("a second run %s beside %s", found.RunID, run.RunID)
		}
		run = found
	}
	w.remember("signals", run.RunID)
	return w.expectResult(w.client.GetWorkflow(w.context, "signals", run.RunID), strings.Join(want, ","))
}

// ---- queries ----

func (w *world) ask(id string, question string, arguments ...interface{}) (string, error) {
	answer, err := w.client.QueryWorkflow(w.context, id, "", question, arguments...)
	if err != nil {
		return "", err
	}
	var said string
	return said, answer.Get(&said)
}

func (w *world) expectAnswer(id, want string, question string, arguments ...interface{}) error {
	said, err := w.ask(id, question, arguments...)
	if err != nil {
		return err
	}
	return same("the query "+question, want, said)
}

func (w *world) expectQueryFailure(id string, question string, arguments ...interface{}) error {
	said, err := w.ask(id, question, arguments...)
	if _, is := err.(*shared.QueryFailedError); !is {
		return fmt.Errorf("the query %s was answered with %q, %v", question, said, err)
	}
	return nil
}

func proveQueries(w *world) error {
	run, err := w.start(options("asked"), listenWorkflow, 2)
	if err != nil {
		return err
	}
	if err := w.expectAnswer("asked", "", "words"); err != nil { // waits for the first decision
		return err
	}
	stack, err := w.ask("asked", "__stack_trace")
	if err != nil || !strings.Contains(stack, "listenWorkflow") {
		return fmt.Errorf("the stack %q, %v", stack, err)
	}
	if err := w.client.SignalWorkflow(w.context, "asked", "", "say", "one"); err != nil {
		return err
	}
	isHeard := func() bool { said, err := w.ask("asked", "words"); return err == nil && said == "one" }
	if err := w.until("the word to be heard", isHeard); err != nil {
		return err
	}
	for _, err := range []error{
		w.expectAnswer("asked", "one", "word", 0),
		w.expectQueryFailure("asked", "word", 7),
		w.expectQueryFailure("asked", "unknown"),
		w.client.SignalWorkflow(w.context, "asked", "", "say", "two"),
		w.expectResult(run, "one,two"),
		w.expectAnswer("asked", "one,two", "words"), // it has ended
	} {
		if err != nil {
			return err
		}
	}
	return w.expectRejection()
}

func (w *world) expectRejection() error {
	notOpen := shared.QueryRejectConditionNotOpen
	answer, err := w.client.QueryWorkflowWithOptions(w.context, &client.QueryWorkflowWithOptionsRequest{
		WorkflowID: "asked", QueryType: "words", QueryRejectCondition: &notOpen,
	})
	if err != nil {
		return err
	}
	if answer.QueryRejected.GetCloseStatus() != shared.WorkflowExecutionCloseStatusCompleted || answer.QueryResult != nil {
		return fmt.Errorf("the query of a closed run was not rejected: %v", answer)
	}
	return nil
}

func pauseLocal(ctx context.Context) error {
	time.Sleep(time.Second)
	return nil
}

// slowSignalWorkflow needs some time in a decision before it knows what it was told.
func slowSignalWorkflow(ctx workflow.Context, count int) (string, error) {
	known := "nothing"
	err := workflow.SetQueryHandler(ctx, "known", func() (string, error) { return known, nil })
	if err != nil {
		return "", err
	}
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: patience})
	for i := 0; i < count; i++ {
		var word string
		workflow.GetSignalChannel(ctx, "say").Receive(ctx, &word)
		if err := workflow.ExecuteLocalActivity(local, pauseLocal).Get(ctx, nil); err != nil {
			return "", err
		}
		known = word
	}
	return known, nil
}

func proveStrongQueries(w *world) error {
	run, err := w.start(options("strong"), slowSignalWorkflow, 3)
	if err != nil {
		return err
	}
	if err := w.expectAnswer("strong", "nothing", "known"); err != nil {
		return err
	}
	strong := shared.QueryConsistencyLevelStrong
	for _, word := range []string{"one", "two", "three"} {
		if err := w.client.SignalWorkflow(w.context, "strong", "", "say", word); err != nil {
			return err
		}
		answer, err := w.client.QueryWorkflowWithOptions(w.context, &client.QueryWorkflowWithOptionsRequest{
			WorkflowID: "strong", QueryType: "known", QueryConsistencyLevel: &strong,
		})
		if err != nil {
			return err
		}
		var known string
		if err := answer.QueryResult.Get(&known); err != nil {
			return err
		}
		if err := same("the strong query", word, known); err != nil {
			return err
		}
	}
	return w.expectResult(run, "three")
}
