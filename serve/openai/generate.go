package openai

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/audio"
	"github.com/etrun-go/etrun/serve/openai/internal/answer"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
	"github.com/etrun-go/etrun/text"
)

func (h *handler) completions(w http.ResponseWriter, r *http.Request) {
	h.serve(w, r, requests.CompletionMembers, &requests.Completion{})
}

func (h *handler) chat(w http.ResponseWriter, r *http.Request) {
	h.serve(w, r, requests.ChatMembers, &requests.Chat{})
}

// decodedShare is the memory of a decoded body relative to its bytes: a token takes two bytes, and eight when decoded.
const decodedShare = 8

// mediaShare is that of the bytes of a body beyond the limit of texts: pictures and sounds in base64, as strings and decoded.
const mediaShare = 3

// mayHaveMedia reports whether a model takes pictures or sounds, or may do so once it is loaded.
func (h *handler) mayHaveMedia() bool {
	return slices.ContainsFunc(h.server.Models(), func(m *serve.Model) bool {
		takes := m.Attached()
		m.Loaded(func(x serve.Attachment) {
			g, ok := x.(*generator)
			takes = ok && len(g.senses()) > 0
		})
		return takes
	})
}

// read decodes the body of a request with the given members. The body, and what is made of it, share times its bytes, count
// toward the server's limit of bytes until the hold is released, which is never nil.
func (h *handler) read(w http.ResponseWriter, r *http.Request, members requests.Object, into any, share int64) (*serve.Reservation, error) {
	limit := h.options.BodyBytes
	switch into.(type) {
	case *requests.Chat, *requests.Response:
		if h.mayHaveMedia() {
			limit = max(limit, h.options.MediaBytes)
		}
	}
	body, hold, err := h.server.ReadBody(w, r, limit)
	if err != nil {
		return h.server.NewReservation(), err
	}
	text := min(int64(len(body)), h.options.BodyBytes)
	if err = hold.Grow(share*text + mediaShare*(int64(len(body))-text)); err == nil {
		err = requests.Decode(body, members, into)
	}
	return hold, err
}

// serve answers a request with the given members.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, members requests.Object, into requests.Body) {
	hold, err := h.read(w, r, members, into, decodedShare)
	defer hold.Release()
	beside := hold.Another() // of the form
	defer beside.Release()
	var j *requests.Job
	if err == nil {
		j, err = into.Job(forms.NewMaker(r.Context(), beside))
	}
	if err == nil {
		err = beside.Grow(j.Media)
	}
	if err == nil && j.Unoffered != "" {
		w.Header().Set("Etrun-Tools-Not-Offered", j.Unoffered)
	}
	h.run(w, r, into, j, beside.Another(), err)
}

// noTexts says what a model does that generates no texts.
func noTexts(x serve.Attachment) string {
	if _, ok := x.(*audio.Model); ok {
		return "transcribes recordings only: want /v1/audio/transcriptions"
	}
	return "computes vectors of texts only: want /v1/embeddings"
}

// run generates the texts of a job and answers the request.
func (h *handler) run(w http.ResponseWriter, r *http.Request, body requests.Body, j *requests.Job, hold *serve.Reservation, err error) {
	var m *serve.Model
	if err == nil {
		m, err = h.find(body.ModelName(), KindText)
	}
	if err != nil {
		h.server.WriteBy(w) // the request may have waited longer than the limit to make its form
		styleOf(body).Fail(w, err)
		return
	}
	a := answer.New(h.server, w, m.Name(), j.Wanted, hold)
	defer hold.Release()
	err = m.Use(r.Context(), func(ctx context.Context, x serve.Attachment, l *serve.Lease) error {
		g, ok := x.(*generator)
		if !ok {
			return notOfKind(m, noTexts(x))
		}
		return (&generation{h, g, m.Name(), j, a, l}).run(ctx)
	})
	a.End(err)
}

// generation is the work on a job.
type generation struct {
	*handler
	g     *generator
	model string
	job   *requests.Job
	sink  *answer.Sink
	lease *serve.Lease
}

// prompts returns what prompts are encoded for.
func (g *generator) prompts() *requests.Model {
	return &requests.Model{Text: g.model, Template: g.template, NoChat: g.noChat, Calls: g.calls, NoCalls: g.noCalls}
}

