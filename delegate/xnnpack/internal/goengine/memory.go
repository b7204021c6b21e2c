package goengine

import (
	"io"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// placement contains the items of intermediate values and their offsets in an arena.
type placement struct {
	shapes []graph.Shape // for which it was computed
	index  []int         // by value: its item, or none for values stored elsewhere
	items  []graph.Item
	bytes  int64
}

// placementFor computes the places at the given shapes.
func placementFor(g *graph.Graph, s []graph.Shape) *placement {
	list, index := g.Items(s, func(v int) int64 { return graph.AlignUp(int64(g.Values[v].Datatype.Bytes(s[v])) + numbers.Overread) }, true)
	p := &placement{shapes: s, index: index, items: list}
	p.bytes = p.pack()
	return p
}

// pack assigns the offsets. Sizes whose sum is close to the largest number are not packed: no limit permits them.
func (p *placement) pack() (size int64) {
	items := make([]pack.Item, len(p.items))
	for i, it := range p.items {
		items[i] = pack.Item{Bytes: it.Bytes, First: it.First, Last: it.Last, Align: tensor.Alignment}
		size = graph.Plus(size, it.Bytes)
	}
	if size >= math.MaxInt64/4 {
		return size
	}
	layout := pack.Quick(items)
	for i, offset := range layout.Offsets {
		p.items[i].Offset = offset
	}
	return layout.Size
}

// isFor reports whether the places are for the given shapes.
func (p *placement) isFor(s []graph.Shape) bool { return p != nil && slices.Equal(p.shapes, s) }

// cut returns the bytes of the items in an arena.
func (p *placement) cut(arena []byte) [][]byte {
	list := make([][]byte, len(p.items))
	for i, it := range p.items {
		list[i] = arena[it.Offset:][:it.Bytes]
	}
	return list
}

// maxBlocks is the largest number of intermediate values for which the method's memory plan has
// places.
const maxBlocks = 1 << 10

// argSpans returns the nodes between which the bytes of each argument are used: inputs from the first
// node, outputs to the last.
func argSpans(g *graph.Graph) []lowering.Span {
	spans, last := make([]lowering.Span, len(g.Args)), len(g.Nodes)-1
	for k, v := range g.Args {
		if !g.Values[v].Input {
			spans[k] = lowering.Span{First: last, Last: last}
		}
	}
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			if v != graph.None && g.Values[v].Arg != graph.None && g.Values[v].Input {
				spans[g.Values[v].Arg].Last = i
			}
		}
		for _, v := range g.Nodes[i].Out {
			if k := g.Values[v].Arg; k != graph.None {
				spans[k].First = min(spans[k].First, i)
			}
		}
	}
	return spans
}

// matches reports whether blocks suit a unit at shapes s: there is one for each item, values fit in them
// and values that share a block have the same size. The caller of the unit may provide fewer or
// shorter blocks than declared.
func (p *placement) matches(g *graph.Graph, s []graph.Shape, blocks [][]byte) bool {
	if p == nil || len(blocks) != len(p.items) {
		return false
	}
	sizes := make([]int, len(p.items))
	for v, at := range p.index {
		if at == graph.None {
			continue
		}
		n := g.Values[v].Datatype.Bytes(s[v])
		if sizes[at] > 0 && sizes[at] != n || n+numbers.Overread > len(blocks[at]) {
			return false
		}
		sizes[at] = n
	}
	return true
}

// memory is where the values between nodes and the working memory of loops are.
type memory struct {
	blocks    [][]byte     // for the declared sizes, see image.Workspace; nil for none
	planned   *placement   // of the blocks
	worked    []frame.Part // of the blocks behind those of values: the nodes' working memory
	arena     *arena       // contains the bytes of values between nodes if no blocks do
	placement *placement   // of the current shapes, in the blocks or in the arena
	uses      int          // the version of the arena that the unit's memory is of, 0 if the unit uses none
	limits    delegate.Limits
	kept      int64 // bytes that loops keep between runs
}

// newMemory returns the memory of a unit of an image whose values have these places.
func newMemory(c *graph.Compilation, p *placement, in delegate.Instance) memory {
	m := memory{arena: arenaIn(in.Scratch), limits: c.Limits, blocks: in.Blocks, planned: p, placement: p}
	switch {
	case p == nil:
	case in.Blocks != nil:
		m.worked = workAt(c.Graph, p.shapes, c.InstanceThreads()).Parts(c.InstanceThreads())
	case !c.HasDynamicArgs():
		m.arena.expect(needsOf(c.Graph, p, in.Pool.Size()).Shared) // an image is planned for the threads of most instances
	}
	return m
}

// place sets the memory of values between nodes, and that of the nodes' loops. Each of both is in the
// blocks if these suit the shapes, or else in an arena: what is in blocks at the declared sizes, and when,
// need not be enough at others.
func (m *memory) place(e *frame.Frame) error {
	w := workAt(e.Graph, e.Shapes, e.Threads())
	values, loops, inBlocks := m.matchingBlocks(e, w)
	if !inBlocks && !m.placement.isFor(e.Shapes) {
		m.placement = placementFor(e.Graph, slices.Clone(e.Shapes))
	}
	own := int64(0)
	if !inBlocks {
		own = graph.AlignUp(m.placement.bytes)
	}
	at := own
	if loops == nil {
		own = graph.Plus(own, w.Shared(e.Threads()))
	}
	if own > 0 || !m.planned.isFor(e.Shapes) {
		needs := needsWith(e.Graph, w, e.Shapes, m.placement.bytes, e.Threads())
		if err := needs.Check(m.limits); err != nil {
			return err
		}
	}
	block, version := m.arena.allocate(own)
	if m.uses = 0; own > 0 {
		m.uses = version
	}
	if !inBlocks {
		values = m.placement.cut(block)
	}
	if loops == nil {
		loops = w.Cut(block[at:], e.Threads())
	}
	m.kept, e.Bytes = w.Kept, m.arena.workers(e.Threads())
	e.Divide(w, loops)
	m.assign(e, values)
	return nil
}

