package etrun

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/cortexm"
	"github.com/etrun-go/etrun/kernels/llm"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
	"github.com/etrun-go/etrun/runtime/exec"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Option configures a program. A later option replaces an earlier one unless its documentation says
// that it adds. Opening a program fails with an [*OptionError] if the value of an option has no meaning.
type Option func(*config)

type config struct {
	backends      map[string]delegate.Backend
	operators     *kernels.Set
	rows          []kernels.Op // added to operators
	data          []Source
	threads       int
	limits        Limits
	maxMemory     int64
	available     func() int64 // see WithAvailableMemory; nil for no check
	state         func() int64 // see prepare.Limits
	seed          uint64
	plan          PlanMode
	strict        bool
	reuse         bool // of the inputs' memory
	mmap          bool
	leases        bool                                 // see WithLeases
	checkFile     func(name string, data []byte) error // see WithFileCheck
	lowering      Lowering
	asWritten     bool // exporter faults are not repaired
	keepConstants bool // see WithConstants
	describeOnly  bool // see WithoutRuns
	halfState     bool // see WithHalfState
	observers     exec.Observers
	invalid       error // see check
}

// check returns an *OptionError for the first option whose value has no meaning.
func (c *config) check() error {
	l := c.limits
	for _, o := range []struct {
		name string
		ok   bool
		got  any
		want string
	}{
		{"WithLowering", slices.Contains(lowerings, c.lowering), fmt.Sprintf("%q", c.lowering), fmt.Sprintf("one of %q", lowerings)},
		{"WithPlan", c.plan <= PlanNaive, int(c.plan), "one of the modes of PlanMode"},
		{"WithThreads", c.threads >= 0 && c.threads <= cpu.MaxThreads, c.threads, fmt.Sprintf("0 to %d", cpu.MaxThreads)},
		{"WithMaxMemory", c.maxMemory >= 0, c.maxMemory, "bytes, or 0 for no bound"},
		{"WithLimits", min(l.FileBytes, l.PlannedBytes, l.Instructions, l.Format.ArenaBytes, int64(l.Format.Tables), int64(l.Format.Values),
			int64(l.Format.Instructions)) >= 0, fmt.Sprintf("%+v", l), "no negative limits"},
	} {
		if !o.ok {
			return &OptionError{o.name, fmt.Sprint(o.got), o.want}
		}
	}
	return nil
}

// planning returns the plan options of a method without options of its own.
func (c *config) planning() plan.Options {
	return plan.Options{Mode: plan.Mode(c.plan), Preserve: !c.reuse}
}

// preparing returns the options of loads.
func (c *config) preparing() prepare.Options {
	return prepare.Options{Backends: c.backends, Operators: c.operators, Known: DefaultOperators(), Limits: c.memoryLimits(), Plan: c.planning(),
		Strict: c.strict, Rewrite: c.lowering.rewrites(), Lower: c.lowering.lowers(), LowerAll: c.lowering.lowersAll(),
		AsWritten: c.asWritten, KeepConstants: c.keepConstants, DescribeOnly: c.describeOnly, HalfState: c.halfState,
		Observed: c.observers.Wants().Any(trace.Values)}
}

// memoryLimits returns the limits of an instance.
func (c *config) memoryLimits() prepare.Limits {
	return prepare.Limits{Planned: c.limits.PlannedBytes, Total: c.maxMemory, State: c.state}
}

// unfilled returns the limit of state that does not count toward PlannedBytes.
func (c *config) unfilled() func() int64 {
	switch {
	case c.available != nil:
		return func() int64 { return math.MaxInt64 }
	case cpu.Sparse && c.limits.PlannedBytes == 0:
		return func() int64 { return cpu.Memory() / 4 * 3 }
	}
	return nil
}

// reading returns how to read a file when used bytes have been read already.
func (c *config) reading(used int64, want ...pte.Format) reading {
	limit := c.limits.FileBytes
	if c.maxMemory > 0 && !c.mmap {
		limit = min(limit, max(c.maxMemory-used, 1))
	}
	return reading{limit: limit, mmap: c.mmap, leases: c.leases, forget: c.describeOnly, available: c.available, want: want, check: c.checkFile}
}

// PlanMode selects the memory plan of a method.
type PlanMode plan.Mode

// Plan modes.
const (
	PlanAuto  = PlanMode(plan.Auto)  // the smaller of the file's plan, if safe, and our own
	PlanFile  = PlanMode(plan.File)  // the file's plan, unless it is unsafe
	PlanOwn   = PlanMode(plan.Own)   // our own plan
	PlanNaive = PlanMode(plan.Naive) // a separate buffer per storage, no reuse
)

// WithDelegates adds backends. A backend replaces an earlier one with the same ID. Program.Warnings
// lists each backend that is not a zero value and that no delegate of the program uses.
func WithDelegates(backends ...delegate.Backend) Option {
	return func(c *config) {
		for _, b := range backends {
			c.backends[b.ID()] = b
		}
	}
}

