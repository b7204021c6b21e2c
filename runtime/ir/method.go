// Package ir (no compatibility promise) represents the dataflow of a method: the storages of its
// values, which steps read and write them, and their lifetimes. [Build] builds a [Method] from a
// file's description, and passes derive others by edits ([Method.Edit]). A method refers to the
// file's bytes but not to its description.
package ir

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Method is the dataflow of one method. It is immutable: an edit returns a new one.
type Method struct {
	Name      string
	Values    []Value
	Storages  []Storage
	Steps     []Step // all chains, in order
	Inputs    []int  // values
	Outputs   []int  // values; may repeat, and may name inputs or constants
	Arenas    []int64
	Delegates []string // by index, for messages: the delegate and its backend
	Relaid    []Relaid // elided views that are copied because the file's place for them would be wrong
	// States that the exporter's updates miss, found when the method was built.
	Redirected  []Redirected
	Misdirected []Misdirected
	Unwritten   []Unwritten
	// Coarse means that computing lifetimes was too much work, as for no exporter's method: every
	// storage counts as live throughout, and some may be read before they are written.
	Coarse bool
}

// Value is one slot of the value table. Only the fields of its Kind are meaningful.
type Value struct {
	Kind    tensor.Kind
	Changes bool // a step or the caller writes the slot itself, not only its bytes
	Bool    bool
	Int     int64
	Double  float64
	Tensor  *Tensor // shared by methods derived by edits, immutable
	Storage int     // of a tensor, -1 for other kinds
	more    *more   // nil for most kinds
}

// more is the contents of long values, apart from the table of values, which edits copy.
type more struct {
	long  *pte.Long
	items []int
}

// List returns a list of values.
func List(kind tensor.Kind, items []int) Value {
	return Value{Kind: kind, Storage: -1, more: &more{items: items}}
}

// Items returns the indexes of a list's values; -1 is None in an optional tensor list. It returns
// nil for other kinds.
func (v *Value) Items() []int {
	if v.more == nil {
		return nil
	}
	return v.more.items
}

// Scalar returns a value of a kind that refers to no other value.
func (v *Value) Scalar() tensor.Value {
	s := tensor.Value{Kind: v.Kind, Bool: v.Bool, Int: v.Int, Double: v.Double}
	if v.more != nil && v.more.long != nil {
		s.Str, s.Bools, s.Doubles = v.more.long.Str, v.more.long.Bools, v.more.long.Doubles
	}
	return s
}

// Tensor is the declaration of a tensor value.
type Tensor struct {
	DType    tensor.DType
	Sizes    []int   // upper bounds unless static
	DimOrder []uint8 // nil: contiguous
	Dynamism tensor.Dynamism
	Name     string // fully qualified name of a parameter or buffer, may be empty
	Const    bool   // its bytes are always the storage's Data
}

// NBytes returns the number of bytes at the declared sizes. It never overflows.
func (t *Tensor) NBytes() int64 {
	n, _ := tensor.Product(t.Sizes)
	return int64(n) * int64(t.DType.Size())
}

// Kind is the lifetime class of a storage.
type Kind uint8

// Kinds of storage.
const (
	Activation Kind = iota // written before it is read, in every run
	Input                  // set by the caller before a run
	State                  // keeps its bytes from one run to the next
	Constant               // bytes of the file or of an external file
	Heap                   // of unbounded size: reallocated when it grows
	Folded                 // constant, computed once at load
)

func (k Kind) String() string {
	return [...]string{"activation", "input", "state", "constant", "heap", "folded"}[k]
}

// IsConstant reports whether no step may write the bytes.
func (k Kind) IsConstant() bool { return k == Constant || k == Folded }

// Storage is a set of values that share their bytes.
type Storage struct {
	Kind    Kind
	Output  bool  // an output of the method shares its bytes
	Planned bool  // the file's plan has a place for the first member:
	Arena   int   // index into Method.Arenas
	Offset  int64 // from the arena's start

	Values []int // members; the others have the place of the first; none after an edit joined the storage with another
	Bytes  int64 // of the largest member, at upper bound sizes
	// Data is the bytes of a constant, or the initial bytes of state; nil for state that starts as
	// zeros, and for all other kinds.
	Data []byte
	// First and Last bound the steps at which the bytes matter, inclusive: a definition at First,
	// the last use at Last. An input starts at -1, an output ends at the number of steps. Last <
	// First means never used.
	First, Last int
}

// StepKind is the kind of a step.
type StepKind uint8

