package goengine

import (
	"context"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// BenchmarkPackConstants packs the filters of a graph of several large products on one and on two threads, alternately. The metric
// is how many times as fast two are, by the best times: others have waited for processors.
func BenchmarkPackConstants(b *testing.B) {
	for name, d := range map[string][2]graph.Datatype{
		"floats": {graph.FP32, graph.FP32}, "bytes": {graph.QDInt8, graph.QCInt8}, "4 bits": {graph.QDInt8, graph.QBInt4},
	} {
		b.Run(name, func(b *testing.B) {
			g := manyFilters(d[0], d[1])
			s, err := g.Declared()
			if err != nil {
				b.Fatal(err)
			}
			best := [3]time.Duration{1: time.Hour, 2: time.Hour}
			for b.Loop() {
				for threads := 1; threads <= 2; threads++ {
					start := time.Now()
					p, err := filters.NewPacking(g, s, nil).Pack(context.Background(), threads)
					best[threads] = min(best[threads], time.Since(start))
					if err != nil {
						b.Fatal(err)
					}
					p.Memory.Close()
				}
			}
			b.ReportMetric(float64(best[1])/float64(best[2]), "×one-thread")
		})
	}
}

// manyFilters returns a graph of products with 34 million weights.
func manyFilters(in, filter graph.Datatype) *graph.Graph {
	const size, count = 2048, 8
	m := graphtest.NewMaker(5)
	x := m.Input(graph.FP32, 1, size)
	for range count {
		from, y := x, m.Value(graph.FP32, 1, size)
		if in == graph.QDInt8 {
			from = m.Quantized(x, 1)
		}
		m.Node("FullyConnected", []int{from, m.Constant(filter, 0, size, size), m.Constant(graph.FP32, 0, size)}, []int{y})
		x = y
	}
	g := m.Done(x)
	for i := range g.Nodes {
		g.Nodes[i].At = i
	}
	return g
}
