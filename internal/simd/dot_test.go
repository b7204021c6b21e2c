package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// fill makes random bytes, extremes among them.
func fillBytes[T int8 | uint8](r *rand.Rand, n int) []T {
	x := make([]T, n)
	for i := range x {
		switch r.IntN(6) {
		case 0:
			x[i] = T(r.IntN(2) * 255) // the extremes of either type: 0 and -1
		case 1:
			x[i] = T(127 + r.IntN(2))
		default:
			x[i] = T(r.IntN(256))
		}
	}
	return x
}

// TestDot compares products with sums in int64, over shapes around those of tiles.
func TestDot(t *testing.T) {
	EachLevel(func(level string) {
		r := rand.New(rand.NewPCG(3, 4))
		for range 300 {
			m, n, k, segments := 1+r.IntN(19), 1+r.IntN(140), 1+r.IntN(40), 1+r.IntN(4)
			signed := r.IntN(2) == 0
			weights := fillBytes[int8](r, n*segments*k)
			w := NewDot(make([]uint8, DotSize(n, segments, k)), n, segments, k)
			for p := range w.Panels() {
				w.Pack(p, p+1, func(_ []int8, j int) []int8 { return weights[j*segments*k:] })
			}
			a := fillBytes[uint8](r, 1000+k)
			rows, off := make([]int, m), make([]int, segments)
			for i := range rows {
				rows[i] = r.IntN(500)
			}
			for i := range off {
				off[i] = r.IntN(497)
			}
			lo := r.IntN(w.Panels())
			hi := lo + 1 + r.IntN(w.Panels()-lo)
			ldc := (hi-lo)*DotCols + 3
			c := slices.Repeat([]int32{-7}, m*ldc)
			w.Multiply(c, ldc, a, rows, off, lo, hi, signed)
			place := fmt.Sprintf("level %s: %d rows, columns %d to %d of %d, %d segments of %d, signed %v",
				level, m, lo*DotCols, hi*DotCols, n, segments, k, signed)
			for i := range m {
				for j := range ldc {
					want := int32(-7)
					if col := lo*DotCols + j; j < (hi-lo)*DotCols {
						want = 0
						for s := range segments {
							for p := range k {
								u := int32(a[rows[i]+off[s]+p])
								if signed {
									u = int32(int8(u)) + 128
								}
								if col < n {
									want += u * int32(weights[(col*segments+s)*k+p])
								}
							}
						}
					}
					if got := c[i*ldc+j]; got != want {
						t.Fatalf("%s: row %d, column %d: got %d, want %d", place, i, j, got, want)
					}
				}
			}
		}
	})
}

// pairs returns rows of n elements plus 8, two in a byte.
func pairs(elements []int8, n int) (b []uint8) {
	for ; len(elements) > 0; elements = elements[n:] {
		for i := range n {
			if i%2 == 0 {
				b = append(b, 0)
			}
			b[len(b)-1] |= uint8(elements[i]+8) << (4 * (i % 2))
		}
	}
	return b
}

// TestSumBytes sums bytes, extremes among them, that fill lanes.
func TestSumBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 3000 {
		x, want := fillBytes[int8](r, n), int32(0)
		if n%5 == 0 {
			x = slices.Repeat([]int8{127}, n)
		}
		for _, v := range x {
			want += int32(v)
		}
		if got := sumBytes(x); got != want {
			t.Fatalf("%d elements: got %d, want %d", n, got, want)
		}
	}
}

