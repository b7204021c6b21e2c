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

// Observer is told what a program does: what loading takes, executes, instructions,
// calls of delegates, nodes inside delegates, memory, and how each of them failed.
// [WithObserver] sets one for a program, [Method.Observe] one for an instance of a
// method. Collectors of metrics, tracers and loggers are observers, and so are
// [trace.Recorder], which keeps events, and [trace.Func].
//
// Every call of Open, Read, Load and Execute is told of once, with its error, after its
// parts; so is every stage that began. What no observer wants costs nothing.
type Observer interface {
	// Wants says which events the observer is told of. It is called once, when the
	// observer is set.
	Wants() trace.Kinds
	// Observe is told of an event by the goroutine that does the work, which waits for
	// it: it must be quick, and must not use the method that it is told of. Methods
	// that work at the same time call it at the same time. The event is lent for the
	// call, see [trace.Event].
	//
	// A panic ends the call of Open, Load or Execute that it was told of with a
	// *PanicError; the method stays usable.
	Observe(e *trace.Event)
}

// watcher is an observer with what it wants.
type watcher struct {
	Observer
	wants trace.Kinds
}

func newWatcher(o Observer) watcher { return watcher{o, o.Wants()} }

// watch tells observers what one goroutine at a time does. Its zero value has none, and
// neither has nil.
type watch struct {
	watchers []watcher // the program's
	own      watcher   // the method's
	wants    trace.Kinds
	ctx      context.Context
	method   string
	instance int64
	run      int64

	event  trace.Event   // lent to observers
	began  time.Duration // the whole
	mark   time.Duration // the stage or instruction
	nodes  []delegate.NodeTime
	pc     int // the step that executes
	values []trace.Value
	fault  *PanicError // of an observer
}

// Numbers of instances and runs, see trace.Event.
var lastInstance, lastRun atomic.Int64

// newWatch makes a watch of one piece of work.
func newWatch(ctx context.Context, watchers []watcher, method string) *watch {
	w := &watch{watchers: watchers, ctx: ctx, method: method, instance: lastInstance.Add(1), mark: trace.Now()}
	w.began = w.mark
	w.count()
	return w
}

// count finds what the observers want together.
func (w *watch) count() {
	w.wants = w.own.wants
	for i := range w.watchers {
		w.wants |= w.watchers[i].wants
	}
}

// set begins the event that is told next.
func (w *watch) set(kind trace.Kind, name string, start, end time.Duration, err error) *trace.Event {
	w.event = trace.Event{Kind: kind, Name: name, Method: w.method, Instance: w.instance, Run: w.run,
		Chain: -1, Instruction: -1, Delegate: -1, Index: -1, Start: start, End: end, Context: w.ctx,
		Err: err, Reason: reasonOf(err)}
	return &w.event
}

// tell hands the event to those that want its kind.
func (w *watch) tell() {
	for i := range w.watchers {
		w.call(&w.watchers[i])
	}
	w.call(&w.own)
}

// call contains a panic of an observer.
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

// failure is err or, without it, the fault of an observer.
func (w *watch) failure(err error) error {
	if err == nil && w != nil && w.fault != nil {
		return w.fault
	}
	return err
}

// stage tells of a stage that has just ended and began when the last one had.
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

// next lets a stage begin now.
func (w *watch) next() {
	if w != nil {
		w.mark = trace.Now()
	}
}

// whole tells of an Open or Load that has ended.
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

// memory tells of memory taken, or given back where bytes is negative.
func (w *watch) memory(kind string, bytes int64) {
	if w != nil && bytes != 0 && w.wants.Has(trace.Memory) {
		now := trace.Now()
		w.set(trace.Memory, kind, now, now, nil).Bytes = bytes
		w.tell()
	}
}

// begin tells that an execute begins.
func (w *watch) begin() {
	if w.began = trace.Now(); w.wants.Has(trace.Begin) {
		w.set(trace.Begin, w.method, w.began, w.began, nil)
		w.tell()
		w.began = trace.Now()
	}
}

// reasons are the words for the classes of failure, see trace.Event.
var reasons = []struct {
	class error
	word  string
}{
	{ErrPanic, "panic"}, {ErrFormat, "format"}, {ErrUnsupported, "unsupported"}, {ErrMissing, "missing"},
	{ErrInput, "input"}, {ErrMemory, "memory"}, {ErrDevice, "device"}, {ErrClosed, "closed"}, {ErrBusy, "busy"},
	{ErrExecute, "execute"}, {context.DeadlineExceeded, "deadline"}, {context.Canceled, "canceled"},
}

// reasonOf is the word for an error's class.
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
