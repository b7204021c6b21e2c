package etrun

import (
	"context"
	"encoding/binary"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"math/rand/v2"
	"testing"
)

// TestPlannedExecutionEqualsNaive compares random programs with a separate buffer per storage to
// the same programs with shared buffers, whose dead bytes are overwritten after every instruction.
func TestPlannedExecutionEqualsNaive(t *testing.T) {
	saved := 0
	for seed := range uint64(flowSeeds) {
		spec := newFlowProgram(rand.New(rand.NewPCG(seed, 0)))
		naive := loadFlow(t, spec, PlanNaive)
		packed := loadFlow(t, spec, PlanOwn)
		poisonDead(packed.in, 0xAA)
		for run := range 4 {
			for _, m := range []*Method{naive, packed} {
				setFlowInputs(t, m, run)
				if err := m.Execute(context.Background()); err != nil {
					t.Fatalf("seed %d, run %d: %v", seed, run, err)
				}
			}
			for i := range spec.Outputs {
				got, want := tensor.Data[int64](outputTensor(packed, i)), tensor.Data[int64](outputTensor(naive, i))
				for k := range want {
					if got[k] != want[k] {
						t.Fatalf("seed %d, run %d, output %d (value %d), index %d: got %d, want %d\n%s",
							seed, run, i, spec.Outputs[i], k, got[k], want[k], listing(packed.in))
					}
				}
			}
		}
		if packed.Report().Plan.Own.Size() < naive.Report().Plan.Own.Size() {
			saved++
		}
	}
	if saved < flowSeeds/2 {
		t.Errorf("only %d of %d programs were packed at all: the test shows nothing", saved, flowSeeds)
	}
}

// flowMethods returns a program with methods of flowOps. They may read state that nothing writes.
func flowMethods(specs []pte.Method, options ...Option) *Program {
	c := newConfig(append([]Option{WithOperatorSet(kernels.NewSet(flowOps)), WithThreads(1), WithoutRepair()}, options...))
	p := &Program{config: c, spec: &pte.Program{Methods: specs}}
	p.makeSlots()
	return p
}

func loadFlow(t *testing.T, spec *pte.Method, mode PlanMode, options ...MethodOption) *Method {
	t.Helper()
	named := *spec
	named.Name = "forward"
	m, err := flowMethods([]pte.Method{named}, WithPlan(mode)).Load(context.Background(), "forward", options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func setFlowInputs(t *testing.T, m *Method, run int) {
	t.Helper()
	for i, in := range m.Meta().Inputs {
		if err := m.SetInput(i, flowInput(&in, i, run)); err != nil {
			t.Fatal(err)
		}
	}
}

// flowInput returns the value of input i in a run.
func flowInput(in *ValueMeta, i, run int) *tensor.Tensor {
	x := in.NewTensor()
	if x.DType == tensor.Bool {
		x.Data[0] = byte(run >> i & 1)
		return x
	}
	for k := range x.Numel() {
		binary.LittleEndian.PutUint64(x.Data[8*k:], uint64(run+10*i+100*k))
	}
	return x
}
