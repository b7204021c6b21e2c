package graph

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
)

// Graph is a checked graph of values, and of nodes in execution order. Every index is in range,
// constants have all their bytes, and each value is computed before it is read.
type Graph struct {
	Version string // "XN00" or "XN01"
	Values  []Value
	Nodes   []Node
	Args    []int // values of the delegate call's arguments, by external id
	Inputs  int   // number of inputs, which come first in Args

	Static    bool                // arguments always have their declared sizes
	Varies    [][]int             // by input, nil for one that is static: how its dimensions vary, as lowering.GraphValue.Varies
	MayRepair bool                // repair known exporter faults
	mixed     bool                // a node with weights had float and 8-bit operands
	Repaired  []string            // descriptions of repaired faults
	Own       [][]byte            // filters made by lowering, to which only the graph refers
	specs     []*delegate.ArgSpec // the program's specifications of Args, nil for none
}

// Value is one tensor of a graph (XValue). Its shape is in memory order.
type Value struct {
	ID       uint32 // in the payload
	Datatype Datatype
	Shape    Shape
	Arg      int // index in Args, or none
	Input    bool
	Output   bool
	Data     []byte     // bytes of a constant, else nil
	Lent     bool       // the bytes are an argument of the call, which others may read
	Found    *FoundData // nil for constants without a key
	Quant    Quant
	Viewed   Shape // of an argument's tensor, in memory order, if nodes use its bytes in another shape, else empty
}

// Quant contains a value's quantization parameters. An element represents scale × (element − zero
// point).
type Quant struct {
	Scale      float32
	ZeroPoint  int32
	Scales     []float32 // per channel
	Blocks     []uint16  // bfloat16, per channel and group of input channels
	ChannelDim int
	GroupSize  int
	Nonbatch   int // dynamic: number of inner dimensions that share a scale
}

// Node is one operation of a graph (XNode).
type Node struct {
	Type        *NodeType
	In, Out     []int // values; none for an absent bias
	Flags       uint32
	Min, Max    float32 // bounds of the output
	DebugHandle uint32
	Params      any   // parameters of the node's family, see params.go; nil for none
	Then        *Node // a function that is applied to each element of the output; in the Go engine, nil for none
	Exact       bool  // operands are not repeated: for the result of an operator that does not broadcast, see infer
	Index       int   // index in the payload
	At          int   // index in the graph
}

// None is the index of an absent value.
const None = -1

// IsConst reports whether a value is a constant.
func (v *Value) IsConst() bool { return v.Data != nil }

// Describe returns a value's id, datatype and shape for messages.
func (g *Graph) Describe(v int) string {
	if v == None {
		return "none"
	}
	x := &g.Values[v]
	return fmt.Sprintf("value %d (%v %v)", x.ID, x.Datatype, x.Shape)
}

// Location returns a node's index and type for messages.
func (n *Node) Location() string { return fmt.Sprintf("node %d (%s)", n.Index, n.Type.Name) }

// Snapshot returns a copy of the graph that fusing the original does not change.
func (g *Graph) Snapshot() *Graph {
	c := *g
	c.Values, c.Nodes = slices.Clone(g.Values), slices.Clone(g.Nodes)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.In, n.Out = slices.Clone(n.In), slices.Clone(n.Out)
		if w := n.Window(); w != nil {
			own := *w
			n.Params = &own
		}
	}
	return &c
}

// Readers returns how often each value is an operand.
func (g *Graph) Readers() []int {
	count := make([]int, len(g.Values))
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			if v != None {
				count[v]++
			}
		}
	}
	return count
}

// UsedValues reports for each value whether a node or argument refers to it.
func UsedValues(g *Graph) []bool {
	used := make([]bool, len(g.Values))
	for _, v := range g.Args {
		used[v] = true
	}
	for i := range g.Nodes {
		for _, list := range [2][]int{g.Nodes[i].In, g.Nodes[i].Out} {
			for _, v := range list {
				if v != None {
					used[v] = true
				}
			}
		}
	}
	return used
}
