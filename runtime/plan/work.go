package plan

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Plans are made in moments instead of steps: a call of a delegate with a workspace has as many as
// the workspace, every other step has one. Values used only in the first part of a call and others
// used only in its last part can then share bytes.

// setMoments numbers the moments.
func (p *Memory) setMoments() {
	p.Moments = make([]int, len(p.Method.Steps)+1)
	for i := range p.Method.Steps {
		n := 1
		if w := p.workOf(&p.Method.Steps[i]); w != nil {
			n = w.Moments
		}
		p.Moments[i+1] = p.Moments[i] + n
	}
}

// workOf returns the workspace of a step, nil if it has none.
func (p *Memory) workOf(s *ir.Step) *lowering.Workspace {
	if s.Kind != ir.DelegateCall || s.Delegate >= len(p.work) || p.work[s.Delegate] == nil || len(p.work[s.Delegate].Args) != len(s.Args) {
		return nil
	}
	return p.work[s.Delegate]
}

// begins and ends return the first and the last moment of a step; -1 is before the first, and the
// number of steps is after the last.
func (p *Memory) begins(step int) int {
	if step < 0 {
		return step
	}
	return p.Moments[min(step, len(p.Method.Steps))]
}

func (p *Memory) ends(step int) int {
	if step < 0 || step >= len(p.Method.Steps) {
		return p.begins(step)
	}
	return p.Moments[step+1] - 1
}

// Step returns the step of a moment.
func (p *Memory) Step(moment int) int {
	i, found := slices.BinarySearch(p.Moments, moment)
	if found {
		return i
	}
	return i - 1
}

// narrow limits the lives of storages that begin or end with a call to the moments of their use.
func (p *Memory) narrow() {
	if p.Method.Coarse { // lives are not known
		return
	}
	for i := range p.Method.Steps {
		s := &p.Method.Steps[i]
		w := p.workOf(s)
		if w == nil || slices.ContainsFunc(s.Args, func(v int) bool { return p.Method.Values[v].Kind != tensor.KindTensor }) {
			continue
		}
		spans := make(map[int]lowering.Span)
		for k, v := range s.Args {
			storage, span := p.Method.Values[v].Storage, w.Args[k]
			if other, ok := spans[storage]; ok {
				span = lowering.Span{First: min(span.First, other.First), Last: max(span.Last, other.Last)}
			}
			spans[storage] = span
		}
		for storage, span := range spans {
			p.limit(storage, i, span)
		}
	}
}

// limit limits the life of a storage to its span in a step, if it begins or ends there.
func (p *Memory) limit(storage, step int, span lowering.Span) {
	it, s := &p.Items[storage], &p.Method.Storages[storage]
	if it.Bytes == 0 {
		return
	}
	if s.First == step && it.First == p.begins(step) {
		it.First = p.begins(step) + span.First
	}
	if s.Last == step && it.Last == p.ends(step) {
		it.Last = p.begins(step) + span.Last
	}
}

// addBlocks appends the items of the blocks of all workspaces, and lists them. A delegate that no step
// calls has none. Blocks of a delegate that is called by several steps are alive from the first to the last of them.
func (p *Memory) addBlocks() (list []int) {
	calls := make([][]int, len(p.work))
	for i := range p.Method.Steps {
		if s := &p.Method.Steps[i]; p.workOf(s) != nil {
			calls[s.Delegate] = append(calls[s.Delegate], i)
		}
	}
	p.starts = make([]int, len(p.work)+1)
	for d, w := range p.work {
		p.starts[d] = len(p.Items)
		if w == nil || len(calls[d]) == 0 {
			continue
		}
		from, n := p.begins(calls[d][0]), len(calls[d])
		for _, b := range w.Blocks {
			it := pack.Item{Bytes: b.Bytes, First: from + b.First, Last: from + b.Last, Align: tensor.Alignment}
			if n > 1 {
				it.First, it.Last = from, p.ends(calls[d][n-1])
			}
			list, p.Items = append(list, len(p.Items)), append(p.Items, it)
		}
	}
	p.starts[len(p.work)] = len(p.Items)
	return list
}

// addArena appends an arena of blocks to the file's plan, which has no place for them.
func (p *Memory) addArena(a *Arrangement, blocks []int) {
	if len(blocks) == 0 {
		return
	}
	items := make([]pack.Item, len(blocks))
	for n, i := range blocks {
		items[n] = p.Items[i]
	}
	l := pack.Pack(items)
	for n, i := range blocks {
		a.Places[i], a.Placed[i] = Place{Arena: len(a.Arenas), Offset: l.Offsets[n]}, true
	}
	a.Arenas = append(slices.Clip(a.Arenas), l.Size)
}

// Blocks returns the items of a delegate's workspace: from the first to before the second. There are
// none if no step calls it.
func (p *Memory) Blocks(d int) (from, to int) {
	if d >= len(p.work) {
		return len(p.Items), len(p.Items)
	}
	return p.starts[d], p.starts[d+1]
}
