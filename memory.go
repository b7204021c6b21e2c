package etrun

import (
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
)

// memory is the memory of a method instance.
type memory struct {
	arenas  [][]byte
	state   map[int][]byte // storage to bytes
	heap    map[int][]byte // storage to the initial bytes of its members
	callers map[int][]byte // storage to the bytes that the caller has bound
}

// allocate makes zeroed memory for the plan; shared is state held by another instance. Without state, tensors of it have no
// memory.
func allocate(p *plan.Memory, shared map[int][]byte, state bool) *memory {
	mem := &memory{state: make(map[int][]byte), heap: make(map[int][]byte), callers: make(map[int][]byte)}
	bytes, dynamic := tensor.AlignedBytes, hasDynamicInputs(p.Method)
	if dynamic { // small inputs touch only part of it
		bytes = smallPages
	}
	for _, size := range p.Arenas {
		mem.arenas = append(mem.arenas, bytes(int(size)))
		if !dynamic { // every run uses it all
			cpu.Touch(mem.arenas[len(mem.arenas)-1])
		}
	}
	for i := range p.Method.Storages {
		s := &p.Method.Storages[i]
		switch s.Kind {
		case ir.State:
			if !state {
				continue
			}
			if mem.state[i] = shared[i]; mem.state[i] == nil {
				mem.state[i] = bytes(int(s.Bytes))
			}
		case ir.Heap, ir.Constant:
			if n := p.StartBytes(i); n > 0 {
				mem.heap[i] = tensor.AlignedBytes(int(n))
			}
		}
	}
	return mem
}

func hasDynamicInputs(m *ir.Method) bool {
	return slices.ContainsFunc(m.Inputs, func(v int) bool {
		t := m.Values[v].Tensor
		return t != nil && t.Dynamism != tensor.Static
	})
}

// smallPages is AlignedBytes without huge pages, which touching a single byte would fill.
func smallPages(n int) []byte {
	b := tensor.AlignedBytes(n)
	cpu.UseSmallPages(b)
	return b
}

// bytes returns the memory of a storage, nil if the caller has not provided it yet. The memory of a constant is
// for views of it.
func (mem *memory) bytes(p *plan.Memory, storage int) []byte {
	s := &p.Method.Storages[storage]
	if p.Callers[storage] {
		return mem.callers[storage]
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
	for _, state := range mem.state {
		if cpu.Overlap(state, b) {
			return true
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

// findUnbounded lists the tensors that runs change, the unbounded ones and their views.
func (m *Method) findUnbounded() {
	m.heap.limit = m.program.config.limits.PlannedBytes
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
