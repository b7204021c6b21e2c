// Package delegate defines a backend: something that takes a part of a program,
// handed over by the exporter as an opaque payload, and runs it.
//
// A backend follows the same two steps as the runtime: a payload is compiled into
// an immutable [Image], once per program and shared, and each method instance makes
// its own [Unit] of it.
package delegate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Backend compiles payloads. Its options are fields of the type that implements it. It
// is safe for concurrent use.
type Backend interface {
	// ID is the name by which programs ask for it (program.fbs BackendDelegate.id).
	ID() string
	// Probe says whether the backend can run here, without running anything.
	Probe() Status
	// Compile checks every byte of a payload and makes an image of it. The payload's
	// bytes stay valid and unchanged until the image is closed. Errors are *Error.
	Compile(ctx context.Context, p *Payload) (Image, error)
}

// Surveyor is implemented by backends that look at several payloads together: to decide by
// all of them, or to tell at once of the faults that a caller can put right.
type Surveyor interface {
	// Survey looks at all payloads of a method that are the backend's, before the first of
	// them is compiled. Limits and Release are not set. What it finds out for Compile it may
	// keep in the Scratch, under the payloads' indices.
	Survey(payloads []*Payload) error
}

// Namer is implemented by backends that tell what a payload names without compiling it.
// Where all backends of a program do, what one payload alone uses may be released.
type Namer interface {
	// Names lists the keys of named data that compiling the payload may ask for.
	Names(payload []byte) ([]string, error)
}

// Status is the outcome of a probe.
type Status struct {
	Loaded bool   // the backend runs programs on this machine
	Detail string // what was found, or why not
	Engine string // which of its engines it would use, if it has several
}

// Payload is one entry of a method's delegate list.
type Payload struct {
	Method string // the method it belongs to
	Index  int    // its place in the method's delegate list
	Data   []byte // processed bytes
	Specs  []CompileSpec
	Named  NamedData  // the program's and the external files' named data
	Args   []*ArgSpec // the arguments of its calls: inputs, then outputs
	Limits Limits     // what the payload may cost
	// AsWritten asks to repair no fault of the exporter.
	AsWritten bool
	// Release takes back the memory of constants that the payload holds or names and that
	// nothing will read again; it reports whether it did, and then they read as anything.
	// It does not where others may read them. nil: nothing is taken back. A payload that
	// fails after that cannot be compiled again.
	Release func(data []byte) bool
	// Scratch is that of the method instance that is made first; nil: every unit has
	// working memory of its own.
	Scratch *Scratch
}

// Limits bound the memory of an image and of one unit, in bytes. A backend compares
// them with an estimate before it allocates, and refuses with ErrMemory. A zero field
// is no bound.
type Limits struct {
	Scratch int64 // working memory of one unit
	Memory  int64 // working memory of one unit and packed weights together
}

// Packed is what is left for packed weights beside a unit's working memory, 0 for no
// bound.
func (l Limits) Packed(scratch int64) int64 {
	if l.Memory == 0 {
		return 0
	}
	return max(l.Memory-scratch, 1)
}

// Check refuses a need of scratch bytes for a unit and of weights bytes for the image.
func (l Limits) Check(backend string, weights, scratch int64) error {
	switch {
	case l.Scratch != 0 && scratch > l.Scratch:
		return Errorf(backend, ErrMemory, "", "%d bytes of working memory, the limit leaves %d", scratch, l.Scratch)
	case l.Memory != 0 && (scratch > l.Memory || weights > l.Memory-scratch):
		return Errorf(backend, ErrMemory, "", "%d bytes of working memory and %d of packed weights, the limit leaves %d", scratch, weights, l.Memory)
	}
	return nil
}

// CompileSpec is one compile-time option that the exporter stored.
type CompileSpec struct {
	Key   string
	Value []byte
}

// NamedData finds bytes by key; they stay valid as long as the program.
type NamedData interface {
	Named(key string) (data []byte, ok bool)
}

