package openai

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
)

func (h *handler) completions(w http.ResponseWriter, r *http.Request) {
	body := &completionRequest{}
	h.serve(w, r, completionMembers, body)
}

func (h *handler) chat(w http.ResponseWriter, r *http.Request) {
	body := &chatRequest{}
	h.serve(w, r, chatMembers, body)
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
	beside := hold.Beside() // of the form
	defer beside.Release()
	var j *job
	if err == nil {
		j, err = into.job(newMaker(r.Context(), beside))
	}
	h.run(w, r, into.model(), j, beside.Beside(), err)
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
	a := newSink(h.server, w, m.Name(), j.answer, hold)
	defer hold.Release()
	err = m.Use(r.Context(), func(ctx context.Context, x serve.Attachment, l *serve.Lease) error {
		g, ok := x.(*generator)
		if !ok {
			return notOfKind(m, noTexts)
		}
		return (&generation{h, g, m.Name(), j, a, l}).run(ctx)
	})
	a.end(err)
}

// generation is the work on a job.
type generation struct {
	*handler
	g     *generator
	model string
	job   *job
	sink  sink
	lease *serve.Lease
}

// prompts returns what prompts are encoded for.
func (g *generator) prompts() *promptModel {
	return &promptModel{g.model, g.template, g.noChat, g.calls, g.noCalls}
}

// Estimates of an answer for the limit of its size: the fewest bytes in practice.
const (
	tokenBytes   = 4
	logProbBytes = 32
)

// checkSize refuses a job whose answer would hold too many bytes until it is sent. Answers with longer tokens than
// estimated end at the limit.
func (h *handler) checkSize(g *generator, j *job, list []encoded) error {
	if j.answer.stream {
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
		if j.answer.score {
			n += len(e.prompt)
		}
		longest = max(longest, n)
		size += int64(j.texts) * (int64(len(e.echo)) + int64(n)*each)
	}
	if most := h.server.AnswerBytes(); size > most {
		return &requestError{etrun.ErrInput, j.answer.limit, "", fmt.Sprintf("%d texts of up to %d tokens and %d bytes each: "+
			"an answer of %d bytes, at most %d are allowed; "+
			"want fewer texts, tokens or log-probabilities, or a stream", len(list)*j.texts, longest, each, size, most)}
	}
	return nil
}

// run generates the texts, one after the other. Between them those of other requests may be generated.
func (w *generation) run(ctx context.Context) error {
	w.sink.use(w.g.model.Tokenizer())
	list, err := w.job.encode(ctx, w.g.prompts())
	if err == nil {
		err = w.checkSize(w.g, w.job, list)
	}
	if err != nil {
		return err
	}
	o := ownerOf(ctx, w.job.salt)
	for i, e := range list {
		for n := 0; n < w.job.texts; {
			if i > 0 || n > 0 {
				if err := w.lease.Yield(ctx); err != nil {
					return err
				}
			}
			err := w.g.use(ctx, o, w.job.prefix(&e), func(s *text.Session) (err error) {
				n, err = w.choices(ctx, s, &e, n)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// choices generates the texts of a prompt from number n on, the first one with the seed of the request, each further
// one with the next number, until other requests wait. It returns the number of the next one.
func (w *generation) choices(ctx context.Context, s *text.Session, e *encoded, n int) (int, error) {
	o := w.job.options
	o.Ends, o.Shown = e.ends, e.shown
	o.Seed += uint64(n)
	if e.form != nil {
		o.Form = e.form
	}
	for more := true; more && n < w.job.texts; n++ {
		if err := w.sink.next(e.prompt, e.echo, e.split); err != nil {
			return n, err
		}
		if w.job.answer.score {
			if err := w.score(ctx, s, e); err != nil {
				return n, err
			}
		}
		if err := w.choice(ctx, s, e, o, n == 0); err != nil {
			return n, err
		}
		o.Seed++
		more = !w.lease.Wanted()
	}
	return n, nil
}

// score answers with the tokens of a prompt and their probabilities.
func (w *generation) score(ctx context.Context, s *text.Session, e *encoded) error {
	for tokens, err := range s.Score(ctx, e.prompt, w.job.options.Top) {
		if err == nil {
			w.lease.Began()
			err = w.sink.piece(&text.Piece{Tokens: tokens}, false)
		}
		if err != nil {
			return w.job.named(fault(ctx, err, ""))
		}
	}
	return nil
}

// choice generates a text of a prompt. first means that it is the first one.
func (w *generation) choice(ctx context.Context, s *text.Session, e *encoded, o text.Options, first bool) error {
	j := w.job
	if j.none {
		p := text.Piece{Finish: text.FinishLength, Stats: text.Stats{Prompt: len(e.prompt)}}
		if j.answer.score {
			w.observe(w.model, &p)
		}
		return w.sink.piece(&p, first)
	}
	member := j.formMember
	if e.form != nil {
		member = e.formMember
	}
	for p, err := range s.GenerateTokens(ctx, e.prompt, o) {
		if j.answer.score { // by this request
			p.Stats.Reused = 0
		}
		w.observe(w.model, &p)
		if p.Finish == text.FinishCancelled {
			return err
		}
		if err == nil {
			w.lease.Began()
		}
		if err == nil || p.Stats.Generated > 0 { // what was generated before an error is answered
			err = cmp.Or(w.sink.piece(&p, first), err)
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

func (h *handler) responses(w http.ResponseWriter, r *http.Request) {
	body := &responseRequest{}
	h.serve(w, r, responseMembers, body)
}
