package xnnpack

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// image is a compiled payload.
type image struct {
	graph        *graph
	shapes       []shape // at the declared sizes
	small        []shape // at small ones that calls may have, too; nil where there is no need for them
	cost         float64
	limits       delegate.Limits
	needs        needs          // at the declared sizes
	native       bool           // else the reference engine runs it
	inGo         bool           // the method's graphs are none for the library, see survey
	estimates    estimates      // by which an engine was chosen, zero where none was
	whyReference string         // why not the native one, "" if nobody asked for it
	noLibrary    *xnn.OpenError // the reason, where it is that there is no library
	places       *places        // of the Go engine, at the declared sizes
	packOnce     sync.Once
	packed       []*floatFilter // of the Go engine, by node
	memory       *filterMemory  // that they lie in
	cacheNote    string         // what became of the weights file, if there is to be one
	args         []*delegate.ArgSpec
	scratch      *delegate.Scratch
	giveBack     func([]byte) bool // see delegate.Payload.Release
	region       bool              // the graph is one that was lowered
	frozen       bool              // filters were given back: no other sizes, no further weights
	calls        int               // the number of arguments of calls; values that are shown follow them
	shown        bool              // units show their values
	mended       *graph            // where the exporter's faults were repaired: the graph before it was fused

	int8 int8Store // of the Go engine

	mu sync.Mutex // held while a runtime is created: they share the weights
	*holdings
}

// holdings are what an image has of the library. They are freed by Close, or after the
// image was forgotten.
type holdings struct {
	lib     *xnn.Library
	weights *weights
	spare   compiled       // made by Compile, for the first unit
	pin     runtime.Pinner // constants, which the library keeps addresses of
}

// compiled is a runtime with the workspace that its values lie in.
type compiled struct {
	runtime   xnn.Runtime
	workspace *workspace
	shapes    []shape // that it was made for
	planned   bool    // for these
}

func (c *compiled) release() {
	c.workspace.delete(c.runtime)
	c.workspace.release()
	*c = compiled{}
}

// openNative makes the image one of the native engine, with the weights packed.
func (m *image) openNative(ctx context.Context, b Backend) error {
	lib, err := xnn.Open(b.Library)
	if err != nil {
		return &delegate.Error{Backend: ID, Reason: delegate.ErrMissing, Err: err}
	}
	if reason := cmp.Or(m.graph.planLimits(m.shapes), m.graph.refuses(m.shapes)); reason != "" {
		return unsupported("", "%s: not for %s", reason, lib.Soname.Name)
	}
	m.needs = m.graph.nativeNeeds(lib.Soname, m.shapes, cpu.DefaultThreads())
	if m.hasDynamicArgs() { // there may be a second runtime, for large calls
		m.needs.scratch = plus(m.needs.scratch, m.needs.timed)
	}
	if err := m.needs.check(m.limits); err != nil {
		return err
	}
	m.native, m.holdings = true, &holdings{lib: lib, weights: newWeights(m.needs.weights, m.limits.Packed(m.needs.scratch))}
	runtime.AddCleanup(m, (*holdings).release, m.holdings)
	m.pinConstants()
	m.weights.constants = m.releasable()
	if b.WeightsCache == "" {
		m.weights.release = m.giveBack
	}
	err = m.useFile(ctx, b, func() (err error) {
		if m.spare.workspace, err = workspaceIn(m.scratch, lib); err == nil {
			m.small = m.smallShapes()
			if m.spare.shapes = m.shapes; m.small != nil {
				m.spare.shapes = m.small
			}
			m.spare.runtime, err = m.newRuntime(m.spare.shapes, 0, 0, m.spare.workspace)
		}
		return err
	})
	if err != nil || m.spare.runtime == 0 {
		return err
	}
	if err := m.planSpare(); err != nil {
		return err
	}
	m.seal()
	return nil
}

// planSpare plans the memory of the spare runtime, unless that is much memory for the
// largest of several sizes, for which there may never be a use: the library clears what it
// plans. The first call plans for its own sizes then.
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

