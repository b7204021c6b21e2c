package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Config configures a model. Zero fields mean the defaults.
type Config struct {
	Name string
	// Open opens the program, at each load. The server closes it.
	Open func(ctx context.Context) (*etrun.Program, error)
	// Check decides whether a loaded method may serve; if nil, it is run on random inputs. Check
	// must not retain the method.
	Check func(ctx context.Context, m *etrun.Method) error
	// Start opens and tests the program, possibly in another process. If nil, Open and Check are
	// used.
	Start func(ctx context.Context) (Program, error)
	// Loaded is called after each load with its result. It may be nil.
	Loaded func(err error)
	// Attach, if not nil, makes an attachment for each opened program, which must be one of this
	// process. The model then answers through Use only, and Check and Methods are not used.
	Attach func(ctx context.Context, p *etrun.Program) (Attachment, error)
	// Kind names what Attach makes, for those who look for a model of a kind before it is loaded; empty if it is not known.
	Kind string
	// Methods are served under their names as versions; empty means all.
	Methods []string
	// Memory returns the bytes of memory of the program that was opened last, Size what is expected before the first load.
	// They count toward Options.MemoryBytes, and may be nil.
	Memory, Size func() int64
	// Unloaded is called when the server has unloaded a model that is loaded on demand, with the reason: "idle" or "memory".
	// It may be nil.
	Unloaded func(why string)
	// Version is another name of the default method, such as the number of the model's version; empty for none.
	Version string
	// Observer receives the waits of requests, like those of a pool; it may be nil. Events of the
	// program go to the observer that Open sets, which should not include trace.Pools.
	Observer etrun.Observer

	Instances  int           // requests that run concurrently, default 2
	Queue      int           // requests that wait, default 64; negative for none
	Timeout    time.Duration // from a request's header to its outputs, default 10 s
	MaxBatch   int           // rows of requests that are batched into one run, 0 or 1 for none
	BatchDelay time.Duration // how long a batch waits for more requests
	Sequences  SequenceLimits

	// OnDemand loads the model when a request needs it, instead of in LoadAll. The server unloads it after Idle without
	// requests (0: never), and for the memory of others. After Unload requests load it no more, until Load.
	OnDemand bool
	Idle     time.Duration
}

// SequenceLimits bounds the sequences of a model. Zero fields mean the defaults.
type SequenceLimits struct {
	Max   int           // open sequences, default 16
	Idle  time.Duration // idle time until one ends, default 1 min
	Bytes int64         // memory of all their instances, default 1 GiB
}

// State is the state of a model.
type State string

// States of a model.
const (
	Unloaded State = "UNLOADED"
	Loading  State = "LOADING"     // for the first time, or after Unload
	Ready    State = "READY"       // also during a reload
	Failed   State = "UNAVAILABLE" // its first load failed
	// Restarting means that the program's process ended and is being restarted.
	Restarting State = "RESTARTING"
)

// Errors of requests to a model; match with errors.Is.
var (
	ErrNotReady = errors.New("model is not ready")
	ErrUnknown  = errors.New("not found")
	ErrEnded    = errors.New("no such sequence") // it has ended, or was never started
	// ErrCrashed means that the program's process ended during the request.
	ErrCrashed = errors.New("the model's process ended")
)

// Model is one of a server's models.
type Model struct {
	config  Config
	common  *common
	queue   *queue
	loading sync.Mutex  // held by Load and Unload
	opening atomic.Bool // a load has begun: the memory that is reported is that of the next version
	moves   progress    // of uses of the attachment that have begun to answer

	mu      sync.Mutex
	state   State
	reason  string // for Failed
	current *version
	next    *Model       // what replaced it, for requests that found it before
	evicted bool         // unloaded on purpose, and not loaded again since
	stopped bool         // unloaded by Unload: requests do not load it
	pending *pendingLoad // nil if no request waits for a load
	idle    *time.Timer
	retry   time.Time     // when a load on demand is tried again, for Failed
	pause   time.Duration // before that
	size    int64         // memory of the last version, 0 if none was loaded
	used    atomic.Int64  // time of the last request in Unix nanoseconds
	retired error         // why it is never loaded again, nil otherwise; read and set while loading is locked
}

func newModel(c Config, h *common) *Model {
	c.Instances = cmp.Or(max(c.Instances, 0), 2)
	c.Queue = cmp.Or(c.Queue, 64)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.MaxBatch = max(c.MaxBatch, 1)
	c.Sequences.Max = cmp.Or(c.Sequences.Max, 16)
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
	return &Model{config: c, common: h, state: Unloaded, queue: newQueue(c.Instances, c.MaxBatch, max(c.Queue, 0))}
}

