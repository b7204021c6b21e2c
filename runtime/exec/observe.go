package exec

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Observe sets an observer in addition to those of the program, nil for none. It fails if measuring nodes would exceed the memory limit.
func (m *Instance) Observe(o Observer) error {
	var own watcher
	if o != nil {
		own = newWatcher(o)
	}
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	w := &m.observed
	before := w.wants.Has(trace.Node)
	w.own = own
	w.count()
	m.setViews(w.wants.Any(trace.Values))
	now := w.wants.Has(trace.Node)
	if now == before {
		return nil
	}
	err := m.affordsProfiling(now)
	if err == nil {
		err = m.setProfiling(now)
	}
	if err != nil {
		w.own = watcher{}
		w.count()
		m.setViews(w.wants.Any(trace.Values))
		m.setProfiling(before)
	}
	return err
}

// affordsProfiling returns an error if measuring nodes would exceed the memory limit.
func (m *Instance) affordsProfiling(on bool) error {
	limit := m.program.Limits.Total
	if !on || limit == 0 {
		return nil
	}
	e := m.shared.MemoryNeeded(m.plan, m.program.Size)
	more := int64(0)
	for i := range m.shared.Needs {
		more += m.shared.Needs[i].Profiling
	}
	if e.Want += more; e.Want <= limit {
		return nil
	}
	e.Parts, e.Limit = append(e.Parts, prepare.Part{Name: "measuring nodes", Bytes: more}), limit
	return m.program.Prepare(m.ir.Name, e)
}

// setProfiling switches the measurement of nodes in the units that support it.
func (m *Instance) setProfiling(on bool) error {
	for i, u := range m.units {
		if p, ok := u.(delegate.Profiler); ok {
			if err := p.SetProfiling(on); err != nil {
				return fmt.Errorf("%s: %w", m.ir.Delegates[i], err)
			}
		}
	}
	return nil
}

// Kinds of events within a run, without and with the run itself.
const (
	ofInstructions = trace.Instructions | trace.Nodes | trace.Values
	ofExecutes     = ofInstructions | trace.Executes
)

// observe is execute with observers.
func (m *Instance) observe(ctx context.Context) error {
	err := m.startObserved(ctx)
	if err == nil {
		err = m.execute(ctx)
	}
	if err == nil && m.observed.wants.Has(trace.Written) {
		m.reportOutputs()
	}
	return m.endObserved(err)
}

// startObserved reports the beginning of a run, and endObserved its end and its error.
func (m *Instance) startObserved(ctx context.Context) error {
	w := &m.observed
	w.ctx, w.run, w.fault = ctx, lastRun.Add(1), nil
	w.begin()
	return w.failure(nil)
}

func (m *Instance) endObserved(err error) error {
	w := &m.observed
	err = w.Ended(trace.Execute, w.method, 0, err)
	w.ctx, w.run, w.event = nil, 0, trace.Event{}
	return err
}

// refused reports to the program's observers a run of a method that is closed or in use.
func (m *Instance) refused(ctx context.Context, err error) error {
	if len(m.program.list) == 0 {
		return err
	}
	w := m.program.newWatch(ctx, m.ir.Name)
	w.instance, w.run = m.observed.instance, lastRun.Add(1)
	w.begin()
	return w.Ended(trace.Execute, w.method, 0, err)
}

var eventKinds = [...]trace.Kind{
	ir.KernelCall: trace.Operator, ir.DelegateCall: trace.Delegate, ir.MoveCall: trace.Move,
	ir.JumpFalseCall: trace.Jump, ir.FreeCall: trace.Free, ir.SizesJump: trace.Jump,
}

// doObserved is do with observers.
func (m *Instance) doObserved(ctx context.Context, pc int) (next int, err error) {
	w, s := &m.observed, &m.steps[pc]
	if w.wants.Has(trace.Read) {
		m.reportValues(pc, trace.Read)
	}
	if w.pc = pc; !w.wants.Has(eventKinds[s.kind]) && (s.unit == nil || !w.wants.Has(trace.Node)) {
		next, err = m.do(ctx, pc)
	} else {
		w.mark = trace.Now()
		if next, err = m.do(ctx, pc); err != nil {
			err = m.failed(pc, err)
		}
		m.reportInstruction(s, err)
	}
	if err == nil && w.wants.Has(trace.Written) {
		m.reportValues(pc, trace.Written)
	}
	return next, w.failure(err)
}

