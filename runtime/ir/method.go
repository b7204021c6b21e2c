// Package ir (no compatibility promise) is the dataflow of a method: which bytes
// (storages) its values live in, which steps read and write them, and when each is alive.
// A [Method] stands alone: [Build] makes it of a file's description, passes make it into
// another one by edits ([Method.Edit]), and nothing of it refers to the file but its
// bytes.
package ir

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Method is the dataflow of one method. It is never changed: an edit makes another.
type Method struct {
	Name      string
	Values    []Value
	Storages  []Storage
	Steps     []Step // the chains one after the other
	Inputs    []int  // values
	Outputs   []int  // values; may repeat, and may name inputs or constants
	Arenas    []int64
	Delegates []string // by index, for messages: the delegate and its backend
	Relaid    []Relaid // elided views that are copied: where the file has them they would be wrong
	// Coarse says that the lifetimes are too much work to find, as no exporter's are:
	// every storage counts as live throughout, and some may be read before it is written.
	Coarse bool
}

// Value is one slot of the value table. Only the fields that Kind names are meaningful.
type Value struct {
	Kind    tensor.Kind
	Changes bool // a step or the caller writes the slot itself, not only its bytes
	Bool    bool
	Int     int64
	Double  float64
	Str     string
	Bools   []bool
	Doubles []float64
	Items   []int   // lists of values: indexes; -1 is None in an optional tensor list
	Tensor  *Tensor // shared by the methods that edits make, and never changed
	Storage int     // of a tensor, -1 for other kinds
}

// Scalar is the value of a kind that refers to no other value.
func (v *Value) Scalar() tensor.Value {
	return tensor.Value{Kind: v.Kind, Bool: v.Bool, Int: v.Int, Double: v.Double, Str: v.Str, Bools: v.Bools, Doubles: v.Doubles}
}

// Tensor is what a value of that kind is declared as.
type Tensor struct {
	DType    tensor.DType
	Sizes    []int   // upper bounds unless static
	DimOrder []uint8 // nil: contiguous
	Dynamism tensor.Dynamism
	Name     string // fully qualified name of a parameter or buffer, may be empty
	Const    bool   // its bytes are the storage's Data, from the start and for good
}

// NBytes is the number of bytes at the declared sizes, whose product is known to fit.
func (t *Tensor) NBytes() int64 {
	n, _ := tensor.Product(t.Sizes)
	return int64(n) * int64(t.DType.Size())
}

// Kind says how a storage lives.
type Kind uint8

// Kinds of storage.
const (
	Activation Kind = iota // written before it is read, in every execute
	Input                  // set by the caller before an execute
	State                  // keeps its bytes from one execute to the next
	Constant               // bytes of the file or of an external file
	Heap                   // of unbounded size: allocated when it grows
	Folded                 // constant too, but computed once at load
)

func (k Kind) String() string {
	return [...]string{"activation", "input", "state", "constant", "heap", "folded"}[k]
}

// IsConstant reports bytes that no step may write.
func (k Kind) IsConstant() bool { return k == Constant || k == Folded }

// Storage is a class of values that share their bytes.
type Storage struct {
	Kind    Kind
	Output  bool  // an output of the method has its bytes
	Planned bool  // the file's plan has a place for the first member:
	Arena   int   // which, index into Method.Arenas
	Offset  int64 // from the arena's start

	Values []int // members; the first is the one whose place the others take; none where an edit joined the storage with another
	Bytes  int64 // of the largest member, at upper bound sizes
	// Data is the bytes of a constant, or what state starts with; nil where state
	// starts with zeros, and for all other kinds.
	Data []byte
	// First and Last bound the steps at which the bytes matter, inclusive: a
	// definition at First, the last use at Last. An input starts at -1, an output
	// ends at the number of steps. Last < First: never used.
	First, Last int
}

// StepKind is the kind of a step.
type StepKind uint8

// Kinds of step, with their arguments.
const (
	KernelCall    StepKind = iota + 1 // the operator's, in the order of its schema, then the result's slot
	DelegateCall                      // the delegate's: inputs, then outputs
	MoveCall                          // from, to
	JumpFalseCall                     // the condition
	FreeCall                          // what is freed
	// SizesJump leads on where the delegate takes its arguments at their sizes, and else to
	// the target. Only edits make it, before a call of the delegate with the same arguments.
	SizesJump
)

func (k StepKind) String() string {
	return [...]string{"none", "KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall", "SizesJump"}[min(k, 6)]
}

// Step is one instruction of the flattened chains, with its effects on storages.
type Step struct {
	Kind     StepKind
	Op       *kernels.Op        // KernelCall
	Sig      *kernels.Signature // KernelCall: the operator's schema
	Own      bool               // KernelCall: nothing is known of it by its name, see Operator
	Delegate int                // DelegateCall and SizesJump: which
	Inputs   int                // of these: the number of arguments that are inputs
	Args     []int              // values
	Target   int                // JumpFalseCall and SizesJump: the step jumped to, at most the number of steps
	Least    int                // SizesJump: how many elements the inputs must have together
	Origin   Origin

	// The effects, which follow from the fields above.
	Reads   []int // values whose bytes are read, list items included
	Writes  []int // values whose bytes are written whole
	Updates []int // values that are read and written in place, or in part
}

// Origin is where the file has an instruction.
type Origin struct{ Chain, Index int }

// StepName is the operator, delegate or kind of a step, for messages.
func (m *Method) StepName(s *Step) string {
	switch s.Kind {
	case KernelCall:
		return s.Op.Name()
	case DelegateCall, SizesJump:
		return m.Delegates[s.Delegate]
	}
	return s.Kind.String()
}

// IsJump reports a step that may lead to its target instead of the next step.
func (s *Step) IsJump() bool { return s.Kind == JumpFalseCall || s.Kind == SizesJump }

// IsView reports a step whose result shares the bytes of its first argument
// (executorch_prim::et_view).
func (s *Step) IsView() bool {
	return s.Kind == KernelCall && s.Sig.Result != nil && s.Sig.Result.Alias
}

// Views marks the values that some step makes views of others.
func (m *Method) Views() []bool {
	views := make([]bool, len(m.Values))
	for i := range m.Steps {
		if s := &m.Steps[i]; s.IsView() {
			for _, v := range s.Writes {
				views[v] = true
			}
		}
	}
	return views
}

// Changing reports whether a slot among the values, or an item of a list, is written.
func (m *Method) Changing(values []int) bool {
	for _, v := range values {
		if v >= 0 && (m.Values[v].Changes || m.Changing(m.Values[v].Items)) {
			return true
		}
	}
	return false
}

// Alignment is the size of the largest element that values of a storage have.
func (m *Method) Alignment(s *Storage) int {
	size := 1
	for _, v := range s.Values {
		size = max(size, m.Values[v].Tensor.DType.Size())
	}
	return size
}

// StepError is a step that a method must not have.
type StepError struct {
	Origin Origin
	Name   string // of the step
	Err    error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("chain %d, instruction %d (%s): %v", e.Origin.Chain, e.Origin.Index, e.Name, e.Err)
}

// Unwrap gives the details to errors.Is and errors.As.
func (e *StepError) Unwrap() error { return e.Err }

func (m *Method) stepError(s *Step, err error) error {
	return &StepError{Origin: s.Origin, Name: m.StepName(s), Err: err}
}
