package simd

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"
	"unsafe"
)

// Every benchmark of a loop runs it and its Go implementation in turn, and reports how
// many times as long the Go implementation takes: what does not come out above 1 has no
// place as assembly.

// versus measures f, and reports the times of pure over those of f.
func versus(b *testing.B, name string, elements int, f, pure func()) {
	b.Run(name, func(b *testing.B) {
		vector, plain := math.Inf(1), math.Inf(1) // the least of all, which interruptions do not touch
		for b.Loop() {
			vector, plain = min(vector, seconds(f)), min(plain, seconds(pure))
		}
		b.ReportMetric(plain/vector, "×go")
		b.ReportMetric(vector*1e9/rounds/float64(elements), "ns/element")
		b.ReportMetric(0, "ns/op") // of both
	})
}

const rounds = 20 // calls between two looks at the clock

func seconds(f func()) float64 {
	start := time.Now()
	for range rounds {
		f()
	}
	return time.Since(start).Seconds()
}

// sink keeps results, so that the compiler computes them.
var sink float64

// benchmarkLengths are of the operands: a part of a row, and a row in the first-level cache.
var benchmarkLengths = []int{24, 1024}

func BenchmarkTable(b *testing.B) {
	for _, n := range benchmarkLengths {
		benchmarkPairs(b, n, binaryFloats)
		benchmarkPairs(b, n, twoOperands(unaryFloats))
		benchmarkPairs(b, n, twoOperands(approximations))
		benchmarkPairs(b, n, binaryInts)
		benchmarkPairs(b, n, twoOperands(unaryInts))
		benchmarkPairs(b, n, compareFloats)
		benchmarkPairs(b, n, compareInts)
		for _, p := range selections {
			dst, mask, x, y := make([]uint32, n), make([]uint8, n), make([]uint32, n), make([]uint32, n)
			for i := range mask {
				mask[i] = uint8(i * i % 3)
			}
			versus(b, named(p.name, n), n, func() { p.f(dst, mask, x, y) }, func() { p.pure(dst, mask, x, y) })
		}
	}
}

func named(name string, n int) string { return name + "/" + strconv.Itoa(n) }

func benchmarkPairs[D, C float32 | int32 | uint8](b *testing.B, n int, list []pair[func(dst []D, x, y []C)]) {
	dst, x, y := make([]D, n), make([]C, n), make([]C, n)
	for i := range x {
		x[i], y[i] = C(i%13)-6, C(i%11)+1
	}
	for _, p := range list {
		versus(b, named(p.name, n), n, func() { p.f(dst, x, y) }, func() { p.pure(dst, x, y) })
	}
}

