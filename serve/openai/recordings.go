package openai

import (
	"context"
	"math"
	"net/http"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/audio"
	"github.com/etrun-go/etrun/serve/openai/internal/answer"
)

func (h *handler) transcriptions(w http.ResponseWriter, r *http.Request) { h.recording(w, r, false) }
func (h *handler) translations(w http.ResponseWriter, r *http.Request)   { h.recording(w, r, true) }

// recording answers a request for the text of a recording. Its body may be as large as the server's limit of bodies.
func (h *handler) recording(w http.ResponseWriter, r *http.Request, translate bool) {
	body, hold, err := h.server.ReadBody(w, r, math.MaxInt64)
	if err != nil {
		h.server.WriteBy(w)
		answer.Fail(w, err)
		return
	}
	defer hold.Release()
	var request *audio.Request
	if err = hold.Grow(int64(len(body))); err == nil { // the recording is copied out of the form
		request, err = audio.Parse(r.Header.Get("Content-Type"), body, translate)
	}
	var m *serve.Model
	if err == nil {
		m, err = h.find(request.Model, KindSpeech)
	}
	if err != nil {
		h.server.WriteBy(w)
		answer.Fail(w, err)
		return
	}
	hold.Shrink(int64(len(body)))
	body = nil // only the recording is needed
	a := audio.NewAnswer(h.server, w, request)
	err = m.Use(r.Context(), func(ctx context.Context, x serve.Attachment, l *serve.Lease) error {
		s, ok := x.(*audio.Model)
		if !ok {
			return notOfKind(m, "does not transcribe recordings")
		}
		return a.Run(ctx, s, l)
	})
	if err != nil {
		a.Fail(err)
	}
}
