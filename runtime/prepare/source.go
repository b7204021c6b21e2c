package prepare

import (
	"maps"
	"slices"
	"time"

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
	Size      int64  // of the program, in bytes
	FileBytes int64  // of all files
	Digest    []byte // SHA-256 of the program's bytes, with Options.Tune only
	// Discard releases the memory of bytes of the files that the method has read, unless something else reads them
	// too; MayDiscard reports whether it would.
	Discard, MayDiscard func(data []byte) bool
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
	Plan          plan.Options
	Strict        bool          // a plan of the file that would corrupt values is an error
	Rewrite       bool          // chains of calls are rewritten
	Lower         bool          // regions are lowered to backends
	MinProfit     time.Duration // of a region, see lower.Backends
	Tune          bool          // regions are measured
	Tuning        string        // folder of measurements, "" for none
	AsWritten     bool          // faults of exporters are not repaired
	KeepConstants bool          // no constant is released
	Observed      bool          // observers read values
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
