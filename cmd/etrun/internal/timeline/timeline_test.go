package timeline

import (
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
)

func TestChart(t *testing.T) {
	for _, c := range []struct {
		name, method string
		plan         etrun.PlanMode
		first        string // name of the plan drawn first
		labels       []string
		classes      []string
	}{
		{"pte/conv_portable.pte", "", etrun.PlanFile, "plan of the file, ", nil, []string{"input", "output"}},
		{"digits/portable.pte", "", etrun.PlanOwn, "own plan, ", []string{"input 0 1x1x8x8", "convolution 1x16x8x8"}, []string{"input",
			"activation", "output"}},
		{"digits/xnnpack.pte", "", etrun.PlanOwn, "own plan, ", []string{"delegate 0 scratch", "delegate 0 1x10"}, []string{"input", "output",
			"scratch"}},
		{"pte/two_methods.pte", "push", etrun.PlanOwn, "own plan, ", nil, []string{"state"}},
	} {
		prog, err := etrun.OpenSource(t.Context(), etrun.File("../../../../testdata/"+c.name), etrun.WithPlan(c.plan), etrun.WithReusableInputs(),
			etrun.WithLowering(etrun.LowerOff), etrun.WithDelegates(append(all.Backends(), xnnpack.Backend{Engine: xnnpack.EngineGo})...))
		if err != nil {
			t.Fatal(err)
		}
		m, err := prog.Load(t.Context(), c.method)
		if err != nil {
			t.Fatal(err)
		}
		drawing := New(m).Chart("")
		p := drawing.Plans[0]
		for _, want := range c.labels {
			if !slices.ContainsFunc(p.Boxes, func(b chart.Box) bool { return b.Label == want }) {
				t.Errorf("%s: no box %q", c.name, want)
			}
		}
		for _, want := range c.classes {
			if !slices.ContainsFunc(p.Boxes, func(b chart.Box) bool { return b.Class == want }) {
				t.Errorf("%s: no box of class %s", c.name, want)
			}
		}
		if len(p.Name) < len(c.first) || p.Name[:len(c.first)] != c.first {
			t.Errorf("%s: the first plan is %q, want %q", c.name, p.Name, c.first)
		}
		overlap(t, c.name, p.Boxes)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := prog.Close(); err != nil {
			t.Error(err)
		}
	}
}

// overlap checks that no two boxes of a safe plan share bytes at the same time.
func overlap(t *testing.T, name string, boxes []chart.Box) {
	t.Helper()
	for i, a := range boxes {
		for _, b := range boxes[:i] {
			if a.First <= b.Last && b.First <= a.Last && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes {
				t.Errorf("%s: %q and %q overlap", name, a.Label, b.Label)
			}
		}
	}
}

func TestMoment(t *testing.T) {
	p := &plan.Memory{Method: &ir.Method{Steps: make([]ir.Step, 3)}, Moments: []int{0, 1, 5, 6}} // step 1 has four moments
	for moment, want := range map[int]string{-1: "-1", 0: "0", 1: "1.0", 4: "1.3", 5: "2", 6: "3"} {
		if got := MomentOf(p, moment).String(); got != want {
			t.Errorf("moment %d: got %q, want %q", moment, got, want)
		}
	}
}