// reportInstruction reports an instruction and its nodes.
func (m *Instance) reportInstruction(s *step, err error) {
	w, end := &m.observed, trace.Now()
	if err == nil && s.unit != nil && w.wants.Has(trace.Node) {
		m.reportNodes(s)
	}
	if kind := eventKinds[s.kind]; w.wants.Has(kind) {
		e := w.set(kind, s.name, w.mark, end, err)
		e.Chain, e.Instruction = s.origin.Chain, s.origin.Index
		if s.unit != nil {
			e.Delegate, e.Backend = s.delegate, s.backend
		}
		w.report()
	}
}

// reportNodes reports the nodes that a delegate has measured, laid end to end from its start.
func (m *Instance) reportNodes(s *step) {
	w := &m.observed
	p, ok := s.unit.(delegate.Profiler)
	if !ok {
		return
	}
	w.nodes = p.Profile(w.nodes[:0])
	at := w.mark
	for i := range w.nodes {
		e := w.set(trace.Node, w.nodes[i].Name, at, at+w.nodes[i].Duration, nil)
		at = e.End
		e.Chain, e.Instruction = s.origin.Chain, s.origin.Index
		e.Delegate, e.Backend, e.Index = s.delegate, s.backend, i
		w.report()
	}
}

// reportValues reports the values that step pc is about to read, or has written.
func (m *Instance) reportValues(pc int, kind trace.Kind) {
	w, s := &m.observed, &m.steps[pc]
	w.values = m.appendArgs(w.values[:0], &m.ir.Steps[pc], kind)
	if s.kind == ir.FreeCall {
		return
	}
	m.setValues(s, kind, s.name)
	w.report()
}

// reportOutputs reports the outputs of a run.
func (m *Instance) reportOutputs() {
	w, now := &m.observed, trace.Now()
	w.values = w.values[:0]
	for _, v := range m.ir.Outputs {
		w.values = m.appendValue(w.values, v)
	}
	w.set(trace.Written, w.method, now, now, nil).Values = w.values
	w.report()
}

// setValues starts an event for the values in m.observed.values.
func (m *Instance) setValues(s *step, kind trace.Kind, name string) *trace.Event {
	w, now := &m.observed, trace.Now()
	e := w.set(kind, name, now, now, nil)
	e.Chain, e.Instruction, e.Values = s.origin.Chain, s.origin.Index, w.values
	if s.unit != nil {
		e.Delegate, e.Backend = s.delegate, s.backend
	}
	return e
}

// appendArgs appends the arguments that a step reads or writes, in order.
func (m *Instance) appendArgs(dst []trace.Value, s *ir.Step, kind trace.Kind) []trace.Value {
	for i, v := range s.Args {
		if reads, writes := s.Uses(i); kind == trace.Read && reads || kind == trace.Written && writes {
			dst = m.appendValue(dst, v)
		}
	}
	return dst
}

// appendValue appends a value, or the items of a list. It skips None.
func (m *Instance) appendValue(dst []trace.Value, v int) []trace.Value {
	from, now := &m.ir.Values[v], &m.values[v]
	switch now.Kind {
	case tensor.None:
		return dst
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		for _, item := range from.Items() {
			if item >= 0 {
				dst = m.appendValue(dst, item)
			}
		}
		return dst
	}
	name := ""
	if from.Tensor != nil {
		name = from.Tensor.Name
	}
	return append(dst, trace.Value{Index: v, Name: name, Value: now})
}

// setViews switches the reporting of inner values in the units that support it.
func (m *Instance) setViews(on bool) {
	for _, u := range m.units {
		if v, ok := u.(delegate.Viewer); ok {
			if on {
				v.View(m.reportNodeValues)
			} else {
				v.View(nil)
			}
		}
	}
}

// reportNodeValues reports the values that a node of the running delegate reads, or has written.
func (m *Instance) reportNodeValues(n *delegate.NodeValues) {
	kind := trace.Read
	if n.Written {
		kind = trace.Written
	}
	w := &m.observed
	if !w.wants.Has(kind) {
		return
	}
	w.values = w.values[:0]
	for i := range n.Values {
		w.values = append(w.values, trace.Value{Index: n.Values[i].Index, Value: &n.Values[i].Value})
	}
	m.setValues(&m.steps[w.pc], kind, n.Name).Index = n.Index
	w.report()
}
