package stats

import (
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	var ten []time.Duration
	for i := 10; i > 0; i-- {
		ten = append(ten, time.Duration(i)*time.Millisecond)
	}
	stalled := append([]time.Duration{time.Second}, ten...)
	for _, c := range []struct {
		name string
		took []time.Duration
		want Summary
	}{
		{"none", nil, Summary{}},
		{"one", ten[:1], Summary{N: 1, Min: 10, P50: 10, P90: 10, P95: 10, P99: 10, Max: 10}},
		{"ten", ten, Summary{N: 10, Min: 1, P50: 5, P90: 9, P95: 10, P99: 10, Max: 10, MAD: 2}},
		{"one stall", stalled, Summary{N: 11, Min: 1, P50: 6, P90: 10, P95: 1000, P99: 1000, Max: 1000, MAD: 3, Outliers: 1}},
	} {
		if got := Of(c.took); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
