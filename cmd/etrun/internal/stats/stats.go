// Package stats summarizes series of times measured on machines with other load.
package stats

import (
	"slices"
	"time"
)

// Summary summarizes a series, in milliseconds. Percentiles use the nearest rank. Outliers
// are included.
type Summary struct {
	N        int     `json:"runs"`
	Min      float64 `json:"min"`
	P50      float64 `json:"p50"`
	P90      float64 `json:"p90"`
	P95      float64 `json:"p95"`
	P99      float64 `json:"p99"`
	Max      float64 `json:"max"`
	MAD      float64 `json:"mad"`      // median absolute deviation from the median
	Outliers int     `json:"outliers"` // farther from the median than 3 standard deviations, estimated from the MAD
}

// Of summarizes a series; that of an empty series is zero.
func Of(took []time.Duration) Summary {
	if len(took) == 0 {
		return Summary{}
	}
	s := slices.Sorted(slices.Values(took))
	median := rank(s, 50)
	deviations := make([]time.Duration, len(s))
	for i, d := range s {
		deviations[i] = (d - median).Abs()
	}
	slices.Sort(deviations)
	mad := rank(deviations, 50)
	outliers := 0
	for _, d := range deviations {
		if float64(d) > 3*perMAD*float64(mad) {
			outliers++
		}
	}
	return Summary{len(s), MS(s[0]), MS(median), MS(rank(s, 90)), MS(rank(s, 95)), MS(rank(s, 99)), MS(s[len(s)-1]), MS(mad), outliers}
}

// perMAD is the ratio of the standard deviation to the MAD of a normal distribution.
const perMAD = 1.4826

// rank returns a percentile of a sorted series.
func rank[T any](sorted []T, percent int) T { return sorted[(len(sorted)*percent+99)/100-1] }

// MS converts a duration to milliseconds.
func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Median returns the median of times, which need not be sorted.
func Median(took []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
