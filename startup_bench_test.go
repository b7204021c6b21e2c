package etrun_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
)

// BenchmarkStartup starts a process per iteration that loads a model and runs it once
// (examples/startup). The metrics are medians: milliseconds of load and of the first run, and peak
// memory.
func BenchmarkStartup(b *testing.B) {
	bin := filepath.Join(b.TempDir(), "startup")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", bin, "./examples/startup").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	for _, path := range benchModels(b, "linear/xnnpack", "vit_tiny/xnnpack", "swin_tiny/xnnpack", "llama/kv_xnnpack", "mobilenet_v2/xnnpack") {
		b.Run(benchName(path), func(b *testing.B) {
			var load, first, peak []float64
			for b.Loop() {
				c := exec.Command(bin, path)
				if lib := xnntest.Path(); lib != "" {
					c.Env = append(os.Environ(), xnn.EnvPath+"="+lib)
				}
				out, err := c.Output()
				if err != nil {
					b.Fatal(err)
				}
				var l, f, p float64
				if _, err := fmt.Sscanf(string(out), "load %f ms, first run %f ms, peak %f MB", &l, &f, &p); err != nil {
					b.Fatalf("%q: %v", out, err)
				}
				load, first, peak = append(load, l), append(first, f), append(peak, p)
			}
			b.ReportMetric(median(load), "load-ms")
			b.ReportMetric(median(first), "first-ms")
			b.ReportMetric(median(peak), "peak-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
