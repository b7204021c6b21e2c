package reduce

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// directScan scans elements without conversion: row a row of n from element at on, cols a part of a row whose sums so
// far are in sums.
type directScan[C tensor.Compute] struct {
	row  func(dst, src []byte, at, n int)
	cols func(dst, src []byte, at int, sums []C)
}

var (
	floats = directScan[float64]{row: scanFloats, cols: scanCols[float64, float32]}
	longs  = directScan[int64]{row: scanLongs, cols: scanCols[int64, int64]}
)

// directScanOf returns the scan of elements of type from to elements of type to, nil if they must be converted.
func directScanOf[C tensor.Compute](from, to tensor.DType) *directScan[C] {
	var d any
	switch {
	case from == tensor.Float32 && to == tensor.Float32:
		d = &floats
	case from == tensor.Int64 && to == tensor.Int64:
		d = &longs
	}
	p, _ := d.(*directScan[C])
	return p
}

func scanFloats(dst, src []byte, at, n int) {
	simd.CumSum(tensor.View[float32](dst)[at:][:n], tensor.View[float32](src)[at:])
}

func scanLongs(dst, src []byte, at, n int) {
	y, sum := tensor.View[int64](dst)[at:][:n], int64(0)
	for i, v := range tensor.View[int64](src)[at:][:n] {
		sum += v
		y[i] = sum
	}
}

func scanCols[C float64 | int64, T float32 | int64](dst, src []byte, at int, sums []C) {
	y, x := tensor.View[T](dst)[at:][:len(sums)], tensor.View[T](src)[at:][:len(sums)]
	for i, v := range x {
		s := sums[i] + C(v)
		sums[i], y[i] = s, T(s)
	}
}
