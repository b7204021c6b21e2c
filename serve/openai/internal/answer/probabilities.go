package answer

import (
	"cmp"
	"math"
	"strings"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
)

// candidate is a token with its probability.
type candidate struct {
	Token   string  `json:"token"`
	LogProb float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`

	id int
}

// tokenItem is a generated token, and the most likely ones.
type tokenItem struct {
	candidate
	Top []candidate `json:"top_logprobs"` // not nil
}

// items returns tokens with their probabilities, nil if they were not asked for.
func (a *Sink) items(tokens []text.Token) (list []tokenItem) {
	if !a.LogProbs {
		return nil
	}
	for _, t := range tokens {
		item := tokenItem{a.candidate(t.ID, t.LogProb), make([]candidate, len(t.Top))}
		for i, c := range t.Top {
			item.Top[i] = a.candidate(c.ID, c.LogProb)
		}
		list = append(list, item)
	}
	return list
}

func (a *Sink) candidate(id int, p float32) candidate {
	b, _ := a.tokenizer.Append(nil, id) // unknown tokens have no text
	c := candidate{Token: strings.ToValidUTF8(string(b), "\uFFFD"), LogProb: max(float64(p), -math.MaxFloat32),
		Bytes: make([]int, len(b)), id: id}
	for i, x := range b {
		c.Bytes[i] = int(x)
	}
	return c
}

// probabilities are those of the tokens of a choice, or of a part of it.
type probabilities interface {
	add(hold *serve.Reservation, t *tokenItem, c *choice) error
}

// completionLP holds the probabilities of a completion's tokens.
type completionLP struct {
	Tokens  List `json:"tokens"`
	Values  List `json:"token_logprobs"` // null for the first token of a text
	Top     List `json:"top_logprobs"`   // likewise
	Offsets List `json:"text_offset"`    // in characters
}

func (l *completionLP) add(hold *serve.Reservation, t *tokenItem, c *choice) error {
	var value, top any
	if !math.IsNaN(t.LogProb) {
		value, top = t.LogProb, t.likely()
	}
	return cmp.Or(l.Tokens.Add(hold, t.Token), l.Values.Add(hold, value), l.Top.Add(hold, top), l.Offsets.Add(hold, c.offsets.next(t.id)))
}

// likely returns the most likely tokens and the token itself, which is one more than were asked for unless it is among them. Of tokens
// with the same text the most likely one counts.
func (t *tokenItem) likely() map[string]float64 {
	top := make(map[string]float64, len(t.Top)+1)
	for _, x := range append(t.Top, t.candidate) {
		if p, ok := top[x.Token]; !ok || p < x.LogProb {
			top[x.Token] = x.LogProb
		}
	}
	return top
}

// chatLP holds the probabilities of a reply's tokens.
type chatLP struct {
	Content List `json:"content"`
	Refusal any  `json:"refusal"` // always nil
}

func (l *chatLP) add(hold *serve.Reservation, t *tokenItem, _ *choice) error {
	return l.Content.Add(hold, t)
}
