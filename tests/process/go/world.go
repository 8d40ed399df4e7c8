package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apiv1 "github.com/uber/cadence-idl/go/proto/api/v1"
	"go.uber.org/cadence/.gen/go/cadence/workflowserviceclient"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/compatibility"
	"go.uber.org/cadence/worker"
	"go.uber.org/cadence/workflow"
	"go.uber.org/yarpc"
	"go.uber.org/yarpc/transport/grpc"
	"go.uber.org/zap"
)

const (
	domainName = "go-domain"
	listName   = "go-list"
	patience   = 90 * time.Second // for a condition; generous, never a measure of speed
)

// world is what scenarios share: a client, two workers, and the runs that have ended.
type world struct {
	context context.Context
	service workflowserviceclient.Interface
	client  client.Client

	lock  sync.Mutex
	ended []workflow.Execution
}

func newWorld(address string) *world {
	outbound := grpc.NewTransport().NewSingleOutbound(address)
	dispatcher := yarpc.NewDispatcher(yarpc.Config{
		Name:      "go-worker",
		Outbounds: yarpc.Outbounds{"cadence-frontend": {Unary: outbound}},
	})
	must(dispatcher.Start())
	config := dispatcher.ClientConfig("cadence-frontend")
	service := compatibility.NewThrift2ProtoAdapter(
		apiv1.NewDomainAPIYARPCClient(config),
		apiv1.NewWorkflowAPIYARPCClient(config),
		apiv1.NewWorkerAPIYARPCClient(config),
		apiv1.NewVisibilityAPIYARPCClient(config),
	)
	ctx, _ := context.WithTimeout(context.Background(), patience)
	w := &world{
		context: ctx,
		service: service,
		client: client.NewClient(service, domainName, &client.Options{
			ContextPropagators: []workflow.ContextPropagator{traceCarrier{}},
		}),
	}
	w.registerDomain()
	return w
}

func (w *world) registerDomain() {
	name, days := domainName, int32(1)
	must(client.NewDomainClient(w.service, &client.Options{}).Register(w.context,
		&shared.RegisterDomainRequest{Name: &name, WorkflowExecutionRetentionPeriodInDays: &days}))
}

// newWorker makes a worker that says its name to the activities that it runs.
func (w *world) newWorker(list, name string, options worker.Options) worker.Worker {
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	options.BackgroundActivityContext = context.WithValue(context.Background(), workerName{}, name)
	options.StickyScheduleToStartTimeout = time.Second
	options.ContextPropagators = []workflow.ContextPropagator{traceCarrier{}}
	return worker.New(w.service, domainName, list, options)
}

func (w *world) startWorkers() {
	for _, name := range []string{"first", "second"} {
		one := w.newWorker(listName, name, worker.Options{EnableSessionWorker: true})
		registerAll(one)
		must(one.Start())
	}
	replaying := w.newWorker("forgetful-"+listName, "forgetful", worker.Options{DisableStickyExecution: true})
	registerAll(replaying)
	must(replaying.Start())
}

type registry interface {
	RegisterWorkflow(function interface{})
}

func registerWorkflows(one registry) {
	for _, function := range []interface{}{
		sessionWorkflow, localWorkflow, sideEffectWorkflow, listenWorkflow, slowSignalWorkflow,
		parentWorkflow, doubleWorkflow, brokenWorkflow, sleepWorkflow, heirWorkflow, callerWorkflow,
		countdownWorkflow, grandparentWorkflow, retryWorkflow, asyncWorkflow, cleanupWorkflow,
		fanWorkflow, memoWorkflow, longWorkflow, stepsWorkflow, tickWorkflow, stubbornWorkflow,
		shelfWorkflow,
	} {
		one.RegisterWorkflow(function)
	}
}

func registerAll(one worker.Worker) {
	registerWorkflows(one)
	for _, function := range []interface{}{
		whereActivity, echoActivity, doubleActivity, fallSilentActivity, refuseActivity,
		pendingActivity, beatActivity,
	} {
		one.RegisterActivity(function)
	}
}

// options of a start; a list of its own for what shall be replayed with each decision.
func options(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                              id,
		TaskList:                        listName,
		ExecutionStartToCloseTimeout:    patience,
		DecisionTaskStartToCloseTimeout: 3 * time.Second,
	}
}

// start begins a run that is replayed from its history when everything is over.
func (w *world) start(how client.StartWorkflowOptions, function interface{}, arguments ...interface{}) (client.WorkflowRun, error) {
	run, err := w.client.ExecuteWorkflow(w.context, how, function, arguments...)
	if err == nil {
		w.remember(run.GetID(), run.GetRunID())
	}
	return run, err
}

func (w *world) remember(id, run string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.ended = append(w.ended, workflow.Execution{ID: id, RunID: run})
}

// expect runs a workflow to its end and compares its result.
func (w *world) expect(id, want string, function interface{}, arguments ...interface{}) error {
	run, err := w.start(options(id), function, arguments...)
	if err != nil {
		return err
	}
	return w.expectResult(run, want)
}

func (w *world) expectResult(run client.WorkflowRun, want string) error {
	var got interface{}
	if err := run.Get(w.context, &got); err != nil {
		return fmt.Errorf("%s: %w", run.GetID(), err)
	}
	return same(run.GetID(), want, fmt.Sprint(got))
}

func same(what, want, got string) error {
	if got != want {
		return fmt.Errorf("%s: %q, not %q", what, got, want)
	}
	return nil
}

// until waits for a condition.
func (w *world) until(what string, condition func() bool) error {
	for !condition() {
		select {
		case <-w.context.Done():
			return fmt.Errorf("waited in vain for %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// events of a run in their order, whatever the pages are.
func (w *world) events(id, run string) ([]*shared.HistoryEvent, error) {
	var found []*shared.HistoryEvent
	pages := w.client.GetWorkflowHistory(w.context, id, run, false, shared.HistoryEventFilterTypeAllEvent)
	for pages.HasNext() {
		event, err := pages.Next()
		if err != nil {
			return nil, err
		}
		found = append(found, event)
		if event.GetEventId() != int64(len(found)) {
			return nil, fmt.Errorf("event %d of %s has the number %d", len(found), id, event.GetEventId())
		}
	}
	return found, nil
}

func (w *world) count(id, run string, kind shared.EventType) (count int, err error) {
	found, err := w.events(id, run)
	for _, event := range found {
		if event.GetEventType() == kind {
			count++
		}
	}
	return count, err
}

// replayAll gives every remembered history to the client's replayer.
func (w *world) replayAll() error {
	replayer := worker.NewWorkflowReplayerWithOptions(worker.ReplayOptions{
		ContextPropagators: []workflow.ContextPropagator{traceCarrier{}},
	})
	registerWorkflows(replayer)
	var failures []error
	for _, run := range w.ended {
		err := replayer.ReplayWorkflowExecution(w.context, w.service, zap.NewNop(), domainName, run)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", run.ID, err))
		}
	}
	return errors.Join(failures...)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
