// Package trace defines the events that observers of a program receive. It contains a recorder that
// stores events, and writers for its contents: a table, a Chrome trace, and an ETDump for
// ExecuTorch's Inspector.
package trace

import (
	"context"
	"time"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Kind is the type of an event.
type Kind uint8

// Event kinds. All but Begin, Memory, Read and Written are spans, reported when they end: parts
// before the whole.
const (
	Execute  Kind = iota // a run of a method
	Operator             // a KernelCall
	Delegate             // a DelegateCall
	Node                 // one operation inside a delegate
	Move                 // a MoveCall
	Jump                 // a JumpFalseCall
	Free                 // a FreeCall
	Begin                // a run starts
	Open                 // a program was opened
	Load                 // a method was loaded
	Stage                // a stage of an Open or Load; Name is one of the stages below
	Wait                 // a caller waited for an instance of a pool
	Memory               // memory was allocated or freed; Name is its kind
	Read                 // an instruction or node starts: Values are the values it reads
	Written              // an instruction or node succeeded: Values are the values it wrote
	numKinds
)

var kindNames = [numKinds]string{"execute", "operator", "delegate", "node", "move", "jump", "free", "begin", "open",
	"load", "stage", "wait", "memory", "read", "written"}

func (k Kind) String() string { return kindNames[k] }

// Kinds is a set of kinds: the events that an observer subscribes to.
type Kinds uint16

// Common sets. Observing runs costs a few clock readings per run; instructions and delegates cost
// two each. Nodes are measured by the delegate, if it supports that: XNNPACK rounds down to whole
// microseconds. The time of a whole includes the cost of observing its parts.
const (
	Executes     Kinds = 1<<Execute | 1<<Begin
	Delegates    Kinds = 1 << Delegate
	Instructions Kinds = 1<<Operator | 1<<Delegate | 1<<Move | 1<<Jump | 1<<Free
	Nodes        Kinds = 1 << Node
	Loads        Kinds = 1<<Open | 1<<Load | 1<<Stage
	Pools        Kinds = 1 << Wait
	Memories     Kinds = 1 << Memory
	// Values reports the values that instructions read, and those they have just written, before
	// other values reuse the memory. The same applies to nodes inside delegates, for engines that
	// support it.
	Values     Kinds = 1<<Read | 1<<Written
	Everything Kinds = 1<<numKinds - 1 - Values // all but Values, which must be requested explicitly
)

// Has reports whether k is in the set.
func (s Kinds) Has(k Kind) bool { return s&(1<<k) != 0 }

// Any reports whether the sets have a kind in common.
func (s Kinds) Any(other Kinds) bool { return s&other != 0 }

// Stages of opening and loading, in order, with the meaning of Event.Bytes.
const (
	StageRead     = "read"     // read or map the program: its size
	StageParse    = "parse"    // verify the program: its size
	StageData     = "data"     // read and verify .ptd files: their size
	StageFind     = "find"     // look up operators, backends and external data
	StageCompile  = "compile"  // check and compile a delegate's payload: packed weights
	StageBuild    = "build"    // build the dataflow
	StageFold     = "fold"     // fold constants: their size
	StageRewrite  = "rewrite"  // remove and fuse steps: constants computed for that
	StageLower    = "lower"    // compile regions for backends
	StagePlan     = "plan"     // plan memory: arenas and state
	StageAllocate = "allocate" // allocate an instance's memory: arenas and state
	StageUnits    = "units"    // create the delegates' units: estimated working memory
	StageResolve  = "resolve"  // resolve instructions
)

// Kinds of memory: Event.Name if Kind is Memory. They are disjoint.
const (
	MemoryProgram = "program" // contents of the program's files
	MemoryFolded  = "folded"  // constants computed at load
	MemoryPacked  = "packed"  // constants packed by delegates
	MemoryPlanned = "planned" // arenas and state of method instances
	MemoryScratch = "scratch" // estimated working memory of delegates
)

// Event is passed to observers. It and everything it refers to is valid during the call only,
// except strings and Err: the program reuses the memory.
type Event struct {
	Kind Kind
	// Name is the operator, node, stage or kind of memory; "delegate 0, XnnpackBackend" for a
	// Delegate; the instruction or node for Read and Written; the method for Execute, Begin, Load
	// and Wait; the path for Open.
	Name    string
	Method  string // method of the event, else empty
	Backend string // backend of a Delegate, Node, or delegate's Stage, else empty
	// Instance is the number of the method instance, or of the work that instances share: from 1,
	// unique in the process, 0 if there is none. Events of one instance are never concurrent.
	Instance int64
	// Run is the number of the run: from 1, unique in the process, 0 outside runs.
	Run         int64
	Chain       int // chain of the instruction, else -1
	Instruction int // index in its chain; for a Node that of the DelegateCall; else -1
	Delegate    int // index in the method's list of delegates of a Delegate, Node or Stage, else -1
	Index       int // index of a Node in its delegate, also for its Read and Written, else -1

	// Values are the arguments read or written, in order, with lists flattened; set for Read and
	// Written. Tensors are views of the program's memory: they are valid during the call and must
	// not be written. The outputs of a run are also reported as Written, with Chain -1.
	Values []Value

	Start, End time.Duration // see Now and Time
	Bytes      int64         // size of a Stage, Load or Memory; negative for freed memory

	// Context is the context passed to Execute, Load, OpenSource or Do, else the background
	// context. If several callers wait for a load, it has the values of the first caller's context.
	Context context.Context
	// Err is the error, nil on success.
	Err error
	// Reason is the class of Err, empty if Err is nil: format, unsupported, missing, input, memory,
	// execute, device, closed, busy, panic, deadline, canceled, io (a file cannot be read) or
	// other.
	Reason string
}

// Value is a value that an instruction or node reads or has written.
type Value struct {
	// Index is the index in the method's value table, or in the payload of a delegate. Values added
	// by lowering follow those of the file.
	Index int
	// Name is the fully qualified name of a parameter or buffer, else empty.
	Name string
	*tensor.Value
}

// Duration returns the time from Start to End.
func (e *Event) Duration() time.Duration { return e.End - e.Start }

var epoch = time.Now()

// Now reads the monotonic clock used for events: the time since the process started.
func Now() time.Duration { return time.Since(epoch) }

// Time converts a reading of Now to wall-clock time.
func Time(at time.Duration) time.Time { return epoch.Add(at) }

// Func is an observer that calls a function.
type Func struct {
	Kinds Kinds        // events to report
	Do    func(*Event) // called for each event, possibly concurrently
}

// Wants returns f.Kinds.
func (f Func) Wants() Kinds { return f.Kinds }

// Observe calls f.Do.
func (f Func) Observe(e *Event) { f.Do(e) }
