package goengine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// packed contains the constants of a graph as the loops of the Go engine read them, by node: filters of products of
// floats, and of bytes and 4-bit elements. A node has at most one of the two.
//
// It is made when the image is compiled, by [packWork], or by the first call that the library cannot run. The image owns it, and
// its units share it and change nothing in it. The panels of all filters are in one block of memory, node by node, whose layout
// follows from the graph; the block may be a file of the weights cache. After the last part of a filter is packed, its bytes
// in the program are released. The memory is freed when the image is closed, or is unreachable with its units.
type packed struct {
	floats []*floatFilter
	bytes  []*int8Weights
	memory *filterMemory // of panels, nil for the Go heap
}

// packWork is the packing of a graph. Nodes are divided into parts, which goroutines pack in the order of the nodes.
type packWork struct {
	g      *graph.Graph
	shapes []graph.Shape
	to     *packed
	floats *frame // decodes filters of floats, which changes nothing in it
	size   int64  // of the memory for panels
	memory []byte // for panels, node by node
	free   []byte // the rest of it
	stored bool   // the memory has the packed panels of an earlier process
	nodes  []packedNode
	last   *packedNode // to which parts are added
	all    []packPart
	total  int // elements of all parts
	next   atomic.Int64

	mu       sync.Mutex
	release  func(*graph.Node) bool
	released atomic.Bool // a filter was released
	fault    any         // the first panic of a part
}

// packedNode is a node, some of whose parts are not packed yet.
type packedNode struct {
	node   *graph.Node
	left   atomic.Int32
	finish func() // packs the rest after the parts
}

// packPart is a range of a node's panels.
type packPart struct {
	node *packedNode
	pack func()
}

const (
	// partElements is the number of elements of a part: fewer than a tenth of a millisecond.
	partElements = 1 << 16
	// goroutineElements is the number of elements for which another goroutine is started.
	goroutineElements = 1 << 18
)

// packConstants packs the constants of a graph, on as many threads as pay. It calls release for each node as soon as its filter is
// not read any more, for one at a time. Once a filter is released, which release reports, packing no longer ends with ctx:
// the graph could not be compiled again.
func packConstants(ctx context.Context, g *graph.Graph, shapes []graph.Shape, threads int,
	release func(*graph.Node) bool) (*packed, error) {
	return newPacking(g, shapes, release).pack(ctx, threads)
}

// newPacking returns the packing of a graph.
func newPacking(g *graph.Graph, shapes []graph.Shape, release func(*graph.Node) bool) *packWork {
	n := len(g.Nodes)
	return &packWork{g: g, shapes: shapes, release: release, size: panelBytes(g, shapes),
		to: &packed{make([]*floatFilter, n), make([]*int8Weights, n), nil}}
}

// pack packs the constants, except the panels that are stored.
func (w *packWork) pack(ctx context.Context, threads int) (*packed, error) {
	if !w.stored {
		w.to.memory, w.memory = newFilterMemory(w.size)
	}
	w.free = w.memory
	w.floats = w.frame()
	w.nodes = make([]packedNode, len(w.g.Nodes))
	for i := range w.g.Nodes {
		w.add(&w.nodes[i], &w.g.Nodes[i])
	}
	if err := w.run(ctx, threads); err != nil {
		w.to.memory.Close()
		return nil, err
	}
	return w.to, nil
}

// panelBytes returns the size of the panels of all filters.
func panelBytes(g *graph.Graph, shapes []graph.Shape) (bytes int64) {
	for i := range g.Nodes {
		switch n := &g.Nodes[i]; {
		case packsFloats(g, n):
			bytes += graph.AlignUp(4 * int64(panelElements(g, n, shapes)))
		case supportsInt8(g, n):
			bytes += panelBytes8(g, n)
		}
	}
	return bytes
}

// add divides the packing of a node into parts.
func (w *packWork) add(own *packedNode, n *graph.Node) {
	g := w.g
	own.node, own.finish, w.last = n, func() {}, own
	switch {
	case packsFloats(g, n):
		w.addFloats(own)
	case supportsInt8(g, n):
		w.to.bytes[n.At], own.finish = packInt8(g, w, n)
	default:
		return
	}
	if own.left.Load() == 0 {
		w.part(0, func() {})
	}
}

