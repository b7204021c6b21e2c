package runtime

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/pte"
)

// MemoryPlan is where the storages of a method lie, and what else was considered.
type MemoryPlan struct {
	Arrangement // the one in use
	Flow        *ir.Flow
	Items       []plan.Item     // per storage; zero for those outside the arenas
	File        Arrangement     // the file's plan, state left out; not whole where storages have no place in it
	Own         Arrangement     // our own
	LowerBound  int64           // no plan takes less
	StateBytes  int64           // state, outside the arenas
	HeapBytes   int64           // initial bytes of unbounded tensors, and of views of constants
	Conflicts   []plan.Conflict // live storages that the file's plan lets overlap, by index
	Callers     []bool          // per storage: the caller brings its bytes
}

// Arrangement is a placement of the storages in arenas.
type Arrangement struct {
	Source string       // "file", or "own" with the order of packing
	Places []plan.Place // per storage; meaningless outside the arenas
	Placed []bool       // per storage: it has a place
	Arenas []int64      // sizes
	Whole  bool         // every storage that needs a place has one, and none conflict
}

// Size is the bytes of all arenas.
func (a *Arrangement) Size() (n int64) {
	for _, size := range a.Arenas {
		n += size
	}
	return n
}

// Bytes is the memory that the plan needs in all.
func (p *MemoryPlan) Bytes() int64 { return p.StateBytes + p.HeapBytes + p.Size() }

// planning says how to plan a method's memory.
type planning struct {
	mode         PlanMode
	strict       bool // refuse a file plan with conflicts
	preserve     bool // inputs live to the end
	boundInputs  bool // the caller brings the inputs' bytes
	boundOutputs bool
}

// planMemory chooses a plan for the method's storages.
func planMemory(flow *ir.Flow, how planning) (*MemoryPlan, error) {
	n := len(flow.Storages)
	p := &MemoryPlan{Flow: flow, Items: make([]plan.Item, n), Callers: make([]bool, n)}
	inArena := p.sort(how)
	p.Own = p.arrange(inArena, how.mode)
	p.File = p.readFile(inArena)
	if len(p.Conflicts) > 0 && how.strict {
		return nil, p.conflictError()
	}
	p.Arrangement = p.Own
	if p.File.Whole && (how.mode == PlanFile || how.mode == PlanAuto && p.File.Size() <= p.Own.Size()) {
		p.Arrangement = p.File
	}
	return p, nil
}

func (p *MemoryPlan) conflictError() error {
	c := p.Conflicts[0]
	return fmt.Errorf("memory plan of the file: values %v and %v share bytes %d–%d of arena %d while both are alive at step %d: %w",
		p.Flow.Storages[c.A].Values, p.Flow.Storages[c.B].Values, c.Lo, c.Hi, c.Arena, c.Step, ErrFormat)
}

// sort fills Items with the storages that need a place in an arena, lists them, and
// counts the others.
func (p *MemoryPlan) sort(how planning) (inArena []int) {
	end := len(p.Flow.Steps)
	for i := range p.Flow.Storages {
		s := &p.Flow.Storages[i]
		switch {
		case how.boundInputs && s.Kind == ir.Input, how.boundOutputs && s.Kind == ir.Activation && s.Output:
			p.Callers[i] = true
		case s.Kind == ir.State:
			p.StateBytes += s.Bytes
		case s.Kind == ir.Heap || s.Kind == ir.Constant:
			p.HeapBytes += p.heapBytes(s)
		case s.Kind == ir.Activation || s.Kind == ir.Input:
			it := plan.Item{Bytes: s.Bytes, First: s.First, Last: s.Last}
			if s.Last < s.First { // never used: a place outside the others' lives will do
				it.First, it.Last = end, end
			}
			if how.preserve && s.Kind == ir.Input {
				it.Last = end
			}
			p.Items[i] = it
			inArena = append(inArena, i)
		}
	}
	return inArena
}

