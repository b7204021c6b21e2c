package layered

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// checkLayout requires what every layout has: edges down, no overlaps, bends between the ends.
func checkLayout(t *testing.T, g *Graph, l *Layout) {
	t.Helper()
	byRank := make(map[int][]int)
	for v := range g.Widths {
		if l.Rank[v] < 0 || l.Rank[v] >= l.Ranks {
			t.Fatalf("node %d: rank %d of %d", v, l.Rank[v], l.Ranks)
		}
		if x := l.X[v]; math.IsNaN(x) || x-g.Widths[v]/2 < -1e-6 || x+g.Widths[v]/2 > l.Width+1e-6 {
			t.Fatalf("node %d: at %g of %g", v, x, l.Width)
		}
		byRank[l.Rank[v]] = append(byRank[l.Rank[v]], v)
	}
	for _, list := range byRank {
		if len(list) > 400 {
			continue
		}
		for i, a := range list {
			for _, b := range list[:i] {
				if math.Abs(l.X[a]-l.X[b]) < (g.Widths[a]+g.Widths[b])/2 {
					t.Fatalf("nodes %d and %d overlap", a, b)
				}
			}
		}
	}
	for i, e := range g.Edges {
		span := l.Rank[e.To] - l.Rank[e.From]
		switch {
		case e.From >= e.To:
			if l.Routes[i] != Back {
				t.Fatalf("edge %d: route %d, want back", i, l.Routes[i])
			}
		case span < 1:
			t.Fatalf("edge %d to %d leads from rank %d to %d", e.From, e.To, l.Rank[e.From], l.Rank[e.To])
		case l.Routes[i] == Near && len(l.Bends[i]) != span-1:
			t.Fatalf("edge %d: %d bends over %d ranks", i, len(l.Bends[i]), span)
		}
	}
	for v := 1; v < len(g.Bands); v++ {
		if g.Bands[v] > g.Bands[v-1] && l.Rank[v] <= l.Rank[v-1] {
			t.Fatalf("node %d of band %d has rank %d, node %d before it %d", v, g.Bands[v], l.Rank[v], v-1, l.Rank[v-1])
		}
	}
}

func random(r *rand.Rand, n, edges int) *Graph {
	g := &Graph{}
	for range n {
		g.Widths = append(g.Widths, 20+float64(r.IntN(200)))
	}
	for range edges {
		to := r.IntN(n)
		g.Edges = append(g.Edges, Edge{max(0, to-1-r.IntN(12)), to})
	}
	return g
}

func TestRandom(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(60)
		g := random(r, n, r.IntN(2*n))
		if seed%3 == 0 {
			band := 0
			for range n {
				if r.IntN(8) == 0 {
					band++
				}
				g.Bands = append(g.Bands, band)
			}
		}
		checkLayout(t, g, Make(g))
	}
}

func TestChainIsStraight(t *testing.T) {
	g := &Graph{}
	for v := range 100 {
		g.Widths = append(g.Widths, float64(40+v%7*30))
		if v > 0 {
			g.Edges = append(g.Edges, Edge{v - 1, v})
		}
	}
	l := Make(g)
	checkLayout(t, g, l)
	for v := range g.Widths {
		if math.Abs(l.X[v]-l.X[0]) > 1 {
			t.Fatalf("node %d at %g, the first at %g", v, l.X[v], l.X[0])
		}
	}
}

// Two crossed pairs can be drawn without a crossing.
func TestOrder(t *testing.T) {
	g := &Graph{Widths: []float64{9, 9, 9, 9, 9, 9}, Edges: []Edge{{0, 3}, {1, 2}, {2, 5}, {3, 4}}}
	l := Make(g)
	if (l.X[0] < l.X[1]) != (l.X[3] < l.X[2]) || (l.X[3] < l.X[2]) != (l.X[4] < l.X[5]) {
		t.Errorf("crossed: %v", l.X)
	}
}

// A skipped block: its edge passes beside the nodes.
func TestBends(t *testing.T) {
	g := &Graph{Widths: []float64{50, 200, 200, 50}, Edges: []Edge{{0, 1}, {1, 2}, {2, 3}, {0, 3}}}
	l := Make(g)
	checkLayout(t, g, l)
	for k, x := range l.Bends[3] {
		if math.Abs(x-l.X[1+k]) < 100 {
			t.Errorf("bend %d at %g is inside node %d at %g", k, x, 1+k, l.X[1+k])
		}
	}
}

func TestInversions(t *testing.T) {
	for _, tt := range []struct {
		ends []int32
		want int
	}{{nil, 0}, {[]int32{0, 1, 2}, 0}, {[]int32{2, 1, 0}, 3}, {[]int32{1, 1, 0}, 2}} {
		if got := inversions(tt.ends, make([]int, 4)); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.ends, got, tt.want)
		}
	}
}

// TestLarge draws graphs whose shapes are the worst for parts of the algorithm.
func TestLarge(t *testing.T) {
	const n = 50_000
	r := rand.New(rand.NewPCG(7, 7))
	flat, star, far := random(r, n, 0), random(r, n, 0), random(r, n, n)
	for v := 1; v < n; v++ {
		star.Edges = append(star.Edges, Edge{0, v})
		far.Edges = append(far.Edges, Edge{v - 1, v}, Edge{v / 2, v})
	}
	for name, g := range map[string]*Graph{"flat": flat, "star": star, "far": far, "random": random(r, n, 2*n)} {
		begun := time.Now()
		checkLayout(t, g, Make(g))
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%s: %v", name, took)
		}
	}
}

func FuzzMake(f *testing.F) {
	f.Add([]byte{3, 0, 1, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		g := &Graph{Widths: make([]float64, 1+int(b[0]))}
		for v := range g.Widths {
			g.Widths[v] = float64(1 + int(b[v%len(b)]))
		}
		for b = b[1:]; len(b) >= 2; b = b[2:] {
			g.Edges = append(g.Edges, Edge{int(b[0]) % len(g.Widths), int(b[1]) % len(g.Widths)})
		}
		checkLayout(t, g, Make(g))
	})
}
