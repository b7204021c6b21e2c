package xnnpack

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
	"math"
)

// nodeType describes one kind of node to all parts of the package: its fields in payloads, its checks and its shapes.
// The engines have tables of their own, nativeTypes and goTypes. To add a node type, add its row to each of the three.
type nodeType struct {
	tag  uint8 // in the payload's union XNodeUnion; of a type of the Go engine only, one above its tags
	name string
	// read reads the node's own fields into n.
	read   func(r *reader, t flatbuf.Table, n *node)
	params func() any // returns new parameters of the family, see node.Params; nil for none
	// optional is the index of the operand that may be absent, the bias; 0 if none may.
	optional int
	// convolution marks nodes with a window and a filter. packs marks all nodes whose constant
	// operands, from the second on, the engines pack.
	convolution, packs bool
	// widens reports whether 16-bit constants are converted to float32, which is exact, if the
	// input has the datatype. The library supports more nodes that way. nil for never.
	widens func(in datatype) bool
	// check validates parameters and datatypes; shape validates shapes. It changes nothing.
	check func(g *graph, n *node) error
	// shape computes the shapes of the outputs from those of the inputs.
	shape func(g *graph, n *node, s []shape) error
	// bounded marks nodes that clamp their outputs to Min and Max; others have no bounds.
	bounded bool
	// inPlace marks nodes whose output may overwrite an operand of its size.
	inPlace bool
	// cost returns the approximate number of MACs of the node; nil for one per output element.
	cost func(g *graph, n *node, s []shape) int64
}

// nodeTypes is the table, by tag. The rows refer to it, so init fills it.
var nodeTypes [256]*nodeType

func init() {
	for _, rows := range [][]nodeType{unaryNodes, binaryNodes, convolutionNodes, matmulNodes, poolNodes, moveNodes} {
		for i := range rows {
			nodeTypes[rows[i].tag] = &rows[i]
		}
	}
}

// readNode reads an XNode.
func (r *reader) readNode(i int, t flatbuf.Table) error {
	tag, body := t.Union(0, "xnode_union")
	if !t.OK() {
		return nil
	}
	n := node{Type: nodeTypes[tag], DebugHandle: t.Uint32(2, "debug_handle", 0), index: i}
	if n.Type == nil {
		return unsupported("node "+itoa(uint32(i)), "node type %d", tag)
	}
	if n.Min, n.Max = -inf, inf; n.Type.bounded {
		readBounds(t, &n)
	}
	n.Type.setParams(&n)
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
	if !r.graph.mayRepair || !n.Type.weighted() { // checked after the repair
		if err := n.Type.check(r.graph, &n); err != nil {
			return err
		}
	}
	r.graph.Nodes = append(r.graph.Nodes, n)
	return nil
}

// weighted reports whether nodes of the type have an input, a filter and an optional bias.
func (t *nodeType) weighted() bool { return t.optional == 2 }

func (n *node) checkBounds() error {
	if n.Min != n.Min || n.Max != n.Max || n.Min > n.Max {
		return n.fault("output bounds %v to %v", n.Min, n.Max)
	}
	return nil
}

// readBounds reads OutputMinMax, which may be absent.
func readBounds(t flatbuf.Table, n *node) {
	if b := t.Table(3, "output_min_max"); b.Exists() {
		n.Min, n.Max = b.Float32(0, "output_min", 0), b.Float32(1, "output_max", 0)
	}
}

// noValue is the ID of an absent value (XNN_INVALID_VALUE_ID).
const noValue = 0xFFFFFFFF

// id reads the ID of a value. resolve replaces it by an index.
func id(t flatbuf.Table, field int, name string) int { return int(t.Uint32(field, name, 0)) }

// extent reads a size, a padding or a stride.
func extent(t flatbuf.Table, field int, name string) int { return fromUint32(t.Uint32(field, name, 0)) }

// fromUint32 returns v. Where int has 32 bits, it limits v to a quarter of the largest int: no
// memory holds that many elements, and sums of four do not overflow.
func fromUint32(v uint32) int { return int(min(uint64(v), math.MaxInt/4)) }

