package tensor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/x448/float16"
)

var inf, nan = math.Inf(1), math.NaN()

// number formats the first element of b, so that NaN and -0 can be compared.
func number(b []byte, d DType) string {
	switch d {
	case Uint64:
		return fmt.Sprint(View[uint64](b)[0])
	case Float32, Float64, Float16, BFloat16:
		v, _ := Get[float64](b, d)
		return fmt.Sprint(v)
	}
	v, _ := Get[int64](b, d)
	return fmt.Sprint(v)
}

func TestStoreFloatAsInteger(t *testing.T) {
	for _, c := range []struct {
		v    float64
		d    DType
		want string
	}{
		{2.9, Int8, "2"}, {-2.9, Int8, "-2"}, {300, Int8, "44"}, {-129, Int8, "127"}, {3e9, Int8, "0"}, {nan, Int8, "0"},
		{300, Uint8, "44"}, {-3.7, Uint8, "253"}, {3e9, Uint8, "0"}, {1e19, Uint8, "0"}, {3e9 + 7, Uint8, "7"},
		{40000, Int16, "-25536"}, {-inf, Int16, "0"}, {70000, Uint16, "4464"},
		{2147483647, Int32, "2147483647"}, {2147483648, Int32, "-2147483648"}, {-2147483648.5, Int32, "-2147483648"},
		{inf, Int32, "-2147483648"}, {nan, Int32, "-2147483648"},
		{inf, Int64, "-9223372036854775808"}, {nan, Int64, "-9223372036854775808"}, {0x1p63, Int64, "-9223372036854775808"},
		{-0x1p63, Int64, "-9223372036854775808"}, {0x1p62, Int64, "4611686018427387904"},
		{-1, Uint32, "4294967295"}, {5e9, Uint32, "705032704"}, {0x1p63, Uint64, "9223372036854775808"}, {-1, Uint64, "18446744073709551615"},
		{0.25, Bool, "1"}, {nan, Bool, "1"}, {0, Bool, "0"},
	} {
		b := AlignedBytes(8)
		Put(b, c.d, c.v)
		if got := number(b, c.d); got != c.want {
			t.Errorf("%v as %v: got %s, want %s", c.v, c.d, got, c.want)
		}
		if f := float32(c.v); float64(f) == c.v || c.v != c.v {
			Put(b, c.d, f)
			if got := number(b, c.d); got != c.want {
				t.Errorf("float32 %v as %v: got %s, want %s", c.v, c.d, got, c.want)
			}
		}
	}
}

func TestStoreRounds(t *testing.T) {
	for _, c := range []struct {
		v    float64
		d    DType
		want string
	}{
		{1 + 0x1p-11, Float16, "1"}, {1 + 3*0x1p-11, Float16, "1.001953125"}, {65519.9, Float16, "65504"},
		{65520, Float16, "+Inf"}, {0x1p-25, Float16, "0"}, {0x1.8p-25, Float16, "5.960464477539063e-08"}, {nan, Float16, "NaN"},
		{1 + 0x1p-8, BFloat16, "1"}, {1 + 3*0x1p-8, BFloat16, "1.015625"}, {math.MaxFloat32, BFloat16, "+Inf"},
		{nan, BFloat16, "NaN"}, {-inf, BFloat16, "-Inf"}, {1e300, Float32, "+Inf"}, {0.1, Float32, "0.10000000149011612"},
	} {
		b := AlignedBytes(8)
		Put(b, c.d, c.v)
		if got := number(b, c.d); got != c.want {
			t.Errorf("%v as %v: got %s, want %s", c.v, c.d, got, c.want)
		}
	}
}

func TestStoreIntegerWraps(t *testing.T) {
	for _, c := range []struct {
		v    int64
		d    DType
		want string
	}{
		{300, Uint8, "44"}, {-1, Uint8, "255"}, {128, Int8, "-128"}, {1 << 32, Int32, "0"}, {1 << 32, Bool, "1"},
		{-1, Uint64, "18446744073709551615"}, {1<<24 + 1, Float32, "1.6777216e+07"}, {70000, Float16, "+Inf"},
	} {
		b := AlignedBytes(8)
		Put(b, c.d, c.v)
		if got := number(b, c.d); got != c.want {
			t.Errorf("%v as %v: got %s, want %s", c.v, c.d, got, c.want)
		}
	}
}