// floatMatrix is a matrix of a filter to pack: its first element in the filter, and the strides of rows and columns.
type floatMatrix struct {
	*gemm.Panels
	memory         []byte
	from, row, col int
}

// addFloats divides the packing of a filter of floats. Other elements are decoded first, in one part.
func (w *packWork) addFloats(own *packedNode) {
	n, e, v := own.node, w.floats, own.node.In[1]
	free := w.cut(4 * panelElements(w.g, n, w.shapes))
	var list []floatMatrix
	f := typeOf(n).pack(w.g, n, func(from, k, cols, run, row, col int) *gemm.Panels {
		m := gemm.New(tensor.View[float32](free), k, cols, run)
		list = append(list, floatMatrix{m, free[:4*m.Size()], from, row, col})
		free = free[4*m.Size():]
		return m
	})
	w.to.floats[n.At], own.finish = f, func() { f.bias = e.biasOf(n) }
	w.addWinograd(n, f, free)
	switch {
	case w.stored && !n.IsDepthwise():
	case w.g.Values[v].Datatype == graph.FP32:
		f.setTaps(n, e.filterNumbers(v))
		for _, m := range list {
			src := e.filterNumbers(v)[m.from:]
			w.parts(m.memory, m.Panels.Panels(), m.K*min(m.N, simd.PanelCols), func(from, to int) { m.RepackPart(src, m.row, m.col, from, to) })
		}
	default:
		w.part(w.shapes[v].Numel(), func() {
			numbers := e.filterNumbers(v)
			f.setTaps(n, numbers)
			for _, m := range list {
				cpu.Populate(m.memory)
				m.Repack(numbers[m.from:], m.row, m.col)
			}
		})
	}
}

// addWinograd divides the packing of a filter for blocks of 2×2 pixels, into memory, if there is to be one.
func (w *packWork) addWinograd(n *graph.Node, f *floatFilter, memory []byte) {
	if !hasWinograd(w.g, n, w.shapes) {
		return
	}
	k, cols := n.Window().GroupIn, n.Window().GroupOut
	f.winograd = newWinogradFilter(memory, k, cols)
	if w.stored {
		return
	}
	panels := graph.CeilDiv(cols, simd.PanelCols)
	each := max(1, partElements/(graph.WinogradTerms*k*simd.PanelCols))
	if w.g.Values[n.In[1]].Datatype != graph.FP32 { // decoded once
		each = panels
	}
	for from := 0; from < panels; from += each {
		to := min(from+each, panels)
		w.part((to-from)*graph.WinogradTerms*k*simd.PanelCols, func() {
			packWinograd(memory, w.floats.filterNumbers(n.In[1]), k, cols, from, to)
		})
	}
}

// newWinogradFilter returns a filter in memory, which [packWinograd] sets.
func newWinogradFilter(memory []byte, k, cols int) *winogradFilter {
	f, numbers, size := &winogradFilter{zeros: make([]float32, cols)}, tensor.View[float32](memory), gemm.Size(k, cols, k)
	for i := range f.matrices {
		f.matrices[i] = gemm.New(numbers[i*size:], k, cols, k)
	}
	return f
}

// packWinograd packs panels [from, to) of all matrices of a filter [cols, 3, 3, k] in memory.
func packWinograd(memory []byte, filter []float32, k, cols, from, to int) {
	const width = simd.PanelCols
	columns, size := make([]float32, graph.WinogradTerms*width*k), gemm.Size(k, cols, k) // [terms][columns][k]
	for q := from; q < to; q++ {
		n := min(width, cols-q*width)
		for j := range n {
			simd.WinogradFilter(k, filter[(q*width+j)*9*k:], columns[j*k:], width*k)
		}
		for i := range graph.WinogradTerms {
			panel := memory[4*(i*size+q*width*k):][:4*n*k]
			cpu.Populate(panel)
			gemm.New(tensor.View[float32](panel), k, n, k).Repack(columns[i*width*k:], 1, k)
		}
	}
}

