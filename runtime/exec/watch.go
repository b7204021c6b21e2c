package exec

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Observer receives the events of the kinds that it wants.
type Observer interface {
	Wants() trace.Kinds
	Observe(e *trace.Event)
}

// Observers are those of a program. The zero value has none.
type Observers struct {
	Faults
	list  []watcher
	wants trace.Kinds // of all
}

// Add adds an observer.
func (o *Observers) Add(by Observer) {
	w := newWatcher(by)
	o.list, o.wants = append(o.list, w), o.wants|w.wants
}

// Wants returns the kinds of events that observers subscribe to.
func (o *Observers) Wants() trace.Kinds { return o.wants }

// Watch returns a watch for one load or free, nil if no observer subscribes to it.
func (o *Observers) Watch(ctx context.Context, method string) *Watch {
	if !o.wants.Any(trace.Loads | trace.Memories | trace.Values) {
		return nil
	}
	return o.newWatch(ctx, method)
}

// waits recycles watches, so that waiting does not allocate.
var waits = sync.Pool{New: func() any { return new(Watch) }}

// Waiting returns a watch for a wait for an instance, which ends with Waited; nil if no observer subscribes to it.
func (o *Observers) Waiting(ctx context.Context, method string) *Watch {
	if !o.wants.Has(trace.Wait) {
		return nil
	}
	w := waits.Get().(*Watch)
	*w = Watch{watchers: o.list, wants: o.wants, faults: o.Faults, ctx: ctx, method: method, began: trace.Now()}
	return w
}

// Waited reports a wait and its error, which it returns, or the panic of an observer.
func (w *Watch) Waited(err error) error {
	if w == nil {
		return err
	}
	err = w.Ended(trace.Wait, w.method, 0, err)
	w.ctx, w.event = nil, trace.Event{}
	waits.Put(w)
	return err
}

// watcher is an observer and the kinds of events it receives.
type watcher struct {
	Observer
	wants trace.Kinds
}

func newWatcher(o Observer) watcher { return watcher{o, o.Wants()} }

// Watch reports the work of one goroutine to observers. The zero value and nil have no observers.
type Watch struct {
	faults   Faults
	watchers []watcher // the program's
	own      watcher   // the method's
	wants    trace.Kinds
	ctx      context.Context
	method   string
	instance int64
	run      int64

	event  trace.Event   // passed to observers
	began  time.Duration // start of the whole
	mark   time.Duration // start of the stage or instruction
	nodes  []delegate.NodeTime
	pc     int // the current step
	values []trace.Value
	fault  error // the panic of an observer
}

// Counters of instances and runs, see trace.Event.
var lastInstance, lastRun atomic.Int64

// newWatch returns a watch for one load or run, or for those of an instance.
func (o *Observers) newWatch(ctx context.Context, method string) *Watch {
	w := &Watch{faults: o.Faults, watchers: o.list, ctx: ctx, method: method, instance: lastInstance.Add(1), mark: trace.Now()}
	w.began = w.mark
	w.count()
	return w
}

// count computes the union of the observers' kinds.
func (w *Watch) count() {
	w.wants = w.own.wants
	for i := range w.watchers {
		w.wants |= w.watchers[i].wants
	}
}

// set initializes the next event.
func (w *Watch) set(kind trace.Kind, name string, start, end time.Duration, err error) *trace.Event {
	w.event = trace.Event{Kind: kind, Name: name, Method: w.method, Instance: w.instance, Run: w.run,
		Chain: -1, Instruction: -1, Delegate: -1, Index: -1, Start: start, End: end, Context: w.ctx,
		Err: err}
	if err != nil {
		w.event.Reason = w.faults.Reason(err)
	}
	return &w.event
}

// report reports the event to the observers that subscribe to its kind.
func (w *Watch) report() {
	for i := range w.watchers {
		w.call(&w.watchers[i])
	}
	w.call(&w.own)
}

// call calls one observer and recovers its panic.
func (w *Watch) call(o *watcher) {
	if !o.wants.Has(w.event.Kind) {
		return
	}
	defer func() {
		if fault := recover(); fault != nil && w.fault == nil {
			w.fault = w.faults.Panic(fault, true)
		}
	}()
	o.Observe(&w.event)
}

// failure returns err or, if it is nil, the panic of an observer.
func (w *Watch) failure(err error) error {
	if err == nil && w != nil && w.fault != nil {
		return w.fault
	}
	return err
}

// Stage reports a stage that has just ended. It started when the previous one ended.
func (w *Watch) Stage(name string, bytes int64, err error) error {
	return w.stageOf(name, -1, "", bytes, err)
}

// stageOf is Stage for a delegate.
func (w *Watch) stageOf(name string, index int, backend string, bytes int64, err error) error {
	if w == nil {
		return err
	}
	if w.wants.Has(trace.Stage) {
		e := w.set(trace.Stage, name, w.mark, trace.Now(), err)
		e.Delegate, e.Backend, e.Bytes = index, backend, bytes
		w.report()
	}
	w.next()
	return w.failure(err)
}

// next starts the next stage now.
func (w *Watch) next() {
	if w != nil {
		w.mark = trace.Now()
	}
}

// Ended reports an Open, Load, run or wait that has ended.
func (w *Watch) Ended(kind trace.Kind, name string, bytes int64, err error) error {
	if w == nil {
		return err
	}
	if w.wants.Has(kind) {
		w.set(kind, name, w.began, trace.Now(), err).Bytes = bytes
		w.report()
	}
	return w.failure(err)
}

// Memory reports bytes allocated, or freed if negative.
func (w *Watch) Memory(kind string, bytes int64) {
	if w != nil && bytes != 0 && w.wants.Has(trace.Memory) {
		now := trace.Now()
		w.set(trace.Memory, kind, now, now, nil).Bytes = bytes
		w.report()
	}
}

// begin reports the start of a run.
func (w *Watch) begin() {
	if w.began = trace.Now(); w.wants.Has(trace.Begin) {
		w.set(trace.Begin, w.method, w.began, w.began, nil)
		w.report()
		w.began = trace.Now()
	}
}
