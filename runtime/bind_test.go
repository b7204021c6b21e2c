package runtime

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestBoundMemoryEqualsCopies runs random programs on the caller's memory and on the
// method's own.
func TestBoundMemoryEqualsCopies(t *testing.T) {
	for seed := range uint64(60) {
		spec := newFlowProgram(rand.New(rand.NewPCG(seed, 1)))
		own := loadFlow(t, spec, PlanOwn)
		bound := loadFlow(t, spec, PlanOwn, WithBoundInputs(), WithBoundOutputs())
		if err := bound.Execute(context.Background()); !errors.Is(err, ErrInput) {
			t.Fatalf("seed %d: execute without memory: %v", seed, err)
		}
		for run := range 2 {
			setFlowInputs(t, own, run)
			bindLike(t, bound, own, spec)
			for _, m := range []*Method{own, bound} {
				if err := m.Execute(context.Background()); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			for i := range spec.Outputs {
				got, want := bound.Output(i).Tensor.Data, own.Output(i).Tensor.Data
				if string(got) != string(want) {
					t.Fatalf("seed %d, run %d, output %d: got %v, want %v", seed, run, i, got, want)
				}
			}
		}
	}
}

// bindLike gives bound fresh memory: copies of own's inputs, and room for outputs.
func bindLike(t *testing.T, bound, own *Method, spec *pte.Method) {
	t.Helper()
	for i := range bound.NumInputs() {
		src := own.Input(i).Tensor
		x := tensor.New(src.DType, src.Sizes...)
		copy(x.Data, src.Data)
		if err := bound.BindInput(i, x); err != nil {
			t.Fatal(err)
		}
	}
	for i := range spec.Outputs {
		if _, err := bound.BindOutput(i, tensor.AlignedBytes(own.Output(i).Tensor.NBytes())); err != nil {
			t.Fatal(err)
		}
	}
}
