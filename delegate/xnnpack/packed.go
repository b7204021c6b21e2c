package xnnpack

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// packed contains the constants of a graph as the loops of the Go engine read them, by node: filters of products of
// floats, of bytes and 4-bit elements, and of the plain loops. A node has at most one of the first two. The image
// owns it, and its units share it.
type packed struct {
	floats []*floatFilter
	bytes  []*int8Weights
	plain  []*filter
	memory *filterMemory // of panels, nil for the Go heap
}

// packWork is the packing of a graph. Nodes are divided into parts, which goroutines pack in the order of the nodes.
type packWork struct {
	g      *graph
	shapes []shape
	to     *packed
	floats *reference // decodes filters of floats, which changes nothing in it
	free   []byte     // for panels
	nodes  []packedNode
	last   *packedNode // to which parts are added
	all    []packPart
	total  int // elements of all parts
	next   atomic.Int64

	mu      sync.Mutex
	release func(*node) bool
	gone    atomic.Bool // a filter was released
	fault   any         // the first panic of a part
}

// packedNode is a node, some of whose parts are not packed yet.
type packedNode struct {
	node   *node
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
func packConstants(g *graph, ctx context.Context, shapes []shape, threads int, release func(*node) bool) (*packed, error) {
	n := len(g.Nodes)
	w := &packWork{g: g, shapes: shapes, release: release, to: &packed{make([]*floatFilter, n), make([]*int8Weights, n), make([]*filter, n), nil}}
	w.to.memory, w.free = newFilterMemory(panelBytes(g, shapes))
	w.floats = w.unit()
	w.nodes = make([]packedNode, n)
	for i := range g.Nodes {
		w.add(&w.nodes[i], &g.Nodes[i])
	}
	if err := w.run(ctx, threads); err != nil {
		w.to.memory.close()
		return nil, err
	}
	return w.to, nil
}

// panelBytes returns the size of the panels of all filters.
func panelBytes(g *graph, shapes []shape) (bytes int64) {
	for i := range g.Nodes {
		switch n := &g.Nodes[i]; {
		case packsFloats(g, n):
			bytes += lineUp(4 * int64(panelElements(g, n, shapes)))
		case takesInt8(g, n):
			bytes += panelBytes8(g, n)
		}
	}
	return bytes
}

// add divides the packing of a node into parts.
func (w *packWork) add(own *packedNode, n *node) {
	g := w.g
	own.node, own.finish, w.last = n, func() {}, own
	switch {
	case packsFloats(g, n):
		w.addFloats(own)
	case takesInt8(g, n):
		if w.to.bytes[n.at], own.finish = packInt8(g, w, n); staysFloat(g, n, w.shapes) {
			w.addPlain(n)
		}
	case n.Type.packs && n.Type.tag != tagBatchMatrixMultiply && hasQuantizedInput(g, n) && g.Values[n.In[1]].isConst():
		w.addPlain(n)
	default:
		return
	}
	if own.left.Load() == 0 {
		w.part(0, func() {})
	}
}

// addFloats divides the packing of a filter of floats. Other elements are decoded first, in one part.
func (w *packWork) addFloats(own *packedNode) {
	n, e := own.node, w.floats
	free := tensor.View[float32](w.cut(4 * panelElements(w.g, n, w.shapes)))
	in := func(k, cols, run int) *gemm.Panels {
		m := gemm.New(free, k, cols, run)
		free = free[m.Size():]
		return m
	}
	if w.g.Values[n.In[1]].Datatype == fp32 {
		f := goTypeOf(n).pack(w.g, n, e.filterNumbers(n.In[1]), func(src []float32, k, cols, run, row, col int) *gemm.Panels {
			m := in(k, cols, run)
			w.parts(m.Panels(), k*min(cols, simd.PanelCols), func(from, to int) { m.RepackPart(src, row, col, from, to) })
			return m
		})
		w.to.floats[n.at], own.finish = f, func() { f.bias = e.biasOf(n) }
		return
	}
	w.part(w.shapes[n.In[1]].numel(), func() {
		f := goTypeOf(n).pack(w.g, n, e.filterNumbers(n.In[1]), func(src []float32, k, cols, run, row, col int) *gemm.Panels {
			m := in(k, cols, run)
			m.Repack(src, row, col)
			return m
		})
		f.bias = e.biasOf(n)
		w.to.floats[n.at] = f
	})
}

// addPlain adds the filter of a node that runs the plain loops.
func (w *packWork) addPlain(n *node) {
	w.part(w.shapes[n.In[1]].numel(), func() { w.to.plain[n.at] = w.unit().newFilter(n) })
}

// unit returns a unit that decodes constants.
func (w *packWork) unit() *reference {
	e := &reference{graph: w.g, shapes: w.shapes, bytes: make([][]byte, len(w.g.Values))}
	for v := range w.g.Values {
		e.bytes[v] = w.g.Values[v].Data
	}
	return e
}

// cut returns the next n bytes of the memory for panels.
func (w *packWork) cut(n int) []byte {
	b := w.free[:n:n]
	w.free = w.free[min(lineUp(int64(n)), int64(len(w.free))):]
	return b
}

// parts divides panels of so many elements among parts of the last node.
func (w *packWork) parts(panels, elements int, pack func(from, to int)) {
	each := max(1, partElements/max(1, elements))
	for from := 0; from < panels; from += each {
		to := min(from+each, panels)
		w.part((to-from)*elements, func() { pack(from, to) })
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
	if ctx.Err() != nil && !w.gone.Load() {
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
	for ctx.Err() == nil || w.gone.Load() {
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
		w.gone.Store(true)
	}
}
