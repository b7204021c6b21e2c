package openai

import (
	"context"
	"net/http"

	"github.com/etrun-go/etrun/serve"
)

func (h *handler) embeddings(w http.ResponseWriter, r *http.Request) {
	v := &vectors{embeddingRequest: &embeddingRequest{}, most: h.server.AnswerBytes(), observe: h.options.Embedded}
	body, err := h.read(w, r, embeddingMembers, v.embeddingRequest, 3*decodedShare) // with the tokens
	defer body.Release()
	v.hold = body.Beside()
	defer v.hold.Release()
	if err == nil {
		err = v.check()
	}
	var m *serve.Model
	if err == nil {
		m, err = h.find(v.Model, KindVector)
	}
	if err == nil {
		err = m.Use(r.Context(), func(ctx context.Context, x serve.Attachment, l *serve.Lease) error {
			e, ok := x.(*embedder)
			if !ok {
				return notOfKind(m, "generates texts, and computes no vectors of them")
			}
			return v.compute(ctx, e, m.Name(), l)
		})
	}
	h.server.WriteBy(w) // the request may have waited longer than the limit
	if err != nil {
		fail(w, err)
		return
	}
	v.write(w, m.Name())
}
