package kerneltest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// violation is a breach of the contract of [kernels.Func].
type violation struct {
	Call  string // text of the call
	What  string
	Stack string // of a panic
}

func (v *violation) Error() string {
	s := v.Call + ": " + v.What
	if v.Stack != "" {
		s += "\n" + v.Stack
	}
	return s
}

// Two fill values distinguish written bytes from unwritten ones.
const (
	firstPoison  = 0xa5
	secondPoison = 0x5a
)

// call is one call of an operator, its arguments in guarded memory.
type call struct {
	op       *kernels.Op
	sig      *kernels.Signature
	args     kernels.Args
	inputs   []*guarded    // only read
	written  []*guarded    // mutated arguments and outs, in schema order, then a tensor result
	returned *tensor.Value // the slot after the arguments, nil if there is none
	made     kernels.Call
	text     string
}

// newCall prepares a call. args are the arguments in schema order, including outs; result is the
// tensor returned by an operator without an out, else nil.
func newCall(set *kernels.Set, op string, args []any, result *tensor.Tensor) (*call, error) {
	row, sig, ok, err := set.Lookup(op)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("operator %q: not in the set", op)
	}
	if len(args) != len(sig.Args) {
		return nil, fmt.Errorf("operator %q: %d arguments given, %d in the schema", op, len(args), len(sig.Args))
	}
	k := &call{op: row, sig: sig, text: describe(sig, args)}
	for i := range args {
		v, err := k.value(args[i], &sig.Args[i])
		if err != nil {
			return nil, fmt.Errorf("operator %q: argument %d: %w", op, i, err)
		}
		k.args = append(k.args, v)
	}
	if sig.Slots() > len(sig.Args) {
		k.returned = k.result(result)
		k.args = append(k.args, k.returned)
	}
	k.made = kernels.NewCall(row.Func, k.args, true)
	return k, nil
}

// ignore says that nothing reads the elements of some outs.
func (k *call) ignore(args []int) {
	outs := uint64(0)
	for _, i := range args {
		outs |= 1 << i
		for _, g := range k.written {
			g.unread = g.unread || g.t == k.args[i].Tensor
		}
	}
	k.made.SetUnread(outs)
}

// value returns the slot of one argument.
func (k *call) value(a any, arg *kernels.Arg) (*tensor.Value, error) {
	switch a := a.(type) {
	case nil:
		return &tensor.Value{}, nil
	case *tensor.Tensor:
		return k.tensor(a, arg), nil
	case []*tensor.Tensor:
		kind, items := tensor.KindTensorList, make([]*tensor.Value, len(a))
		for i, t := range a {
			if items[i] = new(tensor.Value); t == nil {
				kind = tensor.KindOptionalTensorList
				continue
			}
			items[i] = k.tensor(t, arg)
		}
		return new(tensor.NewList(kind, items)), nil
	}
	return scalarValue(a)
}

func (k *call) tensor(t *tensor.Tensor, arg *kernels.Arg) *tensor.Value {
	g := guard(t, firstPoison, arg.Out)
	if arg.Out || arg.Mutated {
		k.written = append(k.written, g)
	} else {
		k.inputs = append(k.inputs, g)
	}
	return new(tensor.TensorValue(g.t))
}

func scalarValue(a any) (*tensor.Value, error) {
	switch a := a.(type) {
	case bool:
		return new(tensor.BoolValue(a)), nil
	case int:
		return new(tensor.IntValue(int64(a))), nil
	case int64:
		return new(tensor.IntValue(a)), nil
	case tensor.DType:
		return new(tensor.IntValue(int64(a))), nil
	case float64:
		return new(tensor.DoubleValue(a)), nil
	case string:
		return new(tensor.StringValue(a)), nil
	case []int:
		return intList(a), nil
	case []int64:
		return intList(a), nil
	case []float64:
		return &tensor.Value{Kind: tensor.KindDoubleList, Doubles: slices.Clone(a)}, nil
	case []bool:
		return &tensor.Value{Kind: tensor.KindBoolList, Bools: slices.Clone(a)}, nil
	}
	return nil, fmt.Errorf("a %T is no argument", a)
}

func intList[T int | int64](a []T) *tensor.Value {
	items := make([]*tensor.Value, len(a))
	for i, v := range a {
		items[i] = new(tensor.IntValue(int64(v)))
	}
	return new(tensor.NewList(tensor.KindIntList, items))
}

