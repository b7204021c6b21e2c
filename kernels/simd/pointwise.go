package simd

// The functions below compute element by element: dst[i] = f(a[i], …). dst may be one
// of the operands, which are at least as long as it. A NaN operand gives NaN.

// Add is a[i] + b[i].
func Add(dst, a, b []float32) { add(dst, a[:len(dst)], b[:len(dst)]) }

// AddScaled is a[i] + alpha·b[i], rounded twice.
func AddScaled(dst, a, b []float32, alpha float32) {
	addScaled(dst, a[:len(dst)], b[:len(dst)], alpha)
}

// Sub is a[i] - b[i].
func Sub(dst, a, b []float32) { sub(dst, a[:len(dst)], b[:len(dst)]) }

// Mul is a[i] · b[i].
func Mul(dst, a, b []float32) { mul(dst, a[:len(dst)], b[:len(dst)]) }

// Div is a[i] / b[i].
func Div(dst, a, b []float32) { div(dst, a[:len(dst)], b[:len(dst)]) }

// Maximum is the larger of a[i] and b[i].
func Maximum(dst, a, b []float32) { maximum(dst, a[:len(dst)], b[:len(dst)]) }

// Minimum is the smaller of a[i] and b[i].
func Minimum(dst, a, b []float32) { minimum(dst, a[:len(dst)], b[:len(dst)]) }

// Clamp is src[i] within low and high, which are no NaN; high where low is above it.
func Clamp(dst, src []float32, low, high float32) { clamp(dst, src[:len(dst)], low, high) }

// LeakyReLU is src[i], times slope where it is negative.
func LeakyReLU(dst, src []float32, slope float32) { leakyReLU(dst, src[:len(dst)], slope) }

// Sqrt is the square root.
func Sqrt(dst, src []float32) { sqrt(dst, src[:len(dst)]) }

// Sigmoid is 1 / (1 + e^-src[i]), to within 3 ulp; subnormal results may be 0.
func Sigmoid(dst, src []float32) { sigmoid(dst, src[:len(dst)]) }

// Tanh is the hyperbolic tangent, to within 4 ulp.
func Tanh(dst, src []float32) { tanh(dst, src[:len(dst)]) }

// GELU is src[i]·Φ(src[i]), Φ being the normal distribution, to within 4 ulp for
// positive numbers and 2⁻²³ for negative ones; 0 at -Inf.
func GELU(dst, src []float32) { gelu(dst, src[:len(dst)]) }

// GELUTanh is GELU by its approximation with a hyperbolic tangent, with its errors.
func GELUTanh(dst, src []float32) { geluTanh(dst, src[:len(dst)]) }
