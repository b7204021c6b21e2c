package exec

import (
	"math"
	"runtime"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
)

// memory is the memory of a method instance. What is large lies outside of the Go heap, and is unmapped by close, or when the
// memory is unreachable.
type memory struct {
	arenas  [][]byte
	state   map[int][]byte // storage to bytes
	heap    map[int][]byte // storage to the initial bytes of its members
	lasting map[int][]byte // storage of outputs to bytes that remain after close
	callers map[int][]byte // storage to the bytes that the caller has bound

	pages  []*cpu.Mapping // with arenas and state first
	work   []byte         // the arenas, in pages that are mapped; nil if they are not
	sparse bool           // runs touch only what their sizes need
	fixed  int64          // bytes outside of pages
}

// ownPages is the size from which memory is mapped: collections do not count it, and it is returned to the system as soon as it is
// not used any more.
const ownPages = 64 << 10

// Allocate is tensor.AlignedBytes outside of the Go heap; pages are nil if n is small, or the system has no pages.
func Allocate(n int, mapPages func(int64) (*cpu.Mapping, error)) (b []byte, pages *cpu.Mapping) {
	if n >= ownPages {
		if pages, err := mapPages(int64(n) + tensor.Padding); err == nil {
			return pages.Bytes()[:n:n], pages
		}
	}
	return tensor.AlignedBytes(n), nil
}

// part is a part of the memory to be allocated.
type part struct {
	bytes int64
	set   func([]byte)
}

// makeMemory makes zeroed memory for a plan; shared is state held by another instance. Without state, tensors of it have no
// memory. reserve: the plan exceeds the limits, so it must be in pages that cost nothing before they are touched.
func makeMemory(p *plan.Memory, shared map[int][]byte, state, transient, reserve bool) (*memory, error) {
	mem := &memory{state: make(map[int][]byte), heap: make(map[int][]byte), lasting: make(map[int][]byte), callers: make(map[int][]byte),
		sparse: p.Method.HasDynamicInputs()}
	if err := mem.cut(mem.parts(p, shared, state, transient), reserve); err != nil {
		return nil, err
	}
	for i := range p.Method.Storages {
		s := &p.Method.Storages[i]
		if n := p.StartBytes(i); n > 0 && (s.Kind == ir.Heap || s.Kind == ir.Constant) {
			mem.heap[i] = mem.initial(int(n), transient)
		}
	}
	return mem, nil
}

// touch touches what every run uses all of.
func (mem *memory) touch() {
	for _, arena := range mem.arenas {
		if !mem.sparse {
			cpu.Touch(arena)
		}
	}
}

// parts lists the arenas and the state. Outputs have memory of their own, in the Go heap, unless they are transient.
func (mem *memory) parts(p *plan.Memory, shared map[int][]byte, state, transient bool) (list []part) {
	mem.arenas = make([][]byte, len(p.Arenas))
	for i, size := range p.Arenas {
		list = append(list, part{size, func(b []byte) { mem.arenas[i] = b }})
	}
	for i := range p.Method.Storages {
		s := &p.Method.Storages[i]
		isState := s.Kind == ir.State
		switch lasting := s.Output && !transient && s.Bytes > 0 && !p.Callers[i]; {
		case isState && !state:
		case isState && shared[i] != nil:
			mem.state[i] = shared[i]
		case lasting && (isState || s.Kind == ir.Activation || s.Kind == ir.Input):
			mem.lasting[i] = tensor.AlignedBytes(int(s.Bytes))
			if mem.sparse {
				cpu.UseSmallPages(mem.lasting[i])
			}
			if isState {
				mem.state[i] = mem.lasting[i]
			}
		case isState:
			list = append(list, part{s.Bytes, func(b []byte) { mem.state[i] = b }})
		}
	}
	return list
}

// cut allocates the parts.
func (mem *memory) cut(list []part, reserve bool) error {
	size, mapPages := int64(0), cpu.MapMemory
	for i := range list {
		size += (list[i].bytes + tensor.Padding + tensor.Alignment - 1) &^ (tensor.Alignment - 1)
	}
	if mem.sparse {
		mapPages = cpu.MapSparse
	}
	if reserve {
		pages, err := mapPages(size + tensor.Padding)
		if err != nil {
			return err
		}
		mapPages = func(int64) (*cpu.Mapping, error) { return pages, nil }
	}
	all, at := mem.allocate(int(size), mapPages), int64(0)
	for i, x := range list {
		x.set(all[at : at+x.bytes : at+x.bytes])
		at += (x.bytes + tensor.Padding + tensor.Alignment - 1) &^ (tensor.Alignment - 1)
		if i == len(mem.arenas)-1 && len(mem.pages) > 0 {
			mem.work = all[:at]
		}
	}
	return nil
}

// allocate returns n zeroed bytes, which the memory owns.
func (mem *memory) allocate(n int, mapPages func(int64) (*cpu.Mapping, error)) []byte {
	b, pages := Allocate(n, mapPages)
	if pages == nil {
		mem.fixed += int64(n)
		return b
	}
	runtime.AddCleanup(mem, (*cpu.Mapping).Close, pages)
	mem.pages = append(mem.pages, pages)
	return b
}

