package lower_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestFold loads a real program whose linear layers transpose their weights.
func TestFold(t *testing.T) {
	data, err := os.ReadFile("../../testdata/digits/portable.pte")
	if err != nil {
		t.Fatal(err)
	}
	images, err := os.ReadFile("../../testdata/digits/images.f32.bin")
	if err != nil {
		t.Fatal(err)
	}
	file, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	run := func(budget int64) (*exectest.Method, []byte) {
		m := load(t, &file.Methods[0], budget, prepare.Options{Operators: kernels.NewSet(portable.Ops())})
		t.Cleanup(func() { m.Close() })
		in := m.Input(0)
		copy(in.Data, images)
		if err := errors.Join(m.SetInput(0, in), m.Execute(context.Background())); err != nil {
			t.Fatal(err)
		}
		return m, m.Tensor(0).Data
	}
	folded, got := run(file.Size)
	plain, want := run(0)
	if len(folded.Prepared.Folded) == 0 || len(plain.Prepared.Folded) > 0 {
		t.Fatalf("%d folded, %d without a budget", len(folded.Prepared.Folded), len(plain.Prepared.Folded))
	}
	if string(got) != string(want) {
		t.Errorf("folded programs compute something else: %x, want %x", got, want)
	}
	if folded.Plan().Own.Size() > plain.Plan().Own.Size() {
		t.Errorf("the arena grew from %d to %d", plain.Plan().Own.Size(), folded.Plan().Own.Size())
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
	method := load(t, &m, 5*size, prepare.Options{Operators: kernels.NewSet(ops)})
	defer method.Close()
	if tried == 0 || tried > 5 {
		t.Errorf("%d of %d calls were tried at load, want 1 to 5", tried, calls)
	}
	if err := method.Execute(context.Background()); !errors.Is(err, kernels.ErrArgument) {
		t.Errorf("a refused call, executed: %v", err)
	}
}
