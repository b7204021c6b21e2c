package layered

import (
	"math"
	"slices"
	"sort"
)

// order sorts each rank by the mean position of the neighbours, downward and upward in turn, and keeps the order with
// the fewest crossings.
func (d *drawing) order() {
	sweeps, counted := maxSweeps, d.links() <= maxCounted
	if len(d.of) > large {
		sweeps = fewSweeps
	}
	d.sweep(d.up, true)
	best, least := d.snapshot(), math.MaxInt
	if counted {
		least = d.crossings()
	}
	for i := 1; i <= sweeps && least > 0; i++ {
		d.sweep(d.down, false)
		d.sweep(d.up, true)
		if !counted {
			continue
		}
		if n := d.crossings(); n < least {
			best, least = d.snapshot(), n
		}
	}
	if counted {
		d.restore(best)
	}
}

func (d *drawing) links() (n int) {
	for _, list := range d.up {
		n += len(list)
	}
	return n
}

func (d *drawing) snapshot() []int32 { return slices.Clone(d.at) }

func (d *drawing) restore(at []int32) {
	copy(d.at, at)
	for _, rank := range d.ranks {
		sort.Slice(rank, func(i, j int) bool { return at[rank[i]] < at[rank[j]] })
	}
}

// sweep sorts the ranks by their neighbours in the rank before.
func (d *drawing) sweep(neighbours [][]int32, downward bool) {
	for i := range d.ranks {
		r := i
		if !downward {
			r = len(d.ranks) - 1 - i
		}
		d.sort(d.ranks[r], neighbours)
	}
}

// sort sorts a rank. Vertices without neighbours keep their position.
func (d *drawing) sort(rank []int32, neighbours [][]int32) {
	for i, v := range rank {
		d.key[v] = float64(i)
		if list := neighbours[v]; len(list) > 0 {
			sum := 0.0
			for _, u := range list {
				sum += d.relative(u)
			}
			d.key[v] = sum / float64(len(list)) * float64(len(rank))
		}
	}
	sort.SliceStable(rank, func(i, j int) bool { return d.key[rank[i]] < d.key[rank[j]] })
	for i, v := range rank {
		d.at[v] = int32(i)
	}
}

// relative returns the position of a vertex in its rank, from 0 to 1.
func (d *drawing) relative(v int32) float64 {
	return (float64(d.at[v]) + .5) / float64(len(d.ranks[d.of[v]]))
}

// crossings counts the crossings of all edges between neighbours.
func (d *drawing) crossings() (n int) {
	var ends []int32
	var tree []int
	for r := range d.ranks {
		ends = ends[:0]
		for _, v := range d.ranks[r] {
			from := len(ends)
			for _, u := range d.down[v] {
				ends = append(ends, d.at[u])
			}
			slices.Sort(ends[from:])
		}
		if r+1 < len(d.ranks) {
			tree = slices.Grow(tree[:0], len(d.ranks[r+1])+1)[:len(d.ranks[r+1])+1]
			n += inversions(ends, tree)
		}
	}
	return n
}

// inversions counts the pairs in descending order. tree is memory, with one element more than the largest end.
func inversions(ends []int32, tree []int) (n int) {
	clear(tree)
	for i, end := range ends {
		n += i
		for k := int(end) + 1; k > 0; k -= k & -k {
			n -= tree[k]
		}
		for k := int(end) + 1; k < len(tree); k += k & -k {
			tree[k]++
		}
	}
	return n
}
