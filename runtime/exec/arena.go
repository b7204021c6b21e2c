package exec

import (
	"context"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Arena is the memory of the values of a run that instances of a method have one after the other.
type Arena struct {
	pages  *cpu.Mapping
	shared *prepare.Method
	bytes  int64
	watch  *Watch
}

// Bytes returns how much of it is in memory.
func (a *Arena) Bytes() int64 { return a.bytes }

// Close frees it. Closing twice, and nil, are allowed.
func (a *Arena) Close() {
	if a != nil {
		a.watch.Memory(trace.MemoryPlanned, -a.bytes)
		a.pages.Close()
		a.bytes = 0
	}
}

// DetachArena removes the memory of values that no run keeps from the instance: nil if there is none, the sizes of inputs do not vary or
// the system cannot move memory. Outputs, and inputs that were set, are then unset.
func (m *Instance) DetachArena() (*Arena, error) {
	if err := m.begin(); err != nil {
		return nil, err
	}
	defer m.end()
	if !m.memory.sparse || len(m.memory.work) == 0 {
		return nil, nil
	}
	pages, err := cpu.MapSparse(int64(len(m.memory.work)))
	if err != nil {
		return nil, nil // it is kept
	}
	if !cpu.Move(pages.Bytes(), m.memory.work) {
		pages.Close()
		return nil, nil
	}
	a := &Arena{pages, m.shared, cpu.Resident(pages.Bytes()), m.program.newWatch(context.Background(), m.ir.Name)}
	m.forget()
	a.watch.Memory(trace.MemoryPlanned, a.bytes)
	return a, nil
}

// AttachArena gives memory to the instance, in the place of its own, and closes a. Outputs, and inputs that were set, are then unset. Nil
// changes nothing.
func (m *Instance) AttachArena(a *Arena) error {
	defer a.Close()
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	if a != nil && a.shared == m.shared && cpu.Move(m.memory.work, a.pages.Bytes()) {
		m.forget()
	}
	return nil
}
