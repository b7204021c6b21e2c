package etrun

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestBoundMemoryEqualsCopies runs random programs on the caller's memory and on the method's own
// memory.
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
				got, want := outputTensor(bound, i).Data, outputTensor(own, i).Data
				if string(got) != string(want) {
					t.Fatalf("seed %d, run %d, output %d: got %v, want %v", seed, run, i, got, want)
				}
			}
		}
	}
}

// outputTensor returns an output that must exist and be a tensor.
func outputTensor(m *Method, i int) *tensor.Tensor {
	v, err := m.Output(i)
	if err != nil {
		panic(err)
	}
	return v.Tensor
}

// bindLike binds new memory: copies of own's inputs, and space for outputs.
func bindLike(t *testing.T, bound, own *Method, spec *pte.Method) {
	t.Helper()
	for i := range bound.NumInputs() {
		src := own.inputs[i].given.Tensor
		x := tensor.New(src.DType, src.Sizes...)
		copy(x.Data, src.Data)
		if err := bound.BindInput(i, x); err != nil {
			t.Fatal(err)
		}
	}
	for i := range spec.Outputs {
		err := bound.BindOutput(i, bound.Meta().Outputs[i].NewTensor())
		if bound.Binds(i) && err != nil {
			t.Fatal(err)
		}
		if _, refused := errors.AsType[*OutputError](err); !bound.Binds(i) && !refused {
			t.Fatalf("output %d, which is not bound: %v", i, err)
		}
	}
}

// Unaligned memory, and memory too small for all values that share it, is rejected.
func TestBoundMemoryRefused(t *testing.T) {
	spec := hostileMethod(flowCall(flowView, vecA, 7), flowCall(flowAdd, 7, constant, vecB, vecB))
	spec.Values = append(spec.Values, spec.Values[vecB])
	whole := *spec.Values[vecA].Tensor
	whole.Dynamism = tensor.DynamicBound
	spec.Values[vecA].Tensor = &whole
	m := loadFlow(t, &spec, PlanOwn, WithBoundInputs(), WithBoundOutputs())
	bytes := tensor.AlignedBytes(8*flowLen + 8)
	odd := tensor.Make(tensor.Int64, []int{flowLen}, nil, tensor.Static)
	odd.Bind(bytes[1:])
	for name, x := range map[string]*tensor.Tensor{"small": tensor.New(tensor.Int64, flowLen-1), "odd": odd} {
		if err := m.BindInput(0, x); !errors.Is(err, ErrInput) {
			t.Errorf("%s input: %v", name, err)
		}
	}
	for name, x := range map[string]*tensor.Tensor{"small": tensor.New(tensor.Int64, flowLen-1), "odd": odd, "no": nil, "other": tensor.New(tensor.Float32, flowLen)} {
		if err := m.BindOutput(0, x); !errors.Is(err, ErrInput) {
			t.Errorf("%s output: %v", name, err)
		}
	}
	if err := errors.Join(m.BindOutput(0, tensor.New(tensor.Int64, flowLen)), m.BindInput(0, tensor.New(tensor.Int64, flowLen)), m.Execute(context.Background())); err != nil {
		t.Error(err)
	}
}
