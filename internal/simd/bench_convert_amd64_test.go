//go:build !purego

package simd_test

import (
	"testing"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkConvert measures the conversions as package tensor calls them: without vectors
// its loops in Go take all elements.
func BenchmarkConvert(b *testing.B) {
	const n = 1024
	raw, floats, ints := tensor.AlignedBytes(4*n), make([]float32, n), make([]int32, n)
	for i := range raw {
		raw[i] = byte(i * i % 61)
	}
	for i := range floats {
		floats[i], ints[i] = float32(i%100)-50.5, int32(i%100)-50
	}
	types := []tensor.DType{tensor.Int8, tensor.Uint8, tensor.Bool, tensor.Int16, tensor.Uint16, tensor.Int32, tensor.Float16, tensor.BFloat16}
	for _, d := range types {
		name, src := d.String(), raw[:n*d.Size()]
		if load := tensor.Loader[float32](d); load != nil {
			simd.Versus(b, name+" to float", n, func() { load(floats, src) })
		}
		if store := tensor.Storer[float32](d); store != nil {
			simd.Versus(b, "float to "+name, n, func() { store(src, floats) })
		}
		if load := tensor.Loader[int32](d); load != nil && !d.IsFloat() && d != tensor.Int32 {
			simd.Versus(b, name+" to int32", n, func() { load(ints, src) })
		}
		if store := tensor.Storer[int32](d); store != nil && !d.IsFloat() && d != tensor.Int32 {
			simd.Versus(b, "int32 to "+name, n, func() { store(src, ints) })
		}
	}
}
