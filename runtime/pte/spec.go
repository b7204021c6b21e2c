// Package pte (no compatibility promise) reads ExecuTorch's file formats (.pte programs, .ptd named
// data, .bpte bundles) into plain, verified descriptions. It is independent of execution and of the
// machine: the same bytes give the same result everywhere.
//
// A description is consistent: indices are in range, byte slices are inside the file, and products
// of sizes do not overflow. Byte slices share the file's memory.
package pte

import "github.com/etrun-go/etrun/kernels/tensor"

// Program is a verified .pte file (program.fbs, table Program).
type Program struct {
	Version uint32
	Methods []Method
	Named   map[string][]byte // named_data: key to segment contents
	Header  *Header           // the extended header, nil if the file has none
	Size    int64             // size of the file
}

// Header is the extended header (PTE "eh00").
type Header struct {
	Length          uint32
	ProgramSize     uint64
	SegmentBase     uint64
	SegmentDataSize uint64
}

// Method is one execution plan (table ExecutionPlan).
type Method struct {
	Name      string
	Values    []Value
	Inputs    []int // indices of Values
	Outputs   []int // indices of Values; may repeat, and may name inputs or constants
	Chains    []Chain
	Operators []Operator
	Delegates []Delegate
	Arenas    []Arena // arena k holds the tensors of memory_id k+1
	InSpec    string  // encoded pytree of the inputs (ContainerMetadata), may be empty
	OutSpec   string
	Err       error          // why the method cannot be loaded, a *[FormatError]; then it has only a name
	Initial   []InitialFault // named states whose initial contents are not where the file says
}

// Arena is one planned buffer (non_const_buffer_sizes, without the reserved slot 0).
type Arena struct {
	Size        int64
	Device      int8 // 0 is the CPU
	DeviceIndex int8
}

// Value is one entry of the value table (table EValue). Only the field selected by Kind is
// meaningful.
type Value struct {
	Kind   tensor.Kind
	Bool   bool
	Int    int64
	Double float64
	Items  []int // lists of values: indices of Values; -1 is None in an OptionalTensorList
	Tensor *Tensor
	Long   *Long // nil for most kinds
}

// Long is the contents of rare kinds of values, apart from the table of values.
type Long struct {
	Str     string
	Bools   []bool
	Doubles []float64
}

// Scalar returns a value of a kind that refers to no other value.
func (v *Value) Scalar() tensor.Value {
	s := tensor.Value{Kind: v.Kind, Bool: v.Bool, Int: v.Int, Double: v.Double}
	if v.Long != nil {
		s.Str, s.Bools, s.Doubles = v.Long.Str, v.Long.Bools, v.Long.Doubles
	}
	return s
}

// Storage is the source of a tensor's bytes.
type Storage uint8

// Kinds of storage, derived from data_buffer_idx, allocation and location.
const (
	Unplanned       Storage = iota // provided by the caller, or allocated at run time
	Planned                        // in an arena
	Constant                       // contents in Data
	PlannedInit                    // in an arena, initialized from Data at load and reset: mutable state
	External                       // constant, contents in a .ptd file under Name
	ExternalPlanned                // in an arena, initialized from a .ptd file under Name: mutable state
)

func (s Storage) String() string {
	return [...]string{"unplanned", "planned", "constant", "planned, initialised", "external constant", "external, planned"}[s]
}

// Tensor describes a tensor (table Tensor). Sizes are upper bounds unless it is static.
type Tensor struct {
	DType    tensor.DType
	Sizes    []int
	DimOrder []uint8
	Dynamism tensor.Dynamism
	Storage  Storage
	Data     []byte // Constant, PlannedInit: exactly NBytes bytes, of any alignment
	Arena    int    // Planned*: index of Method.Arenas
	Offset   int64  // Planned*: offset in the arena. The end may be outside for the result of an et_view
	Name     string // fully qualified name of a parameter or buffer, may be empty
	Device   int8   // device_type of ExtraTensorInfo, 0 is the CPU
}