// TestNibbles compares products with 4-bit weights with the same sums group by group.
func TestNibbles(t *testing.T) {
	EachLevel(func(level string) {
		r := rand.New(rand.NewPCG(5, 6))
		for round := range 300 {
			m, n, k, groups := 1+r.IntN(19), 1+r.IntN(140), 1+r.IntN(40), 1+r.IntN(4)
			extreme := round%8 == 1
			if round%8 < 2 {
				k, groups = 1+r.IntN(300), 1
			}
			if round%32 == 3 {
				n, k, groups = 1+r.IntN(70), 4088+r.IntN(24), 1+r.IntN(2)
			}
			if round%32 == 4 { // more words than are packed at a time
				n, k, groups = 1+r.IntN(70), 8+r.IntN(4)*8, packedWords/4+r.IntN(packedWords)
			}
			weights, scales := fillBytes[int8](r, n*groups*k), make([]uint16, n*groups)
			for i := range weights {
				if weights[i] = weights[i] << 4 >> 4; extreme || round%64 == 3 {
					weights[i] = -8
				}
			}
			for i := range scales {
				scales[i] = uint16(math.Float32bits(r.Float32()) >> 16)
			}
			w := NewNibbles(make([]uint8, NibblesSize(n, groups, k)), n, groups, k)
			src := pairs(weights, groups*k)
			for p := range w.Panels() {
				w.Pack(p, p+1, src, scales)
			}
			a, packed := fillBytes[uint8](r, m*groups*k), make([]uint8, m*w.RowBytes())
			if extreme { // the least activation, or the largest one
				for i := range a {
					a[i] = uint8(0x80 - round/8%2)
				}
			}
			packed = w.PackRows(packed, a, m)
			lo := r.IntN(w.Panels())
			hi := lo + 1 + r.IntN(w.Panels()-lo)
			ldc := (hi-lo)*DotCols + 3
			c := slices.Repeat([]float32{-7}, m*ldc)
			w.Multiply(c, ldc, packed, m, lo, hi)
			for j, got := range w.Sums {
				want := 0.
				for g := range groups {
					sum := int32(0)
					for p := range k {
						if j < n {
							sum += int32(weights[(j*groups+g)*k+p])
						}
					}
					if j < n {
						want += float64(sum) * float64(math.Float32frombits(uint32(scales[j*groups+g])<<16))
					}
				}
				if got != float32(want) {
					t.Fatalf("%d columns, %d groups of %d: sum of column %d: got %v, want %v", n, groups, k, j, got, want)
				}
			}
			for i := range m {
				for j := range ldc {
					want := float32(-7)
					if col := lo*DotCols + j; j < (hi-lo)*DotCols {
						want = 0
						for g := range groups {
							sum := int32(0)
							for p := range k {
								if x := int32(int8(a[(i*groups+g)*k+p])); col < n {
									sum += w.Zero(x) * int32(weights[(col*groups+g)*k+p])
								}
							}
							if col < n {
								want += float32(float32(sum) * math.Float32frombits(uint32(scales[col*groups+g])<<16))
							}
						}
					}
					if got := c[i*ldc+j]; got != want {
						t.Fatalf("level %s: %d rows, %d columns, %d groups of %d: row %d, column %d: got %v, want %v",
							level, m, n, groups, k, i, j, got, want)
					}
				}
			}
		}
	})
}

// TestNibblesShort wants a panic, and nothing written, where an operand of products with 4-bit weights is too short, however large
// the memory behind it is, or panels are not there.
func TestNibblesShort(t *testing.T) {
	const cols, groups, most = 70, 3, 13
	EachLevel(func(level string) {
		for _, k := range []int{8, 32, 37} {
			w := NewNibbles(make([]uint8, NibblesSize(cols, groups, k)), cols, groups, k)
			for m := 1; m <= most; m++ {
				ldc, size := w.Panels()*DotCols, m*w.RowBytes()
				a, dst, c := make([]uint8, m*groups*k+8), make([]uint8, size+8), slices.Repeat([]float32{1}, m*ldc+8)
				for name, f := range map[string]func(){
					"sums":            func() { w.Multiply(c[:m*ldc-1], ldc, dst, m, 0, w.Panels()) },
					"sums of a panel": func() { w.Multiply(c[:(m-1)*ldc+DotCols-1], ldc, dst, m, 2, 3) },
					"packed rows":     func() { w.Multiply(c, ldc, dst[:size-1], m, 0, w.Panels()) },
					"panels":          func() { w.Multiply(c, ldc, dst, m, 1, w.Panels()+1) },
					"first panels":    func() { w.Multiply(c, ldc, dst, m, -1, 2) },
					"negative rows":   func() { w.Multiply(c, ldc, dst, -m, 0, 1) },
					"activations":     func() { w.Multiply(c, ldc, w.PackRows(dst[:size], a[:m*groups*k-1], m), m, 0, w.Panels()) },
					"packed bytes":    func() { w.Multiply(c, ldc, w.PackRows(dst[:size-1], a[:m*groups*k], m)[:size-1], m, 0, w.Panels()) },
				} {
					if recovered(f) == nil {
						t.Errorf("level %s, %d rows, groups of %d, %s: no panic", level, m, k, name)
					}
					if i := slices.IndexFunc(c, func(v float32) bool { return v != 1 }); i >= 0 {
						t.Fatalf("level %s, %d rows, groups of %d, %s: wrote at %d before it panicked", level, m, k, name, i)
					}
				}
			}
		}
	})
}

// numbers are floats of all kinds.
func numbers(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		switch r.IntN(8) {
		case 0:
			x[i] = float32(r.IntN(600)) - 300 + .5
		case 1:
			x[i] = math.Float32frombits(r.Uint32())
		default:
			x[i] = (r.Float32() - .5) * 600
		}
	}
	return x
}

func someQuantized(r *rand.Rand) Quantized {
	q := Quantized{Signed: r.IntN(2) == 0, Zero: int32(r.IntN(256)), Hi: 255}
	if r.IntN(3) == 0 {
		q.Lo, q.Hi = 17, 201
	}
	if q.Signed {
		q.Zero, q.Lo, q.Hi = q.Zero-128, q.Lo-128, q.Hi-128
	}
	return q
}

