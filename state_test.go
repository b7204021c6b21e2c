package etrun

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// stateMethod adds its input to each of its buffers: buffer = 5*buffer + input.
func stateMethod(name string, buffers ...string) pte.Method {
	m := hostileMethod()
	m.Name, m.Arenas, m.Outputs, m.Chains = name, []pte.Arena{{Size: 1 << 10}}, nil, []pte.Chain{{}}
	for i, b := range buffers {
		initial := tensor.BytesOf([]int64{int64(i + 1), 0, 0, 0})
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{Name: b, DType: tensor.Int64, Sizes: []int{flowLen},
			DimOrder: []uint8{0}, Storage: pte.PlannedInit, Offset: int64(64 * i), Data: initial}})
		v := len(m.Values) - 1
		m.Outputs = append(m.Outputs, v)
		m.Chains[0].Instructions = append(m.Chains[0].Instructions, flowCall(flowUpdate, v, vecA, v))
	}
	return m
}

// TestSharedState lets one method use the state of another, with a buffer more.
func TestSharedState(t *testing.T) {
	p := flowMethods([]pte.Method{stateMethod("first", "a"), stateMethod("second", "a", "b"), stateMethod("third", "b")})
	first := loadState(t, p, "first")
	second := loadState(t, p, "second", WithStateOf(first))
	third := loadState(t, p, "third", WithStateOf(second))
	for i, s := range []struct {
		m    *Method
		want []int64
	}{
		{first, []int64{5*1 + 10}},
		{second, []int64{5*15 + 10, 5*2 + 10}}, // b starts with its own bytes
		{third, []int64{5*20 + 10}},
		{first, []int64{5*85 + 10}},
	} {
		if got := runState(t, s.m); !slices.Equal(got, s.want) {
			t.Errorf("call %d (%s): got %d, want %d", i, s.m.Name(), got, s.want)
		}
	}
	if err := second.Reset(); err != nil { // its own and the shared one
		t.Fatal(err)
	}
	if got, want := runState(t, first), int64(15); got[0] != want {
		t.Errorf("after a reset: got %d, want %d", got, want)
	}
	// Whoever uses state keeps all that hold it busy.
	if err := first.begin(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"Execute": third.Execute(context.Background()), "Reset": third.Reset()} {
		if !errors.Is(err, ErrBusy) {
			t.Errorf("%s while the state is in use: %v", name, err)
		}
	}
	first.end()
	runState(t, third)
	other := flowMethods([]pte.Method{stateMethod("first", "a")})
	if _, err := other.Load(context.Background(), "first", WithStateOf(first)); !errors.Is(err, ErrInput) {
		t.Errorf("state of another program: %v", err)
	}
}

func loadState(t *testing.T, p *Program, name string, options ...MethodOption) *Method {
	t.Helper()
	m, err := p.Load(context.Background(), name, options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// runState executes on tens and returns the first element of each buffer.
func runState(t *testing.T, m *Method) (first []int64) {
	t.Helper()
	err := errors.Join(m.SetInput(0, tensor.Of([]int64{10, 10, 10, 10}, flowLen)), m.Execute(context.Background()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.NumOutputs() {
		first = append(first, tensor.Data[int64](m.Output(i).Tensor)[0])
	}
	return first
}

// An input that an execute overwrites or frees must be set again before the next.
func TestClobberedInputs(t *testing.T) {
	unbounded := hostileMethod(flowCall(flowAdd, vecA, constant, vecB, vecB), pte.Instruction{Kind: pte.FreeCall, Index: vecA})
	unbounded.Values[vecA].Tensor.Dynamism = tensor.DynamicUnbound
	for _, tt := range []struct {
		name string
		spec pte.Method
		want bool
	}{
		{"read", hostileMethod(flowCall(flowAdd, vecA, constant, vecB, vecB)), false},
		{"updated", hostileMethod(flowCall(flowUpdate, vecA, constant, vecA), flowCall(flowAdd, vecA, constant, vecB, vecB)), true},
		{"moved onto", hostileMethod(flowCall(flowAdd, vecA, constant, vecB, vecB), flowMove(vecB, vecA)), true},
		{"freed", unbounded, true},
	} {
		for _, mode := range []PlanMode{PlanOwn, PlanNaive} {
			m := loadState(t, flowMethods([]pte.Method{tt.spec}, WithPlan(mode), WithPreservedInputs()), "")
			for run := range 2 {
				if err := m.SetInput(0, tensor.New(tensor.Int64, flowLen)); err != nil {
					t.Fatal(err)
				}
				if err := m.Execute(context.Background()); err != nil {
					t.Fatalf("%s, run %d: %v", tt.name, run, err)
				}
			}
			if err := m.Execute(context.Background()); errors.Is(err, ErrInput) != tt.want {
				t.Errorf("%s, plan %d: execute on the same input: %v", tt.name, mode, err)
			}
		}
	}
}
