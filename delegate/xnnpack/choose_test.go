package xnnpack

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/cost"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestEstimate checks the ratio of the estimated times of pairs of graphs.
func TestEstimate(t *testing.T) {
	of := func(b Backend, build func(c *calls) val) time.Duration {
		c := newCalls(1)
		c.outputs(build(c))
		d, err := b.Estimate(c.g, 1)
		if err != nil {
			t.Error(err)
		}
		return d
	}
	convolve := func(in, to, size, kernel, groups int, order []uint8) func(c *calls) val {
		return func(c *calls) val {
			return c.call("aten::convolution.out", []out{{rank: 4, order: order}}, c.inputIn(order, 1, in, size, size), c.constant(to, in/groups, kernel, kernel), nil,
				[]int{1, 1}, []int{kernel / 2, kernel / 2}, []int{1, 1}, false, []int{0, 0}, groups)[0]
		}
	}
	for _, test := range []struct {
		name   string
		a, b   func(c *calls) val
		lo, hi float64 // limits of b's time divided by a's
	}{
		{"twice the channels", convolve(32, 64, 28, 3, 1, nhwc), convolve(32, 128, 28, 3, 1, nhwc), 1.9, 2.1},
		{"transposes of input and output", convolve(32, 8, 28, 1, 1, nhwc), convolve(32, 8, 28, 1, 1, nil), 1.1, 3},
		{"5x5 and 7x7 depthwise windows", convolve(32, 32, 28, 5, 32, nhwc), convolve(32, 32, 28, 7, 32, nhwc), 1.5, 60},
	} {
		for _, b := range compilers() {
			x, y := of(b, test.a), of(b, test.b)
			if ratio := float64(y) / float64(x); ratio < test.lo || ratio > test.hi {
				t.Errorf("%s, %s: got %v and %v, ratio %.2f, want %v to %v", test.name, b.Engine, x, y, ratio, test.lo, test.hi)
			}
		}
	}
}

// TestFusedForGo checks that estimates of the Go engine are of the nodes that it runs,.
func TestFusedForGo(t *testing.T) {
	graphs := map[string]*graph.Graph{"resize to planes": planesGraph(3, 7, 5, 14, 15, 0, false), "resize": planesGraph(3, 7, 5, 14, 15, 0, true)}
	for seed := range uint64(40) {
		graphs[fmt.Sprint("seed ", seed)] = graphtest.RandomGraph(seed, 12)
		graphs[fmt.Sprint("moves ", seed)] = movesGraph(seed)
	}
	for name, g := range graphs {
		payload := &delegate.Payload{Data: graphtest.Encode(g), Args: staticArgs(g, false), AsWritten: true}
		img, err := Backend{Engine: EngineGo}.Compile(t.Context(), payload)
		if err != nil {
			continue
		}
		defer img.Close()
		x, err := (Backend{}).plan(payload)
		if err != nil {
			t.Fatal(err)
		}
		got, want := goengine.FusedForGo(x.graph, x.shapes), img.(*image).Graph
		if a, b := nodeNames(got), nodeNames(want); !slices.Equal(a, b) {
			t.Errorf("%s: estimated %v, run %v", name, a, b)
		}
	}
}

// An axis that is counted from the innermost dimension is the same axis.
func TestEstimatedAxis(t *testing.T) {
	var got [2]cost.Estimates
	for i, axis := range []int{1, -3} {
		m := graphtest.NewMaker(1)
		x, y := m.Input(graph.FP32, 2, 3, 4, 5), m.Value(graph.FP32, 2, 6, 4, 5)
		m.Node("Concatenate2", []int{x, x}, []int{y}, func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = axis })
		g := m.Done(y)
		s, err := g.Declared()
		if err != nil {
			t.Fatal(err)
		}
		got[i] = (Backend{}).declaredEstimates(g, s, 1)
	}
	if got[0] != got[1] {
		t.Errorf("estimates %v and %v", got[0], got[1])
	}
}

// Threads shorten the runs of large graphs only, those of the library more.
func TestEstimatesOnThreads(t *testing.T) {
	for _, rows := range []int{2, 2000} {
		m := graphtest.NewMaker(1)
		x, w, y := m.Input(graph.FP32, rows, 64), m.Constant(graph.FP32, 0, 64, 64), m.Value(graph.FP32, rows, 64)
		m.Node("FullyConnected", []int{x, w, graph.None}, []int{y})
		g := m.Done(y)
		s, err := g.Declared()
		if err != nil {
			t.Fatal(err)
		}
		one, two := (Backend{}).declaredEstimates(g, s, 1), (Backend{}).declaredEstimates(g, s, 2)
		if large := rows > 1000; large != (two[cost.ByLibrary] < one[cost.ByLibrary]) || large != (two[cost.ByGo] < one[cost.ByGo]) ||
			large && two[cost.ByGo]*one[cost.ByLibrary] < two[cost.ByLibrary]*one[cost.ByGo] {
			t.Errorf("%d rows: %v on one thread, %v on two", rows, one, two)
		}
	}
}

// Calls for a token count for graphs with 4-bit weights.
func TestTokens(t *testing.T) {
	for _, test := range []struct {
		filter  graph.Datatype
		rows    int
		columns int
		want    tokenWork
	}{
		{graph.QBInt4, 8, 64, tokenWork{64 * 64, 8 * 64 * 64, 2}},
		{graph.QCInt4, 1, 32, tokenWork{32 * 64, 32 * 64, 2}},
		{graph.QCInt8, 8, 64, tokenWork{0, 0, 2}},
	} {
		m := graphtest.NewMaker(1)
		x, y := m.Input(graph.FP32, test.rows, 64), m.Value(graph.FP32, test.rows, test.columns)
		m.Node("FullyConnected", []int{m.Quantized(x, 1), m.Constant(test.filter, 0, test.columns, 64), graph.None}, []int{y})
		g := m.Done(y)
		shapes, err := g.Declared()
		if err != nil {
			t.Fatal(err)
		}
		if got := countTokenWork(g, shapes); got != test.want {
			t.Errorf("%s, %d rows, %d columns: got %+v, want %+v", test.filter, test.rows, test.columns, got, test.want)
		}
	}
	w := tokenWork{weights: 1e6, products: 1e9, nodes: 2}
	large := tokenWork{weights: 1e8, products: 1e9, nodes: 2} // the library uses its threads for one token, too
	for _, test := range []struct {
		w       tokenWork
		threads int
		weight  float64
	}{
		{w, 1, cost.TokenWeight[cost.ByGo][0]}, {w, 2, cost.TokenWeight[cost.ByGo][1]}, {w, 4, cost.TokenWeight[cost.ByGo][1]},
		{large, 1, cost.LargeTokenWeight[cost.ByGo][0]}, {large, 2, cost.LargeTokenWeight[cost.ByGo][1]},
	} {
		e := test.w.estimates(cost.Estimates{cost.ByLibrary: cost.Never, cost.ByGo: 7}, test.threads)
		if want := time.Duration(1e9 * (test.weight + cost.PromptProduct[cost.ByGo][min(test.threads, 2)-1])); e[cost.ByLibrary] != cost.Never || e[cost.ByGo] != want {
			t.Errorf("%+v, %d threads: got %v, want never and %v", test.w, test.threads, e, want)
		}
	}
}
