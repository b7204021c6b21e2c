package runtime

import (
	"fmt"
	"runtime/debug"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// movers are operators that only rearrange or convert their first argument. The
// exporter leaves many of them on weights, above all the transposition before every
// addmm; done once at load, they cost nothing at run time, and what reads the result
// sees a constant, which it may keep in a form of its own.
var movers = map[string]bool{
	"aten::permute_copy.out": true, "aten::t_copy.out": true, "aten::transpose_copy.int_out": true,
	"aten::view_copy.out": true, "aten::unsqueeze_copy.out": true, "aten::squeeze_copy.dims_out": true,
	"aten::squeeze_copy.dim_out": true, "aten::clone.out": true, "aten::alias_copy.out": true,
	"aten::detach_copy.out": true, "aten::lift_fresh_copy.out": true, "aten::_to_copy.out": true,
	"dim_order_ops::_clone_dim_order.out": true, "dim_order_ops::_to_dim_order_copy.out": true,
}

// folding is the outcome for one method: computed once per program and shared.
type folding struct {
	steps  map[int]bool   // steps that were executed at load
	values map[int][]byte // the bytes of their results, and of the views of these
	bytes  int64
}

// fold executes at load what rearranges constants. The results are constants then:
// they leave the arena. Their bytes together stay below the file's size.
func (l *loader) fold() error {
	p := l.program
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.foldings[l.index]
	if f == nil {
		f = &folding{steps: make(map[int]bool), values: make(map[int][]byte)}
		if err := l.foldSteps(f); err != nil {
			return err
		}
		p.foldings[l.index] = f
	}
	for v, b := range f.values {
		l.bytes[v] = b
		l.flow.Storages[l.flow.Of[v]].Kind = ir.Folded
	}
	l.folded = f
	return nil
}

func (l *loader) foldSteps(f *folding) error {
	writes := l.writes()
	left := l.program.spec.Size // bytes of results still to try, refused ones included
	ctx := kernels.NewCtx(l.program.pool)
	for i := range l.flow.Steps {
		s := &l.flow.Steps[i]
		if !l.isMover(s) || !l.isKnown(s, f) {
			continue
		}
		out := s.Writes[0]
		storage := &l.flow.Storages[l.flow.Of[out]]
		if storage.Kind != ir.Activation || writes[l.flow.Of[out]] != 1 || storage.Bytes == 0 || storage.Bytes > left {
			continue
		}
		left -= storage.Bytes
		result, err := l.foldStep(ctx, s)
		if err != nil {
			return err
		}
		if result == nil {
			continue
		}
		f.steps[i] = true
		f.bytes += storage.Bytes
		for _, v := range storage.Values {
			f.values[v] = result
			l.bytes[v] = result
		}
	}
	return nil
}

// writes counts the instructions that write each storage.
func (l *loader) writes() []int {
	n := make([]int, len(l.flow.Storages))
	for i := range l.flow.Steps {
		for _, list := range [...][]int{l.flow.Steps[i].Writes, l.flow.Steps[i].Updates} {
			for _, v := range list {
				n[l.flow.Of[v]]++
			}
		}
	}
	return n
}

// isMover reports a call that rearranges one tensor of static sizes into another that
// is not much larger.
func (l *loader) isMover(s *ir.Step) bool {
	in := s.Instruction
	if in.Kind != pte.KernelCall || !movers[l.spec.Operators[in.Index].FullName()] || len(s.Reads) != 1 || len(s.Writes) != 1 {
		return false
	}
	from, to := l.spec.Values[s.Reads[0]].Tensor, l.spec.Values[s.Writes[0]].Tensor
	return to.Dynamism == tensor.Static && to.NBytes() <= 2*from.NBytes()
}

// isKnown reports a call whose arguments never change: a constant, and numbers that
// no instruction writes.
func (l *loader) isKnown(s *ir.Step, f *folding) bool {
	v := s.Reads[0]
	t := l.spec.Values[v].Tensor
	if f.values[v] == nil && t.Storage != pte.Constant && t.Storage != pte.External {
		return false
	}
	return !anyOf(l.spec, s.Instruction.Args, l.changing)
}

// foldStep executes a step on values of its own; a nil result is a call that the
// operator refuses, which is left to fail at run time.
func (l *loader) foldStep(ctx *kernels.Ctx, s *ir.Step) (result []byte, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = &PanicError{Value: fault, Stack: debug.Stack()}
			err = fmt.Errorf("%s: %w", l.stepName(s), err)
		}
	}()
	values := make(map[int]*tensor.Value)
	args := make(kernels.Args, len(s.Instruction.Args))
	for i, v := range s.Instruction.Args {
		args[i] = l.foldValue(values, v)
	}
	if l.sigs[s.Instruction.Index].Check(args) != nil {
		return nil, nil
	}
	err = l.ops[s.Instruction.Index].Func(ctx, args)
	ctx.Release()
	if err != nil {
		return nil, nil
	}
	return values[s.Writes[0]].Tensor.Data, nil
}

// foldValue is a value of a step as it is at load, one for each index.
func (l *loader) foldValue(values map[int]*tensor.Value, v int) *tensor.Value {
	if v < 0 {
		return &none
	}
	if known := values[v]; known != nil {
		return known
	}
	s := &l.spec.Values[v]
	value := &tensor.Value{Kind: s.Kind, Bool: s.Bool, Int: s.Int, Double: s.Double, Str: s.Str, Bools: s.Bools, Doubles: s.Doubles}
	values[v] = value
	switch s.Kind {
	case tensor.KindTensor:
		t := tensor.Make(s.Tensor.DType, s.Tensor.Sizes, s.Tensor.DimOrder, tensor.Static)
		b := l.bytes[v]
		if b == nil {
			b = tensor.AlignedBytes(t.NBytes())
		}
		t.Bind(b)
		value.Tensor = t
	case tensor.KindIntList:
		items := make([]*tensor.Value, len(s.Items))
		for i, item := range s.Items {
			items[i] = l.foldValue(values, item)
		}
		*value = tensor.NewList(s.Kind, items)
	}
	return value
}
