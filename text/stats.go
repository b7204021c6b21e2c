package text

import "time"

// Finish is the reason why a text ended.
type Finish string

// Reasons.
const (
	FinishStop      Finish = "stop"      // a token that ends texts, or a stop string
	FinishLength    Finish = "length"    // Options.MaxTokens
	FinishContext   Finish = "context"   // the context is full
	FinishCancelled Finish = "cancelled" // the context.Context ended
)

// Stats describes the work of one call of Generate.
type Stats struct {
	Prompt    int // tokens of the prompt
	Reused    int // of these, tokens that the session had computed before
	Generated int // tokens of the text, without the one that ends it
	Drafted   int // tokens of drafts: see Options.Lookup
	Accepted  int // of these, tokens that were chosen

	Prefill    time.Duration // time to compute the prompt
	FirstToken time.Duration // time from the call until the first token was chosen
	Decode     time.Duration // time from the first token to the last
	Total      time.Duration
}

// PrefillRate returns the computed tokens of the prompt per second, 0 if there were none.
func (s *Stats) PrefillRate() float64 { return rate(s.Prompt-s.Reused, s.Prefill) }

// DecodeRate returns the tokens per second after the first one, 0 if there were none.
func (s *Stats) DecodeRate() float64 { return rate(s.Generated-1, s.Decode) }

func rate(n int, d time.Duration) float64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