// ArgSpec describes one argument of a delegate call as the program declares it.
// A nil *ArgSpec stands for a value that is not a tensor.
type ArgSpec struct {
	Value    int // index in the method's value table
	DType    tensor.DType
	Sizes    []int // upper bounds if dynamic
	DimOrder []uint8
	Dynamism tensor.Dynamism
	Const    []byte     // the bytes if the argument is a constant, else nil
	Quants   []QuantUse // how the program's operators quantise the value, each way once
}

// Quantization is how the program quantises the value, nil where it does not say. Its
// operators must agree: else the error is a *QuantError.
func (a *ArgSpec) Quantization() (*QuantUse, error) {
	return a.agreed(func(*QuantUse) bool { return true })
}

// QuantizationAs is how the program quantises the value to integers of type d, nil where
// it does not say. Operators that quantise it to another type, with another range, say
// nothing about these. Those that do must agree: else the error is a *QuantError.
func (a *ArgSpec) QuantizationAs(d tensor.DType) (*QuantUse, error) {
	return a.agreed(func(u *QuantUse) bool { return u.DType == d })
}

// agreed is the use that all selected ones are.
func (a *ArgSpec) agreed(selected func(*QuantUse) bool) (use *QuantUse, err error) {
	for i := range a.Quants {
		switch u := &a.Quants[i]; {
		case !selected(u):
		case use == nil:
			use = u
		case use.Quantization != u.Quantization:
			return nil, &QuantError{Value: a.Value, A: *use, B: *u}
		}
	}
	return use, nil
}

// QuantUse is how an operator of the program quantises a value.
type QuantUse struct {
	Quantization
	DType tensor.DType // of the integers: the value's own, or what the operator makes of it
	By    string       // the operator and its place
}

// QuantError is a value that two operators of a program quantise differently.
type QuantError struct {
	Value int // index in the method's value table
	A, B  QuantUse
}

func (e *QuantError) Error() string {
	return fmt.Sprintf("value %d: %s takes it with scale %v and zero point %d, %s with scale %v and zero point %d",
		e.Value, e.A.By, e.A.Scale, e.A.ZeroPoint, e.B.By, e.B.Scale, e.B.ZeroPoint)
}

// Quantization is the scale and zero point of a value: real = (stored - ZeroPoint) · Scale.
type Quantization struct {
	Scale     float64
	ZeroPoint int64
}

// Image is a compiled payload: immutable, safe for concurrent use.
type Image interface {
	// Unit makes an instance for one method instance.
	Unit(in Instance) (Unit, error)
	// Needs is what loading asks of every image.
	Needs() Needs
	// Info describes the image (etrun inspect). It is made when asked for.
	Info() Info
	// Close frees what the units shared; all of them have been closed before.
	Close() error
}

// Instance is what a unit gets from its method instance.
type Instance struct {
	Pool    *cpu.Pool // thread budget, nil for one thread
	Scratch *Scratch  // of the instance, nil for none: see [Payload]
}

// Unit runs a payload for one method instance, one call at a time.
type Unit interface {
	// Execute reads the input arguments, resizes and writes the outputs. args are
	// in the order of the call. It allocates nothing in the steady state. ctx ends
	// waits on devices; work on the CPU is not interrupted.
	Execute(ctx context.Context, args []*tensor.Value) error
	// Close frees the instance. It is called once.
	Close() error
}

// Profiler is implemented by units that can measure the operations inside them.
type Profiler interface {
	// SetProfiling turns measuring on or off, from the next Execute on. It is cheap
	// enough to do before and after every call: what measuring needs is made the first
	// time and kept. A unit whose device cannot measure has no times.
	SetProfiling(on bool) error
	// Profile appends the times of the last Execute's operations, in order, if that
	// was measured and did not fail. It allocates nothing but dst.
	Profile(dst []NodeTime) []NodeTime
}

// Viewer is implemented by units that can show the values inside them.
type Viewer interface {
	// View has the executes that follow call see before each operation inside the unit,
	// with what it reads, and after it, with what it wrote; nil ends that. see must not use
	// the unit.
	View(see func(*NodeValues))
}

