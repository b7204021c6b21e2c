package stats

import (
	"math"
	"slices"
)

// Level is the confidence level of intervals.
const Level = 0.99

// MinBlocks is the minimum number of blocks for an interval.
const MinBlocks = 10

// Ratio is B's time divided by A's.
type Ratio struct {
	Value  float64 `json:"ratio"`
	Low    float64 `json:"low"`  // lower bound of the interval
	High   float64 `json:"high"` // upper bound of the interval
	Level  float64 `json:"level"`
	Blocks int     `json:"blocks"`
}

// Resolved reports whether the interval excludes 1.
func (r *Ratio) Resolved() bool { return r.Blocks >= MinBlocks && (r.Low > 1 || r.High < 1) }

// Compare returns the ratio of b to a. Their elements are median times of short series; two
// of a and two of b at the same indexes are a block, measured in the order ABBA, which
// cancels slow drift of the machine. The ratio is the median of the blocks' ratios. The
// interval is the exact bootstrap interval over blocks, so it is deterministic. With fewer
// than MinBlocks it is from 0 to 0.
func Compare(a, b []float64) Ratio {
	blocks := min(len(a), len(b)) / 2
	r := Ratio{Level: Level, Blocks: blocks}
	if blocks == 0 {
		return r
	}
	ratios := make([]float64, blocks)
	for i := range ratios {
		ratios[i] = math.Sqrt(b[2*i] * b[2*i+1] / (a[2*i] * a[2*i+1]))
	}
	slices.Sort(ratios)
	r.Value = (ratios[(blocks-1)/2] + ratios[blocks/2]) / 2
	if blocks >= MinBlocks {
		k := bootstrapRank(blocks, (1-Level)/2)
		r.Low, r.High = ratios[k-1], ratios[blocks-k]
	}
	return r
}

// bootstrapRank returns the highest rank, from 1, of an element of n sorted ones such that
// the medians of all resamples are at or below it with at most the probability share: a
// resample has its median there if at least half of its draws are. It is 1 if there is
// none.
func bootstrapRank(n int, share float64) int {
	k := 1
	for k < n && atLeast(n, (n+1)/2, float64(k+1)/float64(n)) <= share {
		k++
	}
	return k
}

// atLeast is the probability of at least m successes in n draws.
func atLeast(n, m int, p float64) (sum float64) {
	for i := m; i <= n; i++ {
		sum += math.Exp(logChoose(n, i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
