package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// contradicting is a program with one call whose out has other sizes than its result, after a relu and before another one.
type contradicting struct {
	op       string
	args     []any // of the call: operands' sizes as []int, lists of integers as list, numbers
	declared []int
	dead     bool // nothing reads the out
	right    bool
}

type list []int

func (c *contradicting) file() []byte {
	m := pte.Method{Name: "forward", Chains: make([]pte.Chain, 1)}
	add := func(v pte.Value) int {
		m.Values = append(m.Values, v)
		return len(m.Values) - 1
	}
	value := func(sizes []int) int {
		order := make([]uint8, len(sizes))
		for i := range order {
			order[i] = uint8(i)
		}
		return add(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: sizes, DimOrder: order, Storage: pte.Unplanned}})
	}
	call := func(op string, args ...int) {
		name := pte.Operator{Name: op, Overload: "out"}
		m.Operators = append(m.Operators, name)
		m.Chains[0].Instructions = append(m.Chains[0].Instructions, pte.Instruction{Kind: pte.KernelCall, Index: len(m.Operators) - 1, Args: args})
	}
	var args []int
	for _, a := range c.args {
		switch a := a.(type) {
		case []int:
			in, x := value(a), value(a)
			m.Inputs = append(m.Inputs, in)
			call("aten::relu", in, x, x)
			args = append(args, x)
		case list:
			items := []int{}
			for _, n := range a {
				items = append(items, add(pte.Value{Kind: tensor.KindInt, Int: int64(n)}))
			}
			args = append(args, add(pte.Value{Kind: tensor.KindIntList, Items: items}))
		case int:
			args = append(args, add(pte.Value{Kind: tensor.KindInt, Int: int64(a)}))
		case bool:
			args = append(args, add(pte.Value{Kind: tensor.KindBool, Bool: a}))
		case nil:
			args = append(args, add(pte.Value{}))
		}
	}
	y, z := value(c.declared), value(c.declared)
	call(c.op, append(args, y, y)...)
	call("aten::relu", y, z, z)
	m.Outputs = []int{z}
	if c.dead {
		m.Outputs = []int{args[0]}
	}
	return ptetest.Write(&pte.Program{Methods: []pte.Method{m}}, ptetest.Layout{})
}

// run returns the error of a call at a level of lowering.
func (c *contradicting) run(t *testing.T, options ...etrun.Option) error {
	t.Helper()
	p, err := etrun.Parse(c.file(), options...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(context.Background(), "")
	if err != nil {
		return err
	}
	defer m.Close()
	for i, in := range m.Meta().Inputs {
		if err := m.SetInput(i, tensor.New(in.DType, in.Sizes...)); err != nil {
			t.Fatal(err)
		}
	}
	return m.Execute(context.Background())
}

// Sizes that contradict each other are refused with the same error with lowering as without, whatever of the program is rewritten,
// dropped or lowered.
func TestContradictingSizes(t *testing.T) {
	conv := []any{[]int{1, 2, 8, 8}, []int{3, 2, 3, 3}, nil, list{2, 2}, list{1, 1}, list{1, 1}, false, list{0, 0}, 1}
	for _, c := range []contradicting{
		{op: "aten::relu", args: []any{[]int{2, 3}}, declared: []int{3, 2}},
		{op: "aten::relu", args: []any{[]int{2, 3}}, declared: []int{2, 3}, right: true},
		{op: "aten::sigmoid", args: []any{[]int{2, 3}}, declared: []int{1, 2, 3}},
		{op: "aten::add", args: []any{[]int{2, 3}, []int{2, 3}, 1}, declared: []int{2, 4}},
		{op: "aten::add", args: []any{[]int{2, 3}, []int{4, 3}, 1}, declared: []int{4, 3}},
		{op: "aten::add", args: []any{[]int{4}, []int{4}, 1}, declared: []int{3}},
		{op: "aten::relu", args: []any{[]int{4, 3}}, declared: []int{3, 3}},
		{op: "aten::mm", args: []any{[]int{3, 2}, []int{2, 4}}, declared: []int{2, 4}},
		{op: "aten::mul", args: []any{[]int{2, 3}, []int{2, 1}}, declared: []int{2, 1}},
		{op: "aten::permute_copy", args: []any{[]int{2, 3, 4}, list{2, 0, 1}}, declared: []int{4, 3, 2}},
		{op: "aten::permute_copy", args: []any{[]int{2, 3, 4}, list{2, 0, 1}}, declared: []int{4, 2, 3}, right: true},
		{op: "aten::view_copy", args: []any{[]int{2, 6}, list{3, 4}}, declared: []int{4, 3}},
		{op: "aten::expand_copy", args: []any{[]int{1, 3}, list{2, 4}, false}, declared: []int{2, 4}},
		{op: "aten::mean", args: []any{[]int{1, 6, 4, 4}, list{2, 3}, true, nil}, declared: []int{1, 6}},
		{op: "aten::mean", args: []any{[]int{1, 6, 4, 4}, list{2, 3}, false, nil}, declared: []int{1, 6}, right: true},
		{op: "aten::convolution", args: conv, declared: []int{1, 3, 8, 8}},
		{op: "aten::convolution", args: conv, declared: []int{1, 3, 4, 4}, right: true},
		{op: "aten::mm", args: []any{[]int{2, 3}, []int{3, 4}}, declared: []int{4, 2}},
		{op: "aten::bmm", args: []any{[]int{2, 3, 4}, []int{2, 5, 6}}, declared: []int{2, 3, 6}},
		{op: "aten::_softmax", args: []any{[]int{2, 3}, 1, false}, declared: []int{6}},
	} {
		for _, c.dead = range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v to %v dead %v", c.op, c.args, c.declared, c.dead), func(t *testing.T) {
				want := c.run(t, etrun.WithLowering(etrun.LowerOff))
				if (want == nil) != c.right {
					t.Fatalf("without lowering: %v", want)
				}
				for _, by := range []xnnpack.Engine{xnnpack.EngineGo, xnnpack.EngineAuto} {
					for _, lowering := range []etrun.Lowering{etrun.LowerAuto, etrun.LowerAll} {
						got := c.run(t, etrun.WithLowering(lowering), etrun.WithDelegates(xnnpack.Backend{Engine: by}))
						if fmt.Sprint(got) != fmt.Sprint(want) || !c.right && !errors.Is(got, etrun.ErrExecute) && !errors.Is(got, etrun.ErrInput) {
							t.Errorf("%s, %s: got %v, want %v", by, lowering, got, want)
						}
					}
				}
			})
		}
	}
}
