package ir

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// setEffects fills Reads, Writes and Updates from the callee and the arguments of a step.
func (m *Method) setEffects(s *Step) error {
	s.Reads, s.Writes, s.Updates = nil, nil, nil
	switch s.Kind {
	case KernelCall:
		return m.setKernelEffects(s)
	case DelegateCall:
		if s.Inputs < 0 || s.Inputs > len(s.Args) {
			return fmt.Errorf("delegate %d has %d inputs, the call %d arguments", s.Delegate, s.Inputs, len(s.Args))
		}
		s.Reads = m.tensors(nil, s.Args[:s.Inputs]...)
		s.Writes = m.tensors(nil, s.Args[s.Inputs:]...)
	case SizesJump:
		s.Reads = m.tensors(nil, s.Args[:s.Inputs]...)
	case MoveCall:
		s.Reads = m.tensors(nil, s.Args[0])
		s.Writes = m.tensors(nil, s.Args[1])
	case JumpFalseCall:
		s.Reads = m.tensors(nil, s.Args[0])
	}
	return nil
}

func (m *Method) setKernelEffects(s *Step) error {
	if err := s.Sig.CheckCount(len(s.Args)); err != nil {
		return err
	}
	for i := range s.Sig.Args {
		switch a := &s.Sig.Args[i]; {
		case a.Out:
			s.Writes = m.tensors(s.Writes, s.Args[i])
		case a.Mutated:
			s.Updates = m.tensors(s.Updates, s.Args[i])
		default:
			s.Reads = m.tensors(s.Reads, s.Args[i])
		}
	}
	if s.Sig.Result != nil {
		s.Writes = m.tensors(s.Writes, s.Args[len(s.Args)-1])
	}
	return nil
}

// Uses reports whether the step reads argument i, and whether it writes its bytes or slot.
func (s *Step) Uses(i int) (reads, writes bool) {
	switch s.Kind {
	case KernelCall:
		if i == len(s.Sig.Args) { // the result's slot repeats an out if there is one
			return false, s.Sig.Result != nil
		}
		a := &s.Sig.Args[i]
		return !a.Out, a.Out || a.Mutated
	case DelegateCall:
		return i < s.Inputs, i >= s.Inputs
	case MoveCall:
		return i == 0, i == 1
	}
	return s.Kind == JumpFalseCall, false
}

// tensors appends the values in vs that are tensors, and the tensors of lists.
func (m *Method) tensors(to []int, vs ...int) []int {
	for _, v := range vs {
		switch m.Values[v].Kind {
		case tensor.KindTensor:
			to = append(to, v)
		case tensor.KindTensorList, tensor.KindOptionalTensorList:
			for _, item := range m.Values[v].Items() {
				if item >= 0 && m.Values[item].Kind == tensor.KindTensor {
					to = append(to, item)
				}
			}
		}
	}
	return to
}

// changedSlot returns the value whose slot a step writes: the result of an operator without out
// arguments, or the target of a move that does not copy a tensor.
func (m *Method) changedSlot(s *Step) (v int, ok bool) {
	switch s.Kind {
	case KernelCall:
		if r := s.Sig.Result; r != nil && !r.Alias {
			return s.Args[len(s.Args)-1], true
		}
	case MoveCall:
		return s.Args[1], !m.isTensorMove(s)
	}
	return 0, false
}

func (m *Method) isTensorMove(s *Step) bool {
	return m.Values[s.Args[0]].Kind == tensor.KindTensor && m.Values[s.Args[1]].Kind == tensor.KindTensor
}

// changing marks the slots that steps write, and the inputs whose values the file does not fix.
func (m *Method) changing() []bool {
	changes := make([]bool, len(m.Values))
	for i := range m.Steps {
		if v, ok := m.changedSlot(&m.Steps[i]); ok {
			changes[v] = true
		}
	}
	for _, v := range m.Inputs {
		if m.Values[v].Kind == tensor.None {
			changes[v] = true
		}
	}
	return changes
}

// Writers lists, by storage, the steps that write it, whole or in part, each once, in order; a step
// that makes a view writes nothing. An activation with one writer is written before every read,
// unless the method is coarse.
func (m *Method) Writers() [][]int {
	writers, steps := make([][]int, len(m.Storages)), make([]int, 0, m.writes())
	for i := range m.Steps {
		s := &m.Steps[i]
		for _, list := range [...][]int{s.Updates, s.Writes} {
			for _, v := range list {
				storage := m.Values[v].Storage
				switch old := writers[storage]; {
				case s.IsView() || len(old) > 0 && old[len(old)-1] == i:
				case old == nil:
					n := len(steps)
					steps = append(steps, i)
					writers[storage] = steps[n : n+1 : n+1]
				default:
					writers[storage] = append(old, i)
				}
			}
		}
	}
	return writers
}

// writes counts what all steps write.
func (m *Method) writes() (n int) {
	for i := range m.Steps {
		n += len(m.Steps[i].Writes) + len(m.Steps[i].Updates)
	}
	return n
}

// Unread returns the outs of step i, bit k for argument k, whose elements neither a step nor the
// caller reads.
func (m *Method) Unread(i int) (outs uint64) {
	s := &m.Steps[i]
	if s.Kind != KernelCall || m.Coarse {
		return 0
	}
	for k, arg := range s.Sig.Args {
		if v := s.Args[k]; arg.Out && k < 64 && m.Values[v].Kind == tensor.KindTensor && m.onlyWrites(i, v) {
			outs |= 1 << k
		}
	}
	return outs
}

// onlyWrites reports whether the write of step i is the only access to the storage of tensor v.
func (m *Method) onlyWrites(i, v int) bool {
	s := &m.Storages[m.Values[v].Storage]
	if s.Kind != Activation || s.Output || s.First != i || s.Last != i {
		return false
	}
	uses := 0
	for _, list := range [...][]int{m.Steps[i].Reads, m.Steps[i].Updates, m.Steps[i].Writes} {
		for _, u := range list {
			if m.Values[u].Storage == m.Values[v].Storage {
				uses++
			}
		}
	}
	return uses == 1
}
