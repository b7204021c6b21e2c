package xnnpack

import (
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

const (
	releaseBytes        = 16 << 10 // smaller filters are not released
	maxReleaseConstants = 4096     // graphs with more constants are not searched for overlaps
)

// releasable is a filter of which only the packed form is needed.
type releasable struct {
	value  *value
	scales []byte // of groups, released with the filter; nil if they are not
}

// ownFilters returns, by address, the filters that only one node reads and that share no bytes.
func (g *graph) ownFilters() map[xnn.Address]releasable {
	readers := g.readers()
	all := g.constantsRead(readers)
	if len(all) > maxReleaseConstants {
		return nil
	}
	found := make(map[xnn.Address]releasable)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if !n.Type.packsFilter() || readers[n.In[1]] != 1 {
			continue
		}
		x := &g.Values[n.In[1]]
		if !x.isConst() || len(x.Data) < releaseBytes || !isAlone(x.Data, all) {
			continue
		}
		r := releasable{value: x, scales: tensor.BytesOf(x.Quant.Blocks)}
		if len(r.scales) < releaseBytes || !isAlone(r.scales, all) {
			r.scales = nil
		}
		found[xnn.AddressOf(x.Data)] = r
	}
	return found
}

// constantsRead returns the bytes of the constants that nodes read, and of their scales.
func (g *graph) constantsRead(readers []int) (all [][]byte) {
	for v := range g.Values {
		x := &g.Values[v]
		if readers[v] == 0 || !x.isConst() {
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
func (g *graph) discard(data []byte) bool {
	for _, own := range g.own {
		if cpu.Contains(own, data) {
			cpu.Discard(data)
			return true
		}
	}
	return false
}

// discardOr returns a function that releases filters that lowering created, and calls release for
// others.
func (g *graph) discardOr(release func([]byte) bool) func([]byte) bool {
	return func(data []byte) bool {
		return g.discard(data) || release != nil && release(data)
	}
}

// packsFilter reports whether the library stores the filter of such nodes in packed form only,
// shared by all runtimes. A depthwise filter is packed by each runtime.
func (t *nodeType) packsFilter() bool {
	return t.tag == tagConv2d || t.tag == tagConvTranspose2d || t.tag == tagFullyConnected
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
