package text

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/etrun-go/etrun/internal/simd"
)

// Sampling configures how tokens are chosen. The zero value is greedy: it chooses the token with the
// highest logit and, of several, the one with the lowest id.
//
// The order of the steps is Bias, RepetitionPenalty, PresencePenalty and FrequencyPenalty,
// Temperature, TopK, TopP, MinP. Then one of the remaining tokens is drawn by its probability. Each
// draw uses one number of a rand.PCG seeded with Seed and 0: its upper 53 bits, as a fraction of 1.
// Probabilities are float32, and less than e^-87 of the highest one is 0.
// The same logits and seed give the same tokens on processors with the same vector instructions. With others, probabilities can
// differ by 2e-6 of them.
type Sampling struct {
	Temperature float64 // divides the logits; 0 is greedy
	TopK        int     // keeps the k most likely tokens; 0 keeps all
	TopP        float64 // keeps the most likely tokens whose probabilities reach p; 0 and 1 keep all
	MinP        float64 // keeps tokens at least p times as likely as the most likely one; 0 keeps all
	Seed        uint64
	// RepetitionPenalty divides the positive logits of tokens in the text, prompt included, and
	// multiplies the negative ones; 0 and 1 change nothing.
	RepetitionPenalty float64
	// PenaltyWindow is the number of last tokens to which RepetitionPenalty applies; 0 means all.
	PenaltyWindow int
	// PresencePenalty is subtracted from the logits of tokens that have been generated, once, and
	// FrequencyPenalty each time. Those of the prompt do not count.
	PresencePenalty, FrequencyPenalty float64
	// Bias is added to the logits of tokens; negative infinity excludes a token.
	Bias map[int]float32
}

func (o *Sampling) check(vocabulary int) error {
	for _, c := range []struct {
		name string
		x    float64
		ok   bool
		want string
	}{
		{"temperature", o.Temperature, o.Temperature >= 0 && o.Temperature <= 1e6, "0 (greedy), or a number up to 1e6"},
		{"top-k", float64(o.TopK), o.TopK >= 0, "0 (all) or a positive number"},
		{"top-p", o.TopP, o.TopP >= 0 && o.TopP <= 1, "a number from 0 to 1"},
		{"min-p", o.MinP, o.MinP >= 0 && o.MinP <= 1, "a number from 0 to 1"},
		{"repetition penalty", o.RepetitionPenalty, o.RepetitionPenalty >= 0 && o.RepetitionPenalty <= 1e6,
			"0 or 1 (none), or another number up to 1e6"},
		{"presence penalty", o.PresencePenalty, math.Abs(o.PresencePenalty) <= 1e6, "a number from -1e6 to 1e6"},
		{"frequency penalty", o.FrequencyPenalty, math.Abs(o.FrequencyPenalty) <= 1e6, "a number from -1e6 to 1e6"},
		{"penalty window", float64(o.PenaltyWindow), o.PenaltyWindow >= 0, "0 (all) or a positive number"},
	} {
		if !c.ok {
			return &OptionError{Option: c.name, Got: c.x, Want: c.want}
		}
	}
	for id, b := range o.Bias {
		if id < 0 || id >= vocabulary {
			return &OptionError{Option: "bias of a token", Got: id, Want: "a token below " + decimal(vocabulary)}
		}
		if b != b || math.IsInf(float64(b), 1) {
			return &OptionError{Option: "bias", Got: b, Want: "a number, or negative infinity"}
		}
	}
	return nil
}

// sampler chooses tokens. Its memory is reused from one text to the next.
type sampler struct {
	Sampling
	prompt int // tokens of the text that were not generated
	random rand.PCG
	logits []float32 // changed copy
	counts []int32   // per token: how often it is in the text that a penalty applies to
	ranking
	chosen []int     // memory of kept
	kept   []int     // the tokens that can be drawn; nil for all
	weight []float32 // of these, relative to the most likely one
	all    []float32 // weights of all tokens
}

func (s *sampler) start(o Sampling) {
	s.Sampling = o
	s.random.Seed(o.Seed, 0)
}

// choose returns the next token of a text; ok is false if biases and penalties leave none.
func (s *sampler) choose(logits []float32, text []int) (id int, ok bool) {
	logits = s.adjust(logits, text)
	best := argmax(logits)
	top := logits[best]
	if infinite := math.IsInf(float64(top), 0); infinite || s.Temperature == 0 {
		return best, !infinite
	}
	s.keep(logits, top)
	return s.draw(), true
}

// draw returns one of the kept tokens.
func (s *sampler) draw() int {
	x, at := float64(s.random.Uint64()>>11)/(1<<53)*total(s.weight), 0
	for i, w := range s.weight {
		if w > 0 {
			at = i
		}
		if x -= float64(w); x < 0 {
			break
		}
	}
	return s.token(at)
}

// token returns the token of a weight.
func (s *sampler) token(i int) int {
	if s.kept == nil {
		return i
	}
	return s.kept[i]
}

