package xnnpack

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
)

// places contains the items of intermediate values and their offsets in an arena.
type places struct {
	shapes []shape // for which it was computed
	index  []int   // by value: its item, or none for values stored elsewhere
	items  []item
	bytes  int64
}

// placesFor computes the places at the given shapes.
func placesFor(g *graph, s []shape) *places {
	packed, index := g.items(s, func(v int) int64 { return lineUp(int64(g.Values[v].Datatype.bytes(s[v])) + overread) }, true)
	p := &places{shapes: s, index: index, items: make([]item, len(packed)), bytes: packedBest(packed)}
	for _, it := range packed {
		p.items[it.id] = it
	}
	return p
}

// fit reports whether the places are for the given shapes.
func (p *places) fit(s []shape) bool { return p != nil && slices.Equal(p.shapes, s) }

// cut returns the bytes of the items in an arena.
func (p *places) cut(arena []byte) [][]byte {
	list := make([][]byte, len(p.items))
	for i, it := range p.items {
		list[i] = arena[it.offset:][:it.bytes]
	}
	return list
}

// maxBlocks is the largest number of intermediate values for which the method's memory plan has
// places.
const maxBlocks = 1 << 10

// Workspace implements delegate.Planned: in the Go engine, nodes are moments, each intermediate value
// has a block, and the last block is the working memory of the nodes. Values that are shown are read
// after the call.
func (m *image) Workspace() *delegate.Workspace {
	if own, ok := m.by.(*goImage); ok {
		return own.workspace()
	}
	return nil
}

func (m *goImage) workspace() *delegate.Workspace {
	p, g := m.places, m.graph
	if m.shown || len(g.Nodes) == 0 || len(p.items) >= maxBlocks {
		return nil
	}
	w := &delegate.Workspace{Moments: len(g.Nodes), Blocks: make([]delegate.Block, 0, len(p.items)+1), Args: argSpans(g)}
	for _, it := range p.items {
		w.Blocks = append(w.Blocks, delegate.Block{Bytes: it.bytes, Span: delegate.Span{First: it.first, Last: it.last}})
	}
	w.Blocks = append(w.Blocks, workBlock(g, p.shapes, m.instanceThreads()))
	return w
}

// workBlock returns the block of the nodes' working memory, from the first to the last node that uses it
// at the given shapes.
func workBlock(g *graph, s []shape, threads int) delegate.Block {
	w, last := workAt(g, s, threads), len(g.Nodes)-1
	if w.used.Last < w.used.First {
		return delegate.Block{Span: delegate.Span{First: last, Last: last}}
	}
	return delegate.Block{Bytes: w.shared(threads), Span: w.used}
}

// argSpans returns the nodes between which the bytes of each argument are used: inputs from the first
// node, outputs to the last.
func argSpans(g *graph) []delegate.Span {
	spans, last := make([]delegate.Span, len(g.Args)), len(g.Nodes)-1
	for k, v := range g.Args {
		if !g.Values[v].Input {
			spans[k] = delegate.Span{First: last, Last: last}
		}
	}
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			if v != none && g.Values[v].Arg != none && g.Values[v].Input {
				spans[g.Values[v].Arg].Last = i
			}
		}
		for _, v := range g.Nodes[i].Out {
			if k := g.Values[v].Arg; k != none {
				spans[k].First = min(spans[k].First, i)
			}
		}
	}
	return spans
}

// suit reports whether blocks suit a unit at shapes s: there is one for each item, values fit in them
// and values that share a block have the same size. The caller of the unit may provide fewer or
// shorter blocks than declared.
func (p *places) suit(g *graph, s []shape, blocks [][]byte) bool {
	if p == nil || len(blocks) != len(p.items) {
		return false
	}
	sizes := make([]int, len(p.items))
	for v, at := range p.index {
		if at == none {
			continue
		}
		n := g.Values[v].Datatype.bytes(s[v])
		if sizes[at] > 0 && sizes[at] != n || n+overread > len(blocks[at]) {
			return false
		}
		sizes[at] = n
	}
	return true
}
