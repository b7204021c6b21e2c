package native

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Image is a graph that the library runs.
type Image struct {
	*graph.Compilation
	Cost      float64       // in MACs, at the declared sizes
	small     []graph.Shape // of the first runtime, see smallShapes; nil if it has the declared ones
	memory    graph.Needs   // at the declared sizes
	checked   bool          // arguments of calls are checked, see checksNumbers
	frozen    bool          // filters were released: no other sizes, no further weights
	CacheNote string        // state of the weights file, if one is requested
	InGo      graph.Engine  // runs calls that the library does not
	// Fail stores an error of the library, after which the Go engine runs calls.
	Fail func(error)

	*holdings // nil until the library runs the graph
}

// holdings are an image's library resources. They are freed by Close, or by a cleanup once the
// image is unreachable.
type holdings struct {
	mu      sync.Mutex // held while a runtime is created: runtimes share the weights
	packed  int64      // bytes of the weights, once they are freed
	lib     *xnn.Library
	Weights *weights       // nil once they are freed
	spare   compiled       // created by Compile, for the first unit
	pin     runtime.Pinner // pins constants, whose addresses the library keeps
}

// compiled is a runtime and the workspace that contains its values.
type compiled struct {
	runtime   xnn.Runtime
	workspace *workspace
	shapes    []graph.Shape // shapes the runtime was created for
	planned   bool          // memory is planned for shapes
}

func (c *compiled) release() {
	c.workspace.delete(c.runtime)
	c.workspace.release()
	*c = compiled{}
}

// Open plans the graph for the library and packs the weights.
func (m *Image) Open(ctx context.Context, library string, cache graph.WeightsCache) error {
	lib, err := xnn.Open(library)
	if err != nil {
		return &delegate.Error{Backend: graph.ID, Reason: delegate.ErrMissing, Err: err}
	}
	if reason := cmp.Or(PlanLimits(m.Graph, m.Shapes), Refuses(m.Graph, m.Shapes)); reason != "" {
		return graph.Unsupported("", "%s: not for %s", reason, lib.Soname.Name)
	}
	if reason := Miscomputed(m.Graph, lib.Soname, m.Shapes, m.HasDynamicArgs()); reason != "" {
		return graph.Unsupported("", "%s (%s); the engines \"auto\" and \"go\" do not", reason, lib.Soname.Name)
	}
	m.memory = needsOf(m.Graph, lib.Soname, m.Shapes, m.InstanceThreads())
	if m.HasDynamicArgs() { // large calls may use a second runtime
		m.memory.Scratch = graph.Plus(m.memory.Scratch, m.memory.Timed)
	}
	if err := m.memory.Check(m.Limits); err != nil {
		return err
	}
	m.holdings = &holdings{lib: lib, Weights: newWeights(m.memory.Weights, m.Limits.Packed(m.memory.Scratch))}
	runtime.AddCleanup(m, (*holdings).free, m.holdings)
	m.checked = m.checksNumbers()
	m.pinConstants()
	filters, size := m.releasable()
	if m.Weights.constants = filters; cache.Folder == "" && size > keptBytes {
		m.Weights.release = m.Release
	}
	if err = m.useFile(ctx, cache, m.pack); err == nil && m.spare.runtime != 0 {
		err = m.planSpare()
	}
	if err != nil && m.Weights.released && ctx.Err() == nil {
		err = m.packAgain()
	}
	if err == nil && m.spare.runtime != 0 {
		m.seal()
	}
	m.Weights.release, m.Weights.constants = nil, nil // they refer to the program, which would stay reachable until it is closed
	return err
}

// IsOpen reports whether the library has been opened for the image.
func (m *Image) IsOpen() bool { return m.holdings != nil }

// HasReleased reports whether filters were released: only the library can run the graph.
func (m *Image) HasReleased() bool { return m.IsOpen() && m.Weights.released }

