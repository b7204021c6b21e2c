//go:build linux

package xnnpack

import (
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/internal/campaign"
)

// FuzzGraph changes a graph as the fuzzer's bytes determine and runs it as TestGraphs does: on both
// engines, with the native engine's buffers between inaccessible pages.
func FuzzGraph(f *testing.F) {
	a := newAttack(f)
	pool := baseSeeds(f)
	for seed := range uint64(64) {
		r := rand.New(rand.NewPCG(seed, 4))
		data := make([]byte, 40)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(seed, data)
	}
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		g := pool.pick(rand.New(rand.NewPCG(seed, 1)))
		g = mutate(g, rand.New(&bytesSource{data: data, rest: rand.NewPCG(seed, 2)}))
		if err := campaign.Cost(attackLimit+attackSlack, func() error { return a.run(g, seed) }); err != nil {
			t.Errorf("%v\n%s", err, dump(g))
		}
	})
}
