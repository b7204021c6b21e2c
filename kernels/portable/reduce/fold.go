package reduce

import (
	"math"

	"github.com/etrun-go/etrun/kernels/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// The folds of each compute type.
var (
	sum32 = fold[float32]{
		row:  func(acc float32, x []float32, _ float32) float32 { return acc + simd.Sum(x) },
		cols: func(acc, x []float32) { simd.Axpy(acc, x, 1) },
	}
	sum64  = fold[float64]{row: sumRow[float64], cols: addCols[float64]}
	sumInt = fold[int64]{row: sumRow[int64], cols: addCols[int64]}

	prod32  = fold[float32]{init: 1, row: prodRow[float32], cols: mulCols[float32]}
	prod64  = fold[float64]{init: 1, row: prodRow[float64], cols: mulCols[float64]}
	prodInt = fold[int64]{init: 1, row: prodRow[int64], cols: mulCols[int64]}

	max32  = fold[float32]{init: float32(math.Inf(-1)), row: maxRow[float32], cols: maxCols[float32]}
	max64  = fold[float64]{init: math.Inf(-1), row: maxRow[float64], cols: maxCols[float64]}
	maxInt = fold[int64]{init: math.MinInt64, row: maxRow[int64], cols: maxCols[int64]}

	min32  = fold[float32]{init: float32(math.Inf(1)), row: minRow[float32], cols: minCols[float32]}
	min64  = fold[float64]{init: math.Inf(1), row: minRow[float64], cols: minCols[float64]}
	minInt = fold[int64]{init: math.MaxInt64, row: minRow[int64], cols: minCols[int64]}

	// squares sums squared distances from the shift; its chunks are summed.
	squares = fold[float64]{row: squareRow, join: &sum64}

	// or is not 0 where any cell is not 0.
	or = fold[uint8]{row: orRow, cols: orCols}
)

// foldRow folds a row in four strands, which the processor overlaps.
func foldRow[C cell](init C, x []C, f func(a, b C) C) C {
	a, b, c, d := init, init, init, init
	i := 0
	for ; i+4 <= len(x); i += 4 {
		y := x[i : i+4 : i+4]
		a, b, c, d = f(a, y[0]), f(b, y[1]), f(c, y[2]), f(d, y[3])
	}
	for ; i < len(x); i++ {
		a = f(a, x[i])
	}
	return f(f(a, b), f(c, d))
}

func foldCols[C cell](acc, x []C, f func(a, b C) C) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] = f(acc[i], x[i])
	}
}

func sumRow[C tensor.Compute](acc C, x []C, _ C) C {
	return acc + foldRow(0, x, func(a, b C) C { return a + b })
}

func addCols[C tensor.Compute](acc, x []C) { foldCols(acc, x, func(a, b C) C { return a + b }) }

func prodRow[C tensor.Compute](acc C, x []C, _ C) C {
	return acc * foldRow(1, x, func(a, b C) C { return a * b })
}

func mulCols[C tensor.Compute](acc, x []C) { foldCols(acc, x, func(a, b C) C { return a * b }) }

// The extremes pass NaN on, as max and min do.

func maxRow[C tensor.Compute](acc C, x []C, _ C) C {
	return foldRow(acc, x, func(a, b C) C { return max(a, b) })
}

func maxCols[C tensor.Compute](acc, x []C) { foldCols(acc, x, func(a, b C) C { return max(a, b) }) }

func minRow[C tensor.Compute](acc C, x []C, _ C) C {
	return foldRow(acc, x, func(a, b C) C { return min(a, b) })
}

func minCols[C tensor.Compute](acc, x []C) { foldCols(acc, x, func(a, b C) C { return min(a, b) }) }

func squareRow(acc float64, x []float64, shift float64) float64 {
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		y := x[i : i+4 : i+4]
		y0, y1, y2, y3 := y[0]-shift, y[1]-shift, y[2]-shift, y[3]-shift
		a += y0 * y0
		b += y1 * y1
		c += y2 * y2
		d += y3 * y3
	}
	for ; i < len(x); i++ {
		a += (x[i] - shift) * (x[i] - shift)
	}
	return acc + (a + b) + (c + d)
}

func orRow(acc uint8, x []uint8, _ uint8) uint8 {
	for _, v := range x {
		acc |= v
	}
	return acc
}

func orCols(acc, x []uint8) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] |= x[i]
	}
}
