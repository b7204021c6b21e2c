package exec

import (
	"context"
	"sync"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Slot holds the data that the instances of one method share, from the first load on.
type Slot struct {
	preparation preparation // used by the running attempt

	mu      sync.Mutex
	done    *prepare.Method
	running *attempt // nil if none
}

// attempt is one run of a preparation. It continues as long as a caller waits for it, and is
// canceled when the last one leaves, between two delegates. Finished parts are kept for the next
// attempt.
type attempt struct {
	cancel    context.CancelFunc
	waiting   int           // guarded by Slot.mu
	abandoned bool          // canceled; guarded by Slot.mu
	ended     chan struct{} // closed when result and err are set
	result    *prepare.Method
	err       error
}

// Init sets what is prepared.
func (s *Slot) Init(from *prepare.Source, o *Observers) {
	s.preparation.Source, s.preparation.observers = *from, o
}

// Close frees what the instances have shared.
func (s *Slot) Close() error { return s.preparation.close() }

// Get returns the prepared data. It waits for the running attempt, or starts one, no longer than
// ctx allows. The caller retains the program.
func (s *Slot) Get(ctx context.Context, p *Program) (*prepare.Method, error) {
	for ctx.Err() == nil {
		done, a := s.join(ctx, p)
		if done != nil {
			return done, nil
		}
		select {
		case <-ctx.Done():
			s.leave(a)
		case <-a.ended:
			if abandoned := s.leave(a); !abandoned || a.err == nil {
				return a.result, a.err
			}
		}
	}
	return nil, context.Cause(ctx)
}

// Ready returns the prepared data, nil if there is none yet.
func (s *Slot) Ready() *prepare.Method {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// Outline describes the method before any pass changes it.
func (s *Slot) Outline(ctx context.Context) (*prepare.Outline, error) {
	p := &s.preparation
	o, err := p.Outline(ctx, reporter{nil, p.observers.Faults, p.Method.Name}, s.Ready())
	return o, p.observers.Prepare(p.Method.Name, err)
}

// join returns the prepared data if there is any, else the running attempt or a new one.
func (s *Slot) join(ctx context.Context, p *Program) (*prepare.Method, *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil {
		return s.done, nil
	}
	if s.running == nil {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		s.running = &attempt{cancel: cancel, ended: make(chan struct{})}
		p.Retain()
		go s.attempt(own, s.running, p)
	}
	s.running.waiting++
	return nil, s.running
}

// leave ends the wait for an attempt; abandoned reports whether the attempt was canceled.
func (s *Slot) leave(a *attempt) (abandoned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.waiting--; a.waiting == 0 && s.running == a {
		a.abandoned = true
		a.cancel()
	}
	return a.abandoned
}

// attempt runs the preparation.
func (s *Slot) attempt(ctx context.Context, a *attempt, p *Program) {
	defer close(a.ended)
	defer p.Release()
	a.result, a.err = s.preparation.run(ctx)
	a.cancel()
	s.end(a)
}

// end stores the result of the running attempt.
func (s *Slot) end(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.done = nil, a.result
}

// preparation prepares a method for a slot.
type preparation struct {
	prepare.Preparation
	observers *Observers
}

// run prepares the method.
func (p *preparation) run(ctx context.Context) (done *prepare.Method, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			done, err = nil, p.observers.Panic(fault, false)
		}
	}()
	name := p.Method.Name
	done, err = p.Run(ctx, reporter{p.observers.Watch(ctx, name), p.observers.Faults, name})
	return done, p.observers.Prepare(name, err)
}

// close frees what the method's instances have shared.
func (p *preparation) close() error {
	name := p.Method.Name
	return p.Close(reporter{p.observers.Watch(context.Background(), name), p.observers.Faults, name})
}

// reporter reports a preparation to observers. The watch may be nil.
type reporter struct {
	watch  *Watch
	faults Faults
	method string
}

func (r reporter) Stage(name string, bytes int64, err error) error {
	return r.watch.Stage(name, bytes, r.faults.Prepare(r.method, err))
}

func (r reporter) Compiled(delegate int, backend string, bytes int64, err error) error {
	return r.watch.stageOf(trace.StageCompile, delegate, backend, bytes, err)
}

func (r reporter) Memory(kind string, bytes int64) { r.watch.Memory(kind, bytes) }

// Folded reports the values that steps executed at load read and wrote.
func (r reporter) Folded(before, after *ir.Method, folded []lower.Folded) {
	w := r.watch
	if w == nil || !w.wants.Any(trace.Values) {
		return
	}
	at := make(map[ir.Origin]bool, len(folded))
	for i := range folded {
		at[folded[i].Origin] = true
	}
	for i := range before.Steps {
		if s := &before.Steps[i]; at[s.Origin] {
			w.constants(trace.Read, before.StepName(s), s.Origin, after, s.Reads)
			w.constants(trace.Written, before.StepName(s), s.Origin, after, s.Writes)
		}
	}
}

// constants reports values of a step that were constants when it was executed at load.
func (w *Watch) constants(kind trace.Kind, name string, at ir.Origin, m *ir.Method, values []int) {
	w.values = w.values[:0]
	for _, v := range values {
		w.values = append(w.values, constantValue(m, v))
	}
	now := trace.Now()
	e := w.set(kind, name, now, now, nil)
	e.Chain, e.Instruction, e.Values = at.Chain, at.Index, w.values
	w.report()
}

// constantValue returns a tensor with known bytes.
func constantValue(m *ir.Method, v int) trace.Value {
	d := m.Values[v].Tensor
	t := tensor.Make(d.DType, d.Sizes, d.DimOrder, tensor.Static)
	t.Const = true
	t.Bind(m.Storages[m.Values[v].Storage].Data)
	value := tensor.TensorValue(t)
	return trace.Value{Index: v, Name: d.Name, Value: &value}
}
