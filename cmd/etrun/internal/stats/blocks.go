package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"
)

// Estimate is a figure with the bounds of its interval, of which both are 0 if the series is too short for one.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
}

// Point is a measurement, and the block of time in which it was made.
type Point struct {
	Block int
	Value time.Duration
}

const (
	resamples = 400
	maxGroups = 2000 // more points than these are resampled in groups of adjacent ones, which bounds the time
	minBeyond = 5    // points above a percentile below which resamples say little about it
)

// Percentiles returns percentiles of points, by the nearest rank, in milliseconds. percents ascend. The intervals are bootstrapped
// over blocks, which are numbered from 0; with fewer than MinBlocks there are none. Requests that are close in time have similar
// times, so that an interval from single points would be too narrow. The intervals are deterministic.
func Percentiles(points []Point, blocks int, percents ...float64) []Estimate {
	list := make([]Estimate, len(percents))
	if len(points) == 0 {
		return list
	}
	sorted := slices.Clone(points)
	sort.Slice(sorted, func(i, k int) bool { return sorted[i].Value < sorted[k].Value })
	for i, p := range percents {
		list[i].Value = MS(sorted[rankOf(p, len(sorted))].Value)
	}
	if blocks < MinBlocks || used(points, blocks) < MinBlocks {
		return list
	}
	g := groupsOf(sorted, blocks)
	values := make([][]float64, len(percents))
	for _, weights := range resampled(blocks) {
		g.percentiles(weights, percents, values)
	}
	for i, p := range percents {
		if beyond := float64(len(sorted)) * (100 - p) / 100; beyond >= minBeyond {
			list[i].bound(values[i])
		}
	}
	return list
}

// Total returns the sum of the blocks' amounts divided by a number, with an interval as in [Percentiles].
func Total(blocks []float64, by float64) Estimate {
	sum := func(weights []int) (s float64) {
		for i, b := range blocks {
			s += b * float64(weights[i])
		}
		return s / by
	}
	ones := slices.Repeat([]int{1}, len(blocks))
	e := Estimate{Value: sum(ones)}
	if len(blocks) < MinBlocks {
		return e
	}
	var values []float64
	for _, weights := range resampled(len(blocks)) {
		values = append(values, sum(weights))
	}
	e.bound(values)
	return e
}

// bound sets the interval from the values of the resamples.
func (e *Estimate) bound(values []float64) {
	slices.Sort(values)
	k := max(int(float64(len(values))*(1-Level)/2), 1) - 1
	e.Low, e.High = min(values[k], e.Value), max(values[len(values)-1-k], e.Value)
}

// rankOf returns the index of a percentile of n sorted elements.
func rankOf(percent float64, n int) int {
	return min(max(int(math.Ceil(percent/100*float64(n)-1e-9))-1, 0), n-1)
}

// used returns how many blocks have points.
func used(points []Point, blocks int) (n int) {
	seen := make([]bool, blocks)
	for _, p := range points {
		if !seen[p.Block] {
			seen[p.Block] = true
			n++
		}
	}
	return n
}

// resampled returns how often each block is in each resample.
func resampled(blocks int) [][]int {
	r := rand.New(rand.NewPCG(1, uint64(blocks)))
	list := make([][]int, resamples)
	for i := range list {
		list[i] = make([]int, blocks)
		for range blocks {
			list[i][r.IntN(blocks)]++
		}
	}
	return list
}

// groups are adjacent points of a sorted series: their largest value, and how many are of each block.
type groups struct {
	largest []float64
	counts  [][]share
}

// share is how many points of a group are of a block.
type share struct{ block, n int }

func groupsOf(sorted []Point, blocks int) *groups {
	n := min(len(sorted), maxGroups)
	g := &groups{make([]float64, n), make([][]share, n)}
	counts := make([]int, blocks)
	for i := range n {
		part := sorted[i*len(sorted)/n : (i+1)*len(sorted)/n]
		g.largest[i] = MS(part[len(part)-1].Value)
		for _, p := range part {
			counts[p.Block]++
		}
		for block, n := range counts {
			if n > 0 {
				g.counts[i] = append(g.counts[i], share{block, n})
			}
		}
		clear(counts)
	}
	return g
}

// percentiles appends the percentiles of a resample to values.
func (g *groups) percentiles(weights []int, percents []float64, values [][]float64) {
	sums, total := make([]int, len(g.counts)), 0
	for i, counts := range g.counts {
		for _, c := range counts {
			total += c.n * weights[c.block]
		}
		sums[i] = total
	}
	if total == 0 { // only of blocks without points
		return
	}
	for i, p := range percents {
		at, _ := slices.BinarySearch(sums, rankOf(p, total)+1)
		values[i] = append(values[i], g.largest[at])
	}
}
