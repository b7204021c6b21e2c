package lower

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Regions lowers parts of a method to backends: convex sets of calls in straight-line code, each
// executed as one delegate at the position of its last call or, if other steps wait for it, before
// these. A region that cannot be lowered is no error: its calls stay unchanged. An error comes from
// ctx or from this package.
func Regions(ctx context.Context, m *ir.Method, by Backends) (*ir.Method, *Report, error) {
	report := &Report{Calls: make([]Call, len(m.Steps))}
	for i := range m.Steps {
		report.Calls[i] = Call{Name: m.StepName(&m.Steps[i]), Origin: m.Steps[i].Origin, Region: -1, Reason: staysAs[m.Steps[i].Kind]}
	}
	switch {
	case m.Coarse:
		report.because("the method's dataflow is too large to analyze")
		return m, report, nil
	case by.Contradiction != "":
		report.because(by.Contradiction)
		return m, report, nil
	case len(by.Compilers) == 0:
		report.because("no backend compiles graphs here")
		return m, report, nil
	}
	l := &lowering{Backends: by, ctx: ctx, flow: newFlow(m, by.Dataflow, by.Payloads), report: report,
		left: maxPartitionWork, first: len(m.Delegates)}
	if l.InFile {
		l.sized, l.varies = computedSizes(m), sizesThatVary(m)
	}
	for _, b := range blocks(m, l.Flow) {
		if err := l.block(b); err != nil {
			return nil, nil, err
		}
	}
	if l.edit == nil {
		return m, report, nil
	}
	m, err := l.edit.Apply()
	if err == nil {
		forgetConstants(m)
	}
	return m, report, err
}

// forgetConstants releases constants that were computed at load for steps that are now in regions:
// backends hold copies of what they need. A list of a call may have an item that the call does not use.
func forgetConstants(m *ir.Method) {
	listed := make(map[int]bool)
	for i := range m.Steps {
		for _, v := range m.Steps[i].Args {
			if v < 0 {
				continue
			}
			for _, item := range m.Values[v].Items() {
				if item >= 0 {
					listed[m.Values[item].Storage] = true
				}
			}
		}
	}
	for i := range m.Storages {
		if s := &m.Storages[i]; s.Kind == ir.Folded && !s.Output && s.Last < s.First && !listed[i] {
			s.Data, s.Bytes = nil, 0
		}
	}
}

// rounds bounds how often a block is partitioned again after a compiler refused calls in their
// region.
const rounds = 4

// block lowers the regions of one block.
func (l *lowering) block(b block) error {
	l.enter(b)
	kind := l.choose()
	if !slices.ContainsFunc(kind, func(k int) bool { return k != outside }) {
		return nil
	}
	var found []*candidate
	for round := range rounds {
		p, ok := newPartition(l.flow, kind, &l.left, &l.sets)
		if !ok {
			l.explain(kind, "the method is too large to look for regions")
			return nil
		}
		p.grow()
		again := false
		if found, again = l.candidates(p, kind, found); !again || round == rounds-1 {
			return l.decide(p, found)
		}
	}
	return nil
}

// choose gives each step of the block to the first compiler that may take it, by the operator.
// Whether it takes the call is known when its region is.
func (l *lowering) choose() (kind []int) {
	kind = make([]int, l.to-l.from)
	for i := range kind {
		why := l.refused[i]
		if kind[i] = outside; why == "" {
			kind[i], why = l.taker(i)
		}
		if kind[i] == outside {
			l.because(i, why)
		}
	}
	return kind
}

// taker is the first compiler that may take step i.
func (l *lowering) taker(i int) (k int, why string) {
	s := l.step(i)
	for k, c := range l.Compilers {
		refusal := ""
		switch p := l.payload(s); {
		case p.Opened != nil && p.Backend != c.ID():
			continue
		case p.Opened == nil && !l.isReshape(s):
			refusal = l.unsupported(k, s.Op)
		}
		if refusal == "" {
			return k, ""
		}
		why = cmp.Or(why, c.ID()+": "+refusal)
	}
	return outside, why
}

// unsupported is why compiler k takes no call of an operator, "" if it may take some.
func (l *lowering) unsupported(k int, op *kernels.Op) string {
	if c, ok := l.Compilers[k].(regions.Selector); ok {
		return c.Unsupported(op)
	}
	return ""
}

// next is the first compiler behind k that takes call n of a graph, of step i.
func (l *lowering) next(g *graph, n, i, k int) int {
	for k++; k < len(l.Compilers) && l.payload(l.step(i)).Opened == nil; k++ {
		if l.Compilers[k].Accepts(g.Graph, n) == "" {
			return k
		}
	}
	return outside
}

// explain records why the steps that a compiler accepted are not lowered.
func (l *lowering) explain(kind []int, why string) {
	for i, k := range kind {
		if k != outside {
			l.because(i, why)
		}
	}
}

