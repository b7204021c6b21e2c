package lower

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// itemOp reads an element as a number.
const itemOp = "aten::_local_scalar_dense"

// mostPasses bounds the passes over a method: programs need two or three. After more, all sizes that vary count as computed.
const mostPasses = 32

// computedSizes marks the values whose sizes depend on elements. They may be 0, which delegates do not run. Sizes that
// follow from those of inputs are not among them.
func computedSizes(m *ir.Method) []bool {
	t := &taint{m, m.Views(), make([]bool, len(m.Values)), make([]bool, len(m.Values))}
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
	return t.sizes
}

// taint is what depends on elements: the sizes of tensors, and numbers.
type taint struct {
	m       *ir.Method
	views   []bool // by value: a step makes it a view
	sizes   []bool // by value
	numbers []bool // by value
}

// markAll marks all values whose sizes vary.
func (t *taint) markAll() {
	for v := range t.m.Values {
		if x := &t.m.Values[v]; x.Kind == tensor.KindTensor && x.Storage >= 0 && t.varies(v) {
			t.sizes[v] = true
		}
	}
}

// step marks the results of a step.
func (t *taint) step(s *ir.Step) (changed bool) {
	from := t.args(s.Args) || marked(t.sizes, s.Reads)
	if s.Sig.Result != nil {
		v := s.Args[len(s.Args)-1]
		if (from || s.Op.Name() == itemOp) && t.m.Values[v].Kind != tensor.KindTensor && !t.numbers[v] {
			t.numbers[v], changed = true, true
		}
	}
	for _, v := range s.Writes {
		if t.varies(v) && !t.sizes[v] && (from || !t.explained(s)) && !t.isNamed(s) {
			t.mark(v)
			changed = true
		}
	}
	return changed
}

// mark marks a value, and those that have its sizes: all with its bytes, unless a step makes them views with sizes of their own.
func (t *taint) mark(v int) {
	t.sizes[v] = true
	if t.views[v] {
		return
	}
	for _, other := range t.m.Storages[t.m.Values[v].Storage].Values {
		if !t.views[other] {
			t.sizes[other] = t.varies(other)
		}
	}
}

// isNamed reports whether a step makes a view all of whose sizes are arguments that do not depend on elements. They are not 0, so
// that those of what it is a view of are not, either, if the step does not fail.
func (t *taint) isNamed(s *ir.Step) bool {
	if !s.IsView() || t.args(s.Args) {
		return false
	}
	sizes := t.m.Values[s.Args[1]].Items()
	return len(sizes) > 0 && !slices.ContainsFunc(sizes, func(v int) bool {
		return v < 0 || t.m.Values[v].Kind != tensor.KindInt || !t.m.Values[v].Changes && t.m.Values[v].Int < 1
	})
}

// explained reports whether the sizes of a step's results may follow from those of its operands, or from a number.
func (t *taint) explained(s *ir.Step) bool {
	return slices.ContainsFunc(s.Reads, t.varies) || t.m.Changing(s.Args)
}

func (t *taint) varies(v int) bool { return t.m.Values[v].Tensor.Dynamism != tensor.Static }

func (t *taint) args(list []int) bool {
	return slices.ContainsFunc(list, func(v int) bool { return v >= 0 && (t.numbers[v] || t.args(t.m.Values[v].Items())) })
}

// marked reports whether one of the values is marked.
func marked(marks []bool, values []int) bool {
	return slices.ContainsFunc(values, func(v int) bool { return marks[v] })
}

// sizesThatVary returns by value how the dimensions of tensors vary, see regions.GraphValue: sizes that are numbers among the arguments of
// the one step that makes a tensor do not vary, and those of one slot vary in the same way.
func sizesThatVary(m *ir.Method) [][]int {
	varies, makers := make([][]int, len(m.Values)), make([]int, len(m.Values))
	const none, several = 0, -1 // else the step, plus one
	note := func(v, i int) {
		if makers[v] != none {
			i = several - 1
		}
		makers[v] = i + 1
	}
	for i := range m.Steps {
		s := &m.Steps[i]
		switch {
		case s.IsJump() && s.Target <= i:
			return varies
		case s.Kind == ir.MoveCall:
			note(s.Args[1], i)
		case s.Kind == ir.KernelCall && s.Sig.Result != nil:
			if v := s.Args[len(s.Args)-1]; m.Values[v].Kind != tensor.KindTensor {
				note(v, i)
			}
		}
		for _, v := range s.Writes {
			note(v, i)
		}
	}
	for v, made := range makers {
		if made > 0 && m.Values[v].Kind == tensor.KindTensor && m.Values[v].Tensor.Dynamism != tensor.Static {
			varies[v] = numbered(m, made-1, m.Values[v].Tensor.Sizes, func(slot int) bool {
				return makers[slot] >= none && makers[slot] < made
			})
		}
	}
	return varies
}

// numbered returns how the sizes of the result of step i vary that are numbers among its arguments, nil if none are. once reports whether a
// slot is not set again in a run.
func numbered(m *ir.Method, i int, sizes []int, once func(slot int) bool) []int {
	s, at := &m.Steps[i], 1
	switch {
	case s.Kind != ir.KernelCall:
		return nil
	case s.Op.Flow == opclass.Filled:
		at = 0
	case s.Op.Flow != opclass.Reshaped && s.Op.Class != opclass.Expand:
		return nil
	}
	list := m.Values[s.Args[at]].Items()
	if len(list) != len(sizes) {
		return nil
	}
	varies := make([]int, len(sizes))
	for d, slot := range list {
		switch {
		case slot >= 0 && m.Values[slot].Kind == tensor.KindInt && !m.Values[slot].Changes && int(m.Values[slot].Int) == sizes[d]:
		case slot >= 0 && m.Values[slot].Changes && once(slot):
			varies[d] = slot + 1
		default:
			varies[d] = -1
		}
	}
	return varies
}
