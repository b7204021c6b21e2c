package exectest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Guard overwrites all arena bytes that no live storage uses before every kernel and delegate call, and checks that calls do not write
// them. It observes a method, and is the context of its runs: units ask it for its error once before each moment. It sees the memory
// of values that steps have read: arenas from the lowest of these on.
type Guard struct {
	context.Context
	Fault error // the first write to dead bytes

	plan   *plan.Memory
	poison byte
	arenas []arena
	at     int // the step that started last, -1 before the first
	// The moments of that step, if it is a call, and the one behind that whose dead bytes were overwritten; else all are equal.
	first, next, end int
}

// arena is the part of an arena from an offset on.
type arena struct {
	bytes []byte
	from  int64
}

// NewGuard returns a guard of a method with a plan.
func NewGuard(p *plan.Memory, poison byte) *Guard {
	return &Guard{Context: context.Background(), plan: p, poison: poison, arenas: make([]arena, len(p.Arenas))}
}

// Wants returns the kinds of events that the guard needs.
func (*Guard) Wants() trace.Kinds { return trace.Executes | 1<<trace.Read }

// Observe follows the steps of a run.
func (g *Guard) Observe(e *trace.Event) {
	switch {
	case e.Kind == trace.Begin:
		g.at = -1
	case e.Kind == trace.Execute:
		g.finish()
	case e.Index < 0: // not a node of a delegate
		g.finish()
		g.start(e)
	}
}

// start overwrites dead bytes before a call.
func (g *Guard) start(e *trace.Event) {
	m, was := g.plan.Method, g.at
	g.at = -1
	for _, i := range g.following(was) {
		if s := &m.Steps[i]; (ir.Origin{Chain: e.Chain, Index: e.Instruction}) == s.Origin && e.Name == m.StepName(s) {
			g.at = i
			break
		}
	}
	if g.at < 0 {
		panic(fmt.Sprintf("no step behind %d is %s of instruction %d:%d", was, e.Name, e.Chain, e.Instruction))
	}
	g.learn(e.Values)
	if k := m.Steps[g.at].Kind; k == ir.KernelCall || k == ir.DelegateCall {
		g.first, g.end = g.plan.Moments[g.at], g.plan.Moments[g.at+1]
		g.spoil(g.first)
		if g.next = g.first; g.end == g.first+1 {
			g.next = g.end
		}
	}
}

// finish checks the bytes that were overwritten last.
func (g *Guard) finish() {
	if g.next > g.first {
		g.check(g.next - 1)
	}
	g.first, g.end = g.next, g.next
}

// Err starts the next moment of a call that has several.
func (g *Guard) Err() error {
	if g.end > g.first+1 {
		if g.next > g.first {
			g.check(g.next - 1)
		}
		g.spoil(g.next)
		g.next++
	}
	return nil
}

// following lists the steps that may run after a step, without those that no event has.
func (g *Guard) following(at int) (list []int) {
	steps := g.plan.Method.Steps
	next := []int{at + 1}
	if at >= 0 && (steps[at].Kind == ir.JumpFalseCall || steps[at].Kind == ir.SizesJump) {
		next = append(next, steps[at].Target)
	}
	for _, i := range next {
		for i < len(steps) && steps[i].Kind == ir.FreeCall {
			i++
		}
		if i < len(steps) {
			list = append(list, i)
		}
	}
	return list
}

// learn finds the arenas of values: their slices reach to the end.
func (g *Guard) learn(values []trace.Value) {
	m := g.plan.Method
	for i := range values {
		s := m.Values[values[i].Index].Storage
		if values[i].Value.Kind != tensor.KindTensor || s < 0 || m.Storages[s].Kind != ir.Activation && m.Storages[s].Kind != ir.Input ||
			m.Storages[s].Output || g.plan.Callers[s] {
			continue
		}
		at, b := g.plan.Places[s], values[i].Value.Tensor.Storage()
		a := &g.arenas[at.Arena]
		if (a.bytes == nil || at.Offset < a.from) && at.Offset+int64(cap(b)) == g.plan.Arenas[at.Arena] {
			a.bytes, a.from = b[:cap(b)], at.Offset
		}
	}
}

// spoil overwrites the bytes between the storages that are live at a moment.
func (g *Guard) spoil(moment int) {
	g.eachDead(moment, func(dead []byte) {
		for k := range dead {
			dead[k] = g.poison
		}
	})
}

// check checks the bytes that spoil has overwritten.
func (g *Guard) check(moment int) {
	g.eachDead(moment, func(dead []byte) {
		if k := slices.IndexFunc(dead, func(b byte) bool { return b != g.poison }); k >= 0 && g.Fault == nil {
			step, m := g.plan.Step(moment), g.plan.Method
			g.Fault = fmt.Errorf("step %d (%s), moment %d writes byte %d of %d that are not in use", step, m.StepName(&m.Steps[step]),
				moment-g.plan.Moments[step], k, len(dead))
		}
	})
}

// eachDead calls do for the bytes between the storages that are live at a moment.
func (g *Guard) eachDead(moment int, do func(dead []byte)) {
	for i, a := range g.arenas {
		if a.bytes == nil {
			continue
		}
		var alive []int
		for k, it := range g.plan.Items {
			if it.Bytes > 0 && g.plan.Places[k].Arena == i && it.First <= moment && moment <= it.Last {
				alive = append(alive, k)
			}
		}
		slices.SortFunc(alive, func(a, b int) int { return cmp.Compare(g.plan.Places[a].Offset, g.plan.Places[b].Offset) })
		end := a.from
		for _, k := range append(alive, -1) {
			next := a.from + int64(len(a.bytes))
			if k >= 0 {
				next = g.plan.Places[k].Offset
			}
			if end < next {
				do(a.bytes[end-a.from : next-a.from])
			}
			if k >= 0 {
				end = max(end, next+g.plan.Items[k].Bytes)
			}
		}
	}
}

// Listing describes the steps and storages of a method.
func Listing(p *plan.Memory) (s string) {
	for i := range p.Method.Steps {
		in := &p.Method.Steps[i]
		s += fmt.Sprintf("%d %v %s %v -> %d\n", i, in.Kind, p.Method.StepName(in), in.Args, in.Target)
	}
	for i, st := range p.Method.Storages {
		s += fmt.Sprintf("storage %d: %v %v [%d,%d] at %d\n", i, st.Values, st.Kind, st.First, st.Last, p.Places[i].Offset)
	}
	return s
}
