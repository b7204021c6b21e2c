package integration

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// TestWideView runs a program with a view whose declared bound is larger than its operand.
func TestWideView(t *testing.T) {
	for _, tt := range []struct{ files, method string }{{"wide_view", "forward"}, {"wide_view@2", "forward"}, {"wide_view.other", "other"}} {
		for name, mode := range everyPlan {
			p, err := etrun.Open("../../testdata/views/wide_view.pte", etrun.WithPlan(mode), etrun.WithThreads(1))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			m, err := p.Load(context.Background(), tt.method)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			in, want := floatsOf(t, tt.files+".in0.bin"), floatsOf(t, tt.files+".out0.bin")
			sizes := slices.Clone(m.Meta().Inputs[0].Sizes)
			if tt.method == "forward" {
				sizes[1] = len(in) / 4
			}
			if err := errors.Join(etrun.Set(m, 0, in, sizes...), m.Execute(context.Background())); err != nil {
				t.Fatalf("%s, plan %s: %v", tt.files, name, err)
			}
			got, err := etrun.Get[float32](m, 0)
			if err != nil || !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Abs(float64(a-b)) <= 1e-5*(1+math.Abs(float64(b))) }) {
				t.Errorf("%s, plan %s: got %v, %v, want %v", tt.files, name, got, err, want)
			}
		}
	}
}

func floatsOf(t *testing.T, name string) []float32 {
	t.Helper()
	data, err := os.ReadFile("../../testdata/views/" + name)
	if err != nil {
		t.Fatal(err)
	}
	b := tensor.AlignedBytes(len(data))
	copy(b, data)
	return tensor.View[float32](b)
}

// TestFaultyMethod opens a program of two methods, one of which has a value outside its arena: the other one
// loads. If all methods have a fault, the program does not open.
func TestFaultyMethod(t *testing.T) {
	for faulty := range 3 {
		spec, err := pte.Parse(readFile(t, "../../testdata/pte/two_methods.pte"), pte.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range spec.Methods {
			if faulty == i || faulty == 2 {
				v := spec.Methods[i].Outputs[0]
				spec.Methods[i].Values[v].Tensor.Offset = 1 << 30
			}
		}
		p, err := etrun.Parse(ptetest.Write(spec, ptetest.Layout{}))
		if faulty == 2 {
			if !errors.Is(err, etrun.ErrFormat) {
				t.Errorf("all methods are faulty: got %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for i, name := range p.MethodNames() {
			_, err := p.Load(context.Background(), name)
			if i == faulty != errors.Is(err, etrun.ErrFormat) || i == faulty && !strings.Contains(err.Error(), "memory offset 1073741824") {
				t.Errorf("method %d of which %d is faulty: %v", i, faulty, err)
			}
			if meta, err := p.Meta(name); err != nil || i != faulty && len(meta.Outputs) == 0 {
				t.Errorf("description of method %d: %v", i, err)
			}
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// slow is a parallel loop that takes a second per thousand ranges.
type slow struct{ ranges atomic.Int64 }

func (s *slow) Range(_, lo, hi int) {
	s.ranges.Add(int64(hi - lo))
	time.Sleep(time.Duration(hi-lo) * time.Millisecond)
}

// TestStopsInsideOperators ends a context in the loop of an operator that would take minutes. The method
// remains usable.
func TestStopsInsideOperators(t *testing.T) {
	for _, threads := range []int{1, 2} {
		loop, n := &slow{}, 500_000
		op := kernels.Op{Schema: "test::slow.out(Tensor self, *, Tensor(a!) out)", Func: func(c *kernels.Ctx, _ kernels.Args) error {
			c.Parallel(n, 1, loop)
			return nil
		}}
		spec := exectest.Small(exectest.Call(0, exectest.VecA, exectest.VecB, exectest.VecB))
		spec.Operators = []pte.Operator{{Name: "test::slow", Overload: "out"}}
		m, err := loadMethod(t, spec, etrun.WithOperatorSet(kernels.NewSet([]kernels.Op{op})), etrun.WithThreads(threads))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.SetInput(0, tensor.New(tensor.Int64, exectest.Len)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		begun := time.Now()
		err = m.Execute(ctx)
		cancel()
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, etrun.ErrPanic) || took > 30*time.Second {
			t.Errorf("%d threads: %v after %v", threads, err, took)
		}
		n = 3
		loop.ranges.Store(0)
		if err := m.Execute(context.Background()); err != nil || loop.ranges.Load() != 3 {
			t.Errorf("%d threads, a further run: %v, %d ranges", threads, err, loop.ranges.Load())
		}
	}
}
