package runtime

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

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