// TestHalfBits converts every half float of both kinds to float32 and back.
func TestHalfBits(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := HalfToFloat(h)
		if want := float16.Frombits(h).Float32(); math.Float32bits(f) != math.Float32bits(want) && (f == f || want == want) {
			t.Fatalf("half %#04x: got %v, want %v", h, f, want)
		}
		if back := FloatToHalf(f); f == f && back != h {
			t.Fatalf("half %#04x: got %#04x after a round trip", h, back)
		}
		b := BFloatToFloat(h)
		if back := FloatToBFloat(b); b == b && back != h {
			t.Fatalf("bfloat16 %#04x: got %#04x after a round trip", h, back)
		}
	}
}

// TestFloatToHalf converts float32 values at a stride that covers every exponent, and the neighbors
// of the midpoints between half floats.
func TestFloatToHalf(t *testing.T) {
	check := func(bits uint32) {
		f := math.Float32frombits(bits)
		got, want := FloatToHalf(f), float16.Fromfloat32(f).Bits()
		if f != f {
			if h := HalfToFloat(got); h == h {
				t.Fatalf("NaN %#08x: got %#04x", bits, got)
			}
		} else if got != want {
			t.Fatalf("%v (%#08x): got %#04x, want %#04x", f, bits, got, want)
		}
	}
	for bits := uint64(0); bits < 1<<32; bits += 4093 {
		check(uint32(bits))
	}
	for h := range uint16(0x7bff) {
		middle := math.Float32bits((HalfToFloat(h) + HalfToFloat(h+1)) / 2)
		for _, bits := range []uint32{middle - 1, middle, middle + 1} {
			check(bits)
			check(bits | 1<<31)
		}
	}
}

// TestHalfBlocks compares the vector conversion of slices with the conversion of each number.
func TestHalfBlocks(t *testing.T) {
	const n = 1<<16 + 5 // every bit pattern, and an incomplete vector
	bits, floats := make([]uint16, n), make([]float32, n)
	for i := range bits {
		bits[i] = uint16(i)
	}
	for _, c := range []struct {
		d     DType
		widen func(uint16) float32
		round func(float32) uint16
	}{{Float16, HalfToFloat, FloatToHalf}, {BFloat16, BFloatToFloat, FloatToBFloat}} {
		Loader[float32](c.d)(floats, BytesOf(bits))
		for i, got := range floats {
			if want := c.widen(bits[i]); got != want && (got == got || want == want) {
				t.Fatalf("%v %#04x: got %v, want %v", c.d, bits[i], got, want)
			}
		}
		for i := range floats {
			floats[i] = math.Float32frombits(uint32(i)*65521 + uint32(i)*uint32(i))
		}
		rounded := make([]uint16, n)
		Storer[float32](c.d)(BytesOf(rounded), floats)
		for i, got := range rounded {
			want := c.round(floats[i])
			if got != want && (floats[i] == floats[i] || c.widen(got) == c.widen(got)) {
				t.Fatalf("%v as %v: got %#04x, want %#04x", floats[i], c.d, got, want)
			}
		}
	}
}

// TestBlocks compares the conversion of slices of every length, partly by vectors, with scalar
// conversion.
func TestBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for d := range DType(NumDTypes) {
		for n := range 40 {
			checkBlocks[float32](t, r, d, n)
			checkBlocks[int32](t, r, d, n)
		}
	}
}

// hardBits are the bits of numbers at the edges of conversions: special floats, and numbers near
// the limits of the integer types.
var hardBits = []uint32{0, 1 << 31, 1, 0x7f800000, 0xff800000, 0x7fc00000, 0x4f000000, 0xcf000000, 0x4effffff, 0xcf000001,
	0x5f000000, 0xdf000000, 0x43800000, 0xc3800000, 0x47800000, 0x3f7fffff, 0xbf7fffff, 0x437f8000, 0xff, 0x80, 0xffff, 0x8000}

func checkBlocks[C Convertible](t *testing.T, r *rand.Rand, d DType, n int) {
	t.Helper()
	load, store := Loader[C](d), Storer[C](d)
	if load == nil || store == nil {
		return
	}
	const guard = 64
	memory := AlignedBytes(16 * (n + 1))
	for i := 0; i < len(memory); i += 4 {
		bits := r.Uint32()
		if r.IntN(2) == 0 {
			bits = hardBits[r.IntN(len(hardBits))]
		}
		binary.LittleEndian.PutUint32(memory[i:], bits)
	}
	from := View[C](memory)[:n]
	to := bytes.Repeat([]byte{0xa5}, n*d.Size()+guard)
	store(to, from)
	back, one := make([]C, n+1), make([]C, 1)
	load(back[:n], memory)
	for i := range n {
		want := make([]byte, d.Size())
		store(want, from[i:i+1])
		if got := to[i*d.Size():][:d.Size()]; !bytes.Equal(got, want) && !(d == Float16 && from[i] != from[i]) {
			t.Fatalf("%T %v as %v, element %d of %d: got %x, want %x", one[0], from[i], d, i, n, got, want)
		}
		load(one, memory[i*d.Size():])
		if got := back[i]; got != one[0] && (got == got || one[0] == one[0]) {
			t.Fatalf("%v as %T, element %d of %d: got %v, want %v", d, got, i, n, got, one[0])
		}
	}
	if back[n] != 0 || !bytes.Equal(to[n*d.Size():], bytes.Repeat([]byte{0xa5}, guard)) {
		t.Fatalf("%v of %d elements: written beyond the end", d, n)
	}
}

