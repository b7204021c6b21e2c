package lower

import (
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// What is said of a method depends on the sizes of its weights, not on their elements. If it is only described, weights that
// were to be computed are blank: zeros in memory that nothing touches.

// BlankBytes is the size from which constants are blank.
const BlankBytes = 64 << 10

// weightOf returns the argument of a call that may be blank, -1 for none.
func weightOf(s *ir.Step) int {
	if s.Kind != ir.KernelCall {
		return -1
	}
	switch s.Op.Class {
	case opclass.MM, opclass.BMM, opclass.Linear, opclass.Convolution:
		return 1
	case opclass.AddMM:
		return 2
	}
	return -1
}

// mayBeBlank reports whether the results of step i need not be computed yet: its operator moves elements, and accepts the sizes.
func (f *folder) mayBeBlank(i int) bool {
	s := &f.m.Steps[i]
	return f.prober != nil && s.Op.Moves && len(s.Writes) == 1 && !f.m.Storages[f.m.Values[s.Writes[0]].Storage].Output &&
		f.m.Values[s.Writes[0]].Tensor.NBytes() >= BlankBytes && f.prober.fits(i) && f.prober.probe(i) == nil
}

// leaveBlank allocates the results of step i.
func (f *folder) leaveBlank(i int) {
	v := f.m.Steps[i].Writes[0]
	storage := f.m.Values[v].Storage
	f.bytes[storage] = f.allocate(int(f.m.Values[v].Tensor.NBytes()))
	f.blank[storage] = i
}

// fill computes those of the values that are blank.
func (f *folder) fill(values []int) {
	for _, v := range values {
		if v < 0 || f.m.Values[v].Kind != tensor.KindTensor {
			continue
		}
		storage := f.m.Values[v].Storage
		if i, ok := f.blank[storage]; ok {
			delete(f.blank, storage)
			f.fill(f.m.Steps[i].Reads)
			f.execute(i)
		}
	}
}

// fillRead computes the blank constants that a step which is left reads for more than their sizes.
func (f *folder) fillRead() {
	for i := range f.m.Steps {
		s := &f.m.Steps[i]
		switch weight := weightOf(s); {
		case f.folded[i]:
		case weight < 0:
			f.fill(s.Reads)
		default:
			f.fill(s.Args[:weight])
			f.fill(s.Args[weight+1:])
		}
	}
}

// Quantizes reports whether a method quantizes values: what becomes of it depends on elements.
func Quantizes(m *ir.Method) bool {
	for i := range m.Steps {
		if s := &m.Steps[i]; s.Kind == ir.KernelCall && (s.Op.Class == opclass.Quantize || s.Op.Class == opclass.QuantizeDynamic) {
			return true
		}
	}
	return false
}
