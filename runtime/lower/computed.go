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
