package runtime

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Method is a live instance of a program's method: its memory, its state and its
// delegate units. One goroutine uses it at a time; a call while another runs gives
// ErrBusy and changes nothing.
type Method struct {
	program *Program
	index   int // of the method in the program
	spec    *pte.Method
	plan    *MemoryPlan
	memory  *memory
	heap    unbounded
	shares  *Method // whose state this method uses, nil for its own

	planning planning

	values  []tensor.Value
	steps   []step
	ctx     *kernels.Ctx
	units   []delegate.Unit
	inputs  []input
	restore []saved
	initial []initialState
	limit   int64
	poison  error // why the method can no longer execute

	recorder *trace.Recorder
	mark     time.Duration // when the instruction being recorded began

	life atomic.Int32
}

// The life of a method.
const (
	idle int32 = iota
	running
	closing // closed while running: freed when the run ends
	closed
)

// input is the caller's side of one method input.
type input struct {
	value   *tensor.Value
	bound   *pte.Tensor // the declared tensor, nil for other kinds
	given   tensor.Value
	set     bool
	clobber bool // an execute overwrites its bytes: it must be set again
}

// saved is a slot that instructions overwrite, with what it holds at the start.
type saved struct {
	slot *tensor.Value
	was  tensor.Value
}

// initialState is a storage that starts with given bytes.
type initialState struct {
	storage int
	bytes   []byte
}

// MethodOption configures Load.
type MethodOption func(*Method)

// WithStateOf lets a method use the mutable state of another one of the same
// program, as programs with several methods over one cache mean it: state with the
// same name and size, or, where the file has no names, at the same place of the
// file's second arena. The other method must outlive this one.
func WithStateOf(other *Method) MethodOption { return func(m *Method) { m.shares = other } }

// build makes the instance from what the loader found.
func (m *Method) build(l *loader) error {
	if m.shares != nil && m.shares.program != m.program {
		return fmt.Errorf("state of a method of another program: %w", ErrInput)
	}
	c := &m.program.config
	m.planning.mode, m.planning.strict, m.planning.preserve = c.plan, c.strict, c.preserve
	var err error
	if m.plan, err = planMemory(l.flow, m.planning); err != nil {
		return err
	}
	if err := m.checkMemory(l); err != nil {
		return err
	}
	shared := m.sharedState()
	m.memory = m.plan.allocate(shared)
	m.ctx = kernels.NewCtx(m.program.pool)
	m.ctx.Rand = rand.New(rand.NewPCG(c.seed, 0))
	m.makeValues(l)
	m.findUnbounded()
	m.makeInputs()
	if err := m.makeUnits(l); err != nil {
		return err
	}
	if err := m.makeSteps(l); err != nil {
		return err
	}
	m.findInitialState(l)
	m.fillState(shared)
	return nil
}

// checkMemory refuses a method that is too large, before anything is allocated.
func (m *Method) checkMemory(l *loader) error {
	limits := &m.program.config.limits
	for i := range m.plan.Flow.Storages { // one by one first: their sum could overflow
		s := &m.plan.Flow.Storages[i]
		n := s.Bytes
		if s.Kind == ir.Constant {
			n = m.plan.heapBytes(s)
		}
		if n > limits.PlannedBytes {
			return &MemoryError{Want: n, Limit: limits.PlannedBytes, Parts: []MemoryPart{{fmt.Sprintf("value %d", s.Values[0]), n}}}
		}
	}
	arenas, scratch := m.plan.Bytes(), int64(0)
	for _, img := range l.images {
		scratch += min(img.Info().Scratch, limits.PlannedBytes-scratch+1) // no sum may overflow
	}
	if arenas > limits.PlannedBytes || scratch > limits.PlannedBytes-arenas {
		return &MemoryError{Want: arenas + scratch, Limit: limits.PlannedBytes,
			Parts: []MemoryPart{{"arenas", arenas - m.plan.StateBytes}, {"state", m.plan.StateBytes}, {"delegate scratch", scratch}}}
	}
	if limit := m.program.config.maxMemory; limit > 0 {
		if e := m.memoryNeeded(l); e.Want > limit {
			e.Limit = limit
			return e
		}
	}
	return nil
}

