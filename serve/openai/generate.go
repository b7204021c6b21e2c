package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// job is a list of texts to be generated.
type job struct {
	options text.Options
	prompts []source
	texts   int // for each prompt
	form    form
	stream  bool
	usage   bool   // in the stream
	member  string // of the prompts in the request
	salt    *string

	formMember string // of the form, empty for none

	score bool // the tokens of prompts are answered with their probabilities
	none  bool // nothing is generated

	respond *response // of a request for a response, else nil
}

// sink is the answer to a request while its texts are generated.
type sink interface {
	// of returns what is answered, and the name of the model.
	of() (j *job, model string)
	// use sets the tokenizer of the model.
	use(t tokenizer.Tokenizer)
	// next begins another text of a prompt.
	next(e *encoded) error
	// piece adds a piece of the text. first means that it is the first one of its prompt.
	piece(p *text.Piece, first bool) error
	// end completes the answer to a request that ended with err.
	end(err error)
}

// newSink returns the answer to a job.
func (h *handler) newSink(w http.ResponseWriter, model string, j *job, hold *serve.Hold) sink {
	if j.respond != nil {
		return h.newResponder(w, model, j, hold)
	}
	return h.newAnswerer(w, model, j, hold)
}

// source returns the tokens of a prompt, and those that end its text.
type source func(ctx context.Context, g *generator) (encoded, error)

// newJob returns a job without prompts.
func (r *request) newJob(o text.Options, f form, member string) *job {
	j := &job{options: o, texts: 1, form: f, member: member, formMember: r.formMember, stream: r.Stream, salt: r.Salt,
		usage: r.Streaming != nil && r.Streaming.Usage}
	if r.N != nil {
		j.texts = *r.N
	}
	return j
}

// defaultTokens is the limit of a completion without max_tokens.
const defaultTokens = 16

func (h *handler) completions(w http.ResponseWriter, r *http.Request) {
	body := &completionRequest{}
	h.serve(w, r, completionMembers, body)
}

func (h *handler) chat(w http.ResponseWriter, r *http.Request) {
	body := &chatRequest{}
	h.serve(w, r, chatMembers, body)
}

// body is a request of one kind.
type body interface {
	// model returns the name of the model.
	model() string
	// job checks the request.
	job(m *formMaker) (*job, error)
}

// decodedShare is the memory of a decoded body relative to its bytes: a token takes two bytes, and eight when decoded.
const decodedShare = 8

// read decodes the body of a request with the given members. The body, and what is made of it, share times its bytes, count
// toward the server's limit of bytes until the hold is released, which is never nil.
func (h *handler) read(w http.ResponseWriter, r *http.Request, members object, into any, share int64) (*serve.Hold, error) {
	body, hold, err := h.server.ReadBody(w, r, h.options.BodyBytes)
	if err != nil {
		return h.server.NewHold(), err
	}
	if err = hold.Grow(share * int64(len(body))); err == nil {
		err = decode(body, members, into)
	}
	return hold, err
}

// serve answers a request with the given members.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, members object, into body) {
	hold, err := h.read(w, r, members, into, decodedShare)
	defer hold.Release()
	m := &formMaker{r.Context(), hold.Beside(), &forms}
	defer m.hold.Release()
	var j *job
	if err == nil {
		j, err = into.job(m)
	}
	h.run(w, r, into.model(), j, m.hold.Beside(), err)
}