// Estimates of an answer for the limit of its size: the fewest bytes in practice.
const (
	tokenBytes   = 4
	logProbBytes = 32
)

// checkSize refuses a job whose answer would hold too many bytes until it is sent. Answers with longer tokens than
// estimated end at the limit.
func (h *handler) checkSize(g *generator, j *requests.Job, list []requests.Encoded) error {
	if j.Wanted.Stream {
		return nil
	}
	each := int64(tokenBytes)
	if j.Options.LogProbs {
		each += int64(1+j.Options.Top) * logProbBytes
	}
	size, longest := int64(0), 0
	for _, e := range list {
		n := g.model.Info().Context - len(e.Prompt) + 1
		if most := j.Options.MaxTokens; most > 0 || j.None {
			n = min(n, most)
		}
		if j.Wanted.Score {
			n += len(e.Prompt)
		}
		longest = max(longest, n)
		size += int64(j.Texts) * (int64(len(e.Echo)) + int64(n)*each)
	}
	if most := h.server.AnswerBytes(); size > most {
		return &fault.Error{Class: etrun.ErrInput, Param: j.Wanted.Limit, Text: fmt.Sprintf("%d texts of up to %d tokens and %d bytes each: "+
			"an answer of %d bytes, at most %d are allowed; "+
			"want fewer texts, tokens or log-probabilities, or a stream", len(list)*j.Texts, longest, each, size, most)}
	}
	return nil
}

// run generates the texts, one after the other. Between them those of other requests may be generated.
func (w *generation) run(ctx context.Context) error {
	w.sink.Use(w.g.model.Tokenizer())
	list, err := w.job.Encode(ctx, w.g.prompts())
	if err == nil {
		err = w.checkSize(w.g, w.job, list)
	}
	if err != nil {
		return err
	}
	o := ownerOf(ctx, w.job.Salt)
	for i, e := range list {
		for n := 0; n < w.job.Texts; {
			if i > 0 || n > 0 {
				if err := w.lease.Yield(ctx); err != nil {
					return err
				}
			}
			err := w.g.use(ctx, o, w.job.Prefix(&e), func(s *text.Session) (err error) {
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
func (w *generation) choices(ctx context.Context, s *text.Session, e *requests.Encoded, n int) (int, error) {
	o := w.job.Options
	o.Ends, o.Shown, o.Parts = e.Ends, e.Shown, e.Parts
	o.Seed += uint64(n)
	if e.Form != nil {
		o.Form = e.Form
	}
	for more := true; more && n < w.job.Texts; n++ {
		if err := w.sink.Next(e.Prompt, e.Echo, e.Split); err != nil {
			return n, err
		}
		if w.job.Wanted.Score {
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
func (w *generation) score(ctx context.Context, s *text.Session, e *requests.Encoded) error {
	for tokens, err := range s.Score(ctx, e.Prompt, w.job.Options.Top) {
		if err == nil {
			w.lease.Began()
			err = w.sink.Piece(&text.Piece{Tokens: tokens}, false)
		}
		if err != nil {
			return w.job.Named(fault.Of(ctx, err, ""))
		}
	}
	return nil
}

// choice generates a text of a prompt. first means that it is the first one.
func (w *generation) choice(ctx context.Context, s *text.Session, e *requests.Encoded, o text.Options, first bool) error {
	j := w.job
	if j.None {
		p := text.Piece{Finish: text.FinishLength, Stats: text.Stats{Prompt: len(e.Prompt)}}
		if j.Wanted.Score {
			w.observe(w.model, &p)
		}
		return w.sink.Piece(&p, first)
	}
	member := j.FormMember
	if e.Form != nil {
		member = e.FormMember
	}
	if o.Form != nil {
		w.sink.NotEnforced(o.Form.NotEnforced())
	}
	for p, err := range s.GenerateTokens(ctx, e.Prompt, o) {
		if j.Wanted.Score { // by this request
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
			err = cmp.Or(w.sink.Piece(&p, first), err)
		}
		if err != nil {
			return j.Named(fault.Of(ctx, err, member))
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
	h.serve(w, r, requests.ResponseMembers, &requests.Response{})
}
