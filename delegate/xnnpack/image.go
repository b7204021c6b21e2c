package xnnpack

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/advice"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// image is a compiled payload.
type image struct {
	graph        *graph
	shapes       []shape // at the declared sizes
	small        []shape // of the first runtime, see smallShapes; nil if it has the declared ones
	cost         float64
	threadCount  int // threads of the instances
	limits       delegate.Limits
	needs        needs                  // at the declared sizes
	native       bool                   // else the Go engine runs it
	inGo         bool                   // the library does not pay off for the method's graphs, see survey
	estimates    estimates              // used to choose the engine; zero if the choice did not need them
	whyReference string                 // why the native engine is not used; "" if it was not requested
	noLibrary    *xnn.OpenError         // set if the reason is a missing library
	failure      atomic.Pointer[string] // of the library, after which the Go engine runs calls; nil for none
	places       *places                // of values between nodes in the Go engine, at the declared sizes
	packOnce     sync.Once
	packed       *packed // constants of the Go engine; nil until they are packed
	cacheNote    string  // state of the weights file, if one is requested
	args         []*delegate.ArgSpec
	scratch      *delegate.Scratch
	release      func([]byte) bool // see delegate.Payload.Release
	region       bool              // the graph was lowered from operators
	checked      bool              // arguments of calls are checked, see checksNumbers
	frozen       bool              // filters were released: no other sizes, no further weights
	calls        int               // the number of arguments of a call; observed values follow them
	shown        bool              // units expose intermediate values
	repaired     *graph            // the graph before fusion, if exporter faults were repaired

	*holdings
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

// openNative sets the image up for the native engine and packs the weights.
func (m *image) openNative(ctx context.Context, b Backend) error {
	lib, err := xnn.Open(b.Library)
	if err != nil {
		return &delegate.Error{Backend: ID, Reason: delegate.ErrMissing, Err: err}
	}
	if reason := cmp.Or(m.graph.planLimits(m.shapes), m.graph.refuses(m.shapes)); reason != "" {
		return unsupported("", "%s: not for %s", reason, lib.Soname.Name)
	}
	if reason := m.graph.miscomputed(lib.Soname, m.shapes, m.hasDynamicArgs()); reason != "" {
		return unsupported("", "%s (%s); the engines %q and %q do not", reason, lib.Soname.Name, EngineAuto, EngineGo)
	}
	m.needs = m.graph.nativeNeeds(lib.Soname, m.shapes, m.instanceThreads())
	if m.hasDynamicArgs() { // large calls may use a second runtime
		m.needs.scratch = plus(m.needs.scratch, m.needs.timed)
	}
	if err := m.needs.check(m.limits); err != nil {
		return err
	}
	m.native, m.holdings = true, &holdings{lib: lib, weights: newWeights(m.needs.weights, m.limits.Packed(m.needs.scratch))}
	runtime.AddCleanup(m, (*holdings).release, m.holdings)
	m.checked = m.checksNumbers()
	m.pinConstants()
	m.weights.constants = m.releasable()
	if b.WeightsCache == "" && m.weights.releasable() > keptBytes {
		m.weights.release = m.release
	}
	if err = m.useFile(ctx, b, m.pack); err == nil && m.spare.runtime != 0 {
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

// planSpare plans the memory of the spare runtime. It skips this if that memory is large and is for
// the largest of several sizes, which may never be used: the library clears what it plans. In that
// case the first call plans for its own sizes.
func (m *image) planSpare() error {
	if m.hasDynamicArgs() && m.small == nil && m.needs.shared >= manyBytes {
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
func (m *image) seal() {
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
func (m *image) smallShapes() (small []shape) {
	least := m.needs.shared
	if !m.hasDynamicArgs() || least < manyBytes || len(m.graph.Nodes) > maxTriedNodes || m.graph.hasImages() {
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
			if n := m.graph.arenaBytes(s, m.instanceThreads()); n < least {
				small, least = s, n
			}
		}
	}
	return small
}

// hasImages reports whether the graph has sliding-window nodes.
func (g *graph) hasImages() bool {
	return slices.ContainsFunc(g.Nodes, func(n node) bool { return n.Type.convolution || n.native().bySize })
}

// with returns the shapes in which every dynamic input size d is 1. It returns nil if the graph or
// the library does not support them, or if a runtime created for them could not run the declared
// shapes.
func (m *image) with(d int) []shape {
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
	if g.infer(s) != nil || g.refuses(s) != "" {
		return nil
	}
	var l layout
	if l.set(g, s); !l.fits(g, m.shapes) {
		return nil
	}
	return s
}

// hasDynamicArgs reports whether calls are known to have their own sizes.
func (m *image) hasDynamicArgs() bool { return len(m.args) > 0 && !areStatic(m.args) }

// takeSpare returns the runtime that Compile created, with a reference to its workspace.
func (m *image) takeSpare() compiled {
	m.mu.Lock()
	defer m.mu.Unlock()
	spare := m.spare
	m.spare = compiled{}
	return spare
}

// pinConstants pins constants in memory, and ensures that the bytes the library may read past their
// ends are readable.
func (m *image) pinConstants() {
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
func (m *image) newRuntime(shapes []shape, pool xnn.Threadpool, flags uint32, w *workspace) (xnn.Runtime, error) {
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

// Unit creates an instance.
func (m *image) Unit(in delegate.Instance) (delegate.Unit, error) {
	u, err := m.unit(in)
	if err != nil {
		return nil, err
	}
	if m.shown {
		return newViewed(m, u), nil
	}
	return u, nil
}

func (m *image) unit(in delegate.Instance) (delegate.Unit, error) {
	if !m.native {
		return newReference(m, in), nil
	}
	u, err := newNative(m, in)
	if err == nil {
		return u, nil
	}
	if !m.runsInGo(err) {
		return nil, err
	}
	return newReference(m, in), nil
}

// runsInGo reports whether the Go engine can run calls after an error of the library, and stores the error
// for Warnings. It cannot once filters are released.
func (m *image) runsInGo(err error) bool {
	if m.frozen {
		return false
	}
	m.fail(err)
	return true
}

// fail stores an error of the library for Warnings.
func (m *image) fail(err error) {
	text := err.Error()
	m.failure.CompareAndSwap(nil, &text)
}

// Close frees the packed weights.
func (m *image) Close() error {
	if m.holdings != nil {
		m.holdings.release()
	}
	if m.packed != nil {
		m.packed.memory.close()
	}
	return nil
}

// release frees all resources, once.
func (h *holdings) release() {
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

// Needs returns the requirements at the declared sizes.
func (m *image) Needs() delegate.Needs {
	n := delegate.Needs{Inputs: m.graph.Inputs, Scratch: m.needs.scratch, Shared: m.needs.shared, Profiling: m.needs.timed}
	if n.PackedBytes = m.needs.weights; m.native {
		n.PackedBytes = m.holdings.packedBytes()
	}
	return n
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

// constantBytes returns the size of the constants that nodes use.
func (g *graph) constantBytes() (n int64) {
	used := g.used()
	for v := range g.Values {
		if x := &g.Values[v]; used[v] && x.isConst() {
			n += int64(len(x.Data) + 4*len(x.Quant.Scales) + 2*len(x.Quant.Blocks))
		}
	}
	return n
}

// withoutLibrary says what a missing library means, and how to install it.
func withoutLibrary(err *xnn.OpenError) string {
	reason := err.Error()
	if err.Reason == xnn.ErrAbsent { // the places that were searched are in Probe
		reason = err.Reason.Error()
	}
	if !xnn.DynamicLoading {
		return fmt.Sprintf("%s: %s; builds for Linux on amd64 and arm64 without the tag nodl can open it", reason, advice.GoEngine)
	}
	return fmt.Sprintf("%s: %s; %v", reason, advice.GoEngine, advice.Library)
}

// Warnings reports a missing library, an unused folder for weights, and repairs of the payload.
func (m *image) Warnings() (list []delegate.Warning) {
	if n := len(m.graph.repaired); n > 0 {
		list = append(list, delegate.Warning{Class: delegate.WarnRepair,
			Text: fmt.Sprintf("%s: %d faults of the exporter were repaired, the first: %s", ID, n, m.graph.repaired[0])})
	}
	if m.noLibrary != nil {
		list = append(list, delegate.Warning{Class: delegate.WarnEngine,
			Text: ID + ": " + withoutLibrary(m.noLibrary)})
	}
	if why := m.failure.Load(); why != nil {
		list = append(list, delegate.Warning{Class: delegate.WarnEngine,
			Text: fmt.Sprintf("%s: libXNNPACK failed, the engine in Go runs instead, or fewer threads: %s", ID, *why)})
	}
	if why, unused := strings.CutPrefix(m.cacheNote, notKept); unused {
		list = append(list, delegate.Warning{Class: delegate.WarnCache, Text: ID + ": packed weights are not kept: " + why})
	}
	return list
}

// notKept starts the cacheNote of weights that are not in a file.
const notKept = "not kept: "

// Info lists the nodes with the shapes of their outputs at the declared sizes.
func (m *image) Info() delegate.Info {
	info := delegate.Info{Engine: string(EngineNative), Needs: m.Needs(), WeightBytes: m.graph.constantBytes(), Repairs: m.graph.repaired}
	if !m.native {
		info.Engine = string(EngineGo)
	}
	if m.repaired != nil && m.release == nil { // otherwise constants may have been released
		info.Repaired = m.repaired.payload(0)
	}
	info.Facts = append(info.Facts, [2]string{"schema", m.graph.Version}, [2]string{"MACs", fmt.Sprintf("%.0f", m.cost)})
	if m.estimates != (estimates{}) {
		info.Facts = append(info.Facts, [2]string{"estimated", m.estimates.String()})
	}
	if m.whyReference != "" {
		info.Facts = append(info.Facts, [2]string{"not native", m.whyReference})
	}
	if m.native {
		info.Facts = append(info.Facts, [2]string{"library", describeLibrary(m.lib)},
			[2]string{"packed weights", fmt.Sprintf("%d bytes", info.PackedBytes)})
	}
	if m.cacheNote != "" {
		info.Facts = append(info.Facts, [2]string{"weights file", m.cacheNote})
	}
	for i := range m.graph.Nodes {
		info.Nodes = append(info.Nodes, m.describeNode(&m.graph.Nodes[i]))
	}
	return info
}

// describeNode formats a node's values: "fp32 1x5x5x3, fp32 4x3x3x3 → fp32 1x3x3x4".
func (m *image) describeNode(n *node) delegate.Node {
	var sides [2]string
	var constants []*tensor.Tensor
	for i, list := range [2][]int{n.In, n.Out} {
		var values []string
		for _, v := range list {
			if v == none {
				continue
			}
			x := &m.graph.Values[v]
			sizes := strings.ReplaceAll(strings.Trim(m.shapes[v].String(), "[]"), " ", "x")
			values = append(values, x.Datatype.String()+" "+cmp.Or(sizes, "scalar"))
			if x.isConst() && m.release == nil {
				constants = append(constants, constantTensor(x).Tensor)
			}
		}
		sides[i] = strings.Join(values, ", ")
	}
	return delegate.Node{Name: n.Type.name, Detail: sides[0] + " → " + sides[1], Constants: constants}
}

// constants returns the constants of the Go engine. Where the library runs the graph, they are packed for the first
// call that it does not run.
func (m *image) constants() *packed {
	m.packOnce.Do(func() {
		m.packed, _ = m.graph.pack(context.Background(), m.shapes, m.instanceThreads(), func(*node) {})
	})
	return m.packed
}
