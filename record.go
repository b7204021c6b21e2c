package etrun

import (
	"context"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Record makes the method add an event for every instruction, and for every node
// of delegates that can measure them, to r; nil ends it. It costs nothing while off.
func (m *Method) Record(r *trace.Recorder) error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	m.recorder = r
	for _, u := range m.units {
		if p, ok := u.(delegate.Profiler); ok {
			if err := p.SetProfiling(r != nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Method) runTraced(ctx context.Context) error {
	if m.recorder == nil {
		return m.run(ctx)
	}
	start := m.recorder.Now()
	m.mark = start
	err := m.run(ctx)
	m.recorder.EndRun(m.ir.Name, start)
	return err
}

var eventKinds = map[ir.StepKind]trace.Kind{
	ir.KernelCall: trace.Operator, ir.DelegateCall: trace.Delegate, ir.MoveCall: trace.Move,
	ir.JumpFalseCall: trace.Jump, ir.FreeCall: trace.Free,
}

// record adds the instruction that has just ended. It began where the last one ended.
func (m *Method) record(pc int) {
	s := &m.steps[pc]
	e := trace.Event{Kind: eventKinds[s.kind], Name: s.name, Chain: s.origin.Chain, Instruction: s.origin.Index,
		Index: -1, Start: m.mark, End: m.recorder.Now()}
	m.mark = e.End
	m.recorder.Add(e)
	p, ok := s.unit.(delegate.Profiler)
	if !ok {
		return
	}
	at := e.Start
	for i, n := range p.Profile(nil) {
		m.recorder.Add(trace.Event{Kind: trace.Node, Name: n.Name, Chain: e.Chain, Instruction: e.Instruction, Index: i, Start: at, End: at + n.Duration})
		at += n.Duration
	}
}
