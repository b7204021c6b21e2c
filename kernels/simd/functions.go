package simd

import "github.com/etrun-go/etrun/kernels/math32"

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
