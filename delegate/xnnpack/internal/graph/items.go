package graph

import (
	"cmp"
	"math"
	"slices"
)

// Item is a value between nodes, from the node that writes it to the last node that reads it.
type Item struct {
	Bytes       int64
	First, Last int
	Offset      int64
	ID          int // its index before items were sorted
}

// Items lists the values between nodes, and by value the index of its item, or none. bytes returns the size of a value.
// With InPlace, the output of an elementwise node shares the item of an operand of the same size that nothing else
// reads.
func (g *Graph) Items(s []Shape, bytes func(v int) int64, inPlace bool) (list []Item, index []int) {
	list, index = make([]Item, 0, len(g.Nodes)), slices.Repeat([]int{None}, len(g.Values))
	var readers []int
	if inPlace {
		readers = g.Readers()
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, v := range n.In {
			if v != None && index[v] != None {
				list[index[v]].Last = i
			}
		}
		for _, v := range n.Out {
			if g.Values[v].Arg != None {
				continue
			}
			size := bytes(v)
			if inPlace {
				if at := g.reused(n, v, s, index, readers); at != None && list[at].Bytes == size {
					index[v] = at
					continue
				}
			}
			index[v] = len(list)
			list = append(list, Item{Bytes: size, First: i, Last: i, ID: len(list)})
		}
	}
	return list, index
}

// reused returns the item of an operand of exactly the size of a node's output v, whose memory v
// may use; none if there is no such item.
func (g *Graph) reused(n *Node, v int, s []Shape, index, readers []int) int {
	if !n.Type.InPlace || readers[v] != 1 {
		return None
	}
	for _, in := range n.In {
		if in == None || index[in] == None || readers[in] != 1 {
			continue
		}
		if g.Values[in].Datatype.Bytes(s[in]) == g.Values[v].Datatype.Bytes(s[v]) {
			return index[in]
		}
	}
	return None
}

// MaxPlanned is the number of values up to which their memory is planned in quadratic time.
const MaxPlanned = 1 << 13

// BySize and byFirst are orders of packing.
func BySize(a, b Item) int { return cmp.Compare(b.Bytes, a.Bytes) }
func byFirst(a, b Item) int {
	return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(b.Bytes, a.Bytes))
}

// PackedBest assigns the offsets for the Go engine: those of the better order. That takes quadratic
// time, so lists that the library does not plan are packed in another way.
func PackedBest(list []Item) (size int64) {
	if len(list) > MaxPlanned {
		return PackedInOrder(list)
	}
	other := slices.Clone(list)
	size = PackedBytes(list, BySize, false)
	if n := PackedBytes(other, byFirst, false); n < size {
		copy(list, other)
		return n
	}
	return size
}

// PackedBytes assigns the offsets. The library uses no gap below the first item, as apart says.
func PackedBytes(list []Item, order func(a, b Item) int, apart bool) (size int64) {
	slices.SortStableFunc(list, order)
	var live []Item
	for i := range list {
		live = live[:0]
		for _, other := range list[:i] {
			if other.First <= list[i].Last && list[i].First <= other.Last {
				live = append(live, other)
			}
		}
		list[i].Offset = gap(live, list[i].Bytes, apart)
		size = max(size, Plus(list[i].Offset, list[i].Bytes))
	}
	return size
}

// PackedInOrder assigns offsets in the order of the nodes. An item takes the memory of one of the
// same size whose life has ended, or else new memory.
func PackedInOrder(list []Item) (size int64) {
	begins, ends := make([]int, len(list)), make([]int, len(list))
	for i := range list {
		begins[i], ends[i] = i, i
	}
	slices.SortFunc(begins, func(a, b int) int { return list[a].First - list[b].First })
	slices.SortFunc(ends, func(a, b int) int { return list[a].Last - list[b].Last })
	free := map[int64][]int64{} // offsets, by size
	for _, i := range begins {
		it := &list[i]
		for ; list[ends[0]].Last < it.First; ends = ends[1:] {
			over := &list[ends[0]]
			free[over.Bytes] = append(free[over.Bytes], over.Offset)
		}
		if same := free[it.Bytes]; len(same) > 0 {
			it.Offset, free[it.Bytes] = same[len(same)-1], same[:len(same)-1]
			continue
		}
		it.Offset, size = size, Plus(size, it.Bytes)
	}
	return size
}

// gap returns the offset of the smallest gap of at least bytes between live items, or the end of
// the last item if there is none. If apart is set, it does not use the gap below the first item.
func gap(live []Item, bytes int64, apart bool) int64 {
	slices.SortStableFunc(live, func(a, b Item) int { return cmp.Compare(a.Offset, b.Offset) })
	best, smallest, end := int64(-1), int64(math.MaxInt64), int64(0)
	for i, it := range live {
		if free := it.Offset - end; (i > 0 || !apart) && free >= bytes && free < smallest {
			best, smallest = end, free
		}
		end = max(end, it.Offset+it.Bytes)
	}
	if best < 0 {
		return end
	}
	return best
}
