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
	tokenSamples    = 10
)

// tokenGraphs are how many graphs run one after the other where the time of a token or a prompt is measured: the weights of a model are
// not in the caches.
var tokenGraphs = map[string]uint64{graphtest.RateToken: 64, graphtest.RateLargeToken: 12, graphtest.RatePrompt: 4}

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

// TestMeasureThreads measures graphs that are large enough for two threads, and those of a token, or with -measure-rates all of
// them, and then writes the times with one and two threads to a file.
func TestMeasureThreads(t *testing.T) {
	xnntest.Library(t)
	if testing.Short() {
		t.Skip("measures times")
	}
	path := filepath.Join(RatesFolder, "threads.tsv")
	table := ratetest.Update(path, append(threadedKinds, graphtest.RateToken, graphtest.RateLargeToken, graphtest.RatePrompt), []string{libraryName(t)}, func(table *ratetest.Table, kind string) {
		for seed := range uint64(samplesPerClass) {
			if tokenGraphs[kind] > 0 && seed == tokenSamples {
				break
			}
			if measureThreads(t, table, kind, seed) && !*measureFlag {
				break
			}
		}
	})
	if *measureFlag {
		if err := table.Write(path); err != nil {
			t.Fatal(err)
		}
	}
}

// measureThreads measures a graph with one and two threads. It reports false if the graph is too small for two.
func measureThreads(t *testing.T, table *ratetest.Table, kind string, seed uint64) bool {
	amount := 0 // nodes, or products of an element with a 4-bit weight
	for _, g := range sampleGraphs(kind, seed) {
		shapes, err := g.Declared()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case tokenGraphs[kind] > 0:
			amount += int(countTokenWork(g, shapes).products)
		case !graph.Parallel(g.Cost(shapes), len(g.Nodes)):
			return false
		default:
			amount = len(g.Nodes)
		}
	}
	ns, err := ratetest.Measure(sampleRun(t, kind, seed, EngineNative, 1), sampleRun(t, kind, seed, EngineNative, 2),
		sampleRun(t, kind, seed, EngineGo, 1), sampleRun(t, kind, seed, EngineGo, 2))
	if err != nil {
		t.Fatal(err)
	}
	table.Add(kind, seed, amount, ns[0], ns[1], ns[2], ns[3])
	return true
}

// sampleGraphs returns the graphs of a sample: one, or those of a token, which run one after the other.
func sampleGraphs(kind string, seed uint64) (list []*graph.Graph) {
	n := tokenGraphs[kind]
	if n == 0 {
		return append(list, graphtest.RateGraph(kind, seed))
	}
	for i := range n {
		list = append(list, graphtest.RateGraph(kind, seed*n+i))
	}
	return list
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

// sampleRun returns a function that runs the graphs of a sample n times on an engine, nil if the engine refuses one.
func sampleRun(t *testing.T, kind string, seed uint64, engine Engine, threads int) ratetest.Run {
	pool, ctx := cpu.NewPool(threads), context.Background()
	t.Cleanup(pool.Close)
	each := 1
	if kind == "graph" {
		each = switched
	}
	var runs []func() error
	list := sampleGraphs(kind, seed)
	for _, g := range list {
		img, err := Backend{Engine: engine, Library: xnntest.Path()}.Compile(t.Context(), &delegate.Payload{Data: graphtest.Encode(g), AsWritten: true, Threads: threads})
		if err != nil {
			t.Logf("%s %d: %v", kind, seed, err)
			return nil
		}
		args := graphtest.NewMaker(1).Arguments(g)
		t.Cleanup(func() { img.Close() })
		for range each {
			u, err := img.Unit(delegate.Instance{Pool: pool})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { u.Close() })
			runs = append(runs, func() error { return u.Execute(ctx, args) })
		}
	}
	for _, run := range runs {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	return func(n int) {
		for i := range n * len(list) {
			if err := runs[i%len(runs)](); err != nil {
				t.Fatal(err)
			}
		}
	}
}
