package runtime

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// changingSlots marks the values whose slot, not only whose bytes, an instruction or
// the caller writes: results of operators without out arguments, targets of moves
// that are no tensor copies, and inputs that the program leaves open.
func (l *loader) changingSlots() []bool {
	changing := make([]bool, len(l.spec.Values))
	for i := range l.flow.Steps {
		in := l.flow.Steps[i].Instruction
		switch in.Kind {
		case pte.KernelCall:
			if r := l.sigs[in.Index].Result; r != nil && !r.Alias {
				changing[in.Args[len(in.Args)-1]] = true
			}
		case pte.MoveCall:
			if !isTensorMove(l.spec, in) {
				changing[in.Target] = true
			}
		}
	}
	for _, v := range l.spec.Inputs {
		if l.spec.Values[v].Kind == tensor.None {
			changing[v] = true
		}
	}
	return changing
}

func isTensorMove(m *pte.Method, in *pte.Instruction) bool {
	return m.Values[in.Index].Kind == tensor.KindTensor && m.Values[in.Target].Kind == tensor.KindTensor
}

// anyOf reports whether a value, or an item of a list, is marked.
func anyOf(m *pte.Method, values []int, marked []bool) bool {
	for _, v := range values {
		if v >= 0 && (marked[v] || anyOf(m, m.Values[v].Items, marked)) {
			return true
		}
	}
	return false
}
