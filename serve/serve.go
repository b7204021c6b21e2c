// Package serve (no compatibility promise) answers inference requests over HTTP in the Open
// Inference Protocol, version 2:
//
//	s, err := serve.New(serve.Options{}, serve.Config{Name: "digits", Open: open})
//	err = s.LoadAll(ctx)
//	defer s.Close()
//	err = http.Serve(listener, s)
//
// A [Server] is an http.Handler for its models. Each model has a bounded queue: requests beyond it
// are refused at once, and requests that wait too long fail at their deadline. A load replaces a
// model without interrupting requests: the new program is opened and tested, then replaces the old
// one, which is closed after its last request.
//
// The methods of a Server answer the same for other protocols, such as that of package grpc.
//
// Listening, TLS, authentication, logs and metrics are left to the caller. Requests never contain
// paths or options.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/lazy"
)

// Options configures a server. Zero fields mean the defaults.
type Options struct {
	// Version is the version of the program, for the server's metadata.
	Version string
	// BodyBytes bounds the body of one request, default 64 MiB. Models with bounded inputs accept
	// no more than these need.
	BodyBytes int64
	// BusyBytes bounds the bodies of all requests in progress, default 256 MiB. Requests beyond it
	// are refused.
	BusyBytes int64
	// BodyTimeout bounds the time to read a body, default 30 s, and to write an answer.
	BodyTimeout time.Duration
	// MemoryBytes bounds the memory of all programs, as reported by Config.Memory, 0 for no bound. A load unloads models that
	// are loaded on demand until its model fits: those that were not used for the longest time first.
	MemoryBytes int64
	// Strict makes the server ready only if all models are loaded, also those that were unloaded on purpose or are loaded on
	// demand.
	Strict bool
	// Control allows requests to load and unload models.
	Control bool
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	options Options
	models  atomic.Pointer[modelSet]
	mux     *http.ServeMux
	budget  budget
	common  *common
	cancel  context.CancelFunc

	applying sync.Mutex
	retiring sync.WaitGroup
}

// modelSet are the models of a server at one time.
type modelSet struct {
	models  []*Model      // by name
	longest time.Duration // longest time limit of a model
}

// newSet sorts the models.
func newSet(models []*Model) *modelSet {
	set := &modelSet{models: models}
	slices.SortFunc(models, func(a, b *Model) int { return cmp.Compare(a.config.Name, b.config.Name) })
	for _, m := range models {
		set.longest = max(set.longest, m.config.Timeout)
	}
	return set
}

// find returns the model with a name, or nil.
func (s *modelSet) find(name string) *Model {
	for _, m := range s.models {
		if m.config.Name == name {
			return m
		}
	}
	return nil
}

// names are the valid model names: they are part of a path.
var names = lazy.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// statisticsPath is the path of the statistics of all models, so that statisticsName is no model's name.
const (
	statisticsPath = "/v2/models/" + statisticsName
	statisticsName = "stats"
)

// New returns a server of models. None of them is loaded yet.
func New(o Options, models ...Config) (*Server, error) {
	o.BodyBytes = cmp.Or(o.BodyBytes, 64<<20)
	o.BusyBytes = cmp.Or(o.BusyBytes, 256<<20)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, 30*time.Second)
	s := &Server{options: o, budget: budget{limit: o.BusyBytes}}
	s.common = &common{limit: o.MemoryBytes, loading: make(chan struct{}, 1), models: s.Models}
	s.common.ctx, s.cancel = context.WithCancel(context.Background())
	set, err := s.newModels(models)
	if err != nil {
		return nil, err
	}
	s.models.Store(newSet(set))
	s.mux = s.routes()
	return s, nil
}

// CheckName returns an error if a model cannot have this name, which is part of paths.
func CheckName(name string) error {
	if !names().MatchString(name) {
		return fmt.Errorf("model name %.140q, want letters, digits, dots, dashes and underscores", name)
	}
	if name == statisticsName {
		return fmt.Errorf("model name %q, which is part of the path of the statistics of all models", name)
	}
	return nil
}

// newModels returns the models of configurations, whose names must be valid and different.
func (s *Server) newModels(configs []Config) (models []*Model, err error) {
	known := make(map[string]bool)
	for _, c := range configs {
		if err := CheckName(c.Name); err != nil {
			return nil, err
		}
		if known[c.Name] {
			return nil, fmt.Errorf("two models with the name %q", c.Name)
		}
		known[c.Name] = true
		models = append(models, newModel(c, s.common))
	}
	return models, nil
}

// Put adds a model, or replaces the one of its name, which is closed after its last request. The new one is opened and tested
// before; if that fails the server is unchanged. A model that is loaded on demand is not opened if the one of its name is not
// loaded either.
func (s *Server) Put(ctx context.Context, c Config) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	if s.isClosed() {
		return errServerClosed()
	}
	models, err := s.newModels([]Config{c})
	if err != nil {
		return err
	}
	m, old := models[0], s.Model(c.Name)
	if !c.OnDemand || old != nil && old.State() == Ready {
		if err := m.Load(ctx); err != nil {
			return err
		}
	}
	s.put(m)
	return nil
}

