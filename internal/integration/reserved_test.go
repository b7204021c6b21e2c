package integration

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// negations is a program of n negations one after the other, of at most so many floats, and the largest of the last.
func negations(n, elements int) []byte {
	value := func() pte.Value {
		return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{elements},
			DimOrder: tensor.ContiguousOrder(1), Dynamism: tensor.DynamicBound, Storage: pte.Unplanned}}
	}
	m := pte.Method{Name: "forward", Values: []pte.Value{value()}, Inputs: []int{0}, Outputs: []int{n + 1},
		Operators: []pte.Operator{{Name: "aten::neg", Overload: "out"}, {Name: "aten::amax", Overload: "out"}}, Chains: make([]pte.Chain, 1)}
	for i := range n {
		m.Values = append(m.Values, value())
		m.Chains[0].Instructions = append(m.Chains[0].Instructions, pte.Instruction{Kind: pte.KernelCall, Args: []int{i, i + 1, i + 1}})
	}
	m.Values = append(m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{1}, DimOrder: []uint8{0}}},
		pte.Value{Kind: tensor.KindIntList, Items: []int{n + 3}}, pte.Value{Kind: tensor.KindInt}, pte.Value{Kind: tensor.KindBool, Bool: true})
	m.Chains[0].Instructions = append(m.Chains[0].Instructions, pte.Instruction{Kind: pte.KernelCall, Index: 1, Args: []int{n, n + 2, n + 4, n + 1, n + 1}})
	return ptetest.Write(&pte.Program{Methods: []pte.Method{m}}, ptetest.Layout{})
}

// TestMemoryOfCalls has a program whose largest sizes exceed the limits: calls that do not run, in constant memory, and others are refused.
func TestMemoryOfCalls(t *testing.T) {
	if !cpu.Sparse {
		t.Skip("memory of this system costs something before it is touched")
	}
	const limit, most, fits, tooMany, steps = 4 << 20, 1 << 22, 100_000, 900_000, 60
	file := negations(steps, most)
	limits := map[string]etrun.Option{"of plans": etrun.WithLimits(etrun.Limits{PlannedBytes: limit}), "of memory": etrun.WithMaxMemory(limit)}
	modes := map[string][]etrun.Option{
		"operators": {etrun.WithLowering(etrun.LowerOff)},
		"each value in its own memory": {etrun.WithLowering(etrun.LowerOff), etrun.WithPlan(etrun.PlanNaive), etrun.WithMaxMemory(0),
			etrun.WithLimits(etrun.Limits{PlannedBytes: 32 << 20})},
		"lowered":            {etrun.WithLowering(etrun.LowerAll), etrun.WithDelegates(all.Backends()...)},
		"lowered, Go engine": {etrun.WithLowering(etrun.LowerAll), etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo})},
		"reusable inputs":    {etrun.WithReusableInputs(), etrun.WithThreads(2)},
	}
	for of, option := range limits {
		for name, options := range modes {
			if strings.HasPrefix(name, "each value") && strconv.IntSize == 32 {
				continue // there are no addresses for all of them
			}
			t.Run(of+", "+name, func(t *testing.T) {
				p, err := etrun.Parse(file, append([]etrun.Option{option}, options...)...)
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				m, err := p.Load(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				checkSizes(t, m, []int{10, fits, 1, fits, tooMany, fits}, fits)
				x := make([]float32, fits)
				if allocs := testing.AllocsPerRun(3, func() { etrun.Set(m, 0, x); m.Execute(t.Context()) }); allocs > 0 {
					t.Errorf("%v allocations in the steady state", allocs)
				}
			})
		}
	}
}

// checkSizes calls a method with so many elements, of which at most fits are within the limit.
func checkSizes(t *testing.T, m *etrun.Method, sizes []int, fits int) {
	t.Helper()
	for _, n := range sizes {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i + 1)
		}
		err := etrun.Set(m, 0, x)
		if err == nil {
			err = m.Execute(t.Context())
		}
		if n > fits {
			if e, ok := errors.AsType[*etrun.MemoryError](err); !ok || e.Want <= e.Limit {
				t.Errorf("%d elements: got %v, want an error of the limit", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d elements: %v", n, err)
		}
		got, err := etrun.Get[float32](m, 0)
		if err != nil || len(got) != 1 || got[0] != float32(n) {
			t.Fatalf("largest of 1 to %d: got %v, error %v", n, got, err)
		}
	}
}
