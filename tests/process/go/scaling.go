package main

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/cadence/worker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// quotas hears what the client's scaler says: how many pollers of activities it allows. It is the only
// way to learn that from outside.
type quotas struct {
	zapcore.LevelEnabler
	fields []zapcore.Field
	heard  *heardQuotas
}

type heardQuotas struct {
	lock            sync.Mutex
	isEnabled       bool
	highest, latest int64
}

func (q quotas) With(fields []zapcore.Field) zapcore.Core {
	q.fields = append(append([]zapcore.Field{}, q.fields...), fields...)
	return q
}

func (q quotas) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(entry, q)
}

func (q quotas) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	all := zapcore.NewMapObjectEncoder()
	for _, field := range append(append([]zapcore.Field{}, q.fields...), fields...) {
		field.AddTo(all)
	}
	quota, isQuota := all.Fields["poller_quota"].(int64)
	if !isQuota || all.Fields["WorkerType"] != "ActivityWorker" {
		return nil
	}
	q.heard.lock.Lock()
	defer q.heard.lock.Unlock()
	q.heard.isEnabled = q.heard.isEnabled || all.Fields["enabled"] == true
	q.heard.latest = quota
	q.heard.highest = max(q.heard.highest, quota)
	return nil
}

func (q quotas) Sync() error { return nil }

func (h *heardQuotas) get() (isEnabled bool, highest, latest int64) {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.isEnabled, h.highest, h.latest
}

// loadUntil runs workflows of so many activities, one after the other, until the condition holds.
func (w *world) loadUntil(what string, activities int, pause time.Duration, condition func() bool) error {
	turn := 0
	return w.until(what, func() bool {
		how := options(fmt.Sprintf("scaled-%d-%d", activities, turn))
		how.TaskList = "scaled-" + listName
		turn++
		var sum int
		run, err := w.client.ExecuteWorkflow(w.context, how, fanWorkflow, activities)
		if err == nil {
			err = run.Get(w.context, &sum)
		}
		if err != nil || sum != activities*(activities-1) {
			fmt.Println("scaled workflow:", sum, err)
			return false
		}
		time.Sleep(pause)
		return condition()
	})
}

// The activities are another worker's than the decisions: the client hands over none by itself.
func proveScaling(w *world) error {
	const first, most = 2, 12
	heard := &heardQuotas{}
	deciding := w.newWorker("scaled-"+listName, "deciding", worker.Options{DisableActivityWorker: true})
	registerWorkflows(deciding)
	must(deciding.Start())
	defer deciding.Stop()
	one := w.newWorker("scaled-"+listName, "scaled", worker.Options{
		DisableWorkflowWorker: true,
		Logger:                zap.New(quotas{LevelEnabler: zapcore.DebugLevel, heard: heard}),
		AutoScalerOptions: worker.AutoScalerOptions{
			Enabled: true, PollerMinCount: first, PollerInitCount: first, PollerMaxCount: most,
			Cooldown: 100 * time.Millisecond,
		},
	})
	one.RegisterActivity(doubleActivity)
	must(one.Start())
	defer one.Stop()
	if err := w.loadUntil("more pollers", 300, 0, func() bool {
		isEnabled, highest, _ := heard.get()
		return isEnabled && highest > 2*first
	}); err != nil {
		return err
	}
	_, highest, _ := heard.get()
	if highest > most {
		return fmt.Errorf("%d pollers, more than %d", highest, most)
	}
	return w.loadUntil("fewer pollers", 1, 500*time.Millisecond, func() bool {
		_, _, latest := heard.get()
		return latest < highest
	})
}