// heapBytes is what the members of an unbounded storage share until they grow, and
// those views of a constant share that no instruction has made yet.
func (p *MemoryPlan) heapBytes(s *ir.Storage) (n int64) {
	for _, v := range s.Values {
		if t := p.Flow.Method.Values[v].Tensor; !isConstant(t) {
			n = max(n, t.NBytes())
		}
	}
	return n
}

func isConstant(t *pte.Tensor) bool { return t.Storage == pte.Constant || t.Storage == pte.External }

// arrange packs the storages into one arena.
func (p *MemoryPlan) arrange(inArena []int, mode PlanMode) Arrangement {
	items := make([]plan.Item, len(inArena))
	for n, i := range inArena {
		items[n] = p.Items[i]
	}
	l := plan.Naive(items)
	if mode != PlanNaive {
		l = plan.Pack(items)
	}
	p.LowerBound = plan.LowerBound(items)
	a := p.arrangement("own (" + l.Order + ")")
	for n, i := range inArena {
		a.Places[i], a.Placed[i] = plan.Place{Offset: l.Offsets[n]}, true
	}
	a.Arenas, a.Whole = []int64{l.Size}, true
	return a
}

// alignment is the size of the largest element that values of a storage have.
func (p *MemoryPlan) alignment(s *ir.Storage) int64 {
	size := 1
	for _, v := range s.Values {
		size = max(size, p.Flow.Method.Values[v].Tensor.DType.Size())
	}
	return int64(size)
}

func (p *MemoryPlan) arrangement(source string) Arrangement {
	n := len(p.Items)
	return Arrangement{Source: source, Places: make([]plan.Place, n), Placed: make([]bool, n)}
}

// readFile reads the file's plan and holds it against the lifetimes.
func (p *MemoryPlan) readFile(inArena []int) Arrangement {
	m := p.Flow.Method
	a := p.arrangement("file")
	a.Whole = true
	var items []plan.Item
	var places []plan.Place
	var index []int
	for _, i := range inArena {
		s := &p.Flow.Storages[i]
		t := m.Values[s.Values[0]].Tensor
		if t.Storage != pte.Planned || m.Arenas[t.Arena].Size-t.Offset < s.Bytes || t.Offset%p.alignment(s) != 0 {
			a.Whole = a.Whole && s.Bytes == 0
			continue
		}
		a.Places[i], a.Placed[i] = plan.Place{Arena: t.Arena, Offset: t.Offset}, true
		items, places, index = append(items, p.Items[i]), append(places, a.Places[i]), append(index, i)
	}
	if a.Whole = a.Whole && len(items) <= plan.MaxItems; len(items) <= plan.MaxItems {
		p.Conflicts = plan.Verify(items, places)
	}
	for n := range p.Conflicts {
		c := &p.Conflicts[n]
		c.A, c.B = index[c.A], index[c.B]
	}
	for _, arena := range m.Arenas {
		a.Arenas = append(a.Arenas, arena.Size)
	}
	a.Whole = a.Whole && len(p.Conflicts) == 0
	return a
}

// markShared marks the inputs whose bytes in the arenas other storages use too. Plans
// of more than plan.MaxItems storages share nothing.
func (p *MemoryPlan) markShared(marks []bool) {
	var placed []int
	for i, it := range p.Items {
		if it.Bytes > 0 {
			placed = append(placed, i)
		}
	}
	if len(placed) > plan.MaxItems {
		return
	}
	for _, i := range placed {
		if p.Flow.Storages[i].Kind != ir.Input || marks[i] {
			continue
		}
		at, end := p.Places[i], p.Places[i].Offset+p.Items[i].Bytes
		marks[i] = slices.ContainsFunc(placed, func(k int) bool {
			o := p.Places[k]
			return k != i && o.Arena == at.Arena && o.Offset < end && at.Offset < o.Offset+p.Items[k].Bytes
		})
	}
}