// resolve replaces the IDs that read stored in In and Out by indices. Nodes that read a value with
// a quantized view read the view instead, which is computed before the first of them.
func (r *reader) resolve(n *node) error {
	for i, v := range n.Out {
		index, ok := r.byID[uint32(v)]
		if !ok {
			return n.fault("output %d: no value has id %d", i, v)
		}
		n.Out[i] = index
	}
	for i, v := range n.In {
		if uint32(v) == noValue && n.Type.optional == i && i > 0 {
			n.In[i] = none
			continue
		}
		index, ok := r.byID[uint32(v)]
		if !ok {
			return n.fault("input %d: no value has id %d", i, v)
		}
		if view, ok := r.views[index]; ok {
			if err := r.quantizeView(index, view, n.index); err != nil {
				return err
			}
			index = view
		}
		n.In[i] = index
	}
	return nil
}

// quantizeView adds the node that computes a quantized view, unless it was added before.
func (r *reader) quantizeView(value, view, at int) error {
	if r.viewed[view] {
		return nil
	}
	r.viewed[view] = true
	n := node{Type: nodeTypes[tagConvert], In: []int{value}, Out: []int{view}, Min: -inf, Max: inf, index: at}
	if err := n.Type.check(r.graph, &n); err != nil {
		return err
	}
	r.graph.Nodes = append(r.graph.Nodes, n)
	return nil
}

// Functions that read fields which several types share.

func readUnary(r *reader, t flatbuf.Table, n *node) {
	n.In = []int{id(t, 0, "input_id")}
	n.Out = []int{id(t, 1, "output_id")}
	n.Flags = t.Uint32(2, "flags", 0)
}

// readUnaryParam returns a reader for nodes with one float before the IDs.
func readUnaryParam(name string) func(*reader, flatbuf.Table, *node) {
	return func(r *reader, t flatbuf.Table, n *node) {
		params[scalarParams](n).value = t.Float32(0, name, 0)
		n.In = []int{id(t, 1, "input_id")}
		n.Out = []int{id(t, 2, "output_id")}
		n.Flags = t.Uint32(3, "flags", 0)
	}
}

func readBinary(r *reader, t flatbuf.Table, n *node) {
	n.In = []int{id(t, 0, "input1_id"), id(t, 1, "input2_id")}
	n.Out = []int{id(t, 2, "output_id")}
	n.Flags = t.Uint32(3, "flags", 0)
}

// readDims reads a vector of sizes.
func readDims(t flatbuf.Table, field int, name string) []int {
	return flatbuf.Slice(t.Vector(field, name, 4), func(v flatbuf.Vector, i int) int { return fromUint32(v.Uint32(i)) })
}

// Checks that several types share.

// wantFlags returns an error if n has flags other than the allowed ones.
func wantFlags(n *node, allowed uint32) error {
	if bad := n.Flags &^ allowed; bad != 0 {
		return n.fault("flags %#x, of which %#x are unknown here", n.Flags, bad)
	}
	return nil
}

// wantDatatype returns an error if the datatype of v is none of types.
func wantDatatype(g *graph, n *node, v int, types ...datatype) error {
	for _, d := range types {
		if g.Values[v].Datatype == d {
			return nil
		}
	}
	return n.fault("%s, want one of %v", g.describe(v), types)
}

// wantSame returns an error if a and b differ in datatype or quantization.
func wantSame(g *graph, n *node, a, b int) error {
	x, y := &g.Values[a], &g.Values[b]
	if x.Datatype != y.Datatype {
		return n.fault("%s and %s, want one datatype", g.describe(a), g.describe(b))
	}
	if x.Datatype.info().quant == perTensor && (x.Quant.Scale != y.Quant.Scale || x.Quant.ZeroPoint != y.Quant.ZeroPoint) {
		return n.fault("%s has scale %v and zero point %d, %s has %v and %d; want the same", g.describe(a),
			x.Quant.Scale, x.Quant.ZeroPoint, g.describe(b), y.Quant.Scale, y.Quant.ZeroPoint)
	}
	return nil
}

// elementwiseTypes are the datatypes that elementwise nodes support.
var elementwiseTypes = []datatype{fp32, fp16, qint8, quint8, bf16}

func wantRank(g *graph, n *node, v int, s []shape, rank int) error {
	if s[v].rank != rank {
		return n.fault("%s has %d dimensions, want %d", g.describe(v), s[v].rank, rank)
	}
	return nil
}