// memoryNeeded sums what the method needs by kind.
func (m *Method) memoryNeeded(l *loader) *MemoryError {
	e := &MemoryError{Parts: []MemoryPart{{"file", m.program.spec.Size}, {"arenas", m.plan.Bytes() - m.plan.StateBytes}, {"state", m.plan.StateBytes}}}
	var weights, scratch int64
	for _, img := range l.images {
		info := img.Info()
		weights += info.PackedBytes
		scratch += info.Scratch
	}
	e.Parts = append(e.Parts, MemoryPart{"folded constants", l.folded.bytes}, MemoryPart{"packed weights", weights}, MemoryPart{"delegate scratch", scratch})
	for _, p := range e.Parts {
		e.Want += p.Bytes
	}
	return e
}

// makeValues fills the value table.
func (m *Method) makeValues(l *loader) {
	m.values = make([]tensor.Value, len(m.spec.Values))
	for v := range m.spec.Values {
		s := &m.spec.Values[v]
		m.values[v] = tensor.Value{Kind: s.Kind, Bool: s.Bool, Int: s.Int, Double: s.Double, Str: s.Str, Bools: s.Bools, Doubles: s.Doubles}
		switch s.Kind {
		case tensor.KindTensor:
			m.values[v].Tensor = m.makeTensor(l, v)
		case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
			m.values[v] = tensor.NewList(s.Kind, m.slots(s.Items))
		}
	}
}

// none is what an absent item of an optional tensor list refers to.
var none tensor.Value

func (m *Method) slots(items []int) []*tensor.Value {
	list := make([]*tensor.Value, len(items))
	for i, v := range items {
		if list[i] = &none; v >= 0 {
			list[i] = &m.values[v]
		}
	}
	return list
}

func (m *Method) makeTensor(l *loader, v int) *tensor.Tensor {
	s := m.spec.Values[v].Tensor
	order := s.DimOrder
	if l.rows[v] {
		order = nil
	}
	t := tensor.Make(s.DType, s.Sizes, order, s.Dynamism)
	storage := l.flow.Of[v]
	if isConstant(s) || l.folded.values[v] != nil {
		t.Const, t.Dynamism = true, tensor.Static
		t.Bind(l.bytes[v])
		return t
	}
	t.Bind(m.memory.bytes(m.plan, storage))
	return t
}

func (m *Method) makeUnits(l *loader) error {
	m.units = make([]delegate.Unit, len(l.images))
	for i, img := range l.images {
		u, err := img.Unit(delegate.Instance{Pool: m.program.pool})
		if err != nil {
			return fmt.Errorf("delegate %d (%.100q): %w", i, m.spec.Delegates[i].ID, err)
		}
		m.units[i] = u
	}
	return nil
}

// Name is the method's name.
func (m *Method) Name() string { return m.spec.Name }

// Plan describes the method's memory. It must not be changed.
func (m *Method) Plan() *MemoryPlan { return m.plan }

// Program is the program that the method was loaded from.
func (m *Method) Program() *Program { return m.program }

// Close frees the method. While it executes in another goroutine, it is freed when
// that execute ends. Closing twice is fine. Tensors of outputs stay readable, but for
// constants of a mapped file.
func (m *Method) Close() error {
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
				if e := m.program.release(); err == nil {
					err = e
				}
				return err
			}
		}
	}
}

// free closes the units that exist.
func (m *Method) free() error {
	var first error
	for i, u := range m.units {
		if u == nil {
			continue
		}
		if err := u.Close(); err != nil && first == nil {
			first = err
		}
		m.units[i] = nil
	}
	return first
}

// begin claims the method for one call; end gives it back.
func (m *Method) begin() error {
	if m.life.CompareAndSwap(idle, running) {
		return nil
	}
	if m.life.Load() == running {
		return fmt.Errorf("method %q: %w", m.spec.Name, ErrBusy)
	}
	return fmt.Errorf("method %q: %w", m.spec.Name, ErrClosed)
}

func (m *Method) end() {
	if m.life.CompareAndSwap(running, idle) {
		return
	}
	m.life.Store(closed)
	m.free()
	m.program.release()
}

// beginAll claims the method and those whose state it uses; endAll gives them back.
func (m *Method) beginAll() error {
	if err := m.begin(); err != nil || m.shares == nil {
		return err
	}
	err := m.shares.beginAll()
	if err != nil {
		m.end()
	}
	return err
}

func (m *Method) endAll() {
	if m.shares != nil {
		m.shares.endAll()
	}
	m.end()
}
