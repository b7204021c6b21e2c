package xnnpack

import (
	"context"
	"runtime"
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// native is a unit that runs in libXNNPACK: a runtime in the unit's workspace, set up with the
// addresses of the last call's arguments. A call with the same arguments and sizes is one C
// call. Large calls, and profiled ones, have runtimes of their own, created by the first such
// call.
type native struct {
	image *nativeImage
	pool  *cpu.Pool
	*handles
	now       *instance // the current runtime, one of handles
	profiling bool      // nodes are timed

	args   []*argument
	values []xnn.ExternalValue
	shapes []shape // of the values, at the sizes of the last call
	bound  bool    // args, values and shapes are those of the last call
	finish bool    // outputs must be finished after a run
	dims   [xnn.MaxDims]uint
	times  []uint64
	need   uint // the size of times, as the library reports it
	// other runs calls with shapes that the library does not support; nil until the first such
	// call.
	other    goUnit
	useOther bool // other runs the shapes of the last call
	lost     bool // the unit has no workspace in which the library could run
}

// goUnit is a unit of the Go engine.
type goUnit interface {
	delegate.Unit
	delegate.Profiler
}

// instance is a runtime of the library, with its setup state for the last call of the unit.
type instance struct {
	runtime  xnn.Runtime
	flags    uint32
	threaded bool
	layout   layout   // that the runtime was created for
	planned  []shape  // of the values, at the sizes that the runtime's memory is planned for; empty if it is not planned
	set      bool     // it has the sizes and addresses of the last call
	used     bool     // it has run
	names    []string // of the operators of a profiled runtime
}

// take stores a runtime for values of the given shapes. Its memory is not planned yet.
func (r *instance) take(rt xnn.Runtime, g *graph, s []shape) {
	r.runtime, r.names = rt, nil
	r.layout.set(g, s)
}

// handles holds the library objects that a unit owns. They are freed by Close, or when the unit is
// garbage collected.
type handles struct {
	lib          *xnn.Library
	threads      *threads    // nil if no call is large enough for several threads
	plain, timed [2]instance // each for small calls and for large ones; the timed ones are profiled
	workspace    *workspace
	closed       bool
	pin          runtime.Pinner // pins argument memory whose addresses the runtimes store
}

func (h *handles) release() {
	h.dropAll()
	h.workspace.release()
	h.workspace, h.closed = nil, true
	h.threads.release()
	h.threads = nil
	h.pin.Unpin()
}

// drop deletes the runtime of an instance, if there is one.
func (h *handles) drop(r *instance) {
	if h.workspace != nil {
		h.workspace.delete(r.runtime)
	}
	r.runtime, r.planned, r.set, r.used = 0, r.planned[:0], false, false
}

func (h *handles) dropAll() {
	for i := range h.plain {
		h.drop(&h.plain[i])
		h.drop(&h.timed[i])
	}
}

func newNative(m *nativeImage, in delegate.Instance) (*native, error) {
	u := &native{image: m, pool: in.Pool, handles: &handles{lib: m.lib}, shapes: slices.Clone(m.shapes)}
	for i := range u.timed {
		u.timed[i].flags = xnn.FlagBasicProfiling
	}
	runtime.AddCleanup(u, (*handles).release, u.handles)
	u.args = newArguments(m.graph, m.shapes, m.args)
	u.values = make([]xnn.ExternalValue, len(u.args))
	if parallel(m.cost, len(m.graph.Nodes)) && !u.lib.PoolStalls && in.Pool != nil && in.Pool.Size() > 1 {
		u.threads = acquireThreads(m.lib, in.Pool.Size())
		u.plain[1].threaded, u.timed[1].threaded = true, true
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
func (u *native) begin(s *delegate.Scratch) (err error) {
	m := u.image
	spare := m.takeSpare()
	if s == nil && m.scratch == nil && spare.runtime != 0 {
		u.workspace = spare.workspace
		u.workspace.retain()
	} else if u.workspace, err = workspaceIn(s, u.lib); err != nil {
		spare.release()
		return err
	}
	u.choose()
	fits := spare.runtime != 0 && spare.workspace == u.workspace
	if !fits || u.now.threaded && !m.hasDynamicArgs() {
		if m.hasDynamicArgs() {
			spare.release()
			return nil
		}
		if err := u.create(); err == nil || !fits {
			spare.release()
			return err
		} else {
			m.fail(err)
			u.useOneThread()
		}
	}
	r := &u.plain[0]
	r.take(spare.runtime, m.graph, spare.shapes)
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
func (u *native) useOneThread() {
	u.threads.release()
	u.threads = nil
	u.plain[1].threaded, u.timed[1].threaded = false, false
	u.choose()
}

// choose selects the runtime for the sizes of the last call.
func (u *native) choose() {
	list := &u.plain
	if u.profiling {
		list = &u.timed
	}
	u.now = &list[0]
	if u.isLarge() {
		u.now = &list[1]
	}
}

// isLarge reports whether the last call is large enough to run on the threads. Without threads, it
// reports whether the call is larger than the small sizes that the first runtime stays planned for.
func (u *native) isLarge() bool {
	m := u.image
	if u.threads != nil {
		return slices.Equal(u.shapes, m.shapes) || parallel(m.graph.cost(u.shapes), len(m.graph.Nodes))
	}
	return m.small != nil && !slices.Equal(u.shapes, m.small)
}

// create creates the current runtime and deletes the previous one.
func (u *native) create() error {
	pool := xnn.Threadpool(0)
	if u.now.threaded {
		pool = u.threads.pool()
	}
	rt, err := u.image.newRuntime(u.shapes, pool, u.now.flags, u.workspace)
	if err != nil {
		return err
	}
	u.drop(u.now)
	u.now.take(rt, u.image.graph, u.shapes)
	return nil
}

// renew replaces a workspace in which a plan of another unit failed.
func (u *native) renew() error {
	w, err := newWorkspace(u.lib)
	if err != nil {
		return err
	}
	u.dropAll()
	u.workspace.release()
	u.bound, u.workspace = false, w
	return nil
}

// Execute runs the graph on the arguments. The runtime stores their addresses until a call with
// other arguments.
func (u *native) Execute(ctx context.Context, args []*tensor.Value) error {
	if err := u.follow(args); err != nil {
		return err
	}
	if u.useOther {
		return u.other.Execute(ctx, args)
	}
	check, inputs := u.image.checked, u.image.graph.Inputs
	if check && !u.areFinite(0, inputs) {
		return u.repeat(ctx, args)
	}
	if u.now.runtime != 0 {
		if status := u.lib.InvokeRuntime(u.now.runtime); status != xnn.Success {
			return deviceError(status.Error("xnn_invoke_runtime"))
		}
	}
	if check && !u.areFinite(inputs, len(u.args)) {
		return u.repeat(ctx, args)
	}
	if u.finish {
		finish(u.args)
	}
	return nil
}

// follow sets the unit up for the arguments of a call.
func (u *native) follow(args []*tensor.Value) error {
	if u.workspace != nil && u.workspace.broken && !u.lost {
		if err := u.renew(); err != nil {
			if u.bound = false; !u.image.runsInGo(err) {
				return err
			}
			u.lost = true
		}
	}
	if !u.bound || !sameArguments(u.args, args) {
		if err := u.bind(args); err != nil {
			return err
		}
	}
	if !u.useOther && !u.now.set {
		if err := u.ready(); err != nil {
			return u.recover(err)
		}
	}
	return nil
}

// recover sets the unit up with a new runtime after an error of the library. If that fails too, the Go engine
// runs the call.
func (u *native) recover(err error) error {
	u.drop(u.now) // its operators may be in any state
	again := !u.closed && (!u.workspace.broken || u.renew() == nil) && u.ready() == nil
	if u.bound = again; again {
		return nil
	}
	u.drop(u.now)
	if u.closed || !u.image.runsInGo(err) {
		return err
	}
	u.bound = true
	return u.useGo()
}

// deviceError wraps an error of the library. It returns nil for nil.
func deviceError(err error) error {
	if err == nil {
		return nil
	}
	return &delegate.Error{Backend: ID, Reason: delegate.ErrDevice, Err: err}
}

// bind checks the arguments and stores their sizes and addresses. It does not set up a runtime.
func (u *native) bind(args []*tensor.Value) error {
	rebind := !u.bound
	u.bound = false
	reshaped, err := bindArguments(u.image.graph, u.args, args, u.shapes, rebind, u.plain[0].planned, u.plain[1].planned)
	if err != nil {
		return err
	}
	u.finish = slices.ContainsFunc(u.args, func(a *argument) bool { return a.after != nil })
	if reshaped || rebind {
		if err := u.chooseEngine(); err != nil {
			return err
		}
		u.choose()
	}
	for i := range u.plain {
		u.plain[i].set, u.timed[i].set = false, false
	}
	if !u.useOther && len(u.image.graph.Nodes) > 0 {
		u.pinArguments()
	}
	u.bound = true
	return nil
}

// pinArguments pins the memory of the arguments, unless it is that of the last call.
func (u *native) pinArguments() {
	if u.pinned() {
		return
	}
	u.pin.Unpin()
	for i, a := range u.args {
		u.pin.Pin(&a.data[0])
		u.values[i] = xnn.ExternalValue{ID: uint32(i), Data: xnn.AddressOf(a.data)}
	}
}

func (u *native) pinned() bool {
	for i, a := range u.args {
		if u.values[i].Data != xnn.AddressOf(a.data) {
			return false
		}
	}
	return true
}

// ready sets up the current runtime for the sizes and addresses of the last call.
func (u *native) ready() error {
	g, r := u.image.graph, u.now
	switch {
	case len(g.Nodes) == 0: // arguments pass through
		r.set = true
		return nil
	case u.closed:
		return delegate.Errorf(ID, delegate.ErrDevice, "", "unit is closed")
	}
	if r.runtime == 0 || !slices.Equal(r.planned, u.shapes) && !r.layout.fits(g, u.shapes) {
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
func (u *native) setup(r *instance) error {
	n, values := uint(len(u.values)), &u.values[0]
	if slices.Equal(r.planned, u.shapes) {
		return deviceError(u.lib.SetupRuntime(r.runtime, n, values).Error("xnn_setup_runtime_v2"))
	}
	r.planned = r.planned[:0]
	if err := u.reshape(); err != nil {
		return err
	}
	err := u.workspace.plan("xnn_setup_runtime", func() xnn.Status { return u.lib.PlanRuntime(r.runtime, n, values) })
	if err != nil {
		return deviceError(err)
	}
	r.planned = append(r.planned, u.shapes...)
	return u.checkShapes(r)
}

// chooseEngine checks whether the library supports the shapes of a call. It skips the check for
// shapes at which the image was checked or a runtime is planned.
func (u *native) chooseEngine() error {
	u.useOther = false
	m := u.image
	if u.lost {
		return u.useGo()
	}
	if slices.Equal(u.shapes, m.shapes) || u.isPlanned() || refuses(m.graph, u.shapes) == "" &&
		miscomputed(m.graph, m.lib.Soname, u.shapes, false) == "" && m.affords(u.shapes) {
		return nil
	}
	if m.frozen {
		return delegate.Errorf(ID, delegate.ErrArgument, "", "sizes beyond the declared ones, for which filters are packed in another form only")
	}
	return u.useGo()
}

// useGo makes the Go engine run calls of the current shapes.
func (u *native) useGo() error {
	u.useOther = true
	return u.makeOther()
}

// makeOther creates the unit of the Go engine, unless there is one.
func (u *native) makeOther() error {
	if u.other != nil {
		return nil
	}
	other, err := u.image.inGo.unit(delegate.Instance{Pool: u.pool})
	if err != nil {
		return err
	}
	u.other = other.(goUnit)
	return u.other.SetProfiling(u.profiling)
}

// isPlanned reports whether a runtime is planned for the current sizes.
func (u *native) isPlanned() bool {
	return slices.Equal(u.shapes, u.plain[0].planned) || slices.Equal(u.shapes, u.plain[1].planned)
}

// reshape sets the sizes of the current runtime's inputs.
func (u *native) reshape() error {
	g, r := u.image.graph, u.now
	for i, v := range g.Args[:g.Inputs] {
		rank := u.setDims(u.shapes[v])
		if err := u.lib.ReshapeExternalValue(r.runtime, uint32(i), rank, &u.dims[0]).Error("xnn_reshape_external_value"); err != nil {
			return deviceError(err)
		}
	}
	return nil
}

// checkShapes checks that a planned runtime infers the same argument sizes as this package.
func (u *native) checkShapes(r *instance) error {
	g := u.image.graph
	for i, v := range g.Args {
		var rank uint
		if err := u.lib.GetExternalValueShape(r.runtime, uint32(i), &rank, &u.dims[0]).Error("xnn_get_external_value_shape"); err != nil {
			return deviceError(err)
		}
		if got := u.getDims(rank); got != r.planned[v] {
			return delegate.Errorf(ID, delegate.ErrDevice, argumentPlace(g, i), "the library makes it %v, want %v", got, r.planned[v])
		}
	}
	return nil
}

func (u *native) setDims(s shape) (rank uint) {
	for i, d := range s.dims() {
		u.dims[i] = uint(d)
	}
	return uint(s.rank)
}

func (u *native) getDims(rank uint) shape {
	s := shape{rank: int(min(rank, xnn.MaxDims))}
	for i := range s.rank {
		s.dim[i] = int(u.dims[i])
	}
	return s
}

// Close deletes the runtime.
func (u *native) Close() error {
	u.release()
	u.bound = false
	return nil
}

var _ delegate.Checker = (*native)(nil)

// Check implements delegate.Checker. It rejects sizes at which the library must not run the graph:
// there the original calls are faster than the Go engine.
func (u *native) Check(args []*tensor.Value) error {
	if err := u.follow(args); err != nil {
		return err
	}
	if u.useOther {
		return unsupported("", "sizes that the library may not have")
	}
	return nil
}
