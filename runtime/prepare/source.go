package prepare

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Source is what a method is prepared from.
type Source struct {
	Options
	File      *pte.Program
	Method    *pte.Method // of File
	Data      Data
	Pool      *cpu.Pool
	Size      int64   // of the program, in bytes
	FileBytes int64   // of all files
	Claims    *Claims // of all methods; nil: the memory of their bytes is not released
}

// Data is the named data of a program and its data files.
type Data interface {
	delegate.NamedData
	// TensorData returns the bytes of an external tensor, after comparing its layout with t; ok is false if there is
	// none of its name.
	TensorData(t *pte.Tensor) (data []byte, ok bool, err error)
}

// Options are the options of a program that concern a load.
type Options struct {
	Backends      map[string]delegate.Backend // by ID
	Operators     *kernels.Set
	Known         *kernels.Set // the operators of this module
	Limits        Limits
	Available     func() int64 // the memory that the system has left, 0 if that is not known; nil for a load that does not ask
	Plan          plan.Options
	Strict        bool        // a plan of the file that would corrupt values is an error
	Rewrite       bool        // chains of calls are rewritten
	Lower         bool        // regions are lowered to backends
	LowerAll      bool        // all of them, see lower.Backends
	Portable      bool        // see lower.Backends
	AsWritten     bool        // faults of exporters are not repaired
	KeepConstants bool        // no constant is released
	HalfState     bool        // state of float32 is kept as float16
	Observed      bool        // observers read values
	DescribeOnly  bool        // instances do not run: large constants are neither computed nor packed
	InFile        *lower.File // not nil: the lowered method will be written to a file
}

// compilers returns the backends that compile graphs, by ID.
func (o *Options) compilers() (list []lowering.Compiler) {
	for _, id := range slices.Sorted(maps.Keys(o.Backends)) {
		if b, ok := o.Backends[id].(lowering.Compiler); ok {
			list = append(list, b)
		}
	}
	return list
}

// Reporter receives the progress of a load. An error that it returns ends the load.
type Reporter interface {
	// Stage reports a stage, see package trace, that has just ended. It returns err, or an error of its own.
	Stage(name string, bytes int64, err error) error
	// Compiled is Stage for a delegate that was compiled.
	Compiled(delegate int, backend string, bytes int64, err error) error
	// Memory reports bytes that instances share, freed if negative.
	Memory(kind string, bytes int64)
	// Folded reports the steps that were executed at load.
	Folded(before, after *ir.Method, folded []lower.Folded)
}

// Preparation prepares a method. One goroutine uses it at a time. If a run fails or is canceled, the next one
// continues with the delegates that are compiled, because their weights may be released, and with the rewritten
// method.
type Preparation struct {
	Source
	files     files
	constants constants
	base      *rewritten
	done      *Method
	scratch   *delegate.Scratch // of the first instance
	reported  map[string]int64  // memory, by kind
	available int64             // for the images of a run, 0 if that is not known
}

// load is a run of a preparation.
type load struct {
	*Preparation
	report Reporter
}

// hold reports memory that instances share.
func (l *load) hold(kind string, bytes int64) {
	if l.reported == nil {
		l.reported = make(map[string]int64)
	}
	l.reported[kind] += bytes
	l.report.Memory(kind, bytes)
}

// Method is what the instances of a method share. It is immutable.
type Method struct {
	IR        *ir.Method
	Images    []delegate.Image      // of the file's delegates, then of regions
	Needs     []delegate.Needs      // of the images, after compilation, without what the plan has memory for
	Work      []*lowering.Workspace // of the images; nil for those that have only memory of their own
	Backends  []string              // IDs of the images' backends
	Plan      *plan.Memory          // for instances without bound memory
	Conflicts []plan.Conflict       // of the file's plan, before any edit
	Suspect   []string              // state that may be wrong, for warnings
	Folded    []lower.Folded
	Rewritten []lower.Rewritten
	Released  int64         // bytes of constants whose memory was released
	Lowered   *lower.Report // nil if lowering was off
	// DescribeOnly: constants that a run reads may be missing.
	DescribeOnly bool
	// Refusal is the first region that its delegate rejected in a run.
	Refusal atomic.Pointer[Refusal]

	read    readByImages
	scratch atomic.Pointer[delegate.Scratch] // that the images were compiled for, until an instance uses it
}

// Refusal is why a delegate rejected a region at some sizes.
type Refusal struct {
	Origin ir.Origin
	Err    error
}

// Limits bound the memory of an instance, in bytes.
type Limits struct {
	Planned int64        // arenas, state and working memory of delegates
	Total   int64        // with the program and constants; 0 means no limit
	State   func() int64 // state that Planned does not count, because it takes memory only as far as it is filled; nil if it counts all
}

// files are the delegates of the file, by index. They are compiled once for all runs of a preparation.
type files struct {
	images []delegate.Image // placeholders for those that are only opened
	needs  []delegate.Needs
	opened []*openedPayload // nil for those that are compiled
	lost   error            // a delegate failed after its weights were released
}

// close frees the images.
func (f *files) close() (first error) {
	for _, img := range f.images {
		if err := img.Close(); err != nil && first == nil {
			first = err
		}
	}
	f.images = nil
	return first
}

// openedPayload is a payload that lowering may merge with the calls around it.
type openedPayload struct {
	lowering.Opened
	payload *delegate.Payload
}
