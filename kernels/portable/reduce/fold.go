package reduce

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// fold is a way to take many cells to one. A shift is a number for each result, which
// squares and exponentials look at.
type fold[C cell] struct {
	init C                             // of nothing
	row  func(acc C, x []C, shift C) C // folds a row into acc
	cols func(acc, x, shift []C)       // folds x into acc, cell by cell; shift may be nil
	join *fold[C]                      // for the results of chunks, nil for the fold itself
	rows func(dst, x []C, n int)       // folds rows of n cells, at most shortRow, or nil

	// Of sums of float32, in place of row and cols.
	row32  func(x []float32, shift C) C
	cols32 func(acc []C, x []float32, shift []C)
}

// The folds of each compute type.
var (
	sum32 = fold[float32]{
		row:  func(acc float32, x []float32, _ float32) float32 { return acc + simd.Sum(x) },
		cols: func(acc, x, _ []float32) { simd.Axpy(acc, x, 1) },
		rows: simd.SumRows,
	}
	sum64  = fold[float64]{row: sumRow[float64], cols: addCols[float64]}
	sumInt = fold[int64]{row: sumRow[int64], cols: addCols[int64]}

	prod32  = fold[float32]{init: 1, row: prodRow[float32], cols: mulCols[float32]}
	prod64  = fold[float64]{init: 1, row: prodRow[float64], cols: mulCols[float64]}
	prodInt = fold[int64]{init: 1, row: prodRow[int64], cols: mulCols[int64]}

	max32 = fold[float32]{
		init: float32(math.Inf(-1)),
		row:  func(acc float32, x []float32, _ float32) float32 { return max(acc, simd.Max(x)) },
		cols: func(acc, x, _ []float32) { simd.Maximum(acc, acc, x) },
	}
	max64  = fold[float64]{init: math.Inf(-1), row: maxRow[float64], cols: maxCols[float64]}
	maxInt = fold[int64]{init: math.MinInt64, row: maxRow[int64], cols: maxCols[int64]}

	min32 = fold[float32]{
		init: float32(math.Inf(1)),
		row:  func(acc float32, x []float32, _ float32) float32 { return min(acc, simd.Min(x)) },
		cols: func(acc, x, _ []float32) { simd.Minimum(acc, acc, x) },
	}
	min64  = fold[float64]{init: math.Inf(1), row: minRow[float64], cols: minCols[float64]}
	minInt = fold[int64]{init: math.MaxInt64, row: minRow[int64], cols: minCols[int64]}

	// squares sums squared distances from the shift; its chunks are summed.
	squares = fold[float64]{row: squareRow, cols: squareCols, join: &sum64}

	// sumOf32 and squaresOf32 are sum64 and squares of float32.
	sumOf32 = fold[float64]{
		row32:  func(x []float32, _ float64) float64 { return simd.SumFloat64(x) },
		cols32: func(acc []float64, x []float32, _ []float64) { simd.AddFloat64(acc, x) },
		join:   &sum64,
	}
	squaresOf32 = fold[float64]{row32: simd.SumSquaresFloat64, cols32: simd.AddSquaresFloat64, join: &sum64}

	// or is not 0 where any cell is not 0.
	or      = fold[uint8]{row: orRow[uint8], cols: orCols[uint8]}
	orWords = fold[int64]{row: orRow[int64], cols: orCols[int64]}
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

// A NaN beats anything, and nothing beats a NaN: the built-in functions hand it on.

func maxRow[C tensor.Compute](acc C, x []C, _ C) C {
	a, b, c, d := acc, acc, acc, acc
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = max(a, x[0]), max(b, x[1]), max(c, x[2]), max(d, x[3])
	}
	for _, v := range x {
		a = max(a, v)
	}
	return max(a, b, c, d)
}

func maxCols[C tensor.Compute](acc, x, _ []C) {
	x = x[:len(acc)]
	for i, v := range x {
		acc[i] = max(acc[i], v)
	}
}

func minRow[C tensor.Compute](acc C, x []C, _ C) C {
	a, b, c, d := acc, acc, acc, acc
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = min(a, x[0]), min(b, x[1]), min(c, x[2]), min(d, x[3])
	}
	for _, v := range x {
		a = min(a, v)
	}
	return min(a, b, c, d)
}

func minCols[C tensor.Compute](acc, x, _ []C) {
	x = x[:len(acc)]
	for i, v := range x {
		acc[i] = min(acc[i], v)
	}
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

func orRow[C uint8 | int64](acc C, x []C, _ C) C {
	var a, b, c, d C
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a|x[0], b|x[1], c|x[2], d|x[3]
	}
	for _, v := range x {
		acc |= v
	}
	return acc | a | b | c | d
}

func orCols[C uint8 | int64](acc, x, _ []C) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] |= x[i]
	}
}
