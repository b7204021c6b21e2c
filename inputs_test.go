package etrun_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

const (
	scalarProgram  = "testdata/pte/scalar_inputs.pte" // float32[3,6], int 3, float 0.5, bool true
	dynamicProgram = "testdata/pte/dynamic_view.pte"  // float32[8,8] at most
)

// A value that does not match an input is an InputError and leaves the input unchanged.
func TestInputsThatDoNotFit(t *testing.T) {
	m, d := load(t, scalarProgram), load(t, dynamicProgram)
	for name, err := range map[string]error{
		"index below":     etrun.Set(m, -1, make([]float32, 18)),
		"index above":     etrun.Set(m, 4, make([]float32, 18)),
		"type":            etrun.Set(m, 0, make([]float64, 18)),
		"few":             etrun.Set(m, 0, make([]float32, 17)),
		"none":            etrun.Set[float32](m, 0, nil),
		"sizes":           etrun.Set(m, 0, make([]float32, 18), 6, 3),
		"rank":            etrun.Set(m, 0, make([]float32, 18), 18),
		"negative sizes":  etrun.Set(d, 0, make([]float32, 6), -2, -3),
		"above the bound": etrun.Set(d, 0, make([]float32, 18), 9, 2),
		"ambiguous sizes": etrun.Set(d, 0, make([]float32, 16)),
		"huge sizes":      etrun.Set(d, 0, make([]float32, 16), math.MaxInt/2+1, math.MaxInt/2+1),
		"two numbers":     etrun.Set(m, 1, []int64{3, 3}),
		"other number":    etrun.Set(m, 1, []int64{4}),
		"number's type":   etrun.Set(m, 1, []float64{3}),
		"number's sizes":  etrun.Set(m, 1, []int64{3}, 1),
		"tensor":          m.SetInput(1, tensor.New(tensor.Int64, 1)),
		"nil tensor":      m.SetInput(0, nil),
		"nil value":       m.SetValue(0, tensor.Value{Kind: tensor.KindTensor}),
		"none value":      m.SetValue(0, tensor.Value{}),
		"tensor's index":  m.SetInput(9, tensor.New(tensor.Float32, 3, 6)),
		"empty tensor":    m.SetInput(0, &tensor.Tensor{}),
		"no strides":      m.SetInput(0, &tensor.Tensor{DType: tensor.Float32, Sizes: []int{3, 6}, DimOrder: []uint8{0, 1}, Data: make([]byte, 72)}),
		"no bytes":        m.SetInput(0, tensor.Make(tensor.Float32, []int{3, 6}, nil, tensor.Static)),
		"bound sizes":     m.BindInput(0, tensor.New(tensor.Float32, 6, 3)),
		"bound type":      m.BindInput(0, tensor.New(tensor.Int32, 3, 6)),
		"bound number":    m.BindInput(1, tensor.New(tensor.Int64, 1)),
		"bound nil":       m.BindInput(0, nil),
		"run":             second(etrun.Run[float32](t.Context(), m)),
		"run with many":   second(etrun.Run[float32](t.Context(), m, make([]float32, 18), 3, 0.5, true, 1)),
		"run with a chan": second(etrun.Run[float32](t.Context(), m, make(chan int), 3, 0.5, true)),
		"run with nil":    second(etrun.Run[float32](t.Context(), m, nil, 3, 0.5, true)),
	} {
		if _, ok := errors.AsType[*etrun.InputError](err); !ok || !errors.Is(err, etrun.ErrInput) {
			t.Errorf("%s: got %v, want an InputError", name, err)
		}
	}
	if err := m.Execute(t.Context()); !errors.Is(err, etrun.ErrInput) {
		t.Errorf("execute without an input: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// An invalid request for an output is an OutputError.
func TestOutputsThatAreNot(t *testing.T) {
	m := load(t, scalarProgram)
	before := second(m.Output(0))
	_, err := etrun.Run[float32](t.Context(), m, make([]float32, 18), 3, 0.5, true)
	if err != nil {
		t.Fatal(err)
	}
	faults := map[string]error{
		"before an execute": before,
		"index":             second(m.Output(2)),
		"index below":       second(etrun.Get[float32](m, -1)),
		"type":              second(etrun.Get[int32](m, 0)),
		"bound":             m.BindOutput(0, tensor.New(tensor.Float32, 3, 6)),
	}
	failing, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Execute(failing); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	faults["after a failure"] = second(etrun.Get[float32](m, 0))
	for name, err := range faults {
		if _, ok := errors.AsType[*etrun.OutputError](err); !ok || !errors.Is(err, etrun.ErrInput) {
			t.Errorf("%s: got %v, want an OutputError", name, err)
		}
	}
}

// All ways to set inputs give the same result.
func TestWaysToSet(t *testing.T) {
	m := load(t, scalarProgram)
	data := make([]float32, 18)
	for i := range data {
		data[i] = float32(i)
	}
	want, err := etrun.Run[float32](t.Context(), m, data, 3, 0.5, true)
	if err != nil {
		t.Fatal(err)
	}
	want = slices.Clone(want)
	for name, set := range map[string]func() error{
		"elements": func() error {
			return errors.Join(etrun.Set(m, 0, data, 3, 6), etrun.Set(m, 1, []int64{3}), etrun.Set(m, 2, []float64{0.5}), etrun.Set(m, 3, []bool{true}))
		},
		"tensors": func() error { return m.SetInput(0, tensor.Of(data, 3, 6)) },
		"values":  func() error { return m.SetValue(0, tensor.TensorValue(tensor.Of(data, 3, 6))) },
		"any": func() error {
			return second(etrun.Run[float32](t.Context(), m, tensor.Of(data, 3, 6), int64(3), tensor.DoubleValue(0.5), true))
		},
	} {
		if err := m.Reset(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(set(), m.Execute(t.Context())); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := etrun.Get[float32](m, 0); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
}

// Setting inputs and reading outputs does not allocate, whether sizes are the declared ones or not.
func TestSettingAllocatesNothing(t *testing.T) {
	m, d := load(t, convProgram), load(t, dynamicProgram)
	pixels, x, rows := make([]float32, 3*8*8), tensor.New(tensor.Float32, 1, 3, 8, 8), make([]float32, 8)
	for name, call := range map[string]func() error{
		"Set":        func() error { return etrun.Set(m, 0, pixels) },
		"with sizes": func() error { return errors.Join(etrun.Set(d, 0, rows, 4, 2), etrun.Set(d, 0, rows, 2, 4)) },
		"SetInput":   func() error { return m.SetInput(0, x) },
		"Get":        func() error { return second(etrun.Get[float32](m, 0)) },
	} {
		setOnes(t, m)
		if err := m.Execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := call(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := testing.AllocsPerRun(100, func() {
			if call() != nil {
				panic("no longer")
			}
		}); n != 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
}

func BenchmarkSet(b *testing.B) {
	m := benchMethod(b, "testdata/digits/portable.pte", 1)
	pixels, x := make([]float32, 64), tensor.New(tensor.Float32, 1, 1, 8, 8)
	b.Run("elements", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := etrun.Set(m, 0, pixels); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tensor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := m.SetInput(0, x); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Input errors describe the values that the input accepts.
func TestInputErrorsSayWhatFits(t *testing.T) {
	d := load(t, dynamicProgram)
	err := etrun.Set(d, 0, make([]float32, 16))
	if err == nil || !strings.Contains(err.Error(), "16 elements") || !strings.Contains(err.Error(), "want float32 8x8 at most") {
		t.Errorf("got %v", err)
	}
}
