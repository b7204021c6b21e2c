package etrun

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Classes of failure: what a caller can do about an error. Match with errors.Is;
// every error of this package is one of them, or context.Cause of a cancelled context.
var (
	ErrFormat      = errors.New("invalid program")     // the file breaks its format, or asks for nonsense
	ErrUnsupported = errors.New("unsupported program") // valid, but of a kind that this version does not run
	ErrMissing     = errors.New("missing")             // an operator, a backend or external data is not here
	ErrInput       = errors.New("input mismatch")      // an input, or what is asked of an output, does not fit the method
	ErrMemory      = errors.New("memory limit")        // the method needs more than it may have
	ErrExecute     = errors.New("execution failure")   // an operator refused its arguments, or a limit of the run
	ErrDevice      = errors.New("device failure")      // a device or engine failed
	ErrClosed      = errors.New("closed")              // the program or method has been closed
	ErrBusy        = errors.New("busy")                // the method is executing in another goroutine
	ErrPanic       = errors.New("operator panicked")   // a fault of an operator or backend, or of an observer
)

// classes maps the reasons that lower packages give to classes, first match wins.
var classes = []struct{ reason, class error }{
	{pte.ErrFormat, ErrFormat},
	{pte.ErrVersion, ErrFormat}, // as upstream has it
	{pte.ErrUnsupported, ErrUnsupported},
	{pte.ErrLimit, ErrMemory},
	{delegate.ErrPayload, ErrFormat},
	{delegate.ErrUnsupported, ErrUnsupported},
	{delegate.ErrMissing, ErrMissing},
	{delegate.ErrDevice, ErrDevice},
	{delegate.ErrMemory, ErrMemory},
	{delegate.ErrArgument, ErrExecute},
}

// classOf finds the class of an error, def where it has none.
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

// codes are ExecuTorch's names and numbers (runtime/core/error.h) of the classes.
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

// LoadError is a failure before a method can execute.
type LoadError struct {
	Class  error  // one of the package's classes, nil for a cancelled context
	File   string // the program's, empty where it is not from a file or Err names it
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
	if in, ok := errors.AsType[*InstructionError](e.Err); ok && in.Method == e.Method { // says the method and the code itself
		text = strings.Replace(text, in.Error(), in.text(), 1)
	}
	return withCode(s+text, e.Class, e.Err)
}

// Unwrap gives class and cause to errors.Is and errors.As.
func (e *LoadError) Unwrap() []error { return causes(e.Class, e.Err) }

// InstructionError is a failure of one instruction.
type InstructionError struct {
	Class  error // one of the package's classes, nil for a cancelled context
	Method string
	Chain  int
	Index  int    // of the instruction in its chain
	Op     string // operator, delegate or kind of instruction
	Err    error
}

func (e *InstructionError) Error() string {
	return withCode(fmt.Sprintf("method %q: %s", e.Method, e.text()), e.Class, e.Err)
}

// text is the error without the method and the code.
func (e *InstructionError) text() string { return place(e.Chain, e.Index, e.Op) + ": " + e.Err.Error() }

// place is where an instruction stands in the file.
func place(chain, index int, name string) string {
	if chain > 0 {
		return fmt.Sprintf("chain %d, instruction %d (%s)", chain, index, name)
	}
	return fmt.Sprintf("instruction %d (%s)", index, name)
}

// Unwrap gives class and cause to errors.Is and errors.As.
func (e *InstructionError) Unwrap() []error { return causes(e.Class, e.Err) }

// InputError is an input that a method cannot take.
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

// OutputError is an output that a method cannot give.
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

// MissingError names everything that a method needs and the runtime has not.
type MissingError struct {
	Operators []MissingOperator
	Backends  []string // delegate ids
	Data      []string // names of external tensors that no .ptd file holds
}

// MissingOperator is an operator without a kernel.
type MissingOperator struct {
	Name         string
	Instructions []int // indexes in the flattened chains that call it
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
		parts = append(parts, fmt.Sprintf("backends not in this build: %.200q", e.Backends))
	}
	if len(e.Data) > 0 {
		parts = append(parts, fmt.Sprintf("external tensors in none of the .ptd files given: %.200q", e.Data))
	}
	return strings.Join(parts, "; ")
}

// count is n with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Unwrap makes errors.Is(err, ErrMissing) true.
func (e *MissingError) Unwrap() error { return ErrMissing }

// MemoryError is a demand for memory beyond the limit.
type MemoryError struct {
	Want, Limit int64
	Parts       []MemoryPart
}

// MemoryPart is one kind of memory in a sum.
type MemoryPart struct {
	Name  string
	Bytes int64
}

func (e *MemoryError) Error() string {
	var parts []string
	for _, p := range e.Parts {
		if p.Bytes > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.Name, p.Bytes))
		}
	}
	return fmt.Sprintf("%d bytes needed (%s), the limit is %d", e.Want, strings.Join(parts, ", "), e.Limit)
}

// Unwrap makes errors.Is(err, ErrMemory) true.
func (e *MemoryError) Unwrap() error { return ErrMemory }

// PanicError is a panic of an operator or backend: a fault of theirs, not of the
// program. The method that it happened in cannot execute again. Or it is a panic of an
// observer, and the method can.
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

// withCode appends ExecuTorch's code of a failure to its text.
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

// loadError wraps a failure of loading; def is its class where nothing says better.
func loadError(file, method string, err, def error) error {
	if _, ok := errors.AsType[*LoadError](err); ok {
		return err
	}
	return &LoadError{Class: classOf(err, def), File: file, Method: method, Err: err}
}

// nameArgument completes an operator's ArgumentError with names from its schema.
func nameArgument(err error, sig *kernels.Signature) {
	a, ok := errors.AsType[*kernels.ArgumentError](err)
	if !ok || sig == nil {
		return
	}
	a.Op = sig.Name
	if a.Arg >= 0 && a.Arg < len(sig.Args) {
		a.Name = sig.Args[a.Arg].Name
	}
}
