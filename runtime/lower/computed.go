package lower

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// itemOp reads an element as a number.
const itemOp = "aten::_local_scalar_dense"

// mostPasses bounds the passes over a method: programs need two or three. After more, all sizes that vary count as computed.
const mostPasses = 32

// computedSizes marks the storages whose sizes depend on elements. They may be 0, which delegates do not run. Sizes that
// follow from those of inputs are not among them.
func computedSizes(m *ir.Method) []bool {
	t := &taint{m, make([]bool, len(m.Storages)), make([]bool, len(m.Values))}
	for passes, changed := 0, true; changed; passes++ {
		if changed = false; passes == mostPasses {
			t.markAll()
			break
		}
		for i := range m.Steps {
			if s := &m.Steps[i]; s.Kind == ir.KernelCall {
				changed = t.step(s) || changed
			}
		}
	}
	return t.storages
}

// taint is what depends on elements: the sizes of tensors, and numbers.
type taint struct {
	m        *ir.Method
	storages []bool
	numbers  []bool // by value
}

// markAll marks all storages whose sizes vary.
func (t *taint) markAll() {
	for v := range t.m.Values {
		if x := &t.m.Values[v]; x.Kind == tensor.KindTensor && x.Storage >= 0 && t.varies(v) {
			t.storages[x.Storage] = true
		}
	}
}

// step marks the results of a step.
func (t *taint) step(s *ir.Step) (changed bool) {
	from := t.args(s.Args) || marked(t.m, t.storages, s.Reads)
	if s.Sig.Result != nil {
		v := s.Args[len(s.Args)-1]
		if (from || s.Op.Name() == itemOp) && t.m.Values[v].Kind != tensor.KindTensor && !t.numbers[v] {
			t.numbers[v], changed = true, true
		}
	}
	for _, v := range s.Writes {
		at := t.m.Values[v].Storage
		if t.varies(v) && !t.storages[at] && (from || !t.explained(s)) {
			t.storages[at], changed = true, true
		}
	}
	return changed
}

// explained reports whether the sizes of a step's results may follow from those of its operands, or from a number.
func (t *taint) explained(s *ir.Step) bool {
	return slices.ContainsFunc(s.Reads, t.varies) || t.m.Changing(s.Args)
}

func (t *taint) varies(v int) bool { return t.m.Values[v].Tensor.Dynamism != tensor.Static }

func (t *taint) args(list []int) bool {
	return slices.ContainsFunc(list, func(v int) bool { return v >= 0 && (t.numbers[v] || t.args(t.m.Values[v].Items())) })
}

// marked reports whether one of the values is in a marked storage.
func marked(m *ir.Method, marks []bool, values []int) bool {
	return slices.ContainsFunc(values, func(v int) bool { return marks[m.Values[v].Storage] })
}
