package etrun_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

// benchModels returns the programs to measure: those of testdata and, if the variable CORPUS names
// a folder of exported models, larger ones from it.
func benchModels(b *testing.B, wanted ...string) []string {
	b.Helper()
	paths := []string{"testdata/digits/portable.pte", "testdata/digits/xnnpack.pte"}
	dir := os.Getenv("CORPUS")
	if dir == "" {
		b.Log("the variable CORPUS names no folder: only the models of testdata are measured")
		return paths
	}
	for _, name := range wanted {
		paths = append(paths, filepath.Join(dir, "models", name+".pte"))
	}
	return paths
}

func benchName(path string) string {
	return filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
}

func benchMethod(b *testing.B, path string, threads int, options ...etrun.Option) *etrun.Method {
	b.Helper()
	options = append([]etrun.Option{etrun.WithDelegates(all.Backends()...), etrun.WithThreads(threads)}, options...)
	p, err := etrun.Open(path, options...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	m, err := p.Load(context.Background(), "")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	for i, in := range m.Meta().Inputs {
		if x := in.NewTensor(); x != nil {
			if err := m.SetInput(i, x); err != nil {
				b.Fatal(err)
			}
		}
	}
	return m
}

// BenchmarkExecute measures whole runs. The metric "outside" is the share of time not spent inside
// operators and delegates.
func BenchmarkExecute(b *testing.B) {
	for _, path := range benchModels(b, "mobilenet_v2/portable", "mobilenet_v2/xnnpack", "mobilenet_v2/xnnpack_q8", "vit_tiny/xnnpack", "lstm/portable") {
		b.Run(benchName(path), func(b *testing.B) {
			m := benchMethod(b, path, 1)
			ctx := context.Background()
			for range 2 {
				if err := m.Execute(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := m.Execute(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(outside(b, m), "outside-%")
		})
	}
}

// BenchmarkModels compares models exported for the portable operators with the same models exported
// for XNNPACK, on one thread: see [kerneltest.Compare].
func BenchmarkModels(b *testing.B) {
	xnntest.Library(b)
	library := etrun.WithDelegates(xnnpack.Backend{Library: xnntest.Path(), Engine: xnnpack.EngineNative})
	models := benchModels(b, "dscnn/portable", "lstm/portable", "vit_tiny/portable", "mobilenet_v2/portable", "wav2letter/portable")
	for _, path := range models {
		dir, isPortable := strings.CutSuffix(path, "/portable.pte")
		if !isPortable {
			continue
		}
		b.Run(filepath.Base(dir), func(b *testing.B) {
			var both []kerneltest.Implementation
			for _, name := range []string{"portable", "xnnpack"} {
				m := benchMethod(b, filepath.Join(dir, name+".pte"), 1, library)
				setNoise(b, m)
				run := func() error { return m.Execute(context.Background()) }
				if err := run(); err != nil {
					b.Fatal(err)
				}
				both = append(both, kerneltest.Implementation{Name: name, Run: run, Result: outputTensor(m, 0)})
			}
			kerneltest.Compare(b, 1, both...)
		})
	}
}

// setNoise sets the same random inputs for every method with the same inputs.
func setNoise(b *testing.B, m *etrun.Method) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	for i, in := range m.Meta().Inputs {
		if in.Kind == tensor.KindTensor && in.DType.IsFloat() {
			if err := m.SetInput(i, kerneltest.Noise(r, in.DType, in.Sizes, nil)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// outside compares a run with the sum of the nodes' or operators' times.
func outside(b *testing.B, m *etrun.Method) float64 {
	b.Helper()
	shares := make([]float64, 0, 31)
	for range cap(shares) {
		var r trace.Recorder
		if err := m.Observe(&r); err != nil {
			b.Fatal(err)
		}
		if err := m.Execute(context.Background()); err != nil {
			b.Fatal(err)
		}
		var whole, inside time.Duration
		for _, e := range r.Events {
			switch e.Kind {
			case trace.Execute:
				whole = e.End - e.Start
			case trace.Operator, trace.Delegate:
				inside += e.End - e.Start
			}
		}
		shares = append(shares, 100*(1-float64(inside)/float64(whole)))
	}
	if err := m.Observe(nil); err != nil {
		b.Fatal(err)
	}
	slices.Sort(shares)
	return shares[len(shares)/2]
}

// BenchmarkLoad compares opening and loading with the necessary minimum: reading the file and
// zeroing the arenas. The metric "ratio" is their quotient.
func BenchmarkLoad(b *testing.B) {
	for _, path := range benchModels(b, "mobilenet_v2/portable", "mobilenet_v2/xnnpack") {
		b.Run(benchName(path), func(b *testing.B) {
			arenas := benchMethod(b, path, 1).Report().Plan.Bytes()
			var ready, floor []time.Duration
			for b.Loop() {
				begun := time.Now()
				loadOnce(b, path)
				loaded := time.Now()
				data, err := os.ReadFile(path)
				if err != nil {
					b.Fatal(err)
				}
				clear(make([]byte, arenas))
				ready, floor = append(ready, loaded.Sub(begun)), append(floor, time.Since(loaded))
				_ = data
			}
			slices.Sort(ready)
			slices.Sort(floor)
			n := len(ready) / 2
			b.ReportMetric(float64(ready[n])/float64(floor[n]), "ratio")
		})
	}
}

func loadOnce(b *testing.B, path string) {
	p, err := etrun.Open(path, etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1))
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(context.Background(), "")
	if err != nil {
		b.Fatal(err)
	}
	m.Close()
}

// BenchmarkLowered compares a portable model without lowering with its regions on an oracle, which
// runs the same operators, and on the backends that compile graphs.
func BenchmarkLowered(b *testing.B) {
	every := []etrun.Option{etrun.WithLowering(etrun.LowerAll)}
	for _, tt := range []struct {
		name    string
		options []etrun.Option
	}{
		{"off", nil},
		{"oracle", append(every, etrun.WithDelegates(onlyPayloads{xnnpack.Backend{}}, delegatetest.Oracle{}))},
		{"all", every},
	} {
		b.Run(tt.name, func(b *testing.B) {
			m := benchMethod(b, "testdata/digits/portable.pte", 1, tt.options...)
			for b.Loop() {
				if err := m.Execute(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// onlyPayloads is a backend that does not compile graphs.
type onlyPayloads struct{ delegate.Backend }

// TestExecuteAllocatesNothing runs the models of testdata in the steady state, with and without
// regions.
func TestExecuteAllocatesNothing(t *testing.T) {
	lowered := []etrun.Option{etrun.WithDelegates(onlyPayloads{xnnpack.Backend{}}, delegatetest.Oracle{}),
		etrun.WithLowering(etrun.LowerAll)}
	allocatesNothing(t)
	if allocatesNothing(t, lowered...) == 0 {
		t.Error("no regions")
	}
}

func allocatesNothing(t *testing.T, options ...etrun.Option) (regions int) {
	t.Helper()
	options = append([]etrun.Option{etrun.WithDelegates(all.Backends()...), etrun.WithThreads(2)}, options...)
	for _, path := range []string{"testdata/digits/portable.pte", "testdata/digits/xnnpack.pte", "testdata/pte/map_loop.pte", "testdata/pte/dynamic_view.pte"} {
		m := load(t, path, options...)
		setOnes(t, m)
		ctx := context.Background()
		n := testing.AllocsPerRun(50, func() {
			if err := m.Execute(ctx); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %g allocations per execute, want 0", path, n)
		}
		if l := m.Report().Lowered; l != nil {
			regions += l.Accepted()
		}
	}
	return regions
}
