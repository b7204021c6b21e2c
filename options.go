package etrun

import (
	"context"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/plan"
)

// Option configures Open and Read.
type Option func(*config)

type config struct {
	backends  map[string]delegate.Backend
	operators *kernels.Set
	dataFiles []string
	threads   int
	limits    Limits
	maxMemory int64
	seed      uint64
	plan      PlanMode
	strict    bool
	preserve  bool
	mmap      bool
	watchers  []watcher
}

// planning is how methods are planned unless they bring their memory.
func (c *config) planning() plan.Options { return plan.Options{Mode: c.plan, Preserve: c.preserve} }

// watch makes a watch of one piece of loading or freeing, nil where nobody wants it.
func (c *config) watch(ctx context.Context, method string) *watch {
	if len(c.watchers) == 0 {
		return nil
	}
	return newWatch(ctx, c.watchers, method)
}

// PlanMode chooses whose memory plan a method uses.
type PlanMode = plan.Mode

// Plan modes.
const (
	PlanAuto  = plan.Auto  // the smaller of the file's and our own that is safe
	PlanFile  = plan.File  // the file's, unless it is unsafe
	PlanOwn   = plan.Own   // our own
	PlanNaive = plan.Naive // one place per storage, nothing reused
)

// WithDelegates adds backends; a later one replaces an earlier one of the same ID.
func WithDelegates(backends ...delegate.Backend) Option {
	return func(c *config) {
		for _, b := range backends {
			c.backends[b.ID()] = b
		}
	}
}

// WithOperators replaces the set of operators, [DefaultOperators] otherwise.
func WithOperators(s *kernels.Set) Option { return func(c *config) { c.operators = s } }

// WithDataFiles adds .ptd files with external weights. No path is ever taken from
// inside a program.
func WithDataFiles(paths ...string) Option {
	return func(c *config) { c.dataFiles = append(c.dataFiles, paths...) }
}

// WithThreads sets the thread budget that all methods of the program share; 0 means
// the processors that the process may use.
func WithThreads(n int) Option { return func(c *config) { c.threads = n } }

// WithLimits bounds what the program may cost.
func WithLimits(l Limits) Option { return func(c *config) { c.limits = l } }

// WithMaxMemory refuses, before allocating it, a method whose memory together with
// the file would exceed n bytes.
func WithMaxMemory(n int64) Option { return func(c *config) { c.maxMemory = n } }

// WithSeed seeds the operators that draw random numbers.
func WithSeed(seed uint64) Option { return func(c *config) { c.seed = seed } }

// WithPlan chooses the memory plan.
func WithPlan(m PlanMode) Option { return func(c *config) { c.plan = m } }

// WithStrictPlan refuses a program whose own memory plan would corrupt values,
// where otherwise it is planned anew.
func WithStrictPlan() Option { return func(c *config) { c.strict = true } }

// WithPreservedInputs keeps inputs intact during an execute, so that the next one
// may run without setting them again. It costs their bytes for the whole execute.
func WithPreservedInputs() Option { return func(c *config) { c.preserve = true } }

// WithMmap maps files into memory instead of reading them. The file must not change
// while the program is open: a shortened file ends the process.
func WithMmap() Option { return func(c *config) { c.mmap = true } }

// WithObserver adds an observer of the program, from its opening until it is closed.
func WithObserver(o Observer) Option {
	return func(c *config) { c.watchers = append(c.watchers, newWatcher(o)) }
}
