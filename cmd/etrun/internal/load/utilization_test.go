package load

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// instances is a server that runs some requests at once, each for 10 ms, and queues the others, on the clock of a synctest bubble.
type instances struct{ free chan struct{} }

const runTime = 10 * ms

func (s *instances) Send(ctx context.Context, _ int64) (Answer, error) {
	s.free <- struct{}{}
	defer func() { <-s.free }()
	if !await(ctx, runTime) {
		return Answer{}, ctx.Err()
	}
	return Answer{}, nil
}

// TestUtilization computes the table of docs/load.md: percentiles of the latency by the part of the instances' time that requests need,
// in multiples of the time of a run.
func TestUtilization(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/load.md")
	must(t, err)
	_, table, ok := strings.Cut(string(text), "| instances |")
	if !ok {
		t.Fatal("docs/load.md has no such table")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows, lines := 0, ""
	for _, line := range strings.Split(table, "\n")[2:] {
		var shown []float64
		for cell := range strings.SplitSeq(strings.Trim(line, "| "), "|") {
			for field := range strings.SplitSeq(cell, ",") {
				x, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
				must(t, err)
				shown = append(shown, x)
			}
		}
		n := int(shown[0])
		computed := []float64{shown[0]}
		lines += fmt.Sprintf("| %d |", n)
		for _, utilization := range []float64{0.3, 0.5, 0.7, 0.8, 0.9} {
			p := Plan{Rate: utilization * float64(n) / runTime.Seconds(), Random: true, Seed: 1, InFlight: 10_000,
				Warmup: 10 * time.Second, Duration: 100 * time.Second}
			var l *Level
			synctest.Test(t, func(t *testing.T) { // whose clock stands while a channel from outside is waited for
				l = p.Run(t.Context(), &instances{make(chan struct{}, n)})
			})
			computed = append(computed, l.Latency.P50.Value/10, l.Latency.P99.Value/10)
			lines += fmt.Sprintf(" %.1f, %.1f |", l.Latency.P50.Value/10, l.Latency.P99.Value/10)
		}
		lines += "\n"
		for i := range computed {
			if len(shown) != len(computed) || math.Abs(shown[i]-computed[i]) > 0.06 {
				t.Errorf("%d instances: the table has %v, computed %.1f", n, shown, computed)
				break
			}
		}
		rows++
	}
	if rows != 3 {
		t.Errorf("%d rows", rows)
	}
	t.Logf("computed:\n%s", lines)
}
