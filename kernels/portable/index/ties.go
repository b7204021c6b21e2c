package index

import (
	"math/bits"

	"github.com/etrun-go/etrun/kernels"
)

// PyTorch's topk leaves the order of equal elements to the C++ library's nth_element,
// sort and partial_sort, which it was built with: libstdc++. Programs are exported
// and checked with it, so topk here selects with the same algorithms (introselect,
// introsort, heap select: O(n log n) at worst) and the same choices within them. They
// compare keys only. They poll often enough for rows of any length.

// pair is a key and the index of its element.
type pair[K key] struct{ key, at K }

func (p pair[K]) before(q pair[K]) bool { return p.key < q.key }

// selectFirst moves the k least pairs to the front, in order if sorted, and returns them. k is at least 1.
func selectFirst[K key](c *kernels.Ctx, s []pair[K], k int, sorted bool) []pair[K] {
	switch {
	case heapSuffices(k, len(s)):
		partialSort(c, s, k)
	default:
		nthElement(c, s, k-1)
		if sorted {
			introsort(c, s[:k-1])
		}
	}
	return s[:k]
}

// heapSuffices reports whether k is so small that a heap selects the first k of n.
func heapSuffices(k, n int) bool { return k*64 <= n }

// depthLimit is the number of partitions that may fail to shrink a range much.
func depthLimit(n int) int { return 2 * (bits.Len(uint(n)) - 1) }

// nthElement places the pair of rank n, those before it before.
func nthElement[K key](c *kernels.Ctx, s []pair[K], n int) {
	for limit := depthLimit(len(s)); len(s) > 3; limit-- {
		if limit == 0 {
			heapSelect(c, s, n+1)
			s[0], s[n] = s[n], s[0]
			return
		}
		if cut := partition(c, s); cut <= n {
			s, n = s[cut:], n-cut
		} else {
			s = s[:cut]
		}
	}
	insertionSort(s)
}

// smallSort is the length up to which a range is sorted by insertion.
const smallSort = 16

func introsort[K key](c *kernels.Ctx, s []pair[K]) {
	if len(s) == 0 {
		return
	}
	introsortLoop(c, s, depthLimit(len(s)))
	insertionSort(s[:min(len(s), smallSort)])
	poll := c.Poller()
	for i := smallSort; i < len(s); i++ {
		poll.Done(1)
		insertLast(s[:i+1])
	}
}

func introsortLoop[K key](c *kernels.Ctx, s []pair[K], limit int) {
	for ; len(s) > smallSort; limit-- {
		if limit == 0 {
			partialSort(c, s, len(s))
			return
		}
		cut := partition(c, s)
		introsortLoop(c, s[cut:], limit-1)
		s = s[:cut]
	}
}

// partition splits s, of at least 4 pairs, by the median of three of them, which it
// moves to the front.
func partition[K key](c *kernels.Ctx, s []pair[K]) int {
	if len(s) >= kernels.PollBlock {
		c.Poll()
	}
	medianFirst(s, 1, len(s)/2, len(s)-1)
	lo, hi, pivot := 1, len(s), s[0]
	for {
		for s[lo].before(pivot) {
			lo++
		}
		hi--
		for pivot.before(s[hi]) {
			hi--
		}
		if lo >= hi {
			return lo
		}
		s[lo], s[hi] = s[hi], s[lo]
		lo++
	}
}

// medianFirst swaps the median of pairs a, b and c with the first.
func medianFirst[K key](s []pair[K], a, b, c int) {
	if !s[a].before(s[b]) {
		a, b = b, a
	}
	if !s[b].before(s[c]) {
		if b = a; s[a].before(s[c]) {
			b = c
		}
	}
	s[0], s[b] = s[b], s[0]
}

func insertionSort[K key](s []pair[K]) {
	for i := 1; i < len(s); i++ {
		if s[i].before(s[0]) {
			p := s[i]
			copy(s[1:], s[:i])
			s[0] = p
			continue
		}
		insertLast(s[:i+1])
	}
}

// insertLast moves the last pair to its place among the others, which are in order
// and not all after it.
func insertLast[K key](s []pair[K]) {
	i := len(s) - 1
	p := s[i]
	for ; p.before(s[i-1]); i-- {
		s[i] = s[i-1]
	}
	s[i] = p
}

// partialSort moves the k least pairs in order to the front.
func partialSort[K key](c *kernels.Ctx, s []pair[K], k int) {
	heapSelect(c, s, k)
	sortHeap(c, s[:k])
}

// sortHeap sorts a heap.
func sortHeap[K key](c *kernels.Ctx, s []pair[K]) {
	poll := c.Poller()
	for i := len(s) - 1; i > 0; i-- {
		poll.Done(1)
		p := s[i]
		s[i] = s[0]
		siftDown(s[:i], 0, p)
	}
}

// heapSelect arranges the k least pairs as a heap with the greatest on top.
func heapSelect[K key](c *kernels.Ctx, s []pair[K], k int) {
	makeHeap(c, s[:k])
	poll := c.Poller()
	for i := k; i < len(s); i++ {
		poll.Done(1)
		if s[i].before(s[0]) {
			p := s[i]
			s[i] = s[0]
			siftDown(s[:k], 0, p)
		}
	}
}

func makeHeap[K key](c *kernels.Ctx, s []pair[K]) {
	poll := c.Poller()
	for i := len(s)/2 - 1; i >= 0; i-- {
		poll.Done(1)
		siftDown(s, i, s[i])
	}
}

// siftDown inserts p into the heap, whose element hole is free: the hole moves down to the bottom and p up from
// there.
func siftDown[K key](heap []pair[K], hole int, p pair[K]) {
	top := hole
	for 2*hole+2 < len(heap) {
		child := 2*hole + 2
		if heap[child].before(heap[child-1]) {
			child--
		}
		heap[hole] = heap[child]
		hole = child
	}
	if child := 2*hole + 1; child < len(heap) {
		heap[hole] = heap[child]
		hole = child
	}
	for hole > top {
		parent := (hole - 1) / 2
		if !heap[parent].before(p) {
			break
		}
		heap[hole] = heap[parent]
		hole = parent
	}
	heap[hole] = p
}

// key is the unsigned type of the keys of elements of at most 32 bits, or of 64.
type key interface{ uint32 | uint64 }
