//go:build linux

package xnnpack

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/cost"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

var measureFlag = flag.Bool("measure-rates", false, "measure the rates of this processor's instruction set, see make rates")

const (
	samplesPerClass = 60
	sampleRounds    = 15
	batchTime       = 30 * time.Microsecond // of runs that are measured together: reading the clock takes as long as a short run
	switched        = 64                    // units that run in turns where the time of a graph is measured: programs run others between two runs of one
)

// sampleTime is the measured time of a graph of [graphtest.RateGraph], in nanoseconds, by engine. It is 0 if an engine does
// not run it.
type sampleTime struct {
	kind string
	seed uint64
	ns   [2]float64
}

// TestMeasureRates measures a few samples, or with -measure-rates all, and then writes the times to the file of the
// instruction set.
func TestMeasureRates(t *testing.T) {
	xnntest.Library(t)
	if *measureFlag {
		measureRates(t)
		return
	}
	if testing.Short() {
		t.Skip("measures times")
	}
	for _, kind := range graphtest.RateClasses {
		s := sampleTime{kind: kind, seed: 1}
		if s.measure(t); s.ns[cost.ByGo] <= 0 {
			t.Errorf("%s: no time", kind)
		}
	}
}

// measureRates measures all samples and writes them to the file of the instruction set.
func measureRates(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s, %s, %s\n", processorName(), time.Now().Format("January 2006"), libraryName(t))
	for _, kind := range graphtest.RateClasses {
		for seed := range uint64(samplesPerClass) {
			s := sampleTime{kind: kind, seed: seed}
			s.measure(t)
			fmt.Fprintf(&b, "%s\t%d\t%.4g\t%.4g\n", kind, seed, s.ns[cost.ByLibrary], s.ns[cost.ByGo])
		}
	}
	if err := os.WriteFile(filepath.Join(RatesFolder, cost.GoSet()+".tsv"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

func processorName() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ":\t ")
		}
	}
	return "a processor without a name"
}

func libraryName(t *testing.T) string {
	lib, err := xnn.Open(xnntest.Path())
	if err != nil {
		t.Fatal(err)
	}
	return lib.Soname.Name
}

// measure measures the shortest time of a run, averaged over batches, in turns on both engines.
func (s *sampleTime) measure(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var run [2]func(n int) time.Duration
	var batch [2]int
	for engine, name := range []Engine{cost.ByLibrary: EngineNative, cost.ByGo: EngineGo} {
		if run[engine] = s.runner(t, name); run[engine] == nil {
			*s = sampleTime{kind: s.kind, seed: s.seed}
			return
		}
		run[engine](2)
		if *countsFlag != "" {
			s.ns[engine] = countRuns(t, func(n int) { run[engine](n) })
			continue
		}
		batch[engine] = 1
		for range 2 {
			batch[engine] = 1 + int(batchTime*time.Duration(batch[engine])/(run[engine](batch[engine])+1))
		}
	}
	if *countsFlag != "" {
		return
	}
	best := [2]float64{math.Inf(1), math.Inf(1)}
	for range sampleRounds {
		for engine, n := range batch {
			best[engine] = min(best[engine], float64(run[engine](n))/float64(n))
		}
	}
	s.ns = best
}

// runner returns a function that runs the sample's graph n times on an engine, nil if the engine refuses it.
func (s *sampleTime) runner(t *testing.T, engine Engine) func(n int) time.Duration {
	g := graphtest.RateGraph(s.kind, s.seed)
	img, err := Backend{Engine: engine, Library: xnntest.Path()}.Compile(t.Context(), &delegate.Payload{Data: graphtest.Encode(g), AsWritten: true})
	if err != nil {
		t.Logf("%s %d: %v", s.kind, s.seed, err)
		return nil
	}
	count := 1
	if s.kind == "graph" {
		count = switched
	}
	units := make([]delegate.Unit, count)
	for i := range units {
		if units[i], err = img.Unit(delegate.Instance{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, u := range units {
			u.Close()
		}
		img.Close()
	})
	args, ctx := graphtest.NewMaker(1).Arguments(g), context.Background()
	return func(n int) time.Duration {
		start := time.Now()
		for i := range n {
			if err := units[i%count].Execute(ctx, args); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(start)
	}
}
