// Package delegate defines the interface of backends. A backend runs the parts of a program that
// the exporter lowered to it, as opaque payloads.
//
// A backend compiles each payload into an immutable [Image], once per program. Each method instance
// then gets its own [Unit] of the image, which executes it.
package delegate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Backend compiles payloads. Its options are fields of the implementing type. It must be safe for
// concurrent use.
type Backend interface {
	// ID returns the name that identifies the backend in programs (program.fbs,
	// BackendDelegate.id).
	ID() string
	// Probe reports whether the backend can run on this machine, without running anything.
	Probe() Status
	// Compile validates a payload completely and compiles it. The payload's bytes remain valid and
	// unchanged until the image is closed. Errors are *Error.
	Compile(ctx context.Context, p *Payload) (Image, error)
}

// Surveyor is implemented by backends that examine several payloads together: to take decisions
// that depend on all of them, or to report at once certain faults that a caller can fix.
type Surveyor interface {
	// Survey examines all payloads of a method for this backend, before any is compiled. Limits and
	// Release are not set. It may store results for Compile in the Scratch, keyed by the payloads'
	// indices.
	Survey(payloads []*Payload) error
}

// Namer is implemented by backends that can list the named data a payload uses without compiling
// it. If all backends of a program implement it, data used by a single payload may be released.
type Namer interface {
	// Names returns the keys of named data that compiling the payload may request.
	Names(payload []byte) ([]string, error)
}

// Status is the outcome of a probe.
type Status struct {
	Loaded bool   // the backend can run programs on this machine
	Detail string // what was found, or what is missing
	Engine string // the engine that it would use, if it has several
}

// Payload is one entry of a method's delegate list.
type Payload struct {
	Method string // the method it belongs to
	Index  int    // index in the method's list of delegates
	Data   []byte // processed bytes
	Specs  []CompileSpec
	Named  NamedData  // named data of the program and of .ptd files
	Args   []*ArgSpec // arguments of its calls: inputs, then outputs
	Limits Limits     // memory limits of the payload
	// AsWritten disables the repair of exporter faults.
	AsWritten bool
	// Release frees the memory of constants that the payload contains or names, once they are no
	// longer needed, and reports whether it did; their contents are then undefined. It does nothing
	// if others may read them. nil: nothing is freed. If compilation fails after a release, the
	// payload cannot be compiled again.
	Release func(data []byte) bool
	// Scratch is the scratch memory of the first method instance; nil: each unit has its own
	// working memory.
	Scratch *Scratch
	Threads int // that instances use; 0 and 1 mean one
	// DescribeOnly: the image makes no calls. Its constants need not be packed, which takes as much memory as the file.
	DescribeOnly bool
}

// Limits bound the memory of an image and of one unit, in bytes. A backend must compare them with
// an estimate before it allocates, and fail with ErrMemory. If the sizes of arguments vary, it may compile for limits that only smaller
// ones fit: a unit then compares the working memory for the sizes of a call with the limits, and its call fails. Zero means no limit.
type Limits struct {
	Scratch int64 // working memory of one unit
	Memory  int64 // working memory of one unit and packed weights together
	Weights int64 // packed weights: what the system has memory for
}

// Packed returns the limit for packed weights, given a unit's working memory; 0 means no limit.
func (l Limits) Packed(scratch int64) int64 {
	if l.Memory == 0 || l.Weights != 0 && l.Weights < l.Memory-scratch {
		return l.Weights
	}
	return max(l.Memory-scratch, 1)
}

// Check returns an error if a unit's working memory of scratch bytes, or packed weights of weights
// bytes, exceed the limits.
func (l Limits) Check(backend string, weights, scratch int64) error {
	switch {
	case l.Scratch != 0 && scratch > l.Scratch:
		return Errorf(backend, ErrMemory, "", "needs %d bytes of working memory, more than the limit of %d", scratch, l.Scratch)
	case l.Memory != 0 && (scratch > l.Memory || weights > l.Memory-scratch):
		return Errorf(backend, ErrMemory, "", "needs %d bytes of working memory and %d of packed weights, more than the limit of %d",
			scratch, weights, l.Memory)
	case l.Weights != 0 && weights > l.Weights:
		return &Error{Backend: backend, Reason: ErrMemory, Err: WeightsError(weights)}
	}
	return nil
}

// WeightsError is the size of packed weights, in bytes, that is above [Limits].Weights.
type WeightsError int64

func (e WeightsError) Error() string {
	return fmt.Sprintf("needs %d bytes of packed weights, more than there are", int64(e))
}

// CompileSpec is a compile-time option stored by the exporter.
type CompileSpec struct {
	Key   string
	Value []byte
}

// NamedData looks up bytes by key; they are valid as long as the program is open.
type NamedData interface {
	Named(key string) (data []byte, ok bool)
}

