package strided

import "github.com/etrun-go/etrun/kernels/tensor"

// maxInterleaved is the largest number of rows that interleave merges: the planes of a picture.
const maxInterleaved = 4

// interleaves reports whether a plane of lines merges a few dense rows of src into dense columns
// of dst.
func interleaves(p, q dim) bool {
	return q.n > 1 && q.n <= maxInterleaved && q.dst == 1 && p.dst == q.n && p.src == 1 && q.src >= p.n
}

// interleave copies such a plane in one pass: dst[i·rows + j] = src[j·stride + i].
func interleave[T tensor.Element](dst, src []T, n, rows, stride int) {
	dst = dst[:n*rows] // the returns below spare bounds checks, and are never taken
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