// quantizedResults runs every function over quantized elements on operands of a seed.
func quantizedResults(seed uint64) (results [][]uint8, floats [][]float32) {
	r := rand.New(rand.NewPCG(seed, 1))
	n := r.IntN(90)
	q := someQuantized(r)
	scale := r.Float32() + .01
	dst := make([]uint8, n)
	x := numbers(r, n)
	q.Quantize(dst, x, scale)
	results = append(results, slices.Clone(dst))
	a, b, f := fillBytes[uint8](r, n), fillBytes[uint8](r, n), make([]float32, n)
	q.Dequantize(f, a, scale)
	floats = append(floats, slices.Clone(f))
	binary := Binary{A: Operand{int32(r.IntN(9)), r.Float32()}, B: Operand{int32(r.IntN(9)), r.Float32()}, Min: -50, Max: float32(math.Inf(1)),
		Scale: r.Float32(), Out: q}
	for op := BinaryAdd; op <= BinaryMul; op++ {
		binary.Apply(op, dst, a, b)
		results = append(results, slices.Clone(dst))
	}
	m, ldd, lds := 1+r.IntN(3), n+r.IntN(5), (n+31)&^15
	sums, init, scales := make([]int32, m*lds), make([]int32, lds), make([]float32, lds)
	for i := range sums {
		sums[i] = int32(r.IntN(20001) - 10000)
	}
	for i := range init {
		init[i], scales[i] = int32(r.IntN(2001)-1000), r.Float32()/50
	}
	rows := slices.Repeat([]uint8{99}, m*ldd)
	q.Requantize(rows, ldd, sums, lds, init, scales, m, n)
	results = append(results, rows)
	bias, factors, f := numbers(r, lds), numbers(r, m), slices.Repeat([]float32{99}, m*ldd)
	zeros := init[:m]
	ScaleSums(f, ldd, sums, lds, init, scales, bias, zeros, factors, n, -100, 200)
	floats = append(floats, slices.Clone(f))
	ScaleFloats(f, ldd, numbers(r, m*lds), lds, numbers(r, lds), scales, bias, zeros, factors, n, -100, 200)
	floats = append(floats, f)
	var table [256]uint8
	for i := range table {
		table[i] = uint8(r.IntN(256))
	}
	bytes := fillBytes[uint8](r, 3*n)
	Lookup(bytes, bytes, &table)
	channels, pixels := 1+r.IntN(40), 1+r.IntN(20)
	off := []int{r.IntN(90), r.IntN(90), r.IntN(90)}[:1+r.IntN(3)]
	largest := slices.Repeat([]uint8{99}, pixels*(channels+1))
	MaximumRow(q.Signed, largest, channels+1, fillBytes[uint8](r, 2000), 3, r.IntN(80), off, pixels, channels)
	return append(results, bytes, largest, depthwiseResult(r, q)), floats
}

func depthwiseResult(r *rand.Rand, q Quantized) []uint8 {
	channels, taps, pixels := 1+r.IntN(40), 1+r.IntN(12), 1+r.IntN(40)
	init, scale := make([]int32, channels), make([]float32, channels)
	for i := range init {
		init[i], scale[i] = int32(r.IntN(2001)-1000), r.Float32()/50
	}
	weights := make([]int16, channels*taps)
	most := []int{255, 127}[r.IntN(2)]
	for i := range weights {
		weights[i] = int16(r.IntN(2*most+1) - most)
	}
	d := PackDepthwise(channels, taps, func(tap, c int) int16 { return weights[tap*channels+c] }, init, scale)
	off := make([]int, (taps+1)&^1)
	for i := range off {
		off[i] = r.IntN(300)
	}
	step, ldd := r.IntN(60), channels+r.IntN(3)
	a := fillBytes[uint8](r, 5+39*60+300+48)
	dst := slices.Repeat([]uint8{99}, pixels*ldd)
	d.Row(&q, dst, ldd, a, 5, step, off, pixels)
	return dst
}

// TestQuantized compares loops over quantized elements with those in Go.
func TestQuantized(t *testing.T) {
	type result struct {
		bytes  [][]uint8
		floats [][]float32
	}
	levels, last := make(map[string][]result), ""
	EachLevel(func(level string) {
		last = level
		for seed := range uint64(400) {
			b, f := quantizedResults(seed)
			levels[level] = append(levels[level], result{b, f})
		}
	})
	for level, list := range levels {
		for seed, got := range list {
			want := levels[last][seed]
			for k := range want.bytes {
				for i, w := range want.bytes[k] {
					if got.bytes[k][i] != w {
						t.Fatalf("%s, seed %d, result %d, element %d of %d: got %d, want %d", level, seed, k, i, len(want.bytes[k]), got.bytes[k][i], w)
					}
				}
			}
			for k := range want.floats {
				for i, w := range want.floats[k] {
					if g := got.floats[k][i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
						t.Fatalf("%s, seed %d, numbers %d, element %d: got %v, want %v", level, seed, k, i, g, w)
					}
				}
			}
		}
	}
}