// ArgSpec describes one argument of a delegate call as declared by the program. A nil *ArgSpec is a
// value that is not a tensor.
type ArgSpec struct {
	Value    int // index in the method's value table
	DType    tensor.DType
	Sizes    []int // upper bounds if dynamic
	DimOrder []uint8
	Dynamism tensor.Dynamism
	Const    []byte     // contents of a constant, nil for other arguments
	Quants   []QuantUse // how the program's operators quantize the value, without duplicates
}

// Quantization returns how the program's operators quantize the value, nil if they do not. If they
// disagree, the error is a *QuantError.
func (a *ArgSpec) Quantization() (*QuantUse, error) {
	return a.agreed(func(*QuantUse) bool { return true })
}

// QuantizationAs returns how the program's operators quantize the value to integers of type d, nil
// if they do not. Operators that quantize it to other types, with other ranges, are ignored. If the
// remaining ones disagree, the error is a *QuantError.
func (a *ArgSpec) QuantizationAs(d tensor.DType) (*QuantUse, error) {
	return a.agreed(func(u *QuantUse) bool { return u.DType == d })
}

// agreed returns the use that all selected operators agree on.
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

// QuantUse is how an operator of the program quantizes a value.
type QuantUse struct {
	Quantization
	DType tensor.DType // integer type of the value, or of the operator's result
	By    string       // the operator and its position
}

// QuantError reports a value that two operators of a program quantize differently.
type QuantError struct {
	Value int // index in the method's value table
	A, B  QuantUse
}

func (e *QuantError) Error() string {
	return fmt.Sprintf("value %d: %s uses scale %v and zero point %d, %s uses scale %v and zero point %d",
		e.Value, e.A.By, e.A.Scale, e.A.ZeroPoint, e.B.By, e.B.Scale, e.B.ZeroPoint)
}

// Quantization is the scale and zero point of a value: real = (stored - ZeroPoint) · Scale.
type Quantization struct {
	Scale     float64
	ZeroPoint int64
}

// Image is a compiled payload: immutable and safe for concurrent use.
type Image interface {
	// Unit creates the unit of one method instance.
	Unit(in Instance) (Unit, error)
	// Needs returns the image's memory requirements.
	Needs() Needs
	// Info describes the image (for etrun inspect). It is built on each call.
	Info() Info
	// Close frees the memory shared by the units, all of which must be closed.
	Close() error
}

// Instance contains the resources of a method instance that its units use.
type Instance struct {
	Pool    *cpu.Pool // threads, nil for one
	Scratch *Scratch  // shared by the instance's units, nil for none: see [Payload]
	// Blocks are the blocks of the image's workspace (see lowering.Planned), aligned to 64 bytes and of the
	// declared sizes. The unit uses them during its calls only. nil: it has memory of its own.
	Blocks [][]byte
}

// Unit executes a payload for one method instance, one call at a time.
type Unit interface {
	// Execute reads the inputs, then resizes and writes the outputs. args are in the order of the
	// call. It does not allocate in the steady state. ctx ends waits for devices, and long work on the
	// CPU where the backend can interrupt it. After an error, also of ctx, the contents of the outputs are undefined, and
	// those of inputs that share memory with them, such as state that the call updates: parts of an
	// output may be written as soon as no operation reads the input any more.
	Execute(ctx context.Context, args []*tensor.Value) error
	// Close frees the unit. It is called once.
	Close() error
}

// Profiler is implemented by units that can measure their operations.
type Profiler interface {
	// SetProfiling switches measurement on or off for subsequent calls of Execute. It is cheap
	// enough to call before and after every execution: the resources are allocated once and kept.
	// If the device cannot measure, there are no times.
	SetProfiling(on bool) error
	// Profile appends the times of the operations of the last Execute, in order, if it was measured
	// and succeeded. It allocates nothing but dst.
	Profile(dst []NodeTime) []NodeTime
}

// Viewer is implemented by units that can expose their intermediate values.
type Viewer interface {
	// View makes subsequent executions call see before each operation with the values that it
	// reads, and after it with the values that it wrote; nil ends this. see must not use the unit.
	View(see func(*NodeValues))
}

// NodeValues are the values that one operation of a unit reads or has written. They and their
// tensors are valid during the call only and must not be written.
type NodeValues struct {
	Index   int    // of the operation, as in Info.Nodes
	Name    string // of the operation
	Written bool   // Values have been written; else they are about to be read
	Values  []NodeValue
}

// NodeValue is a value inside a payload. Tensor sizes are in memory order.
type NodeValue struct {
	Index int // the payload's value number
	tensor.Value
}

// NodeTime is the duration of one operation inside a delegate.
type NodeTime struct {
	Name     string
	Duration time.Duration
}

