package graph

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// NodeType describes one kind of node to all parts of the package: its fields in payloads, its checks and its shapes.
// The engines have tables of their own, native.Types and goengine.Types. To add a node type, add its row to each of the three.
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

// NodeTypes is the table, by tag. The rows refer to it, so init fills it.
var NodeTypes [256]*NodeType

func init() {
	for _, rows := range [][]NodeType{UnaryNodes, BinaryNodes, convolutionNodes, matmulNodes, poolNodes, MoveNodes} {
		for i := range rows {
			NodeTypes[rows[i].Tag] = &rows[i]
		}
	}
}

// readNode reads an XNode.
func (r *Reader) readNode(i int, t flatbuf.Table) error {
	tag, body := t.Union(0, "xnode_union")
	if !t.OK() {
		return nil
	}
	n := Node{Type: NodeTypes[tag], DebugHandle: t.Uint32(2, "debug_handle", 0), Index: i}
	if n.Type == nil {
		return Unsupported("node "+itoa(uint32(i)), "node type %d", tag)
	}
	if n.Min, n.Max = -Inf, Inf; n.Type.Bounded {
		readBounds(t, &n)
	}
	n.Type.SetParams(&n)
	n.Type.read(r, body, &n)
	if !t.OK() {
		return nil
	}
	if err := n.checkBounds(); err != nil {
		return err
	}
	if err := r.resolve(&n); err != nil {
		return err
	}
	if !r.graph.MayRepair || !n.Type.Weighted() { // checked after the repair
		if err := n.Type.Check(r.graph, &n); err != nil {
			return err
		}
	}
	r.graph.Nodes = append(r.graph.Nodes, n)
	return nil
}

// Weighted reports whether nodes of the type have an input, a filter and an optional bias.
func (t *NodeType) Weighted() bool { return t.optional == 2 }

func (n *Node) checkBounds() error {
	if n.Min != n.Min || n.Max != n.Max || n.Min > n.Max {
		return n.fault("output bounds %v to %v", n.Min, n.Max)
	}
	return nil
}

// readBounds reads OutputMinMax, which may be absent.
func readBounds(t flatbuf.Table, n *Node) {
	if b := t.Table(3, "output_min_max"); b.Exists() {
		n.Min, n.Max = b.Float32(0, "output_min", 0), b.Float32(1, "output_max", 0)
	}
}

// NoValue is the ID of an absent value (XNN_INVALID_VALUE_ID).
const NoValue = 0xFFFFFFFF

// id reads the ID of a value. resolve replaces it by an index.
func id(t flatbuf.Table, field int, name string) int { return int(t.Uint32(field, name, 0)) }

// extent reads a size, a padding or a stride.
func extent(t flatbuf.Table, field int, name string) int { return FromUint32(t.Uint32(field, name, 0)) }

// FromUint32 returns v. Where int has 32 bits, it limits v to a quarter of the largest int: no
// memory holds that many elements, and sums of four do not overflow.
func FromUint32(v uint32) int { return int(min(uint64(v), math.MaxInt/4)) }

// resolve replaces the IDs that read stored in In and Out by indices. Nodes that read a value with
// a quantized view read the view instead, which is computed before the first of them.
func (r *Reader) resolve(n *Node) error {
	for i, v := range n.Out {
		index, ok := r.byID[uint32(v)]
		if !ok {
			return n.fault("output %d: no value has id %d", i, v)
		}
		n.Out[i] = index
	}
	for i, v := range n.In {
		if uint32(v) == NoValue && n.Type.optional == i && i > 0 {
			n.In[i] = None
			continue
		}
		index, ok := r.byID[uint32(v)]
		if !ok {
			return n.fault("input %d: no value has id %d", i, v)
		}
		if view, ok := r.views[index]; ok {
			if err := r.quantizeView(index, view, n.Index); err != nil {
				return err
			}
			index = view
		}
		n.In[i] = index
	}
	return nil
}

// quantizeView adds the node that computes a quantized view, unless it was added before.
func (r *Reader) quantizeView(value, view, at int) error {
	if r.viewed[view] {
		return nil
	}
	r.viewed[view] = true
	n := Node{Type: NodeTypes[TagConvert], In: []int{value}, Out: []int{view}, Min: -Inf, Max: Inf, Index: at}
	if err := n.Type.Check(r.graph, &n); err != nil {
		return err
	}
	r.graph.Nodes = append(r.graph.Nodes, n)
	return nil
}

// Functions that read fields which several types share.

func readUnary(r *Reader, t flatbuf.Table, n *Node) {
	n.In = []int{id(t, 0, "input_id")}
	n.Out = []int{id(t, 1, "output_id")}
	n.Flags = t.Uint32(2, "flags", 0)
}

// readUnaryParam returns a reader for nodes with one float before the IDs.
func readUnaryParam(name string) func(*Reader, flatbuf.Table, *Node) {
	return func(r *Reader, t flatbuf.Table, n *Node) {
		Params[ScalarParams](n).Value = t.Float32(0, name, 0)
		n.In = []int{id(t, 1, "input_id")}
		n.Out = []int{id(t, 2, "output_id")}
		n.Flags = t.Uint32(3, "flags", 0)
	}
}

func readBinary(r *Reader, t flatbuf.Table, n *Node) {
	n.In = []int{id(t, 0, "input1_id"), id(t, 1, "input2_id")}
	n.Out = []int{id(t, 2, "output_id")}
	n.Flags = t.Uint32(3, "flags", 0)
}

// readDims reads a vector of sizes.
func readDims(t flatbuf.Table, field int, name string) []int {
	return flatbuf.Slice(t.Vector(field, name, 4), func(v flatbuf.Vector, i int) int { return FromUint32(v.Uint32(i)) })
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
	for _, d := range types {
		if g.Values[v].Datatype == d {
			return nil
		}
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

// WantRank returns an error if the shape of v has another number of dimensions.
func WantRank(g *Graph, n *Node, v int, s []Shape, rank int) error {
	if s[v].Rank != rank {
		return n.fault("%s has %d dimensions, want %d", g.Describe(v), s[v].Rank, rank)
	}
	return nil
}

// Unchecked is the check of nodes that the Go engine makes.
func Unchecked(*Graph, *Node) error { return nil }

// IsIn reports whether the type is in a list.
func (t *NodeType) IsIn(list []NodeType) bool {
	return slices.ContainsFunc(list, func(u NodeType) bool { return u.Tag == t.Tag && u.Name == t.Name })
}