// BenchmarkRows measures the loops over rows that are not in the table, or are there
// without an exported function.
func BenchmarkRows(b *testing.B) {
	for _, n := range benchmarkLengths {
		x, y, z, w := make([]float32, 2*n), make([]float32, n), make([]float32, n), make([]float32, n)
		sums, means := make([]float64, n), make([]float64, n)
		threes := make([]float32, 3*n)
		x = x[: n : 2*n]
		for _, c := range []struct {
			name    string
			f, pure func()
		}{
			{"Fill", func() { Fill(y, 1.5) }, func() { fillGo(y, 1.5) }},
			{"Stride2", func() { Stride2(y, x[:2*n]) }, func() { stride2Go(y, x[:2*n]) }},
			{"Zip3", func() { Zip3(threes, y, z, w) }, func() { zip3Go(threes, y, z, w) }},
			{"Unzip3", func() { Unzip3(y, z, w, threes) }, func() { unzip3Go(y, z, w, threes) }},
			{"Axpy", func() { Axpy(y, x, 1e-9) }, func() { axpyGo(y, x, 1e-9) }},
			{"Dot", func() { sink += float64(Dot(x, y)) }, func() { sink += float64(dotGo(x, y)) }},
			{"Sum", func() { sink += float64(Sum(x)) }, func() { sink += float64(sumGo(x)) }},
			{"SumSquares", func() { sink += float64(SumSquares(x, .5)) }, func() { sink += float64(SumSquaresAs[float32](x, .5)) }},
			{"Max", func() { sink += float64(Max(x)) }, func() { sink += float64(maxGo(-inf, x)) }},
			{"Min", func() { sink += float64(Min(x)) }, func() { sink += float64(minGo(inf, x)) }},
			{"ScaleShift", func() { ScaleShift(y, x, 2, 1) }, func() { scaleShiftGo(y, x, 2, 1) }},
			{"Center", func() { Center(y, x, .5, 2, z, w) }, func() { centerGo(y, x, .5, 2, z, w) }},
			{"ExpSum", func() { sink += float64(ExpSum(y, x, .5)) }, func() { sink += float64(expSumGo(y, x, .5)) }},
			{"Sin", func() { Sin(y, x) }, func() { sineGo(y, x, 0) }},
			{"Cos", func() { Cos(y, x) }, func() { sineGo(y, x, 0.5) }},
			{"SumFloat64", func() { sink += float64(SumFloat64(x)) }, func() { sink += float64(SumAs[float64](x)) }},
			{"SumSquaresFloat64", func() { sink += float64(SumSquaresFloat64(x, .5)) }, func() { sink += float64(SumSquaresAs[float64](x, .5)) }},
			{"AddFloat64", func() { AddFloat64(sums, x) }, func() { addFloat64Go(sums, x) }},
			{"AddSquaresFloat64", func() { AddSquaresFloat64(sums, x, means) }, func() { addSquaresFloat64Go(sums, x, means) }},
			{"CumSum", func() { CumSum(y, x) }, func() { cumSumGo(y, x, 0) }},
		} {
			versus(b, named(c.name, n), n, c.f, c.pure)
		}
	}
}

func BenchmarkTaps(b *testing.B) {
	off, w, tag := []int{0, 1, 2, 20, 21, 22, 40, 41, 42}, make([]float32, 9), make([]int32, 9)
	for _, n := range benchmarkLengths {
		x, y, at := make([]float32, 3*n+64), make([]float32, 3*n), make([]int32, 3*n)
		versus(b, named("Taps", n), n*len(off), func() { addTaps(y[:n], x, off, w) }, func() { tapsGo(y[:n], x, off, w) })
		versus(b, named("SumTaps", n), 3*n*len(off), func() { SumTaps(y, x, off, 3, n, n, n) }, func() { sumTapsGo(y, x, off, 3, n, n, n) })
		versus(b, named("ExtremeTaps", n), 3*n*len(off), func() { ExtremeTaps(y, at, x, off, tag, 3, n, n, n, true) },
			func() { extremeTapsGo(y, at, x, off, tag, 3, n, n, n, true) })
	}
}

// BenchmarkDots compares products of 8-bit elements, and those with 4-bit weights in groups of 32, of one row and of many,
// with a plain loop.
func BenchmarkDots(b *testing.B) {
	const cols, k = 256, 256
	dots, nibbles := NewDot(make([]uint8, DotSize(cols, 1, k)), cols, 1, k), NewNibbles(make([]uint8, NibblesSize(cols, k/32, 32)), cols, k/32, 32)
	column, rows4 := make([]int8, k), make([]uint8, cols*k/2)
	dots.Pack(0, dots.Panels(), func([]int8, int) []int8 { return column })
	nibbles.Pack(0, nibbles.Panels(), rows4, nil)
	weights := make([]int8, cols*k)
	for _, n := range []int{1, 8, 64} {
		a, rows, sums, out := make([]uint8, n*k+16), make([]int, n), make([]int32, n*cols), make([]float32, n*cols)
		for i := range rows {
			rows[i] = i * k
		}
		plain := func() {
			for i := range sums {
				sum, w := int32(0), weights[i%cols*k:][:k]
				for p, v := range a[i/cols*k:][:k] {
					sum += int32(v) * int32(w[p])
				}
				sums[i] = sum
			}
		}
		versus(b, named("Dot", n), n*cols*k, func() { dots.Multiply(sums, cols, a, rows, []int{0}, 0, cols/DotCols, true) }, plain)
		packed := make([]uint8, n*nibbles.RowBytes())
		versus(b, named("Nibbles", n), n*cols*k, func() {
			nibbles.Multiply(out, cols, nibbles.PackRows(packed, a, n), n, 0, cols/DotCols)
		}, plain)
	}
}

