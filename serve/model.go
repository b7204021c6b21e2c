package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Config is a model. Zero fields mean the defaults.
type Config struct {
	Name string
	// Open opens the program, at each load. The server closes it.
	Open func(ctx context.Context) (*etrun.Program, error)
	// Check decides whether a method that was loaded may serve; nil executes it on random
	// inputs. It must not keep the method.
	Check func(ctx context.Context, m *etrun.Method) error
	// Start opens the program, tries it, and may have it run in another process. nil is
	// for Open and Check.
	Start func(ctx context.Context) (Program, error)
	// Loaded hears of each load and how it ended; nil for nobody.
	Loaded func(err error)
	// Methods are served under their names as versions; empty means all.
	Methods []string
	// Observer is told of the waits of requests, as of those of a pool; nil for nobody.
	// Observers of what the program does are for Open, without trace.Pools.
	Observer etrun.Observer

	Instances  int           // requests that execute at once, default 2
	Queue      int           // requests that wait, default 64; negative for none
	Timeout    time.Duration // from a request's header to its outputs, default 10 s
	MaxBatch   int           // rows of requests that are joined into one execute, 0 or 1 for none
	BatchDelay time.Duration // how long a batch waits for further requests
	Sequences  SequenceLimits
}

// SequenceLimits bound the requests that keep state. Zero fields mean the defaults.
type SequenceLimits struct {
	Most  int           // sequences at once, default 16
	Idle  time.Duration // after which one ends, default 1 min
	Bytes int64         // of memory of all their instances, default 1 GiB
}

// State is what a model is doing.
type State string

// States of a model.
const (
	Unloaded State = "UNLOADED"
	Loading  State = "LOADING" // for the first time, or after Unload
	Ready    State = "READY"   // also while it is loaded anew
	Failed   State = "FAILED"  // its first load failed
	// Restarting is a program whose process ended, while another one is begun.
	Restarting State = "RESTARTING"
)

// Faults of requests to a model; match with errors.Is.
var (
	ErrNotReady = errors.New("model is not ready")
	ErrUnknown  = errors.New("not found")
	ErrEnded    = errors.New("no such sequence") // it ended, or never began
	// ErrCrashed is a request that was under way when the process of its program ended.
	ErrCrashed = errors.New("the process of the model ended")
)

// Model is one of a server's models.
type Model struct {
	config  Config
	queue   *queue
	loading sync.Mutex // held by Load and Unload

	mu      sync.Mutex
	state   State
	reason  string // of Failed
	current *version
}

func newModel(c Config) *Model {
	c.Instances = cmp.Or(max(c.Instances, 0), 2)
	c.Queue = cmp.Or(c.Queue, 64)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.MaxBatch = max(c.MaxBatch, 1)
	c.Sequences.Most = cmp.Or(c.Sequences.Most, 16)
	c.Sequences.Idle = cmp.Or(c.Sequences.Idle, time.Minute)
	c.Sequences.Bytes = cmp.Or(c.Sequences.Bytes, 1<<30)
	if c.Start == nil {
		c.Start = func(ctx context.Context) (Program, error) {
			p, err := c.Open(ctx)
			if err != nil {
				return nil, err
			}
			return Local(p, c.Check), nil
		}
	}
	return &Model{config: c, state: Unloaded, queue: newQueue(c.Instances, c.MaxBatch, max(c.Queue, 0))}
}

// Name is the model's name.
func (m *Model) Name() string { return m.config.Name }

// State says what the model is doing.
func (m *Model) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	state, _ := m.now()
	return state
}

// now is the state, with a reason where it is bad. m.mu is held.
func (m *Model) now() (State, string) {
	if m.current != nil {
		if down := m.current.program.Down(); down != nil {
			return Restarting, down.Error()
		}
	}
	return m.state, m.reason
}

// Waiting is how many requests wait for their turn.
func (m *Model) Waiting() int { return m.queue.waiting() }

// Load opens the program, tries each method, and puts it in the place of the one that
// serves now, if there is one, which is closed after its last request. Sequences end with
// it. Where Load fails the old one stays. Loads of one model follow one another.
func (m *Model) Load(ctx context.Context) (err error) {
	m.loading.Lock()
	defer m.loading.Unlock()
	defer func() {
		if m.config.Loaded != nil {
			m.config.Loaded(err)
		}
	}()
	m.change(func() {
		if m.current == nil {
			m.state = Loading
		}
	})
	v, err := m.open(ctx)
	if err != nil {
		m.change(func() {
			if m.current == nil {
				m.state, m.reason = Failed, err.Error()
			}
		})
		return err
	}
	m.replace(v, Ready)
	return nil
}

// Unload closes the program after its last request, and waits for that no longer than ctx
// allows. It fails where nothing is loaded.
func (m *Model) Unload(ctx context.Context) error {
	m.loading.Lock()
	defer m.loading.Unlock()
	old := m.replace(nil, Unloaded)
	if old == nil {
		return fmt.Errorf("model %q: %w", m.config.Name, ErrNotReady)
	}
	select {
	case <-old.closed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// replace swaps versions and retires the old one, which it returns.
func (m *Model) replace(v *version, state State) (old *version) {
	m.change(func() { old, m.current, m.state, m.reason = m.current, v, state, "" })
	if old != nil {
		old.sequences.close()
		old.release()
	}
	return old
}

func (m *Model) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// acquire is the version that serves; the caller releases it.
func (m *Model) acquire() (*version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if state, _ := m.now(); state != Ready {
		return nil, &stateError{m.config.Name, state}
	}
	m.current.users.Add(1)
	return m.current, nil
}

// stateError is a request to a model that does not serve.
type stateError struct {
	model string
	state State
}

func (e *stateError) Error() string {
	return fmt.Sprintf("model %q is not ready: %s", e.model, e.state)
}

// Unwrap is ErrUnknown where nobody wants the model loaded.
func (e *stateError) Unwrap() error {
	if e.state == Unloaded {
		return ErrUnknown
	}
	return ErrNotReady
}

// Try executes each method once on random inputs, in its turn among the requests. A model
// that is not loaded is left out.
func (m *Model) Try(ctx context.Context) error {
	v, err := m.acquire()
	if err != nil {
		return nil
	}
	defer v.release()
	for _, e := range v.endpoints {
		end, err := m.queue.turn(ctx)
		if err != nil {
			return err
		}
		err = e.try(ctx)
		end()
		if err != nil {
			return err
		}
	}
	return nil
}

// waited tells the observer of a wait.
func (m *Model) waited(ctx context.Context, method string, begun time.Duration, err error) {
	if o := m.config.Observer; o != nil && o.Wants().Has(trace.Wait) {
		o.Observe(&trace.Event{Kind: trace.Wait, Name: method, Method: method, Chain: -1, Instruction: -1, Delegate: -1, Index: -1,
			Start: begun, End: trace.Now(), Context: ctx, Err: err, Reason: reasonOf(err)})
	}
}

// reasonOf is the word of trace.Event for how a wait ended.
func reasonOf(err error) string {
	_, busy := errors.AsType[*busyError](err)
	switch {
	case err == nil:
		return ""
	case busy:
		return "busy"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "other"
}
