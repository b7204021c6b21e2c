package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestBoundMemoryEqualsCopies runs random programs on the caller's memory and on the method's own
// memory.
func TestBoundMemoryEqualsCopies(t *testing.T) {
	for seed := range uint64(60) {
		spec := exectest.NewWords(rand.New(rand.NewPCG(seed, 1)))
		own := loadFlow(t, spec)
		bound := loadFlow(t, spec, etrun.WithBoundInputs(), etrun.WithBoundOutputs())
		if err := bound.Execute(context.Background()); !errors.Is(err, etrun.ErrInput) {
			t.Fatalf("seed %d: execute without memory: %v", seed, err)
		}
		for run := range 2 {
			setFlowInputs(t, own, run)
			bindLike(t, bound, run, spec)
			for _, m := range []*etrun.Method{own, bound} {
				if err := m.Execute(context.Background()); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			for i := range spec.Outputs {
				got, want := tensorOf(bound, i).Data, tensorOf(own, i).Data
				if string(got) != string(want) {
					t.Fatalf("seed %d, run %d, output %d: got %v, want %v", seed, run, i, got, want)
				}
			}
		}
	}
}

// TestBoundAndCopiedInputs runs random programs with inputs that are bound in some runs and copied in
// others. Copies must not reach memory that was bound before.
func TestBoundAndCopiedInputs(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		spec := exectest.NewWords(r)
		own, mixed := loadFlow(t, spec), loadFlow(t, spec)
		spec.Name = "forward"
		reusing, err := loadMethod(t, *spec, etrun.WithPlan(etrun.PlanOwn), etrun.WithReusableInputs())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*etrun.Method{mixed, reusing} {
			if err := errors.Join(own.Reset(), bindSome(r, m, own)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

// bindSome runs m, with some inputs bound, like own.
func bindSome(r *rand.Rand, m, own *etrun.Method) error {
	var bound []*tensor.Tensor
	var was [][]byte
	for run := range 6 {
		for i, in := range m.Meta().Inputs {
			x, set := flowInput(&in, i, run), m.SetInput
			if r.IntN(2) == 0 && run%2 == 0 {
				set, bound = m.BindInput, append(bound, x)
			}
			if err := errors.Join(own.SetInput(i, x), set(i, x)); err != nil {
				return err
			}
		}
		if err := errors.Join(own.Execute(context.Background()), m.Execute(context.Background())); err != nil {
			return err
		}
		for i := range own.Meta().Outputs {
			if got, want := tensorOf(m, i).Data, tensorOf(own, i).Data; string(got) != string(want) {
				return fmt.Errorf("run %d, output %d: got %v, want %v", run, i, got, want)
			}
		}
		for k := range was {
			if got := bound[k].Data; !bytes.Equal(got, was[k]) {
				return fmt.Errorf("run %d changed memory %d, which was bound before: got %v, want %v", run, k, got, was[k])
			}
		}
		for was = was[:0]; len(was) < len(bound) && run%2 == 0; { // the next run copies all inputs
			was = append(was, bytes.Clone(bound[len(was)].Data))
		}
	}
	for i, in := range m.Meta().Inputs {
		if err := m.BindInput(i, flowInput(&in, i, 0)); err != nil {
			return err
		}
	}
	return errors.Join(m.Execute(context.Background()), m.Execute(context.Background())) // they stay bound
}

// TestBindOwnMemory binds outputs of a method as its inputs, as one feeds results back.
func TestBindOwnMemory(t *testing.T) {
	m := loadFlow(t, exectest.NewWords(rand.New(rand.NewPCG(1, 1))))
	setFlowInputs(t, m, 0)
	if err := m.Execute(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i := range m.Meta().Outputs {
		for k := range m.Meta().Inputs {
			if out := tensorOf(m, i); len(out.Data) > 0 && out.DType == m.Meta().Inputs[k].DType {
				if err := m.BindInput(k, out); !errors.Is(err, etrun.ErrInput) {
					t.Errorf("input %d bound to output %d: got %v, want %v", k, i, err, etrun.ErrInput)
				}
			}
		}
	}
}

// TestResetUnbinds checks that Reset ends the bindings of inputs, so that the memory of one caller of
// a pool is not reachable for the next.
func TestResetUnbinds(t *testing.T) {
	m := loadFlow(t, exectest.NewWords(rand.New(rand.NewPCG(1, 1))))
	var bound, was []*tensor.Tensor
	for i, in := range m.Meta().Inputs {
		bound, was = append(bound, flowInput(&in, i, 0)), append(was, flowInput(&in, i, 0))
		if err := m.BindInput(i, bound[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Reset(); err != nil {
		t.Fatal(err)
	}
	setFlowInputs(t, m, 3)
	for i := range bound {
		if !bytes.Equal(bound[i].Data, was[i].Data) {
			t.Errorf("input %d is still bound", i)
		}
	}
}

// TestBindInputsOfOneStorage runs a program that has one value as two inputs, and updates it.
func TestBindInputsOfOneStorage(t *testing.T) {
	for seed := range uint64(60) {
		spec := exectest.NewWords(rand.New(rand.NewPCG(seed, 4)))
		spec.Inputs = append(spec.Inputs, spec.Inputs[0])
		m := loadFlow(t, spec)
		metas := m.Meta().Inputs
		for i := range metas {
			if err := m.BindInput(i, flowInput(&metas[i], 0, i)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		err := errors.Join(m.SetInput(0, flowInput(&metas[0], 0, 3)), m.Execute(context.Background()))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// bindLike binds new memory: the inputs of a run, and space for outputs.
func bindLike(t *testing.T, bound *etrun.Method, run int, spec *pte.Method) {
	t.Helper()
	for i, in := range bound.Meta().Inputs {
		if err := bound.BindInput(i, flowInput(&in, i, run)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range spec.Outputs {
		err := bound.BindOutput(i, bound.Meta().Outputs[i].NewTensor())
		if bound.CanBindOutput(i) && err != nil {
			t.Fatal(err)
		}
		if _, refused := errors.AsType[*etrun.OutputError](err); !bound.CanBindOutput(i) && !refused {
			t.Fatalf("output %d, which is not bound: %v", i, err)
		}
	}
}

// Unaligned memory, and memory too small for all values that share it, is rejected.
func TestBoundMemoryRefused(t *testing.T) {
	spec := exectest.Small(exectest.Call(exectest.OpView, exectest.VecA, 7),
		exectest.Call(exectest.OpAdd, 7, exectest.Constant, exectest.VecB, exectest.VecB))
	spec.Values = append(spec.Values, spec.Values[exectest.VecB])
	whole := *spec.Values[exectest.VecA].Tensor
	whole.Dynamism = tensor.DynamicBound
	spec.Values[exectest.VecA].Tensor = &whole
	m := loadFlow(t, &spec, etrun.WithBoundInputs(), etrun.WithBoundOutputs())
	bytes := tensor.AlignedBytes(8*exectest.Len + 8)
	odd := tensor.Make(tensor.Int64, []int{exectest.Len}, nil, tensor.Static)
	odd.Bind(bytes[1:])
	for name, x := range map[string]*tensor.Tensor{"small": tensor.New(tensor.Int64, exectest.Len-1), "odd": odd} {
		if err := m.BindInput(0, x); !errors.Is(err, etrun.ErrInput) {
			t.Errorf("%s input: %v", name, err)
		}
	}
	for name, x := range map[string]*tensor.Tensor{"small": tensor.New(tensor.Int64, exectest.Len-1), "odd": odd, "no": nil,
		"other": tensor.New(tensor.Float32, exectest.Len)} {
		if err := m.BindOutput(0, x); !errors.Is(err, etrun.ErrInput) {
			t.Errorf("%s output: %v", name, err)
		}
	}
	in, out := tensor.New(tensor.Int64, exectest.Len), tensor.New(tensor.Int64, exectest.Len)
	if err := errors.Join(m.BindOutput(0, out), m.BindInput(0, in), m.Execute(context.Background())); err != nil {
		t.Error(err)
	}
}

// loadFlow loads a random method with its own plan.
func loadFlow(t *testing.T, spec *pte.Method, options ...etrun.MethodOption) *etrun.Method {
	t.Helper()
	named := *spec
	named.Name = "forward"
	return loadState(t, openMethods(t, []pte.Method{named}, etrun.WithPlan(etrun.PlanOwn)), "", options...)
}

func setFlowInputs(t *testing.T, m *etrun.Method, run int) {
	t.Helper()
	for i, in := range m.Meta().Inputs {
		if err := m.SetInput(i, flowInput(&in, i, run)); err != nil {
			t.Fatal(err)
		}
	}
}

// flowInput returns the value of input i in a run.
func flowInput(in *etrun.ValueMeta, i, run int) *tensor.Tensor {
	x := in.NewTensor()
	exectest.FillWords(x, i, run)
	return x
}
