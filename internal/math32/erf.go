package math32

import "math"

// The error function is a polynomial of degree 5 around each multiple of 1/erfSteps, up to erfMax,
// where it rounds to 1 in float32.
const (
	erfSteps = 16
	erfMax   = 4
)

// erfTable holds the polynomials' coefficients, the value at the center first. At the end the
// function is 1. The table is padded to a power of two, so that indexes, including those of NaN,
// need no check.
var erfTable = func() (t [2 * erfSteps * erfMax][6]float64) {
	for i := range erfSteps * erfMax {
		c := float64(i) / erfSteps
		d := 2 / math.SqrtPi * math.Exp(-c*c) // the derivative; the higher ones are Hermite polynomials times it
		t[i] = [6]float64{
			math.Erf(c), d, -d * c, d * (4*c*c - 2) / 6,
			-d * (8*c*c*c - 12*c) / 24, d * (16*c*c*c*c - 48*c*c + 12) / 120,
		}
	}
	t[erfSteps*erfMax][0] = 1
	return t
}()

// erfAbs returns erf(x) for x from 0 to erfMax.
func erfAbs(x float64) float64 {
	n := x*erfSteps + roundShift
	p := &erfTable[math.Float64bits(n)%uint64(len(erfTable))]
	h := x - (n-roundShift)*(1./erfSteps)
	return p[0] + h*(p[1]+h*(p[2]+h*(p[3]+h*(p[4]+h*p[5]))))
}

// Erf sets dst[i] to the error function of src[i]. dst may be src. It panics if src is shorter than
// dst.
func Erf(dst, src []float32) {
	src = src[:len(dst):len(src)]
	for i, x := range src {
		a := math.Abs(float64(x))
		if a > erfMax {
			a = erfMax
		}
		dst[i] = float32(math.Copysign(erfAbs(a), float64(x)))
	}
}

// GELU sets dst[i] to src[i]·Φ(src[i]), where Φ is the normal distribution; it is 0 at -Inf, the
// limit. dst may be src. It panics if src is shorter than dst.
func GELU(dst, src []float32) {
	src = src[:len(dst):len(src)]
	for i, f := range src {
		x := float64(f)
		a := math.Abs(x) * (1 / math.Sqrt2)
		if a > erfMax {
			a, x = erfMax, max(x, -erfMax)
		}
		dst[i] = float32(x * (0.5 + math.Copysign(0.5*erfAbs(a), x)))
	}
}
