package xnnpack

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
	"math"
)

// nodeType is one kind of operation: a row of the table. To add one, add its row.
type nodeType struct {
	tag  uint8 // in the payload's union XNodeUnion
	name string
	// read reads the node's own fields into n.
	read   func(r *reader, t flatbuf.Table, n *node)
	params func() any // makes the family's parameters, see node.Params; nil: it has none
	// optional is an operand that a node may do without, the bias; 0: it needs all.
	optional int
	// convolution is for nodes with a window and a filter; packs for all whose constant
	// operands, from the second on, the library packs.
	convolution, packs bool
	// widens says that 16-bit constants behind an input of the datatype become float32,
	// exactly: the library takes more nodes so. nil: never.
	widens func(in datatype) bool
	// check refuses parameters and datatypes; shapes are shape's affair. It changes nothing.
	check func(g *graph, n *node) error
	// shape computes the outputs' shapes from the inputs'.
	shape func(g *graph, n *node, s []shape) error
	// native is what the library must be given to be safe; nil: anything that check takes.
	native rule
	// bySize says that native depends on sizes: a call may be refused where others are not.
	bySize bool
	// scratch is what the library allocates for the node beside its values; nil: nothing.
	scratch func(g *graph, n *node, s []shape, threads int) int64
	// layout is what must not change about the shapes while a runtime of the library
	// lives, as a number; nil: anything may.
	layout func(n *node, s []shape) int
	// bounded nodes keep their outputs within Min and Max; others have no bounds.
	bounded bool
	// inPlace nodes of the library write over an operand of the output's size.
	inPlace bool
	// define adds the node to the library's subgraph.
	define func(b *builder, n *node) call
	// cost is about how many multiplications the node takes; nil: one an output element.
	cost func(g *graph, n *node, s []shape) int64
	// loops is what a unit of the Go engine keeps for the node; nil: little or nothing.
	loops func(g *graph, n *node, s []shape, threads int) int64
	// pack makes the node's filter ready for products of floats; nil: it has none.
	pack packer
	// run is the reference: it computes the outputs.
	run func(e *reference, n *node)
}

// nodeTypes is the table, by tag. Rows refer to it, so it is filled by init.
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
	if !r.graph.mend || !n.Type.weighted() { // those are mended first
		if err := n.Type.check(r.graph, &n); err != nil {
			return err
		}
	}
	r.graph.Nodes = append(r.graph.Nodes, n)
	return nil
}

// weighted reports nodes with input, filter and optional bias.
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

// noValue is the id of a value that is not there (XNN_INVALID_VALUE_ID).
const noValue = 0xFFFFFFFF

// id reads a value's id; resolve makes an index of it.
func id(t flatbuf.Table, field int, name string) int { return int(t.Uint32(field, name, 0)) }

// extent reads a size, a padding or a step.
func extent(t flatbuf.Table, field int, name string) int { return fromUint32(t.Uint32(field, name, 0)) }

// fromUint32 is v, or where int has 32 bits at most a quarter of the largest: no memory has
// room for so many elements, and sums of four do not overflow.
func fromUint32(v uint32) int { return int(min(uint64(v), math.MaxInt/4)) }

// resolve turns the ids that read left in In and Out into indices. Readers of a value
// with a quantized view get the view, computed in front of the first of them.
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

// quantizeView adds the node that computes a quantized view, unless it is there.
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

// Readers of the fields that several types share.

func readUnary(r *reader, t flatbuf.Table, n *node) {
	n.In = []int{id(t, 0, "input_id")}
	n.Out = []int{id(t, 1, "output_id")}
	n.Flags = t.Uint32(2, "flags", 0)
}

// readUnaryParam is for nodes with one float before the ids.
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

// wantFlags refuses flags beside the allowed ones.
func wantFlags(n *node, allowed uint32) error {
	if bad := n.Flags &^ allowed; bad != 0 {
		return n.fault("flags %#x, of which %#x are unknown here", n.Flags, bad)
	}
	return nil
}

// wantDatatype refuses a value of none of the types.
func wantDatatype(g *graph, n *node, v int, types ...datatype) error {
	for _, d := range types {
		if g.Values[v].Datatype == d {
			return nil
		}
	}
	return n.fault("%s, want one of %v", g.describe(v), types)
}

// wantSame refuses values of different datatypes or quantizations.
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

// elementwise are the types that elementwise nodes compute on.
var elementwiseTypes = []datatype{fp32, fp16, qint8, quint8, bf16}

func wantRank(g *graph, n *node, v int, s []shape, rank int) error {
	if s[v].rank != rank {
		return n.fault("%s has %d dimensions, want %d", g.describe(v), s[v].rank, rank)
	}
	return nil
}