// TestLoadStoreRoundTrip checks that the tables have a conversion for exactly the types that
// operators compute on.
func TestLoadStoreRoundTrip(t *testing.T) {
	for d := range DType(NumDTypes) {
		_, computes := ComputeType(d)
		for _, v := range []int64{0, 1, 100} {
			if d == Bool && v > 1 {
				continue
			}
			b := AlignedBytes(16)
			for name, ok := range map[string]bool{
				"float32": Put(b, d, float32(v)), "float64": Put(b, d, float64(v)), "int64": Put(b, d, v),
			} {
				if ok != computes {
					t.Fatalf("store %s as %v: got %v, want %v", name, d, ok, computes)
				}
			}
			f, okf := Get[float32](b, d)
			g, okg := Get[float64](b, d)
			i, oki := Get[int64](b, d)
			if okf != computes || okg != computes || oki != computes {
				t.Fatalf("load %v: got %v %v %v, want %v", d, okf, okg, oki, computes)
			}
			if computes && (f != float32(v) || g != float64(v) || i != v) {
				t.Fatalf("%v: got %v %v %v, want %d", d, f, g, i, v)
			}
		}
	}
	if Loader[float32](NoDType) != nil || Storer[int64](NumDTypes) != nil {
		t.Fatal("a type outside the enumeration has a conversion")
	}
}

func TestCast(t *testing.T) {
	big := make([]int64, 1000)
	for i := range big {
		big[i] = int64(i)<<40 + 1
	}
	src, dst := Of(big, 1000), New(Float32, 1000)
	if !Cast(dst, src) {
		t.Fatal("int64 to float32 does not convert")
	}
	for i, got := range Data[float32](dst) {
		if want := float32(big[i]); got != want {
			t.Fatalf("element %d: got %v, want %v", i, got, want)
		}
	}
	if Cast(New(Float32, 999), src) || Cast(New(Complex64, 1000), src) || Cast(New(QInt8, 1000), src) {
		t.Fatal("got ok for a cast without a conversion")
	}
	c := Of([]complex64{1 + 2i, -3}, 2)
	wide := New(Complex128, 2)
	if !Cast(wide, c) || Data[complex128](wide)[0] != 1+2i || Data[complex128](wide)[1] != -3 {
		t.Fatalf("complex64 to complex128: got %v", Data[complex128](wide))
	}
	if n := testing.AllocsPerRun(100, func() { Cast(dst, src) }); n != 0 {
		t.Errorf("%v allocations a cast, want none", n)
	}
}

func TestCanCast(t *testing.T) {
	for _, c := range []struct {
		from, to DType
		want     bool
	}{
		{Float32, Float16, true}, {Float32, Int64, false}, {Float32, Bool, false}, {Int64, Float16, true}, {Int64, Int8, true},
		{Int8, Bool, false}, {Bool, Bool, true}, {Bool, Float32, true}, {Complex64, Float32, false}, {Float32, Complex64, true},
	} {
		if got := CanCast(c.from, c.to); got != c.want {
			t.Errorf("CanCast(%v, %v): got %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	src, dst := AlignedBytes(8*512), make([]float32, 512)
	for _, d := range []DType{Uint8, Int64, Float16, BFloat16, Float64} {
		load := Loader[float32](d)
		b.Run(d.String(), func(b *testing.B) {
			for b.Loop() {
				load(dst, src)
			}
		})
	}
}

func BenchmarkStore(b *testing.B) {
	dst, src := AlignedBytes(8*512), make([]float32, 512)
	for i := range src {
		src[i] = float32(i) * 0.3
	}
	for _, d := range []DType{Uint8, Int32, Int64, Float16, BFloat16, Float64} {
		store := Storer[float32](d)
		b.Run(d.String(), func(b *testing.B) {
			for b.Loop() {
				store(dst, src)
			}
		})
	}
}
