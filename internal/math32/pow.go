package math32

import "math"

// Pow sets dst[i] to a[i]^b[i]. dst may be an operand. It panics if a or b is shorter than dst.
func Pow(dst, a, b []float32) {
	a, b = a[:len(dst):len(a)], b[:len(dst):len(b)]
	for i := range dst {
		x, y := float64(a[i]), float64(b[i])
		if !(x > 0 && x <= math.MaxFloat32 && math.Abs(y) <= math.MaxFloat32) {
			dst[i] = float32(math.Pow(x, y))
			continue
		}
		sum, r := logParts(x)
		s, q := expParts(clamp(y*(sum+log1pSmall(r)), 200))
		dst[i] = float32(s + s*q)
	}
}

// Mod is C's fmod: the remainder of the division rounded toward zero, with x's sign. It is exact:
// the product and the difference below are exact, and the quotient is at most one too large.
func Mod(x, y float32) float32 {
	a, b := float64(x), float64(y)
	q := a / b
	if !(math.Abs(q) < 1<<29 && math.Abs(b) <= math.MaxFloat32) {
		return float32(math.Mod(a, b))
	}
	r := a - float64(math.Trunc(q)*b)
	if r*a < 0 {
		r = math.Abs(b) - math.Abs(r)
	}
	return float32(math.Copysign(r, a))
}