// seal ends the packing: what a file of weights was made from is given back now, and later
// runtimes get stand-ins for scales that are gone.
func (m *image) seal() {
	w := m.weights
	w.sealed = true
	if w.release == nil {
		w.release = m.giveBack
		for i := range w.entries {
			w.giveBack(w.entries[i].key.Kernel)
		}
	}
	for _, x := range w.unscaled {
		x.Quant.Blocks = standInScales(len(x.Quant.Blocks))
		m.pin.Pin(&x.Quant.Blocks[0])
	}
	w.unscaled, m.frozen = nil, w.gone
}

const (
	// manyBytes is the memory between nodes from which it matters what sizes a runtime is
	// made for: it never plans for less.
	manyBytes = 256 << 10
	mostTried = 4    // sizes
	mostNodes = 1024 // of graphs where sizes are tried
)

// smallShapes are those that the first runtime is made for where calls have sizes of their
// own. As nothing says what sizes they may have, each dynamic size of the inputs is tried
// as 1, everywhere at once: the tokens of a language model are one. Images stay images.
func (m *image) smallShapes() (small []shape) {
	least := m.needs.shared
	if !m.hasDynamicArgs() || least < manyBytes || len(m.graph.Nodes) > mostNodes || m.graph.hasImages() {
		return nil
	}
	tried := make(map[int]bool)
	for i, v := range m.graph.Args[:m.graph.Inputs] {
		for _, d := range m.shapes[v].dims() {
			if !isDynamic(m.args[i]) || d == 1 || tried[d] || len(tried) == mostTried {
				continue
			}
			tried[d] = true
			s := m.with(d)
			if s == nil {
				continue
			}
			if n := m.graph.arenaBytes(s); n < least {
				small, least = s, n
			}
		}
	}
	return small
}

// hasImages reports nodes that slide windows.
func (g *graph) hasImages() bool {
	return slices.ContainsFunc(g.Nodes, func(n node) bool { return n.Type.convolution || n.Type.bySize })
}

// with are the shapes where all dynamic sizes d of inputs are 1, nil where the graph or
// the library cannot have them, or a runtime for them would not serve the declared ones.
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

// hasDynamicArgs reports calls that are known to have sizes of their own.
func (m *image) hasDynamicArgs() bool { return len(m.args) > 0 && !areStatic(m.args) }

// takeSpare hands over the runtime that Compile has made, with a use of its workspace.
func (m *image) takeSpare() compiled {
	m.mu.Lock()
	defer m.mu.Unlock()
	spare := m.spare
	m.spare = compiled{}
	return spare
}

// pinConstants keeps constants in their places, and makes sure that what the library
// may read behind them is readable.
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

// readBehind is the width of a vector.
const readBehind = 64

// readableBehind reports that a vector's width of bytes behind b can be read: they
// are b's own capacity, or lie on the page that b ends on.
func readableBehind(b []byte) bool {
	const page = 4096
	last := uintptr(xnn.AddressOf(b)) + uintptr(len(b)) - 1
	return cap(b)-len(b) >= readBehind || last/page == (last+readBehind)/page
}

// newRuntime makes a runtime of the graph, for values of the given shapes at first. The
// weights are packed by the first one and shared by the others.
func (m *image) newRuntime(shapes []shape, pool xnn.Threadpool, flags uint32, w *workspace) (xnn.Runtime, error) {
	if len(m.graph.Nodes) == 0 { // arguments that pass through
		return 0, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	lib := m.lib
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
	w.mu.Lock()
	status := lib.CreateRuntime(b.sub, m.weights.cache.WeightsCache, w.handle, pool, flags|xnn.FlagNoFusion, &rt)
	w.mu.Unlock()
	if m.weights.refused {
		return 0, delegate.Errorf(ID, delegate.ErrDevice, "", "the library packs in another order than before; the filters were given back")
	}
	if m.weights.over {
		return 0, delegate.Errorf(ID, delegate.ErrMemory, "", "packed weights of more than %d bytes, which the limit leaves", m.weights.limit)
	}
	if err := status.Error("xnn_create_runtime_v4"); err != nil {
		return 0, unsupported("", "%w", err)
	}
	return rt, nil
}

// Unit makes an instance.
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
	if m.native {
		return newNative(m, in)
	}
	return newReference(m, in), nil
}

