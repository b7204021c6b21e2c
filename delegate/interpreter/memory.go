package interpreter

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
)

// places assigns tensors to blocks of a unit's memory.
type places struct {
	sizes []int64 // of the blocks
	block []int   // by value, -1 for none
}

// place assigns a block to each tensor that a call writes and that is not an argument: the smallest
// free block that is large enough, else the largest free one, which grows, else a new one. A block
// is free after the last call that reads the tensor or a view of it.
func place(g *lowering.Graph) places {
	p := placer{places: places{block: make([]int, len(g.Values))}, g: g, last: make([]int, len(g.Values)), root: make([]int, len(g.Values))}
	p.setLast()
	var ends []int // tensors with a block
	for i := range g.Calls {
		for _, v := range g.Writes(nil, i) {
			if p.root[v] == v && p.block[v] == -1 && !slices.Contains(g.Outputs, v) {
				p.take(v)
				ends = append(ends, v)
			}
		}
		ends = slices.DeleteFunc(ends, func(v int) bool {
			if p.last[v] > i {
				return false
			}
			p.free = append(p.free, p.block[v])
			return true
		})
	}
	return p.places
}

type placer struct {
	places
	g    *lowering.Graph
	last []int // by tensor: the last call that needs its bytes
	root []int // by tensor: the tensor whose memory it uses, itself if its own
	free []int // blocks
}

// setLast computes the last use of each tensor's memory.
func (p *placer) setLast() {
	for v := range p.g.Values {
		p.block[v], p.root[v] = -1, v
	}
	for i := range p.g.Calls {
		c := &p.g.Calls[i]
		written := p.g.Writes(nil, i)
		if c.View || c.Sig.Result != nil {
			p.root[written[0]] = p.root[p.g.Reads(nil, i)[0]]
		}
		for _, v := range slices.Concat(p.g.Reads(nil, i), written) {
			p.last[p.root[v]] = i
		}
	}
}

// take assigns a block to a tensor.
func (p *placer) take(v int) {
	want := p.g.Values[v].NBytes()
	best := -1
	for k, b := range p.free {
		switch {
		case best < 0:
			best = k
		case p.sizes[b] >= want:
			if old := p.sizes[p.free[best]]; old < want || old > p.sizes[b] {
				best = k
			}
		case p.sizes[p.free[best]] < p.sizes[b]:
			best = k
		}
	}
	if best < 0 {
		p.block[v] = len(p.sizes)
		p.sizes = append(p.sizes, want)
		return
	}
	b := p.free[best]
	p.free = slices.Delete(p.free, best, best+1)
	p.block[v], p.sizes[b] = b, max(p.sizes[b], want)
}
