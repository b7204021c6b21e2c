package xnnpack

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
)

// graph is what a payload describes: values, and nodes in the order of execution.
// It has been checked: every index is in range, constants have all their bytes, and
// each value is computed before it is read.
type graph struct {
	Version string // "XN00" or "XN01"
	Values  []value
	Nodes   []node
	Args    []int // values of the delegate call's arguments, by external id
	Inputs  int   // how many of Args, from the first, are inputs

	mend   bool                // faults of exporters are mended
	mended []string            // those that were
	own    [][]byte            // filters that lowering made, which nobody else knows
	specs  []*delegate.ArgSpec // what the program says of Args, nil for nothing
}

// value is one tensor of a graph (XValue). Sizes are in the order of memory.
type value struct {
	ID       uint32 // the payload's name for it
	Datatype datatype
	Shape    shape
	Arg      int // its place in Args, or -1
	Input    bool
	Output   bool
	Data     []byte // the bytes of a constant, else nil
	found    foundData
	Quant    quant
}

// quant says how a quantized value's elements stand for numbers: scale × (element −
// zero point).
type quant struct {
	Scale      float32
	ZeroPoint  int32
	Scales     []float32 // per channel
	Blocks     []uint16  // bfloat16, per channel and group of input channels
	ChannelDim int
	GroupSize  int
	Nonbatch   int // dynamic: how many inner dimensions share a scale
}

// node is one operation of a graph (XNode).
type node struct {
	Type        *nodeType
	In, Out     []int // values; none for an absent bias
	Flags       uint32
	Min, Max    float32 // bounds of the output
	DebugHandle uint32
	Params      any // parameters of the node's family, see params.go; nil: it has none
	index       int // in the payload
	at          int // in the graph
}

// none stands for a value that a node does without.
const none = -1

// isConst reports a value that the payload gives.
func (v *value) isConst() bool { return v.Data != nil }

func (g *graph) describe(v int) string {
	if v == none {
		return "none"
	}
	x := &g.Values[v]
	return fmt.Sprintf("value %d (%v %v)", x.ID, x.Datatype, x.Shape)
}

// place names a node for messages.
func (n *node) place() string { return fmt.Sprintf("node %d (%s)", n.index, n.Type.name) }

// snapshot is a copy of what fusing changes.
func (g *graph) snapshot() *graph {
	c := *g
	c.Values, c.Nodes = slices.Clone(g.Values), slices.Clone(g.Nodes)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.In, n.Out = slices.Clone(n.In), slices.Clone(n.Out)
		if w := n.window(); w != nil {
			own := *w
			n.Params = &own
		}
	}
	return &c
}
