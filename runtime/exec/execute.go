package exec

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/trace"
)

// step is a step of the dataflow with all references resolved.
type step struct {
	kind    ir.StepKind
	changes []slotKind // KernelCall: the slots among the arguments that steps write; another kind has to be checked
	target  int        // JumpFalseCall and SizesJump
	least   int        // SizesJump

	delegate int    // DelegateCall and SizesJump: index in the method's list
	backend  string // ID of its backend

	call kernels.Call // KernelCall
	sig  *kernels.Signature

	args     kernels.Args     // DelegateCall and SizesJump
	unit     delegate.Unit    // DelegateCall
	repeated *repeated        // DelegateCall: nil if the unit keeps no results
	check    lowering.Checker // SizesJump; nil accepts all sizes
	inputs   kernels.Args     // SizesJump: the inputs among args
	value    *tensor.Value    // MoveCall: source; JumpFalseCall: condition
	to       *tensor.Value    // MoveCall; FreeCall: nil if it has no effect

	origin ir.Origin
	name   string
}

// makeSteps resolves the steps and lists the slots to restore before each run.
func (m *Instance) makeSteps() error {
	m.steps = make([]step, len(m.ir.Steps))
	for i := range m.ir.Steps {
		from, s := &m.ir.Steps[i], &m.steps[i]
		*s = step{kind: from.Kind, target: from.Target, least: from.Least, origin: from.Origin, name: m.ir.StepName(from)}
		if err := m.resolve(s, from); err != nil {
			return m.program.Prepare(m.ir.Name, &ir.StepError{Origin: s.origin, Name: s.name, Err: err})
		}
		s.call.SetUnread(m.ir.Unread(i))
	}
	m.findRepeated()
	for v := range m.values {
		if m.ir.Values[v].Changes {
			m.restore = append(m.restore, saved{&m.values[v], m.values[v]})
		}
	}
	return nil
}

func (m *Instance) resolve(s *step, from *ir.Step) error {
	switch from.Kind {
	case ir.KernelCall:
		s.sig, s.changes = from.Sig, m.changes(nil, from.Args)
		s.call = kernels.NewCall(from.Op.Func, m.slots(from.Args), len(s.changes) == 0)
		if len(s.changes) == 0 {
			return s.sig.Check(s.call.Args())
		}
	case ir.DelegateCall:
		s.unit, s.args = m.units[from.Delegate], m.slots(from.Args)
		s.delegate, s.backend = from.Delegate, m.shared.Backends[from.Delegate]
	case ir.SizesJump:
		s.check, _ = m.units[from.Delegate].(lowering.Checker)
		s.args = m.slots(from.Args)
		s.inputs = s.args[:from.Inputs]
		s.delegate, s.backend = from.Delegate, m.shared.Backends[from.Delegate]
	case ir.MoveCall:
		s.value, s.to = &m.values[from.Args[0]], &m.values[from.Args[1]]
	case ir.FreeCall:
		if m.ir.Frees(from) {
			s.to = &m.values[from.Args[0]]
		}
	default:
		s.value = &m.values[from.Args[0]]
	}
	return nil
}

// slotKind is a slot with its kind in the last call whose arguments were checked.
type slotKind struct {
	slot *tensor.Value
	was  tensor.Kind
}

// unchecked is the kind of a slot before the first call: none that there is.
const unchecked tensor.Kind = 0xff

// changes appends the slots among values, and among the items of lists, that steps write.
func (m *Instance) changes(list []slotKind, values []int) []slotKind {
	for _, v := range values {
		if v < 0 {
			continue
		}
		if m.ir.Values[v].Changes {
			list = append(list, slotKind{slot: &m.values[v], was: unchecked})
		}
		list = m.changes(list, m.ir.Values[v].Items())
	}
	return list
}

// checkKinds checks the arguments unless their kinds are those of the last call that was checked. Lists that steps write may have
// other items.
func (s *step) checkKinds() error {
	same := true
	for i := range s.changes {
		c := &s.changes[i]
		same = same && c.slot.Kind == c.was && len(c.slot.Items) == 0
	}
	if same {
		return nil
	}
	if err := s.sig.Check(s.call.Args()); err != nil {
		return err
	}
	for i := range s.changes {
		s.changes[i].was = s.changes[i].slot.Kind
	}
	return nil
}

