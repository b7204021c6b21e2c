// Package bench measures the time of runs, of one arm or of several alternating ones.
package bench

import (
	"context"
	"slices"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
)

// Arm is one measured configuration.
type Arm struct {
	// Run runs once and returns the time.
	Run func(ctx context.Context) (time.Duration, error)
	// Reopen closes the program, and returns a function that opens it again; nil if not
	// possible. Memory addresses change times by some per cent, and stay the same until a
	// program is opened again.
	Reopen func() (open func(ctx context.Context) error)

	First   time.Duration   // time of the first run
	Warmup  int             // runs between the first and the steady state
	Runs    []time.Duration // steady state, in order
	PerCell int             // runs per cell
	Cells   []float64       // median of each cell, in milliseconds
}

// Plan sets the length and the rate of a measurement.
type Plan struct {
	Duration time.Duration // steady state of all arms together
	Rate     float64       // runs per second, 0 for back to back
}

// The steady state of several arms consists of blocks in which each arm has two cells, in
// the order ABBA. A single arm has cells only.
const (
	blocks   = 30 // target number
	minCells = 5  // per arm
)

const longestWarmup = time.Second

// Measure runs all arms: first runs, warm-up, steady state. If ctx ends it, the arms hold
// the measurements so far.
func (p Plan) Measure(ctx context.Context, arms []*Arm) error {
	pace := &pacer{ctx: ctx}
	if p.Rate > 0 {
		pace.interval = time.Duration(float64(time.Second) / p.Rate)
	}
	for _, a := range arms {
		if err := p.begin(pace, a); err != nil {
			return err
		}
	}
	begun, reopening := time.Now(), time.Duration(0)
	for n := 0; !p.enough(arms, time.Since(begun)); n++ {
		if len(arms) > 1 && n > 0 && reopening <= time.Since(begun)/4 {
			took, err := reopen(pace, arms, n%2 == 1)
			if err != nil {
				return err
			}
			reopening += took
		}
		if err := block(pace, arms); err != nil {
			return err
		}
	}
	return nil
}

// block adds two cells to each arm, in forward and then in reverse order.
func block(pace *pacer, arms []*Arm) error {
	for _, a := range arms {
		if err := a.cell(pace); err != nil {
			return err
		}
	}
	for _, a := range slices.Backward(arms) {
		if err := a.cell(pace); err != nil {
			return err
		}
	}
	return nil
}

// reopen closes all arms and opens them again, in reverse order every other time, so that
// no arm always has the same addresses.
func reopen(pace *pacer, arms []*Arm, turned bool) (time.Duration, error) {
	begun := time.Now()
	if slices.ContainsFunc(arms, func(a *Arm) bool { return a.Reopen == nil }) {
		return 0, nil
	}
	opens := make([]func(context.Context) error, len(arms))
	for i, a := range arms {
		opens[i] = a.Reopen()
	}
	for i := range opens {
		k := i
		if turned {
			k = len(arms) - 1 - i
		}
		if err := opens[k](pace.ctx); err != nil {
			return 0, err
		}
		for range 2 { // first runs, not measured
			if _, err := arms[k].once(pace); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(begun), nil
}

// enough reports the end of the steady state: the time is over, and there are enough cells.
func (p Plan) enough(arms []*Arm, took time.Duration) bool {
	least := minCells
	if len(arms) > 1 {
		least = 2 * stats.MinBlocks
	}
	return took >= p.Duration && len(arms[len(arms)-1].Cells) >= least
}

// begin runs an arm for the first time, warms it up and determines its cell size. The arm
// is warm when the medians of two successive windows differ by less than 2 %, or after a
// fifth of the duration.
func (p Plan) begin(pace *pacer, a *Arm) (err error) {
	if a.First, err = a.once(pace); err != nil {
		return err
	}
	const window = 5
	var took []time.Duration
	begun, last := time.Now(), time.Duration(0)
	for time.Since(begun) < min(p.Duration/5, longestWarmup) {
		d, err := a.once(pace)
		if err != nil {
			return err
		}
		a.Warmup++
		if took = append(took, d); len(took) < window {
			continue
		}
		now := stats.Median(took)
		if took = took[:0]; (now - last).Abs() < last/50 {
			last = now
			break
		}
		last = now
	}
	if last == 0 {
		last = stats.Median(append(took, a.First))
	}
	cell := p.Duration / (2 * blocks)
	a.PerCell = max(1, int(cell/max(last, pace.interval, 1)))
	return nil
}

func (a *Arm) once(pace *pacer) (time.Duration, error) {
	if err := pace.wait(); err != nil {
		return 0, err
	}
	return a.Run(pace.ctx)
}

// cell measures one cell.
func (a *Arm) cell(pace *pacer) error {
	from := len(a.Runs)
	for range a.PerCell {
		d, err := a.once(pace)
		if err != nil {
			return err
		}
		a.Runs = append(a.Runs, d)
	}
	a.Cells = append(a.Cells, stats.MS(stats.Median(a.Runs[from:])))
	return nil
}

// pacer starts runs at a rate. A late run starts at once; the runs after it keep the
// original schedule.
type pacer struct {
	ctx      context.Context
	interval time.Duration // 0 for no pauses
	next     time.Time
}

func (p *pacer) wait() error {
	if p.interval == 0 {
		return context.Cause(p.ctx)
	}
	now := time.Now()
	if left := p.next.Sub(now); left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-p.ctx.Done():
		case <-timer.C:
		}
		now = p.next
	}
	p.next = now.Add(p.interval)
	return context.Cause(p.ctx)
}
