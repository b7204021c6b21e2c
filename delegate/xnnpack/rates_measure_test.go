package xnnpack

import (
	"context"
	"flag"
	"path/filepath"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/cost"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/ratetest"
)

var measureFlag = flag.Bool("measure-rates", false, "measure the rates of this processor's instruction set, see make rates")

const (
	samplesPerClass = 60
	switched        = 64 // units that run in turns where the time of a graph is measured: programs run others between two runs of one
)

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
		if ns := measureSample(t, kind, 1); ns[cost.ByGo] <= 0 {
			t.Errorf("%s: no time", kind)
		}
	}
}

// measureRates measures the samples and writes them to the file of the instruction set.
func measureRates(t *testing.T) {
	path := filepath.Join(RatesFolder, cost.GoSet()+".tsv")
	table := ratetest.Update(path, graphtest.RateClasses, []string{libraryName(t)}, func(table *ratetest.Table, kind string) {
		for seed := range uint64(samplesPerClass) {
			ns := measureSample(t, kind, seed)
			table.Add(kind, seed, ns[cost.ByLibrary], ns[cost.ByGo])
		}
	})
	if err := table.Write(path); err != nil {
		t.Fatal(err)
	}
}

// threadedKinds are the kinds of graphs that are measured with two threads.
var threadedKinds = []string{"weights", "product32", "window32", "product8", "dynamic8", "dynamic4", "batch", "depthwise32"}

// TestMeasureThreads measures graphs that are large enough for two threads, or with -measure-rates all, and then writes the
// times with one and two threads to a file.
func TestMeasureThreads(t *testing.T) {
	xnntest.Library(t)
	if testing.Short() {
		t.Skip("measures times")
	}
	table := ratetest.NewTable(libraryName(t))
	for _, kind := range threadedKinds {
		for seed := range uint64(samplesPerClass) {
			g := graphtest.RateGraph(kind, seed)
			shapes, err := g.Declared()
			if err != nil {
				t.Fatal(err)
			}
			if !graph.Parallel(g.Cost(shapes), len(g.Nodes)) {
				continue
			}
			ns, err := ratetest.Measure(sampleRun(t, kind, seed, EngineNative, 1), sampleRun(t, kind, seed, EngineNative, 2),
				sampleRun(t, kind, seed, EngineGo, 1), sampleRun(t, kind, seed, EngineGo, 2))
			if err != nil {
				t.Fatal(err)
			}
			table.Add(kind, seed, len(g.Nodes), ns[0], ns[1], ns[2], ns[3])
			if !*measureFlag {
				break
			}
		}
	}
	if *measureFlag {
		if err := table.Write(filepath.Join(RatesFolder, "threads.tsv")); err != nil {
			t.Fatal(err)
		}
	}
}

func libraryName(t *testing.T) string {
	lib, err := xnn.Open(xnntest.Path())
	if err != nil {
		t.Fatal(err)
	}
	return lib.Soname.Name
}

// measureSample returns the time of a graph of [graphtest.RateGraph] in nanoseconds, by engine. It is 0 if an engine does not
// run it.
func measureSample(t *testing.T, kind string, seed uint64) []float64 {
	var runs []ratetest.Run
	for _, engine := range engineNames {
		run := sampleRun(t, kind, seed, engine, 1)
		if run == nil {
			return make([]float64, 2)
		}
		runs = append(runs, run)
	}
	ns, err := ratetest.Measure(runs...)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

var engineNames = [...]Engine{cost.ByLibrary: EngineNative, cost.ByGo: EngineGo}

// sampleRun returns a function that runs a graph n times on an engine, nil if the engine refuses it.
func sampleRun(t *testing.T, kind string, seed uint64, engine Engine, threads int) ratetest.Run {
	g := graphtest.RateGraph(kind, seed)
	img, err := Backend{Engine: engine, Library: xnntest.Path()}.Compile(t.Context(), &delegate.Payload{Data: graphtest.Encode(g), AsWritten: true, Threads: threads})
	if err != nil {
		t.Logf("%s %d: %v", kind, seed, err)
		return nil
	}
	count := 1
	if kind == "graph" {
		count = switched
	}
	pool := cpu.NewPool(threads)
	units := make([]delegate.Unit, count)
	for i := range units {
		if units[i], err = img.Unit(delegate.Instance{Pool: pool}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, u := range units {
			u.Close()
		}
		img.Close()
		pool.Close()
	})
	args, ctx := graphtest.NewMaker(1).Arguments(g), context.Background()
	for _, u := range units {
		if err := u.Execute(ctx, args); err != nil {
			t.Fatal(err)
		}
	}
	return func(n int) {
		for i := range n {
			if err := units[i%count].Execute(ctx, args); err != nil {
				t.Fatal(err)
			}
		}
	}
}
