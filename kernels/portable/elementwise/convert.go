package elementwise

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// converter is the conversion table of a compute type. Elements of the type itself are not converted: they have no row.
type converter[C compute] struct {
	self  tensor.DType
	load  [tensor.NumDTypes]func(dst []C, src []byte)
	store [tensor.NumDTypes]func(dst []byte, src []C)
}

var (
	convFloat32 = realTypes[float32](tensor.Float32)
	convFloat64 = realTypes[float64](tensor.Float64)
	convInt32   = realTypes[int32](tensor.Int32)
	convInt64   = realTypes[int64](tensor.Int64)
	convComplex = complexes()
)

func realTypes[C tensor.Convertible](self tensor.DType) *converter[C] {
	t := &converter[C]{self: self}
	for d := range tensor.DType(tensor.NumDTypes) {
		if d != self {
			t.load[d], t.store[d] = tensor.Loader[C](d), tensor.Storer[C](d)
		}
	}
	return t
}

// knows reports whether elements of type d are converted, or need not be.
func (t *converter[C]) knows(d tensor.DType) bool { return d == t.self || t.load[d] != nil }

// complexes computes on complex tensors: their own types, and real ones as the
// other operand.
func complexes() *converter[complex128] {
	t := &converter[complex128]{self: tensor.Complex128}
	for d := range tensor.DType(tensor.NumDTypes) {
		if load, store := tensor.Loader[float64](d), tensor.Storer[float64](d); load != nil {
			t.load[d] = func(dst []complex128, src []byte) { loadReal(dst, src, load) }
			t.store[d] = func(dst []byte, src []complex128) { storeReal(dst, src, store) }
		}
	}
	for _, d := range [...]tensor.DType{tensor.Complex64, tensor.Complex32} {
		t.load[d] = func(dst []complex128, src []byte) {
			tensor.CastBytes(tensor.BytesOf(dst), tensor.Complex128, src, d, len(dst))
		}
		t.store[d] = func(dst []byte, src []complex128) {
			tensor.CastBytes(dst, d, tensor.BytesOf(src), tensor.Complex128, len(src))
		}
	}
	return t
}

// loadReal spreads the parts from the end, since they are loaded in dst itself.
func loadReal(dst []complex128, src []byte, load func([]float64, []byte)) {
	parts := tensor.View[float64](tensor.BytesOf(dst))
	load(parts[:len(dst)], src)
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = complex(parts[i], 0)
	}
}

// storeReal stores the real parts, the result of a complex modulus. It packs them in
// src, a buffer.
func storeReal(dst []byte, src []complex128, store func([]byte, []float64)) {
	parts := tensor.View[float64](tensor.BytesOf(src))
	for i, v := range src {
		parts[i] = real(v)
	}
	store(dst, parts[:len(src)])
}

// number converts a number to a compute type.
func number[C compute](s kernels.Scalar) C {
	var c C
	switch p := any(&c).(type) {
	case *float32:
		*p = kernels.ScalarAs[float32](s)
	case *float64:
		*p = kernels.ScalarAs[float64](s)
	case *int32:
		*p = kernels.ScalarAs[int32](s)
	case *int64:
		*p = kernels.ScalarAs[int64](s)
	case *complex128:
		*p = complex(s.Float(), 0)
	}
	return c
}
