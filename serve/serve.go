// Package serve answers inference requests over HTTP in the Open Inference Protocol,
// version 2; it carries no compatibility promise.
//
//	s, err := serve.New(serve.Options{}, serve.Config{Name: "digits", Open: open})
//	err = s.LoadAll(ctx)
//	defer s.Close()
//	err = http.Serve(listener, s)
//
// A [Server] is an http.Handler over models. Each has a bounded queue: a request that it
// has no place for is refused at once, one that waits too long ends with its deadline. A
// load replaces a model while requests go on: the new program is opened and tried, takes
// the old one's place, and the old one is closed when its last request has ended.
//
// Listening, encryption, who may call, logs and metrics are for the program around it.
// Nothing of a request is ever a path or an option.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// Options are those of a server. Zero fields mean the defaults.
type Options struct {
	// Version is that of the program, for the server's metadata.
	Version string
	// BodyBytes bounds the body of one request, default 64 MiB. A model whose inputs have
	// bounds takes no more than these justify.
	BodyBytes int64
	// BusyBytes bounds the bodies of all requests that are being read or answered,
	// default 256 MiB. Further ones are refused until there is room.
	BusyBytes int64
	// BodyTimeout bounds the time to read a body, default 30 s, and to write an answer.
	BodyTimeout time.Duration
	// Control lets requests load and unload models.
	Control bool
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	options Options
	models  []*Model // by name
	mux     *http.ServeMux
	budget  budget
	longest time.Duration   // time limit of the models
	ctx     context.Context // ends with Close: that of loads
	cancel  context.CancelFunc
}

// names are what models may be called: a part of a path.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// New makes a server of models, none of which is loaded yet.
func New(o Options, models ...Config) (*Server, error) {
	o.BodyBytes = cmp.Or(o.BodyBytes, 64<<20)
	o.BusyBytes = cmp.Or(o.BusyBytes, 256<<20)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, 30*time.Second)
	s := &Server{options: o, budget: budget{limit: o.BusyBytes}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, c := range models {
		if !names.MatchString(c.Name) {
			return nil, fmt.Errorf("model name %.140q, want letters, digits, dots, dashes and underscores", c.Name)
		}
		if s.Model(c.Name) != nil {
			return nil, fmt.Errorf("two models with the name %q", c.Name)
		}
		m := newModel(c)
		s.models, s.longest = append(s.models, m), max(s.longest, m.config.Timeout)
	}
	slices.SortFunc(s.models, func(a, b *Model) int { return cmp.Compare(a.config.Name, b.config.Name) })
	s.mux = s.routes()
	return s, nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.writeBy(w, s.options.BodyTimeout+s.longest) // an earlier request of the connection left its own
	s.mux.ServeHTTP(w, r)
}

// writeBy sets a time limit for writing the answer.
func (s *Server) writeBy(w http.ResponseWriter, after time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(after + s.options.BodyTimeout)) // see readBy
}

// Model finds a model, nil for none of the name.
func (s *Server) Model(name string) *Model {
	for _, m := range s.models {
		if m.config.Name == name {
			return m
		}
	}
	return nil
}

// Models are all models, by name.
func (s *Server) Models() []*Model { return slices.Clone(s.models) }

// LoadAll loads, or loads anew, every model, one after the other. The error joins those of
// all that failed, which go on as they were.
func (s *Server) LoadAll(ctx context.Context) error {
	var all []error
	for _, m := range s.models {
		if err := m.Load(ctx); err != nil {
			all = append(all, fmt.Errorf("model %s: %w", m.config.Name, err))
		}
	}
	return errors.Join(all...)
}

// Ready reports that every model is loaded.
func (s *Server) Ready() bool {
	return !slices.ContainsFunc(s.models, func(m *Model) bool { return m.State() != Ready })
}

// Try executes each model that is loaded once, in its turn among the requests.
func (s *Server) Try(ctx context.Context) error {
	for _, m := range s.models {
		if err := m.Try(ctx); err != nil {
			return fmt.Errorf("model %s: %w", m.config.Name, err)
		}
	}
	return nil
}

// Close ends loads, unloads all models and waits for the requests that use them.
func (s *Server) Close() error {
	s.cancel()
	for _, m := range s.models {
		_ = m.Unload(context.Background()) // fails where it is not loaded
	}
	return nil
}
