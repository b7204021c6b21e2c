package goengine

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/floats"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Image is a graph that the Go engine runs, or the calls that the library does not run.
type Image struct {
	*graph.Compilation
	placement *placement  // of values between nodes, at the declared sizes; nil if units plan their own
	memory    graph.Needs // at the declared sizes
	packOnce  sync.Once
	packed    *filters.Packed // nil until the constants are packed
	CacheNote string          // where the packed constants are, if a cache is requested
}

// NewImage fuses the graph, plans its memory and packs its constants, or reads them from the cache. The image has a graph of its
// own: another engine does not know the nodes that fusing makes, nor the functions that it merges into others.
func NewImage(ctx context.Context, c *graph.Compilation, cache graph.WeightsCache) (*Image, error) {
	own := *c
	if !c.Unfused {
		own.Graph, own.Shapes = c.Graph.FusedForGo(c.Shapes, evaluate)
	}
	m := &Image{Compilation: &own}
	if err := floats.CheckPools(m.Graph, m.Shapes); err != nil {
		return nil, err
	}
	m.placement = placementFor(m.Graph, m.Shapes)
	m.memory = needsOf(m.Graph, m.placement, m.InstanceThreads())
	needs := m.memory
	if m.HasDynamicArgs() { // units check the sizes of calls
		needs.Scratch = 0
	}
	if err := needs.Check(m.Limits); err != nil {
		return nil, err
	}
	packed, note, err := m.packCached(ctx, cache)
	if err != nil {
		return nil, err
	}
	m.CacheNote = note
	m.packOnce.Do(func() { m.packed = packed })
	return m, nil
}

// evaluate runs a graph whose values have their declared shapes.
func evaluate(g *graph.Graph, args []*tensor.Value) error {
	m := &Image{Compilation: &graph.Compilation{Graph: g}}
	for i := range g.Values {
		m.Shapes = append(m.Shapes, g.Values[i].Shape)
	}
	return newUnit(m, delegate.Instance{}).Execute(context.Background(), args)
}

// constants returns the packed constants. Where the library runs the graph, they are packed for the first call that it
// does not run.
func (m *Image) constants() *filters.Packed {
	m.packOnce.Do(func() {
		m.packed, _ = filters.NewPacking(m.Graph, m.Shapes, nil).Pack(context.Background(), m.InstanceThreads())
	})
	return m.packed
}

// Name returns the name of the engine.
func (m *Image) Name() string { return "go" }

// Unit creates a unit.
func (m *Image) Unit(in delegate.Instance) (delegate.Unit, error) { return newUnit(m, in), nil }

// Needs returns the memory at the declared sizes.
func (m *Image) Needs() graph.Needs { return m.memory }

// Facts returns nothing: the engine has no facts of its own.
func (m *Image) Facts() [][2]string { return nil }

// Close frees the packed constants.
func (m *Image) Close() {
	if m.packed != nil {
		m.packed.Memory.Close()
	}
}

// releaseFilters returns a function that releases the filter of a node that the Go engine has packed, and reports
// whether it did; nil for none.
func (m *Image) releaseFilters() func(*graph.Node) bool {
	if m.Release == nil || len(m.Args) == 0 && !m.Region {
		return nil
	}
	own := m.Graph.OwnFilters()
	return func(n *graph.Node) bool {
		r, ok := own[xnn.AddressOf(m.Graph.Values[n.In[1]].Data)]
		return ok && n.Type.PacksFilter() && m.Release(r.Value.Data)
	}
}

// Workspace implements lowering.Planned: it returns the values between nodes for the method's memory plan, nil if units plan
// their own.
func (m *Image) Workspace() *lowering.Workspace {
	p, g := m.placement, m.Graph
	if m.Shown || len(g.Nodes) == 0 || len(p.items) >= maxBlocks {
		return nil
	}
	w := &lowering.Workspace{Moments: len(g.Nodes), Blocks: make([]lowering.Block, 0, len(p.items)+1), Args: argSpans(g)}
	for _, it := range p.items {
		w.Blocks = append(w.Blocks, lowering.Block{Bytes: it.Bytes, Span: lowering.Span{First: it.First, Last: it.Last}})
	}
	for _, part := range workAt(g, p.shapes, m.InstanceThreads()).Parts(m.InstanceThreads()) {
		w.Blocks = append(w.Blocks, part.Block)
	}
	return w
}

// packCached packs the constants of an image, or reads the panels from a file of the cache. The note says where they are.
func (m *Image) packCached(ctx context.Context, c graph.WeightsCache) (p *filters.Packed, note string, err error) {
	w := filters.NewPacking(m.Graph, m.Shapes, m.releaseFilters())
	pack := func() (err error) {
		p, err = w.Pack(ctx, m.InstanceThreads())
		return err
	}
	if w.Size < packedLeast {
		c.Folder = ""
	}
	w.Blank = m.DescribeOnly && c.Folder == "" && w.Size >= graph.OwnPages // a file of the cache has all panels
	note, err = c.Use(ctx, m.Graph, graph.WeightsFile{Suffix: ".gopacked", DependsOn: packedFor, Pack: pack,
		Open:  func(folder *os.Root, name string) error { return w.Open(ctx, folder, name, c.Map) },
		Write: w.Write})
	return p, note, err
}

// newUnit creates a unit of an image.
func newUnit(m *Image, in delegate.Instance) *unit {
	e := &unit{
		Frame:  frame.Frame{Values: numbers.ConstantsOf(m.Graph, slices.Clone(m.Shapes)), Packed: m.constants(), Pool: in.Pool},
		memory: newMemory(m.Compilation, m.placement, in),
		args:   graph.NewArguments(m.Graph, m.Shapes, m.Args), steps: make([]step, len(m.Graph.Nodes)),
	}
	for i := range e.steps {
		n := &m.Graph.Nodes[i]
		e.steps[i] = step{node: n, loop: typeOf(m.Graph, n).loop(&e.Frame, n)}
	}
	for i, used := range argSpans(m.Graph) {
		e.args[i].Used = used
	}
	if len(m.Args) > 0 && !m.HasDynamicArgs() && !m.Shown {
		e.prepare()
	}
	return e
}

// packedVersion is increased with every change of what panels contain. packedLeast is the size of panels from which reading a file
// is faster than packing. Tests set them.
var (
	packedVersion       = 7
	packedLeast   int64 = 64 << 10
)

// packedFor writes what panels depend on besides the graph.
func packedFor(h io.Writer) {
	fmt.Fprintln(h, "go engine", packedVersion, runtime.GOARCH, simd.PackedLayout())
}
