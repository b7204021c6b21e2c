package strided

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// maxInterleaved is the largest number of rows that interleave merges: the planes of a picture.
const maxInterleaved = 4

// interleaves reports whether a plane of lines merges a few dense rows of src into dense columns
// of dst.
func interleaves(p, q dim) bool {
	return q.n > 1 && q.n <= maxInterleaved && q.dst == 1 && p.dst == q.n && p.src == 1 && q.src >= p.n
}

// interleave copies such a plane in one pass: dst[i·rows + j] = src[j·stride + i].
func interleave[T tensor.Element](dst, src []T, n, rows, stride int) {
	done := simd.Interleave(dst, src, n, rows, stride)
	if n -= done; n == 0 {
		return
	}
	dst, src = dst[done*rows:][:n*rows], src[done:] // the returns below spare bounds checks, and are never taken
	a, b := src[:n], src[stride:stride+n]
	switch rows {
	case 2:
		for i, x := range a {
			if len(dst) < 2 {
				return
			}
			dst[0], dst[1] = x, b[i]
			dst = dst[2:]
		}
	case 3:
		c := src[2*stride:][:n]
		if n >= minTile && tensor.TypeOf[T]().Size() == 4 {
			simd.Zip3(floats(dst), floats(a), floats(b), floats(c))
			return
		}
		for i, x := range a {
			if len(dst) < 3 {
				return
			}
			dst[0], dst[1], dst[2] = x, b[i], c[i]
			dst = dst[3:]
		}
	case 4:
		c, d := src[2*stride:][:n], src[3*stride:][:n]
		for i, x := range a {
			if len(dst) < 4 {
				return
			}
			dst[0], dst[1], dst[2], dst[3] = x, b[i], c[i], d[i]
			dst = dst[4:]
		}
	}
}

// deinterleave copies most of a plane that splits rows of a few adjacent elements of src into dense rows of dst, and
// returns how many elements of each it has copied: dst[i·p.dst + j] = src[at + j·q.src + i]. Rows of three
// words are taken apart; others are transposed by eight elements, some of which are those of the next row.
func deinterleave[T tensor.Element](dst, src []T, at int, p, q dim) int {
	if p.n < 3 || p.n >= wide || p.src != 1 || q.dst != 1 || q.src < p.n || q.n < deinterleaved {
		return 0
	}
	src = src[at:]
	if p.n == 3 && q.src == 3 && tensor.TypeOf[T]().Size() == 4 {
		simd.Unzip3(floats(dst[:q.n]), floats(dst[p.dst:]), floats(dst[2*p.dst:]), floats(src))
		return q.n
	}
	var columns [wide * deinterleaved]T
	n := min(q.n, (len(src)-wide)/q.src+1)
	n -= n % wide
	for j := 0; j < n; j += deinterleaved {
		k := min(deinterleaved, n-j)
		simd.Transpose(columns[:], src[j*q.src:], k, wide, deinterleaved, q.src)
		for i := range p.n {
			copy(dst[i*p.dst+j:][:k], columns[i*deinterleaved:])
		}
	}
	return n
}

// deinterleave transposes wide elements of deinterleaved rows at a time.
const wide, deinterleaved = 8, 128
