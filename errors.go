package etrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/advice"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Error classes. Match them with errors.Is: every error of this package matches one of them, or is
// context.Cause of a canceled context.
var (
	ErrFormat      = errors.New("invalid program")     // the file violates its format
	ErrUnsupported = errors.New("unsupported program") // valid, but not supported by this version
	ErrMissing     = errors.New("missing")             // an operator, backend or external tensor is not available
	ErrInput       = errors.New("input mismatch")      // an input, or a request for an output, does not match the method, or an option has no meaning
	ErrMemory      = errors.New("memory limit")        // the method needs more memory than the limit
	ErrExecute     = errors.New("execution failure")   // an operator rejected its arguments, or the instruction limit was reached
	ErrDevice      = errors.New("device failure")      // a device or compute engine failed
	ErrClosed      = errors.New("closed")              // the program or method has been closed
	ErrBusy        = errors.New("busy")                // another goroutine is using the method
	ErrPanic       = errors.New("operator panicked")   // an operator, backend or observer panicked
)

// classes maps the errors of lower packages to classes; the first match wins.
var classes = []struct{ reason, class error }{
	{pte.ErrFormat, ErrFormat},
	{pte.ErrVersion, ErrFormat}, // as in ExecuTorch
	{pte.ErrUnsupported, ErrUnsupported},
	{pte.ErrLimit, ErrMemory},
	{delegate.ErrPayload, ErrFormat},
	{delegate.ErrUnsupported, ErrUnsupported},
	{delegate.ErrMissing, ErrMissing},
	{delegate.ErrDevice, ErrDevice},
	{delegate.ErrMemory, ErrMemory},
	{delegate.ErrArgument, ErrExecute},
}

