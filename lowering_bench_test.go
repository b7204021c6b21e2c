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
			p, err := Open(path, WithDelegates(xnnpack.Backend{}), WithThreads(1), WithLowering(LowerAuto))
			if err != nil {
				b.Skip(err)
			}
			defer p.Close()
			base, err := p.slots[0].preparation.describe(b.Context(), nil)
			if err != nil {
				b.Skip(err)
			}
			by := lower.Backends{Compilers: p.config.compilers(), MinProfit: p.config.minProfit,
				Compile: func(context.Context, delegate.Compiler, *delegate.Graph) error { return nil }}
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
