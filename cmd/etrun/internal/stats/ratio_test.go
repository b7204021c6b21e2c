package stats

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// noises are models of measurement noise: a factor by index of the cell.
var noises = []struct {
	name string
	make func(r *rand.Rand) func(i int) float64
}{
	{"quiet", func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return 1 + 0.01*r.NormFloat64() }
	}},
	{"skewed", func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return 1 + 0.05*r.ExpFloat64() }
	}},
	{"stalls", func(r *rand.Rand) func(int) float64 {
		return func(int) float64 {
			if r.IntN(10) == 0 {
				return 1 + 5*r.Float64()
			}
			return 1 + 0.01*r.NormFloat64()
		}
	}},
	{"drift", func(r *rand.Rand) func(int) float64 {
		slope := 0.01 * r.NormFloat64()
		return func(i int) float64 { return 1 + slope*float64(i) + 0.01*r.NormFloat64() }
	}},
	{"two speeds", func(r *rand.Rand) func(int) float64 { // of a clock that changes occasionally
		slow := false
		return func(int) float64 {
			if r.IntN(15) == 0 {
				slow = !slow
			}
			if slow {
				return 1.4 + 0.01*r.NormFloat64()
			}
			return 1 + 0.01*r.NormFloat64()
		}
	}},
}

// series simulates two arms in the order ABBA, with B taking ratio times as long as A.
func series(r *rand.Rand, noise func(int) float64, blocks int, ratio float64) (a, b []float64) {
	for i := range 4 * blocks {
		if n := noise(i); i%4 == 0 || i%4 == 3 {
			a = append(a, n)
		} else {
			b = append(b, n*ratio)
		}
	}
	return a, b
}

// For two equal arms the interval contains 1 in at least 95 of 100 measurements, with any noise;
// for two clearly different arms it excludes 1.
func TestCompareHoldsTheRatio(t *testing.T) {
	const trials = 400
	for _, noise := range noises {
		for _, blocks := range []int{MinBlocks, 11, 12, 30, 100} {
			held, resolved := 0, 0
			for trial := range uint64(trials) {
				r := rand.New(rand.NewPCG(trial, 7))
				a, b := series(r, noise.make(r), blocks, 1)
				if c := Compare(a, b); !c.Resolved() {
					held++
				}
				for i := range b {
					b[i] *= 1.25
				}
				if c := Compare(a, b); c.Low > 1 {
					resolved++
				}
			}
			if held < trials*95/100 {
				t.Errorf("%s, %d blocks: the interval holds 1 in %d of %d", noise.name, blocks, held, trials)
			}
			if least := map[int]int{30: 80, 100: 99}[blocks]; resolved < trials*least/100 {
				t.Errorf("%s, %d blocks: a ratio of 1.25 is resolved in %d of %d", noise.name, blocks, resolved, trials)
			}
			t.Logf("%s, %d blocks: held %d, resolved 1.25 %d of %d", noise.name, blocks, held, resolved, trials)
		}
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b []float64
		want Ratio
	}{
		{"nothing", nil, []float64{5, 5}, Ratio{Level: Level}},
		{"few blocks", []float64{10, 10, 10, 10}, []float64{5, 5, 5, 5, 5}, Ratio{Value: 0.5, Level: Level, Blocks: 2}},
		{"no noise", slices.Repeat([]float64{10}, 20), slices.Repeat([]float64{5}, 20), Ratio{0.5, 0.5, 0.5, Level, 10}},
		{"a drift that cancels", []float64{1, 4}, []float64{2, 2}, Ratio{Value: 1, Level: Level, Blocks: 1}},
	} {
		if got := Compare(c.a, c.b); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The rank equals that of a bootstrap with random resamples.
func TestBootstrapRank(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{8, 9, 21, 50} {
		const draws = 20000
		below := make([]int, n+1) // resamples whose median is at or below a rank
		for range draws {
			ranks := make([]int, n)
			for i := range ranks {
				ranks[i] = 1 + r.IntN(n)
			}
			slices.Sort(ranks)
			below[ranks[(n-1)/2]]++
		}
		want, sum := 1, below[1]+below[2]
		for sum <= draws*5/100 {
			want++
			sum += below[want+1]
		}
		if got := bootstrapRank(n, 0.05); got != want {
			t.Errorf("%d elements: rank %d, want %d", n, got, want)
		}
	}
}
