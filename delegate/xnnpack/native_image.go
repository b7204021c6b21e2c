package xnnpack

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// nativeImage is a graph that the library runs.
type nativeImage struct {
	*compilation
	cost      float64 // in MACs, at the declared sizes
	small     []shape // of the first runtime, see smallShapes; nil if it has the declared ones
	memory    needs   // at the declared sizes
	checked   bool    // arguments of calls are checked, see checksNumbers
	frozen    bool    // filters were released: no other sizes, no further weights
	cacheNote string  // state of the weights file, if one is requested
	inGo      engine  // runs calls that the library does not
	// fail stores an error of the library, after which the Go engine runs calls.
	fail func(error)

	*holdings // nil until the library runs the graph
}

// holdings are an image's library resources. They are freed by Close, or by a cleanup once the
// image is unreachable.
type holdings struct {
	mu      sync.Mutex // held while a runtime is created: runtimes share the weights
	packed  int64      // bytes of the weights, once they are freed
	lib     *xnn.Library
	weights *weights       // nil once they are freed
	spare   compiled       // created by Compile, for the first unit
	pin     runtime.Pinner // pins constants, whose addresses the library keeps
}

// compiled is a runtime and the workspace that contains its values.
type compiled struct {
	runtime   xnn.Runtime
	workspace *workspace
	shapes    []shape // shapes the runtime was created for
	planned   bool    // memory is planned for shapes
}

func (c *compiled) release() {
	c.workspace.delete(c.runtime)
	c.workspace.release()
	*c = compiled{}
}

// open plans the graph for the library and packs the weights.
func (m *nativeImage) open(ctx context.Context, o nativeOptions) error {
	lib, err := xnn.Open(o.library)
	if err != nil {
		return &delegate.Error{Backend: ID, Reason: delegate.ErrMissing, Err: err}
	}
	if reason := cmp.Or(planLimits(m.graph, m.shapes), refuses(m.graph, m.shapes)); reason != "" {
		return unsupported("", "%s: not for %s", reason, lib.Soname.Name)
	}
	if reason := miscomputed(m.graph, lib.Soname, m.shapes, m.hasDynamicArgs()); reason != "" {
		return unsupported("", "%s (%s); the engines \"auto\" and \"go\" do not", reason, lib.Soname.Name)
	}
	m.memory = nativeNeeds(m.graph, lib.Soname, m.shapes, m.instanceThreads())
	if m.hasDynamicArgs() { // large calls may use a second runtime
		m.memory.scratch = plus(m.memory.scratch, m.memory.timed)
	}
	if err := m.memory.check(m.limits); err != nil {
		return err
	}
	m.holdings = &holdings{lib: lib, weights: newWeights(m.memory.weights, m.limits.Packed(m.memory.scratch))}
	runtime.AddCleanup(m, (*holdings).free, m.holdings)
	m.checked = m.checksNumbers()
	m.pinConstants()
	m.weights.constants = m.releasable()
	if o.weightsFolder == "" && m.weights.releasable() > keptBytes {
		m.weights.release = m.release
	}
	if err = m.useFile(ctx, o, m.pack); err == nil && m.spare.runtime != 0 {
		err = m.planSpare()
	}
	if err != nil && m.weights.gone && ctx.Err() == nil {
		err = m.packAgain()
	}
	if err == nil && m.spare.runtime != 0 {
		m.seal()
	}
	return err
}

// isOpen reports whether the library has been opened for the image.
func (m *nativeImage) isOpen() bool { return m.holdings != nil }

// hasReleased reports whether filters were released: only the library can run the graph.
func (m *nativeImage) hasReleased() bool { return m.isOpen() && m.weights.gone }

// planSpare plans the memory of the spare runtime. It skips this if that memory is large and is for
// the largest of several sizes, which may never be used: the library clears what it plans. In that
// case the first call plans for its own sizes.
func (m *nativeImage) planSpare() error {
	if m.hasDynamicArgs() && m.small == nil && m.memory.shared >= manyBytes {
		return nil
	}
	spare := &m.spare
	err := spare.workspace.plan("xnn_reshape_runtime", func() xnn.Status { return m.lib.ReshapeRuntime(spare.runtime) })
	if err != nil {
		return unsupported("", "%w", err)
	}
	spare.planned = true
	return nil
}

