package lower

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// randomFlow returns a block of steps that each depend on a few earlier ones.
func randomFlow(r *rand.Rand, n, most int) *flow {
	f := &flow{block: block{0, n}, after: make([][]int, n)}
	for i := 1; i < n; i++ {
		for range r.IntN(most + 1) {
			if j := r.IntN(i); !slices.Contains(f.after[i], j) {
				f.after[i] = append(f.after[i], j)
			}
		}
	}
	return f
}

// TestMergeKeepsClustersConvex joins steps at random: clusters that were joined can be ordered, and
// clusters that were refused cannot.
func TestMergeKeepsClustersConvex(t *testing.T) {
	joined, refused := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 3 + r.IntN(70)
		f := randomFlow(r, n, 1+r.IntN(3))
		left := maxPartitionWork
		p, _ := newPartition(f, make([]int, n), &left, new([]uint64))
		for range 2 * n {
			a, b := r.IntN(n), r.IntN(n)
			if p.cluster[a] == p.cluster[b] {
				continue
			}
			want := f.isOrdered(joinedClusters(p.cluster, a, b))
			p.merge(a, b)
			if got := p.cluster[a] == p.cluster[b]; got != want {
				t.Fatalf("seed %d: steps %d and %d of %d: joined %v, want %v", seed, a, b, n, got, want)
			}
			if want {
				joined++
			} else {
				refused++
			}
		}
	}
	if joined < 1000 || refused < 1000 {
		t.Errorf("%d joined, %d refused: the test shows nothing", joined, refused)
	}
}

// isOrdered reports whether clusters can be executed as wholes, in some order.
func (f *flow) isOrdered(cluster []int) bool {
	clusters := 0
	for i, c := range cluster {
		if i == c {
			clusters++
		}
	}
	return len(f.sequence(cluster)) == clusters
}

// joinedClusters returns the clusters after those of two steps are joined.
func joinedClusters(cluster []int, a, b int) []int {
	into, from := min(cluster[a], cluster[b]), max(cluster[a], cluster[b])
	joined := make([]int, len(cluster))
	for i, c := range cluster {
		if joined[i] = c; c == from {
			joined[i] = into
		}
	}
	return joined
}

func TestSequenceKeepsOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 2 + r.IntN(60)
		f := randomFlow(r, n, 3)
		left := maxPartitionWork
		p, _ := newPartition(f, make([]int, n), &left, new([]uint64))
		for range r.IntN(n) {
			p.merge(r.IntN(n), r.IntN(n))
		}
		at := make(map[int]int)
		for place, c := range f.sequence(p.cluster) {
			at[c] = place
		}
		for i := range n {
			for _, j := range f.after[i] {
				if a, b := p.cluster[j], p.cluster[i]; a != b && at[a] >= at[b] {
					t.Fatalf("seed %d: step %d comes before step %d, which it must follow", seed, i, j)
				}
			}
		}
	}
}

// The work of merging is counted: blocks of any size take a time in proportion to their count of
// work, which ends.
func TestPartitionIsBounded(t *testing.T) {
	small, large := mergeTime(t, maxBlock/8, maxPartitionWork/64), mergeTime(t, maxBlock, maxPartitionWork)
	if large > 64*100*small {
		t.Errorf("64 times the work took %v, the small one %v", large, small)
	}
}

// mergeTime merges steps of blocks of n steps at random until the given work is done.
func mergeTime(t *testing.T, n, work int) time.Duration {
	t.Helper()
	f := randomFlow(rand.New(rand.NewPCG(1, 3)), n, 40)
	begun := time.Now()
	blocks := 0
	for left := work; ; blocks++ {
		p, ok := newPartition(f, make([]int, n), &left, new([]uint64))
		if !ok {
			break
		}
		r := rand.New(rand.NewPCG(1, 4))
		for range 4 * n {
			p.merge(r.IntN(n), r.IntN(n))
		}
		if blocks > work {
			t.Fatal("the work is not counted")
		}
	}
	if blocks == 0 {
		t.Fatalf("not even one block of %d steps", n)
	}
	return time.Since(begun)
}
