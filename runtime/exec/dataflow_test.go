package exec_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/prepare"
)

// TestPlannedExecutionEqualsNaive compares random programs with a separate buffer per storage to
// the same programs with shared buffers, whose dead bytes are overwritten after every instruction.
func TestPlannedExecutionEqualsNaive(t *testing.T) {
	saved := 0
	for seed := range uint64(exectest.Seeds) {
		spec := exectest.NewWords(rand.New(rand.NewPCG(seed, 0)))
		load := func(mode plan.Mode) *exectest.Method {
			m, err := exectest.Load(spec, 0, prepare.Options{Operators: kernels.NewSet(exectest.WordOps), AsWritten: true,
				Plan: plan.Options{Mode: mode, Preserve: true}})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		naive := load(plan.Naive)
		packed := load(plan.Own)
		packed.Poison(0xAA)
		for run := range 4 {
			for _, m := range []*exectest.Method{naive, packed} {
				if err := errors.Join(m.SetWords(run), m.Execute(context.Background())); err != nil {
					t.Fatalf("seed %d, run %d: %v", seed, run, err)
				}
			}
			for i := range spec.Outputs {
				got, want := tensor.Data[int64](packed.Tensor(i)), tensor.Data[int64](naive.Tensor(i))
				for k := range want {
					if got[k] != want[k] {
						t.Fatalf("seed %d, run %d, output %d (value %d), index %d: got %d, want %d\n%s",
							seed, run, i, spec.Outputs[i], k, got[k], want[k], packed.Listing())
					}
				}
			}
		}
		if packed.Plan().Own.Size() < naive.Plan().Own.Size() {
			saved++
		}
	}
	if saved < exectest.Seeds/2 {
		t.Errorf("only %d of %d programs were packed at all: the test shows nothing", saved, exectest.Seeds)
	}
}
