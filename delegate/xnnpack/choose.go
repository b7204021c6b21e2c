package xnnpack

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
	"github.com/etrun-go/etrun/hal/cpu"
)

// manyMultiplications is the work from which the Go engine runs a graph: below it the library takes less time for each node.
const manyMultiplications = 30000

// whyGo returns why the Go engine runs a graph, or "" for the library, see docs/rationale.md. bytes means that it has 8-bit products,
// tiles that the library computes these in tiles of AMX.
func whyGo(multiplications float64, bytes, tiles bool) string {
	switch {
	case multiplications >= manyMultiplications:
		return fmt.Sprintf("%.0f multiplications, at least %d", multiplications, manyMultiplications)
	case bytes && tiles:
		return "8-bit products, which are too small for the library's tiles"
	}
	return ""
}

// multipliesBytes reports whether a graph has 8-bit products with weights.
func multipliesBytes(g *graph.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n graph.Node) bool {
		return (n.Type.Convolution || n.Type.Tag == graph.TagFullyConnected) && g.Values[n.In[0]].Datatype.Info().Bits == 8
	})
}

// choose prepares the image for the Go engine if there is a reason; done is false if the library
// should run it. A library whose location was specified must exist in any case.
func (b Backend) choose(ctx context.Context, m *image) (done bool, err error) {
	if b.Engine != EngineAuto {
		return false, nil
	}
	if xnn.Named(b.Library) && !xnn.Found(b.Library) {
		if _, err := xnn.Open(b.Library); err != nil {
			return false, &delegate.Error{Backend: ID, Reason: delegate.ErrMissing, Err: err}
		}
	}
	m.whyGo = cmp.Or(native.Miscomputed(m.Graph, xnn.Locate(b.Library), m.Shapes, false),
		whyGo(m.cost, multipliesBytes(m.Graph), cpu.ReadHardware().AMXInt8))
	if m.whyGo == "" {
		return false, nil
	}
	if _, err = b.openGo(ctx, m); ctx.Err() != nil {
		return false, err
	}
	return err == nil, nil
}

// openGo compiles the graph for the Go engine.
func (b Backend) openGo(ctx context.Context, m *image) (delegate.Image, error) {
	own, err := goengine.NewImage(ctx, m.Compilation, b.cache())
	if err != nil {
		return nil, err
	}
	m.Compilation, m.by, m.cacheNote = own.Compilation, own, own.CacheNote
	return m, nil
}

// cache returns the cache of packed weights.
func (b Backend) cache() graph.WeightsCache {
	return graph.WeightsCache{Folder: b.WeightsCache, Map: b.MapWeights}
}