// Kinds of step, with their arguments.
const (
	KernelCall    StepKind = iota + 1 // the operator's arguments in schema order, then the result's slot
	DelegateCall                      // the delegate's: inputs, then outputs
	MoveCall                          // from, to
	JumpFalseCall                     // the condition
	FreeCall                          // the freed value
	// SizesJump continues with the next step if the delegate accepts the sizes of its arguments,
	// and jumps to the target otherwise. Only edits make it, before a call of the delegate with the
	// same arguments.
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
	Own      bool               // KernelCall: facts attached to its name do not apply, see Operator
	Delegate int                // DelegateCall and SizesJump: index
	Inputs   int                // DelegateCall and SizesJump: the number of arguments that are inputs
	Args     []int              // values
	Target   int                // JumpFalseCall and SizesJump: the step jumped to, at most the number of steps
	Least    int                // SizesJump: the minimum number of elements of all inputs
	Origin   Origin

	// The effects, computed from the fields above.
	Reads   []int // values whose bytes are read, list items included
	Writes  []int // values whose bytes are written whole
	Updates []int // values that are read and written in place, or in part
}

// Origin is the place of an instruction in the file.
type Origin struct{ Chain, Index int }

// String formats the index, in chains other than the first as CHAIN:INDEX.
func (o Origin) String() string {
	if o.Chain > 0 {
		return fmt.Sprintf("%d:%d", o.Chain, o.Index)
	}
	return fmt.Sprint(o.Index)
}

// HasDynamicInputs reports whether calls may have their own sizes.
func (m *Method) HasDynamicInputs() bool { return m.IsDynamic(m.Inputs...) }

// IsDynamic reports whether the sizes of one of the values vary.
func (m *Method) IsDynamic(values ...int) bool {
	return slices.ContainsFunc(values, func(v int) bool {
		t := m.Values[v].Tensor
		return t != nil && t.Dynamism != tensor.Static
	})
}

// StepName returns the operator, delegate or kind of a step, for messages.
func (m *Method) StepName(s *Step) string {
	switch s.Kind {
	case KernelCall:
		return s.Op.Name()
	case DelegateCall, SizesJump:
		return m.Delegates[s.Delegate]
	}
	return s.Kind.String()
}

// IsJump reports whether a step may lead to its target instead of the next step.
func (s *Step) IsJump() bool { return s.Kind == JumpFalseCall || s.Kind == SizesJump }

// IsView reports whether a step's result shares the bytes of its first argument
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

// Changing reports whether any step writes a slot among the values, or an item of a list.
func (m *Method) Changing(values []int) bool {
	for _, v := range values {
		if v >= 0 && (m.Values[v].Changes || m.Changing(m.Values[v].Items())) {
			return true
		}
	}
	return false
}

// Alignment returns the largest element size among a storage's values.
func (m *Method) Alignment(s *Storage) int {
	size := 1
	for _, v := range s.Values {
		size = max(size, m.Values[v].Tensor.DType.Size())
	}
	return size
}

// Place formats the position of an instruction in the file.
func (o Origin) Place(name string) string {
	if o.Chain > 0 {
		return fmt.Sprintf("chain %d, instruction %d (%s)", o.Chain, o.Index, name)
	}
	return fmt.Sprintf("instruction %d (%s)", o.Index, name)
}

// StepError is an error at a step.
type StepError struct {
	Origin Origin
	Name   string // of the step
	Err    error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("chain %d, instruction %d (%s): %v", e.Origin.Chain, e.Origin.Index, e.Name, e.Err)
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

func (m *Method) stepError(s *Step, err error) error {
	return &StepError{Origin: s.Origin, Name: m.StepName(s), Err: err}
}

// Relaid is an elided view that is copied from the value that it is a view of.
type Relaid struct {
	Value, From int
	Carried     bool // also at the start of a call: the other value is state
	Old         bool // only there: the view is read after the state's update
}

// blockStarts marks the steps at which straight-line code begins, and the end.
func (m *Method) blockStarts() []bool {
	n := len(m.Steps)
	begins := make([]bool, n+1)
	begins[0], begins[n] = true, true
	for i := range m.Steps {
		if s := &m.Steps[i]; s.IsJump() {
			begins[i+1], begins[s.Target] = true, true
		}
	}
	return begins
}

// Redirected is a copy onto an argument that is made onto the state for which it was meant.
type Redirected struct {
	Origin
	Input    int // index of the argument
	From, To int // values: the argument, and the state
}

// Misdirected is a copy onto an argument that cannot be meant, and that several states or none can be
// the destination of.
type Misdirected struct {
	Origin
	Input  int   // index of the argument
	Idle   bool  // the argument is copied onto itself, which changes nothing
	States []int // values: the states of this type and these sizes that no step writes

	step int
}

// Unwritten is a tensor that is read, although neither a step nor the caller writes it.
type Unwritten struct {
	Value  int  // the first one that is read, of those that share its bytes
	Reader int  // the first step that reads it; the number of steps for an output
	Filled bool // the file has its initial contents
	Output bool // the method returns it
}