// planSpare plans the memory of the spare runtime. It skips this if that memory is large and is for
// the largest of several sizes, which may never be used: the library clears what it plans. In that
// case the first call plans for its own sizes.
func (m *Image) planSpare() error {
	if m.HasDynamicArgs() && m.small == nil && m.memory.Shared >= manyBytes {
		return nil
	}
	spare := &m.spare
	err := spare.workspace.plan("xnn_reshape_runtime", func() xnn.Status { return m.lib.ReshapeRuntime(spare.runtime) })
	if err != nil {
		return graph.Unsupported("", "%w", err)
	}
	spare.planned = true
	return nil
}

// seal ends packing, after which the data that a weights file was made from is released.
func (m *Image) seal() {
	for _, x := range m.Weights.seal(m.Release) {
		m.pin.Pin(&x.Quant.Blocks[0])
	}
	m.frozen = m.Weights.released
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
func (m *Image) smallShapes() (small []graph.Shape) {
	least := m.memory.Shared
	if !m.HasDynamicArgs() || least < manyBytes || len(m.Graph.Nodes) > maxTriedNodes || hasImages(m.Graph) {
		return nil
	}
	tried := make(map[int]bool)
	for i, v := range m.Graph.Args[:m.Graph.Inputs] {
		for _, d := range m.Shapes[v].Dims() {
			if !graph.IsDynamic(m.Args[i]) || d == 1 || tried[d] || len(tried) == maxTriedSizes {
				continue
			}
			tried[d] = true
			s := m.with(d)
			if s == nil {
				continue
			}
			if n := arenaBytes(m.Graph, s, m.InstanceThreads()); n < least {
				small, least = s, n
			}
		}
	}
	return small
}

// hasImages reports whether the graph has sliding-window nodes.
func hasImages(g *graph.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n graph.Node) bool { return n.Type.Convolution || typeOf(&n).bySize })
}

// with returns the shapes in which every dynamic input size d is 1. It returns nil if the graph or
// the library does not support them, or if a runtime created for them could not run the declared
// shapes.
func (m *Image) with(d int) []graph.Shape {
	g := m.Graph
	s := make([]graph.Shape, len(m.Shapes))
	for i, v := range g.Args[:g.Inputs] {
		s[v] = m.Shapes[v]
		for k := range s[v].Rank {
			if s[v].Dim[k] == d && graph.IsDynamic(m.Args[i]) {
				s[v].Dim[k] = 1
			}
		}
	}
	if g.Infer(s) != nil || Refuses(g, s) != "" {
		return nil
	}
	var l layout
	if l.set(g, s); !l.matches(g, m.Shapes) {
		return nil
	}
	return s
}

// spareRuntime returns the runtime that Compile created, with a reference to its workspace.
func (m *Image) spareRuntime() compiled {
	m.mu.Lock()
	defer m.mu.Unlock()
	spare := m.spare
	m.spare = compiled{}
	return spare
}

