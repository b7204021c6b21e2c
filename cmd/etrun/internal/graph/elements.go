package graph

import (
	"slices"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// quantized are operators whose argument 0 is quantized with scales in argument 1 and zero points in argument 2, by the
// beginning of their names. axis is the argument with the dimension of the scales; 0 for rows and groups of their elements.
var quantized = []struct {
	name string
	bits int
	axis int
}{
	{"quantized_decomposed::embedding_4bit.", 4, 0},
	{"quantized_decomposed::embedding_2bit.", 2, 0},
	{"quantized_decomposed::embedding_byte.", 8, 0},
	{"quantized_decomposed::dequantize_per_channel.", 8, 3},
	{"quantized_decomposed::dequantize_per_tensor.", 8, -1},
}

// elements returns what the elements of argument 0 of a step mean, nil if they are the numbers, or if that is not constant.
func (b *builder) elements(s *ir.Step, i int) *delegate.Elements {
	if s.Kind != ir.KernelCall || i != 0 {
		return nil
	}
	for _, row := range quantized {
		if !strings.HasPrefix(s.Op.Name(), row.name) || len(s.Args) < 4 {
			continue
		}
		w := b.m.Values[s.Args[0]].Tensor
		e := &delegate.Elements{Bits: row.bits, HighFirst: row.bits == 4, Scales: b.floats(s.Args[1]), Zeros: b.floats(s.Args[2])}
		switch {
		case w == nil || len(e.Scales) == 0 || len(w.Sizes) == 0 || !slices.IsSorted(w.DimOrder):
			return nil
		case row.axis > 0:
			e.Dim = int(b.m.Values[s.Args[row.axis]].Int)
		case row.axis == 0 && len(w.Sizes) == 2:
			e.Sizes = []int{w.Sizes[0], w.Sizes[1] * (8 / row.bits)}
			e.Group = e.Sizes[0] * e.Sizes[1] / len(e.Scales)
		}
		if row.bits < 8 {
			e.ZeroPoint = 1 << (row.bits - 1)
		}
		return e
	}
	return nil
}

// floats returns the elements of a constant, or a number, nil for others.
func (b *builder) floats(v int) []float32 {
	if v < 0 {
		return nil
	}
	value := &b.m.Values[v]
	switch value.Kind {
	case tensor.KindInt:
		return []float32{float32(value.Int)}
	case tensor.KindDouble:
		return []float32{float32(value.Double)}
	case tensor.KindTensor:
	default:
		return nil
	}
	s, t := &b.m.Storages[value.Storage], value.Tensor
	load := tensor.Loader[float32](t.DType)
	if !s.Kind.IsConstant() || load == nil || t.NBytes() > int64(len(s.Data)) {
		return nil
	}
	data := tensor.AlignedBytes(int(t.NBytes()))
	copy(data, s.Data)
	list := make([]float32, len(data)/t.DType.Size())
	load(list, data)
	return list
}
