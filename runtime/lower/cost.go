package lower

import (
	"time"

	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/internal/simd"
)

// Estimate returns the approximate time of a run of a graph on operators, on one thread. share is
// the fraction of the declared elements that tensors of varying sizes have. Views cost nothing.
func Estimate(g *regions.Graph, share float64) time.Duration {
	return time.Duration(min(timeBy(selected, g, share), float64(1<<60)))
}

func timeBy(r *rateTable, g *regions.Graph, share float64) (sum float64) {
	for c, row := range loadOf(g, share) {
		for t, n := range row {
			sum += n * r[c][t]
		}
	}
	return sum
}

// loadOf returns the sums of the amounts of a graph's calls, by class.
func loadOf(g *regions.Graph, share float64) *rateTable {
	load, o := new(rateTable), operation{g: g, share: share}
	for i := range g.Calls {
		if o.c = &g.Calls[i]; o.c.Op == nil {
			continue
		}
		load[classCall][termStart]++
		load[classHalf][termElement] += o.halves()
		c, a := rowOf(o.c.Op)(&o)
		for t, n := range a {
			load[c][t] += n
		}
	}
	return load
}

// callOfDelegate is the overhead of a delegate call.
const callOfDelegate = 20 * time.Nanosecond

// baseline estimates the time of a graph's calls on one thread, one by one, on operators and as
// separate delegates.
func baseline(g *regions.Graph, share float64) time.Duration {
	return Estimate(g, share) + inPayloads(g)
}

// inPayloads returns the part of that time spent in payloads.
func inPayloads(g *regions.Graph) (t time.Duration) {
	for i := range g.Calls {
		if p := g.Calls[i].Payload; p != nil {
			t += callOfDelegate + p.Estimate()
		}
	}
	return t
}

// scaled scales an estimate by the ratio of another measurement to its estimate.
func scaled(d, measured, estimated time.Duration) time.Duration {
	return time.Duration(float64(d) * float64(measured) / float64(max(estimated, 1)))
}

// ratesOf has the rates by instruction set. The files are made by "make rates", which measures calls of all classes on one
// thread.
var ratesOf = map[string]*rateTable{"avx512": &ratesAVX512, "avx2": &ratesAVX2, "neon": &ratesNEON, "go": &ratesNone}

// selected are the rates of this processor.
var selected = ratesOf[instructionSet()]

func instructionSet() string {
	if level := simd.Level(); ratesOf[level] != nil {
		return level
	}
	return "go"
}