// pinConstants pins constants in memory, and ensures that the bytes the library may read past their
// ends are readable.
func (m *Image) pinConstants() {
	copied := make(map[xnn.Address][]byte)
	for v := range m.Graph.Values {
		x := &m.Graph.Values[v]
		if !x.IsConst() {
			continue
		}
		if !graph.ReadableBehind(x.Data) {
			at := xnn.AddressOf(x.Data)
			if old, ok := copied[at]; !ok || len(old) < len(x.Data) {
				copied[at] = graph.Padded(x.Data)
				if m.Region {
					m.Graph.Own = append(m.Graph.Own, copied[at])
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

// newRuntime creates a runtime of the graph, initially for values of the given shapes. The first
// runtime packs the weights; the others share them.
func (m *Image) newRuntime(shapes []graph.Shape, pool xnn.Threadpool, flags uint32, w *workspace) (xnn.Runtime, error) {
	if len(m.Graph.Nodes) == 0 { // only arguments that pass through
		return 0, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	lib := m.lib
	if m.Weights == nil {
		return 0, delegate.Errorf(graph.ID, delegate.ErrDevice, "", "the delegate is closed")
	}
	b := &builder{lib: lib, graph: m.Graph, shapes: shapes}
	defer func() {
		if b.sub != 0 {
			lib.DeleteSubgraph(b.sub)
		}
	}()
	if err := b.define(); err != nil {
		return 0, graph.Unsupported("", "%w", err)
	}
	var rt xnn.Runtime
	err := m.Weights.serve(func(cache xnn.WeightsCache) error {
		return w.create(func() xnn.Status {
			return lib.CreateRuntime(b.sub, cache, w.handle, pool, flags|xnn.FlagNoFusion, &rt)
		}).Error("xnn_create_runtime_v4")
	})
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
	if h.Weights == nil {
		return
	}
	h.spare.release()
	h.packed = h.Weights.close()
	h.Weights = nil
	h.pin.Unpin()
	h.lib.Trim() // arenas of threads that only loaded a model would keep its memory
}

// packedBytes returns the size of the packed weights, also after Close.
func (h *holdings) packedBytes() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Weights == nil {
		return h.packed
	}
	return h.Weights.Bytes()
}

// packAgain creates the first runtime once more after the library failed, in another workspace. All weights
// must be packed already: filters are released.
func (m *Image) packAgain() (err error) {
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
func (m *Image) pack() (err error) {
	if m.spare.workspace, err = workspaceIn(m.Scratch, m.lib); err != nil {
		return err
	}
	m.small = m.smallShapes()
	if m.spare.shapes = m.Shapes; m.small != nil {
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
func (m *Image) rehearse() (err error) {
	w := m.Weights
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

// Name returns the name of the engine.
func (m *Image) Name() string { return "native" }

// runsInGo reports whether the Go engine can run calls after an error of the library, and stores the error
// for Warnings. It cannot once filters are released.
func (m *Image) runsInGo(err error) bool {
	if m.frozen {
		return false
	}
	m.Fail(err)
	return true
}

// Needs returns the memory; that of the weights is known.
func (m *Image) Needs() graph.Needs {
	n := m.memory
	n.Weights = m.packedBytes()
	return n
}

// Facts describes the library and the packed weights.
func (m *Image) Facts() [][2]string {
	return [][2]string{{"library", DescribeLibrary(m.lib)}, {"packed weights", fmt.Sprintf("%d bytes", m.packedBytes())}}
}

// Close frees the resources of the library and of the Go engine.
func (m *Image) Close() {
	if m.holdings != nil {
		m.free()
	}
	m.InGo.Close()
}

// DescribeLibrary returns the path of a library, and what it does not do.
func DescribeLibrary(lib *xnn.Library) string {
	if lib.PoolStalls {
		return lib.Path + ", one thread: its thread pool stalls on busy processors"
	}
	return lib.Path
}

// dependsOn writes what the file depends on besides the graph.
func (m *Image) dependsOn(h io.Writer) {
	fmt.Fprintln(h, runtime.GOARCH, m.lib.Soname.Name)
	h.Write(m.lib.BuildIdentifier())
	fmt.Fprintln(h, cpu.Processor())
}

// useFile reads the weights from a file. If that is not possible, it packs them and writes the
// file. It records the result in CacheNote.
func (m *Image) useFile(ctx context.Context, c graph.WeightsCache, pack func() error) (err error) {
	m.CacheNote, err = c.Use(ctx, m.Graph, graph.WeightsFile{Suffix: ".xnnweights", DependsOn: m.dependsOn,
		Open:  func(folder *os.Root, name string) error { return m.Weights.openFile(ctx, folder, name, m.Graph, c.Map) },
		Pack:  pack,
		Write: func(folder *os.Root, name string) error { return m.Weights.writeFile(folder, name, m.Graph) }})
	return err
}

// releasable returns the filters of the image that may be released, by address, and their size.
func (m *Image) releasable() (filters map[xnn.Address]graph.Releasable, bytes int64) {
	if m.checked || !m.Region && (len(m.Args) == 0 || !graph.AreStatic(m.Args) && !staysNative(m.Graph)) {
		return nil, 0
	}
	filters = m.Graph.OwnFilters()
	for _, f := range filters {
		bytes += int64(len(f.Value.Data))
	}
	return filters, bytes
}

// checksNumbers reports whether calls of the image are checked.
func (m *Image) checksNumbers() bool {
	if !m.Region {
		return false
	}
	for _, v := range m.Graph.Args[:m.Graph.Inputs] {
		if m.Graph.Values[v].Datatype.IsFloat() {
			return true
		}
	}
	return false
}
