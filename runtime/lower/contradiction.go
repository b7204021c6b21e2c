package lower

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Rewrites and backends trust the declared sizes, while an operator computes those of its results, and refuses outs of others. A
// method whose sizes contradict each other therefore stays as it is: its call fails when it runs, as without lowering.

// Bounds of the calls that are checked: the bytes of an operand, which are zeros and hardly ever read, and outs. A larger operand
// has no bytes.
const (
	maxProbe     = 1 << 14
	maxProbeOuts = 8
)

// Contradiction returns the first call of a method whose operator refuses the static sizes of its arguments and results, with its
// reason; "" for none. Operators are called with an out that no result fits: they fail before they compute anything, with
// the sizes that the result has. ctx ends the work between two calls.
func Contradiction(ctx context.Context, m *ir.Method) (string, error) {
	if m.Coarse || operands(m) > maxOperand {
		return "", nil
	}
	p := newProber(m)
	for i := range m.Steps {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if !p.fits(i) || !p.areStatic(i) {
			continue
		}
		if err := p.probe(i); err != nil {
			s := &m.Steps[i]
			return fmt.Sprintf("sizes of the method contradict each other: %s: %v", s.Origin.Place(m.StepName(s)), err), nil
		}
	}
	return "", nil
}

// newProber returns a pass for [pass.probe].
func newProber(m *ir.Method) *pass {
	stop := make(chan struct{})
	close(stop)
	k := kernels.NewCtx(nil)
	k.StopWhen(stop) // of an operator that computes something nevertheless
	zeros := tensor.AlignedBytes(maxProbe)
	return &pass{evaluator: newEvaluator(m, k, func(n int) []byte {
		if n > len(zeros) {
			return nil
		}
		return zeros[:n]
	})}
}

// areStatic reports whether all tensors of step i have fixed sizes.
func (p *pass) areStatic(i int) bool {
	s := &p.m.Steps[i]
	return !slices.ContainsFunc(slices.Concat(s.Reads, s.Writes), func(v int) bool {
		return p.m.Values[v].Tensor.Dynamism != tensor.Static
	})
}

// probe calls the operator of a step once for each out, and returns why it refuses the declared sizes.
func (p *pass) probe(i int) error {
	s := &p.m.Steps[i]
	for _, out := range s.Writes[:min(len(s.Writes), maxProbeOuts)] {
		declared := p.m.Values[out].Tensor
		if slices.Contains(s.Reads, out) || declared.NBytes() == 0 { // an empty out is one that the operator may leave out
			continue
		}
		values := make(map[int]*tensor.Value)
		args := make(kernels.Args, len(s.Args))
		for n, v := range s.Args {
			args[n] = p.value(values, v)
		}
		values[out].Tensor = fitsNothing(declared)
		if s.Sig.Check(args) != nil {
			return nil
		}
		err := p.refusal(s, args)
		var resize *tensor.ResizeError
		var argument *kernels.ArgumentError
		switch {
		case !errors.Is(err, kernels.ErrArgument):
		case errors.As(err, &argument) && (p.mayReadNumbers(s) || isOut(s, argument.Arg)):
			// zeros may not be what it wants, and it may have other requirements of outs
		case !errors.As(err, &resize):
			return err
		case !slices.Equal(resize.To, declared.Sizes):
			resize.Dynamism = tensor.Static
			return err
		}
	}
	return nil
}

// fitsNothing returns an out of the declared sizes that refuses any, these too: it has no memory, and no budget for more.
func fitsNothing(declared *ir.Tensor) *tensor.Tensor {
	t := tensor.Make(declared.DType, declared.Sizes, declared.DimOrder, tensor.DynamicBound)
	t.ChargeTo(new(tensor.Budget))
	t.Bind([]byte{})
	return t
}

// isOut reports whether argument k is an out; -1 is the call.
func isOut(s *ir.Step, k int) bool { return k >= 0 && k < len(s.Sig.Args) && s.Sig.Args[k].Out }

// mayReadNumbers reports whether an operator may refuse integers that are not known yet, such as indices.
func (p *pass) mayReadNumbers(s *ir.Step) bool {
	return !s.Op.Moves && slices.ContainsFunc(s.Reads, func(v int) bool {
		t := p.m.Values[v].Tensor
		return !t.Const && !t.DType.IsFloat()
	})
}

// refusal returns the error of an operator, nil if it stops otherwise.
func (p *pass) refusal(s *ir.Step, args kernels.Args) (err error) {
	defer func() {
		if recover() != nil { // it computes, or reads an operand that has no bytes
			p.k.Release()
			err = nil
		}
	}()
	call := kernels.NewCall(s.Op.Func, args, false)
	return call.Do(p.k)
}
