package graph

import (
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

const (
	ReleaseBytes        = 16 << 10 // smaller filters are not released
	MaxReleaseConstants = 4096     // graphs with more constants are not searched for overlaps
)

// Releasable is a filter of which only the packed form is needed.
type Releasable struct {
	Value  *Value
	Scales []byte // of groups, released with the filter; nil if they are not
}

// OwnFilters returns, by address, the filters that only one node reads and that share no bytes.
func (g *Graph) OwnFilters() map[xnn.Address]Releasable {
	readers := g.Readers()
	all := g.ConstantsRead(readers)
	if len(all) > MaxReleaseConstants {
		return nil
	}
	found := make(map[xnn.Address]Releasable)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if !n.Type.PacksFilter() || readers[n.In[1]] != 1 {
			continue
		}
		x := &g.Values[n.In[1]]
		if !x.IsConst() || x.Lent || len(x.Data) < ReleaseBytes || !isAlone(x.Data, all) {
			continue
		}
		r := Releasable{Value: x, Scales: tensor.BytesOf(x.Quant.Blocks)}
		if len(r.Scales) < ReleaseBytes || !isAlone(r.Scales, all) {
			r.Scales = nil
		}
		found[xnn.AddressOf(x.Data)] = r
	}
	return found
}

// ConstantsRead returns the bytes of the constants that nodes read, and of their scales.
func (g *Graph) ConstantsRead(readers []int) (all [][]byte) {
	for v := range g.Values {
		x := &g.Values[v]
		if readers[v] == 0 || !x.IsConst() {
			continue
		}
		all = append(all, x.Data)
		for _, scales := range [][]byte{tensor.BytesOf(x.Quant.Scales), tensor.BytesOf(x.Quant.Blocks)} {
			if len(scales) > 0 {
				all = append(all, scales)
			}
		}
	}
	return all
}

// discard releases the memory of a filter that lowering created. It reports whether it was one.
func (g *Graph) discard(data []byte) bool {
	for _, own := range g.Own {
		if cpu.Contains(own, data) {
			cpu.Discard(data)
			return true
		}
	}
	return false
}

// DiscardOr returns a function that releases filters that lowering created, and calls release for
// others.
func (g *Graph) DiscardOr(release func([]byte) bool) func([]byte) bool {
	return func(data []byte) bool {
		return g.discard(data) || release != nil && release(data)
	}
}

// PacksFilter reports whether the library stores the filter of such nodes in packed form only,
// shared by all runtimes. A depthwise filter is packed by each runtime.
func (t *NodeType) PacksFilter() bool {
	return t.Tag == TagConv2d || t.Tag == TagConvTranspose2d || t.Tag == TagFullyConnected
}

// isAlone reports whether data, which is one of all, overlaps no other of them.
func isAlone(data []byte, all [][]byte) bool {
	n := 0
	for _, other := range all {
		if cpu.Overlap(data, other) {
			n++
		}
	}
	return n == 1
}