// matchingBlocks returns the blocks for the values, and whether they suit the current shapes; and the memory of
// the nodes' loops, nil if its blocks do not.
func (m *memory) matchingBlocks(e *frame.Frame, w *frame.Work) (values [][]byte, loops *frame.Memory, inBlocks bool) {
	n := len(m.blocks) - len(m.worked)
	if m.planned == nil || m.blocks == nil || n != len(m.planned.items) {
		return nil, nil, false
	}
	if inBlocks = m.planned.matches(e.Graph, e.Shapes, m.blocks[:n]); inBlocks {
		m.placement, values = m.planned, m.blocks[:n]
	}
	return values, w.In(m.blocks[n:], m.worked, e.Threads()), inBlocks
}

// assign sets the bytes of the values between nodes, in the blocks of their items.
func (m *memory) assign(e *frame.Frame, blocks [][]byte) {
	for v, at := range m.placement.index {
		if at == graph.None {
			continue
		}
		n := e.Graph.Values[v].Datatype.Bytes(e.Shapes[v])
		e.Data[v] = blocks[at][: n : n+numbers.Overread]
	}
}

// arena is the memory of intermediate values in the Go engine, and of its loops, for units that have
// no blocks of the method's memory plan that are large enough. The units of an instance share one,
// since only one of them runs at a time. It lies outside of the Go heap if it is large, and is freed by close, or when no unit refers to
// it any more. When a unit enlarges it, the others take the new memory before they run.
type arena struct {
	mu      sync.Mutex
	want    int64        // minimum to allocate: the need of the largest unit at its declared sizes
	pages   *cpu.Mapping // of bytes; nil for the Go heap
	bytes   []byte
	version int              // of bytes, which others have replaced if it is a later one
	work    []frame.Int8Work // of the workers
}

// arenaKey is the key of the arena in a [delegate.Scratch].
type arenaKey struct{}

// arenaIn returns the arena of a scratch, or a new one without a scratch.
func arenaIn(s *delegate.Scratch) *arena {
	if s == nil {
		return &arena{}
	}
	part, err := s.Part(arenaKey{}, func() (io.Closer, error) { return &arena{}, nil })
	if err != nil {
		return &arena{}
	}
	return part.(*arena)
}

// workers returns the working memory of at least n workers for products of bytes.
func (a *arena) workers(n int) []frame.Int8Work {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.work) < n {
		a.work = make([]frame.Int8Work, n)
	}
	return a.work
}

// Close frees the memory. A unit that runs nevertheless allocates it again.
func (a *arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free()
	return nil
}

func (a *arena) free() {
	if a.pages != nil {
		a.pages.Close()
	}
	a.pages, a.bytes = nil, nil
	a.version++
}

// expect announces a unit that will need so many bytes.
func (a *arena) expect(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.want = max(a.want, bytes)
}

// allocate returns at least so many bytes, the same memory for all units as long as it is large enough, and its version.
func (a *arena) allocate(bytes int64) (block []byte, version int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := max(bytes, a.want); int64(len(a.bytes)) < bytes {
		a.free()
		if n < graph.OwnPages || !a.mapPages(n) {
			a.bytes = tensor.AlignedBytes(int(n))
		}
	}
	return a.bytes, a.version
}

// mapPages sets bytes to n bytes outside of the Go heap. It reports whether the system has them.
func (a *arena) mapPages(n int64) bool {
	pages, err := cpu.MapMemory(n + tensor.Padding)
	if err != nil {
		return false
	}
	runtime.AddCleanup(a, (*cpu.Mapping).Close, pages)
	a.pages, a.bytes = pages, pages.Bytes()[:n:n]
	return true
}

// current reports whether memory of a version is still there.
func (a *arena) current(version int) bool {
	if version == 0 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return version == a.version
}

// Memory returns the bytes of the arena and of the workers' memory.
func (a *arena) Memory() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := cap(a.bytes)
	if a.pages != nil {
		n = int(cpu.Resident(a.pages.Bytes()))
	}
	for i := range a.work {
		w := &a.work[i]
		n += 8*(cap(w.Rows)+cap(w.Offsets)) + 4*(cap(w.Sums)+cap(w.Floats)+cap(w.Zeros)+cap(w.Factors)) + cap(w.Gathered)
	}
	return int64(n)
}

// workAt returns the work of a unit at the given shapes.
func workAt(g *graph.Graph, s []graph.Shape, threads int) *frame.Work {
	all, own := &frame.Work{}, &frame.Work{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		*own = frame.Work{}
		if f := typeOf(g, n).work; f != nil {
			f(own, g, n, s, threads)
		}
		all.Add(own, i, threads)
	}
	return all
}

// needsOf returns the memory of an image and a unit of the Go engine, with values in places.
func needsOf(g *graph.Graph, p *placement, threads int) graph.Needs {
	return needsWith(g, workAt(g, p.shapes, threads), p.shapes, p.bytes, threads)
}

// needsWith returns the memory of an image and a unit with this work and this many bytes of values.
func needsWith(g *graph.Graph, w *frame.Work, s []graph.Shape, values int64, threads int) graph.Needs {
	n := graph.Needs{Weights: filters.PackedBytes(g, s), Timed: graph.Times(8, len(g.Nodes))}
	n.Shared = graph.Plus(graph.AlignUp(values), w.Shared(threads))
	n.Scratch = graph.Plus(graph.Plus(n.Shared, w.Kept), graph.Repeat(threads, w.Tile))
	return n
}
