package interpreter

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// places are the places of tensors in a unit's memory.
type places struct {
	items  []pack.Item
	item   []int // by value, -1 for none
	layout pack.Layout
}

// place places each tensor that a call writes and that is not an argument. It is live until the last
// call that reads it or a view of it.
func place(g *lowering.Graph) places {
	p := placer{places: places{item: slices.Repeat([]int{-1}, len(g.Values))}, g: g, last: make([]int, len(g.Values)), root: make([]int, len(g.Values))}
	p.setLast()
	for i := range g.Calls {
		for _, v := range g.Writes(nil, i) {
			if p.root[v] == v && p.item[v] == -1 && !slices.Contains(g.Outputs, v) {
				p.item[v] = len(p.items)
				p.items = append(p.items, pack.Item{Bytes: g.Values[v].NBytes(), First: i, Last: p.last[v], Align: tensor.Alignment})
			}
		}
	}
	p.layout = pack.Pack(p.items)
	return p.places
}

// cut returns the memory of a value, nil if it has none.
func (p *places) cut(memory []byte, v int) []byte {
	i := p.item[v]
	if i < 0 {
		return nil
	}
	return memory[p.layout.Offsets[i]:][:p.items[i].Bytes:p.items[i].Bytes]
}

type placer struct {
	places
	g    *lowering.Graph
	last []int // by tensor: the last call that needs its bytes
	root []int // by tensor: the tensor whose memory it uses, itself if its own
}

// setLast computes the last use of each tensor's memory.
func (p *placer) setLast() {
	for v := range p.g.Values {
		p.root[v] = v
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
