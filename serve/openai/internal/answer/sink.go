// Package answer writes answers in OpenAI's API, as one object or as a stream of events.
package answer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Kind is the kind of an answer.
type Kind int

// The kinds of answers.
const (
	Completion Kind = iota
	Chat
	Response
)

// Wanted is what an answer is like.
type Wanted struct {
	Kind     Kind
	Stream   bool
	Usage    bool // in the stream
	LogProbs bool
	Score    bool      // the tokens of prompts are answered, too
	Limit    string    // the member with the maximum number of tokens
	Repeated *Repeated // of a response
	Style    *Style    // of another API, nil for OpenAI's
	Schema   []byte    // of texts whose form does not enforce all of it
}

// Sink is the answer to a request while its texts are generated.
type Sink struct {
	Wanted
	server    *serve.Server
	w         http.ResponseWriter
	memory    *serve.Reservation // of the answer
	tokenizer tokenizer.Tokenizer

	form  form
	split *toolcall.Splitter // nil for a reply that is text only
	open  bool               // the text has not ended
	begun bool               // its beginning was sent to the stream
	sent  bool               // the header of the stream was sent
	usage usage
	stats text.Stats // of the last text
	check checker
}

// form is what differs between the kinds of answers.
type form interface {
	// next begins another text of a prompt.
	next(prompt []int, echo string) error
	// begin sends what a text begins with to the stream.
	begin() error
	// add adds a part of a text. The tokens are nil if they were not asked for.
	add(x *toolcall.Piece, tokens []tokenItem) error
	// finish ends a text.
	finish(why text.Finish) error
	// object returns the answer that is no stream, nil if there is nothing in it.
	object(failed *fault.Detail) any
	// end sends the last events of the stream.
	end(failed *fault.Detail) error
}

// usage counts tokens.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// add counts a text; the tokens of a prompt only for the first of its texts.
func (u *usage) add(s *text.Stats, first bool) {
	if first {
		u.Prompt += s.Prompt
		u.Details.Cached += s.Reused
	}
	u.Completion += s.Generated
	u.Total = u.Prompt + u.Completion
}

// New returns an answer. hold counts its memory.
func New(s *serve.Server, w http.ResponseWriter, model string, want Wanted, hold *serve.Reservation) *Sink {
	a := &Sink{Wanted: want, server: s, w: w, memory: hold}
	switch {
	case want.Style != nil:
		a.form = newParts(a, model)
	case want.Kind == Response:
		a.form = newResponse(a, model)
	default:
		a.form = newChoices(a, model)
	}
	return a
}

// Use sets the tokenizer of the model.
func (a *Sink) Use(t tokenizer.Tokenizer) { a.tokenizer = t }

// Next begins another text of a prompt, which follows echo.
func (a *Sink) Next(prompt []int, echo string, s *toolcall.Splitting) error {
	a.split, a.open, a.begun = nil, true, false
	if s != nil {
		a.split = toolcall.NewSplitter(s)
	}
	return a.form.next(prompt, echo)
}

// Piece adds a piece of the text. first means that it is of the first text of its prompt.
func (a *Sink) Piece(p *text.Piece, first bool) error {
	if p.Finish != "" || p.Stats.Generated > 0 {
		a.usage.add(&p.Stats, first)
	}
	if err := a.begin(); err != nil {
		return err
	}
	list := toolcall.Pieces(toolcall.Piece{Text: p.Text})
	if a.split != nil {
		list = a.split.Push(p.Text, p.Finish != "")
	}
	tokens := a.items(p.Tokens)
	if len(list) == 0 && len(tokens) > 0 {
		list = []toolcall.Piece{{}}
	}
	for i := range list {
		if err := cmp.Or(a.form.add(&list[i], tokens), a.collect(list[i].Text)); err != nil {
			return err
		}
		tokens = nil // they come with the first part
	}
	if p.Finish == "" {
		return nil
	}
	a.open, a.stats = false, p.Stats
	a.judge()
	return a.form.finish(p.Finish)
}

// begin sends the header of a stream, and the beginning of a text.
func (a *Sink) begin() error {
	if !a.Stream || a.begun {
		return nil
	}
	a.begun = true
	if !a.sent {
		a.sent = true
		a.beginStream()
	}
	return a.form.begin()
}

// grow counts memory of what is collected, within the limit of answers.
func (a *Sink) grow(n int64) error {
	if err := a.memory.Grow(n); err != nil {
		return err
	}
	return a.checkSize()
}

// checkSize ends an answer that is too large.
func (a *Sink) checkSize() error {
	if most := a.server.AnswerBytes(); a.memory.Size() > most {
		way := "fewer texts, tokens or log-probabilities, or a stream"
		if a.Kind == Response {
			way = "fewer tokens"
		}
		return &fault.Error{Class: etrun.ErrInput, Param: a.Limit, Text: fmt.Sprintf("the answer exceeds %d bytes; want %s", most, way)}
	}
	return nil
}

// End completes the answer to a request that ended with err. What was generated before it is answered, too. The client may be gone.
func (a *Sink) End(err error) {
	a.server.WriteBy(a.w) // the request may have waited longer than the limit
	if err == nil && a.Stream {
		_ = a.form.end(nil)
		return
	}
	if err == nil {
		Send(a.w, http.StatusOK, a.form.object(nil))
		return
	}
	status, retry, body := fault.Describe(a.w, err)
	if a.sent {
		_ = a.form.end(&body.Error)
		return
	}
	if retry != "" {
		a.w.Header().Set("Retry-After", retry)
	}
	if object := a.form.object(&body.Error); object != nil {
		Send(a.w, status, object)
	} else {
		JSON(a.w, status, a.Style.failed(&body.Error))
	}
}

// newID returns the id of an answer.
func newID(prefix string) string {
	return fmt.Sprintf("%s-%016x%016x", prefix, rand.Uint64(), rand.Uint64())
}

// now is the time of an answer.
func now() int64 { return time.Now().Unix() }