// WithOperators adds operators to the program's set, which is [DefaultOperators] or the set passed
// to [WithOperatorSet]. An operator replaces one with the same name.
func WithOperators(rows ...kernels.Op) Option {
	return func(c *config) { c.rows = append(c.rows, rows...) }
}

// WithOperatorSet replaces the default set of operators.
func WithOperatorSet(s *kernels.Set) Option { return func(c *config) { c.operators = s } }

// WithDataFiles adds .ptd files with external weights. Paths inside a program are never followed.
func WithDataFiles(paths ...string) Option {
	return func(c *config) {
		for _, path := range paths {
			c.data = append(c.data, File(path))
		}
	}
}

// WithData adds external weights in .ptd format from any [Source].
func WithData(sources ...Source) Option {
	return func(c *config) { c.data = append(c.data, sources...) }
}

// WithThreads sets the number of threads that all methods of the program share, at most 1024; 0
// means the number of processors available to the process. See [Program.Threads].
func WithThreads(n int) Option { return func(c *config) { c.threads = n } }

// WithLimits bounds the resources of the program.
func WithLimits(l Limits) Option { return func(c *config) { c.limits = l } }

// WithMaxMemory makes Load fail, before it allocates, if the method's memory and the files need
// more than n bytes. If the sizes of inputs vary, what counts is what a call needs: calls that need more fail with a [MemoryError]. Open
// fails if the files alone do, unless they are mapped. Defaults of [Limits] that are below n are raised to n.
func WithMaxMemory(n int64) Option { return func(c *config) { c.maxMemory = n } }

// WithAvailableMemory makes Open and Load fail if a file that is read, and not mapped, or the memory that every run of a method uses, such as
// packed weights, is more than left returns, which they call: bytes, 0 if that is not known. Otherwise the kernel may end the process.
// nil means what the machine and the control groups of the process have left, with what the kernel can drop; it is known on Linux.
// State is no longer part of [Limits].PlannedBytes. If the sizes of inputs vary, runs that are larger than those before, or that may have
// filled another MiB of state, call left, too, and fail with a [MemoryError].
func WithAvailableMemory(left func() int64) Option {
	return func(c *config) {
		if c.available = left; left == nil {
			c.available = cpu.Available
		}
	}
}

// WithHalfState keeps state of float32, such as the caches of keys and values of language models, as float16: in half of the memory, with
// results that differ by the rounding of what is stored. Load fails with ErrUnsupported, and names the operator, if anything but the
// operators of such caches (llama::update_cache, custom_sdpa and sdpa_with_kv_cache) accesses it, or if there is no such state. A
// call fails that would store a number beyond 65504. [Method.StateTensors] has the tensors as they are kept.
func WithHalfState() Option { return func(c *config) { c.halfState = true } }

// WithSeed seeds the random number generator of operators.
func WithSeed(seed uint64) Option { return func(c *config) { c.seed = seed } }

// WithPlan selects the memory plan.
func WithPlan(m PlanMode) Option { return func(c *config) { c.plan = m } }

// WithStrictPlan makes Load fail if the file's memory plan would corrupt values, or if it has a state in a payload as a
// constant. By default such a method is replanned, or there is a warning.
func WithStrictPlan() Option { return func(c *config) { c.strict = true } }

// WithReusableInputs lets a run reuse the memory of inputs that have been read, which makes arenas
// smaller. Inputs whose memory is reused must be set before each run, and setting one may overwrite
// outputs. By default inputs keep their values until they are set again.
func WithReusableInputs() Option { return func(c *config) { c.reuse = true } }

// WithoutRepair disables the repair of known exporter faults, and runs methods whose state is known
// to be wrong. By default faults in delegate payloads, values that share memory with values of a
// different dim order, and updates and initial contents of state are repaired where the file proves
// how, and methods with other wrong state are refused.
func WithoutRepair() Option { return func(c *config) { c.asWritten = true } }

// WithConstants keeps the bytes of all constants readable, see [Program.Spec]. By default the memory
// of those that nothing reads any more after a load is given back.
func WithConstants() Option { return func(c *config) { c.keepConstants = true } }

// WithoutRuns loads methods to describe them: what [Method.Report] and [Method.Delegates] return is the same, but large
// constants are neither computed nor packed, which takes a multiple of the file's memory. With [WithMmap] or [WithLeases] most of a
// file is not read then. Execute fails with [ErrInput] for methods with delegates or such constants.
func WithoutRuns() Option { return func(c *config) { c.describeOnly = true } }

// WithMmap maps files into memory instead of reading them. The files must not change while the
// program is open: if one is truncated, the process crashes. They are unmapped by Close, or when the
// program and its methods are unreachable.
func WithMmap() Option { return func(c *config) { c.mmap = true } }

// WithLeases maps files of at least 1 MiB that cannot change under the program, and reads others. Linux lets whoever wants to
// write to such a file wait, for about 200 ms, until the program has copied it (a read lease, see fcntl(2)). It has to belong to
// the user of the process, nobody may have it open for writing, and its file system must be a local one.
func WithLeases() Option { return func(c *config) { c.leases = true } }

