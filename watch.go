package etrun

import (
	"context"
	"errors"
	"io/fs"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Observer receives events of a program: loads, runs, instructions, delegate calls, nodes inside
// delegates, memory, and failures, with their durations. [WithObserver] sets one for a program,
// [Method.Observe] one for a method. Use it for metrics, tracing and logging. [trace.Recorder],
// which stores events, and [trace.Func] are observers.
//
// Each call of Open, Load and Execute is one event, reported with its error after the events of its
// parts; so is each stage that started. Events that no observer subscribes to cost nothing.
type Observer interface {
	// Wants returns the kinds of events to report. It is called once, when the observer is set.
	Wants() trace.Kinds
	// Observe receives an event. The goroutine that does the work calls it and waits, so it must
	// return quickly and must not use the method of the event. Several methods may call it
	// concurrently. The event is valid during the call only, see [trace.Event].
	//
	// A panic ends the reported call of Open, Load or Execute with a *PanicError; the method
	// remains usable.
	Observe(e *trace.Event)
}

// watcher is an observer and the kinds of events it receives.
type watcher struct {
	Observer
	wants trace.Kinds
}

func newWatcher(o Observer) watcher { return watcher{o, o.Wants()} }

// watch reports the work of one goroutine to observers. The zero value and nil have no observers.
type watch struct {
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
	fault  *PanicError // of an observer
}

// Counters of instances and runs, see trace.Event.
var lastInstance, lastRun atomic.Int64

// newWatch returns a watch for one load, run or wait.
func newWatch(ctx context.Context, watchers []watcher, method string) *watch {
	w := &watch{watchers: watchers, ctx: ctx, method: method, instance: lastInstance.Add(1), mark: trace.Now()}
	w.began = w.mark
	w.count()
	return w
}

// count computes the union of the observers' kinds.
func (w *watch) count() {
	w.wants = w.own.wants
	for i := range w.watchers {
		w.wants |= w.watchers[i].wants
	}
}

// set initializes the next event.
func (w *watch) set(kind trace.Kind, name string, start, end time.Duration, err error) *trace.Event {
	w.event = trace.Event{Kind: kind, Name: name, Method: w.method, Instance: w.instance, Run: w.run,
		Chain: -1, Instruction: -1, Delegate: -1, Index: -1, Start: start, End: end, Context: w.ctx,
		Err: err, Reason: reasonOf(err)}
	return &w.event
}

// tell reports the event to the observers that subscribe to its kind.
func (w *watch) tell() {
	for i := range w.watchers {
		w.call(&w.watchers[i])
	}
	w.call(&w.own)
}

// call calls one observer and recovers its panic.
func (w *watch) call(o *watcher) {
	if !o.wants.Has(w.event.Kind) {
		return
	}
	defer func() {
		if fault := recover(); fault != nil && w.fault == nil {
			w.fault = &PanicError{Value: fault, Stack: debug.Stack(), observer: true}
		}
	}()
	o.Observe(&w.event)
}

// failure returns err or, if it is nil, the panic of an observer.
func (w *watch) failure(err error) error {
	if err == nil && w != nil && w.fault != nil {
		return w.fault
	}
	return err
}

// stage reports a stage that has just ended. It started when the previous one ended.
func (w *watch) stage(name string, bytes int64, err error) error {
	return w.stageOf(name, -1, "", bytes, err)
}

// stageOf is stage for a delegate.
func (w *watch) stageOf(name string, index int, backend string, bytes int64, err error) error {
	if w == nil {
		return err
	}
	if w.wants.Has(trace.Stage) {
		e := w.set(trace.Stage, name, w.mark, trace.Now(), err)
		e.Delegate, e.Backend, e.Bytes = index, backend, bytes
		w.tell()
	}
	w.next()
	return w.failure(err)
}

// next starts the next stage now.
func (w *watch) next() {
	if w != nil {
		w.mark = trace.Now()
	}
}

// whole reports an Open, Load, run or wait that has ended.
func (w *watch) whole(kind trace.Kind, name string, bytes int64, err error) error {
	if w == nil {
		return err
	}
	if w.wants.Has(kind) {
		w.set(kind, name, w.began, trace.Now(), err).Bytes = bytes
		w.tell()
	}
	return w.failure(err)
}

// memory reports bytes allocated, or freed if negative.
func (w *watch) memory(kind string, bytes int64) {
	if w != nil && bytes != 0 && w.wants.Has(trace.Memory) {
		now := trace.Now()
		w.set(trace.Memory, kind, now, now, nil).Bytes = bytes
		w.tell()
	}
}

// begin reports the start of a run.
func (w *watch) begin() {
	if w.began = trace.Now(); w.wants.Has(trace.Begin) {
		w.set(trace.Begin, w.method, w.began, w.began, nil)
		w.tell()
		w.began = trace.Now()
	}
}

// reasons are the names of the error classes, see trace.Event.
var reasons = []struct {
	class error
	word  string
}{
	{ErrPanic, "panic"}, {ErrFormat, "format"}, {ErrUnsupported, "unsupported"}, {ErrMissing, "missing"},
	{ErrInput, "input"}, {ErrMemory, "memory"}, {ErrDevice, "device"}, {ErrClosed, "closed"}, {ErrBusy, "busy"},
	{ErrExecute, "execute"}, {context.DeadlineExceeded, "deadline"}, {context.Canceled, "canceled"},
}

// reasonOf returns the name of an error's class.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	if class := classOf(err, nil); class != nil {
		err = class
	}
	for i := range reasons {
		if errors.Is(err, reasons[i].class) {
			return reasons[i].word
		}
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return "io"
	}
	return "other"
}
