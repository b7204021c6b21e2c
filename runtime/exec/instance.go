package exec

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Instance is a method with memory, state and delegate units of its own. Only one goroutine may use it at a time: a call during another
// call fails and changes nothing.
type Instance struct {
	program  *Program
	ir       *ir.Method
	shared   *prepare.Method // with the other instances
	planning plan.Options
	plan     *plan.Memory
	memory   *memory
	heap     unbounded
	reached  tensor.Budget // of bounded tensors whose largest sizes the limits do not allow
	varying  []int         // tensors whose sizes or memory runs change
	shares   *Instance     // the instance whose state this one uses, nil for its own

	values    []tensor.Value
	steps     []step
	ctx       *kernels.Ctx
	random    *rand.PCG // the source of ctx.Rand
	units     []delegate.Unit
	scratch   *delegate.Scratch // shared by the units
	repeated  []*repeated       // steps that keep results of inputs that do not change
	varied    bool              // an input was set since the last run
	inputs    []input
	logical   []*tensor.Tensor // by output: elements in logical order, if memory order differs
	constants []tensor.Value   // by output: copies of those that are constants
	restore   []saved
	limit     int64
	poison    error // why the method can no longer run
	stateless bool  // it is that of a batch, and never runs a step that uses state
	transient bool  // outputs are invalid once it is closed
	lifted    []int // values that have rows in the batch only
	rows      int   // as many

	reference *Instance  // the method without lowering, with LowerVerify only
	distances []Distance // from the reference

	executed bool // the last run succeeded: outputs are valid

	rowsKnown map[string]error // results of CheckRows, by the sizes of the inputs
	rowsKey   []byte

	observed  Watch
	reported  [2]atomic.Int64 // planned and scratch memory reported to observers
	operators atomic.Int64    // scratch of operators at the last look
	most      int             // bytes of the inputs of the largest call, after which that was looked at
	filled    int64           // bytes of state by calls since the last look at what the system has left

	life atomic.Int32
}

// States of a method.
const (
	idle int32 = iota
	running
	closing // closed while running: freed when the run ends
	closed
)

// saved is a slot that instructions overwrite, with its initial value.
type saved struct {
	slot *tensor.Value
	was  tensor.Value
}

// newInstance returns an instance that is not yet built.
func newInstance(p *Program, shared *prepare.Method) *Instance {
	return &Instance{program: p, ir: shared.IR, shared: shared, limit: p.Steps, planning: p.Planning}
}

