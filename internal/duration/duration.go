// Package duration formats measured times in the notation of Go with four digits: 302ns, 42.79µs, 5.000ms.
package duration

import (
	"math"
	"strconv"
	"time"
)

// units are those with a decimal fraction, the largest first.
var units = []struct {
	size   time.Duration
	suffix string
}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}}

// Format formats a time with four significant digits, of which trailing zeros are kept, so that columns of times
// have digits of the same precision. Times below 1 µs are exact, those of a minute or more have parts, as in 1m30s.
func Format(d time.Duration) string {
	if d < 0 {
		return "-" + Format(d.Abs())
	}
	d = rounded(d)
	if d >= time.Minute {
		return d.String()
	}
	for _, u := range units {
		if d >= u.size {
			v := float64(d) / float64(u.size)
			return strconv.FormatFloat(v, 'f', decimals(v), 64) + u.suffix
		}
	}
	if d == 0 {
		return "0s"
	}
	return strconv.FormatInt(int64(d), 10) + "ns"
}

// rounded rounds before the unit is chosen: 999.96 µs are 1.000ms, not 1000.0µs.
func rounded(d time.Duration) time.Duration {
	step := time.Duration(1)
	for d/step >= 10_000 {
		step *= 10
	}
	return d.Round(step)
}

func decimals(v float64) int {
	switch {
	case v >= 100:
		return 1
	case v >= 10:
		return 2
	}
	return 3
}

// FormatMS formats a number of milliseconds, the unit of reports in JSON. Numbers beyond the range of time.Duration are
// its ends, NaN is 0s.
func FormatMS(ms float64) string {
	ns := math.Round(ms * float64(time.Millisecond))
	switch {
	case math.IsNaN(ns):
		return Format(0)
	case ns >= math.MaxInt64:
		return Format(math.MaxInt64)
	case ns <= math.MinInt64:
		return Format(math.MinInt64)
	}
	return Format(time.Duration(ns))
}