// Close frees the packed weights.
func (m *image) Close() error {
	if m.holdings != nil {
		m.holdings.release()
	}
	m.memory.close()
	return nil
}

// release frees everything, once.
func (h *holdings) release() {
	if h.weights == nil {
		return
	}
	h.spare.release()
	h.weights.close()
	h.weights = nil
	h.pin.Unpin()
}

// Needs is at the declared sizes.
func (m *image) Needs() delegate.Needs {
	n := delegate.Needs{Inputs: m.graph.Inputs, Scratch: m.needs.scratch, Shared: m.needs.shared, Profiling: m.needs.timed}
	if m.native {
		m.mu.Lock()
		n.PackedBytes = m.weights.bytes()
		m.mu.Unlock()
	}
	return n
}

// constantBytes counts the constants that nodes use.
func (g *graph) constantBytes() (n int64) {
	used := g.used()
	for v := range g.Values {
		if x := &g.Values[v]; used[v] && x.isConst() {
			n += int64(len(x.Data) + 4*len(x.Quant.Scales) + 2*len(x.Quant.Blocks))
		}
	}
	return n
}

// libraryAdvice tells how to get libXNNPACK.
func libraryAdvice() string {
	if !xnn.DynamicLoading {
		return "builds for Linux on amd64 and arm64 without the tag nodl can open libXNNPACK"
	}
	return fmt.Sprintf("\"etrun doctor --fix\" downloads libXNNPACK into %s, \"make deps\" into a checkout; %s names another place",
		cmp.Or(xnn.UserFolder(), "the home directory"), xnn.EnvPath)
}

// Warnings says that the library is not there, that a folder for weights is not used, and
// that the payload was repaired.
func (m *image) Warnings() (list []delegate.Warning) {
	if n := len(m.graph.mended); n > 0 {
		list = append(list, delegate.Warning{Class: delegate.WarnRepair,
			Text: fmt.Sprintf("%s: %d faults of the exporter were repaired, the first: %s", ID, n, m.graph.mended[0])})
	}
	if m.noLibrary != nil {
		list = append(list, delegate.Warning{Class: delegate.WarnEngine, Text: fmt.Sprintf("%s: the engine in Go runs, which is slower: %v; %s", ID, m.noLibrary, libraryAdvice())})
	}
	if why, unused := strings.CutPrefix(m.cacheNote, notKept); unused {
		list = append(list, delegate.Warning{Class: delegate.WarnCache, Text: ID + ": packed weights are not kept: " + why})
	}
	return list
}

// notKept begins the note of weights that are in no file.
const notKept = "not kept: "

// Info lists the nodes with the shapes of their outputs at the declared sizes.
func (m *image) Info() delegate.Info {
	info := delegate.Info{Engine: string(EngineNative), Needs: m.Needs(), WeightBytes: m.graph.constantBytes(), Repairs: m.graph.mended}
	if !m.native {
		info.Engine = string(EngineReference)
	}
	if m.mended != nil && m.giveBack == nil { // else constants may not be there any more
		info.Repaired = m.mended.payload(0)
	}
	info.Facts = append(info.Facts, [2]string{"schema", m.graph.Version}, [2]string{"multiplications", fmt.Sprintf("%.0f", m.cost)})
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

// describeNode names a node's values: "fp32 1x5x5x3, fp32 4x3x3x3 → fp32 1x3x3x4".
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
			if x.isConst() && m.giveBack == nil {
				constants = append(constants, constantTensor(x).Tensor)
			}
		}
		sides[i] = strings.Join(values, ", ")
	}
	return delegate.Node{Name: n.Type.name, Detail: sides[0] + " → " + sides[1], Constants: constants}
}

// filters are those that the Go engine multiplies with, packed by the first who asks.
func (m *image) filters() []*floatFilter {
	m.packOnce.Do(func() { m.packed, m.memory = m.graph.packFilters(m.shapes, func(*node) {}) })
	return m.packed
}
