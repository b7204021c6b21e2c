package integration

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var elidedProgram = testdata("pte", "elided_view.pte")

// elided runs the program, which scales, shifts and views its input, on the number i at element i
// or on the same number everywhere.
func elided(t *testing.T, m *etrun.Method, number func(i int) float32) []float32 {
	t.Helper()
	x := tensor.New(tensor.Float32, 2, 3, 4, 5)
	for i := range tensor.View[float32](x.Data) {
		tensor.View[float32](x.Data)[i] = number(i)
	}
	if err := m.SetInput(0, x); err != nil {
		t.Fatal(err)
	}
	if err := m.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := m.Output(0)
	if err != nil {
		t.Fatal(err)
	}
	return append([]float32(nil), tensor.View[float32](out.Tensor.Data)...)
}

// TestElidedView checks that an elided view of a channels-last value has its elements in logical
// order, under every plan, and is listed.
func TestElidedView(t *testing.T) {
	for _, mode := range []etrun.PlanMode{etrun.PlanAuto, etrun.PlanFile, etrun.PlanOwn, etrun.PlanNaive} {
		m := load(t, elidedProgram, etrun.WithPlan(mode))
		shift := elided(t, m, func(int) float32 { return 0 })[0]
		scale := elided(t, m, func(int) float32 { return 1 })[0] - shift
		got := elided(t, m, func(i int) float32 { return float32(i) })
		for i, x := range got {
			if want := scale*float32(i) + shift; x != want || scale == 0 {
				t.Fatalf("plan %v: element %d: got %v, want %v", mode, i, x, want)
			}
		}
		if list := m.Report().Repairs; len(list) != 1 || !strings.Contains(list[0], "value 14, a view of value 7") {
			t.Errorf("repairs %q", list)
		}
		if list := m.Program().Warnings(); len(list) != 1 || list[0].Class != delegate.WarnRepair {
			t.Errorf("warnings %q", list)
		}
	}
}

