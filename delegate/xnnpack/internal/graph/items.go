package graph

import (
	"math"
	"slices"
	"sort"
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

// MaxPlanned is the number of nodes up to which the library's plan, which takes quadratic time, is computed.
const MaxPlanned = 1 << 13

// PlannedBytes assigns the offsets as the library does: the largest item first, each in the smallest gap. Its arena is
// as large as that plan, which is larger than one of internal/pack.
func PlannedBytes(list []Item) (size int64) {
	sort.SliceStable(list, func(i, k int) bool { return list[i].Bytes > list[k].Bytes })
	var live []Item
	for i := range list {
		live = live[:0]
		for _, other := range list[:i] {
			if other.First <= list[i].Last && list[i].First <= other.Last {
				live = append(live, other)
			}
		}
		list[i].Offset = gap(live, list[i].Bytes)
		size = max(size, Plus(list[i].Offset, list[i].Bytes))
	}
	return size
}

// gap returns the offset of the smallest gap of at least bytes between live items, or the end of
// the last item if there is none. The library does not use the gap below the first item.
func gap(live []Item, bytes int64) int64 {
	sort.SliceStable(live, func(i, k int) bool { return live[i].Offset < live[k].Offset })
	best, smallest, end := int64(-1), int64(math.MaxInt64), int64(0)
	for i, it := range live {
		if free := it.Offset - end; i > 0 && free >= bytes && free < smallest {
			best, smallest = end, free
		}
		end = max(end, it.Offset+it.Bytes)
	}
	if best < 0 {
		return end
	}
	return best
}