// WithFileCheck calls check with the bytes of each file, the program's and those of external data, before
// anything but their first bytes is read: they are the bytes that are used. With [WithMmap] a file that is
// changed in place afterwards changes them: do not map files whose signatures are checked. An error ends the
// opening of the program, which returns it. name is that of the [Source]. check must not change the bytes, and
// must not use them after it returns.
func WithFileCheck(check func(name string, data []byte) error) Option {
	return func(c *config) { c.checkFile = check }
}

// Observer receives events of a program: loads, runs, instructions, delegate calls, nodes inside
// delegates, memory, and failures, with their durations. [WithObserver] sets one for a program,
// [Method.Observe] one for a method. Use it for metrics, tracing and logging. [trace.Recorder],
// which stores events, and [trace.Func] are observers.
//
// Each call of Open, Load and Execute is one event, reported with its error after the events of its
// parts; so is each stage that started. Events that no observer subscribes to cost nothing.
type Observer interface {
	// Wants returns the kinds of events to report. It is called once, when the observer is set.
	Wants() trace.Kinds
	// Observe receives an event. The goroutine that does the work calls it and waits, so it must
	// return quickly and must not use the method of the event. Several methods may call it
	// concurrently. The event is valid during the call only, see [trace.Event].
	//
	// A panic ends the reported call of Open, Load or Execute with a *PanicError; the method
	// remains usable.
	Observe(e *trace.Event)
}

// WithObserver adds an observer that receives the program's events, from Open until everything is
// closed.
func WithObserver(o Observer) Option { return func(c *config) { c.observers.Add(o) } }

// Lowering selects the optimizations made at load.
type Lowering string

// Lowering modes.
const (
	LowerOff     Lowering = "off"     // only instructions on constants are folded
	LowerRewrite Lowering = "rewrite" // chains of instructions are replaced by cheaper ones: see Report.Rewritten
	// LowerAuto rewrites, and compiles regions that are large enough for backends that accept graphs: see
	// Report.Lowered.
	LowerAuto Lowering = "auto"
	// LowerAll is LowerAuto, but every region that a backend accepts is compiled for it.
	LowerAll Lowering = "all"
	// LowerVerify is LowerAll, but each run executes the method a second time without lowering:
	// Report.Distances compares the outputs.
	LowerVerify Lowering = "verify"
)

var lowerings = []Lowering{LowerOff, LowerRewrite, LowerAuto, LowerAll, LowerVerify}

// rewrites and lowers report whether instructions are rewritten, and regions compiled for backends.
func (l Lowering) rewrites() bool  { return l == LowerRewrite || l.lowers() }
func (l Lowering) lowers() bool    { return l == LowerAuto || l.lowersAll() }
func (l Lowering) lowersAll() bool { return l == LowerAll || l == LowerVerify }

// WithLowering selects the lowering mode; the default is LowerAuto. Instructions that match no
// rewrite, and that no backend accepts, run unchanged. Without a backend that accepts graphs (see
// [WithDelegates]) LowerAuto is the same as LowerRewrite.
func WithLowering(l Lowering) Option { return func(c *config) { c.lowering = l } }

// Limits bound the resources of a program. Zero fields mean the defaults, which are far above the
// needs of most models of edge devices. A larger [WithMaxMemory] replaces the defaults in bytes.
type Limits struct {
	Format    FormatLimits
	FileBytes int64 // size of each file, default 8 GiB
	// PlannedBytes is for arenas, state and delegate scratch of one method, default 1 GiB. By default on Linux, where state takes memory only
	// as far as it is filled, state does not count up to three quarters of the machine's memory.
	PlannedBytes int64
	Instructions int64 // executed by one Execute, default 10,000,000 (ExecuTorch's)
}

// FormatLimits bound the sizes declared inside a file.
type FormatLimits struct {
	Tables       int   // FlatBuffers tables, default 2 Mi
	Values       int   // values per method, default 512 Ki
	Instructions int   // instructions per method, default 512 Ki
	ArenaBytes   int64 // sum of a method's planned buffers, default 8 GiB
}

// format converts the limits to those of package pte.
func (l *Limits) format() pte.Limits { return pte.Limits(l.Format) }

// maxBytes is the largest slice; where int has 32 bits it is below the default limits.
const maxBytes = math.MaxInt

func (l Limits) withDefaults(maxMemory int64) Limits {
	for _, limit := range []struct {
		bytes *int64
		def   int64
	}{{&l.FileBytes, 8 << 30}, {&l.PlannedBytes, 1 << 30}, {&l.Format.ArenaBytes, 8 << 30}} {
		if *limit.bytes == 0 {
			*limit.bytes = max(limit.def, maxMemory)
		}
	}
	if l.Instructions == 0 {
		l.Instructions = 10_000_000
	}
	l.FileBytes, l.PlannedBytes = min(l.FileBytes, maxBytes), min(l.PlannedBytes, maxBytes)
	return l
}

// DefaultOperators returns the set of all operators of this module.
func DefaultOperators() *kernels.Set { return defaultOperators() }

var defaultOperators = sync.OnceValue(func() *kernels.Set {
	return kernels.NewSet(portable.Ops(), quantized.Ops(), cortexm.Ops(), llm.Ops())
})
