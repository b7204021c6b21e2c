package simd

import (
	"math"

	"github.com/etrun-go/etrun/internal/math32"
)

// The functions below are functions of one number that vectors compute in another way than
// Go does. A last incomplete block is computed in all lanes too, so that an element's
// result does not depend on its place.

// tail is that block.
type tail [lanes]float32

// of takes up to a block of numbers.
func (t *tail) of(src []float32) *float32 {
	copy(t[:], src)
	return &t[0]
}

// Sigmoid is 1 / (1 + e^-src[i]), to within 3 ulp; subnormal results may be 0.
func Sigmoid(dst, src []float32) {
	if !vector {
		math32.Sigmoid(dst, src[:len(dst)])
		return
	}
	n := each(sigmoidLanes, dst, src)
	if n < len(dst) {
		var t tail
		sigmoidLanes(1, &t[0], t.of(src[n:]))
		copy(dst[n:], t[:])
	}
}

// Tanh is the hyperbolic tangent, to within 4 ulp.
func Tanh(dst, src []float32) {
	if !vector {
		math32.Tanh(dst, src[:len(dst)])
		return
	}
	n := each(tanhLanes, dst, src)
	if n < len(dst) {
		var t tail
		tanhLanes(1, &t[0], t.of(src[n:]))
		copy(dst[n:], t[:])
	}
}

// GELU is src[i]·Φ(src[i]), Φ being the normal distribution, to within 4 ulp for
// positive numbers and 2⁻²³ for negative ones; 0 at -Inf.
func GELU(dst, src []float32) {
	if !vector {
		math32.GELU(dst, src[:len(dst)])
		return
	}
	n := each(geluLanes, dst, src)
	if n < len(dst) {
		var t tail
		geluLanes(1, &t[0], t.of(src[n:]))
		copy(dst[n:], t[:])
	}
}

// GELUTanh is GELU by its approximation with a hyperbolic tangent, with its errors.
func GELUTanh(dst, src []float32) {
	if !vector {
		math32.GELUTanh(dst, src[:len(dst)])
		return
	}
	n := each(geluTanhLanes, dst, src)
	if n < len(dst) {
		var t tail
		geluTanhLanes(1, &t[0], t.of(src[n:]))
		copy(dst[n:], t[:])
	}
}

// Expm1 is e^src[i] - 1, to within 4 ulp.
func Expm1(dst, src []float32) {
	if !vector {
		math32.Expm1(dst, src[:len(dst)])
		return
	}
	n := each(expm1Lanes, dst, src)
	if n < len(dst) {
		var t tail
		expm1Lanes(1, &t[0], t.of(src[n:]))
		copy(dst[n:], t[:])
	}
}

// Erf is the error function, to within 4 ulp.
func Erf(dst, src []float32) {
	if !vector {
		math32.Erf(dst, src[:len(dst)])
		return
	}
	n := each(erfLanes, dst, src)
	if n < len(dst) {
		var t tail
		erfLanes(1, &t[0], t.of(src[n:]))
		copy(dst[n:], t[:])
	}
}

// Log1p is log(1 + src[i]), to within 4 ulp.
func Log1p(dst, src []float32) {
	if !vector {
		math32.Log1p(dst, src[:len(dst)])
		return
	}
	n := each(log1pLanes, dst, src)
	if n < len(dst) {
		var t tail
		log1pLanes(1, &t[0], t.of(src[n:]))
		copy(dst[n:], t[:])
	}
}

// ELU is src[i]·positive where it is positive, and (e^(src[i]·inner) - 1)·negative
// elsewhere, to within some ulp.
func ELU(dst, src []float32, negative, inner, positive float32) {
	src = src[:len(dst)]
	if !vector {
		eluGo(dst, src, negative, inner, positive)
		return
	}
	n := whole(len(dst))
	if n > 0 {
		eluLanes(n/lanes, &dst[0], &src[0], negative, inner, positive)
	}
	if n < len(dst) {
		var t tail
		eluLanes(1, &t[0], t.of(src[n:]), negative, inner, positive)
		copy(dst[n:], t[:])
	}
}

// Log, Log2 and Log10 are logarithms, to within 4 ulp.

func Log(dst, src []float32) {
	if !vector {
		math32.Log(dst, src[:len(dst)])
		return
	}
	log(dst, src[:len(dst)], 1, ln2Lo, ln2Hi)
}

func Log2(dst, src []float32) {
	if !vector {
		math32.Log2(dst, src[:len(dst)])
		return
	}
	log(dst, src[:len(dst)], log2e, 0, 1)
}

func Log10(dst, src []float32) {
	if !vector {
		math32.Log10(dst, src[:len(dst)])
		return
	}
	const high = 0x1.344p-2 // few enough bits for exact products with exponents
	log(dst, src[:len(dst)], 1/math.Ln10, math.Ln2/math.Ln10-high, high)
}

// log takes the factor of the mantissa's logarithm, and log 2 in two parts.
func log(dst, src []float32, scale, low, high float32) {
	n := whole(len(dst))
	if n > 0 {
		logLanes(n/lanes, &dst[0], &src[0], scale, low, high)
	}
	if n < len(dst) {
		var t tail
		logLanes(1, &t[0], t.of(src[n:]), scale, low, high)
		copy(dst[n:], t[:])
	}
}

// Sin and Cos are to within 2⁻²³, and to within 4 ulp near 0.
func Sin(dst, src []float32) { sine(dst, src[:len(dst)], 0) }

func Cos(dst, src []float32) { sine(dst, src[:len(dst)], 0.5) }

// sineMost is the largest argument that vectors reduce.
const sineMost = 1 << 17

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
				if !(v >= -sineMost && v <= sineMost) {
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
