package fft

import (
	"math"
	"math/bits"
	"math/cmplx"

	"github.com/etrun-go/etrun/kernels"
)

// maxRadix is the largest prime factor that is transformed by the definition; lengths with a larger
// one use Bluestein's convolution.
const maxRadix = 31

// plan transforms sequences of one length:
//
//	y[q] = Σ_j x[j] · exp(-2πi·j·q/n)    q < n
type plan struct {
	n       int
	factors []int        // of n, or nil for a convolution
	roots   []complex128 // exp(-2πi·k/n)

	chirp    []complex128 // exp(-πi·k²/n), of a convolution
	response []complex128 // the transform of the conjugated chirp, wrapped around
	inner    *plan        // of the convolution's length, a power of two
}

func newPlan(c *kernels.Ctx, n int) *plan {
	p := &plan{n: n}
	if p.factors = factorize(n); p.factors == nil {
		p.convolve(c)
		return p
	}
	p.roots = make([]complex128, n)
	poll := c.Poller()
	for k := range p.roots {
		poll.Done(1)
		p.roots[k] = unit(float64(k) / float64(n))
	}
	return p
}

// unit is exp(-2πi·turn).
func unit(turn float64) complex128 {
	sin, cos := math.Sincos(2 * math.Pi * turn)
	return complex(cos, -sin)
}

// factorize splits n into fours and primes; nil if one is above maxRadix.
func factorize(n int) []int {
	factors := []int{}
	for _, f := range []int{4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, maxRadix} {
		for n%f == 0 {
			factors = append(factors, f)
			n /= f
		}
	}
	if n > 1 {
		return nil
	}
	return factors
}

// convolve prepares Bluestein's algorithm: with j·q = (j² + q² - (q-j)²)/2 the transform is a
// convolution with a chirp.
func (p *plan) convolve(c *kernels.Ctx) {
	m := 1 << bits.Len(uint(2*p.n-2))
	p.inner = newPlan(c, m)
	p.chirp = make([]complex128, p.n)
	wrapped := make([]complex128, m)
	poll := c.Poller()
	for k := range p.chirp {
		poll.Done(1)
		// k² mod 2n preserves the precision of the angle.
		hi, lo := bits.Mul64(uint64(k), uint64(k))
		_, turn := bits.Div64(hi%uint64(2*p.n), lo, uint64(2*p.n))
		p.chirp[k] = unit(float64(turn) / float64(2*p.n))
		wrapped[k] = cmplx.Conj(p.chirp[k])
		if k > 0 {
			wrapped[m-k] = wrapped[k]
		}
	}
	p.response = make([]complex128, m)
	p.inner.transform(c, p.response, wrapped, nil)
}

// work returns the number of elements of scratch memory that transform needs.
func (p *plan) work() int {
	if p.inner == nil {
		return 0
	}
	return 2 * p.inner.n
}

// transform transforms src to dst, which must not overlap. work is scratch memory.
func (p *plan) transform(c *kernels.Ctx, dst, src, work []complex128) {
	if p.inner == nil {
		p.step(c, dst, src, p.n, 1, 0)
		return
	}
	m := p.inner.n
	a, b := work[:m], work[m:2*m]
	for k, v := range p.chirp {
		a[k] = src[k] * v
	}
	clear(a[p.n:])
	p.inner.transform(c, b, a, nil)
	for k := range b { // the forward transform of the conjugate is the conjugate of the inverse transform
		b[k] = cmplx.Conj(b[k] * p.response[k])
	}
	p.inner.transform(c, a, b, nil)
	for k := range dst {
		dst[k] = cmplx.Conj(a[k]) * p.chirp[k] / complex(float64(m), 0)
	}
}

// joinBlock is the number of joins between two polls.
const joinBlock = 1 << 14

// step transforms n elements of src, stride apart: first those of each residue modulo the next
// factor, then the residues with each other.
func (p *plan) step(c *kernels.Ctx, dst, src []complex128, n, stride, factor int) {
	if n == 1 {
		dst[0] = src[0]
		return
	}
	r := p.factors[factor]
	m := n / r
	for j := range r {
		p.step(c, dst[j*m:(j+1)*m], src[j*stride:], m, stride*r, factor+1)
	}
	for k := range m {
		if k%joinBlock == joinBlock-1 {
			c.Poll()
		}
		switch r {
		case 2:
			p.join2(dst, m, k, stride)
		case 4:
			p.join4(dst, m, k, stride)
		default:
			p.join(dst, r, m, k, stride)
		}
	}
}

func (p *plan) join2(dst []complex128, m, k, stride int) {
	a, b := dst[k], dst[m+k]*p.roots[k*stride]
	dst[k], dst[m+k] = a+b, a-b
}

func (p *plan) join4(dst []complex128, m, k, stride int) {
	a, b := dst[k], dst[m+k]*p.roots[k*stride]
	c, d := dst[2*m+k]*p.roots[2*k*stride], dst[3*m+k]*p.roots[3*k*stride]
	even, odd := a+c, b+d
	left, right := a-c, b-d
	right = complex(imag(right), -real(right)) // · -i
	dst[k], dst[m+k], dst[2*m+k], dst[3*m+k] = even+odd, left+right, even-odd, left-right
}

// join is the transform of r elements by the definition.
func (p *plan) join(dst []complex128, r, m, k, stride int) {
	var t [maxRadix]complex128
	for j := range r {
		t[j] = dst[j*m+k] * p.roots[j*k*stride]
	}
	turn := p.n / r
	for q := range r {
		sum := t[0]
		for j := 1; j < r; j++ {
			sum += t[j] * p.roots[j*q%r*turn]
		}
		dst[q*m+k] = sum
	}
}
