package native

import (
	"slices"
	"sync"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// The memory of filters is released once the library has packed them. If they are large, each is
// released before the next is packed, so that at most one filter at a time is in memory twice.
// That requires that the filter is not read again: the library
// packs for all runtimes of an image at once, the Go engine never runs what the native one does,
// and no other node has the filter.

// keptBytes is the size of filters that may be in memory twice while the library creates the first runtime: the
// Go engine can run the graph if that fails. Tests set it.
var keptBytes int64 = 64 << 20

// placeholderScales returns n group scales, all 1. The library reads the scales of every filter that is
// defined, although it uses the packed filter unchanged.
func placeholderScales(n int) []uint16 {
	placeholders.Lock()
	defer placeholders.Unlock()
	if len(placeholders.ones) < n {
		placeholders.ones = slices.Repeat([]uint16{0x3f80}, n) // bfloat16
	}
	return placeholders.ones[:n:n]
}

var placeholders struct {
	sync.Mutex
	ones []uint16
}

// staysNative reports whether the library supports the graph at all sizes up to the declared ones
// if it supports it at those.
func staysNative(g *graph.Graph) bool {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if typeOf(n).bySize || n.Type.Tag == graph.TagFullyConnected && n.Flags&graph.FlagReshape2D != 0 {
			return false
		}
	}
	return true
}
