package simd

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/x448/float16"
)

// widened is what a conversion makes of the little-endian bytes of one element: an integer,
// or the bits of a float.
func widened(name string, b []byte) uint32 {
	from, to, _ := strings.Cut(name, "To")
	short := uint32(b[0])
	if len(b) > 1 {
		short = uint32(binary.LittleEndian.Uint16(b))
	}
	n := int32(short)
	switch from {
	case "Int8":
		n = int32(int8(short))
	case "Int16":
		n = int32(int16(short))
	case "Int32":
		n = int32(binary.LittleEndian.Uint32(b))
	case "Bool":
		n = int32(bit(short != 0))
	case "Half":
		return math.Float32bits(float16.Frombits(uint16(short)).Float32())
	case "BFloat":
		return short << 16
	}
	if to == "Float" {
		return math.Float32bits(float32(n))
	}
	return uint32(n)
}

func TestWiden(t *testing.T) {
	checkWiden(t, widenInts, func(x int32) uint32 { return uint32(x) })
	checkWiden(t, widenFloats, math.Float32bits)
}

func checkWiden[C int32 | float32](t *testing.T, list []conversion[func(dst []C, src []byte) int], bits func(x C) uint32) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		for _, c := range list {
			src := make([]byte, n*c.size)
			for i := range src {
				src[i] = byte(r.Uint32()) * byte(r.IntN(2))
			}
			all := slices.Repeat([]C{77}, n+guard)
			if done := c.f(all[:n], src); done != vectorized(n) {
				t.Fatalf("%s: %d of %d elements done", c.name, done, n)
			}
			if i := slices.IndexFunc(all[vectorized(n):], func(x C) bool { return x != 77 }); i >= 0 {
				t.Fatalf("%s of %d elements: wrote %v at %d", c.name, n, all[vectorized(n)+i], vectorized(n)+i)
			}
			for i, x := range all[:vectorized(n)] {
				want := widened(c.name, src[i*c.size:][:c.size])
				if got := bits(x); got != want && (x == x || math.Float32frombits(want) == math.Float32frombits(want)) {
					t.Fatalf("%s, element %d of %d: got %v (%#x), want %#x", c.name, i, n, x, got, want)
				}
			}
		}
	}
}

// truncated is the integer of a float, the least one where there is none.
func truncated(x float32) uint32 {
	if x >= -1<<31 && x < 1<<31 {
		return uint32(int32(x))
	}
	return 1 << 31
}

func roundedBFloat(x float32) uint32 {
	if x != x {
		return 0x7fc0
	}
	b := math.Float32bits(x)
	return (b + 0x7fff + b>>16&1) >> 16
}

// narrowed are what conversions make of one element, of which they store the low bytes.
var (
	narrowedInt = map[string]func(x int32) uint32{
		"Int32To8": func(x int32) uint32 { return uint32(x) }, "Int32To16": func(x int32) uint32 { return uint32(x) },
		"Int32ToBool": func(x int32) uint32 { return uint32(bit(x != 0)) },
	}
	narrowedFloat = map[string]func(x float32) uint32{
		"FloatToInt32": truncated, "FloatTo8": truncated, "FloatTo16": truncated,
		"FloatToBool":   func(x float32) uint32 { return uint32(bit(x != 0)) },
		"FloatToBFloat": roundedBFloat,
		"FloatToHalf":   func(x float32) uint32 { return uint32(float16.Fromfloat32(x)) },
	}
)

func TestNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	hard := append([]float32{0x1p31, -0x1p31, 0x1p31 - 128, -0x1p31 - 256, 0x1p32, -0x1p33, 255.5, -1.5, 32767.5, 1 + 0x1p-8, 1 + 3*0x1p-8,
		65504, 65520, 0x1p-24, 0x1p-25, 0x1.8p-25, 1 + 0x1p-11, 1 + 3*0x1p-11}, odd...)
	for n := range 70 {
		ints, floats := integerOperands(r, n), operands(r, n)
		for i := range floats {
			if r.IntN(2) == 0 {
				floats[i] = hard[r.IntN(len(hard))]
			}
		}
		for _, c := range narrowInts {
			checkNarrow(t, c.name, c.size, c.f, narrowedInt[c.name], ints)
		}
		for _, c := range narrowFloats {
			checkNarrow(t, c.name, c.size, c.f, narrowedFloat[c.name], floats)
		}
	}
}

func checkNarrow[C any](t *testing.T, name string, size int, f func(dst []byte, src []C) int, want func(x C) uint32, src []C) {
	t.Helper()
	guard := bytes.Repeat([]byte{0xa5}, 64)
	dst := append(make([]byte, len(src)*size), guard...)
	if done := f(dst, src); done != vectorized(len(src)) {
		t.Fatalf("%s: %d of %d elements done", name, done, len(src))
	}
	if !bytes.Equal(dst[len(src)*size:], guard) {
		t.Fatalf("%s of %d elements: written beyond the end", name, len(src))
	}
	for i := range vectorized(len(src)) {
		w := binary.LittleEndian.AppendUint32(nil, want(src[i]))[:size]
		if got := dst[i*size:][:size]; !bytes.Equal(got, w) {
			t.Fatalf("%s, %v, element %d of %d: got %x, want %x", name, src[i], i, len(src), got, w)
		}
	}
}

// TestHalf goes over every float16 there and back; what rounds is tested with the
// types, in package tensor.
func TestHalf(t *testing.T) {
	src, back := make([]byte, 2<<16), make([]byte, 2<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(src[2*i:], uint16(i))
	}
	floats := make([]float32, 1<<16)
	if HalfToFloat(floats, src) == 0 || FloatToHalf(back, floats) == 0 {
		return // no vectors
	}
	for i, x := range floats {
		got := binary.LittleEndian.Uint16(back[2*i:])
		nan := i&0x7c00 == 0x7c00 && i&0x3ff != 0
		if nan != (x != x) || !nan && got != uint16(i) || nan && got&0x7c00 != 0x7c00 {
			t.Fatalf("%#04x is %v, and that %#04x", i, x, got)
		}
	}
	if one := floats[0x3c00]; one != 1 {
		t.Fatalf("got %v, want 1", one)
	}
}
