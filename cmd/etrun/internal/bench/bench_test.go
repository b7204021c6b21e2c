package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
)

// fake returns an arm with fixed times that records its name in order.
func fake(order *strings.Builder, name string, took, warm time.Duration) *Arm {
	n := 0
	return &Arm{Run: func(context.Context) (time.Duration, error) {
		order.WriteString(name)
		time.Sleep(100 * time.Microsecond)
		if n++; n == 1 {
			return took, nil
		}
		return warm, nil
	}}
}

func TestMeasure(t *testing.T) { synctest.Test(t, measure) }

func measure(t *testing.T) {
	var order strings.Builder
	arms := []*Arm{fake(&order, "A", 9*time.Second, time.Second), fake(&order, "B", 9*time.Second, 2*time.Second)}
	if err := (Plan{Duration: 20 * time.Millisecond}).Measure(t.Context(), arms); err != nil {
		t.Fatal(err)
	}
	for i, a := range arms {
		if a.First != 9*time.Second || a.PerCell != 1 || len(a.Cells) < 2*stats.MinBlocks || len(a.Cells)%2 != 0 {
			t.Errorf("arm %d: first %v, %d runs in each of %d cells", i, a.First, a.PerCell, len(a.Cells))
		}
		if want := float64(1000 * (i + 1)); a.Cells[0] != want {
			t.Errorf("arm %d: cell of %v ms, want %v", i, a.Cells[0], want)
		}
	}
	steady := order.String()[2+arms[0].Warmup+arms[1].Warmup:]
	if steady != strings.Repeat("ABBA", len(steady)/4) {
		t.Errorf("order %s, want ABBA", steady)
	}
}

func TestMeasureStopsWarmingUp(t *testing.T) { synctest.Test(t, measureStopsWarmingUp) }

func measureStopsWarmingUp(t *testing.T) {
	var order strings.Builder
	a := fake(&order, "A", time.Millisecond, time.Millisecond)
	if err := (Plan{Duration: time.Second}).Measure(t.Context(), []*Arm{a}); err != nil {
		t.Fatal(err)
	}
	if a.Warmup != 10 || a.PerCell != 16 || len(a.Runs) != a.PerCell*len(a.Cells) { // two windows; 1 s in 60 cells
		t.Errorf("%d runs of warm-up, %d runs of %d in each of %d cells", a.Warmup, len(a.Runs), a.PerCell, len(a.Cells))
	}
}

// The measurements before an interrupt are kept.
func TestMeasureInterrupted(t *testing.T) { synctest.Test(t, measureInterrupted) }

func measureInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	n := 0
	a := &Arm{Run: func(context.Context) (time.Duration, error) {
		if n++; n == 40 {
			cancel(reason)
		}
		return time.Millisecond, nil
	}}
	if err := (Plan{Duration: time.Hour, Rate: 1e6}).Measure(ctx, []*Arm{a}); !errors.Is(err, reason) {
		t.Fatalf("got %v, want %v", err, reason)
	}
	if got := 1 + a.Warmup + len(a.Runs); got != 40 || len(a.Runs) == 0 {
		t.Errorf("%d runs are kept, of them %d of the steady state, want 40", got, len(a.Runs))
	}
}

func TestRate(t *testing.T) { synctest.Test(t, rate) }

func rate(t *testing.T) {
	var starts []time.Time
	a := &Arm{Run: func(context.Context) (time.Duration, error) {
		starts = append(starts, time.Now())
		return time.Microsecond, nil
	}}
	if err := (Plan{Duration: 100 * time.Millisecond, Rate: 200}).Measure(t.Context(), []*Arm{a}); err != nil {
		t.Fatal(err)
	}
	took := starts[len(starts)-1].Sub(starts[0])
	if least := time.Duration(len(starts)-1) * 5 * time.Millisecond; took < least {
		t.Errorf("%d runs in %v, want %v at least", len(starts), took, least)
	}
}