// TestElidedViewOtherwise checks that repairs can be disabled, and that irreparable programs are
// refused.
func TestElidedViewOtherwise(t *testing.T) {
	m := load(t, elidedProgram, etrun.WithoutRepair())
	if list := append(m.Report().Repairs, ""); len(list) != 1 || len(m.Program().Warnings()) != 0 {
		t.Errorf("repairs %q", list)
	}
	rows := slices.DeleteFunc(slices.Clone(portable.Ops()), func(o kernels.Op) bool { return o.Name() == "aten::view_copy.out" })
	p, err := etrun.Open(elidedProgram, etrun.WithOperatorSet(kernels.NewSet(rows)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Load(t.Context(), ""); !errors.Is(err, etrun.ErrUnsupported) || !strings.Contains(err.Error(), "value 14 of sizes [2 3 20] shares the memory of value 7") {
		t.Errorf("got %v", err)
	}
}

// calls runs a method of inputs of two float32 each once per element of inputs.
func calls(t *testing.T, m *etrun.Method, inputs [][][]float32) (outs [][]float32) {
	t.Helper()
	for _, call := range inputs {
		for i, x := range call {
			if err := etrun.Set(m, i, x); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		out, err := m.Output(0)
		if err != nil {
			t.Fatal(err)
		}
		outs = append(outs, slices.Clone(tensor.View[float32](out.Tensor.Data)))
	}
	return outs
}

// TestLostUpdate checks that a delay line without one of its updates is refused, and runs unchanged
// with a warning.
func TestLostUpdate(t *testing.T) {
	file := testdata("repair", "refused", "lost_update.pte")
	p, err := etrun.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_, err = p.Load(t.Context(), "")
	if fault, ok := errors.AsType[*etrun.InstructionError](err); !ok || fault.Index != 4 || !errors.Is(err, etrun.ErrFormat) ||
		!strings.Contains(err.Error(), "state value 1") {
		t.Errorf("got %v", err)
	}
	m := load(t, file, etrun.WithoutRepair())
	if list := m.Program().Warnings(); len(list) != 1 || list[0].Class != delegate.WarnFault {
		t.Errorf("warnings %q", list)
	}
}

// TestMistakenArgument checks that an update that is copied onto the argument of the state's name
// is made to the state.
func TestMistakenArgument(t *testing.T) {
	inputs := [][][]float32{{{1, 2}, {5, 7}}, {{2, 3}, {6, 8}}, {{3, 4}, {7, 9}}, {{4, 5}, {8, 10}}}
	for _, lowering := range []etrun.Lowering{etrun.LowerOff, etrun.LowerRewrite, etrun.LowerAuto} {
		m := load(t, testdata("repair", "mistaken_argument.pte"), etrun.WithLowering(lowering))
		if got := calls(t, m, inputs); !slices.EqualFunc(got, [][]float32{{1, 2}, {52, 73}, {63, 84}, {74, 95}}, slices.Equal) {
			t.Errorf("lowering %v: got %v", lowering, got)
		}
		list := m.Program().Warnings()
		if len(m.Report().Repairs) != 1 || len(list) != 1 || list[0].Class != delegate.WarnRepair ||
			!strings.Contains(m.Report().Repairs[0], "writes value 0") {
			t.Errorf("repairs %q, warnings %q", m.Report().Repairs, list)
		}
	}
	m := load(t, testdata("repair", "mistaken_argument.pte"), etrun.WithoutRepair())
	if list := m.Program().Warnings(); len(m.Report().Repairs) != 0 || len(list) != 2 || list[0].Class != delegate.WarnFault {
		t.Errorf("unchanged: repairs %q, warnings %q", m.Report().Repairs, list)
	}
}

// TestMissingTranspose checks the values of a convolution that is called twice, of which the first
// output is returned: they are those of the model.
func TestMissingTranspose(t *testing.T) {
	read := func(name string) []float32 {
		data, err := os.ReadFile(testdata("repair", "missing_transpose."+name+".bin"))
		if err != nil {
			t.Fatal(err)
		}
		return tensor.View[float32](data)
	}
	m := load(t, testdata("repair", "missing_transpose.pte"), etrun.WithDelegates(all.Backends()...))
	if err := etrun.Set(m, 0, read("in0")); err != nil {
		t.Fatal(err)
	}
	if err := m.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		out, err := m.Output(i)
		if err != nil {
			t.Fatal(err)
		}
		got, want := tensor.View[float32](out.Tensor.Data), read(fmt.Sprintf("out%d", i))
		for k := range want {
			if d := math.Abs(float64(got[k] - want[k])); !(d < 0.06) {
				t.Fatalf("output %d, element %d: got %v, want %v", i, k, got[k], want[k])
			}
		}
	}
}

// TestStateFromConstant checks that a named state whose number is that of a constant begins with the
// constant's bytes, also after a reset.
func TestStateFromConstant(t *testing.T) {
	file := testdata("repair", "state_constant.pte")
	m := load(t, file)
	x := []float32{0, 1, 2, 3}
	for range 2 {
		got := calls(t, m, [][][]float32{{x}, {x}, {x}})
		if !slices.EqualFunc(got, [][]float32{{6, 7, 8, 9}, {6, 8, 10, 12}, {6, 9, 12, 15}}, slices.Equal) {
			t.Errorf("got %v", got)
		}
		if err := m.Reset(); err != nil {
			t.Fatal(err)
		}
	}
	if list := m.Program().Warnings(); len(m.Report().Repairs) != 1 || len(list) != 1 || list[0].Class != delegate.WarnRepair {
		t.Errorf("repairs %q, warnings %q", m.Report().Repairs, list)
	}
	p, err := etrun.Open(file, etrun.WithoutRepair())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Load(t.Context(), ""); !errors.Is(err, etrun.ErrFormat) || !strings.Contains(err.Error(), "initial state 1") {
		t.Errorf("unchanged: got %v", err)
	}
}
