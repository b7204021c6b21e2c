package simd

import (
	"math"

	"github.com/etrun-go/etrun/internal/math32"
)

// tail is a last incomplete block, which functions compute in all lanes.
type tail [lanes]float32

// of takes up to a block of numbers.
func (t *tail) of(src []float32) *float32 {
	copy(t[:], src)
	return &t[0]
}

// log10of2 is the high part of log₁₀ 2: few enough bits for exact products with exponents.
const log10of2 = 0x1.344p-2

// Sin sets dst[i] to the sine of src[i], to within 2⁻²³, and to within 4 ulp near 0. dst may
// be src. It panics where src is shorter than dst.
func Sin(dst, src []float32) { sine(dst, src[:len(dst):len(src)], 0) }

// Cos sets dst[i] to the cosine of src[i], to within 2⁻²³, and to within 4 ulp near 0. dst may
// be src. It panics where src is shorter than dst.
func Cos(dst, src []float32) { sine(dst, src[:len(dst):len(src)], 0.5) }

// sineMax is the largest argument that vectors reduce.
const sineMax = 1 << 17

// sine is the sine of what is shift half turns on. Arguments that
// vectors do not reduce are computed alone, from a copy: dst may be src.
func sine(dst, src []float32, shift float32) {
	if !vector {
		sineGo(dst, src, shift)
		return
	}
	var x, y [256]float32
	for len(dst) > 0 {
		n := copy(x[:], src)
		if sineLanes((n+lanes-1)/lanes, &y[0], &x[0], shift) != 0 {
			for i, v := range x[:n] {
				if !(v >= -sineMax && v <= sineMax) {
					sineGo(y[i:i+1], x[i:i+1], shift)
				}
			}
		}
		copy(dst, y[:n])
		dst, src = dst[n:], src[n:]
	}
}

func sineGo(dst, src []float32, shift float32) {
	if shift == 0 {
		math32.Sin(dst, src)
	} else {
		math32.Cos(dst, src)
	}
}

func siluGo(dst, src []float32) {
	var s [64]float32
	for len(dst) > 0 {
		n := min(len(dst), len(s))
		math32.Sigmoid(s[:n], src[:n])
		mulGo(dst[:n], src[:n], s[:n])
		dst, src = dst[n:], src[n:]
	}
}

func eluGo(dst, src []float32, negative, inner, positive float32) {
	var a, e [1]float32
	for i, x := range src {
		if x > 0 {
			dst[i] = x * positive
			continue
		}
		a[0] = x * inner
		math32.Expm1(e[:], a[:])
		dst[i] = e[0] * negative
	}
}

func bit(yes bool) (b uint8) {
	if yes {
		b = 1
	}
	return b
}

const sixth = float32(1) / 6

// leaky chooses among bits, without a branch for the processor to guess.
func leaky(x, slope float32) float32 {
	bits, scaled := math.Float32bits(x), math.Float32bits(x*slope)
	if int32(bits) < 0 {
		bits = scaled
	}
	return math.Float32frombits(bits)
}

// choose has no branch for the processor to guess.
func choose(mask uint8, a, b uint32) uint32 {
	if mask != 0 {
		b = a
	}
	return b
}
