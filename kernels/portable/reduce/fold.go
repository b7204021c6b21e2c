package reduce

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/portable/loops"
)

// fold reduces many cells to one. A shift is a number for each result, for squares and exponentials.
type fold[C cell] struct {
	init C                             // of nothing
	row  func(acc C, x []C, shift C) C // folds a row into acc
	cols func(acc, x, shift []C)       // folds x into acc, cell by cell; shift may be nil
	join *fold[C]                      // for the results of chunks, nil for the fold itself
	rows func(dst, x []C, n int)       // folds rows of n cells, at most shortRow, or nil
	// halves is rows of float16, or nil. It returns false if it does not fold them.
	halves func(dst []C, x []byte, n int) bool
	// stack folds the rows of x at offsets, of as many cells as acc, into acc, whatever it holds; or nil.
	stack func(acc, x []C, off []int)

	// Of sums of float32, in place of row and cols.
	row32  func(x []float32, shift C) C
	cols32 func(acc []C, x []float32, shift []C)
}

// The folds of each compute type.
var (
	sum32 = fold[float32]{
		row:  func(acc float32, x []float32, _ float32) float32 { return acc + simd.Sum(x) },
		cols: func(acc, x, _ []float32) { simd.Axpy(acc, x, 1) },
		rows: simd.SumRows, halves: simd.SumHalfRows,
		stack: func(acc, x []float32, off []int) { simd.SumTaps(acc, x, off, 1, len(acc), 0, 0) },
	}
	sum64  = fold[float64]{row: folded(loops.Sum[float64]), cols: combined(loops.Add[float64])}
	sumInt = fold[int64]{row: folded(loops.Sum[int64]), cols: combined(loops.Add[int64])}

	prod32  = fold[float32]{init: 1, row: folded(loops.Prod[float32]), cols: combined(loops.Mul[float32])}
	prod64  = fold[float64]{init: 1, row: folded(loops.Prod[float64]), cols: combined(loops.Mul[float64])}
	prodInt = fold[int64]{init: 1, row: folded(loops.Prod[int64]), cols: combined(loops.Mul[int64])}

	max32 = fold[float32]{
		init:  float32(math.Inf(-1)),
		row:   func(acc float32, x []float32, _ float32) float32 { return max(acc, simd.Max(x)) },
		cols:  combined(simd.Maximum),
		stack: func(acc, x []float32, off []int) { simd.MaxTaps(acc, x, off, 1, len(acc), 0, 0) },
	}
	max64  = fold[float64]{init: math.Inf(-1), row: folded(loops.Max[float64]), cols: combined(loops.Maximum[float64])}
	maxInt = fold[int64]{init: math.MinInt64, row: folded(loops.Max[int64]), cols: combined(loops.Maximum[int64])}

	min32 = fold[float32]{
		init: float32(math.Inf(1)),
		row:  func(acc float32, x []float32, _ float32) float32 { return min(acc, simd.Min(x)) },
		cols: combined(simd.Minimum),
	}
	min64  = fold[float64]{init: math.Inf(1), row: folded(loops.Min[float64]), cols: combined(loops.Minimum[float64])}
	minInt = fold[int64]{init: math.MaxInt64, row: folded(loops.Min[int64]), cols: combined(loops.Minimum[int64])}

	// squares sums squared distances from the shift; its chunks are summed.
	squares = fold[float64]{row: loops.SumSquares, cols: squareCols, join: &sum64}

	// sumOf32 and squaresOf32 are sum64 and squares of float32.
	sumOf32 = fold[float64]{
		row32:  func(x []float32, _ float64) float64 { return simd.SumFloat64(x) },
		cols32: func(acc []float64, x []float32, _ []float64) { simd.AddFloat64(acc, x) },
		join:   &sum64,
	}
	squaresOf32 = fold[float64]{row32: simd.SumSquaresFloat64, cols32: simd.AddSquaresFloat64, join: &sum64}

	// or is nonzero if any cell is.
	or      = fold[uint8]{row: orRow[uint8], cols: orCols[uint8]}
	orWords = fold[int64]{row: orRow[int64], cols: orCols[int64]}
)

// folded returns a row function that ignores the shift.
func folded[C cell](f func(acc C, x []C) C) func(acc C, x []C, _ C) C {
	return func(acc C, x []C, _ C) C { return f(acc, x) }
}

// combined returns a cols function that ignores the shift.
func combined[C cell](f func(dst, a, b []C)) func(acc, x, _ []C) {
	return func(acc, x, _ []C) { f(acc, acc, x) }
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
