// Package loops (no compatibility promise) contains loops over slices of the types that operators calculate in, for
// types without vector loops in internal/simd. Sums and products of a type have one order in all operators: four partial
// results, which the processor computes in parallel.
package loops

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Sum returns acc plus the sum of x.
func Sum[C tensor.Compute](acc C, x []C) C { return acc + simd.SumAs[C](x) }

// Prod returns acc times the product of x.
func Prod[C tensor.Compute](acc C, x []C) C {
	var a, b, c, d C = 1, 1, 1, 1
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a*x[0], b*x[1], c*x[2], d*x[3]
	}
	for _, v := range x {
		a *= v
	}
	return acc * ((a * b) * (c * d))
}

// Max returns the maximum of acc and x, NaN if one is NaN.
func Max[C tensor.Compute](acc C, x []C) C {
	a, b, c, d := acc, acc, acc, acc
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = max(a, x[0]), max(b, x[1]), max(c, x[2]), max(d, x[3])
	}
	for _, v := range x {
		a = max(a, v)
	}
	return max(a, b, c, d)
}

// Min returns the minimum of acc and x, NaN if one is NaN.
func Min[C tensor.Compute](acc C, x []C) C {
	a, b, c, d := acc, acc, acc, acc
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = min(a, x[0]), min(b, x[1]), min(c, x[2]), min(d, x[3])
	}
	for _, v := range x {
		a = min(a, v)
	}
	return min(a, b, c, d)
}

// SumSquares returns acc plus the sum of the squares of x - mean.
func SumSquares(acc float64, x []float64, mean float64) float64 {
	return acc + simd.SumSquaresAs(x, mean)
}

// The following functions compute dst element by element. a and b are as long as dst or longer, and may be dst.

// Add computes a + b.
func Add[C tensor.Compute](dst, a, b []C) { combine(dst, a, b, func(x, y C) C { return x + y }) }

// Sub computes a - b.
func Sub[C tensor.Compute](dst, a, b []C) { combine(dst, a, b, func(x, y C) C { return x - y }) }

// Mul computes a · b.
func Mul[C tensor.Compute](dst, a, b []C) { combine(dst, a, b, func(x, y C) C { return x * y }) }

// Maximum computes max(a, b), NaN if one is NaN.
func Maximum[C tensor.Compute](dst, a, b []C) {
	combine(dst, a, b, func(x, y C) C { return max(x, y) })
}

// Minimum computes min(a, b), NaN if one is NaN.
func Minimum[C tensor.Compute](dst, a, b []C) {
	combine(dst, a, b, func(x, y C) C { return min(x, y) })
}

// combine is small enough for the compiler to inline it, and f, a function literal, into the loop.
func combine[C tensor.Compute](dst, a, b []C, f func(x, y C) C) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = f(a[i], b[i])
	}
}

// ScaleShift computes src·scale + shift.
func ScaleShift(dst, src []float64, scale, shift float64) {
	for i := range dst {
		dst[i] = src[i]*scale + shift
	}
}
