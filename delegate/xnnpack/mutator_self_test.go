package xnnpack

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestMutator checks that at least half of the mutants are valid, that they contain every node type,
// and that a seed always results in the same mutant.
func TestMutator(t *testing.T) {
	begun := time.Now()
	s := baseSeeds(t)
	t.Logf("%d seeds in %v", len(s.payloads), time.Since(begun))
	rounds, accepted, kinds := 4000, 0, make(map[string]int)
	begun = time.Now()
	for seed := range uint64(rounds) {
		g := mutate(s.pick(rand.New(rand.NewPCG(seed, 1))), rand.New(rand.NewPCG(seed, 2)))
		if !small(graphtest.Encode(g)) {
			continue
		}
		accepted++
		for i := range g.Nodes {
			kinds[g.Nodes[i].Type.Name]++
		}
	}
	t.Logf("%d of %d mutants are valid, %v each", accepted, rounds, time.Since(begun)/time.Duration(rounds))
	if accepted < rounds/2 {
		t.Errorf("got %d valid mutants of %d, want at least half", accepted, rounds)
	}
	for _, n := range graph.NodeTypes {
		if n != nil && kinds[n.Name] < 2 {
			t.Errorf("got %d nodes of type %s, want at least 2", kinds[n.Name], n.Name)
		}
	}
	for seed := range uint64(50) {
		write := func() []byte {
			return graphtest.Encode(mutate(s.pick(rand.New(rand.NewPCG(seed, 1))), rand.New(rand.NewPCG(seed, 2))))
		}
		if first, second := write(), write(); string(first) != string(second) {
			t.Errorf("seed %d: got two different mutants, want the same", seed)
		}
	}
}
