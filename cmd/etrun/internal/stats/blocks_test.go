package stats

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// pointsOf returns n points in blocks, of times that are uniform in 0 to 100 ms, plus a shift by block.
func pointsOf(seed uint64, n, blocks int, shift time.Duration) (points []Point) {
	r := rand.New(rand.NewPCG(seed, 1))
	shifts := make([]time.Duration, blocks)
	for i := range shifts {
		shifts[i] = time.Duration(r.Float64() * float64(shift))
	}
	for i := range n {
		block := i * blocks / n
		points = append(points, Point{block, shifts[block] + time.Duration(r.Float64()*100e6)})
	}
	return points
}

// The nearest rank: the smallest value that is at least as large as so many per cent of all.
func TestPercentilesByRank(t *testing.T) {
	var points []Point
	for i := range 200 {
		points = append(points, Point{0, time.Duration(200-i) * time.Millisecond})
	}
	for _, tt := range []struct{ percent, want float64 }{
		{0, 1}, {0.5, 1}, {0.6, 2}, {50, 100}, {99, 198}, {99.5, 199}, {99.6, 200}, {100, 200},
	} {
		if e := Percentiles(points, 1, tt.percent)[0]; e.Value != tt.want || e.Low != 0 || e.High != 0 {
			t.Errorf("%g %%: %+v, want %g without an interval", tt.percent, e, tt.want)
		}
	}
	if e := Percentiles(nil, 1, 50); len(e) != 1 || e[0] != (Estimate{}) {
		t.Errorf("of nothing %v", e)
	}
}

// Intervals contain the true percentile in most series, also of points that depend on their block; single percentiles with too few
// points beyond have none.
func TestPercentileIntervals(t *testing.T) {
	const rounds = 30
	for _, tt := range []struct {
		shift time.Duration
		n     int
		want  float64 // the true median
	}{{0, 900, 50}, {0, 8000, 50}, {40 * time.Millisecond, 3000, 70}} {
		within := 0
		for seed := range uint64(rounds) {
			e := Percentiles(pointsOf(seed, tt.n, 30, tt.shift), 30, 50, 99.9)
			if e[0].Low > e[0].Value || e[0].High < e[0].Value || e[0].Low == e[0].High {
				t.Fatalf("%+v", e[0])
			}
			if tt.n < 5000 && e[1].High != 0 || tt.n > 5000 && e[1].High < e[1].Value {
				t.Errorf("%d points: 99.9 %% has %+v", tt.n, e[1])
			}
			if e[0].Low <= tt.want && tt.want <= e[0].High {
				within++
			}
		}
		if within < rounds*8/10 {
			t.Errorf("shift %v, %d points: %d of %d intervals contain the median", tt.shift, tt.n, within, rounds)
		}
	}
}

// Groups of adjacent points bound the time without moving the bounds by more than a group.
func TestPercentilesOfGroups(t *testing.T) {
	few, many := pointsOf(3, maxGroups, 30, 0), []Point(nil)
	for _, p := range few {
		for range 4 {
			many = append(many, p)
		}
	}
	a, b := Percentiles(few, 30, 50, 90, 99), Percentiles(many, 30, 50, 90, 99)
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("%+v, with four times the points %+v", a[i], b[i])
		}
	}
}

func TestTotal(t *testing.T) {
	blocks := make([]float64, 30)
	for i := range blocks {
		blocks[i] = 10
	}
	if e := Total(blocks, 3); e != (Estimate{100, 100, 100}) {
		t.Errorf("equal blocks: %+v", e)
	}
	blocks[7] = 310
	if e := Total(blocks, 3); e.Value != 200 || e.Low < 100 || e.Low >= 200 || e.High <= 200 {
		t.Errorf("one more: %+v", e)
	}
	if e := Total(blocks[:5], 1); e != (Estimate{Value: 50}) {
		t.Errorf("few blocks: %+v", e)
	}
}

// Points are sorted by all of their bits: on processors of 32 bits a difference of 3 s is none of an int.
func TestFarPoints(t *testing.T) {
	points := []Point{{0, math.MaxInt64}, {0, -5}, {0, 7}}
	for i, e := range Percentiles(points, 1, 1, 50, 99) {
		if want := []time.Duration{-5, 7, math.MaxInt64}[i]; e.Value != MS(want) {
			t.Errorf("rank %d: %g, want %v", i, e.Value, want)
		}
	}
}
