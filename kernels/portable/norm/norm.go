// Package norm (no compatibility promise) implements the ATen normalizations: softmax, layer, group and batch norm.
package norm

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/loops"
	"github.com/etrun-go/etrun/kernels/portable/operand"
)

const floatTypes = "float16, bfloat16, float32, float64"

// elementCost is the cost of an element in picoseconds.
const elementCost = 670

// real is the compute type of a normalization.
type real interface{ float32 | float64 }

// rowOps are the loops that normalize rows.
type rowOps[T real] struct {
	sum        func(x []T) T
	squares    func(x []T, mean T) T
	scaleShift func(dst, src []T, scale, shift T)
	center     func(dst, src []T, mean, scale T, weight, bias []T)
	softmax    func(dst, src []T, n int)
	norm       func(dst, src []T, n int, mean, rstd, weight, bias []T, eps T)
	max        func(x []T) T
	expSum     func(dst, src []T, shift T) T

	maximum, add, sub, mul func(dst, a, b []T)
}

var (
	rows32 = rowOps[float32]{simd.Sum, simd.SumSquares, simd.ScaleShift, simd.Center, simd.SoftmaxRows, simd.NormRows, simd.Max, simd.ExpSum,
		simd.Maximum, simd.Add, simd.Sub, simd.Mul}
	rows64 = rowOps[float64]{sum64, squares64, loops.ScaleShift, center64, softmaxRows64, normRows64, max64, expSum64,
		loops.Maximum[float64], loops.Add[float64], loops.Sub[float64], loops.Mul[float64]}
)

func rowsOf[T real]() *rowOps[T] {
	if r, ok := any(&rows32).(*rowOps[T]); ok {
		return r
	}
	return any(&rows64).(*rowOps[T])
}

func sum64(x []float64) float64                   { return loops.Sum(0, x) }
func squares64(x []float64, mean float64) float64 { return loops.SumSquares(0, x, mean) }
func max64(x []float64) float64                   { return loops.Max(math.Inf(-1), x) }

func center64(dst, src []float64, mean, scale float64, weight, bias []float64) {
	for i := range dst {
		v := (src[i] - mean) * scale
		if weight != nil {
			v *= weight[i]
		}
		if bias != nil {
			v += bias[i]
		}
		dst[i] = v
	}
}

func expSum64(dst, src []float64, shift float64) (s float64) {
	for i := range dst {
		dst[i] = math.Exp(src[i] - shift)
		s += dst[i]
	}
	return s
}

func softmaxRows64(dst, src []float64, n int) {
	for i := 0; i < len(dst); i += n {
		d, s := dst[i:][:n], src[i:][:n]
		loops.ScaleShift(d, d, 1/expSum64(d, s, max64(s)), 0)
	}
}

func normRows64(dst, src []float64, n int, mean, rstd, weight, bias []float64, eps float64) {
	for i := range mean {
		x := src[i*n:][:n]
		mean[i] = sum64(x) / float64(n)
		rstd[i] = 1 / math.Sqrt(squares64(x, mean[i])/float64(n)+eps)
		center64(dst[i*n:][:n], x, mean[i], rstd[i], weight, bias)
	}
}

// floating checks that argument i is of a floating type and those in same like it.
func floating(a kernels.Args, i int, same ...int) error {
	d := a.Tensor(i).DType
	if !d.IsFloat() {
		return kernels.Bad(i, d.String(), floatTypes)
	}
	for _, j := range same {
		if t := a.OptTensor(j); t != nil && t.DType != d {
			return kernels.Bad(j, t.DType.String(), fmt.Sprintf("argument %d's %v", i, d))
		}
	}
	return nil
}

// byType returns the function for the type of argument 0, which is floating.
func byType(a kernels.Args, f32, f64 kernels.Func) kernels.Func {
	return operand.ByType(a.Tensor(0).DType, f32, f64, nil)
}

// affine checks arguments i and i+1, two optional tensors of n elements.
func affine(a kernels.Args, i, n int) error {
	for j := i; j <= i+1; j++ {
		if t := a.OptTensor(j); t != nil && (!t.DType.IsFloat() || t.Numel() != n) {
			return kernels.Badf(j, fmt.Sprintf("%d elements of a floating type", n), "%v", t)
		}
	}
	return nil
}

// moments returns mean and 1/sqrt(var+eps) of a row; 0 and NaN for an empty row.
func moments[T real](ops *rowOps[T], x []T, eps float64) (mean, rstd T) {
	n := T(len(x))
	mean = ops.sum(x) / max(n, 1)
	variance := float64(ops.squares(x, mean) / n)
	return mean, T(1 / math.Sqrt(variance+eps))
}

// stored checks the outs for mean and 1/std, at arguments i and i+1, and resizes
// them.
func stored(a kernels.Args, i int, sizes []int) error {
	for j := i; j <= i+1; j++ {
		if t := a.Tensor(j); !t.DType.IsFloat() {
			return kernels.Bad(j, t.DType.String(), floatTypes)
		}
		if err := kernels.ResizeOut(a, j, sizes); err != nil {
			return err
		}
	}
	return nil
}
