package text

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRank compares the order of tokens with that of a stable sort, also of extreme and equal logits.
func TestRank(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	infinite := float32(math.Inf(-1))
	for _, c := range []struct {
		name  string
		logit func() float32
	}{
		{"normal", func() float32 { return float32(r.NormFloat64()) }},
		{"narrow", func() float32 { return float32(1 + 1e-6*r.NormFloat64()) }},
		{"equal", func() float32 { return 3 }},
		{"few values", func() float32 { return float32(r.IntN(5)) - 2 }},
		{"zeros", func() float32 { return []float32{0, float32(math.Copysign(0, -1)), 1e-45, -1e-45}[r.IntN(4)] }},
		{"any number", func() float32 { return finite(r) }},
		{"excluded ones", func() float32 { return []float32{infinite, -3, 2, -math.MaxFloat32, math.MaxFloat32}[r.IntN(5)] }},
		{"nearly all excluded", func() float32 { return []float32{infinite, 7}[r.IntN(500)/499] }},
	} {
		logits := make([]float32, 3000)
		for i := range logits {
			logits[i] = c.logit()
		}
		want := make([]uint32, len(logits))
		for i := range want {
			want[i] = uint32(i)
		}
		slices.SortStableFunc(want, func(a, b uint32) int {
			switch {
			case logits[a] > logits[b]:
				return -1
			case logits[a] < logits[b]:
				return 1
			}
			return 0
		})
		var rank ranking
		for _, temperature := range []float64{1, 1e-300, 1e-3, 50, 1e6} {
			for _, goal := range []float64{0, 1, 17, 2999, 3000, 1e9} {
				got := rank.rank(logits, nil, goal, temperature)
				if n := min(len(logits), int(goal)); len(got) < n || !slices.Equal(got, want[:len(got)]) {
					t.Fatalf("%s, temperature %g, %g of %d: got %d tokens, not the first of the sorted ones", c.name, temperature, goal, len(logits), len(got))
				}
			}
		}
	}
}

// finite returns a number with random bits.
func finite(r *rand.Rand) float32 {
	for {
		if x := math.Float32frombits(r.Uint32()); x-x == 0 {
			return x
		}
	}
}

// TestArgmax compares the index of the largest number with that of a plain search, with several largest ones in any blocks.
func TestArgmax(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 3000; n += 1 + n/8 {
		list := make([]float32, n)
		for range 20 {
			for i := range list {
				list[i] = float32(r.IntN(n)) - float32(n)
			}
			if want := slices.Index(list, slices.Max(list)); argmax(list) != want {
				t.Fatalf("%d numbers: got %d, want %d", n, argmax(list), want)
			}
		}
		for i := range list {
			list[i] = float32(math.Inf(-1))
		}
		if got := argmax(list); got != 0 {
			t.Errorf("%d times -Inf: got %d", n, got)
		}
	}
}