// frame returns the values of the graph, whose constants are decoded.
func (w *packWork) frame() *frame {
	e := &frame{graph: w.g, shapes: w.shapes, data: make([][]byte, len(w.g.Values))}
	for v := range w.g.Values {
		e.data[v] = w.g.Values[v].Data
	}
	return e
}

// cut returns the next n bytes of the memory for panels.
func (w *packWork) cut(n int) []byte {
	b := w.free[:n:n]
	w.free = w.free[min(graph.AlignUp(int64(n)), int64(len(w.free))):]
	return b
}

// parts divides the panels in memory, of so many elements each, among parts of the last node, unless they are stored.
func (w *packWork) parts(memory []byte, panels, elements int, pack func(from, to int)) {
	if w.stored {
		return
	}
	each, bytes := max(1, partElements/max(1, elements)), len(memory)/max(1, panels)
	for from := 0; from < panels; from += each {
		to := min(from+each, panels)
		w.part((to-from)*elements, func() {
			cpu.Populate(memory[bytes*from : bytes*to])
			pack(from, to)
		})
	}
}

// part adds a part of the last node.
func (w *packWork) part(elements int, pack func()) {
	w.last.left.Add(1)
	w.all, w.total = append(w.all, packPart{w.last, pack}), w.total+elements
}

// run packs all parts. A panic of a part is one of the caller.
func (w *packWork) run(ctx context.Context, threads int) error {
	var others sync.WaitGroup
	for range min(threads, 1+w.total/goroutineElements, len(w.all)) - 1 {
		others.Go(func() { w.work(ctx) })
	}
	w.work(ctx)
	others.Wait()
	if w.fault != nil {
		panic(w.fault)
	}
	if ctx.Err() != nil && !w.released.Load() {
		return context.Cause(ctx)
	}
	return nil
}

// work packs parts until none is left.
func (w *packWork) work(ctx context.Context) {
	defer func() {
		if fault := recover(); fault != nil {
			w.next.Store(int64(len(w.all)))
			w.mu.Lock()
			defer w.mu.Unlock()
			w.fault = fault
		}
	}()
	for ctx.Err() == nil || w.released.Load() {
		i := int(w.next.Add(1)) - 1
		if i >= len(w.all) {
			return
		}
		w.all[i].pack()
		w.end(w.all[i].node)
	}
}

// end finishes a node after its last part.
func (w *packWork) end(n *packedNode) {
	if n.left.Add(-1) > 0 {
		return
	}
	n.finish()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.release(n.node) {
		w.released.Store(true)
	}
}

// filterNumbers returns the numbers of a filter, in memory that must not be modified.
func (e *frame) filterNumbers(v int) []float32 {
	x := &e.graph.Values[v]
	n := e.shapes[v].Numel()
	if x.Datatype == graph.FP32 {
		return tensor.View[float32](e.data[v])[:n]
	}
	numbers := make([]float32, n)
	e.decode(numbers, v)
	return numbers
}

// filterMemory is memory for the panels of an image outside of the Go heap, where they would cause
// earlier garbage collections; often none is needed while programs load. It is freed by close, or
// when no filter refers to it any more.
type filterMemory struct{ pages *cpu.Mapping }

// newFilterMemory returns memory for so many bytes of panels. For few of them, or if the system has no memory, the
// filterMemory is nil and the bytes are in the Go heap.
func newFilterMemory(size int64) (*filterMemory, []byte) {
	if size >= graph.OwnPages {
		if pages, err := cpu.MapDense(size); err == nil {
			return ownedBy(pages), pages.Bytes()
		}
	}
	return nil, tensor.AlignedBytes(int(size))
}

// ownedBy returns pages as memory of filters.
func ownedBy(pages *cpu.Mapping) *filterMemory {
	m := &filterMemory{pages}
	runtime.AddCleanup(m, (*cpu.Mapping).Close, pages)
	return m
}

// Close frees the memory; m may be nil. Filters in it must not be used afterwards.
func (m *filterMemory) Close() {
	if m != nil {
		m.pages.Close()
	}
}
