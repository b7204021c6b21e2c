package graph

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// NodeTypes is the table, by tag. The rows refer to it, so init fills it.
var NodeTypes [256]*NodeType

func init() {
	for _, rows := range [][]NodeType{UnaryNodes, BinaryNodes, convolutionNodes, matmulNodes, poolNodes, moveNodes} {
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

// Tags of node types in a payload's union XNodeUnion.
const (
	TagAdd                  = 1
	TagFullyConnected       = 2
	TagSoftmax              = 3
	TagSigmoid              = 4
	TagStaticTranspose      = 5
	TagClamp                = 6
	TagConv2d               = 7
	TagDiv                  = 8
	TagResizeBilinear2D     = 9
	TagStaticConstantPad    = 10
	TagAvgPooling2d         = 11
	TagMinimum              = 12
	TagDepthwiseConv2d      = 13
	TagMaxPooling2d         = 14
	TagMultiply             = 15
	TagSubtract             = 16
	TagFloor                = 17
	TagConvert              = 18
	TagGlobalAvgPooling2d   = 19
	TagStaticReshape        = 20
	TagArgMaxPooling2d      = 21
	TagSquareRoot           = 22
	TagCeiling              = 23
	TagHardswish            = 24
	TagLeakyReLU            = 25
	TagMaximum              = 26
	TagNegate               = 27
	TagSquare               = 28
	TagELU                  = 29
	TagAbs                  = 30
	TagPReLU                = 31
	TagConcatenate2         = 32
	TagConcatenate3         = 33
	TagConcatenate4         = 34
	TagStaticSlice          = 35
	TagBatchMatrixMultiply  = 37
	TagConcatenate5         = 38
	TagConvTranspose2d      = 39
	TagReciprocalSquareRoot = 40
	TagLog                  = 41
	TagGelu                 = 42
	TagTanh                 = 43
	TagExp                  = 44
	TagSin                  = 45
	TagCopy                 = 46
	TagCos                  = 47
)

// Tags is more than any tag of a node type.
const Tags = 64

// Tags of the node types that only the Go engine has. Payloads have none of them.
const (
	TagSiLU = 60 + iota
	TagTable
	TagRearrange
	TagResizePlanes
)
