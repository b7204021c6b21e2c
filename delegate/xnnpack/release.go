package xnnpack

import (
	"slices"
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// The memory of filters is released once the library has packed them. If they are large, each is
// released before the next is packed, so that at most one filter at a time is in memory twice.
// That requires that the filter is not read again: the library
// packs for all runtimes of an image at once, the Go engine never runs what the native one does,
// and no other node has the filter.
const (
	releaseBytes        = 16 << 10 // smaller filters are not released
	maxReleaseConstants = 4096     // graphs with more constants are not searched for overlaps
)

// keptBytes is the size of filters that may be in memory twice while the library creates the first runtime: the
// Go engine can run the graph if that fails. Tests set it.
var keptBytes int64 = 64 << 20

// releasable is a filter of which only the packed form is needed.
type releasable struct {
	value  *value
	scales []byte // of groups, released with the filter; nil if they are not
}

// releasable returns the filters of the image that may be released, by address.
func (m *nativeImage) releasable() map[xnn.Address]releasable {
	if m.checked || !m.region && (len(m.args) == 0 || !areStatic(m.args) && !m.graph.staysNative()) {
		return nil
	}
	return m.graph.ownFilters()
}

// releaseUnread releases the constants of a region's calls that the image does not read, because it
// has its own copy of them.
func (m *image) releaseUnread(g *delegate.Graph) {
	read := m.graph.constantsRead(m.graph.readers())
	if g.Release == nil || len(read) > maxReleaseConstants || len(g.Values) > 16*maxReleaseConstants {
		return
	}
	for i := range g.Values {
		v := &g.Values[i]
		if v.Kind == tensor.KindTensor && len(v.Data) >= releaseBytes &&
			!slices.ContainsFunc(read, func(b []byte) bool { return cpu.Overlap(b, v.Data) }) {
			g.Release(v.Data)
		}
	}
}

// releaseFilters returns a function that releases the filter of a node that the Go engine has
// packed.
func (m *goImage) releaseFilters() func(*node) {
	if m.release == nil || len(m.args) == 0 && !m.region {
		return func(*node) {}
	}
	own := m.graph.ownFilters()
	return func(n *node) {
		if r, ok := own[xnn.AddressOf(m.graph.Values[n.In[1]].Data)]; ok && n.Type.packsFilter() {
			m.release(r.value.Data)
		}
	}
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

// standInScales returns n group scales, all 1. The library reads the scales of every filter that is
// defined, although it uses the packed filter unchanged.
func standInScales(n int) []uint16 {
	standIn.Lock()
	defer standIn.Unlock()
	if len(standIn.ones) < n {
		standIn.ones = slices.Repeat([]uint16{0x3f80}, n) // bfloat16
	}
	return standIn.ones[:n:n]
}

var standIn struct {
	sync.Mutex
	ones []uint16
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

// staysNative reports whether the library supports the graph at all sizes up to the declared ones
// if it supports it at those.
func (g *graph) staysNative() bool {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.native().bySize || n.Type.tag == tagFullyConnected && n.Flags&flagReshape2D != 0 {
			return false
		}
	}
	return true
}

func isDynamic(a *delegate.ArgSpec) bool { return a == nil || a.Dynamism != tensor.Static }

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
