package openai

import (
	"fmt"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/audio"
	"github.com/etrun-go/etrun/serve/openai/embed"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/text"
)

// Options configures a handler. Zero fields mean the defaults.
type Options struct {
	// BodyBytes bounds the body of a request, default 1 MiB; the server's limit applies as well.
	BodyBytes int64
	// MediaBytes bounds the body of a request that may have pictures and sounds, default 32 MiB if BodyBytes is not set.
	MediaBytes int64
	// Observe is called after each text with its model; it may be nil. It must not block.
	Observe func(model string, finish text.Finish, s text.Stats)
	// Embedded is called after each vector of a text with its model and the number of its tokens; it may be nil. It must not block.
	Embedded func(model string, tokens int)
}

// handler answers requests for the models of a server that have an attachment of this package.
type handler struct {
	server  *serve.Server
	options Options
	created int64 // Unix time of the start, for the list of models
}

// notOfKind is the error of a request for a model that does something else.
func notOfKind(m *serve.Model, does string) error {
	return &fault.Error{Class: etrun.ErrInput, Param: "model", Text: fmt.Sprintf("the model %s %s", fault.Quote(m.Name()), does)}
}

// usable reports whether a model answers requests, or will.
func usable(m *serve.Model) bool {
	state := m.State()
	return m.Available() || state != serve.Unloaded && state != serve.Failed
}

// Kinds of models, for serve.Config.Kind.
const (
	KindText   = "text"   // generates texts
	KindVector = "vector" // computes vectors of texts
	KindSpeech = "speech" // transcribes recordings
)

// modelKind returns the kind of a model: of what is loaded, else of its configuration.
func modelKind(m *serve.Model) string {
	kind := m.Kind()
	m.Loaded(func(x serve.Attachment) {
		switch x.(type) {
		case *generator:
			kind = KindText
		case *embed.Model:
			kind = KindVector
		case *audio.Model:
			kind = KindSpeech
		}
	})
	return kind
}

// find returns a model by its name. Without one it is the only model of a kind; an empty kind means any.
func (h *handler) find(name, kind string) (*serve.Model, error) {
	if name == "" {
		var err error
		if name, err = h.only(kind); err != nil {
			return nil, err
		}
	}
	m := h.server.Model(name)
	switch {
	case m == nil || !m.Attached():
		return nil, noModel("no model " + fault.Quote(name))
	case m.State() == serve.Unloaded && !m.Available():
		return nil, noModel("the model " + fault.Quote(name) + " is not loaded")
	}
	return m, nil
}

// noModel is the error of a request for a model that there is not.
func noModel(text string) error {
	return &fault.Error{Class: serve.ErrUnknown, Param: "model", Code: "model_not_found", Text: text}
}

// only returns the name of the only model of a kind, whatever its state. A model whose kind is not known may be of any. If there is
// none, it is the only model of another kind, for the error that says what that does.
func (h *handler) only(kind string) (string, error) {
	var all, fitting []string
	for _, m := range h.server.Models() {
		if !m.Attached() {
			continue
		}
		all = append(all, m.Name())
		if k := modelKind(m); kind == "" || k == "" || k == kind {
			fitting = append(fitting, m.Name())
		}
	}
	if len(fitting) == 0 {
		fitting = all
	}
	if len(fitting) != 1 {
		return "", fault.Missing("model")
	}
	return fitting[0], nil
}
