package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// form describes the answers to one kind of request.
type form interface {
	// prefix is the beginning of ids.
	prefix() string
	// objects are the values of "object" in whole answers and in chunks.
	objects() (whole, chunk string)
	// whole returns a choice of an answer.
	whole(c *choice) any
	// chunk returns a part of a choice of a stream; begin for its first one, finish for its last one only.
	chunk(c *choice, text string, tokens []tokenItem, begin bool, finish *string) any
}

// choice is one of the texts of an answer.
type choice struct {
	index  int
	echo   string // precedes the generated text
	offset int    // of the next token in the text, in bytes
	begun  bool   // the beginning was sent to the stream
	text   strings.Builder
	tokens []tokenItem
	finish string
}

// answerer answers one request, at its end or as a stream.
type answerer struct {
	h         *handler
	w         http.ResponseWriter
	model     string
	job       *job
	tokenizer tokenizer.Tokenizer
	head      header

	begun   bool // the header of a stream was sent
	choice  *choice
	choices []any // whole ones
	usage   usage
}

// header is the beginning of all answers and chunks.
type header struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []any  `json:"choices"`
	Usage   *usage `json:"usage,omitempty"`
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

func (h *handler) newAnswerer(w http.ResponseWriter, model string, j *job) *answerer {
	return &answerer{h: h, w: w, model: model, job: j, head: header{ID: newID(j.form.prefix()), Created: now(), Model: model}}
}

// finishes are the reasons of the protocol.
var finishes = map[text.Finish]string{text.FinishStop: "stop", text.FinishLength: "length", text.FinishContext: "length"}

// next begins another choice.
func (a *answerer) next(echo string) {
	index := 0
	if a.choice != nil {
		index = a.choice.index + 1
	}
	a.choice = &choice{index: index, echo: echo}
}

// piece adds a piece of the current choice. first tells that it is the first one of its prompt.
func (a *answerer) piece(p *text.Piece, first bool) error {
	c, tokens := a.choice, a.items(p.Tokens)
	if p.Finish != "" {
		c.finish = finishes[p.Finish]
		a.usage.add(&p.Stats, first)
	}
	if !a.job.stream {
		c.text.WriteString(p.Text)
		c.tokens = append(c.tokens, tokens...)
		if p.Finish != "" {
			a.choices = append(a.choices, a.job.form.whole(c))
		}
		return nil
	}
	if err := a.begin(); err != nil {
		return err
	}
	if p.Text != "" || len(tokens) > 0 {
		if err := a.send(a.job.form.chunk(c, p.Text, tokens, false, nil)); err != nil {
			return err
		}
	}
	if p.Finish == "" {
		return nil
	}
	return a.send(a.job.form.chunk(c, "", nil, false, &c.finish))
}

// begin sends the header of a stream and the beginning of the choice.
func (a *answerer) begin() error {
	if a.choice.begun {
		return nil
	}
	a.choice.begun = true
	if !a.begun {
		a.begun = true
		h := a.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // proxies must not buffer events
		a.w.WriteHeader(http.StatusOK)
	}
	return a.send(a.job.form.chunk(a.choice, a.choice.echo, nil, true, nil))
}

// send sends a chunk with one choice.
func (a *answerer) send(choice any) error {
	head := a.head
	_, head.Object = a.job.form.objects()
	head.Choices = []any{choice}
	return a.event(head)
}

// event sends an object as a server-sent event.
func (a *answerer) event(object any) error {
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return a.write("data: " + string(data) + "\n\n")
}

// write sends text without delay. An error means that the client is gone.
func (a *answerer) write(s string) error {
	a.h.server.WriteBy(a.w)
	if _, err := a.w.Write([]byte(s)); err != nil {
		return context.Canceled
	}
	_ = http.NewResponseController(a.w).Flush() // if it fails, so does the next write
	return nil
}

// end completes the answer to a request that ended with err.
func (a *answerer) end(err error) {
	switch {
	case err != nil && a.begun:
		_, _, body := describe(a.w, err)
		_ = a.event(body) // the client may be gone
	case err != nil:
		a.h.server.WriteBy(a.w) // the request may have waited longer than the limit
		fail(a.w, err)
	case a.job.stream:
		a.endStream()
	default:
		head := a.head
		head.Object, _ = a.job.form.objects()
		head.Choices, head.Usage = a.choices, &a.usage
		a.h.server.WriteBy(a.w)
		answer(a.w, http.StatusOK, head)
	}
}

// endStream sends the last events. The client may be gone.
func (a *answerer) endStream() {
	var err error
	if a.job.usage {
		head := a.head
		_, head.Object = a.job.form.objects()
		head.Choices, head.Usage = []any{}, &a.usage
		err = a.event(head)
	}
	if err == nil {
		_ = a.write("data: [DONE]\n\n")
	}
}