// New makes an instance, and reports the stages to w. The program must be retained, until the instance is closed.
func New(ctx context.Context, w *Watch, p *Program, shared *prepare.Method, o Options) (*Instance, error) {
	m := newInstance(p, shared)
	m.shares, m.transient, m.planning.BoundInputs, m.planning.BoundOutputs = o.StateOf, o.Transient, o.BoundInputs, o.BoundOutputs
	m.observed = *p.newWatch(context.Background(), shared.IR.Name)
	if w != nil {
		w.instance, w.mark = m.observed.instance, m.observed.mark
	}
	err := m.build(ctx, w)
	if err == nil && o.Plain != nil {
		var plain *prepare.Method
		if plain, err = o.Plain(ctx); err == nil {
			err = m.compareWith(ctx, plain)
		}
	}
	if err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

// Plan returns the memory plan, which must not be changed.
func (m *Instance) Plan() *plan.Memory { return m.plan }

// Usable reports whether the instance can run: no operator has panicked, and it is neither closed nor in use.
func (m *Instance) Usable() bool { return m.poison == nil && m.life.Load() == idle }

// build creates the instance from the shared preparation.
func (m *Instance) build(ctx context.Context, w *Watch) error {
	m.plan = m.shared.PlanFor(m.planning)
	room, err := m.shared.CheckMemory(m.plan, m.program.Limits, m.program.Size)
	if err != nil {
		return w.Stage(trace.StageAllocate, 0, m.program.Prepare(m.ir.Name, err))
	}
	shared := m.sharedState()
	m.memory, err = makeMemory(m.plan, shared, !m.stateless, m.transient, room < math.MaxInt64)
	if err != nil {
		err = &prepare.MemoryError{Want: m.plan.Bytes(), Limit: m.program.Limits.Planned,
			Parts: []prepare.Part{{Name: "addresses for the largest sizes", Bytes: m.plan.Bytes()}}}
		return w.Stage(trace.StageAllocate, 0, m.program.Prepare(m.ir.Name, err))
	}
	if m.shared.DescribeOnly {
		m.poison = m.program.Argument("the program was opened to be described, not to run")
	} else {
		m.memory.touch()
	}
	m.ctx = kernels.NewCtx(m.program.Pool)
	m.random = rand.NewPCG(m.program.Seed, 0)
	m.ctx.Rand = rand.New(m.random)
	m.makeValues()
	m.lift()
	m.findUnbounded(room)
	m.makeInputs()
	m.reportMemory(w)
	if err := w.Stage(trace.StageAllocate, m.reported[0].Load(), nil); err != nil {
		return err
	}
	err = m.makeUnits(ctx)
	m.reportMemory(w)
	if err := w.Stage(trace.StageUnits, m.reported[1].Load(), err); err != nil {
		return err
	}
	if err := w.Stage(trace.StageResolve, 0, m.makeSteps()); err != nil {
		return err
	}
	m.fillState(shared)
	return nil
}

// reportMemory reports what has changed of the instance's memory to observers.
func (m *Instance) reportMemory(w *Watch) {
	now := [2]int64{m.memory.resident(), m.scratchBytes()}
	for i, kind := range [...]string{trace.MemoryPlanned, trace.MemoryScratch} {
		if was := m.reported[i].Swap(now[i]); now[i] != was {
			w.Memory(kind, now[i]-was)
		}
	}
}

// sizer is implemented by units, and parts of the scratch, that know how much memory they have.
type sizer interface{ Memory() int64 }

// scratchBytes returns the working memory of the units that exist: what they have or, for those that do not know, the estimate.
func (m *Instance) scratchBytes() int64 {
	own, shared := m.scratch.Memory(), int64(0)
	for i, u := range m.units {
		if s, ok := u.(sizer); ok {
			own += s.Memory()
		} else if u != nil && i < len(m.shared.Needs) {
			n := m.shared.Needs[i]
			own, shared = own+n.Scratch-n.Shared, max(shared, n.Shared)
		}
	}
	for _, r := range m.repeated {
		if r.results != nil {
			own += r.results.memory()
		}
	}
	return own + shared
}

// Memory looks at the memory of the instance, and reports what has changed to observers, of which operators' scratch is no part. During a
// run it is that of the last look.
func (m *Instance) Memory() (planned, scratch int64) {
	if m.begin() == nil {
		defer m.end()
		m.reportMemory(&m.observed)
		m.operators.Store(int64(m.ctx.ScratchBytes()))
	}
	return m.reported[0].Load(), m.reported[1].Load() + m.operators.Load()
}

// Bytes returns the memory at the last look.
func (m *Instance) Bytes() int64 { return m.reported[0].Load() + m.reported[1].Load() }

// makeValues fills the value table.
func (m *Instance) makeValues() {
	m.values = make([]tensor.Value, len(m.ir.Values))
	for v := range m.ir.Values {
		s := &m.ir.Values[v]
		m.values[v] = s.Scalar()
		switch s.Kind {
		case tensor.KindTensor:
			m.values[v].Tensor = m.makeTensor(s)
		case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
			m.values[v] = tensor.NewList(s.Kind, m.slots(s.Items()))
		}
	}
}

// none is the value of absent items of an optional tensor list.
var none tensor.Value

func (m *Instance) slots(items []int) []*tensor.Value {
	list := make([]*tensor.Value, len(items))
	for i, v := range items {
		if list[i] = &none; v >= 0 {
			list[i] = &m.values[v]
		}
	}
	return list
}

func (m *Instance) makeTensor(s *ir.Value) *tensor.Tensor {
	d := s.Tensor
	if d.Const {
		t := tensor.Make(d.DType, d.Sizes, d.DimOrder, tensor.Static)
		t.Const = true
		t.Bind(m.ir.Storages[s.Storage].Data)
		return t
	}
	t := tensor.Make(d.DType, d.Sizes, d.DimOrder, d.Dynamism)
	t.Bind(m.memory.bytes(m.plan, s.Storage))
	return t
}

func (m *Instance) makeUnits(ctx context.Context) error {
	m.units, m.scratch = make([]delegate.Unit, len(m.shared.Images)), m.shared.TakeScratch()
	for i, img := range m.shared.Images {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		u, err := img.Unit(delegate.Instance{Pool: m.program.Pool, Scratch: m.scratch, Blocks: m.memory.blocks(m.plan, i)})
		if err != nil {
			return fmt.Errorf("%s: %w", m.ir.Delegates[i], err)
		}
		m.units[i] = u
	}
	if m.observed.wants.Any(trace.Values) {
		m.setViews(true)
	}
	if m.observed.wants.Has(trace.Node) {
		return m.setProfiling(true)
	}
	return nil
}

// Close frees the instance and releases the program, at the end of a run. Closing twice is allowed. Output tensors remain readable unless
// they are transient; tensors of state do not.
func (m *Instance) Close() error {
	for {
		switch now := m.life.Load(); now {
		case closing, closed:
			return nil
		case running:
			if m.life.CompareAndSwap(running, closing) {
				return nil
			}
		case idle:
			if m.life.CompareAndSwap(idle, closed) {
				err := m.free()
				if e := m.program.Release(); err == nil {
					err = e
				}
				return err
			}
		}
	}
}

// free closes the units that exist.
func (m *Instance) free() error {
	var first error
	if m.reference != nil {
		first = m.reference.free()
	}
	m.observed.Memory(trace.MemoryPlanned, -m.reported[0].Swap(0))
	m.observed.Memory(trace.MemoryScratch, -m.reported[1].Swap(0))
	for i, u := range m.units {
		if u == nil {
			continue
		}
		if err := u.Close(); err != nil && first == nil {
			first = err
		}
		m.units[i] = nil
	}
	if err := m.scratch.Close(); err != nil && first == nil {
		first = err
	}
	m.memory.close()
	return first
}

// begin claims the method for one call; end releases it.
func (m *Instance) begin() error {
	if m.life.CompareAndSwap(idle, running) {
		return nil
	}
	return m.program.Use(m.ir.Name, m.life.Load() != running)
}

func (m *Instance) end() {
	if m.life.CompareAndSwap(running, idle) {
		return
	}
	m.life.Store(closed)
	m.free()
	m.program.Release()
}

// beginAll also claims the method whose state this one uses; endAll releases both.
func (m *Instance) beginAll() error {
	if err := m.begin(); err != nil || m.shares == nil {
		return err
	}
	err := m.shares.beginAll()
	if err != nil {
		m.end()
	}
	return err
}

func (m *Instance) endAll() {
	if m.shares != nil {
		m.shares.endAll()
	}
	m.end()
}

// Distance is the largest difference between an output of a lowered method and the same output
// without lowering, in the last run.
type Distance struct {
	Output   int
	Index    int     // index, in memory order, of the element that differs most; -1 if all are equal
	Absolute float64 // absolute difference of that element
	Relative float64 // Absolute over the value without lowering
}
