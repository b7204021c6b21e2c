package simd

import "math"

// Number is an element type that products are summed in.
type Number interface {
	float32 | float64 | int64 | complex64 | complex128
}

// mulAddToGo rounds every product, also where the compiler could fuse it with the
// addition: then a product that overflows is infinite in whatever order terms come.
func mulAddToGo[T Number](m, n, k int, a []T, ars, acs int, b []T, ldb int, from []T, ldf int, c []T, ldc int) {
	for i := range m {
		row := c[i*ldc:][:n]
		copy(row, from[i*ldf:])
		if k == 0 {
			continue
		}
		a := a[i*ars:]
		p := 0
		for ; p+4 <= k; p += 4 {
			a0, a1, a2, a3 := a[p*acs], a[(p+1)*acs], a[(p+2)*acs], a[(p+3)*acs]
			b0, b1 := b[p*ldb:][:len(row)], b[(p+1)*ldb:][:len(row)]
			b2, b3 := b[(p+2)*ldb:][:len(row)], b[(p+3)*ldb:][:len(row)]
			for j := range row {
				row[j] += T(a0*b0[j]) + T(a1*b1[j]) + T(a2*b2[j]) + T(a3*b3[j])
			}
		}
		for ; p < k; p++ {
			axpyGo(row, b[p*ldb:], a[p*acs])
		}
	}
}

var inf = float32(math.Inf(1))

func mulAddClampGo(m, n, k int, a []float32, ars, acs int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int, lo, hi float32) {
	mulAddToGo(m, n, k, a, ars, acs, b, ldb, from, ldf, c, ldc)
	if lo == -inf && hi == inf {
		return
	}
	for i := range m {
		row := c[i*ldc:][:n]
		clampGo(row, row, lo, hi)
	}
}

func axpyGo[T Number](y, x []T, a T) {
	x = x[:len(y)]
	for i := range y {
		y[i] += T(a * x[i])
	}
}

func tapsGo[T Number](y, x []T, off []int, w []T) {
	t := 0
	for ; t+3 <= len(off); t += 3 {
		x0, x1, x2 := x[off[t]:][:len(y)], x[off[t+1]:][:len(y)], x[off[t+2]:][:len(y)]
		w0, w1, w2 := w[t], w[t+1], w[t+2]
		for i := range y {
			y[i] += T(w0*x0[i]) + T(w1*x1[i]) + T(w2*x2[i])
		}
	}
	for ; t < len(off); t++ {
		axpyGo(y, x[off[t]:], w[t])
	}
}

func stride2Go[T any](dst, src []T) {
	if len(dst) == 0 {
		return
	}
	src = src[: 2*len(dst)-1 : len(src)]
	for i := range dst {
		dst[i] = src[2*i]
	}
}

