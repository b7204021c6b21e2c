package rows

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// program writes a method whose input 0 has up to 8 rows: float32 [1, 8, 4].
type program struct {
	t    *testing.T
	m    pte.Method
	code []pte.Instruction
	ops  []ir.Operator
}

func newProgram(t *testing.T) *program {
	p := &program{t: t}
	p.m.Name, p.m.Inputs = "forward", []int{p.tensor(true, 1, 8, 4)}
	return p
}

func (p *program) value(v pte.Value) int {
	p.m.Values = append(p.m.Values, v)
	return len(p.m.Values) - 1
}

func (p *program) tensor(dynamic bool, sizes ...int) int {
	t := &pte.Tensor{DType: tensor.Float32, Sizes: sizes, DimOrder: tensor.ContiguousOrder(len(sizes))}
	if dynamic {
		t.Dynamism = tensor.DynamicBound
	}
	return p.value(pte.Value{Kind: tensor.KindTensor, Tensor: t})
}

func (p *program) constant(sizes ...int) int {
	v := p.tensor(false, sizes...)
	t := p.m.Values[v].Tensor
	t.Storage, t.Data = pte.Constant, tensor.AlignedBytes(int(t.NBytes()))
	return v
}

func (p *program) int(n int) int {
	return p.value(pte.Value{Kind: tensor.KindInt, Int: int64(n)})
}

func (p *program) ints(list ...int) int {
	var items []int
	for _, n := range list {
		items = append(items, p.int(n))
	}
	return p.value(pte.Value{Kind: tensor.KindIntList, Items: items})
}

func (p *program) bool() int { return p.value(pte.Value{Kind: tensor.KindBool}) }
func (p *program) none() int { return p.value(pte.Value{}) }

// call adds a call; outs are repeated as the result.
func (p *program) call(name string, args ...int) int {
	op, sig, ok, err := kernels.NewSet(portable.Ops()).Lookup(name)
	if !ok || err != nil {
		p.t.Fatal(name, err)
	}
	base, overload, _ := strings.Cut(name, ".")
	p.m.Operators = append(p.m.Operators, pte.Operator{Name: base, Overload: overload})
	p.ops = append(p.ops, ir.Operator{Op: op, Sig: sig})
	if sig.Result == nil || !sig.Result.Alias && len(args) < sig.Slots() {
		args = append(args, args[len(args)-1])
	}
	p.code = append(p.code, pte.Instruction{Kind: pte.KernelCall, Index: len(p.ops) - 1, Args: args})
	return args[len(args)-1]
}

func (p *program) plan(output int) (*Plan, error) {
	p.m.Outputs, p.m.Chains = []int{output}, []pte.Chain{{Instructions: p.code}}
	m, err := ir.Build(&p.m, ir.Links{Operators: p.ops})
	if err != nil {
		p.t.Fatal(err)
	}
	return Make(m, nil, nil)
}

// rules lists calls of one operator, and whether it computes each row by itself.
var calls = []struct {
	name     string
	call     func(p *program) int
	together bool
}{
	{"function", func(p *program) int { return p.call("aten::sigmoid.out", 0, p.tensor(true, 1, 8, 4)) }, true},
	{"sum with a constant for all rows", func(p *program) int {
		return p.call("aten::add.out", 0, p.constant(4), p.int(1), p.tensor(true, 1, 8, 4))
	}, true},
	{"sum with a constant for each row", func(p *program) int {
		return p.call("aten::add.out", 0, p.constant(8, 4), p.int(1), p.tensor(true, 1, 8, 4))
	}, false},
	{"softmax of a row", func(p *program) int {
		return p.call("aten::_softmax.out", 0, p.int(-1), p.bool(), p.tensor(true, 1, 8, 4))
	}, true},
	{"softmax of rows", func(p *program) int {
		return p.call("aten::_softmax.out", 0, p.int(1), p.bool(), p.tensor(true, 1, 8, 4))
	}, false},
	{"mean of short rows", func(p *program) int {
		return p.call("aten::mean.out", 0, p.ints(-1), p.bool(), p.none(), p.tensor(true, 1, 8))
	}, false},
	{"permuted rows", func(p *program) int {
		return p.call("aten::permute_copy.out", 0, p.ints(0, 2, 1), p.tensor(true, 1, 4, 8))
	}, false},
	{"slice within rows", func(p *program) int {
		return p.call("aten::slice_copy.Tensor_out", 0, p.int(2), p.int(1), p.int(3), p.int(1), p.tensor(true, 1, 8, 2))
	}, true},
	{"slice of rows", func(p *program) int {
		return p.call("aten::slice_copy.Tensor_out", 0, p.int(1), p.int(0), p.int(8), p.int(1), p.tensor(true, 1, 8, 4))
	}, false},
	{"last row", func(p *program) int {
		return p.call("aten::select_copy.int_out", 0, p.int(1), p.int(-1), p.tensor(false, 1, 4))
	}, true},
	{"second row", func(p *program) int {
		return p.call("aten::select_copy.int_out", 0, p.int(1), p.int(1), p.tensor(false, 1, 4))
	}, false},
	{"element of each row", func(p *program) int {
		return p.call("aten::select_copy.int_out", 0, p.int(2), p.int(-1), p.tensor(true, 1, 8))
	}, true},
	{"sum of all", func(p *program) int {
		return p.call("aten::mean.dtype_out", 0, p.none(), p.tensor(false))
	}, false},
	{"joined rows", func(p *program) int {
		list := p.value(pte.Value{Kind: tensor.KindTensorList, Items: []int{0, 0}})
		return p.call("aten::cat.out", list, p.int(2), p.tensor(true, 1, 8, 8))
	}, true},
}

