package rows

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// selects reports whether a step selects the row of a call of one row: the first or the last one.
func (f *finder) selects(s *ir.Step) bool {
	if f.joined || s.Kind != ir.KernelCall || s.Own || s.Op.Class != opclass.Select || !s.Op.Pure {
		return false
	}
	x := s.Args[0]
	d, ok := f.dim(s.Args[1], len(f.sizes(x)))
	index := &f.Values[s.Args[2]]
	fixed := index.Kind == tensor.KindInt && !index.Changes && (index.Int == -1 || index.Int == 0)
	return ok && fixed && d == 1 && f.plan.Dims[x] == 1
}

func (f *finder) isLifted(v int) bool { return slices.Contains(f.plan.Lifted, v) }

// lift gives the results of a step rows in their first dimension. ok is false if they cannot have any: then nothing has changed.
func (f *finder) lift(s *ir.Step) (ok bool) {
	for _, v := range s.Writes {
		x := &f.Values[v]
		t, storage := x.Tensor, x.Storage
		one := t.Dynamism == tensor.Static && !t.Const && len(t.Sizes) > 1 && t.Sizes[0] == 1 && slices.IsSorted(t.DimOrder)
		if !one || f.Storages[storage].Kind != ir.Activation || len(f.Storages[storage].Values) > 1 || f.fixed[storage] && f.updated[storage] {
			return false
		}
	}
	if len(s.Writes) == 0 || len(s.Updates) > 0 {
		return false
	}
	for _, v := range s.Writes {
		f.plan.Dims[v], f.fixed[f.Values[v].Storage] = 0, false
		f.plan.Lifted = append(f.plan.Lifted, v)
	}
	return true
}

// drop undoes the last lift.
func (f *finder) drop(s *ir.Step) {
	for _, v := range s.Writes {
		f.plan.Dims[v] = None
	}
	f.plan.Lifted = f.plan.Lifted[:len(f.plan.Lifted)-len(s.Writes)]
}
