package lower

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// computedSizes marks the storages whose sizes depend on numbers that steps compute. They may be 0, which delegates do not run.
func computedSizes(m *ir.Method) []bool {
	marks := make([]bool, len(m.Storages))
	if !slices.ContainsFunc(m.Values, func(v ir.Value) bool { return v.Changes }) {
		return marks
	}
	for changed := true; changed; {
		changed = false
		for i := range m.Steps {
			s := &m.Steps[i]
			if s.Kind != ir.KernelCall || !m.Changing(s.Args) && !marked(m, marks, s.Reads) {
				continue
			}
			for _, v := range s.Writes {
				if at := m.Values[v].Storage; m.Values[v].Tensor.Dynamism != tensor.Static && !marks[at] {
					marks[at], changed = true, true
				}
			}
		}
	}
	return marks
}

func marked(m *ir.Method, marks []bool, values []int) bool {
	for _, v := range values {
		if marks[m.Values[v].Storage] {
			return true
		}
	}
	return false
}
