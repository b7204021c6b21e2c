package lower

import (
	"context"
	"errors"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

const size = 64 // elements of each tensor, one byte each

// chained returns calls of one operator, each on the previous result, the first on a constant.
func chained(t *testing.T, op kernels.Op, calls, outSize int) *ir.Method {
	t.Helper()
	sig, err := kernels.ParseSchema(op.Schema)
	if err != nil {
		t.Fatal(err)
	}
	m := &pte.Method{Name: "forward", Operators: []pte.Operator{{Name: "test::op", Overload: "out"}}, Chains: make([]pte.Chain, 1)}
	add := func(tt pte.Tensor, n int) {
		tt.DType, tt.Sizes, tt.DimOrder = tensor.Uint8, []int{n}, []uint8{0}
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &tt})
	}
	add(pte.Tensor{Storage: pte.Constant, Data: make([]byte, size)}, size)
	for i := range calls {
		add(pte.Tensor{}, outSize)
		m.Chains[0].Instructions = append(m.Chains[0].Instructions, pte.Instruction{Kind: pte.KernelCall, Args: []int{i, i + 1, i + 1}})
	}
	m.Outputs = []int{calls}
	built, err := ir.Build(m, ir.Links{Operators: []ir.Operator{{Op: &op, Sig: sig}}})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// increment writes its argument plus one.
func increment(_ *kernels.Ctx, a kernels.Args) error {
	for i := range a.Tensor(1).Data {
		a.Tensor(1).Data[i] = a.Tensor(0).Data[i%size] + 1
	}
	return nil
}

func TestFoldWithinBudget(t *testing.T) {
	op := kernels.Op{Schema: "test::op.out(Tensor self, *, Tensor(a!) out)", Func: increment, Pure: true}
	sum := op
	sum.Family = kernels.Sum
	const calls = 10
	for name, tt := range map[string]struct {
		op      kernels.Op
		outSize int
		budget  Budget
		want    int // steps folded
	}{
		"ample":                {op, size, Budget{1 << 20, 1 << 20, false}, calls},
		"none":                 {op, size, Budget{0, 1 << 20, false}, 0},
		"bytes of three":       {op, size, Budget{3*size + 1, 1 << 20, false}, 3},
		"work of four":         {op, size, Budget{1 << 20, 4*2*size + 1, false}, 4},
		"work of two products": {sum, size, Budget{1 << 20, 2*size*size + 1, false}, 2},
		"a small result":       {op, smallResult, Budget{1 << 20, 1 << 20, false}, calls},
		"a large result":       {op, smallResult + 1, Budget{1 << 20, 1 << 20, false}, 0},
	} {
		m := chained(t, tt.op, calls, tt.outSize)
		got, folded, err := Fold(context.Background(), m, kernels.NewCtx(nil), tt.budget)
		if err != nil {
			t.Fatal(err)
		}
		if len(folded) != tt.want || len(got.Steps) != calls-tt.want {
			t.Errorf("%s: %d folded, %d steps left, want %d of %d folded", name, len(folded), len(got.Steps), tt.want, calls)
			continue
		}
		for i, f := range folded {
			if s := got.Storages[got.Values[i+1].Storage]; f.Origin.Index != i || s.Kind != ir.Folded || s.Data[0] != byte(i+1) {
				t.Errorf("%s: step %d: origin %v, %v of %d, want %d", name, i, f.Origin, s.Kind, s.Data[0], i+1)
			}
		}
	}
}

func TestFoldCancelled(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	calls := 0
	m := chained(t, kernels.Op{Schema: "test::op.out(Tensor self, *, Tensor(a!) out)", Pure: true, Func: func(*kernels.Ctx, kernels.Args) error {
		calls++
		cancel(why)
		return nil
	}}, 5, size)
	if _, _, err := Fold(ctx, m, kernels.NewCtx(nil), Budget{1 << 20, 1 << 20, false}); err != why || calls != 1 {
		t.Errorf("got %v after %d calls, want %v after 1", err, calls, why)
	}
}

// Large results of a method that is only described are not computed, unless something reads their elements.
func TestFoldBlank(t *testing.T) {
	m := &pte.Method{Name: "forward", Operators: []pte.Operator{{Name: "test::move", Overload: "out"}, {Name: "test::read", Overload: "out"}},
		Inputs: []int{3}, Outputs: []int{4}, Chains: []pte.Chain{{Instructions: []pte.Instruction{{Kind: pte.KernelCall, Args: []int{0, 1, 1}},
			{Kind: pte.KernelCall, Args: []int{1, 2, 2}}, {Kind: pte.KernelCall, Index: 1, Args: []int{3, 2, 4, 4}}}}}}
	for range 5 {
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindTensor,
			Tensor: &pte.Tensor{DType: tensor.Uint8, Sizes: []int{BlankBytes}, DimOrder: []uint8{0}}})
	}
	m.Values[0].Tensor.Storage, m.Values[0].Tensor.Data = pte.Constant, make([]byte, BlankBytes)
	for class, want := range map[opclass.Class]int{opclass.MM: 0, opclass.Add: 2} { // of what reads value 2
		calls := 0
		move := kernels.Op{Schema: "test::move.out(Tensor self, *, Tensor(a!) out)", Pure: true, Moves: true,
			Func: func(_ *kernels.Ctx, a kernels.Args) error {
				err := kernels.ResizeOut(a, 1, a.Tensor(0).Sizes)
				if err == nil {
					calls++
					a.Tensor(1).Data[0] = a.Tensor(0).Data[0] + 1
				}
				return err
			}}
		read := kernels.Op{Schema: "test::read.out(Tensor self, Tensor weight, *, Tensor(a!) out)", Pure: true, Class: class, Func: move.Func}
		var links ir.Links
		for _, op := range []*kernels.Op{&move, &read} {
			sig, err := kernels.ParseSchema(op.Schema)
			if err != nil {
				t.Fatal(err)
			}
			links.Operators = append(links.Operators, ir.Operator{Op: op, Sig: sig})
		}
		links.Data = map[int][]byte{0: m.Values[0].Tensor.Data}
		built, err := ir.Build(m, links)
		if err != nil {
			t.Fatal(err)
		}
		got, folded, err := Fold(context.Background(), built, kernels.NewCtx(nil), Budget{1 << 20, 1 << 20, true})
		if err != nil || len(folded) != 2 || len(got.Steps) != 1 || calls != want {
			t.Fatalf("class %v: %d folded, %d computed, %v, want 2, %d", class, len(folded), calls, err, want)
		}
		if s := got.Storages[got.Values[2].Storage]; s.Kind != ir.Folded || int(s.Data[0]) != want {
			t.Errorf("class %v: %v of %d, want %d", class, s.Kind, s.Data[0], want)
		}
	}
}
