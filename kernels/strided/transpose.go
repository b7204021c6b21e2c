package strided

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// A transpose copies tiles of tileBytes along p by runBytes along q: two cache lines of each row of
// src, which are fetched together, become long runs of each row of dst. widestTile is the former in
// one-byte elements.
const tileBytes, runBytes, widestTile = 128, 512, 128

// transpose copies a plane that is dense along q in dst and along p in src:
// dst[i·p.dst + j] = src[j·q.src + i].
func transpose[T tensor.Element](dst, src []T, p, q dim) {
	var z [1]T
	elem := len(tensor.BytesOf(z[:]))
	tile, run := max(tileBytes/elem, 8), max(runBytes/elem, 8)
	pn, qn := p.n&^7, q.n&^7
	for i := 0; i < pn; i += tile {
		for j := 0; j < qn; j += run {
			rows, cols := min(run, qn-j), min(tile, pn-i)
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
