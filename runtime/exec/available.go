package exec

import (
	"fmt"

	"github.com/etrun-go/etrun/runtime/prepare"
)

// leastLeft is what garbage and page tables take, and by how much state may grow without another look at what the system has left.
const leastLeft = 1 << 20

// checkAvailable fails if a run would touch more memory than the system has left, see [Program]: about as large a part of the state as its
// inputs are of the largest ones, and what they use of the arenas. It looks before runs whose inputs have more bytes than any
// before, and when other runs may have filled state.
func (m *Instance) checkAvailable(bytes int) error {
	if m.program.Available == nil || !m.memory.sparse {
		return nil
	}
	largest := 1.0
	for i := range m.inputs {
		if m.inputs[i].bound != nil {
			largest += float64(m.ir.Values[m.ir.Inputs[i]].Tensor.NBytes())
		}
	}
	part := float64(bytes) / largest
	grows := int64(part * float64(m.plan.StateBytes))
	m.filled += grows
	if bytes <= m.most && m.filled < leastLeft {
		return nil
	}
	m.filled = 0
	state, arenas, scratch := min(leastLeft, m.plan.StateBytes), int64(0), int64(0)
	if bytes > m.most {
		state, arenas, scratch = grows, m.plan.TouchedBytes(part), int64(part*float64(m.shared.ScratchBytes()))
	}
	e := prepare.MemoryError{Available: true, Limit: m.program.Available(), Parts: []prepare.Part{
		{Name: "state", Bytes: state}, {Name: "arenas for these sizes", Bytes: arenas},
		{Name: "delegate scratch", Bytes: scratch}, {Name: "heap and stacks", Bytes: leastLeft}}}
	for _, p := range e.Parts {
		e.Want += p.Bytes
	}
	if e.Limit == 0 || e.Want <= e.Limit {
		return nil
	}
	return fmt.Errorf("method %q: %w", m.ir.Name, m.program.Prepare(m.ir.Name, &e))
}
