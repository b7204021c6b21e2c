package goengine

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// placement contains the items of intermediate values and their offsets in an arena.
type placement struct {
	shapes []graph.Shape // for which it was computed
	index  []int         // by value: its item, or none for values stored elsewhere
	items  []graph.Item
	bytes  int64
}

// placesFor computes the places at the given shapes.
func placesFor(g *graph.Graph, s []graph.Shape) *placement {
	list, index := g.Items(s, func(v int) int64 { return graph.AlignUp(int64(g.Values[v].Datatype.Bytes(s[v])) + overread) }, true)
	p := &placement{shapes: s, index: index, items: list}
	p.bytes = p.pack()
	return p
}

// pack assigns the offsets. Sizes whose sum is close to the largest number are not packed: no limit permits them.
func (p *placement) pack() (size int64) {
	items := make([]pack.Item, len(p.items))
	for i, it := range p.items {
		items[i] = pack.Item{Bytes: it.Bytes, First: it.First, Last: it.Last, Align: tensor.Alignment}
		size = graph.Plus(size, it.Bytes)
	}
	if size >= math.MaxInt64/4 {
		return size
	}
	layout := pack.Quick(items)
	for i, offset := range layout.Offsets {
		p.items[i].Offset = offset
	}
	return layout.Size
}

// isFor reports whether the places are for the given shapes.
func (p *placement) isFor(s []graph.Shape) bool { return p != nil && slices.Equal(p.shapes, s) }

// cut returns the bytes of the items in an arena.
func (p *placement) cut(arena []byte) [][]byte {
	list := make([][]byte, len(p.items))
	for i, it := range p.items {
		list[i] = arena[it.Offset:][:it.Bytes]
	}
	return list
}

// maxBlocks is the largest number of intermediate values for which the method's memory plan has
// places.
const maxBlocks = 1 << 10

// argSpans returns the nodes between which the bytes of each argument are used: inputs from the first
// node, outputs to the last.
func argSpans(g *graph.Graph) []lowering.Span {
	spans, last := make([]lowering.Span, len(g.Args)), len(g.Nodes)-1
	for k, v := range g.Args {
		if !g.Values[v].Input {
			spans[k] = lowering.Span{First: last, Last: last}
		}
	}
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			if v != graph.None && g.Values[v].Arg != graph.None && g.Values[v].Input {
				spans[g.Values[v].Arg].Last = i
			}
		}
		for _, v := range g.Nodes[i].Out {
			if k := g.Values[v].Arg; k != graph.None {
				spans[k].First = min(spans[k].First, i)
			}
		}
	}
	return spans
}

// matches reports whether blocks suit a unit at shapes s: there is one for each item, values fit in them
// and values that share a block have the same size. The caller of the unit may provide fewer or
// shorter blocks than declared.
func (p *placement) matches(g *graph.Graph, s []graph.Shape, blocks [][]byte) bool {
	if p == nil || len(blocks) != len(p.items) {
		return false
	}
	sizes := make([]int, len(p.items))
	for v, at := range p.index {
		if at == graph.None {
			continue
		}
		n := g.Values[v].Datatype.Bytes(s[v])
		if sizes[at] > 0 && sizes[at] != n || n+overread > len(blocks[at]) {
			return false
		}
		sizes[at] = n
	}
	return true
}
