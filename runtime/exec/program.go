// Package exec runs prepared methods, and has no compatibility promise: instances with memory, inputs, outputs and state, the loop of
// instructions, batches, and what observers see. The errors that callers see are made by the package that uses it, see [Faults].
package exec

import (
	"context"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/prepare"
)

// Program is what all instances of a program's methods share.
type Program struct {
	*Observers
	Pool     *cpu.Pool
	Limits   prepare.Limits
	Size     int64 // of the program in its file, in bytes
	Steps    int64 // that a run may execute
	Seed     uint64
	Planning plan.Options

	// Available returns the memory that the system has left, 0 if that is not known; nil: runs do not ask.
	Available func() int64

	Retain  func()       // keeps the program open
	Release func() error // undoes it, and undoes the count of an instance when it is closed
}

// Options are those of an instance.
type Options struct {
	StateOf      *Instance // whose state it uses, nil for its own
	Transient    bool      // outputs are invalid once it is closed
	BoundInputs  bool      // the caller provides their memory
	BoundOutputs bool
	// Plain returns the same method without lowering, with whose outputs those of each run are compared; nil for none.
	Plain func(context.Context) (*prepare.Method, error)
}

// Faults makes the errors that callers see.
type Faults interface {
	Input(method string, i int, got, want string) error
	Output(method string, i int, reason string) error
	// Batch is why instances do not run together.
	Batch(method, reason string) error
	// Argument is what a call other than a run must not be called with.
	Argument(reason string) error
	// Use is a call of an instance that is closed, or else in use.
	Use(method string, closed bool) error
	// Endless is a run of more steps than may be executed.
	Endless(steps int64) error
	// Step adds its place to an error that has none. refused: it rejects arguments of sizes that the caller has chosen.
	Step(method string, at ir.Origin, name string, refused bool, err error) error
	// Panic is a recovered value of an operator, a backend or an observer.
	Panic(value any, observer bool) error
	// Prepare is an error of package prepare, or another one, which it does not change.
	Prepare(method string, err error) error
	// Reason is the word for the class of an error in events.
	Reason(err error) string
}