// Warner is implemented by images that may run differently than requested.
type Warner interface {
	// Warnings returns the current warnings of the image.
	Warnings() []Warning
}

// Warning reports that something was ignored, or that the program does not run as well as it could.
type Warning struct {
	Class WarningClass
	Text  string
}

// WarningClass is the subject of a warning.
type WarningClass string

// Classes of warnings.
const (
	WarnEngine  WarningClass = "engine"  // a slower engine runs than possible
	WarnCache   WarningClass = "cache"   // a cache is not usable
	WarnBackend WarningClass = "backend" // no delegate uses a backend
	WarnData    WarningClass = "data"    // external data is not used
	WarnRepair  WarningClass = "repair"  // an exporter fault was repaired
	WarnFault   WarningClass = "fault"   // results may be wrong because of an exporter fault that is not repaired
)

// Needs contains the requirements of an image, in bytes unless stated otherwise.
type Needs struct {
	Inputs      int   // number of leading arguments that are inputs
	PackedBytes int64 // constants that the image keeps in packed form
	Scratch     int64 // working memory of a unit in addition to its arguments, an upper estimate
	Shared      int64 // part of Scratch in the instance's scratch memory, which units share, or in the memory plan
	Profiling   int64 // additional memory of a unit for measuring its operations
}

// Info is a human-readable description of an image.
type Info struct {
	Needs
	Backend     string      // ID of the backend, filled in by the runtime
	Engine      string      // "native", "go", an NPU's name, …
	Nodes       []Node      // operations in order, if the payload has any
	Operands    []Operand   // values of the operations, if the payload lists them
	WeightBytes int64       // constants that the payload contains or names
	Repairs     []string    // repaired exporter faults, with their locations
	Repaired    []byte      // the repaired payload, if the backend can write it and the constants have not been released
	Facts       [][2]string // further name-value pairs, printed in order
	Conversions []Conversion
}

// Conversion is an output that the payload writes as integers but the program declares with another
// type. The backend converts it in every run.
type Conversion struct {
	Output   int // of the delegate
	QuantUse     // quantization and type of the integers
}

// Node is one operation inside a payload.
type Node struct {
	Name       string
	Detail     string
	Attributes []Attribute // from the payload, in the order in which they are shown
	// Constants are the constants that the operation reads, if the payload provides them and none
	// have been released (see Payload.Release). They are valid until the image is closed.
	Constants []*tensor.Tensor
	// Reads and Writes are indexes of Info.Operands, in the order of the payload. They must not be changed.
	Reads, Writes []int
	// DebugHandle is the exporter's number of the operator that the operation comes from, 0 for none. It occurs
	// in the ETRecord of the export.
	DebugHandle uint32
}

// Attribute is a fixed property of an operation: its stride, its axis, the scale of its input.
type Attribute struct {
	Name  string
	Value any // a number, a text, true, or a list of numbers, as encoding/json writes them
}

// Operand is a value that operations inside a payload read or write.
type Operand struct {
	Type     string // element type and sizes, for people: "fp32 1x5x5x3"
	Bytes    int64  // at the declared sizes
	Arg      int    // the argument of the delegate that it is, inputs first; -1 for none
	Constant bool
	Elements func() *Elements // makes the description of a quantized constant, nil for others; may be nil
}

// Elements says what the elements of a quantized constant mean: real = (stored - ZeroPoint - its zero) · its scale.
type Elements struct {
	Bits      int   // of an element: 8 and more, or 4 or 2: a byte has several, the first in the lowest bits, and rows begin at bytes
	Sizes     []int // packed elements have no tensor of these sizes
	HighFirst bool  // the first element of a byte is in its highest bits
	ZeroPoint int
	Scales    []float32 // one; or one by index of dimension Dim; or one for each Group elements
	Zeros     []float32 // as many as Scales, or none
	Dim       int
	Group     int // 0 for scales that are not of groups
}

// Reasons of an Error; match them with errors.Is.
var (
	ErrPayload     = errors.New("malformed payload")   // the bytes violate the payload's format
	ErrUnsupported = errors.New("unsupported payload") // well formed, but not supported by this backend
	ErrMissing     = errors.New("missing")             // a library, device or data is not available
	ErrArgument    = errors.New("bad argument")        // an argument of a call does not match the payload
	ErrDevice      = errors.New("device failure")      // the engine or device failed while running
	ErrMemory      = errors.New("memory limit")        // the payload needs more memory than its limits
)

// Error is a failure at a place inside a payload. It matches its Reason, one of the above, and Err.
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

// Unwrap returns the reason and the details.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// Errorf returns an *Error with formatted details.
func Errorf(backend string, reason error, place, format string, args ...any) *Error {
	return &Error{Backend: backend, Reason: reason, Place: place, Err: fmt.Errorf(format, args...)}
}
