package graph

import "github.com/etrun-go/etrun/internal/simd"

// WinogradTerms is the number of products that a block of 2×2 pixels is computed from, for each pair of channels.
const WinogradTerms = 16

// Blocks of 2×2 pixels pay off from leastChannels and leastBlocks of an image on: filters in that form are 16/9 times as large,
// and are read from memory.
const leastChannels, leastBlocks = 32, 32

// Winograd reports whether a convolution is computed in blocks of 2×2 pixels, see [simd.WinogradInput]. It does not depend on the
// number of images: results of an image are the same in every batch.
func (s *WindowGrid) Winograd() bool {
	w := s.W
	for _, n := range []int{w.StrideH, w.StrideW, w.DilationH, w.DilationW, w.Groups} {
		if n != 1 {
			return false
		}
	}
	if w.KernelH != 3 || w.KernelW != 3 || w.GroupIn%simd.WinogradLanes > 0 || w.GroupOut%simd.WinogradLanes > 0 {
		return false
	}
	down, across := s.WinogradBlocks()
	return min(w.GroupIn, w.GroupOut) >= leastChannels && down*across >= leastBlocks
}

// WinogradBlocks returns the number of blocks of an image: below one another, and side by side.
func (s *WindowGrid) WinogradBlocks() (down, across int) {
	return CeilDiv(s.Out.Dim[1], 2), CeilDiv(s.Out.Dim[2], 2)
}

// Transformed blocks and their sums should stay in the second-level cache: at most winogradElements of them, but at least
// winogradLeast blocks, for which filters are read from memory each time.
const winogradElements, winogradLeast = 128 << 10, 24

// WinogradTile returns how many blocks are multiplied by the filter at once. All tiles have about as many.
func (s *WindowGrid) WinogradTile() int {
	down, across := s.WinogradBlocks()
	blocks := max(1, s.Out.Dim[0]*down*across)
	tiles := CeilDiv(blocks, max(winogradLeast, winogradElements/(WinogradTerms*(s.W.GroupIn+s.W.GroupOut))))
	return CeilDiv(blocks, tiles)
}

// WinogradWork returns the number of elements that a worker needs: for a tile of blocks, their sums, and one block at the edge.
func (s *WindowGrid) WinogradWork() int {
	in, out := s.W.GroupIn, s.W.GroupOut
	return WinogradTerms * (s.WinogradTile()*(in+out) + max(in, out))
}