// job checks a completion.
func (r *completionRequest) job(m *formMaker) (*job, error) {
	o, err := r.options(m)
	switch {
	case err != nil:
		return nil, err
	case r.Prompt == nil:
		return nil, missing("prompt")
	case len(r.Prompt)*max(orZero(r.N), 1) > maxTexts:
		return nil, refused("prompt", "%d prompts with n %d, at most %d texts are generated", len(r.Prompt), max(orZero(r.N), 1), maxTexts)
	case r.BestOf != nil && *r.BestOf != max(orZero(r.N), 1):
		return nil, refused("best_of", "%d, want n, or nothing", *r.BestOf)
	case r.LogProbs != nil && (*r.LogProbs < 0 || *r.LogProbs > maxCandidates):
		return nil, refused("logprobs", "%d, want a number from 0 to %d", *r.LogProbs, maxCandidates)
	}
	if r.MaxTokens == nil {
		o.MaxTokens = defaultTokens
	}
	if r.LogProbs != nil {
		o.LogProbs, o.Top = true, *r.LogProbs
	}
	j := r.newJob(o, completionForm{}, "prompt")
	j.score, j.none = r.Echo && r.LogProbs != nil, r.MaxTokens != nil && *r.MaxTokens == 0
	for _, p := range r.Prompt {
		j.prompts = append(j.prompts, func(_ context.Context, g *generator) (encoded, error) { return p.encode(g, r.Echo) })
	}
	return j, nil
}

// encode returns the tokens of a prompt, and its text if it is to precede the generated one.
func (p prompt) encode(g *generator, echo bool) (e encoded, err error) {
	if p.text != nil {
		if e.prompt, err = g.model.Encode(*p.text); echo {
			e.echo = *p.text
		}
		return e, err
	}
	if e.prompt = p.tokens; !echo || g.model.CheckPrompt(p.tokens) != nil { // the caller has that error
		return e, nil
	}
	text, err := tokenizer.Decode(g.model.Tokenizer(), p.tokens)
	e.echo = strings.ToValidUTF8(text, "\uFFFD")
	return e, err
}

// maxCandidates is the maximum number of candidates for each token.
const maxCandidates = 20

// job checks a chat completion.
func (r *chatRequest) job(m *formMaker) (*job, error) {
	if r.MaxCompletion != nil {
		if r.MaxTokens != nil && *r.MaxTokens != *r.MaxCompletion {
			return nil, refused("max_tokens", "%d, and max_completion_tokens %d: they mean the same", *r.MaxTokens, *r.MaxCompletion)
		}
		r.MaxTokens = r.MaxCompletion
	}
	o, err := r.options(m)
	switch {
	case err != nil:
		return nil, err
	case len(r.Messages) == 0:
		return nil, missing("messages")
	case r.MaxTokens != nil && *r.MaxTokens == 0:
		return nil, refused("max_tokens", "0, want 1 or more, or -1 for the rest of the context")
	case r.TopLogProbs < 0 || r.TopLogProbs > maxCandidates:
		return nil, refused("top_logprobs", "%d, want a number from 0 to %d", r.TopLogProbs, maxCandidates)
	case r.TopLogProbs > 0 && !r.LogProbs:
		return nil, refused("top_logprobs", "only with logprobs")
	}
	o.LogProbs, o.Top = r.LogProbs, r.TopLogProbs
	d, u, err := r.conversation()
	switch {
	case err != nil:
		return nil, err
	case u != nil && o.Form != nil:
		if u.answer, err = r.answerSchema(); err != nil {
			return nil, err
		}
		o.Form = nil // that of the reply has both
	case u != nil && u.formed() && len(o.Stop) > 0:
		return nil, refused("stop", "together with calls of tools of a form: the text would end within it")
	}
	j := r.newJob(o, chatForm{}, "messages")
	j.prompts = []source{func(ctx context.Context, g *generator) (encoded, error) {
		return r.encode(g, d, u, m.within(ctx), o.Form)
	}}
	return j, r.checkEnd()
}

// checkEnd checks how the prompt ends: with the beginning of a reply, or within the last message.
func (r *chatRequest) checkEnd() error {
	last := r.Messages[len(r.Messages)-1].Role
	switch {
	case r.Continue && r.AddReply != nil && *r.AddReply:
		return refused("add_generation_prompt", "true, want false with continue_final_message")
	case r.Continue && last != "assistant":
		return refused("continue_final_message", "the last message is of the role %s, want one of the assistant", quote(last))
	case !r.Continue && r.AddReply != nil && !*r.AddReply:
		return refused("add_generation_prompt", "false, want true, or continue_final_message")
	}
	return nil
}

