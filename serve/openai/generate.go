package openai

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// seed returns the seed of a request, or a random one.
func seed(given *int64) uint64 {
	if given == nil {
		return rand.Uint64()
	}
	return uint64(*given)
}

// job is a text to be generated.
type job struct {
	options text.Options
	tokens  func(g *generator) (prompt, ends []int, err error)
	form    form
	stream  bool
	usage   bool // in the stream
}

// defaultTokens is the limit of a completion without max_tokens.
const defaultTokens = 16

func (h *handler) completions(w http.ResponseWriter, r *http.Request) {
	var body completionRequest
	if release := h.read(w, r, &body); release != nil {
		defer release()
		j, err := body.job()
		h.run(w, r, body.Model, j, err)
	}
}

func (h *handler) chat(w http.ResponseWriter, r *http.Request) {
	var body chatRequest
	if release := h.read(w, r, &body); release != nil {
		defer release()
		j, err := body.job()
		h.run(w, r, body.Model, j, err)
	}
}

// read reads the body of a request. If that fails, it answers with the error and returns nil. The
// request counts toward the server's limit of bytes until release is called.
func (h *handler) read(w http.ResponseWriter, r *http.Request, into any) (release func()) {
	body, release, err := h.server.ReadBody(w, r, h.options.BodyBytes)
	if err == nil {
		if err = decode(body, into); err == nil {
			return release
		}
		release()
	}
	fail(w, err)
	return nil
}

// job checks a completion.
func (r *completionRequest) job() (*job, error) {
	o, err := r.options()
	switch {
	case err != nil:
		return nil, err
	case r.Prompt.text == nil && r.Prompt.tokens == nil:
		return nil, refused("prompt", "missing")
	case r.BestOf != nil && *r.BestOf != 1:
		return nil, refused("best_of", "%d, want 1", *r.BestOf)
	case r.Suffix != nil && *r.Suffix != "":
		return nil, refused("suffix", "not supported")
	case r.Echo && r.Prompt.text == nil:
		return nil, refused("echo", "want a prompt that is text")
	case r.LogProbs != nil && (*r.LogProbs < 0 || *r.LogProbs > maxCandidates):
		return nil, refused("logprobs", "%d, want a number from 0 to %d", *r.LogProbs, maxCandidates)
	}
	if r.MaxTokens == nil {
		o.MaxTokens = defaultTokens
	}
	if r.LogProbs != nil {
		o.LogProbs, o.Top = true, *r.LogProbs
	}
	f := &completionForm{}
	if r.Echo {
		f.echo = *r.Prompt.text
	}
	return &job{options: o, form: f, stream: r.Stream, usage: r.Streaming != nil && r.Streaming.Usage,
		tokens: func(g *generator) ([]int, []int, error) {
			if r.Prompt.text == nil {
				return r.Prompt.tokens, nil, nil
			}
			ids, err := g.model.Encode(*r.Prompt.text)
			return ids, nil, err
		}}, nil
}

// maxCandidates is the maximum number of candidates for each token.
const maxCandidates = 20

// job checks a chat completion.
func (r *chatRequest) job() (*job, error) {
	if r.MaxCompletion != nil {
		r.MaxTokens = r.MaxCompletion
	}
	o, err := r.options()
	switch {
	case err != nil:
		return nil, err
	case len(r.Messages) == 0:
		return nil, refused("messages", "missing")
	case isList(r.Tools):
		return nil, refused("tools", "not supported")
	case isList(r.Functions):
		return nil, refused("functions", "not supported")
	case len(r.Audio) > 0 && string(r.Audio) != "null" || len(r.Modalities) > 1 || len(r.Modalities) == 1 && r.Modalities[0] != "text":
		return nil, refused("modalities", "want text only")
	case r.TopLogProbs < 0 || r.TopLogProbs > maxCandidates:
		return nil, refused("top_logprobs", "%d, want a number from 0 to %d", r.TopLogProbs, maxCandidates)
	case r.TopLogProbs > 0 && !r.LogProbs:
		return nil, refused("top_logprobs", "only with logprobs")
	}
	o.LogProbs, o.Top = r.LogProbs, r.TopLogProbs
	messages := make([]text.Message, len(r.Messages))
	for i, m := range r.Messages {
		messages[i] = text.Message{Role: m.Role, Content: string(m.Content)}
		if m.Role == "developer" { // the newer name of system
			messages[i].Role = "system"
		}
	}
	return &job{options: o, form: &chatForm{}, stream: r.Stream, usage: r.Streaming != nil && r.Streaming.Usage,
		tokens: func(g *generator) ([]int, []int, error) {
			if g.template == nil {
				return nil, nil, refused("messages", "%v", g.noChat)
			}
			return g.model.EncodeChat(g.template, messages)
		}}, nil
}

// isList reports whether an optional list has elements.
func isList(raw []byte) bool {
	s := string(raw)
	return s != "" && s != "null" && s != "[]"
}

// run generates a text and answers the request.
func (h *handler) run(w http.ResponseWriter, r *http.Request, name string, j *job, err error) {
	var m *serve.Model
	if err == nil {
		m, err = h.find(name)
	}
	if err != nil {
		fail(w, err)
		return
	}
	a := h.newAnswerer(w, name, j)
	err = m.Use(r.Context(), func(ctx context.Context, x serve.Attachment, began func()) error {
		g, ok := x.(*generator)
		if !ok {
			return fmt.Errorf("%w: model %q generates no text", serve.ErrUnknown, name)
		}
		return h.generate(ctx, g, j, a, began)
	})
	a.end(err)
}

// generate generates the text of a job.
func (h *handler) generate(ctx context.Context, g *generator, j *job, a *answerer, began func()) error {
	prompt, ends, err := j.tokens(g)
	if errors.Is(err, tokenizer.ErrText) {
		err = inputError{err}
	}
	if err != nil {
		return err
	}
	s, err := g.take(ctx, prompt)
	if err != nil {
		return err
	}
	defer g.put(s)
	a.tokenizer = g.model.Tokenizer()
	o := j.options
	o.Ends = ends
	for p, err := range s.GenerateTokens(ctx, prompt, o) {
		if p.Finish != "" && h.options.Observe != nil {
			h.options.Observe(a.model, p.Finish, p.Stats)
		}
		if err != nil {
			return err
		}
		began()
		if err := a.piece(&p); err != nil {
			return err
		}
	}
	return nil
}

// newID returns the id of an answer.
func newID(prefix string) string {
	return fmt.Sprintf("%s-%016x%016x", prefix, rand.Uint64(), rand.Uint64())
}

// now is the time of an answer.
func now() int64 { return time.Now().Unix() }