// seal ends packing. It releases the data that a weights file was made from, and replaces released
// scales with stand-ins for later runtimes.
func (m *nativeImage) seal() {
	w := m.weights
	w.sealed = true
	if w.release == nil {
		w.release = m.release
		for i := range w.entries {
			w.releaseConstant(w.entries[i].key.Kernel)
		}
	}
	for _, x := range w.unscaled {
		x.Quant.Blocks = standInScales(len(x.Quant.Blocks))
		m.pin.Pin(&x.Quant.Blocks[0])
	}
	w.unscaled, m.frozen = nil, w.gone
}

const (
	// manyBytes is the shared memory between nodes above which a runtime's initial sizes matter,
	// because a runtime never plans for less.
	manyBytes     = 256 << 10
	maxTriedSizes = 4    // largest number of sizes tried
	maxTriedNodes = 1024 // largest graph, in nodes, for which sizes are tried
)

// smallShapes returns the shapes that the first runtime is created for if calls have their own
// sizes, nil to use the declared shapes. The program does not declare which sizes occur, so each
// dynamic input size is tried as 1, in all inputs at once: language models decode one token at a
// time. Graphs of images keep their sizes.
func (m *nativeImage) smallShapes() (small []shape) {
	least := m.memory.shared
	if !m.hasDynamicArgs() || least < manyBytes || len(m.graph.Nodes) > maxTriedNodes || hasImages(m.graph) {
		return nil
	}
	tried := make(map[int]bool)
	for i, v := range m.graph.Args[:m.graph.Inputs] {
		for _, d := range m.shapes[v].dims() {
			if !isDynamic(m.args[i]) || d == 1 || tried[d] || len(tried) == maxTriedSizes {
				continue
			}
			tried[d] = true
			s := m.with(d)
			if s == nil {
				continue
			}
			if n := arenaBytes(m.graph, s, m.instanceThreads()); n < least {
				small, least = s, n
			}
		}
	}
	return small
}

// hasImages reports whether the graph has sliding-window nodes.
func hasImages(g *graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n node) bool { return n.Type.convolution || nativeTypeOf(&n).bySize })
}

// with returns the shapes in which every dynamic input size d is 1. It returns nil if the graph or
// the library does not support them, or if a runtime created for them could not run the declared
// shapes.
func (m *nativeImage) with(d int) []shape {
	g := m.graph
	s := make([]shape, len(m.shapes))
	for i, v := range g.Args[:g.Inputs] {
		s[v] = m.shapes[v]
		for k := range s[v].rank {
			if s[v].dim[k] == d && isDynamic(m.args[i]) {
				s[v].dim[k] = 1
			}
		}
	}
	if g.infer(s) != nil || refuses(g, s) != "" {
		return nil
	}
	var l layout
	if l.set(g, s); !l.fits(g, m.shapes) {
		return nil
	}
	return s
}

// takeSpare returns the runtime that Compile created, with a reference to its workspace.
func (m *nativeImage) takeSpare() compiled {
	m.mu.Lock()
	defer m.mu.Unlock()
	spare := m.spare
	m.spare = compiled{}
	return spare
}

// pinConstants pins constants in memory, and ensures that the bytes the library may read past their
// ends are readable.
func (m *nativeImage) pinConstants() {
	copied := make(map[xnn.Address][]byte)
	for v := range m.graph.Values {
		x := &m.graph.Values[v]
		if !x.isConst() {
			continue
		}
		if !readableBehind(x.Data) {
			at := xnn.AddressOf(x.Data)
			if old, ok := copied[at]; !ok || len(old) < len(x.Data) {
				copied[at] = padded(x.Data)
				if m.region {
					m.graph.own = append(m.graph.own, copied[at])
				}
			}
			x.Data = copied[at][:len(x.Data)]
		}
		m.pin.Pin(&x.Data[0])
		if len(x.Quant.Scales) > 0 {
			m.pin.Pin(&x.Quant.Scales[0])
		}
		if len(x.Quant.Blocks) > 0 {
			m.pin.Pin(&x.Quant.Blocks[0])
		}
	}
}

// readBehind is the size of a vector in bytes.
const readBehind = 64

// readableBehind reports whether readBehind bytes past the end of b are readable: they are within
// b's capacity, or on the page that b ends on.
func readableBehind(b []byte) bool {
	const page = 4096
	last := uintptr(xnn.AddressOf(b)) + uintptr(len(b)) - 1
	return cap(b)-len(b) >= readBehind || last/page == (last+readBehind)/page
}

