package native

import (
	"runtime"
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Unit is a unit that runs in libXNNPACK: a runtime in the unit's workspace, set up with the
// addresses of the last call's arguments. A call with the same arguments and sizes is one C
// call. Large calls, and profiled ones, have runtimes of their own, created by the first such
// call.
type Unit struct {
	Image *Image
	pool  *cpu.Pool
	*handles
	now       *instance // the current runtime, one of handles
	profiling bool      // nodes are timed

	args   []*graph.Argument
	values []xnn.ExternalValue
	shapes []graph.Shape // of the values, at the sizes of the last call
	bound  bool          // args, values and shapes are those of the last call
	finish bool          // outputs must be finished after a run
	dims   [xnn.MaxDims]uint
	times  []uint64
	need   uint // the size of times, as the library reports it
	// other runs calls with shapes that the library does not support; nil until the first such
	// call.
	other       goUnit
	UseOther    bool // other runs the shapes of the last call
	noWorkspace bool // the unit has no workspace in which the library could run
	// Repeated is how many calls in a row the library ran first, and the Go engine then, see executeChecked.
	Repeated int
	ranInGo  bool // the results of the last call are those of the Go engine, although UseOther is not set
}

// goUnit is a unit of the Go engine.
type goUnit interface {
	delegate.Unit
	delegate.Profiler
}

// instance is a runtime of the library, with its setup state for the last call of the unit.
type instance struct {
	Runtime  xnn.Runtime
	flags    uint32
	threaded bool
	layout   layout        // that the runtime was created for
	planned  []graph.Shape // of the values, at the sizes that the runtime's memory is planned for; empty if it is not planned
	set      bool          // it has the sizes and addresses of the last call
	used     bool          // it has run
	names    []string      // of the operators of a profiled runtime
}

// adopt stores a runtime for values of the given shapes. Its memory is not planned yet.
func (r *instance) adopt(rt xnn.Runtime, g *graph.Graph, s []graph.Shape) {
	r.Runtime, r.names = rt, nil
	r.layout.set(g, s)
}

// handles holds the library objects that a unit owns. They are freed by Close, or when the unit is
// garbage collected.
type handles struct {
	lib          *xnn.Library
	Threads      *threads    // nil if no call is large enough for several threads
	Plain, Timed [2]instance // each for small calls and for large ones; the timed ones are profiled
	Workspace    *workspace
	closed       bool
	pin          runtime.Pinner // pins argument memory whose addresses the runtimes store
}

func (h *handles) release() {
	h.dropAll()
	h.Workspace.release()
	h.Workspace, h.closed = nil, true
	h.Threads.release()
	h.Threads = nil
	h.pin.Unpin()
}

// drop deletes the runtime of an instance, if there is one.
func (h *handles) drop(r *instance) {
	if h.Workspace != nil {
		h.Workspace.delete(r.Runtime)
	}
	r.Runtime, r.planned, r.set, r.used = 0, r.planned[:0], false, false
}

func (h *handles) dropAll() {
	for i := range h.Plain {
		h.drop(&h.Plain[i])
		h.drop(&h.Timed[i])
	}
}

func newUnit(m *Image, in delegate.Instance) (*Unit, error) {
	u := &Unit{Image: m, pool: in.Pool, handles: &handles{lib: m.lib}, shapes: slices.Clone(m.Shapes)}
	for i := range u.Timed {
		u.Timed[i].flags = xnn.FlagBasicProfiling
	}
	runtime.AddCleanup(u, (*handles).release, u.handles)
	u.args = graph.NewArguments(m.Graph, m.Shapes, m.Args)
	u.values = make([]xnn.ExternalValue, len(u.args))
	if graph.Parallel(m.Cost, len(m.Graph.Nodes)) && !u.lib.PoolStalls && in.Pool != nil && in.Pool.Size() > 1 {
		u.Threads = acquireThreads(m.lib, in.Pool.Size())
		u.Plain[1].threaded, u.Timed[1].threaded = true, true
	}
	if err := u.begin(in.Scratch); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

// begin sets the first runtime. It uses the one that Compile created if that is of the right kind
// and is in the instance's workspace or in one of its own. If calls have other sizes than the
// declared ones, the first call plans the runtime.
func (u *Unit) begin(s *delegate.Scratch) (err error) {
	m := u.Image
	spare := m.spareRuntime()
	if s == nil && m.Scratch == nil && spare.runtime != 0 {
		u.Workspace = spare.workspace
		u.Workspace.retain()
	} else if u.Workspace, err = workspaceIn(s, u.lib); err != nil {
		spare.release()
		return err
	}
	u.choose()
	fits := spare.runtime != 0 && spare.workspace == u.Workspace
	if !fits || u.now.threaded && !m.HasDynamicArgs() {
		if m.HasDynamicArgs() {
			spare.release()
			return nil
		}
		if err := u.create(); err == nil || !fits {
			spare.release()
			return err
		} else {
			m.Fail(err)
			u.useOneThread()
		}
	}
	r := &u.Plain[0]
	r.adopt(spare.runtime, m.Graph, spare.shapes)
	spare.workspace.release() // u retains it separately
	if !spare.planned {
		return nil
	}
	r.planned = append(r.planned, spare.shapes...)
	if u.checkShapes(r) == nil {
		return nil
	}
	return u.create()
}

// useOneThread makes the unit run all calls on one thread.
func (u *Unit) useOneThread() {
	u.Threads.release()
	u.Threads = nil
	u.Plain[1].threaded, u.Timed[1].threaded = false, false
	u.choose()
}

// choose selects the runtime for the sizes of the last call.
func (u *Unit) choose() {
	list := &u.Plain
	if u.profiling {
		list = &u.Timed
	}
	u.now = &list[0]
	if u.isLarge() {
		u.now = &list[1]
	}
}

// isLarge reports whether the last call is large enough to run on the threads. Without threads, it
// reports whether the call is larger than the small sizes that the first runtime stays planned for.
func (u *Unit) isLarge() bool {
	m := u.Image
	if u.Threads != nil {
		return slices.Equal(u.shapes, m.Shapes) || graph.Parallel(m.Graph.Cost(u.shapes), len(m.Graph.Nodes))
	}
	return m.small != nil && !slices.Equal(u.shapes, m.small)
}

// create creates the current runtime and deletes the previous one.
func (u *Unit) create() error {
	pool := xnn.Threadpool(0)
	if u.now.threaded {
		pool = u.Threads.pool()
	}
	rt, err := u.Image.newRuntime(u.shapes, pool, u.now.flags, u.Workspace)
	if err != nil {
		return err
	}
	u.drop(u.now)
	u.now.adopt(rt, u.Image.Graph, u.shapes)
	return nil
}

// renew replaces a workspace in which a plan of another unit failed.
func (u *Unit) renew() error {
	w, err := newWorkspace(u.lib)
	if err != nil {
		return err
	}
	u.dropAll()
	u.Workspace.release()
	u.bound, u.Workspace = false, w
	return nil
}

// invoke runs the graph in the library.
func (u *Unit) invoke() error {
	if u.now.Runtime != 0 {
		if status := u.lib.InvokeRuntime(u.now.Runtime); status != xnn.Success {
			return deviceError(status.Error("xnn_invoke_runtime"))
		}
	}
	return nil
}

// follow sets the unit up for the arguments of a call.
func (u *Unit) follow(args []*tensor.Value) error {
	if u.Workspace != nil && u.Workspace.Broken && !u.noWorkspace {
		if err := u.renew(); err != nil {
			if u.bound = false; !u.Image.runsInGo(err) {
				return err
			}
			u.noWorkspace = true
		}
	}
	if !u.bound || !graph.SameArguments(u.args, args) {
		if err := u.bind(args); err != nil {
			return err
		}
	}
	if !u.UseOther && !u.now.set {
		if err := u.ready(); err != nil {
			return u.recover(err)
		}
	}
	return nil
}

// recover sets the unit up with a new runtime after an error of the library. If that fails too, the Go engine
// runs the call.
func (u *Unit) recover(err error) error {
	u.drop(u.now) // its operators may be in any state
	again := !u.closed && (!u.Workspace.Broken || u.renew() == nil) && u.ready() == nil
	if u.bound = again; again {
		return nil
	}
	u.drop(u.now)
	if u.closed || !u.Image.runsInGo(err) {
		return err
	}
	u.bound = true
	return u.useGo()
}

// bind checks the arguments and stores their sizes and addresses. It does not set up a runtime.
func (u *Unit) bind(args []*tensor.Value) error {
	rebind := !u.bound
	u.bound = false
	reshaped, err := graph.BindArguments(u.Image.Graph, u.args, args, u.shapes, rebind, u.Plain[0].planned, u.Plain[1].planned)
	if err != nil {
		return err
	}
	u.finish = slices.ContainsFunc(u.args, func(a *graph.Argument) bool { return a.After != nil })
	if reshaped || rebind {
		if err := u.chooseEngine(); err != nil {
			return err
		}
		u.choose()
	}
	for i := range u.Plain {
		u.Plain[i].set, u.Timed[i].set = false, false
	}
	if !u.UseOther && len(u.Image.Graph.Nodes) > 0 {
		u.pinArguments()
	}
	u.bound = true
	return nil
}

// pinArguments pins the memory of the arguments, unless it is that of the last call.
func (u *Unit) pinArguments() {
	if u.pinned() {
		return
	}
	u.pin.Unpin()
	for i, a := range u.args {
		u.pin.Pin(&a.Data[0])
		u.values[i] = xnn.ExternalValue{ID: uint32(i), Data: xnn.AddressOf(a.Data)}
	}
}

func (u *Unit) pinned() bool {
	for i, a := range u.args {
		if u.values[i].Data != xnn.AddressOf(a.Data) {
			return false
		}
	}
	return true
}

// ready sets up the current runtime for the sizes and addresses of the last call.
func (u *Unit) ready() error {
	g, r := u.Image.Graph, u.now
	switch {
	case len(g.Nodes) == 0: // arguments pass through
		r.set = true
		return nil
	case u.closed:
		return delegate.Errorf(graph.ID, delegate.ErrDevice, "", "unit is closed")
	}
	if r.Runtime == 0 || !slices.Equal(r.planned, u.shapes) && !r.layout.matches(g, u.shapes) {
		if err := u.create(); err != nil {
			return err
		}
	}
	if err := u.setup(r); err != nil {
		return err
	}
	r.set, r.used = true, true
	return nil
}

// setup passes the addresses of the arguments to the runtime and, if it was planned for other
// sizes, also their sizes.
//
// A reshape alone replans memory only if a value exceeds all its previous sizes. If another value
// caused a plan at smaller sizes, values that grow back would overlap others. So every change of
// sizes is planned.
func (u *Unit) setup(r *instance) error {
	n, values := uint(len(u.values)), &u.values[0]
	if slices.Equal(r.planned, u.shapes) {
		return deviceError(u.lib.SetupRuntime(r.Runtime, n, values).Error("xnn_setup_runtime_v2"))
	}
	r.planned = r.planned[:0]
	if err := u.reshape(); err != nil {
		return err
	}
	err := u.Workspace.plan("xnn_setup_runtime", func() xnn.Status { return u.lib.PlanRuntime(r.Runtime, n, values) })
	if err != nil {
		return deviceError(err)
	}
	r.planned = append(r.planned, u.shapes...)
	return u.checkShapes(r)
}

// chooseEngine checks whether the library supports the shapes of a call. It skips the check for
// shapes at which the image was checked or a runtime is planned.
func (u *Unit) chooseEngine() error {
	u.UseOther = false
	m := u.Image
	if u.noWorkspace {
		return u.useGo()
	}
	if slices.Equal(u.shapes, m.Shapes) || u.isPlanned() || Refuses(m.Graph, u.shapes) == "" &&
		Miscomputed(m.Graph, m.lib.Soname, u.shapes, false) == "" && m.affords(u.shapes) {
		return nil
	}
	if m.frozen {
		return delegate.Errorf(graph.ID, delegate.ErrArgument, "",
			"sizes beyond the declared ones, for which filters are packed in another form only")
	}
	return u.useGo()
}

// useGo makes the Go engine run calls of the current shapes.
func (u *Unit) useGo() error {
	u.UseOther = true
	return u.makeOther()
}

// makeOther creates the unit of the Go engine, unless there is one.
func (u *Unit) makeOther() error {
	if u.other != nil {
		return nil
	}
	other, err := u.Image.InGo.Unit(delegate.Instance{Pool: u.pool})
	if err != nil {
		return err
	}
	u.other = other.(goUnit)
	return u.other.SetProfiling(u.profiling)
}

// isPlanned reports whether a runtime is planned for the current sizes.
func (u *Unit) isPlanned() bool {
	return slices.Equal(u.shapes, u.Plain[0].planned) || slices.Equal(u.shapes, u.Plain[1].planned)
}

// reshape sets the sizes of the current runtime's inputs.
func (u *Unit) reshape() error {
	g, r := u.Image.Graph, u.now
	for i, v := range g.Args[:g.Inputs] {
		rank := u.setDims(u.shapes[v])
		if err := u.lib.ReshapeExternalValue(r.Runtime, uint32(i), rank, &u.dims[0]).Error("xnn_reshape_external_value"); err != nil {
			return deviceError(err)
		}
	}
	return nil
}

// checkShapes checks that a planned runtime infers the same argument sizes as this package.
func (u *Unit) checkShapes(r *instance) error {
	g := u.Image.Graph
	for i, v := range g.Args {
		var rank uint
		if err := u.lib.GetExternalValueShape(r.Runtime, uint32(i), &rank, &u.dims[0]).Error("xnn_get_external_value_shape"); err != nil {
			return deviceError(err)
		}
		if got := u.getDims(rank); got != r.planned[v] {
			return delegate.Errorf(graph.ID, delegate.ErrDevice, graph.ArgumentLocation(g, i), "the library makes it %v, want %v", got, r.planned[v])
		}
	}
	return nil
}

func (u *Unit) setDims(s graph.Shape) (rank uint) {
	for i, d := range s.Dims() {
		u.dims[i] = uint(d)
	}
	return uint(s.Rank)
}

func (u *Unit) getDims(rank uint) graph.Shape {
	s := graph.Shape{Rank: int(min(rank, xnn.MaxDims))}
	for i := range s.Rank {
		s.Dim[i] = int(u.dims[i])
	}
	return s
}

// Close deletes the runtime.
func (u *Unit) Close() error {
	u.release()
	u.bound = false
	return nil
}

var _ lowering.Checker = (*Unit)(nil)

// Check implements lowering.Checker. It rejects sizes at which the library must not run the graph:
// there the original calls are faster than the Go engine.
func (u *Unit) Check(args []*tensor.Value) error {
	if err := u.follow(args); err != nil {
		return err
	}
	if u.UseOther {
		return graph.Unsupported("", "sizes that the library may not have")
	}
	return nil
}

// Unit creates a unit, of the Go engine if the library fails and filters were not released.
func (m *Image) Unit(in delegate.Instance) (delegate.Unit, error) {
	u, err := newUnit(m, in)
	if err == nil {
		return u, nil
	}
	if !m.runsInGo(err) {
		return nil, err
	}
	return m.InGo.Unit(in)
}
