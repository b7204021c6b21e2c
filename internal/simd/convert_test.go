package simd

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// The conversions are held against these, of the little-endian bits of one element.

func widened(name string, b []byte) (bits uint32) {
	short := uint32(b[0])
	if len(b) > 1 {
		short = uint32(binary.LittleEndian.Uint16(b))
	}
	switch name {
	case "int8":
		return uint32(int8(short))
	case "int16":
		return uint32(int16(short))
	case "bool":
		return uint32(answer(short != 0))
	case "bfloat":
		return short << 16
	case "int32":
		return binary.LittleEndian.Uint32(b)
	}
	return short
}

var widening = []struct {
	name    string
	size    int
	ints    func(dst []int32, src []byte) int
	floats  func(dst []float32, src []byte) int
	convert func(bits uint32) float32
}{
	{"int8", 1, Int8ToInt32, Int8ToFloat, fromInt},
	{"uint8", 1, Uint8ToInt32, Uint8ToFloat, fromInt},
	{"bool", 1, BoolToInt32, BoolToFloat, fromInt},
	{"int16", 2, Int16ToInt32, Int16ToFloat, fromInt},
	{"uint16", 2, Uint16ToInt32, Uint16ToFloat, fromInt},
	{"int32", 4, nil, Int32ToFloat, fromInt},
	{"bfloat", 2, nil, BFloatToFloat, math.Float32frombits},
}

func fromInt(bits uint32) float32 { return float32(int32(bits)) }

func TestWiden(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		for _, c := range widening {
			src := make([]byte, n*c.size)
			for i := range src {
				src[i] = byte(r.Uint32()) * byte(r.IntN(2))
			}
			floats, ints := newGuarded(r, n), make([]int32, n)
			done := c.floats(floats.data, src)
			if c.ints != nil && c.ints(ints, src) != done || done != whole(n) {
				t.Fatalf("%s: %d of %d elements done", c.name, done, n)
			}
			floats.check(t, c.name)
			for i := range done {
				bits := widened(c.name, src[i*c.size:][:c.size])
				if got, want := floats.data[i], c.convert(bits); got != want && (got == got || want == want) {
					t.Fatalf("%s, element %d of %d: got %v, want %v", c.name, i, n, got, want)
				}
				if c.ints != nil && ints[i] != int32(bits) {
					t.Fatalf("%s, element %d of %d: got %d, want %d", c.name, i, n, ints[i], int32(bits))
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

func TestNarrow(t *testing.T) {
	type row[C any] struct {
		name string
		size int
		f    func(dst []byte, src []C) int
		want func(x C) uint32
	}
	same := func(x int32) uint32 { return uint32(x) }
	r := rand.New(rand.NewPCG(3, 4))
	hard := append([]float32{0x1p31, -0x1p31, 0x1p31 - 128, -0x1p31 - 256, 0x1p32, -0x1p33, 255.5, -1.5, 32767.5, 1 + 0x1p-8, 1 + 3*0x1p-8}, odd...)
	for n := range 70 {
		ints, floats := integerOperands(r, n), operands(r, n)
		for i := range floats {
			if r.IntN(2) == 0 {
				floats[i] = hard[r.IntN(len(hard))]
			}
		}
		for _, c := range []row[int32]{
			{"int32 to 8 bits", 1, Int32To8, same}, {"int32 to 16 bits", 2, Int32To16, same},
			{"int32 to bool", 1, Int32ToBool, func(x int32) uint32 { return uint32(answer(x != 0)) }},
		} {
			checkNarrow(t, c.name, c.size, c.f, c.want, ints)
		}
		for _, c := range []row[float32]{
			{"float to int32", 4, FloatToInt32, truncated}, {"float to 8 bits", 1, FloatTo8, truncated}, {"float to 16 bits", 2, FloatTo16, truncated},
			{"float to bool", 1, FloatToBool, func(x float32) uint32 { return uint32(answer(x != 0)) }},
			{"float to bfloat", 2, FloatToBFloat, roundedBFloat},
		} {
			checkNarrow(t, c.name, c.size, c.f, c.want, floats)
		}
	}
}

func checkNarrow[C any](t *testing.T, name string, size int, f func(dst []byte, src []C) int, want func(x C) uint32, src []C) {
	t.Helper()
	guard := bytes.Repeat([]byte{0xa5}, 64)
	dst := append(make([]byte, len(src)*size), guard...)
	if done := f(dst, src); done != whole(len(src)) {
		t.Fatalf("%s: %d of %d elements done", name, done, len(src))
	}
	if !bytes.Equal(dst[len(src)*size:], guard) {
		t.Fatalf("%s of %d elements: written beyond the end", name, len(src))
	}
	for i := range whole(len(src)) {
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