// TestRules compares which calls run together.
func TestRules(t *testing.T) {
	for _, c := range calls {
		p := newProgram(t)
		plan, err := p.plan(c.call(p))
		if together := err == nil && plan.Together == 1; together != c.together {
			t.Errorf("%s: together %v, want %v (%v)", c.name, together, c.together, err)
		}
		if _, ok := errors.AsType[*Error](err); err != nil && !ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestSegments checks the order of steps and what is copied between instances: a sum over rows in between runs in each.
func TestSegments(t *testing.T) {
	p := newProgram(t)
	x := p.call("aten::sigmoid.out", 0, p.tensor(true, 1, 8, 4))
	y := p.call("aten::_softmax.out", x, p.int(1), p.bool(), p.tensor(true, 1, 8, 4))
	z := p.call("aten::mul.out", x, y, p.tensor(true, 1, 8, 4))
	plan, err := p.plan(z)
	if err != nil {
		t.Fatal(err)
	}
	want := []Segment{{0, 1, true, []int{0}}, {1, 2, false, []int{x}}, {2, 3, true, []int{y}}}
	if len(plan.Segments) != len(want) || len(plan.Outputs) != 1 || plan.Outputs[0] != z || plan.Rows != 8 {
		t.Fatalf("got %+v", plan)
	}
	for i, s := range plan.Segments {
		w := want[i]
		if s.First != w.First || s.End != w.End || s.Together != w.Together || len(s.Copies) != 1 || s.Copies[0] != w.Copies[0] {
			t.Errorf("segment %d: got %+v, want %+v", i, s, w)
		}
	}
}

// TestLifted checks that what is computed from the last row has a row for each instance, as far as that is by row.
func TestLifted(t *testing.T) {
	p := newProgram(t)
	last := p.call("aten::select_copy.int_out", 0, p.int(1), p.int(-1), p.tensor(false, 1, 4))
	product := p.call("aten::mm.out", last, p.constant(4, 3), p.tensor(false, 1, 3))
	all := p.call("aten::_softmax.out", product, p.int(0), p.bool(), p.tensor(false, 1, 3))
	plan, err := p.plan(all)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(plan.Lifted, []int{last, product}) || !slices.Equal(plan.Selected, []int{0}) || plan.Dims[all] != None ||
		plan.Together != 2 || plan.Each != 1 || len(plan.Outputs) != 0 {
		t.Errorf("got %+v", plan)
	}
}

// TestNoRows wants a reason for a method without a varying size.
func TestNoRows(t *testing.T) {
	p := newProgram(t)
	p.m.Values[0].Tensor.Dynamism = tensor.Static
	_, err := p.plan(p.call("aten::sigmoid.out", 0, p.tensor(false, 1, 8, 4)))
	if e, ok := errors.AsType[*Error](err); !ok || e.Reason != "no input has a varying number of rows" {
		t.Errorf("got %v", err)
	}
}
