package xnnpack

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
)

// graph is a checked graph of values, and of nodes in execution order. Every index is in range,
// constants have all their bytes, and each value is computed before it is read.
type graph struct {
	Version string // "XN00" or "XN01"
	Values  []value
	Nodes   []node
	Args    []int // values of the delegate call's arguments, by external id
	Inputs  int   // number of inputs, which come first in Args

	static    bool                // arguments always have their declared sizes
	mayRepair bool                // repair known exporter faults
	mixed     bool                // a node with weights had float and 8-bit operands
	repaired  []string            // descriptions of repaired faults
	own       [][]byte            // filters made by lowering, to which only the graph refers
	specs     []*delegate.ArgSpec // the program's specifications of Args, nil for none
}

// value is one tensor of a graph (XValue). Its shape is in memory order.
type value struct {
	ID       uint32 // in the payload
	Datatype datatype
	Shape    shape
	Arg      int // index in Args, or none
	Input    bool
	Output   bool
	Data     []byte     // bytes of a constant, else nil
	found    *foundData // nil for constants without a key
	Quant    quant
}

// quant contains a value's quantization parameters. An element represents scale × (element − zero
// point).
type quant struct {
	Scale      float32
	ZeroPoint  int32
	Scales     []float32 // per channel
	Blocks     []uint16  // bfloat16, per channel and group of input channels
	ChannelDim int
	GroupSize  int
	Nonbatch   int // dynamic: number of inner dimensions that share a scale
}

// node is one operation of a graph (XNode).
type node struct {
	Type        *nodeType
	In, Out     []int // values; none for an absent bias
	Flags       uint32
	Min, Max    float32 // bounds of the output
	DebugHandle uint32
	Params      any   // parameters of the node's family, see params.go; nil for none
	then        *node // a function that is applied to each element of the output; in the Go engine, nil for none
	exact       bool  // operands are not repeated: for the result of an operator that does not broadcast, see infer
	index       int   // index in the payload
	at          int   // index in the graph
}

// none is the index of an absent value.
const none = -1

// isConst reports whether a value is a constant.
func (v *value) isConst() bool { return v.Data != nil }

// describe returns a value's id, datatype and shape for messages.
func (g *graph) describe(v int) string {
	if v == none {
		return "none"
	}
	x := &g.Values[v]
	return fmt.Sprintf("value %d (%v %v)", x.ID, x.Datatype, x.Shape)
}

// place returns a node's index and type for messages.
func (n *node) place() string { return fmt.Sprintf("node %d (%s)", n.index, n.Type.name) }

// snapshot returns a copy of the graph that fusing the original does not change.
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

// readers returns how often each value is an operand.
func (g *graph) readers() []int {
	count := make([]int, len(g.Values))
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			if v != none {
				count[v]++
			}
		}
	}
	return count
}
