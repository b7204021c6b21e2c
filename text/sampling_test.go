package text

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// reference computes the probabilities of Sampling from its definition, by sorting.
func reference(logits []float32, text []int, o Sampling) []float64 {
	x := make([]float64, len(logits))
	for i, l := range logits {
		x[i] = float64(l + o.Bias[i])
		if p := o.RepetitionPenalty; p != 0 && slices.Contains(text[max(0, len(text)-cmp.Or(o.PenaltyWindow, len(text))):], i) {
			if x[i] > 0 {
				x[i] = float64(float32(x[i]) / float32(p))
			} else {
				x[i] = float64(float32(x[i]) * float32(p))
			}
		}
		if n := count(text, i); n > 0 {
			x[i] = float64(float32(x[i]) - float32(o.PresencePenalty+o.FrequencyPenalty*float64(n)))
		}
		x[i] /= o.Temperature
	}
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case x[a] > x[b]:
			return -1
		case x[a] < x[b]:
			return 1
		}
		return 0
	})
	if o.TopK > 0 && o.TopK < len(order) {
		order = order[:o.TopK]
	}
	p := softmax(x, order)
	if o.TopP > 0 && o.TopP < 1 {
		sum, n := 0.0, 0
		for n < len(order) && sum < o.TopP {
			sum += p[order[n]]
			n++
		}
		p = softmax(x, order[:n])
	}
	top := p[order[0]]
	kept := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return p[i] < o.MinP*top || p[i] == 0 })
	return softmax(x, kept)
}

// count returns how often a token is in a text.
func count(text []int, id int) (n int) {
	for _, t := range text {
		if t == id {
			n++
		}
	}
	return n
}