// result returns the slot after the arguments, as the exporter creates it.
func (k *call) result(result *tensor.Tensor) *tensor.Value {
	if k.sig.Result != nil {
		if result == nil {
			return new(tensor.Value)
		}
		return k.tensor(result, &kernels.Arg{Out: true})
	}
	var outs []*tensor.Value
	for i, arg := range k.sig.Args {
		if arg.Out {
			outs = append(outs, k.args[i])
		}
	}
	switch {
	case len(outs) == 1 && outs[0].Kind == tensor.KindTensorList:
		return new(tensor.NewList(tensor.KindTensorList, outs[0].Items))
	case len(outs) == 1:
		return outs[0]
	case len(outs) > 1:
		return new(tensor.NewList(tensor.KindTensorList, outs))
	}
	for i, arg := range k.sig.Args {
		if arg.Mutated {
			return k.args[i]
		}
	}
	return new(tensor.Value)
}

// run calls the operator once. refused is the operator's own error; broken is a *violation if it
// violated its contract.
func (k *call) run(ctx *kernels.Ctx) (refused, broken error) {
	ctx.Rand = rand.New(rand.NewPCG(1, 2))
	if refused = k.sig.Check(k.args); refused != nil {
		return refused, nil
	}
	stack, refused := k.protected(ctx)
	if what := k.breach(refused, stack); what != "" {
		return refused, &violation{Call: k.text, What: what, Stack: stack}
	}
	return refused, nil
}

// protected calls the operator and recovers a panic, with its stack.
func (k *call) protected(ctx *kernels.Ctx) (stack string, err error) {
	defer func() {
		if p := recover(); p != nil {
			stack, err = string(debug.Stack()), fmt.Errorf("panic: %v", p)
		}
	}()
	return "", k.made.Do(ctx)
}

// breach describes the violation, "" for none.
func (k *call) breach(refused error, stack string) string {
	if stack != "" {
		return refused.Error()
	}
	if refused != nil && !errors.Is(refused, kernels.ErrArgument) {
		return fmt.Sprintf("error %q is not an argument error", refused)
	}
	for _, g := range k.inputs {
		if err := errors.Join(g.intact(), g.unwritten()); err != nil {
			return err.Error()
		}
	}
	for _, g := range k.written {
		if err := errors.Join(g.intact(), g.sound()); err != nil {
			return err.Error()
		}
	}
	return ""
}

// reset prepares another run: updated arguments have their original contents, and outs are filled
// with poison.
func (k *call) reset(poison byte) error {
	for _, g := range k.written {
		g.reset(poison)
		if g.t.Dynamism != tensor.Static {
			if err := g.t.Resize(g.proto.Sizes); err != nil {
				return err
			}
		}
	}
	return nil
}

// snapshot is the state after a call.
type snapshot struct {
	shapes []string
	bytes  [][]byte
	result tensor.Value
}

func (k *call) snapshot() (s snapshot) {
	for _, g := range k.written {
		s.shapes = append(s.shapes, g.t.String())
		data := bytes.Clone(g.t.Data)
		if g.unread {
			data = nil
		}
		s.bytes = append(s.bytes, data)
	}
	if r := k.returned; r != nil && r.Kind != tensor.KindTensor && r.Kind != tensor.KindTensorList {
		s.result = *r
	}
	return s
}

// twice runs the call again, as the same instruction in a second run, and reports results that
// depend on earlier contents of the outs.
func (k *call) twice(ctx *kernels.Ctx, refused error) (broken error) {
	first := k.snapshot()
	if err := k.reset(secondPoison); err != nil {
		return &violation{Call: k.text, What: "out not fit for a second call: " + err.Error()}
	}
	again, broken := k.run(ctx)
	if broken != nil {
		return broken
	}
	if (refused == nil) != (again == nil) {
		return &violation{Call: k.text, What: fmt.Sprintf("first call gave error %v, the second %v", refused, again)}
	}
	if refused != nil || leavesBytes[k.sig.Name] {
		return nil
	}
	if what := first.differs(k.snapshot()); what != "" {
		return &violation{Call: k.text, What: what}
	}
	return nil
}

// leavesBytes are the operators whose outs are left uninitialized.
var leavesBytes = map[string]bool{"aten::empty.out": true, "dim_order_ops::_empty_dim_order.out": true}

func (s snapshot) differs(t snapshot) string {
	for i := range s.bytes {
		if s.shapes[i] != t.shapes[i] {
			return fmt.Sprintf("output %d is %s, and %s at the second call", i, s.shapes[i], t.shapes[i])
		}
		for j, b := range s.bytes[i] {
			if b != t.bytes[i][j] {
				return fmt.Sprintf("output %d, byte %d: %#x, and %#x at the second call: left unwritten, or read before it was", i, j, b, t.bytes[i][j])
			}
		}
	}
	if fmt.Sprint(s.result) != fmt.Sprint(t.result) {
		return fmt.Sprintf("result %v, and %v at the second call", s.result, t.result)
	}
	return ""
}
