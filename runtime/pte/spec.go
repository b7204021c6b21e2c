// Package pte (no compatibility promise) reads ExecuTorch's file formats — .pte programs,
// .ptd named data, .bpte bundles — into plain, verified descriptions. It knows nothing of
// execution and never looks at the machine: the same bytes give the same result
// everywhere.
//
// Whatever a description refers to exists: indexes are in range, byte slices lie
// inside the file, products of sizes do not overflow. Slices of a description that
// hold bytes share the file's memory.
package pte

import "github.com/etrun-go/etrun/kernels/tensor"

// Program is a verified .pte file (program.fbs, table Program).
type Program struct {
	Version uint32
	Methods []Method
	Named   map[string][]byte // named_data: key to the bytes of its segment
	Header  *Header           // the extended header, nil where the file has none
	Size    int64             // of the whole file
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
	Inputs    []int // indexes into Values
	Outputs   []int // indexes into Values; may repeat, and may name inputs or constants
	Chains    []Chain
	Operators []Operator
	Delegates []Delegate
	Arenas    []Arena // arena k holds the tensors of memory_id k+1
	InSpec    string  // encoded pytree of the inputs (ContainerMetadata), may be empty
	OutSpec   string
}

// Arena is one planned buffer (non_const_buffer_sizes, without the reserved slot 0).
type Arena struct {
	Size        int64
	Device      int8 // 0 is the CPU
	DeviceIndex int8
}

// Value is one entry of the value table (table EValue). Only the field that Kind
// names is meaningful.
type Value struct {
	Kind    tensor.Kind
	Bool    bool
	Int     int64
	Double  float64
	Str     string
	Bools   []bool
	Doubles []float64
	Items   []int // lists of values: indexes into Values; -1 is None in an OptionalTensorList
	Tensor  *Tensor
}

// Storage says where a tensor's bytes come from.
type Storage uint8

// The six kinds of storage, by data_buffer_idx, allocation and location.
const (
	Unplanned       Storage = iota // given by the caller, or grown at run time
	Planned                        // in an arena
	Constant                       // Data holds the bytes
	PlannedInit                    // in an arena, filled from Data at load and at reset: mutable state
	External                       // constant, bytes by Name from a .ptd file
	ExternalPlanned                // in an arena, filled by Name from a .ptd file: mutable state
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
	Arena    int    // Planned*: index into Method.Arenas
	Offset   int64  // Planned*: from the arena's start
	Name     string // fully qualified name of a parameter or buffer, may be empty
	Device   int8   // device_type of ExtraTensorInfo, 0 is the CPU
}

// NBytes is the number of bytes at the declared (upper bound) sizes.
func (t *Tensor) NBytes() int64 { return tensorBytes(t.DType, t.Sizes) }

// Operator names a kernel (table Operator).
type Operator struct {
	Name     string // "aten::add"
	Overload string // "out", may be empty
}

// FullName is name.overload, or the name alone.
func (o Operator) FullName() string {
	if o.Overload == "" {
		return o.Name
	}
	return o.Name + "." + o.Overload
}

// Delegate is a part of the program for a backend (table BackendDelegate).
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
	Stacks       [][]Frame // per instruction, where the file has stack traces
}

// Frame is one line of a stack trace of the exporting program.
type Frame struct {
	File    string
	Line    int
	Name    string
	Context string
}

// InstructionKind is the kind of an instruction; the numbers are the file's.
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
	// Index is the operator (KernelCall), the delegate (DelegateCall), the value
	// moved from (MoveCall), the condition (JumpFalseCall) or the value freed.
	Index int
	// Args are the value indexes of a KernelCall or DelegateCall.
	Args []int
	// Target is the value moved to (MoveCall), or the instruction jumped to
	// (JumpFalseCall), at most the number of instructions, which ends the chain.
	Target int
}

// DataMap is a verified .ptd file (flat_tensor.fbs): named bytes, some of them tensors.
type DataMap struct {
	Entries map[string]DataEntry
}

// DataEntry is one named blob.
type DataEntry struct {
	Data   []byte
	Layout *Layout // nil for opaque bytes
}

// Layout is the tensor that a named blob holds; Data has exactly its size.
type Layout struct {
	DType    tensor.DType
	Sizes    []int
	DimOrder []uint8
}

// Bundle is a verified .bpte file (bundled_program_schema.fbs): a program with test cases.
type Bundle struct {
	Program []byte // a whole .pte, not yet parsed
	Suites  []Suite
}

// Suite holds the test cases of one method.
type Suite struct {
	Method string
	Cases  []Case
}

// Case is one call with the outputs it must give.
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
