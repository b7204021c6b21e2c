package math32

import "math"

// expSteps is the number of table values in a factor of 2.
const (
	expBits  = 5
	expSteps = 1 << expBits

	// Adding and subtracting roundShift rounds to the nearest integer; the low bits of the sum are
	// those of the integer.
	roundShift = 0x1.8p52
	ln2Step    = math.Ln2 / expSteps
)

// exp2Table holds the bits of 2^(i/expSteps), minus what adding i to the exponent field will add.
var exp2Table = func() (t [expSteps]uint64) {
	for i := range t {
		t[i] = math.Float64bits(math.Exp2(float64(i)/expSteps)) - uint64(i)<<(52-expBits)
	}
	return t
}()

// expParts splits e^x into s·(1+q), where s is a power of 2^(1/expSteps) and exactly 1 around 0.
// |x| is at most 700.
func expParts(x float64) (s, q float64) {
	t := x * (expSteps / math.Ln2)
	n := t + roundShift
	bits := math.Float64bits(n)
	r := (t - (n - roundShift)) * ln2Step
	s = math.Float64frombits(exp2Table[bits%expSteps] + bits<<(52-expBits))
	return s, r * (1 + r*(0.5+r*(1./6+r*(1./24))))
}

// clamp limits x to ±limit; NaN is preserved.
func clamp(x, limit float64) float64 {
	if x > limit {
		return limit
	}
	if x < -limit {
		return -limit
	}
	return x
}

// Expm1 sets dst[i] to e^src[i] - 1. dst may be src. It panics if src is shorter than dst.
func Expm1(dst, src []float32) {
	src = src[:len(dst):len(src)]
	for i, x := range src {
		s, q := expParts(clamp(float64(x), 200))
		dst[i] = float32((s - 1) + s*q)
	}
}

// Sigmoid sets dst[i] to 1 / (1 + e^-src[i]). dst may be src. It panics if src is shorter than dst.
func Sigmoid(dst, src []float32) {
	src = src[:len(dst):len(src)]
	for i, x := range src {
		s, q := expParts(clamp(-float64(x), 200))
		dst[i] = float32(1 / (1 + s + s*q))
	}
}

// Tanh sets dst[i] to the hyperbolic tangent of src[i]. dst may be src. It panics if src is shorter
// than dst.
func Tanh(dst, src []float32) {
	src = src[:len(dst):len(src)]
	for i, x := range src {
		s, q := expParts(clamp(2*float64(x), 60))
		m := (s - 1) + s*q
		dst[i] = float32(m / (m + 2))
	}
}

// Sinh sets dst[i] to the hyperbolic sine of src[i]. dst may be src. It panics if src is shorter
// than dst.
func Sinh(dst, src []float32) {
	src = src[:len(dst):len(src)]
	for i, x := range src {
		s, q := expParts(clamp(float64(x), 200))
		m, e := (s-1)+s*q, s+s*q
		dst[i] = float32((m + m/e) / 2)
	}
}

// Cosh sets dst[i] to the hyperbolic cosine of src[i]. dst may be src. It panics if src is shorter
// than dst.
func Cosh(dst, src []float32) {
	src = src[:len(dst):len(src)]
	for i, x := range src {
		s, q := expParts(clamp(float64(x), 200))
		e := s + s*q
		dst[i] = float32((e + 1/e) / 2)
	}
}

// GELUTanh sets dst[i] to the tanh approximation of the GELU of src[i]. dst may be src. It panics
// if src is shorter than dst.
func GELUTanh(dst, src []float32) {
	const slope, cubic = 2 / (math.SqrtPi * math.Sqrt2), 0.044715 // sqrt(2/π)
	src = src[:len(dst):len(src)]
	for i, f := range src {
		x := float64(f)
		s, q := expParts(clamp(2*slope*(x+cubic*x*x*x), 60))
		m := (s - 1) + s*q
		dst[i] = float32(x / 2 * (1 + m/(m+2)))
	}
}
