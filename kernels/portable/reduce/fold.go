package reduce

import (
	"math"

	"github.com/etrun-go/etrun/kernels/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// fold is a way to take many cells to one. A shift is a number for each result, which
// only squares look at.
type fold[C cell] struct {
	init C                             // of nothing
	row  func(acc C, x []C, shift C) C // folds a row into acc
	cols func(acc, x, shift []C)       // folds x into acc, cell by cell; shift may be nil
	join *fold[C]                      // for the results of chunks, nil for the fold itself
}

// The folds of each compute type.
var (
	sum32 = fold[float32]{
		row:  func(acc float32, x []float32, _ float32) float32 { return acc + simd.Sum(x) },
		cols: func(acc, x, _ []float32) { simd.Axpy(acc, x, 1) },
	}
	sum64  = fold[float64]{row: sumRow[float64], cols: addCols[float64]}
	sumInt = fold[int64]{row: sumRow[int64], cols: addCols[int64]}

	prod32  = fold[float32]{init: 1, row: prodRow[float32], cols: mulCols[float32]}
	prod64  = fold[float64]{init: 1, row: prodRow[float64], cols: mulCols[float64]}
	prodInt = fold[int64]{init: 1, row: prodRow[int64], cols: mulCols[int64]}

	max32 = fold[float32]{
		init: float32(math.Inf(-1)),
		row:  func(acc float32, x []float32, _ float32) float32 { return max(acc, simd.Max(x)) },
		cols: maxCols[float32],
	}
	max64  = fold[float64]{init: math.Inf(-1), row: maxRow[float64], cols: maxCols[float64]}
	maxInt = fold[int64]{init: math.MinInt64, row: maxRow[int64], cols: maxCols[int64]}

	min32  = fold[float32]{init: float32(math.Inf(1)), row: minRow[float32], cols: minCols[float32]}
	min64  = fold[float64]{init: math.Inf(1), row: minRow[float64], cols: minCols[float64]}
	minInt = fold[int64]{init: math.MaxInt64, row: minRow[int64], cols: minCols[int64]}

	// squares sums squared distances from the shift; its chunks are summed.
	squares = fold[float64]{row: squareRow, cols: squareCols, join: &sum64}

	// or is not 0 where any cell is not 0.
	or = fold[uint8]{row: orRow, cols: orCols}
)

// sumRow adds in four strands, which the processor overlaps.
func sumRow[C tensor.Compute](acc C, x []C, _ C) C {
	var a, b, c, d C
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a+x[0], b+x[1], c+x[2], d+x[3]
	}
	for _, v := range x {
		a += v
	}
	return acc + ((a + b) + (c + d))
}

func addCols[C tensor.Compute](acc, x, _ []C) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] += x[i]
	}
}

func prodRow[C tensor.Compute](acc C, x []C, _ C) C {
	var a, b, c, d C = 1, 1, 1, 1
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a*x[0], b*x[1], c*x[2], d*x[3]
	}
	for _, v := range x {
		a *= v
	}
	return acc * ((a * b) * (c * d))
}

func mulCols[C tensor.Compute](acc, x, _ []C) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] *= x[i]
	}
}

// choose keeps in acc what beats it in x.
func choose[C tensor.Compute](acc C, x []C, beats func(a, b C) bool) C {
	for _, v := range x {
		if beats(v, acc) {
			acc = v
		}
	}
	return acc
}

func chooseCols[C tensor.Compute](acc, x []C, beats func(a, b C) bool) {
	x = x[:len(acc)]
	for i, v := range x {
		if beats(v, acc[i]) {
			acc[i] = v
		}
	}
}

// A NaN beats anything, and nothing beats a NaN.

func maxRow[C tensor.Compute](acc C, x []C, _ C) C {
	return choose(acc, x, func(a, b C) bool { return a > b || a != a })
}

func maxCols[C tensor.Compute](acc, x, _ []C) {
	chooseCols(acc, x, func(a, b C) bool { return a > b || a != a })
}

func minRow[C tensor.Compute](acc C, x []C, _ C) C {
	return choose(acc, x, func(a, b C) bool { return a < b || a != a })
}

func minCols[C tensor.Compute](acc, x, _ []C) {
	chooseCols(acc, x, func(a, b C) bool { return a < b || a != a })
}

func squareRow(acc float64, x []float64, shift float64) float64 {
	var a, b, c, d float64
	for ; len(x) >= 4; x = x[4:] {
		x0, x1, x2, x3 := x[0]-shift, x[1]-shift, x[2]-shift, x[3]-shift
		a, b, c, d = a+x0*x0, b+x1*x1, c+x2*x2, d+x3*x3
	}
	for _, v := range x {
		a += (v - shift) * (v - shift)
	}
	return acc + ((a + b) + (c + d))
}

func squareCols(acc, x, shift []float64) {
	x, shift = x[:len(acc)], shift[:len(acc)]
	for i := range acc {
		v := x[i] - shift[i]
		acc[i] += v * v
	}
}

func orRow(acc uint8, x []uint8, _ uint8) uint8 {
	for _, v := range x {
		acc |= v
	}
	return acc
}

func orCols(acc, x, _ []uint8) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] |= x[i]
	}
}
