package openai

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
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

// job is a list of texts to be generated.
type job struct {
	options text.Options
	prompts []source
	texts   int // for each prompt
	form    form
	stream  bool
	usage   bool // in the stream
}

// source gives the tokens of a prompt, and those that end its text.
type source struct {
	tokens func(g *generator) (prompt, ends []int, err error)
	echo   string // precedes the generated text
}

// maxTexts is the maximum number of texts of a request.
const maxTexts = 128

// newJob returns a job without prompts.
func (r *request) newJob(o text.Options, f form) *job {
	j := &job{options: o, texts: 1, form: f, stream: r.Stream, usage: r.Streaming != nil && r.Streaming.Usage}
	if r.N != nil {
		j.texts = *r.N
	}
	return j
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
	case r.Prompt == nil:
		return nil, refused("prompt", "missing")
	case len(r.Prompt)*max(orZero(r.N), 1) > maxTexts:
		return nil, refused("prompt", "%d prompts with n %d, at most %d texts are generated", len(r.Prompt), max(orZero(r.N), 1), maxTexts)
	case r.BestOf != nil && *r.BestOf != max(orZero(r.N), 1):
		return nil, refused("best_of", "%d, want n, or nothing", *r.BestOf)
	case r.Suffix != nil && *r.Suffix != "":
		return nil, refused("suffix", "not supported")
	case r.Echo && slices.ContainsFunc(r.Prompt, func(p prompt) bool { return p.text == nil }):
		return nil, refused("echo", "want prompts that are text")
	case r.LogProbs != nil && (*r.LogProbs < 0 || *r.LogProbs > maxCandidates):
		return nil, refused("logprobs", "%d, want a number from 0 to %d", *r.LogProbs, maxCandidates)
	case r.LogProbs != nil && r.Echo:
		return nil, refused("logprobs", "not with echo: the tokens of prompts have none")
	}
	if r.MaxTokens == nil {
		o.MaxTokens = defaultTokens
	}
	if r.LogProbs != nil {
		o.LogProbs, o.Top = true, *r.LogProbs
	}
	j := r.newJob(o, completionForm{})
	for _, p := range r.Prompt {
		s := source{tokens: p.encode}
		if r.Echo {
			s.echo = *p.text
		}
		j.prompts = append(j.prompts, s)
	}
	return j, nil
}

// encode returns the tokens of a prompt.
func (p prompt) encode(g *generator) ([]int, []int, error) {
	if p.text == nil {
		return p.tokens, nil, nil
	}
	ids, err := g.model.Encode(*p.text)
	return ids, nil, err
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
	j := r.newJob(o, chatForm{})
	j.prompts = []source{{tokens: func(g *generator) ([]int, []int, error) {
		if g.template == nil {
			return nil, nil, refused("messages", "%v", g.noChat)
		}
		return g.model.EncodeChat(g.template, messages)
	}}}
	return j, nil
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

// generate generates the texts of a job, one after the other.
func (h *handler) generate(ctx context.Context, g *generator, j *job, a *answerer, began func()) error {
	a.tokenizer = g.model.Tokenizer()
	type encoded struct{ prompt, ends []int }
	list := make([]encoded, len(j.prompts))
	for i, p := range j.prompts { // all of them before the first text
		var err error
		list[i].prompt, list[i].ends, err = p.tokens(g)
		if errors.Is(err, tokenizer.ErrText) {
			err = inputError{err}
		}
		if err == nil {
			err = g.model.CheckPrompt(list[i].prompt)
		}
		if err != nil {
			return err
		}
	}
	for i, e := range list {
		s, err := g.take(ctx, e.prompt)
		if err != nil {
			return err
		}
		err = h.choices(ctx, s, e.prompt, e.ends, j.prompts[i].echo, a, began)
		g.put(s)
		if err != nil {
			return err
		}
	}
	return nil
}

// choices generates the texts of a prompt, the first one with the seed of the request, each further
// one with the next number.
func (h *handler) choices(ctx context.Context, s *text.Session, prompt, ends []int, echo string, a *answerer, began func()) error {
	o := a.job.options
	o.Ends = ends
	for n := range a.job.texts {
		a.next(echo)
		for p, err := range s.GenerateTokens(ctx, prompt, o) {
			if p.Finish != "" && h.options.Observe != nil {
				h.options.Observe(a.model, p.Finish, p.Stats)
			}
			if err != nil {
				return err
			}
			began()
			if err := a.piece(&p, n == 0); err != nil {
				return err
			}
		}
		o.Seed++
	}
	return nil
}

// newID returns the id of an answer.
func newID(prefix string) string {
	return fmt.Sprintf("%s-%016x%016x", prefix, rand.Uint64(), rand.Uint64())
}

// now is the time of an answer.
func now() int64 { return time.Now().Unix() }
