package filters

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// partition is how the nodes of a graph are packed: divided into parts, which goroutines pack in the order of the nodes.
type partition struct {
	numbers.Values        // constants: decoding filters changes nothing in it
	Size           int64  // of the memory for panels
	memory         []byte // for panels, node by node
	free           []byte // the rest of it
	Blank          bool   // nothing reads the panels: they are not packed
	stored         bool   // the memory has the packed panels of an earlier process
	nodes          []packedNode
	last           *packedNode // to which parts are added
	all            []packPart
	total          int // elements of all parts
	next           atomic.Int64

	mu       sync.Mutex
	release  func(*graph.Node) bool
	released atomic.Bool // a filter was released
	fault    any         // the first panic of a part
}

// cut returns the next n bytes of the memory for panels.
func (w *partition) cut(n int) []byte {
	b := w.free[:n:n]
	w.free = w.free[min(graph.AlignUp(int64(n)), int64(len(w.free))):]
	return b
}

// parts divides the panels in memory, of so many elements each, among parts of the last node, unless they are stored.
func (w *partition) parts(memory []byte, panels, elements int, pack func(from, to int)) {
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
func (w *partition) part(elements int, pack func()) {
	w.last.left.Add(1)
	w.all, w.total = append(w.all, packPart{w.last, pack}), w.total+elements
}

// run packs all parts. A panic of a part is one of the caller.
func (w *partition) run(ctx context.Context, threads int) error {
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
func (w *partition) work(ctx context.Context) {
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
func (w *partition) end(n *packedNode) {
	if n.left.Add(-1) > 0 {
		return
	}
	n.finish()
	cpu.Forget()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.release != nil && w.release(n.node) {
		w.released.Store(true)
	}
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

// filterMemory is memory for the panels of an image outside of the Go heap, where they would cause
// earlier garbage collections; often none is needed while programs load. It is freed by close, or
// when no filter refers to it any more.
type filterMemory struct{ *cpu.Mapping }

// Close frees the memory; m may be nil. Filters in it must not be used afterwards.
func (m *filterMemory) Close() {
	if m != nil {
		m.Mapping.Close()
	}
}

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
