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
	v := &embed.Vectors{Embedding: &requests.Embedding{}, Most: h.server.AnswerBytes(), Observe: h.options.Embedded}
	body, err := h.read(w, r, requests.EmbeddingMembers, v.Embedding, 3*decodedShare) // with the tokens
	defer body.Release()
	v.Hold = body.Beside()
	defer v.Hold.Release()
	if err == nil {
		err = v.Check()
	}
	var m *serve.Model
	if err == nil {
		m, err = h.find(v.Model, KindVector)
	}
	if err == nil {
		err = m.Use(r.Context(), func(ctx context.Context, x serve.Attachment, l *serve.Lease) error {
			e, ok := x.(*embed.Model)
			if !ok {
				return notOfKind(m, "generates texts, and computes no vectors of them")
			}
			return v.Compute(ctx, e, m.Name(), l)
		})
	}
	h.server.WriteBy(w) // the request may have waited longer than the limit
	if err != nil {
		answer.Fail(w, err)
		return
	}
	v.Write(w, m.Name())
}
