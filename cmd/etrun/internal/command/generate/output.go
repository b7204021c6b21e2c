package generate

import (
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/duration"
	"github.com/etrun-go/etrun/text"
)

// textWriter writes generated text to stdout while it is generated, or collects it for --json.
type textWriter struct {
	*cli.App
	ids      bool // write token ids: there is no tokenizer
	collect  bool // nothing is written
	line     bool // the text ends with a line feed
	logProbs bool

	text    strings.Builder  // with collect
	copyTo  *strings.Builder // also receives the text; may be nil
	tokens  []tokenReport    // with collect
	last    byte             // last byte that was written
	started bool
}

// copy writes all pieces and returns the last one.
func (w *textWriter) copy(pieces iter.Seq2[text.Piece, error]) (end text.Piece, err error) {
	for p, e := range pieces {
		if end = p; e != nil {
			err = session.WithHint(e)
		}
		for _, t := range p.Tokens {
			w.token(t)
		}
		w.write(p.Text)
		if err := w.WriteError(); err != nil {
			return text.Piece{}, err
		}
	}
	return end, err
}

// token stores a token for --json, or writes its id.
func (w *textWriter) token(t text.Token) {
	switch {
	case w.collect:
		w.tokens = append(w.tokens, newTokenReport(t, w.logProbs))
	case w.ids && w.started:
		w.write(fmt.Sprintf(" %d", t.ID))
	case w.ids:
		w.write(fmt.Sprint(t.ID))
	}
	w.started = true
}

// write writes text. Control characters do not reach a terminal.
func (w *textWriter) write(s string) {
	if w.copyTo != nil {
		w.copyTo.WriteString(s)
	}
	switch {
	case s == "":
		return
	case w.collect:
		w.text.WriteString(s)
		return
	case w.ToTerminal():
		s = strings.Map(cli.Harmless, s)
	}
	if s != "" {
		w.Progress.Pause()              // would erase the line
		_, _ = io.WriteString(w.Out, s) // results keeps the error
		w.last = s[len(s)-1]
	}
}

// finish ends the line on a terminal, and after ids.
func (w *textWriter) finish() {
	if !w.collect && w.last != '\n' && (w.line || w.ids || w.ToTerminal()) {
		fmt.Fprintln(w.Out)
	}
}

// statistics returns the line about a text of a model with so many positions.
func statistics(p *text.Piece, positions int) string {
	s := &p.Stats
	line := fmt.Sprintf("prompt of %s", cli.Count(s.Prompt, "token", "tokens"))
	if s.Reused > 0 {
		line += fmt.Sprintf(", %d of them reused", s.Reused)
	}
	if r := s.PrefillRate(); r > 0 {
		line += fmt.Sprintf(", %.4g tokens/s", r)
	}
	line += "; "
	if s.FirstToken > 0 {
		line += fmt.Sprintf("first token after %s; ", duration.Format(s.FirstToken))
	}
	line += cli.Count(s.Generated, "token", "tokens")
	if s.Drafted > 0 {
		line += fmt.Sprintf(", %d of them of %d drafted", s.Accepted, s.Drafted)
	}
	if r := s.DecodeRate(); r > 0 {
		line += fmt.Sprintf(", %.4g tokens/s", r)
	}
	line += "; " + finishWords[p.Finish]
	if p.Finish == text.FinishContext {
		line += fmt.Sprintf(", %d positions", positions)
	}
	return line
}

// finishWords describe why a text ended.
var finishWords = map[text.Finish]string{
	text.FinishStop:      "the text is complete",
	text.FinishLength:    "ended by --max-tokens",
	text.FinishContext:   "ended: the context is full",
	text.FinishCancelled: "interrupted",
	finishError:          "ended by an error",
}

// finishError is the end of a text by an error.
const finishError text.Finish = "error"

// report is the JSON object of generate.
type report struct {
	Schema    string        `json:"schema"`
	Model     string        `json:"model"`
	Tokenizer string        `json:"tokenizer,omitempty"`
	Seed      uint64        `json:"seed"`
	Threads   int           `json:"threads"`
	Context   int           `json:"context"` // positions
	LoadMS    float64       `json:"load_ms"`
	Prompt    []int         `json:"prompt_tokens"`
	Text      string        `json:"text"`   // without the prompt; empty without a tokenizer
	Tokens    []tokenReport `json:"tokens"` // generated tokens, without the one that ends the text
	Finish    text.Finish   `json:"finish"` // stop, length, context, cancelled or error
	Stats     textStats     `json:"stats"`
}

// tokenReport is a generated token. The probabilities are given with --logprobs.
type tokenReport struct {
	ID      int             `json:"id"`
	LogProb *float64        `json:"logprob,omitempty"` // natural logarithm
	Top     []candidateItem `json:"top_logprobs,omitempty"`
}

// candidateItem is one of the most likely tokens at a position.
type candidateItem struct {
	ID      int     `json:"id"`
	LogProb float64 `json:"logprob"`
}

func newTokenReport(t text.Token, logProbs bool) tokenReport {
	r := tokenReport{ID: t.ID}
	if logProbs {
		p := finite(t.LogProb)
		r.LogProb = &p
	}
	for _, c := range t.Top {
		r.Top = append(r.Top, candidateItem{c.ID, finite(c.LogProb)})
	}
	return r
}

// finite replaces negative infinity, which JSON does not have.
func finite(x float32) float64 { return max(float64(x), -math.MaxFloat32) }

// textStats are the statistics of a text.
type textStats struct {
	Prompt      int     `json:"prompt_tokens"`
	Reused      int     `json:"reused_tokens"` // of the prompt, computed before
	Generated   int     `json:"generated_tokens"`
	Drafted     int     `json:"drafted_tokens"`
	Accepted    int     `json:"accepted_tokens"` // of drafts, part of the text
	PrefillMS   float64 `json:"prefill_ms"`
	FirstMS     float64 `json:"first_token_ms"`
	DecodeMS    float64 `json:"decode_ms"` // from the first token to the last
	PrefillRate float64 `json:"prefill_tokens_per_s"`
	DecodeRate  float64 `json:"decode_tokens_per_s"`
}

func newTextStats(s *text.Stats) textStats {
	return textStats{s.Prompt, s.Reused, s.Generated, s.Drafted, s.Accepted, stats.MS(s.Prefill), stats.MS(s.FirstToken), stats.MS(s.Decode),
		s.PrefillRate(), s.DecodeRate()}
}