// Execute runs the method on the inputs that were set. After the first run it allocates nothing, except for the results of operators
// with unbounded output sizes.
func (m *Instance) Execute(ctx context.Context) error {
	if err := m.beginAll(); err != nil {
		return m.refused(ctx, err)
	}
	defer m.endAll()
	return m.executeStarted(ctx)
}

// executeStarted is Execute after the method was claimed.
func (m *Instance) executeStarted(ctx context.Context) error {
	if m.observed.wants.Any(ofExecutes) {
		return m.observe(ctx)
	}
	return m.execute(ctx)
}

func (m *Instance) execute(ctx context.Context) error {
	if m.poison != nil {
		return m.poison
	}
	m.executed = false
	if err := m.prepare(); err != nil {
		return err
	}
	if m.reference != nil {
		if err := m.copyInputs(); err != nil {
			return err
		}
	}
	bytes := m.inputBytes()
	if err := m.checkAvailable(bytes); err != nil {
		return err
	}
	err := m.run(ctx)
	if err == nil && m.reference != nil {
		err = m.verify(ctx)
	}
	m.executed = err == nil
	m.unset()
	m.grown(bytes)
	return err
}

// inputBytes returns the bytes of the inputs, and 1.
func (m *Instance) inputBytes() int {
	bytes := 1
	for i := range m.inputs {
		if in := &m.inputs[i]; in.bound != nil {
			bytes += len(in.initial.Tensor.Data)
		}
	}
	return bytes
}

// grown looks at the memory after a run with more bytes of inputs than any before: it may have touched more.
func (m *Instance) grown(bytes int) {
	if bytes > m.most {
		m.most = bytes
		m.reportMemory(&m.observed)
	}
}

// unset marks the inputs that the run has overwritten.
func (m *Instance) unset() {
	for i := range m.inputs {
		if in := &m.inputs[i]; in.clobber && !in.callers {
			in.set = false
		}
	}
}

// prepare sets every slot to its value at the start of a run.
func (m *Instance) prepare() error {
	m.ctx.Whole = m.observed.wants.Has(trace.Written)
	if err := m.heap.begin(); err != nil {
		return err
	}
	for i := range m.restore {
		*m.restore[i].slot = m.restore[i].was
	}
	for i := range m.inputs {
		in := &m.inputs[i]
		if !in.set {
			return m.badInput(i, "nothing", in.want())
		}
		if err := in.start(); err != nil {
			return m.badInput(i, err.Error(), in.want())
		}
	}
	if len(m.repeated) > 0 {
		m.varied = m.changed()
	}
	return m.unbound()
}

// run is the instruction loop.
func (m *Instance) run(ctx context.Context) error {
	m.ctx.StopWhen(ctx.Done())
	return m.runSteps(ctx, 0, len(m.steps))
}

// runSteps executes steps from first to before end, until the pc reaches end.
func (m *Instance) runSteps(ctx context.Context, first, end int) (err error) {
	pc, observed := first, m.observed.wants.Any(ofInstructions)
	defer func() {
		switch fault := recover(); fault {
		case nil:
			return
		case cpu.Stopped{}:
			err = m.stopped(ctx, pc)
		default:
			m.poison = m.failed(pc, m.program.Panic(fault, false))
			err = m.poison
		}
		if observed {
			m.reportInstruction(&m.steps[pc], err)
		}
	}()
	cancelled := ctx.Done()
	for left := m.limit; pc < end; left-- {
		if cancelled != nil && ctx.Err() != nil {
			return m.failed(pc, context.Cause(ctx))
		}
		if left == 0 {
			return m.failed(pc, m.program.Endless(m.limit))
		}
		var next int
		if observed {
			next, err = m.doObserved(ctx, pc)
		} else {
			next, err = m.do(ctx, pc)
		}
		if err != nil {
			return m.failed(pc, err)
		}
		pc = next
	}
	return nil
}

// stopped ends an operator's loop that ctx has stopped. What the operator keeps may be incomplete.
func (m *Instance) stopped(ctx context.Context, pc int) error {
	m.steps[pc].call.Reset()
	m.ctx.Release()
	return m.failed(pc, context.Cause(ctx))
}