// candidates makes a graph of each cluster that was not known before, and asks for its time. again
// reports whether a compiler refused calls.
func (l *lowering) candidates(p *partition, kind []int, known []*candidate) (list []*candidate, again bool) {
	for _, steps := range p.clusters() {
		taker := kind[steps[0]]
		same := func(c *candidate) bool { return c.kind == taker && slices.Equal(c.steps, steps) }
		if at := slices.IndexFunc(known, same); at >= 0 {
			list = append(list, known[at])
			continue
		}
		g := l.newGraph(steps, func(i int) bool { return p.cluster[i] == steps[0] })
		if len(g.Calls) == 0 {
			continue
		}
		c := &candidate{steps: steps, graph: g, kind: taker, taker: l.Compilers[taker],
			inputs: len(g.Inputs), outputs: len(g.Outputs)}
		again = l.refuse(c, kind) || again
		if c.reason != "" {
			l.forget(c)
		}
		list = append(list, c)
	}
	return list, again
}

// forget releases the graph of a candidate, which was made last.
func (l *lowering) forget(c *candidate) {
	if kept, ok := c.graph.Kept.(interface{ Drop() }); ok {
		kept.Drop()
	}
	c.graph = nil
	l.building.forget()
}

// refuse sets the reason of a candidate that cannot be taken. If its compiler does not take it as a
// whole, each of its calls is asked for, and those that are refused go to another compiler or to
// none.
func (l *lowering) refuse(c *candidate, kind []int) (again bool) {
	if c.isPayload() {
		c.reason = alreadyLowered
		return false
	}
	var err error
	if c.work, err = c.taker.Measure(c.graph.Graph); err != nil {
		return l.refuseCalls(c, kind, err)
	}
	switch {
	case c.outputs == 0:
		c.reason = "no step reads its results"
	case l.InFile && marked(l.sized, c.graph.inputs):
		c.reason = "the sizes of an argument are computed, and a delegate does not run sizes of 0"
	case l.InFile && l.overlaps(c.graph):
		c.reason = "a result shares its bytes with an argument or another result"
	case l.All:
	case l.Portable:
		c.reason = c.few()
	default:
		c.reason = c.small()
	}
	return false
}

// refuseCalls takes the calls from the compiler of a candidate that it refuses.
func (l *lowering) refuseCalls(c *candidate, kind []int, err error) (again bool) {
	for n, i := range c.graph.of {
		why := c.taker.Accepts(c.graph.Graph, n)
		if why == "" || kind[i] == outside {
			continue
		}
		why = c.taker.ID() + ": " + why
		again = true
		c.reason = cmp.Or(c.reason, fmt.Sprintf("%s: %s", c.graph.Calls[n].Place, why))
		if kind[i] = l.next(c.graph, n, i, c.kind); kind[i] == outside {
			l.because(i, why)
		}
	}
	c.reason = cmp.Or(c.reason, err.Error())
	return again
}

// decide takes the candidates that pay off.
func (l *lowering) decide(p *partition, found []*candidate) error {
	sequence := slices.Clone(p.cluster)
	taken := make(map[int]*candidate)
	for _, c := range found {
		ok, err := l.accept(c)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if l.edit == nil {
			l.edit = l.m.Edit()
		}
		l.edit.AddDelegate(fmt.Sprintf("delegate %d, %.100s", c.graph.Index, c.taker.ID()))
		taken[c.steps[0]] = c
	}
	for i, first := range sequence {
		if taken[first] == nil {
			sequence[i] = i
		}
	}
	if len(taken) == 0 {
		return nil
	}
	l.emit(l.sequence(sequence), taken)
	return nil
}

// accept compiles a candidate unless it costs more than it gains, and reports it.
func (l *lowering) accept(c *candidate) (ok bool, err error) {
	r := Region{Backend: c.taker.ID(), Delegate: -1, Inputs: c.inputs, Outputs: c.outputs, Reason: c.reason, Work: c.work}
	r.Calls = make([]ir.Origin, 0, len(c.steps))
	for _, i := range c.steps {
		r.Calls = append(r.Calls, l.step(i).Origin)
		if s := l.step(i); s.Kind == ir.DelegateCall {
			r.Merged = append(r.Merged, s.Delegate)
		}
	}
	if l.ctx.Err() == nil && r.Reason == "" {
		if err := l.compile(c, &r); err != nil {
			r.Reason = err.Error()
		}
	}
	if l.ctx.Err() != nil {
		return false, context.Cause(l.ctx)
	}
	for _, i := range c.steps {
		call := &l.report.Calls[l.from+i]
		call.Region, call.Reason = len(l.report.Regions), r.Reason
	}
	l.report.Regions = append(l.report.Regions, r)
	return r.Reason == "", nil
}

// compile makes the image of a region.
func (l *lowering) compile(c *candidate, r *Region) error {
	c.graph.Index = l.first + l.accepted
	if err := l.Compile(l.ctx, c.taker, c.graph.Graph); err != nil {
		return err
	}
	r.Delegate = c.graph.Index
	if !l.All {
		c.share = c.least()
	}
	r.Share = c.share
	l.accepted++
	return nil
}
