package runtime

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// step is an instruction with everything resolved.
type step struct {
	kind    pte.InstructionKind
	recheck bool // an argument's kind can change: the call is checked each time
	target  int  // JumpFalseCall

	call kernels.Call // KernelCall
	sig  *kernels.Signature

	args  kernels.Args  // DelegateCall
	unit  delegate.Unit // DelegateCall
	value *tensor.Value // MoveCall: from; JumpFalseCall: condition; FreeCall
	to    *tensor.Value // MoveCall

	origin *ir.Step
	name   string
}

// folded is the kind of a step that was executed at load.
const folded pte.InstructionKind = 0

// makeSteps resolves the instructions and finds the slots to restore.
func (m *Method) makeSteps(l *loader) error {
	m.steps = make([]step, len(l.flow.Steps))
	for i := range l.flow.Steps {
		o := &l.flow.Steps[i]
		s := &m.steps[i]
		*s = step{kind: o.Instruction.Kind, target: o.Target, origin: o, name: l.stepName(o)}
		if l.folded.steps[i] {
			s.kind = folded
			continue
		}
		if err := m.resolve(l, s); err != nil {
			return &InstructionError{Class: ErrFormat, Method: m.spec.Name, Chain: o.Chain, Index: o.Index, Op: s.name, Err: err}
		}
	}
	for v := range m.values {
		if l.changing[v] {
			m.restore = append(m.restore, saved{&m.values[v], m.values[v]})
		}
	}
	return nil
}

func (m *Method) resolve(l *loader, s *step) error {
	in := s.origin.Instruction
	switch in.Kind {
	case pte.KernelCall:
		s.sig, s.recheck = l.sigs[in.Index], anyOf(m.spec, in.Args, l.changing)
		s.call = kernels.NewCall(l.ops[in.Index].Func, m.slots(in.Args), !s.recheck)
		if err := m.checkResult(in, s.sig); err != nil || s.recheck {
			return err
		}
		return s.sig.Check(s.call.Args())
	case pte.DelegateCall:
		s.unit, s.args = m.units[in.Index], m.slots(in.Args)
		return nil
	case pte.MoveCall:
		s.value, s.to = &m.values[in.Index], &m.values[in.Target]
		return m.checkMove(in)
	default:
		s.value = &m.values[in.Index]
		return nil
	}
}

// checkMove refuses moves that would let a slot name a tensor that it is not declared
// to be: lifetimes, and what may be written, are known by the declared values.
func (m *Method) checkMove(in *pte.Instruction) error {
	from, to := &m.spec.Values[in.Index], &m.spec.Values[in.Target]
	if !isTensorMove(m.spec, in) {
		if holdsTensors(from.Kind) || holdsTensors(to.Kind) {
			return fmt.Errorf("a move from %v to %v", from.Kind, to.Kind)
		}
		return nil
	}
	if from.Tensor.DType != to.Tensor.DType || len(from.Tensor.Sizes) != len(to.Tensor.Sizes) {
		return fmt.Errorf("a move of %v%v to %v%v", from.Tensor.DType, from.Tensor.Sizes, to.Tensor.DType, to.Tensor.Sizes)
	}
	return nil
}

// checkResult refuses to replace a tensor, or a list of them, by a number, and a
// view that is no tensor.
func (m *Method) checkResult(in *pte.Instruction, sig *kernels.Signature) error {
	if sig.Result == nil {
		return nil
	}
	v := in.Args[len(in.Args)-1]
	kind := m.spec.Values[v].Kind
	if sig.Result.Alias && kind != tensor.KindTensor || !sig.Result.Alias && holdsTensors(kind) {
		return fmt.Errorf("result value %d of kind %v, want %v", v, kind, sig.Result.Type)
	}
	return nil
}

func holdsTensors(k tensor.Kind) bool {
	return k == tensor.KindTensor || k == tensor.KindTensorList || k == tensor.KindOptionalTensorList
}