// noTexts says what a model does that generates no texts.
const noTexts = "computes vectors of texts only: want /v1/embeddings"

// run generates the texts of a job and answers the request.
func (h *handler) run(w http.ResponseWriter, r *http.Request, name string, j *job, hold *serve.Hold, err error) {
	var m *serve.Model
	if err == nil {
		m, err = h.find(name, KindText)
	}
	if err != nil {
		h.server.WriteBy(w) // the request may have waited longer than the limit to make its form
		fail(w, err)
		return
	}
	name = m.Name()
	a := h.newSink(w, name, j, hold)
	defer hold.Release()
	err = m.Use(r.Context(), func(ctx context.Context, x serve.Attachment, l *serve.Lease) error {
		g, ok := x.(*generator)
		if !ok {
			return notOfKind(m, noTexts)
		}
		return h.generate(ctx, g, j, a, l)
	})
	a.end(err)
}

// encoded is a prompt as tokens, and how its text ends and is divided.
type encoded struct {
	prompt, ends []int
	form         *text.Form     // nil for none, or for that of the request
	formMember   string         // what prescribes it
	shown        map[int]string // control tokens that are text here
	split        *splitting     // nil for a reply that is text only
	echo         string         // precedes the generated text
}

// encode returns the tokens of all prompts.
func (j *job) encode(ctx context.Context, g *generator) ([]encoded, error) {
	for _, id := range j.options.Ends {
		if n := g.model.Info().Vocabulary; id >= n {
			return nil, refused("stop_token_ids", "%d, the model has tokens below %d", id, n)
		}
	}
	list := make([]encoded, len(j.prompts))
	for i, tokens := range j.prompts {
		var err error
		list[i], err = tokens(ctx, g)
		if err == nil {
			err = g.model.CheckPrompt(list[i].prompt)
		}
		if err != nil {
			return nil, promptError(j.member, err)
		}
		list[i].ends = append(list[i].ends, j.options.Ends...)
	}
	return list, nil
}

// promptError returns the error of a prompt, with the code by which clients know that it is too long.
func promptError(member string, err error) error {
	if _, ok := errors.AsType[*requestError](err); ok || isUnmade(err) {
		return err
	}
	e := &requestError{etrun.ErrInput, member, "", err.Error()}
	if long, ok := errors.AsType[*text.PromptError](err); ok && long.Tokens > long.Context {
		e.code = "context_length_exceeded"
	}
	return e
}

// Estimates of an answer for the limit of its size: the fewest bytes in practice.
const (
	tokenBytes   = 4
	logProbBytes = 32
)

// checkSize refuses a job whose answer would hold too many bytes until it is sent. Answers with longer tokens than
// estimated end at the limit.
func (h *handler) checkSize(g *generator, j *job, list []encoded) error {
	if j.stream {
		return nil
	}
	each := int64(tokenBytes)
	if j.options.LogProbs {
		each += int64(1+j.options.Top) * logProbBytes
	}
	size, longest := int64(0), 0
	for _, e := range list {
		n := g.model.Info().Context - len(e.prompt) + 1
		if most := j.options.MaxTokens; most > 0 || j.none {
			n = min(n, most)
		}
		if j.score {
			n += len(e.prompt)
		}
		longest = max(longest, n)
		size += int64(j.texts) * (int64(len(e.echo)) + int64(n)*each)
	}
	if most := h.server.AnswerBytes(); size > most {
		return &requestError{etrun.ErrInput, j.limit(), "", fmt.Sprintf("%d texts of up to %d tokens and %d bytes each: "+
			"an answer of %d bytes, at most %d are allowed; "+
			"want fewer texts, tokens or log-probabilities, or a stream", len(list)*j.texts, longest, each, size, most)}
	}
	return nil
}

// limit is the member with the maximum number of tokens.
func (j *job) limit() string {
	if j.respond != nil {
		return "max_output_tokens"
	}
	return "max_tokens"
}

