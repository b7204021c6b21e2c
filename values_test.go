package etrun_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

// recordedValues is a copy of the values of an event.
type recordedValues struct {
	trace.Event
	values []tensor.Value
}

// viewer copies the values that it observes.
type viewer struct{ seen []recordedValues }

func (*viewer) Wants() trace.Kinds { return trace.Values }

func (o *viewer) Observe(e *trace.Event) {
	s := recordedValues{Event: *e}
	s.Values = slices.Clone(e.Values)
	for i := range e.Values {
		v := *e.Values[i].Value
		if v.Kind == tensor.KindTensor {
			t := *v.Tensor
			t.Data, t.Sizes = bytes.Clone(t.Data), slices.Clone(t.Sizes)
			v.Tensor = &t
		}
		s.values = append(s.values, v)
	}
	o.seen = append(o.seen, s)
}

// TestValues checks that the value that an instruction last writes to an output equals that output,
// and that values read equal those written before, in every execution mode.
func TestValues(t *testing.T) {
	modes := []etrun.Option{etrun.WithLowering(etrun.LowerOff), etrun.WithLowering(etrun.LowerRewrite), etrun.WithPlan(etrun.PlanNaive),
		etrun.WithDelegates(xnnpack.Backend{Values: true}), etrun.WithDelegates(xnnpack.Backend{Values: true, Engine: xnnpack.EngineGo})}
	for _, path := range append(observed, "testdata/ethosu/programs/digits.pte", "testdata/pte/bundle.bpte") {
		for i, mode := range modes {
			t.Run(fmt.Sprint(filepath.Base(path), i), func(t *testing.T) {
				o := &viewer{}
				m := load(t, path, etrun.WithDelegates(all.Backends()...), mode, etrun.WithObserver(o))
				setOnes(t, m)
				if err := m.Execute(t.Context()); err != nil {
					t.Fatal(err)
				}
				checkValues(t, m, o.seen)
				o.seen = nil
				if err := m.Execute(t.Context()); err != nil || len(o.seen) == 0 {
					t.Fatalf("%d events of the second execute, %v", len(o.seen), err)
				}
				checkValues(t, m, o.seen)
			})
		}
	}
}

func checkValues(t *testing.T, m *etrun.Method, list []recordedValues) {
	t.Helper()
	last := make(map[int]tensor.Value) // by value: as it was written
	if end := list[len(list)-1]; end.Kind != trace.Written || end.Chain != -1 || len(end.values) != m.NumOutputs() {
		t.Fatalf("last event %+v, want the outputs", end.Event)
	}
	for i, e := range list[:len(list)-1] {
		if e.Chain != 0 || e.Instruction < 0 || e.Name == "" || e.Method != "forward" {
			t.Fatalf("event %d: %+v", i, e.Event)
		}
		for k, v := range e.values {
			if e.Index >= 0 {
				continue // a value inside the payload
			}
			at := e.Values[k].Index
			if was, ok := last[at]; ok && e.Kind == trace.Read && was.Kind == v.Kind {
				if err := compare.Values(&v, &was, kernels.Tolerance{}); err != nil {
					t.Errorf("event %d, %s: value %d is not what was written: %v", i, e.Name, at, err)
				}
			}
			if e.Kind == trace.Written {
				last[at] = v
			}
		}
	}
	spec := m.Program().Spec().Methods[0]
	found := 0
	for i, v := range spec.Outputs {
		was, ok := last[v]
		if !ok {
			continue // a constant, an input, or moved by lowering
		}
		found++
		got, err := m.Output(i)
		if err != nil {
			t.Fatal(err)
		}
		if err := compare.Values(&was, &got, kernels.Tolerance{}); err != nil {
			t.Errorf("output %d is not what was written: %v", i, err)
		}
	}
	if found == 0 {
		t.Error("nothing wrote an output")
	}
}

// TestValuesInsideDelegates checks that both engines report the same nodes with nearly the same
// values, the last of which are the delegate's outputs.
func TestValuesInsideDelegates(t *testing.T) {
	var shown [2][]recordedValues
	for i, engine := range []xnnpack.Engine{xnnpack.EngineGo, xnnpack.EngineAuto} {
		o := &viewer{}
		m := load(t, "testdata/digits/xnnpack.pte", etrun.WithDelegates(xnnpack.Backend{Engine: engine, Values: true}))
		if err := m.Observe(o); err != nil {
			t.Fatal(err)
		}
		setOnes(t, m)
		if err := m.Execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		shown[i] = o.seen
		got, _ := m.Output(0)
		last := o.seen[len(o.seen)-3]
		if err := compare.Values(&last.values[0], &got, kernels.Tolerance{}); err != nil || last.Index < 0 || last.Backend != xnnpack.ID {
			t.Errorf("the last node %+v: %v", last.Event, err)
		}
		if err := m.Observe(nil); err != nil {
			t.Fatal(err)
		}
		n := len(o.seen)
		if err := m.Execute(t.Context()); err != nil || len(o.seen) != n {
			t.Errorf("%d more events after the end, %v", len(o.seen)-n, err)
		}
	}
	if len(shown[0]) != len(shown[1]) || len(shown[0]) < 10 {
		t.Fatalf("%d and %d events", len(shown[0]), len(shown[1]))
	}
	for i := range shown[0] {
		a, b := shown[0][i], shown[1][i]
		if a.Name != b.Name || a.Index != b.Index || a.Kind != b.Kind || len(a.values) != len(b.values) {
			t.Fatalf("event %d: %+v and %+v", i, a.Event, b.Event)
		}
		for k := range a.values {
			if err := compare.Values(&a.values[k], &b.values[k], kernels.Tolerance{Abs: 1e-4, Rel: 1e-3}); err != nil {
				t.Errorf("event %d, %v %s, value %d: %v", i, a.Kind, a.Name, k, err)
			}
		}
	}
}