// TestQuantizeNumbers compares with the definition, for numbers far outside of the bounds too, and wants NaN to end it.
func TestQuantizeNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 9))
	for round := range 300 {
		n, q, scale := r.IntN(400), someQuantized(r), r.Float32()+.01
		if round%5 == 0 {
			q.Zero = []int32{-1 << 14, 1 << 14, 300, -700}[r.IntN(4)]
		}
		x, dst, limit := numbers(r, n), make([]uint8, n+1), n&^63
		for i := range x {
			if r.IntN(9) == 0 {
				x[i] = []float32{inf, -inf, 3e38, -3e38, 1e9, -1e9, 40000, -40000, 2147483648}[r.IntN(9)]
			} else if r.IntN(600) == 0 {
				x[i] = float32(math.NaN())
			}
			if x[i] != x[i] {
				limit = min(limit, i&^63)
			}
		}
		if !avx512 {
			limit = 0
		}
		done := q.QuantizeNumbers(dst[:n], x, scale)
		if done != limit {
			t.Fatalf("round %d: got %d of %d, want %d", round, done, n, limit)
		}
		for i, v := range x[:done] {
			if want := q.element(v * scale); dst[i] != want {
				t.Fatalf("round %d, %+v, element %d of %d, %v: got %d, want %d", round, q, i, n, v*scale, dst[i], want)
			}
		}
		if dst[done] != 0 {
			t.Fatalf("round %d: element %d is written", round, done)
		}
	}
}

// TestQuantizedDefinition compares loops over quantized elements with their definitions, also
// where there is one level only.
func TestQuantizedDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for round := range 300 {
		n, q, scale := r.IntN(70), someQuantized(r), r.Float32()+.01
		x, a, dst, f := numbers(r, n), fillBytes[uint8](r, n), make([]uint8, n), make([]float32, n)
		check := func(name string, i int, got, want any) {
			if got != want {
				t.Fatalf("round %d, %s, element %d of %d: got %v, want %v", round, name, i, n, got, want)
			}
		}
		q.Quantize(dst, x, scale)
		for i, v := range x {
			check("product", i, dst[i], q.element(v*scale))
		}
		q.Dequantize(f, a, scale)
		for i, v := range a {
			check("number", i, f[i], float32(q.number(v)-q.Zero)*scale)
		}
		m, lds := 1+r.IntN(3), (n+31)&^15
		sums, init, scales, rows := make([]int32, m*lds), make([]int32, lds), make([]float32, lds), make([]uint8, m*(n+3))
		for i := range sums {
			sums[i] = int32(r.IntN(20001) - 10000)
		}
		for i := range init {
			init[i], scales[i] = int32(r.IntN(2001)-1000), r.Float32()/50
		}
		q.Requantize(rows, n+3, sums, lds, init, scales, m, n)
		for i := range m {
			for j := range n {
				check("sum", j, rows[i*(n+3)+j], q.element(float32(sums[i*lds+j]+init[j])*scales[j]))
			}
		}
		checkDepthwise(t, r, q)
	}
}

// checkDepthwise compares a row with sums over taps.
func checkDepthwise(t *testing.T, r *rand.Rand, q Quantized) {
	channels, taps, pixels := 1+r.IntN(40), 1+r.IntN(10), 1+r.IntN(20)
	init, scale, weights := make([]int32, channels), make([]float32, channels), make([]int16, channels*taps)
	for i := range init {
		init[i], scale[i] = int32(r.IntN(2001)-1000), r.Float32()/500
	}
	most := []int{255, 127}[r.IntN(2)]
	for i := range weights {
		weights[i] = int16(r.IntN(2*most+1) - most)
	}
	d := PackDepthwise(channels, taps, func(tap, c int) int16 { return weights[tap*channels+c] }, init, scale)
	off, a, dst := make([]int, (taps+1)&^1), fillBytes[uint8](r, 2000), make([]uint8, pixels*channels)
	for i := range off {
		off[i] = r.IntN(300)
	}
	d.Row(&q, dst, channels, a, 5, 33, off, pixels)
	for i := range pixels {
		for c := range channels {
			sum := init[c]
			for tap := range taps {
				sum += q.number(a[5+i*33+off[tap]+c]) * int32(weights[tap*channels+c])
			}
			if got, want := dst[i*channels+c], q.element(float32(sum)*scale[c]); got != want {
				t.Fatalf("%d taps, pixel %d, channel %d of %d: got %d, want %d", taps, i, c, channels, got, want)
			}
		}
	}
}