// BenchmarkDecode multiplies one row, and eight, with weights beyond the caches, as a token of a language model does, and compares
// with a loop that only reads them.
func BenchmarkDecode(b *testing.B) {
	const size = 96 << 20
	for _, k := range []int{576, 1536, 4096} {
		a, row := make([]uint8, k+16), []int{0}
		cols := size * 16 / 9 / k / DotCols * DotCols // of 4 bits, with scales 4.5
		nibbles := NewNibbles(make([]uint8, NibblesSize(cols, k/32, 32)), cols, k/32, 32)
		nibbles.Pack(0, nibbles.Panels(), make([]uint8, cols*k/2), nil)
		floats := make([]float32, cols)
		readsAll(b, named("Nibbles", k), nibbles.panels, func() { nibbles.Multiply(floats, cols, a, 1, 0, nibbles.Panels()) })
		eight, of8 := make([]uint8, 8*nibbles.RowBytes()), make([]float32, 8*cols)
		readsAll(b, named("Nibbles8", k), nibbles.panels, func() { nibbles.Multiply(of8, cols, eight, 8, 0, nibbles.Panels()) })
		cols = size / k / DotCols * DotCols
		dots, sums, column := NewDot(make([]uint8, DotSize(cols, 1, k)), cols, 1, k), make([]int32, cols), make([]int8, k)
		dots.Pack(0, dots.Panels(), func([]int8, int) []int8 { return column })
		readsAll(b, named("Dot", k), unsafe.Slice((*uint8)(unsafe.Pointer(&dots.panels[0])), len(dots.panels)), func() { dots.Multiply(sums, cols, a, row, []int{0}, 0, dots.Panels(), true) })
	}
}

// readsAll reports how many bytes a second a loop reads that reads all of some memory, and how many a plain sum of it does.
func readsAll(b *testing.B, name string, memory []uint8, f func()) {
	floats := unsafe.Slice((*float32)(unsafe.Pointer(&memory[0])), len(memory)/4)
	sums := make([]float32, len(floats)/1024)
	b.Run(name, func(b *testing.B) {
		loop, plain := math.Inf(1), math.Inf(1)
		for b.Loop() {
			start := time.Now()
			f()
			middle := time.Now()
			SumRows(sums, floats, 1024)
			loop, plain = min(loop, middle.Sub(start).Seconds()), min(plain, time.Since(middle).Seconds())
		}
		b.ReportMetric(float64(len(memory))/loop/1e9, "GB/s")
		b.ReportMetric(loop/plain, "×sum")
		b.ReportMetric(0, "ns/op") // of both
	})
}

// BenchmarkPack compares packing of weights with a copy of their bytes.
func BenchmarkPack(b *testing.B) {
	const cols, k = 512, 1024
	src, dst := make([]uint8, cols*k), make([]uint8, cols*k)
	dots, nibbles := NewDot(make([]uint8, DotSize(cols, 1, k)), cols, 1, k), NewNibbles(make([]uint8, NibblesSize(cols, k/32, 32)), cols, k/32, 32)
	elements := make([]int8, cols*k)
	versus(b, named("Dot", k), cols*k, func() {
		dots.Pack(0, dots.Panels(), func(_ []int8, j int) []int8 { return elements[j*k:] })
	}, func() { copy(dst, src) })
	versus(b, named("Nibbles", k), cols*k, func() {
		nibbles.Pack(0, nibbles.Panels(), src, nil)
	}, func() { copy(dst, src[:len(src)/2]) })
}

// BenchmarkHalfRows compares with a conversion and the sums after it, BenchmarkQuantizeNumbers with one by one.
func BenchmarkHalfRows(b *testing.B) {
	for _, n := range benchmarkLengths {
		const rows = 8
		dst, x, wide := make([]float32, rows), make([]byte, 2*rows*n), make([]float32, rows*n)
		versus(b, named("SumHalfRows", n), rows*n, func() { SumHalfRows(dst, x, n) }, func() {
			HalfToFloat(wide, x)
			SumRows(dst, wide, n)
		})
	}
}

