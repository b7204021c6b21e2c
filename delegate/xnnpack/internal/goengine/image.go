package goengine

import (
	"context"
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// Image is a graph that the Go engine runs, or the calls that the library does not run.
type Image struct {
	*graph.Compilation
	places    *Places     // of values between nodes, at the declared sizes; nil if units plan their own
	memory    graph.Needs // at the declared sizes
	PackOnce  sync.Once
	Packed    *packed // nil until the constants are packed
	CacheNote string  // where the packed constants are, if a cache is requested
}

// NewImage fuses the graph, plans its memory and packs its constants, or reads them from the cache.
func NewImage(ctx context.Context, c *graph.Compilation, cache graph.WeightsCache) (*Image, error) {
	m := &Image{Compilation: c}
	fuseTables(m.Graph, m.Shapes)
	fuseFunctions(m.Graph, m.Shapes)
	if err := checkPools(m.Graph, m.Shapes); err != nil {
		return nil, err
	}
	m.places = placesFor(m.Graph, m.Shapes)
	m.memory = NeedsOf(m.Graph, m.places, m.InstanceThreads())
	if err := m.memory.Check(m.Limits); err != nil {
		return nil, err
	}
	packed, note, err := m.packCached(ctx, cache)
	if err != nil {
		return nil, err
	}
	m.CacheNote = note
	m.PackOnce.Do(func() { m.Packed = packed })
	return m, nil
}

// constants returns the packed constants. Where the library runs the graph, they are packed for the first call that it
// does not run.
func (m *Image) constants() *packed {
	m.PackOnce.Do(func() {
		m.Packed, _ = PackConstants(context.Background(), m.Graph, m.Shapes, m.InstanceThreads(), func(*graph.Node) bool { return false })
	})
	return m.Packed
}

// Name returns the name of the engine.
func (m *Image) Name() string { return "go" }

// Unit creates a unit.
func (m *Image) Unit(in delegate.Instance) (delegate.Unit, error) { return NewUnit(m, in), nil }

// Needs returns the memory at the declared sizes.
func (m *Image) Needs() graph.Needs { return m.memory }

// Facts returns nothing: the engine has no facts of its own.
func (m *Image) Facts() [][2]string { return nil }

// Close frees the packed constants.
func (m *Image) Close() {
	if m.Packed != nil {
		m.Packed.Memory.Close()
	}
}

// releaseFilters returns a function that releases the filter of a node that the Go engine has packed, and reports
// whether it did.
func (m *Image) releaseFilters() func(*graph.Node) bool {
	if m.Release == nil || len(m.Args) == 0 && !m.Region {
		return func(*graph.Node) bool { return false }
	}
	own := m.Graph.OwnFilters()
	return func(n *graph.Node) bool {
		r, ok := own[xnn.AddressOf(m.Graph.Values[n.In[1]].Data)]
		return ok && n.Type.PacksFilter() && m.Release(r.Value.Data)
	}
}
