package integration

import (
	"cmp"
	"context"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestInitialContentsOfOtherMethods runs three methods that share a state, whose initial contents the file has for some of them, in
// different orders.
func TestInitialContentsOfOtherMethods(t *testing.T) {
	const has, lacks = true, false
	ones := []float32{1, 1, 1, 1}
	build := func(name, state string, arena int, filled bool) *module {
		m := writer(state, arena, false)
		m.spec.Name = name
		if filled {
			m.spec.Values[0].Tensor.Storage, m.spec.Values[0].Tensor.Data = pte.PlannedInit, tensor.BytesOf(ones)
		}
		return m
	}
	for _, c := range []struct {
		state           string
		arena           int
		add, get, other bool
	}{{"s", 0, has, lacks, has}, {"s", 1, has, has, lacks}, {"s", 0, lacks, lacks, has}, {"", 1, has, lacks, lacks}, {"", 1, has, has, has}, {"", 1, lacks, has, lacks}} {
		add, get, other := build("add", c.state, c.arena, c.add), build("get", c.state, c.arena, c.get), build("other", c.state, c.arena, c.other)
		x := add.spec.Inputs[0]
		add.spec.Outputs = []int{0}
		add.copy(0, add.add(0, x, 4))
		get.spec.Outputs, get.spec.Chains[0].Instructions = []int{0}, nil
		for _, order := range [][]string{{"get", "add", "get"}, {"add", "get"}, {"other", "get", "add", "get"}} {
			p := portableMethods(t, []pte.Method{add.spec, get.spec, other.spec})
			live, want := make(map[string]*etrun.Method), float32(1)
			var first *etrun.Method
			for i, name := range order {
				m := live[name]
				if m == nil {
					m = loadNamed(t, p, name, etrun.WithStateOf(first))
					live[name], first = m, cmp.Or(first, m)
				}
				if err := cmp.Or(etrun.Set(m, 0, []float32{2, 2, 2, 2}), m.Execute(context.Background())); err != nil {
					t.Fatal(err)
				}
				if name == "add" {
					want += 2
				}
				if got := tensor.View[float32](tensorOf(m, 0).Data); name != "other" && got[0] != want {
					t.Errorf("%+v, %v, call %d: got %v, want %v", c, order, i, got, want)
				}
			}
			p.Close()
		}
	}
}

// viewedDelay is a delay line of two: the second state becomes a view of the first one, which the exporter left out. The first state is
// updated before or after that.
func viewedDelay(before bool) *module {
	m := newModule()
	first, second, x := m.tensor(4, 0), m.tensor(4, 0), m.input(4)
	m.spec.Values[second].Tensor.Sizes, m.spec.Values[second].Tensor.DimOrder = []int{2, 2}, []uint8{0, 1}
	views := make([]int, 2)
	for i, s := range []int{first, second} {
		t := *m.spec.Values[s].Tensor
		t.Sizes, t.DimOrder = m.spec.Values[[]int{second, first}[i]].Tensor.Sizes, m.spec.Values[[]int{second, first}[i]].Tensor.DimOrder
		m.spec.Values = append(m.spec.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &t})
		views[i] = len(m.spec.Values) - 1
	}
	m.spec.Outputs = []int{m.add(x, views[1], 4)}
	new := m.add(x, x, 4)
	if before {
		m.copy(first, new)
	}
	m.copy(second, views[0])
	if !before {
		m.copy(first, new)
	}
	m.spec.Arenas = []pte.Arena{{Size: 1024}, {Size: 1024}}
	return m
}

// TestStateFromViewOfState checks that a state becomes what another one was, in whichever order the two are updated.
func TestStateFromViewOfState(t *testing.T) {
	for _, before := range []bool{true, false} {
		for _, lowering := range []etrun.Lowering{etrun.LowerOff, etrun.LowerRewrite} {
			spec := viewedDelay(before).spec
			spec.Operators = append(spec.Operators, pte.Operator{Name: "aten::view_copy", Overload: "out"})
			m := loadNamed(t, portableMethods(t, []pte.Method{spec}, etrun.WithLowering(lowering)), "")
			for call, want := range []float32{0, 1, 2 + 0, 3 + 2, 4 + 4} {
				x := float32(call)
				if err := cmp.Or(etrun.Set(m, 0, []float32{x, x, x, x}), m.Execute(context.Background())); err != nil {
					t.Fatal(err)
				}
				if got := tensor.View[float32](tensorOf(m, 0).Data)[3]; got != want {
					t.Errorf("%v, %s, call %d: got %v, want %v", before, lowering, call, got, want)
				}
			}
			if repaired := len(m.Report().Repairs) == 1; repaired != before {
				t.Errorf("%v: repairs %q", before, m.Report().Repairs)
			}
		}
	}
}

func loadNamed(t *testing.T, p *etrun.Program, name string, options ...etrun.MethodOption) *etrun.Method {
	t.Helper()
	m, err := p.Load(t.Context(), name, options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