// newRuntime creates a runtime of the graph, initially for values of the given shapes. The first
// runtime packs the weights; the others share them.
func (m *nativeImage) newRuntime(shapes []shape, pool xnn.Threadpool, flags uint32, w *workspace) (xnn.Runtime, error) {
	if len(m.graph.Nodes) == 0 { // only arguments that pass through
		return 0, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	lib := m.lib
	if m.weights == nil {
		return 0, delegate.Errorf(ID, delegate.ErrDevice, "", "the delegate is closed")
	}
	b := &builder{lib: lib, graph: m.graph, shapes: shapes}
	defer func() {
		if b.sub != 0 {
			lib.DeleteSubgraph(b.sub)
		}
	}()
	if err := b.define(); err != nil {
		return 0, unsupported("", "%w", err)
	}
	m.weights.begin()
	var rt xnn.Runtime
	status := w.create(func() xnn.Status {
		return lib.CreateRuntime(b.sub, m.weights.cache.WeightsCache, w.handle, pool, flags|xnn.FlagNoFusion, &rt)
	})
	m.weights.end()
	err := m.weights.fault()
	if failed := status.Error("xnn_create_runtime_v4"); err == nil && failed != nil {
		err = unsupported("", "%w", failed)
	}
	if err != nil {
		w.delete(rt)
		return 0, err
	}
	return rt, nil
}

// free frees all resources, once.
func (h *holdings) free() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.weights == nil {
		return
	}
	h.packed = h.weights.bytes()
	h.spare.release()
	h.weights.close()
	h.weights = nil
	h.pin.Unpin()
}

// packedBytes returns the size of the packed weights, also after Close.
func (h *holdings) packedBytes() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.weights == nil {
		return h.packed
	}
	return h.weights.bytes()
}

// packAgain creates the first runtime once more after the library failed, in another workspace. All weights
// must be packed already: filters are released.
func (m *nativeImage) packAgain() (err error) {
	m.seal()
	shapes := m.spare.shapes
	m.spare.release()
	if m.spare.workspace, err = newWorkspace(m.lib); err != nil {
		return err
	}
	m.spare.shapes = shapes
	if m.spare.runtime, err = m.newRuntime(shapes, 0, 0, m.spare.workspace); err != nil {
		return err
	}
	return m.planSpare()
}

// pack creates the first runtime, which packs the weights.
func (m *nativeImage) pack() (err error) {
	if m.spare.workspace, err = workspaceIn(m.scratch, m.lib); err != nil {
		return err
	}
	m.small = m.smallShapes()
	if m.spare.shapes = m.shapes; m.small != nil {
		m.spare.shapes = m.small
	}
	if err := m.rehearse(); err != nil {
		return err
	}
	m.spare.runtime, err = m.newRuntime(m.spare.shapes, 0, 0, m.spare.workspace)
	return err
}

// rehearse creates and plans a runtime without packed weights, if filters are released while the first
// runtime packs them: if the library fails after that, no other engine can run the graph.
func (m *nativeImage) rehearse() (err error) {
	w := m.weights
	if w.release == nil {
		return nil
	}
	w.rehearsal = tensor.AlignedBytes(tensor.Alignment)
	defer func() { w.rehearsal = nil }()
	if m.spare.runtime, err = m.newRuntime(m.spare.shapes, 0, 0, m.spare.workspace); err == nil {
		err = m.planSpare()
	}
	m.spare.workspace.delete(m.spare.runtime)
	m.spare.runtime, m.spare.planned = 0, false
	return err
}

// nativeOptions are those of a [Backend] that concern the library.
type nativeOptions struct {
	library       string
	weightsFolder string
	mapWeights    bool
}

func (m *nativeImage) name() string { return "native" }

func (m *nativeImage) unit(in delegate.Instance) (delegate.Unit, error) {
	u, err := newNative(m, in)
	if err == nil {
		return u, nil
	}
	if !m.runsInGo(err) {
		return nil, err
	}
	return m.inGo.unit(in)
}

// runsInGo reports whether the Go engine can run calls after an error of the library, and stores the error
// for Warnings. It cannot once filters are released.
func (m *nativeImage) runsInGo(err error) bool {
	if m.frozen {
		return false
	}
	m.fail(err)
	return true
}

// needs returns the memory; that of the weights is known.
func (m *nativeImage) needs() needs {
	n := m.memory
	n.weights = m.packedBytes()
	return n
}

func (m *nativeImage) facts() [][2]string {
	return [][2]string{{"library", describeLibrary(m.lib)}, {"packed weights", fmt.Sprintf("%d bytes", m.packedBytes())}}
}

func (m *nativeImage) close() {
	if m.holdings != nil {
		m.free()
	}
	m.inGo.close()
}

func describeLibrary(lib *xnn.Library) string {
	if lib.PoolStalls {
		return lib.Path + ", one thread: its thread pool stalls on busy processors"
	}
	return lib.Path
}
