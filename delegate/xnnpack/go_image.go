package xnnpack

import (
	"context"
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
)

// goImage is a graph that the Go engine runs, or the calls that the library does not run.
type goImage struct {
	*compilation
	places   *places // of values between nodes, at the declared sizes; nil if units plan their own
	memory   needs   // at the declared sizes
	packOnce sync.Once
	packed   *packed // nil until the constants are packed
}

// newGoImage fuses the graph, plans its memory and packs its constants.
func newGoImage(ctx context.Context, c *compilation) (*goImage, error) {
	m := &goImage{compilation: c}
	fuseTables(m.graph, m.shapes)
	fuseFunctions(m.graph, m.shapes)
	if err := checkPools(m.graph, m.shapes); err != nil {
		return nil, err
	}
	m.places = placesFor(m.graph, m.shapes)
	m.memory = referenceNeeds(m.graph, m.places, m.instanceThreads())
	if err := m.memory.check(m.limits); err != nil {
		return nil, err
	}
	packed, err := packConstants(m.graph, ctx, m.shapes, m.instanceThreads(), m.releaseFilters())
	if err != nil {
		return nil, err
	}
	m.packOnce.Do(func() { m.packed = packed })
	return m, nil
}

// constants returns the packed constants. Where the library runs the graph, they are packed for the first call that it
// does not run.
func (m *goImage) constants() *packed {
	m.packOnce.Do(func() {
		m.packed, _ = packConstants(m.graph, context.Background(), m.shapes, m.instanceThreads(), func(*node) bool { return false })
	})
	return m.packed
}

func (m *goImage) name() string { return "go" }

func (m *goImage) unit(in delegate.Instance) (delegate.Unit, error) { return newReference(m, in), nil }

func (m *goImage) needs() needs { return m.memory }

func (m *goImage) facts() [][2]string { return nil }

func (m *goImage) close() {
	if m.packed != nil {
		m.packed.memory.close()
	}
}

// releaseFilters returns a function that releases the filter of a node that the Go engine has packed, and reports
// whether it did.
func (m *goImage) releaseFilters() func(*node) bool {
	if m.release == nil || len(m.args) == 0 && !m.region {
		return func(*node) bool { return false }
	}
	own := m.graph.ownFilters()
	return func(n *node) bool {
		r, ok := own[xnn.AddressOf(m.graph.Values[n.In[1]].Data)]
		return ok && n.Type.packsFilter() && m.release(r.value.Data)
	}
}
