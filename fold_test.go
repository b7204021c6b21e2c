package etrun

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestFold loads a real program whose linear layers transpose their weights.
func TestFold(t *testing.T) {
	data, err := os.ReadFile("testdata/digits/portable.pte")
	if err != nil {
		t.Fatal(err)
	}
	images, err := os.ReadFile("testdata/digits/images.f32.bin")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(data, WithLowering(LowerOff))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	run := func() (*Method, []byte) {
		m, err := p.Load(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		in := m.Meta().Inputs[0].NewTensor()
		copy(in.Data, images)
		if err := m.SetInput(0, in); err != nil {
			t.Fatal(err)
		}
		if err := m.Execute(context.Background()); err != nil {
			t.Fatal(err)
		}
		return m, outputTensor(m, 0).Data
	}
	first, got := run()
	second, again := run()
	foldedValues, at := 0, []byte(nil)
	for i := range first.shared.IR.Storages {
		s := &first.shared.IR.Storages[i]
		if s.Kind != ir.Folded {
			continue
		}
		foldedValues++
		at = s.Data
		if other := second.shared.IR.Storages[i].Data; len(at) == 0 || &other[0] != &at[0] {
			t.Errorf("value %d: two methods of a program have folded bytes of their own", s.Values[0])
		}
	}
	if foldedValues == 0 {
		t.Fatal("nothing was folded")
	}
	setFoldBudget(p, 0)
	plain, want := run()
	if string(got) != string(want) || string(again) != string(want) {
		t.Errorf("folded programs compute something else: %x, %x, want %x", got, again, want)
	}
	if first.in.Plan().Own.Size() > plain.in.Plan().Own.Size() {
		t.Errorf("the arena grew from %d to %d", plain.in.Plan().Own.Size(), first.in.Plan().Own.Size())
	}
}

// TestFoldBudget has many calls that fail after their result was allocated: together they may
// allocate no more than the file's size.
func TestFoldBudget(t *testing.T) {
	const calls, size = 400, 1000
	m := pte.Method{Name: "forward", Chains: make([]pte.Chain, 1), Operators: []pte.Operator{{Name: "aten::permute_copy", Overload: "out"}}}
	add := func(v pte.Value) int {
		m.Values = append(m.Values, v)
		return len(m.Values) - 1
	}
	plane := func(storage pte.Storage, data []byte) int {
		return add(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Uint8, Sizes: []int{size}, DimOrder: []uint8{0}, Storage: storage, Data: data}})
	}
	weight := plane(pte.Constant, make([]byte, size))
	dims := add(pte.Value{Kind: tensor.KindIntList, Items: []int{add(pte.Value{Kind: tensor.KindInt, Int: 7})}})
	for range calls {
		out := plane(pte.Unplanned, nil)
		m.Chains[0].Instructions = append(m.Chains[0].Instructions, pte.Instruction{Kind: pte.KernelCall, Args: []int{weight, dims, out, out}})
	}
	tried := 0
	ops := []kernels.Op{{Pure: true, Schema: "aten::permute_copy.out(Tensor self, int[] dims, *, Tensor(a!) out)", Func: func(*kernels.Ctx, kernels.Args) error {
		tried++
		return kernels.Bad(1, "7", "a dimension")
	}}}
	p := &Program{config: newConfig([]Option{WithOperatorSet(kernels.NewSet(ops)), WithLowering(LowerOff)}), spec: &pte.Program{Methods: []pte.Method{m}, Size: 5 * size}}
	p.makeSlots()
	method, err := p.Load(context.Background(), "forward")
	if err != nil {
		t.Fatal(err)
	}
	defer method.Close()
	if tried == 0 || tried > 5 {
		t.Errorf("%d of %d calls were tried at load, want 1 to 5", tried, calls)
	}
	if err := method.Execute(context.Background()); !errors.Is(err, kernels.ErrArgument) {
		t.Errorf("a refused call, executed: %v", err)
	}
}
