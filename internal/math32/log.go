package math32

import "math"

// A number is 2^k·z with z between logLow and 2·logLow, an interval with 1 in its interior; z is
// near the center of one of its logSteps parts.
const (
	logBits  = 5
	logSteps = 1 << logBits
	logLow   = 0.6875
	lowBits  = 0x3fe6000000000000 // of logLow
)

// logTable holds 1/c and log(c) for the center c of each part. The center of the part that contains
// 1 is 1, so that the logarithms near 1 are exact.
var logTable = func() (t [logSteps]struct{ reciprocal, log float64 }) {
	for i := range t {
		from := math.Float64frombits(lowBits + uint64(i)<<(52-logBits))
		to := math.Float64frombits(lowBits + uint64(i+1)<<(52-logBits))
		c := (from + to) / 2
		if from <= 1 && 1 <= to {
			c = 1
		}
		t[i].reciprocal, t[i].log = 1/c, math.Log(c)
	}
	return t
}()

// logParts splits the logarithm of a positive, finite, normal number into sum + log(1+r), with |r|
// below 1/logSteps.
func logParts(x float64) (sum, r float64) {
	bits := math.Float64bits(x)
	t := bits - lowBits
	p := &logTable[t>>(52-logBits)%logSteps]
	r = math.Float64frombits(bits-t&(0xfff<<52))*p.reciprocal - 1
	return float64(int64(t)>>52)*math.Ln2 + p.log, r
}

// log1pSmall returns log(1+r) for the r of logParts.
func log1pSmall(r float64) float64 {
	return r + r*r*(-0.5+r*(1./3+r*(-0.25+r*(0.2-r*(1./6)))))
}

// Log sets dst[i] to the natural logarithm of src[i]. dst may be src. It panics if src is shorter
// than dst.
func Log(dst, src []float32) { scaledLog(dst, src, 1) }

// Log2 sets dst[i] to the logarithm of src[i] to base 2. dst may be src. It panics if src is
// shorter than dst.
func Log2(dst, src []float32) { scaledLog(dst, src, 1/math.Ln2) }

// Log10 sets dst[i] to the logarithm of src[i] to base 10. dst may be src. It panics if src is
// shorter than dst.
func Log10(dst, src []float32) { scaledLog(dst, src, 1/math.Ln10) }

func scaledLog(dst, src []float32, scale float64) {
	src = src[:len(dst):len(src)]
	for i, x := range src {
		if !(x > 0 && x <= math.MaxFloat32) {
			dst[i] = float32(math.Log(float64(x)))
			continue
		}
		sum, r := logParts(float64(x))
		dst[i] = float32(scale * (sum + log1pSmall(r)))
	}
}

// Log1p sets dst[i] to log(1 + src[i]). The rounding error of 1 + src[i] is corrected to first
// order. dst may be src. It panics if src is shorter than dst.
func Log1p(dst, src []float32) {
	src = src[:len(dst):len(src)]
	for i, f := range src {
		x := float64(f)
		if !(x > -1 && x <= math.MaxFloat32) {
			dst[i] = float32(math.Log1p(x))
			continue
		}
		u := 1 + x
		sum, r := logParts(u)
		dst[i] = float32(sum + log1pSmall(r) + (x-(u-1))/u)
	}
}
