// Package trace describes what a program does and when: the events that the observers
// of a program get, a recorder that keeps them, and writers of what it kept: a table,
// a Chrome trace, an ETDump for ExecuTorch's Inspector.
package trace

import (
	"context"
	"time"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Kind is what an event tells of.
type Kind uint8

// Kinds of events. All but Begin, Memory, Read and Written are spans of time, told of when
// they have ended: parts before the whole.
const (
	Execute  Kind = iota // a whole execute of a method
	Operator             // a KernelCall
	Delegate             // a DelegateCall
	Node                 // one operation inside a delegate
	Move                 // a MoveCall
	Jump                 // a JumpFalseCall
	Free                 // a FreeCall
	Begin                // an execute begins
	Open                 // a program was opened
	Load                 // a method was loaded
	Stage                // a part of an Open or Load; Name is one of the stages below
	Wait                 // a caller waited for an instance of a pool
	Memory               // memory was taken, or given back; Name is its kind
	Read                 // an instruction or node begins: Values are what it reads
	Written              // an instruction or node has ended without an error: Values are what it wrote
	numKinds
)

var kindNames = [numKinds]string{"execute", "operator", "delegate", "node", "move", "jump", "free", "begin", "open",
	"load", "stage", "wait", "memory", "read", "written"}

func (k Kind) String() string { return kindNames[k] }

// Kinds is a set of kinds: what an observer wants to be told of.
type Kinds uint16

// What observers usually want. Being told of executes alone costs a few readings of the
// clock each, of instructions and delegates two readings a piece. Nodes are measured
// by the delegate, where it can: XNNPACK's to whole microseconds, rounded down. What
// telling of parts costs is in the time of the whole.
const (
	Executes     Kinds = 1<<Execute | 1<<Begin
	Delegates    Kinds = 1 << Delegate
	Instructions Kinds = 1<<Operator | 1<<Delegate | 1<<Move | 1<<Jump | 1<<Free
	Nodes        Kinds = 1 << Node
	Loads        Kinds = 1<<Open | 1<<Load | 1<<Stage
	Pools        Kinds = 1 << Wait
	Memories     Kinds = 1 << Memory
	// Values shows what instructions read, and what they have just written, before another
	// one takes the memory. So do nodes inside delegates, of engines that can show them.
	Values     Kinds = 1<<Read | 1<<Written
	Everything Kinds = 1<<numKinds - 1 - Values // all but values, which have to be asked for
)

// Has reports that k is in the set.
func (s Kinds) Has(k Kind) bool { return s&(1<<k) != 0 }

// Any reports that the sets have a kind in common.
func (s Kinds) Any(other Kinds) bool { return s&other != 0 }

// Stages of opening and loading, in order, and what Event.Bytes is then.
const (
	StageRead     = "read"     // the program's file is read or mapped: its size
	StageParse    = "parse"    // the program is verified: its size
	StageData     = "data"     // data files are read and verified: their size
	StageFind     = "find"     // operators, backends and external data are found
	StageCompile  = "compile"  // a delegate's payload is checked and compiled: packed weights
	StageBuild    = "build"    // the dataflow is built
	StageFold     = "fold"     // constants are computed: their size
	StageRewrite  = "rewrite"  // steps are taken away or joined: the size of constants computed for it
	StageLower    = "lower"    // regions are handed to backends, which compile them as delegates
	StagePlan     = "plan"     // memory is planned: arenas and state
	StageAllocate = "allocate" // an instance gets its memory: arenas and state
	StageUnits    = "units"    // an instance of each delegate is made: their working memory, as estimated
	StageResolve  = "resolve"  // instructions are resolved
)

// Kinds of memory, in Event.Name where Kind is Memory. They are disjoint.
const (
	MemoryProgram = "program" // bytes of the program's files
	MemoryFolded  = "folded"  // constants computed at load
	MemoryPacked  = "packed"  // delegates' own copies of constants
	MemoryPlanned = "planned" // arenas and state of instances
	MemoryScratch = "scratch" // delegates' working memory, as estimated
)

// Event is what an observer is told. It, and what it refers to, is lent for the call:
// who keeps more than copied strings, numbers and Err keeps what the program uses again.
type Event struct {
	Kind Kind
	// Name is the operator, node, stage or kind of memory; "delegate 0, XnnpackBackend"
	// for a Delegate; that of the instruction or node for Read and Written; the method for Execute, Begin, Load and Wait; the path for Open.
	Name    string
	Method  string // the method that it happened in or for, else empty
	Backend string // of a Delegate, Node, or Stage of a delegate, else empty
	// Instance is the number of the method instance, or of the work that instances
	// share, from 1 and unique in the process. What one instance does is never
	// concurrent. It is 0 where there is none.
	Instance int64
	// Run is the number of the execute, from 1 and unique in the process, else 0.
	Run         int64
	Chain       int // of the instruction, else -1
	Instruction int // in its chain, also of the DelegateCall around a Node, else -1
	Delegate    int // place in the method's list of delegates, of a Delegate, Node or Stage, else -1
	Index       int // of a Node in its delegate, also of what a node reads and has written, else -1

	// Values are of Read and Written: arguments in their order, items of lists one by one.
	// Tensors are views of the program's memory: they are valid during the call, and must
	// not be written. What a whole execute returns is told of as Written, too, with a Chain
	// of -1.
	Values []Value

	Start, End time.Duration // see Now and Time
	Bytes      int64         // of a Stage, Load or Memory, where sizes matter; negative for memory given back

	// Context is that of the caller of Execute, Load, OpenSource or Do, or the background. A
	// load that several callers wait for has the values of the first one's.
	Context context.Context
	// Err is how it failed, nil otherwise.
	Err error
	// Reason is the class of Err in one word, empty without one: format, unsupported,
	// missing, input, memory, execute, device, closed, busy, panic, deadline, canceled,
	// io (a file cannot be read) or other.
	Reason string
}

// Value is a value that an instruction or node reads, or has written.
type Value struct {
	// Index is the place in the method's value table, or in the payload of a delegate.
	// Values that lowering made follow those of the file.
	Index int
	// Name is the fully qualified name of a parameter or buffer, empty for others.
	Name string
	*tensor.Value
}

// Duration is the time from Start to End.
func (e *Event) Duration() time.Duration { return e.End - e.Start }

var epoch = time.Now()

// Now reads the clock that events have their times from: the time since the process
// started, which no change of the wall clock touches.
func Now() time.Duration { return time.Since(epoch) }

// Time is the wall clock's time at a reading of Now.
func Time(at time.Duration) time.Time { return epoch.Add(at) }

// Func is an observer made of a function.
type Func struct {
	Kinds Kinds        // what it wants
	Do    func(*Event) // is told of it, from several goroutines at once
}

// Wants is f.Kinds.
func (f Func) Wants() Kinds { return f.Kinds }

// Observe calls f.Do.
func (f Func) Observe(e *Event) { f.Do(e) }