// do executes one instruction and returns the index of the next.
func (m *Instance) do(ctx context.Context, pc int) (next int, err error) {
	s := &m.steps[pc]
	switch s.kind {
	case ir.KernelCall:
		if len(s.changes) > 0 {
			if err := s.checkKinds(); err != nil {
				return pc, err
			}
		}
		if r := s.repeated; r != nil {
			r.look(m)
			err = r.results.do(&s.call, m.ctx)
		} else {
			err = s.call.Do(m.ctx)
		}
	case ir.DelegateCall:
		if s.repeated != nil {
			s.repeated.look(m)
		}
		err = s.unit.Execute(ctx, s.args)
	case ir.MoveCall:
		err = move(s.to, s.value)
	case ir.JumpFalseCall:
		var truth bool
		if truth, err = isTrue(s.value); !truth {
			return s.target, err
		}
	case ir.SizesJump:
		if !m.accepts(s) {
			return s.target, nil
		}
	case ir.FreeCall:
		if s.to != nil {
			s.to.Tensor.Free()
		}
	}
	return pc + 1, err
}

// accepts reports whether the delegate runs a region at the current sizes of its inputs.
func (m *Instance) accepts(s *step) bool {
	elements := 0
	for _, v := range s.inputs {
		elements += v.Tensor.Numel()
	}
	if elements < s.least {
		return false
	}
	if s.check == nil {
		return true
	}
	err := s.check.Check(s.args)
	if err != nil {
		m.shared.Refusal.CompareAndSwap(nil, &prepare.Refusal{Origin: s.origin, Err: err})
	}
	return err == nil
}

// refusesArguments reports whether an operator or delegate rejected its arguments.
func refusesArguments(err error) bool {
	_, resize := errors.AsType[*tensor.ResizeError](err)
	return resize || errors.Is(err, kernels.ErrArgument) || errors.Is(err, delegate.ErrArgument)
}

// resized reports whether an input has other sizes than declared at export.
func (m *Instance) resized() bool {
	return slices.ContainsFunc(m.inputs, func(in input) bool {
		return in.bound != nil && !slices.Equal(in.initial.Tensor.Sizes, in.bound.Sizes)
	})
}

// move copies a value. A tensor's bytes are copied into the target's own memory, so that later
// writes to one do not affect the other and a bound output is filled.
func move(to, from *tensor.Value) error {
	if to.Kind != tensor.KindTensor || from.Kind != tensor.KindTensor {
		*to = *from
		return nil
	}
	if err := to.Tensor.Resize(from.Tensor.Sizes); err != nil {
		return err
	}
	tensor.CopyLayout(to.Tensor, from.Tensor)
	return nil
}

var errCondition = errors.New("the condition is neither a bool nor a bool tensor")

// isTrue evaluates a condition: a bool, or a bool tensor without a false element.
func isTrue(v *tensor.Value) (bool, error) {
	switch {
	case v.Kind == tensor.KindBool:
		return v.Bool, nil
	case v.Kind == tensor.KindTensor && v.Tensor.DType == tensor.Bool:
		if slices.Contains(v.Tensor.Data, 0) {
			return false, nil
		}
		return true, nil
	}
	return false, errCondition
}

// failed adds a step's position to an error that has none.
func (m *Instance) failed(pc int, err error) error {
	s := &m.steps[pc]
	nameArgument(err, s.sig)
	err = m.aboveLimit(err)
	return m.program.Step(m.ir.Name, s.origin, s.name, refusesArguments(err) && m.resized(), err)
}

// aboveLimit returns the error of a tensor for which the memory limit leaves no room as that of the limit.
func (m *Instance) aboveLimit(err error) error {
	e, ok := errors.AsType[*tensor.ResizeError](err)
	if !ok || e.Missing == 0 || e.Dynamism != tensor.DynamicBound {
		return err
	}
	limit := cmp.Or(m.program.Limits.Total, m.program.Limits.Planned)
	return m.program.Prepare(m.ir.Name, &prepare.MemoryError{Want: limit + e.Missing, Limit: limit,
		Parts: []prepare.Part{{Name: "for inputs of these sizes at least", Bytes: limit + e.Missing}}})
}

// nameArgument fills in an ArgumentError's operator and argument name from the schema.
func nameArgument(err error, sig *kernels.Signature) {
	a, ok := errors.AsType[*kernels.ArgumentError](err)
	if !ok || sig == nil {
		return
	}
	a.Op = sig.Name
	if a.Arg >= 0 && a.Arg < len(sig.Args) {
		a.Name = sig.Args[a.Arg].Name
	}
}