// PutFailed adds a model that could not be read or loaded: it is listed as such, and requests to it get the reason. A model of its
// name that is loaded, or is loaded on demand, stays. A load by a request is one of the configuration.
func (s *Server) PutFailed(c Config, why error) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	if old := s.Model(c.Name); s.isClosed() || old != nil && (old.State() != Failed || old.config.OnDemand) {
		return nil
	}
	c.OnDemand = false
	models, err := s.newModels([]Config{c})
	if err != nil {
		return err
	}
	m := models[0]
	m.change(func() { m.state, m.reason, m.evicted = Failed, why.Error(), true })
	s.put(m)
	return nil
}

// Remove removes a model, which is closed after its last request. It reports whether there was one of this name.
func (s *Server) Remove(name string) bool {
	s.applying.Lock()
	defer s.applying.Unlock()
	old := s.Model(name)
	if old == nil || s.isClosed() {
		return false
	}
	s.models.Store(newSet(slices.DeleteFunc(s.Models(), func(m *Model) bool { return m == old })))
	s.retire(old)
	return true
}

// put adds a model, or replaces the one of its name.
func (s *Server) put(m *Model) {
	models, old := s.Models(), s.Model(m.config.Name)
	if old == nil {
		models = append(models, m)
	} else {
		models[slices.Index(models, old)] = m
		old.change(func() { old.next = m })
	}
	s.models.Store(newSet(models))
	if old != nil {
		s.retire(old)
	}
}

// retire closes a model that no request finds any more, after its last request.
func (s *Server) retire(m *Model) {
	s.retiring.Go(func() { _ = m.retire(ErrUnknown) }) // fails if it is not loaded
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.AnswerBy(w) // replaces the limit of the connection's previous request
	limitBody(w, r, s.mux, s.options.BodyTimeout)
}

// AnswerBy sets a time limit for the answer to a request that is still to be read and executed.
func (s *Server) AnswerBy(w http.ResponseWriter) {
	s.writeBy(w, s.options.BodyTimeout+s.models.Load().longest)
}

// BodyBytes is the maximum size of a request.
func (s *Server) BodyBytes() int64 { return s.options.BodyBytes }

// BusyBytes is the maximum size of all requests in progress.
func (s *Server) BusyBytes() int64 { return s.options.BusyBytes }

// BodyTimeout is the maximum time in which a client sends a request.
func (s *Server) BodyTimeout() time.Duration { return s.options.BodyTimeout }

// writeBy sets a time limit for writing the answer.
func (s *Server) writeBy(w http.ResponseWriter, after time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(after + s.options.BodyTimeout)) // not supported by all writers
}

// Model returns the model with this name, or nil.
func (s *Server) Model(name string) *Model { return s.models.Load().find(name) }

// Models returns all models, sorted by name.
func (s *Server) Models() []*Model { return slices.Clone(s.models.Load().models) }

// LoadAll loads or reloads every model, one after the other, but those that are loaded on demand. The error joins those of all models
// that failed, which stay unchanged.
func (s *Server) LoadAll(ctx context.Context) error {
	if s.isClosed() {
		return errServerClosed()
	}
	var all []error
	for _, m := range s.models.Load().models {
		if m.config.OnDemand {
			continue
		}
		if err := m.Load(ctx); err != nil {
			all = append(all, fmt.Errorf("model %s: %w", m.config.Name, err))
		}
	}
	return errors.Join(all...)
}

// Ready reports whether every model is loaded, except those that were unloaded on purpose and those that are loaded on demand,
// unless Options.Strict is set. A closed server is not ready.
func (s *Server) Ready() bool {
	return !s.isClosed() && !slices.ContainsFunc(s.models.Load().models, func(m *Model) bool { return !m.settled(s.options.Strict) })
}

// isClosed reports whether Close was called.
func (s *Server) isClosed() bool { return s.common.ctx.Err() != nil }

func errServerClosed() error { return fmt.Errorf("server: %w", etrun.ErrClosed) }

// Try runs each loaded model once, in its queue of requests.
func (s *Server) Try(ctx context.Context) error {
	for _, m := range s.models.Load().models {
		if err := m.Try(ctx); err != nil {
			return fmt.Errorf("model %s: %w", m.config.Name, err)
		}
	}
	return nil
}

// Close cancels loads, unloads all models and waits for their requests. Later loads return etrun.ErrClosed,
// and the server is not ready. Closing twice is allowed.
func (s *Server) Close() error {
	s.cancel()
	s.applying.Lock() // an Apply in progress ends first
	defer s.applying.Unlock()
	for _, m := range s.Models() {
		_ = m.retire(etrun.ErrClosed) // fails if it is not loaded
	}
	s.retiring.Wait()
	return nil
}

// MemoryBytes returns the memory of all programs, as far as it is known: see Config.Memory.
func (s *Server) MemoryBytes() int64 {
	s.common.settle()
	return s.common.used.Load()
}

// MemoryLeft returns how much of Options.MemoryBytes is left.
func (s *Server) MemoryLeft() int64 { return s.common.limit - s.MemoryBytes() }
