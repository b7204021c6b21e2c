package runtime

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/pte"
)

// MemoryPlan is where the storages of a method lie, and what else was considered.
type MemoryPlan struct {
	Flow       *ir.Flow
	Items      []plan.Item     // per storage; zero for those outside the arenas
	Places     []plan.Place    // per storage, in arenas of the plan that was chosen
	Arenas     []int64         // sizes of that plan's arenas
	Source     string          // "file" or "own (order)"
	FileBytes  int64           // what the file's plan takes, state left out
	OwnBytes   int64           // what our plan takes
	LowerBound int64           // no plan takes less
	StateBytes int64           // state, outside the arenas
	HeapBytes  int64           // initial bytes of unbounded tensors
	Conflicts  []plan.Conflict // live storages that the file's plan lets overlap
	Callers    []bool          // per storage: the caller brings its bytes
}

// Bytes is the memory that the plan needs in all.
func (p *MemoryPlan) Bytes() int64 {
	n := p.StateBytes + p.HeapBytes
	for _, a := range p.Arenas {
		n += a
	}
	return n
}

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
	p := &MemoryPlan{Flow: flow, Items: make([]plan.Item, n), Places: make([]plan.Place, n), Callers: make([]bool, n)}
	var inArena []int
	for i := range flow.Storages {
		s := &flow.Storages[i]
		if how.boundInputs && s.Kind == ir.Input || how.boundOutputs && s.Kind == ir.Activation && s.Output {
			p.Callers[i] = true
			continue
		}
		switch s.Kind {
		case ir.State:
			p.StateBytes += s.Bytes
		case ir.Heap:
			p.HeapBytes += s.Bytes
		case ir.Activation, ir.Input:
			if s.Last < s.First {
				s.First, s.Last = len(flow.Steps), len(flow.Steps) // never used: any place outside the others' lives
			}
			it := plan.Item{Bytes: s.Bytes, First: s.First, Last: s.Last}
			if how.preserve && s.Kind == ir.Input {
				it.Last = len(flow.Steps)
			}
			p.Items[i] = it
			inArena = append(inArena, i)
		}
	}
	own := p.planOwn(inArena, how.mode)
	filePlaces, fileArenas, fileOK := p.checkFile(inArena)
	if len(p.Conflicts) > 0 && how.strict {
		c := p.Conflicts[0]
		return nil, fmt.Errorf("memory plan of the file: values %v and %v share bytes %d–%d of arena %d while both are alive at step %d: %w",
			flow.Storages[c.A].Values, flow.Storages[c.B].Values, c.Lo, c.Hi, c.Arena, c.Step, ErrFormat)
	}
	if fileOK && (how.mode == PlanFile || how.mode == PlanAuto && p.FileBytes <= own.Size) {
		p.Places, p.Arenas, p.Source = filePlaces, fileArenas, "file"
		return p, nil
	}
	for n, i := range inArena {
		p.Places[i] = plan.Place{Offset: own.Offsets[n]}
	}
	p.Arenas, p.Source = []int64{own.Size}, "own ("+own.Order+")"
	return p, nil
}

func (p *MemoryPlan) planOwn(inArena []int, mode PlanMode) plan.Layout {
	items := make([]plan.Item, len(inArena))
	for n, i := range inArena {
		items[n] = p.Items[i]
	}
	own := plan.Naive(items)
	if mode != PlanNaive {
		own = plan.Pack(items)
	}
	p.OwnBytes, p.LowerBound = own.Size, plan.LowerBound(items)
	return own
}

// checkFile reads the file's plan and holds it against the lifetimes. It cannot be
// used where a storage has no place in it.
func (p *MemoryPlan) checkFile(inArena []int) (places []plan.Place, arenas []int64, ok bool) {
	m := p.Flow.Method
	places = make([]plan.Place, len(p.Items))
	ok = true
	var planned []plan.Item
	var at []plan.Place
	var index []int
	for _, i := range inArena {
		s := &p.Flow.Storages[i]
		t := m.Values[s.Values[0]].Tensor
		if t.Storage != pte.Planned || m.Arenas[t.Arena].Size-t.Offset < s.Bytes || t.Offset%int64(t.DType.Size()) != 0 {
			ok = ok && s.Bytes == 0
			continue
		}
		places[i] = plan.Place{Arena: t.Arena, Offset: t.Offset}
		planned, at, index = append(planned, p.Items[i]), append(at, places[i]), append(index, i)
	}
	p.Conflicts = plan.Verify(planned, at)
	for n := range p.Conflicts {
		c := &p.Conflicts[n]
		c.A, c.B = index[c.A], index[c.B]
	}
	for _, a := range m.Arenas {
		arenas = append(arenas, a.Size)
		p.FileBytes += a.Size
	}
	p.FileBytes = max(p.FileBytes-p.StateBytes, 0)
	return places, arenas, ok && len(p.Conflicts) == 0
}

// memory is the bytes of a method instance.
type memory struct {
	arenas [][]byte
	state  map[int][]byte // storage to bytes
}

// allocate makes zeroed memory by the plan; shared gives state that another method
// instance already holds.
func (p *MemoryPlan) allocate(shared func(storage int) []byte) *memory {
	mem := &memory{state: make(map[int][]byte)}
	for _, size := range p.Arenas {
		mem.arenas = append(mem.arenas, tensor.AlignedBytes(int(size)))
	}
	for i := range p.Flow.Storages {
		s := &p.Flow.Storages[i]
		if s.Kind != ir.State {
			continue
		}
		if mem.state[i] = shared(i); mem.state[i] == nil {
			mem.state[i] = tensor.AlignedBytes(int(s.Bytes))
		}
	}
	return mem
}

// bytes is the place of a storage, nil for constants, unbounded tensors and what the
// caller brings.
func (mem *memory) bytes(p *MemoryPlan, storage int) []byte {
	s := &p.Flow.Storages[storage]
	if p.Callers[storage] {
		return nil
	}
	switch s.Kind {
	case ir.State:
		return mem.state[storage]
	case ir.Activation, ir.Input:
		at := p.Places[storage]
		if s.Bytes == 0 {
			return nil
		}
		return mem.arenas[at.Arena][at.Offset : at.Offset+s.Bytes]
	}
	return nil
}