// Name returns the model's name.
func (m *Model) Name() string { return m.config.Name }

// State returns the state of the model.
func (m *Model) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	state, _ := m.now()
	return state
}

// settled reports whether the model is as it should be: ready, or unloaded on purpose, or not needed yet. If strict it must be
// ready.
func (m *Model) settled(strict bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	state, _ := m.now()
	return state == Ready || !strict && (m.evicted || m.config.OnDemand)
}

// now returns the state, and the reason of a bad one. m.mu is locked.
func (m *Model) now() (State, string) {
	if m.current != nil {
		if down := m.current.program.Down(); down != nil {
			return Restarting, down.Error()
		}
	}
	return m.state, m.reason
}

// Running returns the number of requests that run, and how many may.
func (m *Model) Running() (n, most int) { return m.queue.scheduler.count(), m.config.Instances }

// Waiting returns the number of requests that wait for their turn.
func (m *Model) Waiting() int { return m.queue.waiting() }

func (m *Model) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// acquire returns the current version; the caller must release it.
func (m *Model) acquire() (*version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil && m.next != nil {
		return m.next.acquire()
	}
	if state, _ := m.now(); state != Ready {
		return nil, m.notReady()
	}
	m.current.users.Add(1)
	return m.current, nil
}

// notReady is the error of requests while the model is not ready. m.mu is locked.
func (m *Model) notReady() error {
	state, reason := m.now()
	return &stateError{m.config.Name, state, reason}
}

// aboutError is the answer to a question about a model that could not be loaded. The log has the reason since the load.
type aboutError struct {
	error
	reason string
}

// Unwrap returns the error.
func (e *aboutError) Unwrap() error { return e.error }

// aboutModel returns the error of a question about a model: with the reason if it could not be loaded.
func aboutModel(err error) error {
	if s, ok := errors.AsType[*stateError](err); ok && s.state == Failed {
		return &aboutError{err, ": " + s.reason}
	}
	return err
}

// stateError is a request to a model that is not ready, and the reason of a bad state.
type stateError struct {
	model  string
	state  State
	reason string
}

func (e *stateError) Error() string {
	return fmt.Sprintf("model %q is not ready: %s", e.model, e.state)
}

// Unwrap returns ErrUnknown if the model is unloaded.
func (e *stateError) Unwrap() error {
	if e.state == Unloaded {
		return ErrUnknown
	}
	return ErrNotReady
}

// waited reports a wait to the observer.
func (m *Model) waited(ctx context.Context, method string, begun time.Duration, err error) {
	if o := m.config.Observer; o != nil && o.Wants().Has(trace.Wait) {
		o.Observe(&trace.Event{Kind: trace.Wait, Name: method, Method: method, Chain: -1, Instruction: -1, Delegate: -1, Index: -1,
			Start: begun, End: trace.Now(), Context: ctx, Err: err, Reason: reasonOf(err)})
	}
}

// reasonOf returns the trace.Event reason for the end of a wait.
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

// Attachment answers requests for a model in a protocol other than this package's.
type Attachment interface {
	// Try runs a small request, as a self-test.
	Try(ctx context.Context) error
	// Close is called after the last use, before the program is closed.
	Close() error
}

// progress lets others wait until something continues or ends.
type progress struct {
	mu      sync.Mutex
	waiting chan struct{} // closed by the next note; nil if nothing waits
}

// note ends the waits for next.
func (p *progress) note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting != nil {
		close(p.waiting)
		p.waiting = nil
	}
}

// next returns a channel that is closed by the next note.
func (p *progress) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = make(chan struct{})
	}
	return p.waiting
}

// pendingLoad is a load that requests wait for. Its fields are guarded by Model.mu until done is closed.
type pendingLoad struct {
	model   *Model
	done    chan struct{}
	cancel  context.CancelFunc // of the wait for memory, when no request waits any more
	waiters int
	version *version // with one user for each waiter; nil if the load failed
	err     error
}

// common is what the models of a server share.
type common struct {
	ctx     context.Context // for loads; canceled by Close
	limit   int64           // memory of all programs, 0 for none
	used    atomic.Int64
	loading chan struct{} // has an element during a load, if there is a limit
	models  func() []*Model

	mu      sync.Mutex
	leaving []*version // versions that no request finds any more, until they are closed
	freed   progress   // of closed versions
}