// NodeValues are what one operation inside a unit reads, or has written. They, and the
// tensors, are lent for the call and must not be written.
type NodeValues struct {
	Index   int    // of the operation, as in Info.Nodes
	Name    string // of the operation
	Written bool   // it has written the values; else it is about to read them
	Values  []NodeValue
}

// NodeValue is a value inside a payload. Sizes are in the order of memory.
type NodeValue struct {
	Index int // the payload's name for it
	tensor.Value
}

// NodeTime is the duration of one operation inside a delegate.
type NodeTime struct {
	Name     string
	Duration time.Duration
}

// Warner is implemented by images that may run otherwise than was asked for.
type Warner interface {
	// Warnings lists what the caller should know, as long as the image lives.
	Warnings() []Warning
}

// Warning is something that was passed over: the program runs, but not as it could.
type Warning struct {
	Class WarningClass
	Text  string
}

// WarningClass says what a warning is about.
type WarningClass string

// Classes of warnings.
const (
	WarnEngine  WarningClass = "engine"  // a slower engine runs than there could be
	WarnCache   WarningClass = "cache"   // a cache cannot be used
	WarnBackend WarningClass = "backend" // no delegate asks for a backend
	WarnData    WarningClass = "data"    // nothing asks for external data
	WarnRepair  WarningClass = "repair"  // a fault of the exporter was repaired
)

// Needs is what an image needs of those who call it.
type Needs struct {
	Inputs      int   // number of leading arguments that are inputs
	PackedBytes int64 // copies of constants that the image keeps, in a form of its own
	Scratch     int64 // working memory that a unit needs beside its arguments, an upper estimate
	Shared      int64 // how much of Scratch is in the instance's, where units use the same bytes in turn
	Profiling   int64 // what it needs beside that once its operations were measured now and then
}

// Info is a readable description of an image.
type Info struct {
	Needs
	Backend     string      // by which programs ask for it; images leave it to the runtime
	Engine      string      // "native", "reference", an NPU's name, …
	Nodes       []Node      // operations in order, if the payload has such
	WeightBytes int64       // constants that the payload holds or names
	Repairs     []string    // faults of the exporter that were repaired, with their places
	Repaired    []byte      // the payload with these repairs, where the backend can write it and the constants are still there
	Facts       [][2]string // further name–value pairs, printed in order
	Conversions []Conversion
}

// Conversion is an output that the payload writes as integers and that the program
// declares as another type; the backend converts it in every run.
type Conversion struct {
	Output   int // of the delegate
	QuantUse     // how the integers stand for numbers; DType is theirs
}

// Node is one operation inside a payload.
type Node struct {
	Name   string
	Detail string
	// Constants are those that it reads, where the payload shows them and no memory of
	// constants is given back (see Payload.Release). They are valid while the image lives.
	Constants []*tensor.Tensor
}

// Reasons of refusal; match with errors.Is.
var (
	ErrPayload     = errors.New("malformed payload")   // the bytes break the payload's format
	ErrUnsupported = errors.New("unsupported payload") // well formed, but beyond this backend
	ErrMissing     = errors.New("missing")             // what the backend needs is not on this machine
	ErrArgument    = errors.New("bad argument")        // a call's argument does not fit the payload
	ErrDevice      = errors.New("device failure")      // the engine or device failed while running
	ErrMemory      = errors.New("memory limit")        // the payload needs more than its limits allow
)

// Error places a fault inside a payload. It is its Reason, one of the above, and
// whatever Err is.
type Error struct {
	Backend string
	Reason  error
	Place   string // "node 3 (Conv2d)", "cmd_data, word 17", "output 0"; may be empty
	Err     error  // the details
}

func (e *Error) Error() string {
	s := e.Backend + ": " + e.Reason.Error()
	if e.Place != "" {
		s += ": " + e.Place
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the reason and the details to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// Errorf makes an *Error with formatted details.
func Errorf(backend string, reason error, place, format string, args ...any) *Error {
	return &Error{Backend: backend, Reason: reason, Place: place, Err: fmt.Errorf(format, args...)}
}