// Execute runs the method on the inputs that were set. It allocates nothing after
// the first execute, but for what operators with unbounded results need. A cancelled
// ctx ends it between instructions, and inside devices; outputs are then undefined.
// Errors are *InstructionError and *InputError.
func (m *Method) Execute(ctx context.Context) error {
	if err := m.beginAll(); err != nil {
		return err
	}
	defer m.endAll()
	if m.poison != nil {
		return m.poison
	}
	if err := m.prepare(); err != nil {
		return err
	}
	err := m.runTraced(ctx)
	for i := range m.inputs {
		if m.inputs[i].clobber {
			m.inputs[i].set = false
		}
	}
	return err
}

// prepare gives every slot the value that it starts an execute with.
func (m *Method) prepare() error {
	if err := m.heap.begin(); err != nil {
		return err
	}
	for i := range m.restore {
		*m.restore[i].slot = m.restore[i].was
	}
	for i := range m.inputs {
		in := &m.inputs[i]
		if !in.set {
			return m.badInput(i, "nothing", fmt.Sprintf("%v%v to be set before each execute", in.bound.DType, in.bound.Sizes))
		}
		*in.value = in.given
	}
	return m.unbound()
}

// run is the instruction loop.
func (m *Method) run(ctx context.Context) (err error) {
	pc := 0
	defer func() {
		if fault := recover(); fault != nil {
			m.poison = m.failed(pc, &PanicError{Value: fault, Stack: debug.Stack()})
			err = m.poison
		}
	}()
	cancelled := ctx.Done()
	for left := m.limit; pc < len(m.steps); left-- {
		if cancelled != nil && ctx.Err() != nil {
			return m.failed(pc, context.Cause(ctx))
		}
		if left == 0 {
			return m.failed(pc, fmt.Errorf("%d instructions executed, the limit: %w", m.limit, ErrExecute))
		}
		next, err := m.do(ctx, pc)
		if m.recorder != nil && m.steps[pc].kind != folded {
			m.record(pc)
		}
		if err != nil {
			return m.failed(pc, err)
		}
		pc = next
	}
	return nil
}

// do executes one instruction and returns the next.
func (m *Method) do(ctx context.Context, pc int) (next int, err error) {
	s := &m.steps[pc]
	switch s.kind {
	case pte.KernelCall:
		if s.recheck {
			if err := s.sig.Check(s.call.Args()); err != nil {
				return pc, err
			}
		}
		err = s.call.Do(m.ctx)
	case pte.DelegateCall:
		err = s.unit.Execute(ctx, s.args)
	case pte.MoveCall:
		err = move(s.to, s.value)
	case pte.JumpFalseCall:
		var truth bool
		if truth, err = isTrue(s.value); !truth {
			return s.target, err
		}
	case pte.FreeCall:
		free(s.value)
	}
	return pc + 1, err
}

// move copies a value. A tensor's bytes are copied into the target's own place: the
// two stay apart, so a later write to one never shows in the other, and a caller's
// output buffer is really filled.
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

// isTrue is the truth of a condition: a bool, or a bool tensor without a false element.
func isTrue(v *tensor.Value) (bool, error) {
	switch {
	case v.Kind == tensor.KindBool:
		return v.Bool, nil
	case v.Kind == tensor.KindTensor && v.Tensor.DType == tensor.Bool:
		for _, b := range v.Tensor.Data {
			if b == 0 {
				return false, nil
			}
		}
		return true, nil
	}
	return false, errCondition
}

// free gives up the bytes of an unbounded tensor; others keep their place.
func free(v *tensor.Value) {
	if v.Kind == tensor.KindTensor && v.Tensor.Dynamism == tensor.DynamicUnbound {
		v.Tensor.Free()
	}
}

// failed places an error at a step.
func (m *Method) failed(pc int, err error) error {
	s := &m.steps[pc]
	nameArgument(err, s.sig)
	return &InstructionError{Class: classOf(err, ErrExecute), Method: m.spec.Name,
		Chain: s.origin.Chain, Index: s.origin.Index, Op: s.name, Err: err}
}