func fillGo[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

func dotGo[T Number](x, y []T) T {
	y = y[:len(x)]
	var s0, s1, s2, s3 T
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b := x[i:i+4:i+4], y[i:i+4:i+4]
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
	}
	for ; i < len(x); i++ {
		s0 += x[i] * y[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// Real is a type that sums are computed in, or one of their elements.
type Real interface{ float32 | float64 | int64 }

// SumAs is Σ x[i], 0 for none. It computes in C, in four partial sums, which the processor adds up in parallel.
func SumAs[C, T Real](x []T) C {
	var s0, s1, s2, s3 C
	for ; len(x) >= 4; x = x[4:] {
		s0, s1, s2, s3 = s0+C(x[0]), s1+C(x[1]), s2+C(x[2]), s3+C(x[3])
	}
	for _, v := range x {
		s0 += C(v)
	}
	return (s0 + s1) + (s2 + s3)
}

// SumSquaresAs is Σ (x[i]-mean)², computed as [SumAs] does.
func SumSquaresAs[C, T Real](x []T, mean C) C {
	var s0, s1, s2, s3 C
	for ; len(x) >= 4; x = x[4:] {
		d0, d1, d2, d3 := C(x[0])-mean, C(x[1])-mean, C(x[2])-mean, C(x[3])-mean
		s0, s1, s2, s3 = s0+d0*d0, s1+d1*d1, s2+d2*d2, s3+d3*d3
	}
	for _, v := range x {
		d := C(v) - mean
		s0 += d * d
	}
	return (s0 + s1) + (s2 + s3)
}

// sumGo adds up long slices in halves, which keeps rounding errors small.
func sumGo(x []float32) float32 {
	if len(x) > 256 {
		return sumGo(x[:len(x)/2]) + sumGo(x[len(x)/2:])
	}
	return SumAs[float32](x)
}

func scaleShiftGo(dst, src []float32, scale, shift float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = src[i]*scale + shift
	}
}

func centerGo(dst, src []float32, mean, scale float32, weight, bias []float32) {
	src = src[:len(dst)]
	switch {
	case weight == nil && bias == nil:
		for i := range dst {
			dst[i] = (src[i] - mean) * scale
		}
	case bias == nil:
		weight = weight[:len(dst)]
		for i := range dst {
			dst[i] = (src[i] - mean) * scale * weight[i]
		}
	case weight == nil:
		bias = bias[:len(dst)]
		for i := range dst {
			dst[i] = (src[i]-mean)*scale + bias[i]
		}
	default:
		weight, bias = weight[:len(dst)], bias[:len(dst)]
		for i := range dst {
			dst[i] = (src[i]-mean)*scale*weight[i] + bias[i]
		}
	}
}

// maxGo is the largest of m and x.
func maxGo(m float32, x []float32) float32 {
	for _, v := range x {
		if v > m || v != v {
			m = v
		}
	}
	return m
}

// minGo is the least of m and x.
func minGo(m float32, x []float32) float32 {
	for _, v := range x {
		if v < m || v != v {
			m = v
		}
	}
	return m
}

// The exponential: x = n·ln 2 + r with |r| ≤ ln 2 / 2 (Cody and Waite's two-part
// ln 2 keeps r exact), then e^r by a polynomial of degree 6 (Cephes expf) and the
// scaling by 2^n in two steps, so that results in the subnormal range are right.
// Error below 1 ulp over the whole range.
const (
	expMax = 88.72284    // above: +Inf
	expMin = -103.972084 // below: 0
	log2e  = 1.44269504
	ln2Hi  = 0.693359375
	ln2Lo  = -2.12194440e-4
	round  = 1.5 * (1 << 23) // adding it rounds to an integer, to nearest even
	expP0  = 1.9875691500e-4
	expP1  = 1.3981999507e-3
	expP2  = 8.3334519073e-3
	expP3  = 4.1665795894e-2
	expP4  = 1.6666665459e-1
	expP5  = 5.0000001201e-1
)

// exp32 is e^x, rounded to within 1 ulp; NaN stays NaN.
func exp32(x float32) float32 {
	if !(x <= expMax) { // NaN comes here too
		return x * float32(math.Inf(1))
	}
	if x < expMin {
		return 0
	}
	n := float32(x*log2e) + round - round
	r := x - float32(n*ln2Hi) - float32(n*ln2Lo)
	p := float32(expP0)
	p = p*r + expP1
	p = p*r + expP2
	p = p*r + expP3
	p = p*r + expP4
	p = p*r + expP5
	p = p*r*r + r + 1
	h := int32(n) >> 1
	l := int32(n) - h
	return p * math.Float32frombits(uint32(h+127)<<23) * math.Float32frombits(uint32(l+127)<<23)
}

func expGo(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = exp32(src[i])
	}
}

// expNormal is the least argument whose exponential is a normal number.
const expNormal = -87.33654

func expSumGo(dst, src []float32, shift float32) (s float32) {
	src = src[:len(dst)]
	for i := range dst {
		var e float32
		if x := src[i] - shift; !(x < expNormal) {
			e = exp32(x)
		}
		dst[i] = e
		s += e
	}
	return s
}

// transposeGo moves eight rows of src at a time.
func transposeGo[T any](dst, src []T, rows, cols, ds, ss int) {
	for i := 0; i < rows; i += 8 {
		r0, r1 := src[:cols], src[ss:][:cols]
		r2, r3 := src[2*ss:][:cols], src[3*ss:][:cols]
		r4, r5 := src[4*ss:][:cols], src[5*ss:][:cols]
		r6, r7 := src[6*ss:][:cols], src[7*ss:][:cols]
		for j := range cols {
			d := (*[8]T)(dst[j*ds+i:])
			d[0], d[1], d[2], d[3] = r0[j], r1[j], r2[j], r3[j]
			d[4], d[5], d[6], d[7] = r4[j], r5[j], r6[j], r7[j]
		}
		if i+8 < rows {
			src = src[8*ss:]
		}
	}
}
