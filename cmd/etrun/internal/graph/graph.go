// Package graph describes programs as graphs that a page draws: the dataflow of methods with aliases joined, their jumps,
// and the insides of delegates.
package graph

import (
	"math"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/weight"
)

// Program is the graphs of one program.
type Program struct {
	Name      string     `json:"name"`
	Form      string     `json:"form"` // what is drawn: the file, or what runs
	Methods   []*Method  `json:"methods"`
	Constants []Constant `json:"constants"`

	lowered bool
	kept    int                  // bytes of constants that the page has
	visit   func(*weight.Weight) // set: receives the constants instead of their descriptions
}

// Method is the graph of a method.
type Method struct {
	Name   string  `json:"name"`
	Fault  string  `json:"fault,omitempty"` // why it does not load here; the graph is then that of the file
	Nodes  []Node  `json:"nodes"`
	Sheets []Sheet `json:"sheets"` // the method, then the insides of delegates
	Blocks []Block `json:"blocks,omitempty"`
	Joined int     `json:"joined,omitempty"` // views that are joined with the values that they show
	Left   int     `json:"left,omitempty"`   // operations that are not shown
	Runs   int     `json:"runs,omitempty"`

	byLocation map[string]int // nodes by location in the file
}

// Node is an operation, an input or an output.
type Node struct {
	ID        string        `json:"id"` // input0, 12 (an instruction), 12.5 (an operation of its delegate), output0
	Kind      string        `json:"kind"`
	Class     string        `json:"class,omitempty"` // of an operation: product, activation, …
	Name      string        `json:"name"`
	Full      string        `json:"full,omitempty"`
	Layer     string        `json:"layer,omitempty"` // module path
	Source    string        `json:"source,omitempty"`
	At        string        `json:"at,omitempty"` // location in the file
	Result    string        `json:"result,omitempty"`
	Fault     string        `json:"fault,omitempty"`
	Args      []Fact        `json:"args,omitempty"` // arguments, and attributes of a delegate's operation
	Facts     []Fact        `json:"facts,omitempty"`
	Constants []Use         `json:"constants,omitempty"`
	Sheet     int           `json:"sheet,omitempty"` // of a delegate
	Bytes     int64         `json:"bytes,omitempty"` // of the results
	Live      int64         `json:"live,omitempty"`  // alive in the memory plan
	Items     []int         `json:"items,omitempty"` // of the memory plan: those that it writes
	Time      time.Duration `json:"time,omitempty"`  // median
	Share     float64       `json:"share,omitempty"` // of the run
	Cycles    float64       `json:"cycles,omitempty"`
	Mark      string        `json:"mark,omitempty"`  // in a comparison: changed or only
	Peer      string        `json:"peer,omitempty"`  // in a comparison: the node of the other program
	Error     *float64      `json:"error,omitempty"` // largest difference from the other program

	sign string // what a comparison compares
	size int64  // of the first result
}

// Fact is a name with a text.
type Fact [2]string

// Use is a constant that a node reads.
type Use struct {
	Name string `json:"name"` // of the operand
	At   int    `json:"at"`   // index in Program.Constants
}

// Constant is a constant with its distribution.
type Constant struct {
	Name      string     `json:"name,omitempty"`
	Type      string     `json:"type"`
	Bytes     int64      `json:"bytes"`
	Histogram *Histogram `json:"histogram,omitempty"` // of the elements as stored, unpacked
	Real      *Histogram `json:"real,omitempty"`      // of the numbers that quantized elements mean
	Saved     bool       `json:"saved,omitempty"`     // the page has its file

	sum  uint64
	file []byte // .npy
}

// Block is straight-line code of a method with jumps.
type Block struct {
	Name  string `json:"name"`
	Ranks [2]int `json:"ranks"` // of the first sheet, inclusive
}

// Sheet is a drawing of nodes.
type Sheet struct {
	Nodes []int     `json:"nodes"` // indexes in Method.Nodes
	Edges []Edge    `json:"edges"`
	Ranks int       `json:"ranks"`
	Rank  []int     `json:"rank"` // by node of the sheet
	X     []float64 `json:"x"`    // centres
	Width float64   `json:"width"`
}

// Edge leads from a node of a sheet to another.
type Edge struct {
	From  int     `json:"from"` // index in Sheet.Nodes
	To    int     `json:"to"`
	Kind  string  `json:"kind,omitempty"` // true or false of a jump; empty for a value
	Route int     `json:"route,omitempty"`
	Bends []int32 `json:"bends,omitempty"`
}

// Kinds of nodes.
const (
	kindInput    = "input"
	kindOutput   = "output"
	kindOperator = "operator"
	kindDelegate = "delegate"
	kindInner    = "node"
	kindMove     = "move"
	kindJump     = "jump"
	kindFree     = "free"
)

// Limits of a program's graphs.
const (
	maxNodes     = 200_000
	maxEdges     = 600_000
	maxConstants = 100_000
	maxArgs      = 64 // listed of one node
	maxFacts     = 40
)

func round(x float64) float64 { return math.Round(x*10) / 10 }

// Histogram is the distribution of a constant's elements.
type Histogram struct {
	Total   int     `json:"total"`
	Count   int     `json:"count"` // elements that were counted: of a sample if there are many
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Mean    float64 `json:"mean"`
	Dev     float64 `json:"dev"` // standard deviation
	Zeros   int     `json:"zeros"`
	Special int     `json:"special,omitempty"` // not a number, or infinite
	Bins    []int   `json:"bins"`              // from Min to Max
}
