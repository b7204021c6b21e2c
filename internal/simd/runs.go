package simd

// MulAddRuns is [MulAddTo], clamped, for rows of a that are several runs of k elements, run apart, such as the
// lines of a window:
//
//	c[i*ldc+j] = clamp(from[i*ldf+j] + Σ_r Σ_p a[i*ars+r*run+p] · b[(r*k+p)*ldb+j])    i < m, j < n, r < runs, p < k
//
// runs must not be 0. What is multiplied next is expected to start ahead elements behind b; 0 is for nothing.
func MulAddRuns(m, n, runs, k int, a []float32, ars, run int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int,
	lo, hi float32, ahead int) {
	// A product of several runs gains from vectors earlier than [MulAddTo], whose short sums round each product.
	if vector && (m > 1 || neon) && k > 0 && m*n*runs*k >= min(few, 32) {
		_ = a[(m-1)*ars+(runs-1)*run+k-1]
		_ = b[(runs*k-1)*ldb+n-1]
		_ = from[(m-1)*ldf+n-1]
		_ = c[(m-1)*ldc+n-1]
		mulAddTo(m, n, runs, k, a, ars, 1, run, b, ldb, from, ldf, c, ldc, lo, hi, ahead)
		return
	}
	for r := range runs {
		low, high := -inf, inf
		if r == runs-1 {
			low, high = lo, hi
		}
		mulAddClamp(m, n, k, a[r*run:], ars, 1, b[r*k*ldb:], ldb, from, ldf, c, ldc, low, high, ahead)
		from, ldf = c, ldc
	}
}

// MaxInterleaved is the maximum number of columns of [MulAddInterleaved], and how many elements of each
// are adjacent.
const MaxInterleaved = 4

const interleavedStep = MaxInterleaved * MaxInterleaved

// Interleaves reports whether [MulAddInterleaved] is faster than [MulAddRuns]: only with AVX-512 do few
// columns leave most of a vector unused.
func Interleaves() bool { return avx512 }

// InterleavedSize returns the number of elements of b for [MulAddInterleaved].
func InterleavedSize(runs, k int) int {
	return runs * ((k + MaxInterleaved - 1) / MaxInterleaved) * interleavedStep
}

// PackInterleaved writes b for [MulAddInterleaved] to dst: element (p, j) of runs·k rows and n columns is
// src[p*row+j*col]. Other elements are 0.
func PackInterleaved(dst, src []float32, n, runs, k, row, col int) {
	clear(dst[:InterleavedSize(runs, k)])
	for q := range runs * k {
		p := q % k
		at := InterleavedSize(q/k, k) + p/MaxInterleaved*interleavedStep + p%MaxInterleaved
		for j := range n {
			dst[at+j*MaxInterleaved] = src[q*row+j*col]
		}
	}
}

// MulAddInterleaved is [MulAddRuns] for n ≤ [MaxInterleaved] columns, with as many elements of each column
// adjacent in b: a run has ⌈k/4⌉ steps of 4 elements of 4 columns, the last of them filled with zeros. See
// [PackInterleaved].
func MulAddInterleaved(m, n, runs, k int, a []float32, ars, run int, b, from []float32, ldf int, c []float32, ldc int, lo, hi float32) {
	if m <= 0 || n <= 0 {
		return
	}
	if !avx512 || runs*k == 0 {
		mulAddInterleavedGo(m, n, runs, k, a, ars, run, b, from, ldf, c, ldc, lo, hi)
		return
	}
	_ = a[(m-1)*ars+(runs-1)*run+k-1]
	_ = b[InterleavedSize(runs, k)-1]
	_ = from[(m-1)*ldf+n-1]
	_ = c[(m-1)*ldc+n-1]
	for i := 0; i < m; {
		t := largest(interleaved, m-i)
		count := (m - i) / t.rows
		t.f(count, runs, k, &a[i*ars], 4*ars, 4*(run-k), &b[0], &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi, 1<<n-1)
		i += count * t.rows
	}
}

type interleavedFunc func(tiles, runs, k int, a *float32, ars, skip int, b *float32, from *float32, ldf int, c *float32, ldc int, lo, hi float32, cols uint32)

var interleaved = []tileOf[interleavedFunc]{{8, interleaved8x4}, {1, interleaved1x4}}

func mulAddInterleavedGo(m, n, runs, k int, a []float32, ars, run int, b, from []float32, ldf int, c []float32, ldc int, lo, hi float32) {
	size := InterleavedSize(1, k)
	for i := range m {
		for j := range n {
			sum := from[i*ldf+j]
			for r := range runs {
				for p := range k {
					sum += float32(a[i*ars+r*run+p] * b[r*size+p/MaxInterleaved*interleavedStep+j*MaxInterleaved+p%MaxInterleaved])
				}
			}
			c[i*ldc+j] = sum
		}
		clampGo(c[i*ldc:][:n], c[i*ldc:][:n], lo, hi)
	}
}
