package move

import "github.com/etrun-go/etrun/kernels/tensor"

// tile is the edge of the squares that a transpose moves: whole cache lines of
// float32 on both sides.
const tile = 16

// touchBytes is the size from which a transpose fetches the lines of the next tile
// while it moves one: below, both sides are in the second-level cache anyway.
const touchBytes = 1 << 20

// transpose copies a plane that is dense along q in dst and along p in src:
// dst[i·p.dst + j] = src[j·q.src + i].
func transpose[T tensor.Element](dst, src []T, p, q dim) {
	var z [1]T
	ahead := p.n*q.n*len(tensor.BytesOf(z[:])) >= touchBytes
	pn, qn := p.n&^(tile-1), q.n&^(tile-1)
	for i := 0; i < pn; i += tile {
		for j := 0; j < qn; j += tile {
			if ahead && j+tile < qn {
				touch(dst[i*p.dst+j+tile:], p.dst)
				touch(src[(j+tile)*q.src+i:], q.src)
			}
			half(dst[i*p.dst+j:], src[j*q.src+i:], p.dst, q.src)
			half(dst[i*p.dst+j+tile/2:], src[(j+tile/2)*q.src+i:], p.dst, q.src)
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

// half moves eight rows of a tile of src into eight columns of dst.
func half[T tensor.Element](dst, src []T, dstStride, srcStride int) {
	r0 := (*[tile]T)(src)
	r1 := (*[tile]T)(src[srcStride:])
	r2 := (*[tile]T)(src[2*srcStride:])
	r3 := (*[tile]T)(src[3*srcStride:])
	r4 := (*[tile]T)(src[4*srcStride:])
	r5 := (*[tile]T)(src[5*srcStride:])
	r6 := (*[tile]T)(src[6*srcStride:])
	r7 := (*[tile]T)(src[7*srcStride:])
	for i := range tile {
		d := (*[tile / 2]T)(dst[i*dstStride:])
		d[0], d[1], d[2], d[3] = r0[i], r1[i], r2[i], r3[i]
		d[4], d[5], d[6], d[7] = r4[i], r5[i], r6[i], r7[i]
	}
}
