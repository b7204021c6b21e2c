package graph

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// NodeType describes one kind of node to all parts of the package: its fields in payloads, its checks and its shapes.
// The engines have tables of their own, in their nodes.go. To add a node type, add its row to each of the three.
type NodeType struct {
	Tag  uint8 // in the payload's union XNodeUnion; of a type of the Go engine only, one above its tags
	Name string
	// read reads the node's own fields into n.
	read   func(r *Reader, t flatbuf.Table, n *Node)
	Params func() any // returns new parameters of the family, see node.Params; nil for none
	// optional is the index of the operand that may be absent, the bias; 0 if none may.
	optional int
	// Convolution marks nodes with a window and a filter. packs marks all nodes whose constant
	// operands, from the second on, the engines pack.
	Convolution, Packs bool
	// widens reports whether 16-bit constants are converted to float32, which is exact, if the
	// input has the datatype. The library supports more nodes that way. nil for never.
	widens func(in Datatype) bool
	// Check validates parameters and datatypes; shape validates shapes. It changes nothing.
	Check func(g *Graph, n *Node) error
	// Shape computes the shapes of the outputs from those of the inputs.
	Shape func(g *Graph, n *Node, s []Shape) error
	// Bounded marks nodes that clamp their outputs to Min and Max; others have no bounds.
	Bounded bool
	// InPlace marks nodes whose output may overwrite an operand of its size.
	InPlace bool
	// Cost returns the approximate number of MACs of the node; nil for one per output element.
	Cost func(g *Graph, n *Node, s []Shape) int64
}

// IsIn reports whether the type is in a list.
func (t *NodeType) IsIn(list []NodeType) bool {
	return slices.ContainsFunc(list, func(u NodeType) bool { return u.Tag == t.Tag && u.Name == t.Name })
}

// Weighted reports whether nodes of the type have an input, a filter and an optional bias.
func (t *NodeType) Weighted() bool { return t.optional == 2 }

// NoValue is the ID of an absent value (XNN_INVALID_VALUE_ID).
const NoValue = 0xFFFFFFFF

// id reads the ID of a value. resolve replaces it by an index.
func id(t flatbuf.Table, field int, name string) int { return int(t.Uint32(field, name, 0)) }

// extent reads a size, a padding or a stride.
func extent(t flatbuf.Table, field int, name string) int { return fromUint32(t.Uint32(field, name, 0)) }

// fromUint32 returns v. Where int has 32 bits, it limits v to a quarter of the largest int: no
// memory holds that many elements, and sums of four do not overflow.
func fromUint32(v uint32) int { return int(min(uint64(v), math.MaxInt/4)) }

// Functions that read fields which several types share.

func readUnary(_ *Reader, t flatbuf.Table, n *Node) { readEnds(t, 0, n) }

// readEnds reads the input, the output and the flags from three fields on.
func readEnds(t flatbuf.Table, field int, n *Node) {
	n.In = []int{id(t, field, "input_id")}
	readOutput(t, field+1, n)
}

// readOutput reads the output and the flags from two fields on.
func readOutput(t flatbuf.Table, field int, n *Node) {
	n.Out = []int{id(t, field, "output_id")}
	n.Flags = t.Uint32(field+1, "flags", 0)
}

// readUnaryParam returns a reader for nodes with one float before the IDs.
func readUnaryParam(name string) func(*Reader, flatbuf.Table, *Node) {
	return func(r *Reader, t flatbuf.Table, n *Node) {
		Params[ScalarParams](n).Value = t.Float32(0, name, 0)
		readEnds(t, 1, n)
	}
}

func readBinary(r *Reader, t flatbuf.Table, n *Node) {
	n.In = []int{id(t, 0, "input1_id"), id(t, 1, "input2_id")}
	readOutput(t, 2, n)
}

// readDims reads a vector of sizes.
func readDims(t flatbuf.Table, field int, name string) []int {
	return flatbuf.Slice(t.Vector(field, name, 4), func(v flatbuf.Vector, i int) int { return fromUint32(v.Uint32(i)) })
}

// Checks that several types share.

// wantFlags returns an error if n has flags other than the allowed ones.
func wantFlags(n *Node, allowed uint32) error {
	if bad := n.Flags &^ allowed; bad != 0 {
		return n.fault("flags %#x, of which %#x are unknown here", n.Flags, bad)
	}
	return nil
}

// wantDatatype returns an error if the datatype of v is none of types.
func wantDatatype(g *Graph, n *Node, v int, types ...Datatype) error {
	if slices.Contains(types, g.Values[v].Datatype) {
		return nil
	}
	return n.fault("%s, want one of %v", g.Describe(v), types)
}

// WantSame returns an error if a and b differ in datatype or quantization.
func WantSame(g *Graph, n *Node, a, b int) error {
	x, y := &g.Values[a], &g.Values[b]
	if x.Datatype != y.Datatype {
		return n.fault("%s and %s, want one datatype", g.Describe(a), g.Describe(b))
	}
	if x.Datatype.Info().Quant == PerTensor && (x.Quant.Scale != y.Quant.Scale || x.Quant.ZeroPoint != y.Quant.ZeroPoint) {
		return n.fault("%s has scale %v and zero point %d, %s has %v and %d; want the same", g.Describe(a),
			x.Quant.Scale, x.Quant.ZeroPoint, g.Describe(b), y.Quant.Scale, y.Quant.ZeroPoint)
	}
	return nil
}

// ElementwiseTypes are the datatypes that elementwise nodes support.
var ElementwiseTypes = []Datatype{FP32, FP16, QInt8, QUInt8, BF16}

// wantRank returns an error if the shape of v has another number of dimensions.
func wantRank(g *Graph, n *Node, v int, s []Shape, rank int) error {
	if s[v].Rank != rank {
		return n.fault("%s has %d dimensions, want %d", g.Describe(v), s[v].Rank, rank)
	}
	return nil
}

// unchecked is the check of nodes that the Go engine makes.
func unchecked(*Graph, *Node) error { return nil }
