// Package layered draws directed graphs in layers, after Sugiyama: nodes in ranks, an order within each rank with few
// crossings, and positions that keep edges straight. Its time is nearly linear in the size of the graph.
package layered

import "slices"

// Graph is a graph to draw. Edges lead from a node to one with a larger index, except those that lead back.
type Graph struct {
	Widths []float64
	Bands  []int // per node, ascending: a band is below the one before; nil for one band
	Edges  []Edge
}

// Edge leads from a node to another.
type Edge struct{ From, To int }

// Route is the way in which an edge is drawn.
type Route uint8

// Routes.
const (
	Near Route = iota // through bends, from its upper end to its lower one
	Far               // it spans too many ranks, and has no bends
	Back              // it leads to the same rank or up, and has no bends
)

// Layout is the drawing of a graph.
type Layout struct {
	Ranks  int
	Rank   []int     // per node
	X      []float64 // per node: its centre, from 0
	Width  float64
	Routes []Route     // per edge
	Bends  [][]float64 // per edge: its position in each rank between its ends
}

// Limits of the work.
const (
	maxSpan    = 40      // ranks between the ends of an edge
	maxBends   = 300_000 // of all edges
	maxCounted = 60_000  // edges between neighbours whose crossings are counted
	maxSweeps  = 8
	fewSweeps  = 2 // for large graphs
	large      = 100_000
)

const (
	gap      = 24 // between nodes
	lane     = 14 // the width of a bend
	straight = 6  // the weight of an edge between bends
)

// Make draws a graph.
func Make(g *Graph) *Layout {
	d := &drawing{g: g, out: &Layout{Rank: make([]int, len(g.Widths)), Routes: make([]Route, len(g.Edges)),
		Bends: make([][]float64, len(g.Edges))}}
	d.rank()
	d.addBends()
	d.order()
	d.position()
	return d.out
}

// drawing is the state of one layout. Vertices are the nodes, then the bends of edges.
type drawing struct {
	g      *Graph
	out    *Layout
	ranks  [][]int32 // vertices in order
	up     [][]int32 // neighbours in the rank above
	down   [][]int32 // neighbours in the rank below
	at     []int32   // per vertex: index in its rank
	of     []int32   // per vertex: its rank
	widths []float64 // per vertex
	x      []float64 // per vertex
	first  []int32   // per edge: its first bend, -1 for none
	key    []float64 // of the sort
}

// rank sets the rank of each node: one more than the largest of those that lead to it.
func (d *drawing) rank() {
	n := len(d.g.Widths)
	heads, into := d.neighbours()
	rank, base, most := d.out.Rank, 0, -1
	for v := range n {
		if d.g.Bands != nil && v > 0 && d.g.Bands[v] != d.g.Bands[v-1] {
			base = most + 1
		}
		rank[v] = base
		for _, u := range into[heads[v]:heads[v+1]] {
			rank[v] = max(rank[v], rank[u]+1)
		}
		most = max(most, rank[v])
	}
	d.pull(heads)
	for v := range n {
		d.out.Ranks = max(d.out.Ranks, rank[v]+1)
	}
	for i, e := range d.g.Edges {
		if e.From >= e.To {
			d.out.Routes[i] = Back
		}
	}
}

// neighbours returns for each node those that lead to it, as parts of one list.
func (d *drawing) neighbours() (heads []int, into []int32) {
	heads = make([]int, len(d.g.Widths)+2)
	for _, e := range d.g.Edges {
		if e.From < e.To {
			heads[e.To+2]++
		}
	}
	for v := 1; v < len(heads); v++ {
		heads[v] += heads[v-1]
	}
	into = make([]int32, heads[len(heads)-1])
	for _, e := range d.g.Edges {
		if e.From < e.To {
			into[heads[e.To+1]] = int32(e.From)
			heads[e.To+1]++
		}
	}
	return heads, into
}

// pull moves nodes without predecessors to just above the first of their successors.
func (d *drawing) pull(heads []int) {
	n := len(d.g.Widths)
	nearest := make([]int, n)
	for _, e := range d.g.Edges {
		if e.From < e.To && heads[e.From+1] == heads[e.From] && (d.g.Bands == nil || d.g.Bands[e.From] == d.g.Bands[e.To]) {
			if at := d.out.Rank[e.To]; nearest[e.From] == 0 || at < nearest[e.From] {
				nearest[e.From] = at
			}
		}
	}
	for v, at := range nearest {
		d.out.Rank[v] = max(d.out.Rank[v], at-1)
	}
}

// addBends adds a bend for each rank that an edge passes.
func (d *drawing) addBends() {
	n := len(d.g.Widths)
	d.widths, d.of, d.first = slices.Clone(d.g.Widths), make([]int32, n), make([]int32, len(d.g.Edges))
	for v := range n {
		d.of[v] = int32(d.out.Rank[v])
	}
	for i, e := range d.g.Edges {
		d.first[i] = -1
		span := d.out.Rank[e.To] - d.out.Rank[e.From] - 1
		if d.out.Routes[i] == Back || span < 1 {
			continue
		}
		if span > maxSpan || len(d.of)-n+span > maxBends {
			d.out.Routes[i] = Far
			continue
		}
		d.first[i] = int32(len(d.of))
		for k := range span {
			d.of, d.widths = append(d.of, int32(d.out.Rank[e.From]+1+k)), append(d.widths, lane)
		}
	}
	d.connect()
}

// connect lists the neighbours of each vertex, and the vertices of each rank.
func (d *drawing) connect() {
	n := len(d.of)
	d.up, d.down, d.at, d.x, d.key = make([][]int32, n), make([][]int32, n), make([]int32, n), make([]float64, n), make([]float64, n)
	for i, e := range d.g.Edges {
		if d.out.Routes[i] != Near {
			continue
		}
		from := int32(e.From)
		for k := range max(d.out.Rank[e.To]-d.out.Rank[e.From]-1, 0) {
			bend := d.first[i] + int32(k)
			d.down[from], d.up[bend] = append(d.down[from], bend), append(d.up[bend], from)
			from = bend
		}
		d.down[from], d.up[e.To] = append(d.down[from], int32(e.To)), append(d.up[e.To], from)
	}
	d.ranks = make([][]int32, d.out.Ranks)
	for v := range n {
		r := d.of[v]
		d.at[v] = int32(len(d.ranks[r]))
		d.ranks[r] = append(d.ranks[r], int32(v))
	}
}
