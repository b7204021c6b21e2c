package openai

import (
	"fmt"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
)

// Options configures a handler. Zero fields mean the defaults.
type Options struct {
	// BodyBytes bounds the body of a request, default 1 MiB; the server's limit applies as well.
	BodyBytes int64
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
	return &requestError{etrun.ErrInput, "model", "", fmt.Sprintf("the model %s %s", quote(m.Name()), does)}
}

// usable reports whether a model answers requests, or will.
func usable(m *serve.Model) bool {
	state := m.State()
	return m.Available() || state != serve.Unloaded && state != serve.Failed
}

// find returns a model by its name, the only language model without one.
func (h *handler) find(name string) (*serve.Model, error) {
	if name == "" {
		return h.only()
	}
	m := h.server.Model(name)
	switch {
	case m == nil || !m.Attached():
		return nil, &requestError{serve.ErrUnknown, "model", "model_not_found", "no model " + quote(name)}
	case m.State() == serve.Unloaded && !m.Available():
		return nil, &requestError{serve.ErrUnknown, "model", "model_not_found", "the model " + quote(name) + " is not loaded"}
	}
	return m, nil
}

// only returns the only language model of the server, whatever its state.
func (h *handler) only() (only *serve.Model, err error) {
	for _, m := range h.server.Models() {
		if !m.Attached() {
			continue
		}
		if only != nil {
			return nil, missing("model")
		}
		only = m
	}
	if only == nil {
		return nil, missing("model")
	}
	return h.find(only.Name())
}
