package xnnpack

import (
	"cmp"
	"math"
	"slices"
)

// item is a value between nodes, from the node that writes it to the last node that reads it.
type item struct {
	bytes       int64
	first, last int
	offset      int64
	id          int // its index before items were sorted
}

// items lists the values between nodes, and by value the index of its item, or none. bytes returns the size of a value.
// With inPlace, the output of an elementwise node shares the item of an operand of the same size that nothing else
// reads.
func (g *graph) items(s []shape, bytes func(v int) int64, inPlace bool) (list []item, index []int) {
	list, index = make([]item, 0, len(g.Nodes)), slices.Repeat([]int{none}, len(g.Values))
	var readers []int
	if inPlace {
		readers = g.readers()
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, v := range n.In {
			if v != none && index[v] != none {
				list[index[v]].last = i
			}
		}
		for _, v := range n.Out {
			if g.Values[v].Arg != none {
				continue
			}
			size := bytes(v)
			if inPlace {
				if at := g.reused(n, v, s, index, readers); at != none && list[at].bytes == size {
					index[v] = at
					continue
				}
			}
			index[v] = len(list)
			list = append(list, item{bytes: size, first: i, last: i, id: len(list)})
		}
	}
	return list, index
}

// reused returns the item of an operand of exactly the size of a node's output v, whose memory v
// may use; none if there is no such item.
func (g *graph) reused(n *node, v int, s []shape, index, readers []int) int {
	if !n.Type.inPlace || readers[v] != 1 {
		return none
	}
	for _, in := range n.In {
		if in == none || index[in] == none || readers[in] != 1 {
			continue
		}
		if g.Values[in].Datatype.bytes(s[in]) == g.Values[v].Datatype.bytes(s[v]) {
			return index[in]
		}
	}
	return none
}

// maxPlanned is the number of values up to which their memory is planned in quadratic time.
const maxPlanned = 1 << 13

// bySize and byFirst are orders of packing.
func bySize(a, b item) int { return cmp.Compare(b.bytes, a.bytes) }
func byFirst(a, b item) int {
	return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.bytes, a.bytes))
}

// packedBest assigns the offsets for the Go engine: those of the better order. That takes quadratic
// time, so lists that the library does not plan are packed in another way.
func packedBest(list []item) (size int64) {
	if len(list) > maxPlanned {
		return packedInOrder(list)
	}
	other := slices.Clone(list)
	size = packedBytes(list, bySize, false)
	if n := packedBytes(other, byFirst, false); n < size {
		copy(list, other)
		return n
	}
	return size
}

// packedBytes assigns the offsets. The library uses no gap below the first item, as apart says.
func packedBytes(list []item, order func(a, b item) int, apart bool) (size int64) {
	slices.SortStableFunc(list, order)
	var live []item
	for i := range list {
		live = live[:0]
		for _, other := range list[:i] {
			if other.first <= list[i].last && list[i].first <= other.last {
				live = append(live, other)
			}
		}
		list[i].offset = gap(live, list[i].bytes, apart)
		size = max(size, plus(list[i].offset, list[i].bytes))
	}
	return size
}

// packedInOrder assigns offsets in the order of the nodes. An item takes the memory of one of the
// same size whose life has ended, or else new memory.
func packedInOrder(list []item) (size int64) {
	begins, ends := make([]int, len(list)), make([]int, len(list))
	for i := range list {
		begins[i], ends[i] = i, i
	}
	slices.SortFunc(begins, func(a, b int) int { return list[a].first - list[b].first })
	slices.SortFunc(ends, func(a, b int) int { return list[a].last - list[b].last })
	free := map[int64][]int64{} // offsets, by size
	for _, i := range begins {
		it := &list[i]
		for ; list[ends[0]].last < it.first; ends = ends[1:] {
			over := &list[ends[0]]
			free[over.bytes] = append(free[over.bytes], over.offset)
		}
		if same := free[it.bytes]; len(same) > 0 {
			it.offset, free[it.bytes] = same[len(same)-1], same[:len(same)-1]
			continue
		}
		it.offset, size = size, plus(size, it.bytes)
	}
	return size
}

// gap returns the offset of the smallest gap of at least bytes between live items, or the end of
// the last item if there is none. If apart is set, it does not use the gap below the first item.
func gap(live []item, bytes int64, apart bool) int64 {
	slices.SortStableFunc(live, func(a, b item) int { return cmp.Compare(a.offset, b.offset) })
	best, smallest, end := int64(-1), int64(math.MaxInt64), int64(0)
	for i, it := range live {
		if free := it.offset - end; (i > 0 || !apart) && free >= bytes && free < smallest {
			best, smallest = end, free
		}
		end = max(end, it.offset+it.bytes)
	}
	if best < 0 {
		return end
	}
	return best
}
