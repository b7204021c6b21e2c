package prepare

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/cortexm"
	"github.com/etrun-go/etrun/kernels/llm"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/pte"
)

// BenchmarkRegions measures how long lowering looks for regions, without compiling them. The metric
// is the time per instruction.
func BenchmarkRegions(b *testing.B) {
	paths := []string{"../../testdata/digits/portable.pte"}
	if dir := os.Getenv("CORPUS"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "models", "*", "portable*.pte"))
		if err != nil {
			b.Fatal(err)
		}
		paths = append(paths, more...)
	}
	for _, path := range paths {
		b.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(b *testing.B) {
			base, by := regionSearch(b, path)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := lower.Regions(b.Context(), base.ir, by); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(base.ir.Steps)), "ns/instruction")
		})
	}
}

// raceDetector reports whether the build has the race detector.
var raceDetector bool

// TestRegionsAllocations bounds what the search for regions allocates for each instruction: at load
// its time is mostly that of memory.
func TestRegionsAllocations(t *testing.T) {
	most := 30.0
	if raceDetector { // it drops objects of pools at random
		most = 40
	}
	base, by := regionSearch(t, "../../testdata/digits/portable.pte")
	found := 0 // whether it is lowered depends on the rates
	n := testing.AllocsPerRun(20, func() {
		_, report, err := lower.Regions(t.Context(), base.ir, by)
		if err != nil {
			t.Fatal(err)
		}
		found = len(report.Regions)
	})
	if each := n / float64(len(base.ir.Steps)); found != 1 || each > most {
		t.Errorf("%d regions, %.1f allocations per instruction, want 1 and at most %.0f", found, each, most)
	}
}

// silent reports to nobody.
type silent struct{}

func (silent) Stage(_ string, _ int64, err error) error            { return err }
func (silent) Compiled(_ int, _ string, _ int64, err error) error  { return err }
func (silent) Memory(string, int64)                                {}
func (silent) Folded(*ir.Method, *ir.Method, []lower.Folded)       {}
func (silent) Named(string) ([]byte, bool)                         { return nil, false }
func (silent) TensorData(*pte.Tensor) (b []byte, ok bool, _ error) { return nil, false, nil }

// regionSearch prepares a method up to the search for regions.
func regionSearch(t testing.TB, path string) (*rewritten, lower.Backends) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	operators := kernels.NewSet(portable.Ops(), quantized.Ops(), cortexm.Ops(), llm.Ops())
	p := &Preparation{Source: Source{File: file, Method: &file.Methods[0], Data: silent{}, Pool: cpu.NewPool(1), Size: file.Size,
		FileBytes: int64(len(data)),
		Options: Options{Backends: map[string]delegate.Backend{"XnnpackBackend": xnnpack.Backend{}}, Operators: operators, Known: operators,
			Limits: Limits{Planned: 1 << 30}, Rewrite: true, Lower: true}}}
	t.Cleanup(func() {
		p.Close(silent{})
		p.Pool.Close()
	})
	base, err := (&load{p, silent{}}).describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return base, lower.Backends{Compilers: p.compilers(), All: p.LowerAll, Dataflow: base.flow,
		Compile: func(context.Context, lowering.Compiler, *lowering.Graph) error { return nil }}
}