// total returns the sum of weights. Four sums are faster than one, in which each addition waits for the one before.
func total(list []float32) float64 {
	var sums [4]float64
	for ; len(list) >= len(sums); list = list[len(sums):] {
		for i := range sums {
			sums[i] += float64(list[i])
		}
	}
	for i, x := range list {
		sums[i] += float64(x)
	}
	return sums[0] + sums[1] + (sums[2] + sums[3])
}

// adjust returns the logits after biases and penalties, as a copy if it changes any.
func (s *sampler) adjust(logits []float32, text []int) []float32 {
	repeats := s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1
	occurs := s.PresencePenalty != 0 || s.FrequencyPenalty != 0
	if len(s.Bias) == 0 && !repeats && !occurs {
		return logits
	}
	s.logits = append(s.logits[:0], logits...)
	for id, b := range s.Bias {
		if id < len(s.logits) {
			s.logits[id] += b
		}
	}
	if repeats {
		last := text
		if n := s.PenaltyWindow; n > 0 && n < len(text) {
			last = text[len(text)-n:]
		}
		s.penalize(last, s.repeated)
	}
	if occurs {
		s.penalize(text[min(s.prompt, len(text)):], s.occurred)
	}
	return s.logits
}

// penalize changes the logit of each token of a text, once.
func (s *sampler) penalize(text []int, change func(x float32, count int32) float32) {
	if len(s.counts) < len(s.logits) {
		s.counts = make([]int32, len(s.logits))
	}
	for _, id := range text {
		if id >= 0 && id < len(s.logits) {
			s.counts[id]++
		}
	}
	for _, id := range text {
		if id >= 0 && id < len(s.logits) && s.counts[id] > 0 {
			s.logits[id] = change(s.logits[id], s.counts[id])
			s.counts[id] = 0
		}
	}
}

// repeated applies RepetitionPenalty.
func (s *sampler) repeated(x float32, _ int32) float32 {
	if x > 0 {
		return x / float32(s.RepetitionPenalty)
	}
	return x * float32(s.RepetitionPenalty)
}

// occurred applies PresencePenalty and FrequencyPenalty.
func (s *sampler) occurred(x float32, count int32) float32 {
	return x - float32(s.PresencePenalty+s.FrequencyPenalty*float64(count))
}

// keep sets kept and weight to the tokens that can be drawn. top is the highest logit.
func (s *sampler) keep(logits []float32, top float32) {
	switch {
	case s.TopK > 0 && s.TopK < len(logits):
		s.chosen, s.weight = s.chosen[:0], s.weight[:0]
		for _, id := range s.rank(logits, nil, float64(s.TopK), s.Temperature)[:s.TopK] {
			s.chosen, s.weight = append(s.chosen, int(id)), append(s.weight, logits[id])
		}
		s.kept = s.chosen
		s.weigh(s.weight, s.weight, top)
		if s.cuts() {
			s.truncate(s.TopP * total(s.weight))
		}
	case s.cuts():
		s.all = slices.Grow(s.all[:0], len(logits))[:len(logits)]
		s.weigh(s.all, logits, top)
		goal := s.TopP * total(s.all)
		s.chosen, s.weight = s.chosen[:0], s.weight[:0]
		for _, id := range s.rank(logits, s.all, goal, s.Temperature) {
			s.chosen, s.weight = append(s.chosen, int(id)), append(s.weight, s.all[id])
		}
		s.kept = s.chosen
		s.truncate(goal)
	default:
		s.kept, s.weight = nil, slices.Grow(s.weight[:0], len(logits))[:len(logits)]
		s.weigh(s.weight, logits, top)
	}
	s.dropBelow(float32(s.MinP))
}

// weigh sets dst to the probabilities of logits relative to that of the highest one. dst may be logits.
func (s *sampler) weigh(dst, logits []float32, top float32) {
	simd.ScaleShift(dst, logits, 1, -top) // before the division, whose results would be rounded more coarsely
	simd.ScaleShift(dst, dst, float32(min(1/s.Temperature, math.MaxFloat32)), 0)
	simd.ExpSum(dst, dst, 0)
}

// cuts reports whether TopP excludes tokens.
func (s *sampler) cuts() bool { return s.TopP > 0 && s.TopP < 1 }

// truncate keeps the first tokens whose weights reach goal, at least one.
func (s *sampler) truncate(goal float64) {
	sum := 0.0
	for i, w := range s.weight {
		if sum += float64(w); sum >= goal {
			s.kept, s.weight = s.kept[:i+1], s.weight[:i+1]
			return
		}
	}
}

// dropBelow removes tokens of a smaller weight.
func (s *sampler) dropBelow(least float32) {
	if least == 0 {
		return
	}
	kept, n := slices.Grow(s.chosen[:0], len(s.weight))[:len(s.weight)], 0
	for i, w := range s.weight {
		if w >= least {
			kept[n], s.weight[n] = s.token(i), w
			n++
		}
	}
	s.chosen, s.kept, s.weight = kept, kept[:n], s.weight[:n]
}
