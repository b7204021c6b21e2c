package text

import (
	"math"
	"math/rand/v2"
)

// Sampling configures how tokens are chosen. The zero value is greedy: it chooses the token with the
// highest logit and, of several, the one with the lowest id.
//
// The order of the steps is Bias, RepetitionPenalty, Temperature, TopK, TopP, MinP. Then one of the
// remaining tokens is drawn by its probability. Each draw uses one number of a rand.PCG seeded with
// Seed and 0: its upper 53 bits, as a fraction of 1. The same logits and seed give the same tokens.
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
		{"temperature", o.Temperature, o.Temperature >= 0 && o.Temperature <= 1e6, "0 (greedy) or a positive number"},
		{"top-k", float64(o.TopK), o.TopK >= 0, "0 (all) or a positive number"},
		{"top-p", o.TopP, o.TopP >= 0 && o.TopP <= 1, "a number from 0 to 1"},
		{"min-p", o.MinP, o.MinP >= 0 && o.MinP <= 1, "a number from 0 to 1"},
		{"repetition penalty", o.RepetitionPenalty, o.RepetitionPenalty >= 0 && o.RepetitionPenalty <= 1e6,
			"0 or 1 (none), or another positive number"},
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
	random rand.PCG
	logits []float32 // changed copy
	seen   []bool    // per token: the penalty has been applied
	heap   []int     // tokens, the most likely first
	kept   []int
	weight []float64 // of the kept tokens, relative to the most likely one
}

func (s *sampler) start(o Sampling) {
	s.Sampling = o
	s.random.Seed(o.Seed, 0)
}

// choose returns the next token of a text; ok is false if biases and penalties leave none.
func (s *sampler) choose(logits []float32, text []int) (id int, ok bool) {
	logits = s.adjust(logits, text)
	best := argmax(logits)
	if top := float64(logits[best]); math.IsInf(top, 0) || s.Temperature == 0 {
		return best, !math.IsInf(top, 0)
	}
	s.keep(logits, float64(logits[best]))
	return s.draw(), true
}

// argmax returns the first of the highest numbers.
func argmax(logits []float32) (at int) {
	top := logits[0]
	for i, x := range logits {
		if x > top {
			at, top = i, x
		}
	}
	return at
}

// draw returns one of the kept tokens.
func (s *sampler) draw() (id int) {
	x := float64(s.random.Uint64()>>11) / (1 << 53) * total(s.weight)
	for i, w := range s.weight {
		if w > 0 {
			id = s.kept[i]
		}
		if x -= w; x < 0 {
			break
		}
	}
	return id
}

func total(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}

// adjust returns the logits after biases and penalties, as a copy if it changes any.
func (s *sampler) adjust(logits []float32, text []int) []float32 {
	penalize := s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1
	if len(s.Bias) == 0 && !penalize {
		return logits
	}
	s.logits = append(s.logits[:0], logits...)
	for id, b := range s.Bias {
		if id < len(s.logits) {
			s.logits[id] += b
		}
	}
	if penalize {
		s.penalize(text)
	}
	return s.logits
}

// penalize makes each token of the text less likely, once.
func (s *sampler) penalize(text []int) {
	if n := s.PenaltyWindow; n > 0 && n < len(text) {
		text = text[len(text)-n:]
	}
	if len(s.seen) < len(s.logits) {
		s.seen = make([]bool, len(s.logits))
	}
	p := float32(s.RepetitionPenalty)
	for _, id := range text {
		switch {
		case id >= len(s.logits) || s.seen[id]:
			continue
		case s.logits[id] > 0:
			s.logits[id] /= p
		default:
			s.logits[id] *= p
		}
		s.seen[id] = true
	}
	for _, id := range text {
		if id < len(s.seen) {
			s.seen[id] = false
		}
	}
}

// keep sets kept and weight to the tokens that can be drawn. top is the highest logit.
func (s *sampler) keep(logits []float32, top float64) {
	s.kept, s.weight = s.kept[:0], s.weight[:0]
	weigh := func(id int) float64 { return math.Exp((float64(logits[id]) - top) / s.Temperature) }
	add := func(id int) float64 {
		w := weigh(id)
		s.kept, s.weight = append(s.kept, id), append(s.weight, w)
		return w
	}
	switch {
	case s.TopK > 0 && s.TopK < len(logits):
		s.heapify(logits)
		for range s.TopK {
			add(s.pop(logits))
		}
		if s.cuts() {
			s.truncate(s.TopP * total(s.weight))
		}
	case s.cuts():
		s.heapify(logits)
		all := 0.0
		for id := range logits {
			all += weigh(id)
		}
		for sum := 0.0; sum < s.TopP*all && len(s.heap) > 0; {
			sum += add(s.pop(logits))
		}
	default:
		for id := range logits {
			add(id)
		}
	}
	s.dropBelow(s.MinP)
}

// cuts reports whether TopP excludes tokens.
func (s *sampler) cuts() bool { return s.TopP > 0 && s.TopP < 1 }

// truncate keeps the first tokens whose weights reach goal, at least one.
func (s *sampler) truncate(goal float64) {
	sum := 0.0
	for i, w := range s.weight {
		if sum += w; sum >= goal {
			s.kept, s.weight = s.kept[:i+1], s.weight[:i+1]
			return
		}
	}
}

// dropBelow removes tokens of a smaller weight.
func (s *sampler) dropBelow(least float64) {
	if least == 0 {
		return
	}
	n := 0
	for i, w := range s.weight {
		if w >= least {
			s.kept[n], s.weight[n] = s.kept[i], w
			n++
		}
	}
	s.kept, s.weight = s.kept[:n], s.weight[:n]
}

// heapify makes a heap of all tokens.
func (s *sampler) heapify(logits []float32) {
	s.heap = s.heap[:0]
	for id := range logits {
		s.heap = append(s.heap, id)
	}
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.sift(logits, i)
	}
}

// pop removes the most likely token from the heap.
func (s *sampler) pop(logits []float32) int {
	first, last := s.heap[0], len(s.heap)-1
	s.heap[0] = s.heap[last]
	s.heap = s.heap[:last]
	s.sift(logits, 0)
	return first
}

// sift moves the token at place i down to its place in the heap.
func (s *sampler) sift(logits []float32, i int) {
	before := func(a, b int) bool { // of tokens
		return logits[a] > logits[b] || logits[a] == logits[b] && a < b
	}
	for {
		child := 2*i + 1
		if child >= len(s.heap) {
			return
		}
		if child+1 < len(s.heap) && before(s.heap[child+1], s.heap[child]) {
			child++
		}
		if !before(s.heap[child], s.heap[i]) {
			return
		}
		s.heap[i], s.heap[child] = s.heap[child], s.heap[i]
		i = child
	}
}