// softmax returns the probabilities of some tokens; those of others are 0.
func softmax(x []float64, of []int) []float64 {
	p, sum := make([]float64, len(x)), 0.0
	for _, i := range of {
		p[i] = math.Exp(x[i] - x[of[0]])
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// TestSampling compares how often tokens are drawn with their probabilities.
func TestSampling(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := []int{3, 3, 5, 0, 11, 7, 7, 900}
	for _, o := range []Sampling{
		{Temperature: 1},
		{Temperature: 0.3},
		{Temperature: 3, TopK: 1},
		{Temperature: 1, TopK: 5},
		{Temperature: 1, TopK: 100},
		{Temperature: 1, TopP: 0.7},
		{Temperature: 1, TopP: 1e-9},
		{Temperature: 2, MinP: 0.2},
		{Temperature: 1, TopK: 7, TopP: 0.8, MinP: 0.1},
		{Temperature: 1, RepetitionPenalty: 1.5},
		{Temperature: 1, RepetitionPenalty: 0.8, PenaltyWindow: 3},
		{Temperature: 1, PresencePenalty: 1.5},
		{Temperature: 1, FrequencyPenalty: -0.7, TopP: 0.95},
		{Temperature: 1, PresencePenalty: -2, FrequencyPenalty: 1, RepetitionPenalty: 1.2, PenaltyWindow: 2},
		{Temperature: 1, RepetitionPenalty: 3, TopP: 0.9, Bias: map[int]float32{2: 4, 3: float32(math.Inf(-1))}},
	} {
		logits := make([]float32, 16)
		for i := range logits {
			logits[i] = float32(3 * r.NormFloat64())
		}
		logits[9] = logits[4] // a tie
		want := reference(logits, text, o)
		const draws = 20000
		for seed := range uint64(2) {
			var s sampler
			o.Seed = seed
			s.start(o)
			counts := make([]int, len(logits))
			for range draws {
				id, ok := s.choose(logits, text)
				if !ok {
					t.Fatalf("%+v: nothing chosen", o)
				}
				counts[id]++
			}
			for id, n := range counts {
				// six standard deviations
				if d := math.Abs(float64(n) - draws*want[id]); d > 6*math.Sqrt(draws*want[id]*(1-want[id]))+1e-6 {
					t.Errorf("%+v: token %d was drawn %d times of %d, want %.0f", o, id, n, draws, draws*want[id])
				}
			}
		}
	}
}

// TestGreedy checks the highest logit, after biases and penalties.
func TestGreedy(t *testing.T) {
	logits := []float32{1, 5, 4, 5, -2}
	for _, c := range []struct {
		o    Sampling
		text []int
		want int
	}{
		{Sampling{}, nil, 1},
		{Sampling{Seed: 5, TopK: 2, TopP: 0.1}, nil, 1},
		{Sampling{RepetitionPenalty: 2}, []int{1, 1}, 3},
		{Sampling{RepetitionPenalty: 2}, []int{1, 3}, 2},
		{Sampling{RepetitionPenalty: 2, PenaltyWindow: 1}, []int{1, 3}, 1},
		{Sampling{PresencePenalty: 0.5}, []int{1, 1}, 3},
		{Sampling{PresencePenalty: 2, FrequencyPenalty: 1}, []int{1, 3}, 2},
		{Sampling{FrequencyPenalty: 0.5}, []int{1, 3, 3}, 1},
		{Sampling{FrequencyPenalty: -2}, []int{2}, 2},
		{Sampling{Bias: map[int]float32{4: 8}}, nil, 4},
		{Sampling{Bias: map[int]float32{1: -1}}, nil, 3},
		{Sampling{Temperature: 1e-300, Bias: map[int]float32{1: -1}}, nil, 3},
		{Sampling{Temperature: 1e-300, TopP: 0.9, Bias: map[int]float32{1: -1}}, nil, 3},
		{Sampling{Temperature: 1e-300, TopK: 4, MinP: 0.1, Bias: map[int]float32{1: -1}}, nil, 3},
	} {
		var s sampler
		for range 2 { // the second time in used memory
			s.start(c.o)
			if got, ok := s.choose(logits, c.text); got != c.want || !ok {
				t.Errorf("%+v after %d: got %d, want %d", c.o, c.text, got, c.want)
			}
		}
	}
	if !slices.Equal(logits, []float32{1, 5, 4, 5, -2}) {
		t.Errorf("the logits are now %v", logits)
	}
}

// TestSeed checks that a seed gives the same tokens each time, and which tokens these are.
func TestSeed(t *testing.T) {
	logits := make([]float32, 1000)
	for i := range logits {
		logits[i] = float32(i%7) / 4
	}
	draw := func(o Sampling) (ids []int) {
		var s sampler
		s.start(o)
		for range 6 {
			id, _ := s.choose(logits, nil)
			ids = append(ids, id)
		}
		return ids
	}
	for _, c := range []struct {
		o    Sampling
		want []int
	}{
		{Sampling{Temperature: 1, Seed: 1}, []int{599, 89, 715, 25, 701, 556}},
		{Sampling{Temperature: 1, Seed: 2}, []int{682, 844, 398, 270, 111, 691}},
		{Sampling{Temperature: 0.5, TopK: 40, Seed: 1}, []int{167, 27, 202, 6, 202, 160}},
		{Sampling{Temperature: 0.5, TopP: 0.5, Seed: 1}, []int{741, 111, 881, 34, 867, 685}},
	} {
		if got, again := draw(c.o), draw(c.o); !slices.Equal(got, c.want) || !slices.Equal(got, again) {
			t.Errorf("%+v: got %d, then %d, want %d", c.o, got, again, c.want)
		}
	}
}

// TestSampleAllocations checks that choosing a token allocates nothing after the first one.
func TestSampleAllocations(t *testing.T) {
	logits := make([]float32, 5000)
	for i := range logits {
		logits[i] = float32(i*7919%5000) / 500
	}
	for _, o := range []Sampling{
		{}, {Temperature: 1}, {Temperature: 1, TopK: 40, TopP: 0.9, MinP: 0.01}, {Temperature: 1, TopP: 0.9, RepetitionPenalty: 1.1},
		{Temperature: 1, PresencePenalty: 1, FrequencyPenalty: 1},
	} {
		var s sampler
		s.start(o)
		text := []int{1, 2, 3}
		s.choose(logits, text)
		if n := testing.AllocsPerRun(20, func() { s.choose(logits, text) }); n > 0 {
			t.Errorf("%+v: %v allocations", o, n)
		}
	}
}

// TestPenalizedText checks that the prompt does not count for presence and frequency penalties.
func TestPenalizedText(t *testing.T) {
	f := fakeDefault()
	f.fault = func(_ []int64, logits []float32) error {
		for v := range logits {
			logits[v] = -float32(v) // greedy: 0, again and again
		}
		return nil
	}
	for _, c := range []struct {
		o    Sampling
		want []int
	}{
		{Sampling{}, []int{0, 0, 0, 0, 0, 0}},
		{Sampling{PresencePenalty: 1.5}, []int{0, 1, 0, 0, 0, 0}},
		{Sampling{FrequencyPenalty: 1.5}, []int{0, 1, 0, 2, 1, 0}},
		{Sampling{PresencePenalty: -1}, []int{0, 0, 0, 0, 0, 0}},
	} {
		got, _, _, err := collect(sessionOf(t, f.load(t, nil)).GenerateTokens(context.Background(), []int{0, 0, 1}, Options{Sampling: c.o, MaxTokens: 6}))
		if !slices.Equal(got, c.want) || err != nil {
			t.Errorf("%+v: got %d, %v, want %d", c.o, got, err, c.want)
		}
	}
}

// distributions are logits of a vocabulary of 128,256 tokens.
var distributions = []struct {
	name  string
	logit func(r *rand.Rand) float32
}{
	{"normal", func(r *rand.Rand) float32 { return float32(2 * r.NormFloat64()) }},
	{"flat", func(r *rand.Rand) float32 { return float32(1e-3 * r.NormFloat64()) }},
	{"peaked", func(r *rand.Rand) float32 { return float32(2*r.NormFloat64() + 12*math.Floor(r.ExpFloat64()/8)) }},
}

func BenchmarkSampling(b *testing.B) {
	for _, d := range distributions {
		logits := make([]float32, 128256)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range logits {
			logits[i] = d.logit(r)
		}
		for _, o := range []Sampling{{}, {Temperature: 0.8}, {Temperature: 0.8, TopK: 40}, {Temperature: 0.8, TopP: 0.9},
			{Temperature: 0.8, TopP: 0.99}, {Temperature: 0.8, MinP: 0.05}} {
			b.Run(fmt.Sprintf("%s, temperature %v, top-k %d, top-p %v, min-p %v", d.name, o.Temperature, o.TopK, o.TopP, o.MinP), func(b *testing.B) {
				var s sampler
				s.start(o)
				for b.Loop() {
					s.choose(logits, nil)
				}
			})
		}
	}
}