func BenchmarkQuantizeNumbers(b *testing.B) {
	q := Quantized{Signed: true, Zero: 3, Lo: -128, Hi: 127}
	for _, n := range benchmarkLengths {
		dst, x := make([]uint8, 4*n), make([]float32, 4*n)
		versus(b, named("QuantizeNumbers", n), 4*n, func() { q.QuantizeNumbers(dst, x, .5) }, func() {
			for i, v := range x {
				dst[i] = q.element(v * .5)
			}
		})
	}
}

// BenchmarkInterpolate doubles rows, and halves them.
func BenchmarkInterpolate(b *testing.B) {
	if Level() != "avx512" {
		b.Skip("no loop here")
	}
	for _, n := range benchmarkLengths {
		for _, in := range []int{n / 2, 2 * n} {
			x, y, weight, first, second := make([]float32, in), make([]float32, n), make([]float32, n), make([]int32, n), make([]int32, n)
			for i := range first {
				first[i] = int32(i * in / n)
				second[i] = min(first[i]+1, int32(in-1))
			}
			versus(b, fmt.Sprintf("Interpolate/%d/%d", in, n), n, func() { Interpolate(y, x, first, second, weight) }, func() {
				for j, w := range weight {
					y[j] = (1-w)*x[first[j]] + w*x[second[j]]
				}
			})
		}
	}
}

func BenchmarkFilter(b *testing.B) {
	for _, stride := range []int{1, 2} {
		f := Filter{Rows: 56 / stride, Cols: 56 / stride, InRows: 56, InCols: 56, KernelRows: 3, KernelCols: 3, Top: 1, Left: 1,
			Stride: stride, DilateRows: 1, DilateCols: 1}
		if !f.Plan() {
			b.Skip("no filters here")
		}
		x, y, w := make([]float32, 56*56), make([]float32, f.Rows*f.Cols), make([]float32, 9)
		versus(b, named("stride", stride), len(y)*9, func() { f.Apply(y, x, w, 1) }, func() { f.applyGo(y, x, w, 1) })
	}
}

func BenchmarkMulAdd(b *testing.B) {
	for _, s := range [][3]int{{96, 112, 256}, {6, 16, 64}, {1, 256, 64}, {7, 20, 33}} {
		m, n, k := s[0], s[1], s[2]
		x, y, z := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
		versus(b, fmt.Sprintf("%dx%dx%d", m, n, k), m*n*k, func() { MulAdd(m, n, k, x, k, 1, y, n, z, n) },
			func() { mulAddToGo(m, n, k, x, k, 1, y, n, z, n, z, n) })
	}
}

// BenchmarkMoves measures what moves elements.
func BenchmarkMoves(b *testing.B) {
	benchmarkTranspose[uint8](b, "Transpose8")
	benchmarkTranspose[uint16](b, "Transpose16")
	benchmarkTranspose[uint32](b, "Transpose32")
	benchmarkTranspose[uint64](b, "Transpose64")
}

func benchmarkTranspose[T any](b *testing.B, name string) {
	for _, n := range []int{16, 64, 200} {
		x, y := make([]T, n*n), make([]T, n*n)
		versus(b, named(name, n), n*n, func() { Transpose(y, x, n, n, n, n) }, func() { transposeGo(y, x, n, n, n, n) })
	}
}

// BenchmarkNorms measures rows of norms by one loop and by those of rows.
func BenchmarkNorms(b *testing.B) {
	const elements = 1 << 12
	for _, n := range []int{8, 16, 49, 64, 127, 128, 191, 192, 197, 255, 256, 512, 1024} {
		rows := elements / n
		x, y, mean, rstd := make([]float32, rows*n), make([]float32, rows*n), make([]float32, rows), make([]float32, rows)
		for i := range x {
			x[i] = float32(i%13) - 6
		}
		versus(b, named("SoftmaxRows", n), len(x), func() { SoftmaxRows(y, x, n) }, func() { softmaxByRow(y, x, n) })
		versus(b, named("NormRows", n), len(x), func() { NormRows(y, x, n, mean, rstd, x[:n], x[:n], .1) },
			func() { normByRow(y, x, n, mean, rstd, x[:n], x[:n], .1) })
	}
}