// classOf returns the class of an error, def if it has none.
func classOf(err, def error) error {
	for _, c := range [...]error{ErrFormat, ErrUnsupported, ErrMissing, ErrInput, ErrMemory, ErrExecute, ErrDevice, ErrClosed, ErrBusy, ErrPanic} {
		if errors.Is(err, c) {
			return c
		}
	}
	for _, c := range classes {
		if errors.Is(err, c.reason) {
			return c.class
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return def
}

// codes maps each class to ExecuTorch's error name and number (runtime/core/error.h).
var codes = map[error]string{
	ErrFormat:      "InvalidProgram 0x23",
	ErrUnsupported: "NotSupported 0x10",
	ErrMissing:     "NotFound 0x20",
	ErrInput:       "InvalidArgument 0x12",
	ErrMemory:      "MemoryAllocationFailed 0x21",
	ErrExecute:     "InvalidArgument 0x12",
	ErrDevice:      "Internal 0x1",
	ErrClosed:      "InvalidState 0x2",
	ErrBusy:        "InvalidState 0x2",
	ErrPanic:       "Internal 0x1",
}

// LoadError is a failure to open a program or to load a method.
type LoadError struct {
	Class  error  // one of the package's classes, nil for a canceled context
	File   string // path of the program, empty if it is not a file or Err names it
	Method string // empty for the program as a whole
	Err    error
}

func (e *LoadError) Error() string {
	text := e.Err.Error()
	s := "load: "
	if e.File != "" && !strings.Contains(text, e.File) {
		s += e.File + ": "
	}
	if e.Method != "" {
		s += fmt.Sprintf("method %q: ", e.Method)
	}
	if in, ok := errors.AsType[*InstructionError](e.Err); ok && in.Method == e.Method { // contains the method and the code itself
		text = strings.Replace(text, in.Error(), in.text(), 1)
	}
	return withCode(s+text, e.Class, e.Err)
}

// Unwrap returns the class and the cause.
func (e *LoadError) Unwrap() []error { return causes(e.Class, e.Err) }

// InstructionError is the failure of one instruction.
type InstructionError struct {
	Class  error // one of the package's classes, nil for a canceled context
	Method string
	Chain  int
	Index  int    // of the instruction in its chain
	Op     string // operator name, delegate or kind of instruction
	Err    error
}

func (e *InstructionError) Error() string {
	return withCode(fmt.Sprintf("method %q: %s", e.Method, e.text()), e.Class, e.Err)
}

// text is the message without method and code.
func (e *InstructionError) text() string {
	return ir.Origin{Chain: e.Chain, Index: e.Index}.Place(e.Op) + ": " + e.Err.Error()
}

// Unwrap returns the class and the cause.
func (e *InstructionError) Unwrap() []error { return causes(e.Class, e.Err) }

// InputError reports an input that does not match the method's declaration.
type InputError struct {
	Method string
	Index  int
	Got    string
	Want   string
}

func (e *InputError) Error() string {
	return withCode(fmt.Sprintf("method %q: input %d: got %s, want %s", e.Method, e.Index, e.Got, e.Want), ErrInput, nil)
}

// Unwrap makes errors.Is(err, ErrInput) true.
func (e *InputError) Unwrap() error { return ErrInput }

// OutputError reports a request for an output that the method cannot fulfill.
type OutputError struct {
	Method string
	Index  int
	Reason string
}

func (e *OutputError) Error() string {
	return withCode(fmt.Sprintf("method %q: output %d: %s", e.Method, e.Index, e.Reason), ErrInput, nil)
}

// Unwrap makes errors.Is(err, ErrInput) true.
func (e *OutputError) Unwrap() error { return ErrInput }

// OptionError reports an option whose value has no meaning.
type OptionError struct {
	Option string // name of the function that makes it
	Got    string
	Want   string
}

func (e *OptionError) Error() string {
	return withCode(fmt.Sprintf("%s: got %s, want %s", e.Option, e.Got, e.Want), ErrInput, nil)
}

// Unwrap makes errors.Is(err, ErrInput) true.
func (e *OptionError) Unwrap() error { return ErrInput }

// MissingError lists everything a method needs that is not available.
type MissingError struct {
	Operators []MissingOperator
	Backends  []string // backend IDs
	Data      []string // names of external tensors that no .ptd file contains
}

// MissingOperator is an operator for which no kernel is registered.
type MissingOperator struct {
	Name         string
	Instructions []int // indices, in the flattened chains, of the instructions that call it
}

func (e *MissingError) Error() string {
	var parts []string
	if n := len(e.Operators); n > 0 {
		names := make([]string, n)
		for i, o := range e.Operators {
			names[i] = fmt.Sprintf("%.100q (%s)", o.Name, count(len(o.Instructions), "call"))
		}
		parts = append(parts, fmt.Sprintf("%s without a kernel: %s", count(n, "operator"), strings.Join(names, ", ")))
	}
	if len(e.Backends) > 0 {
		parts = append(parts, fmt.Sprintf("backends not available: %.200q (%v)", e.Backends, advice.Backends))
	}
	if len(e.Data) > 0 {
		parts = append(parts, fmt.Sprintf("external tensors in none of the .ptd files given: %.200q (%v)", e.Data, advice.Data))
	}
	return strings.Join(parts, "; ")
}

// count formats n with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Unwrap makes errors.Is(err, ErrMissing) true.
func (e *MissingError) Unwrap() error { return ErrMissing }

// MemoryError reports a memory requirement above the limit. Want and Limit are in bytes.
type MemoryError struct {
	Want, Limit int64
	Parts       []MemoryPart
	Available   bool // Limit is what the system has left, see WithAvailableMemory
}

// MemoryPart is one component of a memory requirement.
type MemoryPart struct {
	Name  string
	Bytes int64
}

func (e *MemoryError) Error() string {
	needs := prepare.MemoryError{Want: e.Want, Limit: e.Limit, Available: e.Available}
	for _, part := range e.Parts {
		needs.Parts = append(needs.Parts, prepare.Part(part))
	}
	return needs.Error()
}

// Unwrap makes errors.Is(err, ErrMemory) true.
func (e *MemoryError) Unwrap() error { return ErrMemory }

// PanicError is a panic of an operator or backend, which is a bug in it and not in the program. The
// method cannot run again. A panic of an observer is also a PanicError; after it the method remains
// usable.
type PanicError struct {
	Value any
	Stack []byte

	observer bool
}

func (e *PanicError) Error() string {
	if e.observer {
		return fmt.Sprintf("observer panicked: %v", e.Value)
	}
	return fmt.Sprintf("%v: %v", ErrPanic, e.Value)
}

// Unwrap makes errors.Is(err, ErrPanic) true.
func (e *PanicError) Unwrap() error { return ErrPanic }

// withCode appends ExecuTorch's error code to a message.
func withCode(s string, class, err error) string {
	code, ok := codes[class]
	if m, isMissing := errors.AsType[*MissingError](err); isMissing && len(m.Operators) > 0 {
		code = "OperatorMissing 0x14"
	}
	if !ok {
		return s
	}
	return s + " [" + code + "]"
}

func causes(class, err error) []error {
	if class == nil {
		return []error{err}
	}
	return []error{class, err}
}

// loadError wraps a load failure; def is the class of an error without one.
func loadError(file, method string, err, def error) error {
	if _, ok := errors.AsType[*LoadError](err); ok {
		return err
	}
	return &LoadError{Class: classOf(err, def), File: file, Method: method, Err: err}
}

// faults makes the errors of package exec.
type faults struct{}

func (faults) Input(method string, i int, got, want string) error {
	return &InputError{Method: method, Index: i, Got: got, Want: want}
}

func (faults) Output(method string, i int, reason string) error {
	return &OutputError{Method: method, Index: i, Reason: reason}
}

func (faults) Batch(method, reason string) error { return &BatchError{method, reason} }

func (faults) Argument(reason string) error { return fmt.Errorf("%s: %w", reason, ErrInput) }

func (faults) Use(method string, closed bool) error {
	if closed {
		return fmt.Errorf("method %q: %w", method, ErrClosed)
	}
	return fmt.Errorf("method %q: %w", method, ErrBusy)
}

func (faults) Endless(steps int64) error {
	return fmt.Errorf("limit of %d instructions reached (%v): %w", steps, advice.Endless, ErrExecute)
}

func (faults) Step(method string, at ir.Origin, name string, refused bool, err error) error {
	if _, ok := err.(*InstructionError); ok {
		return err
	}
	class := classOf(err, ErrExecute)
	if class == ErrExecute && refused {
		class = ErrInput
	}
	return &InstructionError{Class: class, Method: method, Chain: at.Chain, Index: at.Index, Op: name, Err: err}
}

func (faults) Panic(value any, observer bool) error {
	return &PanicError{Value: value, Stack: debug.Stack(), observer: observer}
}

// Prepare returns an error of package prepare as one of this package.
func (faults) Prepare(method string, err error) error {
	if e, ok := errors.AsType[*ir.StepError](err); ok {
		return &InstructionError{Class: classOf(e.Err, ErrFormat), Method: method, Chain: e.Origin.Chain, Index: e.Origin.Index, Op: e.Name, Err: e.Err}
	}
	if e, ok := errors.AsType[*prepare.MissingError](err); ok {
		missing := &MissingError{Backends: e.Backends, Data: e.Data}
		for _, o := range e.Operators {
			missing.Operators = append(missing.Operators, MissingOperator(o))
		}
		return missing
	}
	if e, ok := errors.AsType[*prepare.MemoryError](err); ok {
		return memoryError(e)
	}
	return err
}

func memoryError(from *prepare.MemoryError) *MemoryError {
	e := &MemoryError{Want: from.Want, Limit: from.Limit, Available: from.Available}
	for _, part := range from.Parts {
		e.Parts = append(e.Parts, MemoryPart(part))
	}
	return e
}

// reasons are the names of the error classes, see trace.Event.
var reasons = []struct {
	class error
	word  string
}{
	{ErrPanic, "panic"}, {ErrFormat, "format"}, {ErrUnsupported, "unsupported"}, {ErrMissing, "missing"},
	{ErrInput, "input"}, {ErrMemory, "memory"}, {ErrDevice, "device"}, {ErrClosed, "closed"}, {ErrBusy, "busy"},
	{ErrExecute, "execute"}, {context.DeadlineExceeded, "deadline"}, {context.Canceled, "canceled"},
}

// Reason returns the name of an error's class.
func (faults) Reason(err error) string {
	if class := classOf(err, nil); class != nil {
		err = class
	}
	for i := range reasons {
		if errors.Is(err, reasons[i].class) {
			return reasons[i].word
		}
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return "io"
	}
	return "other"
}
