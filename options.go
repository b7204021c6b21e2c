package etrun

import (
	"context"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Option configures a program. A later one replaces an earlier one unless it says that it
// adds.
type Option func(*config)

type config struct {
	backends  map[string]delegate.Backend
	operators *kernels.Set
	rows      []kernels.Op // to be added
	data      []Source
	threads   int
	limits    Limits
	maxMemory int64
	seed      uint64
	plan      PlanMode
	strict    bool
	reuse     bool // of the inputs' bytes
	mmap      bool
	lowering  Lowering
	minProfit time.Duration
	tuning    string
	asWritten bool // faults of exporters are not repaired
	watchers  []watcher
	wants     trace.Kinds // of all of them
}

// planning is how methods are planned unless they bring their memory.
func (c *config) planning() plan.Options {
	return plan.Options{Mode: plan.Mode(c.plan), Preserve: !c.reuse}
}

// reading is how a file is read beside others of used bytes.
func (c *config) reading(used int64, want ...pte.Format) reading {
	limit := c.limits.FileBytes
	if c.maxMemory > 0 && !c.mmap {
		limit = min(limit, max(c.maxMemory-used, 1))
	}
	return reading{limit: limit, mmap: c.mmap, want: want}
}

// watch makes a watch of one piece of loading or freeing, nil where nobody wants it.
func (c *config) watch(ctx context.Context, method string) *watch {
	if !c.wants.Any(trace.Loads | trace.Memories | trace.Values) {
		return nil
	}
	return newWatch(ctx, c.watchers, method)
}

// PlanMode chooses whose memory plan a method uses.
type PlanMode plan.Mode

// Plan modes.
const (
	PlanAuto  = PlanMode(plan.Auto)  // the smaller of the file's and our own that is safe
	PlanFile  = PlanMode(plan.File)  // the file's, unless it is unsafe
	PlanOwn   = PlanMode(plan.Own)   // our own
	PlanNaive = PlanMode(plan.Naive) // one place per storage, nothing reused
)

// WithDelegates adds backends; a later one replaces an earlier one of the same ID. One
// that is not a zero value, and that no delegate of the program asks for, is among the
// program's Warnings.
func WithDelegates(backends ...delegate.Backend) Option {
	return func(c *config) {
		for _, b := range backends {
			c.backends[b.ID()] = b
		}
	}
}

// WithOperators adds operators to the program's set, [DefaultOperators] or that of
// WithOperatorSet. A row whose name is there already replaces it.
func WithOperators(rows ...kernels.Op) Option {
	return func(c *config) { c.rows = append(c.rows, rows...) }
}

// WithOperatorSet replaces the set of operators: nothing else is there but what
// WithOperators adds.
func WithOperatorSet(s *kernels.Set) Option { return func(c *config) { c.operators = s } }

// WithDataFiles adds .ptd files with external weights. No path is ever taken from
// inside a program.
func WithDataFiles(paths ...string) Option {
	return func(c *config) {
		for _, path := range paths {
			c.data = append(c.data, File(path))
		}
	}
}

// WithData adds external weights in .ptd format from any source.
func WithData(sources ...Source) Option {
	return func(c *config) { c.data = append(c.data, sources...) }
}

// WithThreads sets the thread budget that all methods of the program share; 0 means
// the processors that the process may use.
func WithThreads(n int) Option { return func(c *config) { c.threads = n } }

// WithLimits bounds what the program may cost.
func WithLimits(l Limits) Option { return func(c *config) { c.limits = l } }

// WithMaxMemory refuses, before allocating it, a method whose memory together with
// the files would exceed n bytes, and files that do so by themselves unless they are
// mapped.
func WithMaxMemory(n int64) Option { return func(c *config) { c.maxMemory = n } }

// WithSeed seeds the operators that draw random numbers.
func WithSeed(seed uint64) Option { return func(c *config) { c.seed = seed } }

// WithPlan chooses the memory plan.
func WithPlan(m PlanMode) Option { return func(c *config) { c.plan = m } }

// WithStrictPlan refuses a program whose own memory plan would corrupt values,
// where otherwise it is planned anew.
func WithStrictPlan() Option { return func(c *config) { c.strict = true } }

// WithReusableInputs lets an execute use the inputs' bytes for other values once they
// have been read, which makes arenas smaller. Inputs whose bytes are used again must be
// set before each execute, and setting one may overwrite outputs. Without it inputs keep
// their values until they are set again.
func WithReusableInputs() Option { return func(c *config) { c.reuse = true } }

// WithoutRepair takes programs as they are written, with the known faults of exporters
// that are repaired otherwise: those of delegates' payloads, and values that lie on
// others with another dim order, which are laid out anew or refused without it.
func WithoutRepair() Option { return func(c *config) { c.asWritten = true } }

// WithMmap maps files into memory instead of reading them. The file must not change
// while the program is open: a shortened file ends the process.
func WithMmap() Option { return func(c *config) { c.mmap = true } }

// WithObserver adds an observer of the program, from its opening until it is closed.
func WithObserver(o Observer) Option {
	return func(c *config) {
		w := newWatcher(o)
		c.watchers, c.wants = append(c.watchers, w), c.wants|w.wants
	}
}

// Lowering chooses what is done at load so that methods run faster.
type Lowering string

// Ways of lowering; any other word is LowerOff.
const (
	LowerOff     Lowering = "off"     // instructions run as the file has them, but for those on constants
	LowerRewrite Lowering = "rewrite" // chains of instructions become cheaper ones: see Method.Rewritten
	// LowerAuto rewrites, and hands the regions that they are estimated to execute faster
	// to the backends that take graphs: see Method.Lowered.
	LowerAuto Lowering = "auto"
	// LowerTune is LowerAuto, but regions are measured at load, beside their instructions: see
	// WithTuning.
	LowerTune Lowering = "tune"
	// LowerVerify is LowerAuto, and executes each method a second time without lowering, beside
	// it: Method.Distances compares the outputs.
	LowerVerify Lowering = "verify"
)

// rewrites and lowers report whether chains of instructions are rewritten, and regions
// handed to backends.
func (l Lowering) rewrites() bool { return l == LowerRewrite || l.lowers() }
func (l Lowering) lowers() bool   { return l == LowerAuto || l == LowerTune || l == LowerVerify }

// WithLowering chooses how methods are lowered; LowerRewrite without it. What no rewrite
// matches and no backend takes stays as it is.
func WithLowering(l Lowering) Option { return func(c *config) { c.lowering = l } }

// MinProfit is that of programs without WithMinProfit.
const MinProfit = 300 * time.Nanosecond

// WithMinProfit is by how much a region must be faster on a backend to be taken, as
// estimated for one execute at the declared sizes, and by a fifth of what it takes as it
// is. A negative d takes every region.
func WithMinProfit(d time.Duration) Option { return func(c *config) { c.minProfit = d } }

// WithTuning keeps what LowerTune measures in a folder, so that later processes on the same
// processor decide alike, without measuring again. The folder must be private to this user;
// it may be that of a backend's weights. Without a folder each program measures anew.
func WithTuning(folder string) Option { return func(c *config) { c.tuning = folder } }
