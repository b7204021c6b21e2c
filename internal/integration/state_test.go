package integration

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// stateMethod adds its input to each of its buffers: buffer = 5*buffer + input.
func stateMethod(name string, buffers ...string) pte.Method {
	m := exectest.Small()
	m.Name, m.Arenas, m.Outputs, m.Chains = name, []pte.Arena{{Size: 1 << 10}}, nil, []pte.Chain{{}}
	for i, b := range buffers {
		initial := tensor.BytesOf([]int64{int64(i + 1), 0, 0, 0})
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{Name: b, DType: tensor.Int64, Sizes: []int{exectest.Len},
			DimOrder: []uint8{0}, Storage: pte.PlannedInit, Offset: int64(64 * i), Data: initial}})
		v := len(m.Values) - 1
		m.Outputs = append(m.Outputs, v)
		m.Chains[0].Instructions = append(m.Chains[0].Instructions, exectest.Call(exectest.OpUpdate, v, exectest.VecA, v))
	}
	return m
}

// TestSharedState makes a method use the state of another one, and an additional buffer.
func TestSharedState(t *testing.T) {
	p := openMethods(t, []pte.Method{stateMethod("first", "a"), stateMethod("second", "a", "b"), stateMethod("third", "b")})
	first := loadState(t, p, "first")
	second := loadState(t, p, "second", etrun.WithStateOf(first))
	third := loadState(t, p, "third", etrun.WithStateOf(second))
	for i, s := range []struct {
		m    *etrun.Method
		want []int64
	}{
		{first, []int64{5*1 + 10}},
		{second, []int64{5*15 + 10, 5*2 + 10}}, // b starts with its own initial bytes
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
	// A method that uses state keeps the other users of that state busy.
	during(t, first, func() {
		for name, err := range map[string]error{"Execute": third.Execute(context.Background()), "Reset": third.Reset()} {
			if !errors.Is(err, etrun.ErrBusy) {
				t.Errorf("%s while the state is in use: %v", name, err)
			}
		}
	})
	runState(t, third)
	other := openMethods(t, []pte.Method{stateMethod("first", "a")})
	if _, err := other.Load(context.Background(), "first", etrun.WithStateOf(first)); !errors.Is(err, etrun.ErrInput) {
		t.Errorf("state of another program: %v", err)
	}
}

// TestCopyState checks that a copy continues as its source does, and independently.
func TestCopyState(t *testing.T) {
	for _, mode := range []etrun.Lowering{etrun.LowerRewrite, etrun.LowerVerify} {
		p := openMethods(t, []pte.Method{stateMethod("first", "a", ""), stateMethod("second", "a", "")}, etrun.WithLowering(mode))
		from, to := loadState(t, p, "first"), loadState(t, p, "first")
		runState(t, from)
		if err := to.CopyState(from); err != nil {
			t.Fatal(err)
		}
		want := runState(t, from)
		for _, d := range to.Report().Distances {
			t.Errorf("a copy that has not run has the distance %v", d)
		}
		if got := runState(t, to); !slices.Equal(got, want) || got[0] != 5*15+10 {
			t.Errorf("%s: the copy continues with %d, its source with %d", mode, got, want)
		}
		for _, d := range to.Report().Distances {
			if d.Index >= 0 {
				t.Errorf("%s: the copy differs from its own reference: %+v", mode, d)
			}
		}
		runState(t, to)
		if got := tensor.Data[int64](from.StateTensors()[0])[0]; got != want[0] {
			t.Errorf("a run of the copy changed its source: %d, want %d", got, want[0])
		}
		if n := len(from.StateTensors()); n != 2 {
			t.Errorf("%d state tensors, want 2", n)
		}
		other := loadState(t, p, "second")
		during(t, from, func() {
			for name, c := range map[string]struct{ got, want error }{
				"a running method": {to.CopyState(from), etrun.ErrBusy}, "another method": {to.CopyState(other), etrun.ErrInput},
				"itself": {to.CopyState(to), nil},
			} {
				if !errors.Is(c.got, c.want) {
					t.Errorf("state of %s: got %v, want %v", name, c.got, c.want)
				}
			}
		})
	}
}

// during calls do while a method runs.
func during(t *testing.T, m *etrun.Method, do func()) {
	t.Helper()
	calls := 0
	err := m.Observe(trace.Func{Kinds: 1 << trace.Begin, Do: func(*trace.Event) { calls++; do() }})
	runState(t, m)
	if err = errors.Join(err, m.Observe(nil)); err != nil || calls != 1 {
		t.Fatalf("%d calls during a run, %v", calls, err)
	}
}

// openMethods is withMethods of a program that must open.
func openMethods(t *testing.T, specs []pte.Method, options ...etrun.Option) *etrun.Program {
	t.Helper()
	p, err := withMethods(t, specs, options...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func loadState(t *testing.T, p *etrun.Program, name string, options ...etrun.MethodOption) *etrun.Method {
	t.Helper()
	m, err := p.Load(context.Background(), name, options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// runState runs a method on tens and returns the first element of each buffer.
func runState(t *testing.T, m *etrun.Method) (first []int64) {
	t.Helper()
	err := errors.Join(m.SetInput(0, tensor.Of([]int64{10, 10, 10, 10}, exectest.Len)), m.Execute(context.Background()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.NumOutputs() {
		first = append(first, tensor.Data[int64](tensorOf(m, i))[0])
	}
	return first
}

// TestInputsSurvive checks that inputs keep their values whatever a run does with their bytes. With
// WithReusableInputs, an input that a run overwrites or frees must be set before each run.
func TestInputsSurvive(t *testing.T) {
	add := exectest.Call(exectest.OpAdd, exectest.VecA, exectest.Constant, exectest.VecB, exectest.VecB)
	unbounded := exectest.Small(add, pte.Instruction{Kind: pte.FreeCall, Index: exectest.VecA})
	unbounded.Values[exectest.VecA].Tensor.Dynamism = tensor.DynamicUnbound
	for _, tt := range []struct {
		name  string
		spec  pte.Method
		again bool // a run never changes the input's bytes
	}{
		{"read", exectest.Small(add), true},
		{"updated", exectest.Small(exectest.Call(exectest.OpUpdate, exectest.VecA, exectest.Constant, exectest.VecA), add), false},
		{"moved onto", exectest.Small(add, exectest.Move(exectest.VecB, exectest.VecA)), false},
		{"freed", unbounded, false},
	} {
		for name, mode := range everyPlan {
			m := loadState(t, openMethods(t, []pte.Method{tt.spec}, etrun.WithPlan(mode)), "")
			if err := etrun.Set(m, 0, []int64{1, 2, 3, 4}); err != nil {
				t.Fatal(err)
			}
			var first []int64
			for run := range 3 {
				if err := m.Execute(context.Background()); err != nil {
					t.Fatalf("%s, run %d: %v", tt.name, run, err)
				}
				got, err := etrun.Get[int64](m, 0)
				if run == 0 {
					first = slices.Clone(got)
				}
				if err != nil || !slices.Equal(got, first) {
					t.Errorf("%s, plan %s, run %d: got %d, %v, want %d", tt.name, name, run, got, err, first)
				}
			}
		}
		m := loadState(t, openMethods(t, []pte.Method{tt.spec}, etrun.WithPlan(etrun.PlanNaive), etrun.WithReusableInputs()), "")
		for range 2 {
			if err := errors.Join(etrun.Set(m, 0, []int64{1, 2, 3, 4}), m.Execute(context.Background())); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Execute(context.Background()); (err == nil) != tt.again || err != nil && !errors.Is(err, etrun.ErrInput) {
			t.Errorf("%s, bytes used again: %v", tt.name, err)
		}
	}
}

// TestElementsInLogicalOrder checks that Set and Get use logical order, whatever the memory order.
func TestElementsInLogicalOrder(t *testing.T) {
	spec := exectest.Small(exectest.Call(exectest.OpUpdate, exectest.VecB, exectest.VecA, exectest.VecB))
	for _, v := range []int{exectest.VecA, exectest.VecB} {
		turned := *spec.Values[v].Tensor
		turned.Sizes, turned.DimOrder = []int{2, 2}, []uint8{1, 0}
		spec.Values[v].Tensor = &turned
	}
	m := loadState(t, openMethods(t, []pte.Method{spec}), "")
	for range 2 {
		got, err := etrun.Run[int64](context.Background(), m, []int64{1, 2, 3, 4})
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range tensor.Data[int64](tensorOf(m, 0)) {
			if want := []int64{1, 3, 2, 4}[i]; x%5 != want%5 {
				t.Errorf("element %d in memory is %d", i, x)
			}
		}
		for i, x := range got { // an update is five times the previous value, plus the input
			if x%5 != int64(i+1)%5 {
				t.Errorf("got %d", got)
			}
		}
	}
}

// TestResetForgets checks that Reset undoes the effects of a run: number inputs, and the state of
// the random generator.
func TestResetForgets(t *testing.T) {
	var number tensor.Kind
	draw := kernels.Op{Schema: "test::draw.out(Tensor self, Scalar? n, *, Tensor(a!) out)", Random: true, Func: func(c *kernels.Ctx, a kernels.Args) error {
		number = a[1].Kind
		for i := range tensor.Data[int64](a.Tensor(2)) {
			tensor.Data[int64](a.Tensor(2))[i] = c.Rand.Int64()
		}
		return nil
	}}
	spec := exectest.Small()
	spec.Chains = []pte.Chain{{Instructions: []pte.Instruction{exectest.Call(0, exectest.VecA, len(spec.Values), exectest.VecB, exectest.VecB)}}}
	spec.Operators = []pte.Operator{{Name: "test::draw", Overload: "out"}}
	spec.Values = append(spec.Values, pte.Value{})
	spec.Inputs = append(spec.Inputs, len(spec.Values)-1)
	m := loadState(t, openMethods(t, []pte.Method{spec}, etrun.WithOperatorSet(kernels.NewSet([]kernels.Op{draw}))), "")
	var first, second []int64
	for _, draws := range []*[]int64{&first, &second} {
		got, err := etrun.Run[int64](context.Background(), m, []int64{1, 2, 3, 4}, 7)
		if err != nil {
			t.Fatal(err)
		}
		*draws = slices.Clone(got)
		if err := m.Reset(); err != nil {
			t.Fatal(err)
		}
		if number != tensor.KindInt {
			t.Errorf("the number is of kind %v", number)
		}
		err = errors.Join(m.SetInput(0, tensor.New(tensor.Int64, exectest.Len)), m.Execute(context.Background()), m.Reset())
		if err != nil || number != tensor.None {
			t.Errorf("%v, the number is still of kind %v", err, number)
		}
	}
	if !slices.Equal(first, second) {
		t.Errorf("drawn after a reset: %d, before: %d", second, first)
	}
}