// initial returns n bytes for a value that other memory may replace. Outputs that are not transient may be read after close.
func (mem *memory) initial(n int, transient bool) []byte {
	if transient {
		return mem.allocate(n, cpu.MapMemory)
	}
	mem.fixed += int64(n)
	return tensor.AlignedBytes(n)
}

// add returns n further bytes, most of which may never be touched.
func (mem *memory) add(n int) []byte { return mem.allocate(n, cpu.MapSparse) }

// close unmaps the memory: arenas and state must not be used any more.
func (mem *memory) close() {
	if mem == nil {
		return
	}
	for _, pages := range mem.pages {
		pages.Close()
	}
}

// resident returns the bytes that are in memory.
func (mem *memory) resident() (n int64) {
	n = mem.fixed
	for _, b := range mem.lasting {
		if mem.sparse && len(b) >= ownPages {
			n += cpu.Resident(b)
		} else {
			n += int64(len(b))
		}
	}
	for _, pages := range mem.pages {
		n += cpu.Resident(pages.Bytes())
	}
	return n
}

// zero clears state.
func (mem *memory) zero(b []byte) {
	if mem.sparse {
		cpu.Zero(b)
		return
	}
	clear(b)
}

// bytes returns the memory of a storage, nil if the caller has not provided it yet. The memory of a constant is
// for views of it.
func (mem *memory) bytes(p *plan.Memory, storage int) []byte {
	s := &p.Method.Storages[storage]
	if p.Callers[storage] {
		return mem.callers[storage]
	}
	if b := mem.lasting[storage]; b != nil {
		return b
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
	return mem.heap[storage]
}

// owns reports whether bytes are in the arenas or in state.
func (mem *memory) owns(b []byte) bool {
	for _, list := range [...]map[int][]byte{mem.state, mem.lasting} {
		for _, own := range list {
			if cpu.Overlap(own, b) {
				return true
			}
		}
	}
	return slices.ContainsFunc(mem.arenas, func(arena []byte) bool { return cpu.Overlap(arena, b) })
}

// blocks returns the blocks of a delegate's workspace, nil if it has none. Loops over vectors may read
// the bytes behind a block.
func (mem *memory) blocks(p *plan.Memory, d int) (list [][]byte) {
	from, to := p.Blocks(d)
	for i := from; i < to; i++ {
		at := p.Places[i]
		list = append(list, mem.arenas[at.Arena][at.Offset:at.Offset+p.Items[i].Bytes])
	}
	return list
}

// unbounded is the tensors without an upper bound, their views, and the number of bytes that they
// may still allocate.
type unbounded struct {
	limit  int64
	budget tensor.Budget
	own    []*tensor.Tensor
	views  []view
}

// view is a tensor that takes the bytes of another one, with its initial sizes and bytes.
type view struct {
	tensor *tensor.Tensor
	sizes  []int
	bytes  []byte
}

// findUnbounded lists the tensors that runs change, the unbounded ones and their views. Those with bounds are charged for what they reach
// if there is only so much room for them.
func (m *Instance) findUnbounded(room int64) {
	m.heap.limit = m.program.Limits.Planned
	m.reached = tensor.Budget{Left: room, More: func() int64 {
		return room - m.memory.resident() - m.scratchBytes()
	}}
	views := m.ir.Views()
	for v := range m.values {
		t := m.values[v].Tensor
		if m.values[v].Kind != tensor.KindTensor || t.Const {
			continue
		}
		if t.Dynamism == tensor.DynamicUnbound {
			t.Limit(int(m.heap.limit) / t.DType.Size())
			t.ChargeTo(&m.heap.budget)
		}
		storage := m.ir.Values[v].Storage
		if room < math.MaxInt64 && t.Dynamism == tensor.DynamicBound && !views[v] && !m.plan.Callers[storage] {
			t.ChargeTo(&m.reached)
		}
		if views[v] || t.Dynamism != tensor.Static || m.plan.Callers[storage] {
			m.varying = append(m.varying, v)
		}
		switch kind := m.ir.Storages[storage].Kind; {
		case views[v] && (kind == ir.Heap || kind == ir.Constant):
			m.heap.views = append(m.heap.views, view{t, m.ir.Values[v].Tensor.Sizes, m.memory.heap[storage]})
		case t.Dynamism == tensor.DynamicUnbound:
			m.heap.own = append(m.heap.own, t)
		}
	}
	m.heap.reckon()
}

// reckon sets the budget to the limit less the bytes that the tensors hold.
func (u *unbounded) reckon() {
	u.budget.Left = u.limit
	for _, t := range u.own {
		u.budget.Left -= int64(len(t.Storage()))
	}
}

// clear zeroes the memory of the tensors.
func (u *unbounded) clear() {
	for _, t := range u.own {
		clear(t.Storage())
	}
}

// begin starts a run: views release the bytes that they took in the last one.
func (u *unbounded) begin() error {
	for i := range u.views {
		v := &u.views[i]
		if err := v.tensor.BindSized(v.sizes, v.bytes); err != nil {
			return err
		}
	}
	u.reckon()
	return nil
}
