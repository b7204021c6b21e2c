package move

import (
	"github.com/etrun-go/etrun/kernels/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// tile is the edge of the squares that a transpose moves: whole cache lines of
// four-byte elements on both sides.
const tile = 16

// touchBytes is the size from which a transpose fetches the lines of the next tile
// while it moves one: below, both sides are in the second-level cache anyway.
const touchBytes = 1 << 20

// transpose copies a plane that is dense along q in dst and along p in src:
// dst[i·p.dst + j] = src[j·q.src + i].
func transpose[T tensor.Element](dst, src []T, p, q dim) {
	var z [1]T
	ahead := p.n*q.n*len(tensor.BytesOf(z[:])) >= touchBytes
	pn, qn := p.n&^7, q.n&^7
	for i := 0; i < pn; i += tile {
		for j := 0; j < qn; j += tile {
			if ahead && j+2*tile <= qn && i+tile <= pn {
				touch(dst[i*p.dst+j+tile:], p.dst)
				touch(src[(j+tile)*q.src+i:], q.src)
			}
			rows, cols := min(tile, qn-j), min(tile, pn-i)
			simd.Transpose(dst[i*p.dst+j:], src[j*q.src+i:], rows, cols, p.dst, q.src)
		}
	}
	if qn < q.n {
		copyLines(dst[qn:], src, qn*q.src, dim{q.n - qn, 1, q.src}, dim{pn, p.dst, 1})
	}
	if pn < p.n {
		copyLines(dst[pn*p.dst:], src, pn, dim{p.n - pn, p.dst, 1}, q)
	}
}

// touch reads the first element of each row of a tile, so that the memory's
// latencies overlap: stores alone wait for one cache line after the other. Inlined,
// the compiler would drop the reads.
//
//go:noinline
func touch[T tensor.Element](s []T, stride int) (seen bool) {
	var zero T
	for i := range tile {
		seen = seen != (s[i*stride] == zero)
	}
	return seen
}
