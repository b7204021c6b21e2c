package etrun

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/runtime/lower"
)

// BenchmarkRegions measures how long lowering looks for regions, without compiling them. The metric
// is the time per instruction.
func BenchmarkRegions(b *testing.B) {
	paths := []string{"testdata/digits/portable.pte"}
	if dir := os.Getenv("CORPUS"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "models", "*", "portable*.pte"))
		if err != nil {
			b.Fatal(err)
		}
		paths = append(paths, more...)
	}
	for _, path := range paths {
		b.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(b *testing.B) {
			p, base, by := regionSearch(b, path)
			defer p.Close()
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
	p, base, by := regionSearch(t, "testdata/digits/portable.pte")
	defer p.Close()
	taken := 0
	n := testing.AllocsPerRun(20, func() {
		_, report, err := lower.Regions(t.Context(), base.ir, by)
		if err != nil {
			t.Fatal(err)
		}
		taken = report.Taken()
	})
	if each := n / float64(len(base.ir.Steps)); taken != 1 || each > most {
		t.Errorf("%d regions, %.1f allocations per instruction, want 1 and at most %.0f", taken, each, most)
	}
}

// regionSearch loads a program up to the search for regions.
func regionSearch(t testing.TB, path string) (*Program, *prepared, lower.Backends) {
	p, err := Open(path, WithDelegates(xnnpack.Backend{}), WithThreads(1), WithLowering(LowerAuto))
	if err != nil {
		t.Fatal(err)
	}
	preparation := p.slots[0].preparation
	base, err := preparation.describe(t.Context(), nil)
	if err != nil {
		p.Close()
		t.Fatal(err)
	}
	return p, base, lower.Backends{Compilers: p.config.compilers(), MinProfit: p.config.minProfit, Dataflow: preparation.flow,
		Compile: func(context.Context, delegate.Compiler, *delegate.Graph) error { return nil }}
}