// named names the members of an error as the request has them.
func (j *job) named(err error) error {
	if j.respond == nil {
		return err
	}
	return j.respond.request.renamed(err)
}

// generate generates the texts of a job, one after the other. Between them those of other requests may be generated.
func (h *handler) generate(ctx context.Context, g *generator, j *job, a sink, l *serve.Lease) error {
	a.use(g.model.Tokenizer())
	list, err := j.encode(ctx, g)
	if err == nil {
		err = h.checkSize(g, j, list)
	}
	if err != nil {
		return err
	}
	o := ownerOf(ctx, j.salt)
	for i, e := range list {
		for n := 0; n < j.texts; {
			if i > 0 || n > 0 {
				if err := l.Yield(ctx); err != nil {
					return err
				}
			}
			err := g.use(ctx, o, j.prefix(&e), func(s *text.Session) (err error) {
				n, err = h.choices(ctx, s, &e, n, a, l)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// prefix is the text of which a session should have the beginning.
func (j *job) prefix(e *encoded) []int {
	if j.score || j.none {
		return nil // all of it is computed, or nothing
	}
	return e.prompt
}

// choices generates the texts of a prompt from number n on, the first one with the seed of the request, each further
// one with the next number, until other requests wait. It returns the number of the next one.
func (h *handler) choices(ctx context.Context, s *text.Session, e *encoded, n int, a sink, l *serve.Lease) (int, error) {
	j, _ := a.of()
	o := j.options
	o.Ends, o.Shown = e.ends, e.shown
	o.Seed += uint64(n)
	if e.form != nil {
		o.Form = e.form
	}
	for more := true; more && n < j.texts; n++ {
		if err := a.next(e); err != nil {
			return n, err
		}
		if j.score {
			if err := h.score(ctx, s, e, a, l); err != nil {
				return n, err
			}
		}
		if err := h.choice(ctx, s, e, o, n == 0, a, l); err != nil {
			return n, err
		}
		o.Seed++
		more = !l.Wanted()
	}
	return n, nil
}

// score answers with the tokens of a prompt and their probabilities.
func (h *handler) score(ctx context.Context, s *text.Session, e *encoded, a sink, l *serve.Lease) error {
	j, _ := a.of()
	for tokens, err := range s.Score(ctx, e.prompt, j.options.Top) {
		if err == nil {
			l.Began()
			err = a.piece(&text.Piece{Tokens: tokens}, false)
		}
		if err != nil {
			return j.named(fault(ctx, err, ""))
		}
	}
	return nil
}

// choice generates a text of a prompt. first means that it is the first one.
func (h *handler) choice(ctx context.Context, s *text.Session, e *encoded, o text.Options, first bool, a sink, l *serve.Lease) error {
	j, model := a.of()
	if j.none {
		p := text.Piece{Finish: text.FinishLength, Stats: text.Stats{Prompt: len(e.prompt)}}
		if j.score {
			h.observe(model, &p)
		}
		return a.piece(&p, first)
	}
	member := j.formMember
	if e.form != nil {
		member = e.formMember
	}
	for p, err := range s.GenerateTokens(ctx, e.prompt, o) {
		if j.score { // by this request
			p.Stats.Reused = 0
		}
		h.observe(model, &p)
		if p.Finish == text.FinishCancelled {
			return err
		}
		if err == nil {
			l.Began()
		}
		if err == nil || p.Stats.Generated > 0 { // what was generated before an error is answered
			err = cmp.Or(a.piece(&p, first), err)
		}
		if err != nil {
			return j.named(fault(ctx, err, member))
		}
	}
	return nil
}

// observe reports the end of a text.
func (h *handler) observe(model string, p *text.Piece) {
	if p.Finish != "" && h.options.Observe != nil {
		h.options.Observe(model, p.Finish, p.Stats)
	}
}

// newID returns the id of an answer.
func newID(prefix string) string {
	return fmt.Sprintf("%s-%016x%016x", prefix, rand.Uint64(), rand.Uint64())
}

// now is the time of an answer.
func now() int64 { return time.Now().Unix() }
