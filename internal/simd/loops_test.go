//go:build linux

package simd_test

import (
	"maps"
	"math/rand/v2"

	"github.com/etrun-go/etrun/internal/math32"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// loop is one function over vectors. run takes its operands from m, for a length of n.
type loop struct {
	name        string
	align       int // bytes that operands are aligned to
	least, step int // of the lengths; steps of 1 if 0
	converts    int // done in whole blocks of vectors alone
	run         func(m *memory, n int)
}

// loops are those of the package: every row of its table, and the others.
var loops = func() (list []loop) {
	add := func(name string, run func(m *memory, n int)) {
		list = append(list, loop{name: name, align: 4, run: run})
	}
	unary := maps.Clone(simd.UnaryFloats)
	maps.Copy(unary, simd.Approximations)
	maps.Copy(unary, others)
	for name, f := range unary {
		add(name, func(m *memory, n int) {
			d, s := m.floats(n), vec(m, n, func(r *rand.Rand) float32 { return r.Float32() + 0x1p-20 })
			f(d, s)
			f(s, s)
		})
	}
	binary := maps.Clone(simd.BinaryFloats)
	binary["math32 pow"] = math32.Pow
	binary["center"] = func(d, a, b []float32) { simd.Center(d, a, .5, 2, b, b) }
	for name, f := range binary {
		add(name, func(m *memory, n int) {
			d, a, b := m.floats(n), m.floats(n), m.floats(n)
			f(d, a, b)
			f(a, a, b)
		})
	}
	for name, f := range simd.UnaryInts {
		add(name, func(m *memory, n int) {
			d, a := vec(m, n, anyInt), vec(m, n, anyInt)
			f(d, a)
			f(a, a)
		})
	}
	for name, f := range simd.BinaryInts {
		add(name, func(m *memory, n int) {
			d, a, b := vec(m, n, anyInt), vec(m, n, anyInt), vec(m, n, anyInt)
			f(d, a, b)
			f(a, a, b)
		})
	}
	return append(append(append(list, comparisons()...), conversions()...), structured...)
}()

// others are functions of one operand that are not in the table.
var others = map[string]func(dst, src []float32){
	"sin": simd.Sin, "cos": simd.Cos, "scan": simd.CumSum,
	"axpy": func(d, s []float32) { simd.Axpy(d, s, 1.5) }, "scale": func(d, s []float32) { simd.ScaleShift(d, s, 1.5, .25) },
	"math32 log": math32.Log, "math32 sin": math32.Sin, "math32 tanh": math32.Tanh,
	"math32 erf": math32.Erf, "math32 gelu": math32.GELU, "math32 sigmoid": math32.Sigmoid, "math32 expm1": math32.Expm1,
	"math32 cos": math32.Cos, "math32 log1p": math32.Log1p, "math32 sinh": math32.Sinh, "math32 cosh": math32.Cosh,
}

func comparisons() (list []loop) {
	for name, f := range simd.CompareFloats {
		list = append(list, loop{name: name, align: 4, run: func(m *memory, n int) { f(m.bytes(n), m.floats(n), m.floats(n)) }})
	}
	for name, f := range simd.CompareInts {
		list = append(list, loop{name: name, align: 4, run: func(m *memory, n int) { f(m.bytes(n), vec(m, n, anyInt), vec(m, n, anyInt)) }})
	}
	for name, f := range simd.Selections {
		list = append(list, loop{name: name, align: 4, run: func(m *memory, n int) {
			mask, a, b := vec(m, n, lanesOf), vec(m, n, anyWord), vec(m, n, anyWord)
			f(vec(m, n, anyWord), mask, a, b)
			f(a, mask, a, b)
		}})
	}
	return list
}

// conversions do whole blocks of vectors, and say how many elements that is.
func conversions() (list []loop) {
	add := func(name string, run func(m *memory, n int) (done int)) {
		list = append(list, loop{name: name, align: 4, converts: 1, run: func(m *memory, n int) { m.result(float32(run(m, n))) }})
	}
	for name, c := range simd.WidenFloats {
		add(name, func(m *memory, n int) int { return c.F(m.floats(n), m.bytes(n*c.Size)) })
	}
	for name, c := range simd.WidenInts {
		add(name, func(m *memory, n int) int { return c.F(vec(m, n, anyInt), m.bytes(n*c.Size)) })
	}
	for name, c := range simd.NarrowFloats {
		add(name, func(m *memory, n int) int { return c.F(m.bytes(n*c.Size), m.floats(n)) })
	}
	for name, c := range simd.NarrowInts {
		add(name, func(m *memory, n int) int { return c.F(m.bytes(n*c.Size), vec(m, n, anyInt)) })
	}
	return list
}

// structured are loops over more than vectors of one length.
var structured = []loop{
	{name: "fill", align: 4, run: func(m *memory, n int) { simd.Fill(m.floats(n), 1.5) }},
	{name: "stride 2", align: 4, run: func(m *memory, n int) { simd.Stride2(m.floats((n+1)/2), m.floats(n)) }},
	{name: "center only", align: 4, run: func(m *memory, n int) { simd.Center(m.floats(n), m.floats(n), .5, 2, nil, nil) }},
	{name: "sums", align: 4, run: func(m *memory, n int) {
		x := m.floats(n)
		m.result(simd.Dot(x, m.floats(n)), simd.Sum(x), simd.SumSquares(x, .1), simd.Max(x), simd.Min(x),
			float32(simd.SumFloat64(x)), float32(simd.SumSquaresFloat64(x, .3)), simd.ExpSum(m.floats(n), x, .5))
	}},
	{name: "float64 sums", align: 8, run: func(m *memory, n int) {
		sums := vec(m, n, wideUnit)
		simd.AddFloat64(sums, m.floats(n))
		simd.AddSquaresFloat64(sums, m.floats(n), vec(m, n, wideUnit))
	}},
	{name: "rows", align: 4, least: 1, run: func(m *memory, n int) {
		x, w, b := m.floats(3*n), m.floats(n), m.floats(n)
		simd.SoftmaxRows(m.floats(3*n), x, n)
		simd.NormRows(m.floats(3*n), x, n, m.floats(3), m.floats(3), w, b, .1)
		simd.NormRows(m.floats(3*n), x, n, m.floats(3), m.floats(3), nil, nil, .1)
		simd.CopyRows(m.floats(2*(n+5)+n), m.floats(2*(n+1)+n), 3, n, n+5, n+1)
	}},
	{name: "taps", align: 4, run: func(m *memory, n int) {
		for _, taps := range []int{1, 3, 9, 25} {
			off := make([]int, taps)
			for i := range off {
				off[i] = m.r.IntN(60)
			}
			off[taps-1] = 59
			simd.TapsOf[float32]()(m.floats(n), m.floats(n+59), off, m.floats(taps))
		}
	}},
	{name: "window taps", align: 4, least: 1, run: func(m *memory, n int) {
		const rows, ys, xs = 3, 2, 4
		off, tag := []int{0, 7, 3, 9, 1}, []int32{0, 7, 14, 21, 28}
		x := m.floats(9 + (rows-1)*(n+xs) + n)
		simd.SumTaps(m.floats((rows-1)*(n+ys)+n), x, off, rows, n, n+ys, n+xs)
		simd.MaxTaps(m.floats((rows-1)*(n+ys)+n), x, off, rows, n, n+ys, n+xs)
		for _, least := range []bool{false, true} {
			y, at := m.floats((rows-1)*(n+ys)+n), vec(m, (rows-1)*(n+ys)+n, anyInt)
			simd.ExtremeTaps(y, at, x, off, tag, rows, n, n+ys, n+xs, least)
		}
	}},
	{name: "pairs of rows", align: 4, least: 1, run: func(m *memory, n int) {
		const rows = 3
		simd.Stride2Rows(m.floats((rows-1)*(n+3)+n), m.floats((rows-1)*(2*n+1)+2*n-1), rows, n, n+3, 2*n+1)
		simd.Zip2Rows(m.floats((rows-1)*(2*n+1)+2*n), m.floats((rows-1)*(n+2)+n), m.floats((rows-1)*(n+2)+n), rows, n, 2*n+1, n+2)
		simd.Places(vec(m, n, func(r *rand.Rand) int64 { return r.Int64() }), vec(m, n, anyInt), -7, 3)
	}},
	{name: "threes of rows", align: 4, run: func(m *memory, n int) {
		simd.Zip3(m.floats(3*n), m.floats(n), m.floats(n), m.floats(n))
		simd.Unzip3(m.floats(n), m.floats(n), m.floats(n), m.floats(3*n))
	}},
	{name: "interpolate", align: 4, least: 1, run: func(m *memory, n int) {
		for _, in := range []int{1, 1 + n/3, n, 3 * n} {
			first, second := make([]int32, n), make([]int32, n)
			for i := range first {
				first[i] = int32(i * in / n)
				second[i] = min(first[i]+1, int32(in-1))
			}
			simd.Interpolate(m.floats(n), m.floats(in), first, second, m.floats(n))
		}
	}},
	{name: "filter", align: 4, least: 1, run: func(m *memory, n int) {
		f := simd.Filter{InRows: 1 + n%7, InCols: 1 + n%67, KernelRows: 1 + n%3, KernelCols: 1 + n%5,
			Top: n % 2, Left: n % 3, Stride: 1 + n%2, DilateRows: 1 + n%2, DilateCols: 1 + n%3}
		f.Rows, f.Cols = 1+(f.InRows+f.Top-1)/f.Stride, 1+(f.InCols+f.Left-1)/f.Stride
		x, w := m.floats(f.InRows*f.InCols), m.floats(f.KernelRows*f.KernelCols)
		f.Plan()
		f.Apply(m.floats(f.Rows*f.Cols), x, w, .5)
	}},
	{name: "product", align: 4, least: 1, run: func(m *memory, n int) {
		for _, rows := range []int{1, 2, 5, 8, 13} {
			k := 1 + n%19
			ars, acs := k+n%3, 1
			if n%2 == 0 {
				ars, acs = 1, rows+n%3
			}
			ldb, ldc := n+n%5, n+n%4
			a, b, c := m.floats((rows-1)*ars+(k-1)*acs+1), m.floats((k-1)*ldb+n), m.floats((rows-1)*ldc+n)
			simd.MulAdd(rows, n, k, a, ars, acs, b, ldb, c, ldc)
			simd.MulAddTo(rows, n, k, a, ars, acs, b, ldb, m.floats(n), 0, c, ldc)
		}
	}},
	{name: "interleaved product", align: 4, least: 1, run: func(m *memory, n int) {
		for _, rows := range []int{1, 2, 5, 8, 25} {
			columns, run, ldc := 1+n%simd.MaxInterleaved, n+n%3, 4+n%4
			a, b := m.floats((rows-1)*3+2*run+n), m.floats(simd.InterleavedSize(3, n))
			c, from := m.floats((rows-1)*ldc+columns), m.floats(columns)
			simd.MulAddInterleaved(rows, columns, 3, n, a, 3, run, b, from, 0, c, ldc, -1, 1)
			simd.MulAddRuns(rows, columns, 3, n, a, 3, run, m.floats(3*n*columns), columns, from, 0, c, ldc, -1, 1, 0)
		}
	}},
	{name: "numbers of rows", align: 4, least: 1, run: func(m *memory, n int) {
		for _, f := range []func(dst, a, b []float32, n int){simd.AddRows, simd.SubRows, simd.MulRows, simd.DivRows} {
			a, b := m.floats(3*n), vec(m, 3, func(r *rand.Rand) float32 { return 1 + r.Float32() })
			f(m.floats(3*n), a, b, n)
			f(a, a, b, n)
		}
	}},
	{name: "rows by rows", align: 4, run: func(m *memory, n int) {
		for _, rows := range []int{1, 3, 4, 9, 33} {
			simd.RowDots(4, rows, n, m.floats(4*n), n, m.floats(rows*n), n, m.floats(4*rows), rows)
		}
	}},
	{name: "sums of rows", align: 4, run: func(m *memory, n int) {
		for _, rows := range []int{1, 4, 7, 24} {
			simd.SumRows(m.floats(rows), m.floats(rows*n), n)
		}
	}},
	{name: "quantized numbers", align: 4, converts: 1, run: func(m *memory, n int) {
		for _, signed := range []bool{false, true} {
			q := simd.Quantized{Signed: signed, Hi: 100}
			m.result(float32(q.QuantizeNumbers(m.bytes(n), m.floats(n), 30)))
		}
	}},
	{name: "bytes", align: 1, least: 1, step: 6, run: func(m *memory, n int) {
		for _, signed := range []bool{false, true} {
			q := someBounds(signed)
			f := simd.Binary{A: simd.Operand{Zero: 3, Scale: .5}, B: simd.Operand{Zero: -7, Scale: .25}, Min: -40, Max: 50, Scale: .75, Out: q}
			for op := simd.BinaryAdd; op <= simd.BinaryMul; op++ {
				f.Apply(op, m.bytes(n), m.bytes(n), m.bytes(n))
			}
			a, off := m.bytes(3*n+2*16+20), []int{0, 7, 20}
			simd.MaximumRow(signed, m.bytes(3*n), n, a[:len(a):len(a)], 0, n, off, 3, n)
		}
		table := (*[256]uint8)(m.bytes(256))
		simd.Lookup(m.bytes(n), m.bytes(n), table)
	}},
	{name: "rows put together", align: 2, least: 1, step: 4, converts: 1, run: func(m *memory, n int) {
		for rows := 2; rows <= 4; rows++ {
			simd.Interleave(m.bytes(rows*n), m.bytes((rows-1)*(n+3)+n), n, rows, n+3)
			halves := func(n int) []uint16 { return vec(m, n, func(r *rand.Rand) uint16 { return uint16(r.Uint32()) }) }
			simd.Interleave(halves(rows*n), halves((rows-1)*(n+1)+n), n, rows, n+1)
		}
	}},
	{name: "numbers and bytes", align: 4, least: 1, step: 5, run: func(m *memory, n int) {
		const rows = 3
		blocks := (n + simd.DotCols - 1) / simd.DotCols * simd.DotCols
		words := func(n int) []int32 { return vec(m, n, func(r *rand.Rand) int32 { return int32(r.Uint32()) >> 16 }) }
		for _, signed := range []bool{false, true} {
			q := someBounds(signed)
			q.Quantize(m.bytes(n), m.floats(n), 90)
			q.Quantize(m.bytes(n), m.floats(n), 1/128.)
			q.Dequantize(m.floats(n), m.bytes(n), .125)
			q.Requantize(m.bytes((rows-1)*(n+1)+n), n+1, words(rows*blocks), blocks, words(blocks), m.floats(blocks), rows, n)
		}
		simd.ScaleSums(m.floats((rows-1)*(n+1)+n), n+1, words(rows*blocks), blocks, words(blocks), m.floats(blocks), m.floats(blocks),
			words(rows), m.floats(rows), n, -90, 80)
		simd.ScaleFloats(m.floats((rows-1)*(n+1)+n), n+1, m.floats(rows*blocks), blocks, m.floats(blocks), m.floats(blocks), m.floats(blocks),
			words(rows), m.floats(rows), n, -.1, .2)
	}},
	{name: "products of bytes", align: 16, least: 1, step: 9, converts: 1, run: func(m *memory, n int) {
		const cols, segments = 37, 2
		const across, groups = 101, 2
		for _, rows := range []int{1, 2, 3, 15} {
			at := make([]int, rows)
			for i := range at {
				at[i] = i * (n + 1)
			}
			dot := simd.NewDot(m.bytes(simd.DotSize(cols, segments, n)), cols, segments, n)
			dot.Pack(0, dot.Panels(), func(buffer []int8, j int) []int8 { return buffer })
			c := vec(m, rows*dot.Panels()*simd.DotCols, anyInt)
			dot.Multiply(c, dot.Panels()*simd.DotCols, m.bytes(at[rows-1]+5+(n+3)&^3), at, []int{0, 5}, 0, dot.Panels(), true)
			four := simd.NewNibbles(m.bytes(simd.NibblesSize(across, groups, n)), across, groups, n)
			sums := m.floats(rows * four.Panels() * simd.DotCols)
			packed := four.PackRows(m.bytes(rows*four.RowBytes()), m.bytes(rows*groups*n), rows)
			four.Multiply(sums, four.Panels()*simd.DotCols, packed, rows, 0, four.Panels())
		}
	}},
	{name: "sums of rows of float16", align: 2, converts: 1, run: func(m *memory, n int) {
		simd.SumHalfRows(m.floats(7), m.bytes(2*7*n), n)
	}},
	{name: "transpose", align: 8, least: 8, step: 8, run: func(m *memory, n int) {
		transposed(m, n, func(r *rand.Rand) uint8 { return uint8(r.Uint32()) })
		transposed(m, n, func(r *rand.Rand) uint16 { return uint16(r.Uint32()) })
		transposed(m, n, anyWord)
		transposed(m, n, func(r *rand.Rand) uint64 { return r.Uint64() })
	}},
}

func someBounds(signed bool) simd.Quantized {
	if signed {
		return simd.Quantized{Signed: true, Zero: -5, Lo: -100, Hi: 127}
	}
	return simd.Quantized{Zero: 117, Lo: 3, Hi: 250}
}

func transposed[T tensor.Element](m *memory, n int, fill func(r *rand.Rand) T) {
	const cols = 16
	simd.Transpose(vec(m, (cols-1)*(n+3)+n, fill), vec(m, (n-1)*(cols+1)+cols, fill), n, cols, n+3, cols+1)
}
