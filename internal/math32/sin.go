package math32

import "math"

// π in two parts: the first has 33 bits, so that its products with integers below 2^20 are exact.
const (
	piHigh = 0x1.921fb544p1
	piLow  = 0x1.0b4611a626331p-33
	sinMax = 1 << 20 // the largest argument, in multiples of π, that is reduced this way
)

// sinReduced returns sin(r)·(-1)^n for |r| up to π/2.
func sinReduced(r float64, n uint64) float64 {
	z := r * r
	p := r + r*z*(-1./6+z*(1./120+z*(-1./5040+z*(1./362880+z*(-1./39916800+z*(1./6227020800))))))
	return math.Float64frombits(math.Float64bits(p) ^ n<<63)
}

// Sin sets dst[i] to the sine of src[i]. dst may be src. It panics if src is shorter than dst.
func Sin(dst, src []float32) {
	src = src[:len(dst):len(src)]
	for i, f := range src {
		x := float64(f)
		t := x*(1/math.Pi) + roundShift
		n := t - roundShift
		if !(math.Abs(n) < sinMax) {
			dst[i] = float32(math.Sin(x))
			continue
		}
		dst[i] = float32(sinReduced(x-n*piHigh-n*piLow, math.Float64bits(t)))
	}
}

// Cos sets dst[i] to the cosine of src[i], as the sine of src[i]+π/2. dst may be src. It panics if
// src is shorter than dst.
func Cos(dst, src []float32) {
	src = src[:len(dst):len(src)]
	for i, f := range src {
		x := math.Abs(float64(f))
		t := x*(1/math.Pi) + 0.5 + roundShift
		n := t - roundShift
		if !(n < sinMax) {
			dst[i] = float32(math.Cos(x))
			continue
		}
		m := n - 0.5
		dst[i] = float32(sinReduced(x-m*piHigh-m*piLow, math.Float64bits(t)))
	}
}
