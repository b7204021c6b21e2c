package openai

import (
	"context"
	"net/http"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/embed"
	"github.com/etrun-go/etrun/serve/openai/internal/answer"
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
)

func (h *handler) embeddings(w http.ResponseWriter, r *http.Request) {
	v := &embed.Vectors{Embedding: &requests.Embedding{}}
	h.vectors(w, r, requests.EmbeddingMembers, v.Embedding, v, v.Answer)
}

// vectors answers a request for vectors, of which v has the texts when into is read and checked.
func (h *handler) vectors(w http.ResponseWriter, r *http.Request, members requests.Object, into interface{ Check() error }, v *embed.Vectors,
	object func(model string) any) {
	v.Most, v.Observe = h.server.AnswerBytes(), h.options.Embedded
	body, err := h.read(w, r, members, into, 3*decodedShare) // with the tokens
	defer body.Release()
	v.Hold = body.Another()
	defer v.Hold.Release()
	if err == nil {
		err = into.Check()
	}
	var m *serve.Model
	if err == nil {
		m, err = h.find(v.Model, KindVector)
	}
	if err == nil {
		err = m.Use(r.Context(), func(ctx context.Context, x serve.Attachment, l *serve.Lease) error {
			e, ok := x.(*embed.Model)
			if !ok {
				return notOfKind(m, noVectors(x))
			}
			return v.Compute(ctx, e, m.Name(), l)
		})
	}
	h.server.WriteBy(w) // the request may have waited longer than the limit
	if err != nil {
		styleOf(into).Fail(w, err)
		return
	}
	answer.Send(w, http.StatusOK, object(m.Name()))
}

// noVectors says what a model does that computes no vectors.
func noVectors(x serve.Attachment) string {
	if _, ok := x.(*generator); ok {
		return "generates texts, and computes no vectors of them"
	}
	return noTexts(x)
}
