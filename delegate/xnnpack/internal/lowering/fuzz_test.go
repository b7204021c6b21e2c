package lowering_test

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestLoweringFuzz compares random graphs on each engine with the portable kernels. A graph of
// accepted calls must compile. The tolerance of quantized graphs covers errors of several steps.
func TestLoweringFuzz(t *testing.T) {
	for _, test := range []struct {
		name      string
		short     bool
		tolerance float64
	}{{"floats", false, 1e-4}, {"quantized", true, 0.4}} {
		t.Run(test.name, func(t *testing.T) {
			rounds := graphtest.Rounds(150)
			ran, ops := 0, make(map[string]int)
			for seed := range uint64(rounds) {
				w := callstest.NewRandom(seed, 12, test.short, rejected)
				if len(w.Graph.Outputs) == 0 {
					continue
				}
				for _, e := range engines() {
					if err := compareCalls(w.Calls, e, test.tolerance); err != nil {
						t.Fatalf("seed %d, %s: %v\n%s", seed, e.name, err, w)
					}
				}
				ran++
				for i := range w.Graph.Calls {
					if sig := w.Graph.Calls[i].Sig; sig != nil {
						ops[sig.Name]++
					}
				}
			}
			if ran < rounds*3/4 || len(ops) < 25 {
				t.Errorf("got %d of %d graphs with %d operators, want three quarters, 25", ran, rounds, len(ops))
			}
		})
	}
}

// TestLoweringHostile changes numbers, sizes and arguments of random graphs. Invalid calls or graphs
// are rejected without a panic.
func TestLoweringHostile(t *testing.T) {
	rounds := graphtest.Rounds(700)
	accepted, compiled := 0, 0
	for seed := range uint64(rounds) {
		w := callstest.NewRandom(seed, 8, seed%2 == 0, rejected)
		for range 1 + w.Rand.IntN(4) {
			corrupt(w)
		}
		w.Renew()
		for i := range w.Graph.Calls {
			if rejected(w.Graph, i) == "" {
				accepted++
			}
		}
		l := lowering.New(w.Graph, true, native.Refuses)
		l.LowerAll()
		l.Recycle()
		w.Graph.Limits.Scratch = 64 << 20
		if img, err := engines()[0].compile(w.Graph); err == nil {
			compiled++
			img.Close()
		}
	}
	if accepted < rounds || compiled < rounds/10 {
		t.Errorf("got %d accepted calls, %d of %d graphs compiled, want more", accepted, compiled, rounds)
	}
}

// corrupt changes one value of the graph.
func corrupt(w *callstest.Random) {
	extreme := []int64{-1 << 62, -1 << 31, -5, -1, 0, 1, 2, 3, 7, 300, 1 << 15, 1 << 31, 1 << 62}
	x := &w.Graph.Values[w.Rand.IntN(len(w.Graph.Values))]
	switch w.Rand.IntN(8) {
	case 0, 1, 2:
		if x.Kind == tensor.KindInt || x.Kind == tensor.KindIntList && len(x.Items) > 0 {
			if x.Kind == tensor.KindIntList {
				x = &w.Graph.Values[x.Items[w.Rand.IntN(len(x.Items))]]
			}
			x.Int = extreme[w.Rand.IntN(len(extreme))]
		}
	case 3:
		x.Double, x.Bool = []float64{0, -1, math.NaN(), math.Inf(1), 1e300, 1e-300}[w.Rand.IntN(6)], !x.Bool
	case 4:
		if len(x.Sizes) > 0 {
			x.Sizes = slices.Clone(x.Sizes)
			x.Sizes[w.Rand.IntN(len(x.Sizes))] = []int{0, 1, 2, 5, 1 << 20, 1 << (bits.UintSize/2 - 1)}[w.Rand.IntN(6)]
		}
	case 5:
		if len(x.Items) > 0 {
			x.Items = x.Items[:w.Rand.IntN(len(x.Items))]
		}
	case 6:
		x.DType = []tensor.DType{tensor.Float32, tensor.Int8, tensor.Int64, tensor.Float16, tensor.Bool}[w.Rand.IntN(5)]
	case 7:
		if len(x.Sizes) > 1 {
			x.Sizes, x.DimOrder = x.Sizes[1:], nil
		}
	}
}