// NBytes returns the number of bytes at the declared sizes, which may be upper bounds.
func (t *Tensor) NBytes() int64 { return tensorBytes(t.DType, t.Sizes) }

// Operator is the name of a kernel (table Operator).
type Operator struct {
	Name     string // "aten::add"
	Overload string // "out", may be empty
}

// FullName returns name.overload, or the name alone.
func (o Operator) FullName() string {
	if o.Overload == "" {
		return o.Name
	}
	return o.Name + "." + o.Overload
}

// Delegate is a part of the program lowered to a backend (table BackendDelegate).
type Delegate struct {
	ID    string
	Data  []byte // processed bytes, inline or from a segment
	Specs []CompileSpec
}

// CompileSpec is a compile-time option of a delegate.
type CompileSpec struct {
	Key   string
	Value []byte
}

// Chain is a list of instructions (table Chain).
type Chain struct {
	Instructions []Instruction
	Stacks       [][]Frame // per instruction, if the file has stack traces
}

// Frame is one line of a stack trace of the exporting program.
type Frame struct {
	File    string
	Line    int
	Name    string
	Context string
}

// InstructionKind is the kind of an instruction, as numbered in the file.
type InstructionKind uint8

// Kinds of instruction (union InstructionArguments).
const (
	KernelCall    InstructionKind = 1
	DelegateCall  InstructionKind = 2
	MoveCall      InstructionKind = 3
	JumpFalseCall InstructionKind = 4
	FreeCall      InstructionKind = 5
)

func (k InstructionKind) String() string {
	return [...]string{"none", "KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall"}[min(k, 5)]
}

// Instruction is one step of a chain.
type Instruction struct {
	Kind InstructionKind
	// Index is the index of the operator (KernelCall), the delegate (DelegateCall), the source
	// value (MoveCall), the condition (JumpFalseCall) or the value to free (FreeCall).
	Index int
	// Args are the value indices of a KernelCall or DelegateCall.
	Args []int
	// Target is the index of the destination value (MoveCall), or of the instruction to jump to
	// (JumpFalseCall), where the number of instructions means the end of the chain.
	Target int
}

// DataMap is a verified .ptd file (flat_tensor.fbs): named bytes, some of them tensors.
type DataMap struct {
	Entries map[string]DataEntry
}

// DataEntry is one named byte sequence.
type DataEntry struct {
	Data   []byte
	Layout *Layout // nil for opaque bytes
}

// Layout describes the tensor in a named byte sequence; Data has exactly its size.
type Layout struct {
	DType    tensor.DType
	Sizes    []int
	DimOrder []uint8
}

// Bundle is a verified .bpte file (bundled_program_schema.fbs): a program with test cases.
type Bundle struct {
	Program []byte // the .pte file, not yet parsed
	Suites  []Suite
}

// Suite contains the test cases of one method.
type Suite struct {
	Method string
	Cases  []Case
}

// Case is one call with its expected outputs.
type Case struct {
	Inputs  []BundleValue
	Outputs []BundleValue // empty: nothing to compare
}

// BundleValue is an input or expected output: a tensor, Int, Bool or Double.
type BundleValue struct {
	Kind     tensor.Kind
	Bool     bool
	Int      int64
	Double   float64
	DType    tensor.DType
	Sizes    []int
	DimOrder []uint8
	Data     []byte
}

// tensorBytes returns the number of bytes of checked sizes.
func tensorBytes(d tensor.DType, sizes []int) int64 {
	n, _ := tensor.Product(sizes)
	return int64(n) * int64(d.Size())
}

// InitialFault is a state whose data_buffer_idx is not the number of its part of the mutable data
// segment.
type InitialFault struct {
	Value   int
	Name    string
	Index   int    // data_buffer_idx
	Written []byte // the part of this number, nil if the segment has none of it
	Err     error  // a *FormatError if the contents are not known; else they are those of constant Index
}
