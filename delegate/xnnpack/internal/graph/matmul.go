package graph

import "github.com/etrun-go/etrun/internal/flatbuf"

// FlagTransposeWeights means that a filter is [input, output channels], or that the second operand
// of a batch product is [N, K] (XNN_FLAG_TRANSPOSE_WEIGHTS, XNN_FLAG_TRANSPOSE_B).
const FlagTransposeWeights = 1

// FlagReshape2D means that the output is two-dimensional (XNN_FLAG_TENSORFLOW_RESHAPE_2D).
const FlagReshape2D = 4

// matmulNodes are the types of matrix products.
var matmulNodes = []NodeType{
	// filter [output channels, input channels], bias [output channels]
	{Tag: TagFullyConnected, Name: "FullyConnected", read: readFullyConnected, Check: checkFullyConnected,
		optional: 2, Packs: true, widens: func(in Datatype) bool { return in == FP32 },
		Shape: fullyConnectedShape, Bounded: true,
		Cost: func(g *Graph, n *Node, s []Shape) int64 {
			return Times(s[n.In[0]].Numel(), n.OutputChannels(g))
		}},
	// [..., M, K] x [..., K, N]
	{Tag: TagBatchMatrixMultiply, Name: "BatchMatrixMultiply", read: readBinary, Check: checkBatchMatrix, Shape: batchMatrixShape,
		Packs: true,
		Cost: func(g *Graph, n *Node, s []Shape) int64 {
			return Times(s[n.Out[0]].Numel(), s[n.In[0]].Last())
		}},
}

func readFullyConnected(r *Reader, t flatbuf.Table, n *Node) {
	n.In = []int{id(t, 0, "input1_id"), id(t, 1, "filter_id"), id(t, 2, "bias_id")}
	readOutput(t, 3, n)
}

// FullyConnectedTypes are the supported combinations of datatypes. 4-bit filters are unsigned, with
// zero point 8.
var FullyConnectedTypes = []Weighted{
	{FP32, FP32, FP32, FP32},
	{FP16, FP32, FP32, FP16},
	{FP16, FP16, FP16, FP16},
	{BF16, BF16, BF16, BF16},
	{FP32, BF16, FP32, FP32},
	{FP32, QCInt8, FP32, FP32},
	{FP32, QCInt4, FP32, FP32},
	{QInt8, QInt8, QInt32, QInt8},
	{QInt8, QCInt8, QCInt32, QInt8},
	{QUInt8, QUInt8, QInt32, QUInt8},
	{QDInt8, QCInt8, FP32, FP32},
	{QDInt8, QCInt8, FP32, FP16},
	{QDInt8, QCInt4, FP32, FP32},
	{QDInt8, QCInt4, FP32, FP16},
	{QDInt8, QBInt4, FP32, FP32},
	{QDInt8, QBInt4, FP32, FP16},
}

func checkFullyConnected(g *Graph, n *Node) error {
	if err := wantFlags(n, FlagTransposeWeights|FlagReshape2D); err != nil {
		return err
	}
	f := &g.Values[n.In[1]]
	if f.Shape.Rank != 2 {
		return n.fault("filter %s, want two dimensions", g.Describe(n.In[1]))
	}
	if !f.IsConst() && f.Datatype != FP32 {
		return n.fault("filter %s is not a constant", g.Describe(n.In[1]))
	}
	transposed := n.Flags&FlagTransposeWeights != 0
	if transposed && f.Datatype.Info().Bits == 4 {
		return n.unsupported("transposed filter %s", g.Describe(n.In[1]))
	}
	dim := 0
	if transposed {
		dim = 1
	}
	return checkFilter(g, n, dim, FullyConnectedTypes)
}

// InputChannels returns the number of input channels of a fully connected node.
func (n *Node) InputChannels(g *Graph) int {
	f := g.Values[n.In[1]].Shape
	if n.Flags&FlagTransposeWeights != 0 {
		return f.Dim[0]
	}
	return f.Dim[1]
}

// fullyConnectedShape replaces the innermost size, the input channels, with the output channels.
func fullyConnectedShape(g *Graph, n *Node, s []Shape) error {
	in := s[n.In[0]]
	if want := g.Values[n.In[1]].Shape; s[n.In[1]] != want {
		return n.fault("filter of sizes %v, want %v", s[n.In[1]], want)
	}
	channels := n.InputChannels(g)
	if n.Flags&FlagReshape2D != 0 {
		if in.Numel()%channels != 0 {
			return n.fault("input of sizes %v in rows of %d channels", in, channels)
		}
		s[n.Out[0]] = ShapeOf(in.Numel()/channels, n.OutputChannels(g))
		return nil
	}
	if in.Last() != channels {
		return n.fault("input of sizes %v, want %d channels", in, channels)
	}
	in.Dim[in.Rank-1] = n.OutputChannels(g)
	s[n.Out[0]] = in
	return nil
}

// BatchMatrixTypes are the supported datatypes of the operands and the output.
var BatchMatrixTypes = [][3]Datatype{
	{FP32, FP32, FP32}, {FP16, FP16, FP16}, {BF16, BF16, BF16}, {QDInt8, QCInt8, FP32},
}

func checkBatchMatrix(g *Graph, n *Node) error {
	if err := wantFlags(n, FlagTransposeWeights); err != nil {
		return err
	}
	a, b := &g.Values[n.In[0]], &g.Values[n.In[1]]
	got := [3]Datatype{a.Datatype, b.Datatype, g.Values[n.Out[0]].Datatype}
	for _, want := range BatchMatrixTypes {
		if got != want {
			continue
		}
		if b.Datatype != QCInt8 {
			return nil
		}
		if err := checkTokens(g, n); err != nil {
			return err
		}
		return checkBatchScales(g, n)
	}
	return n.unsupported("operands %v and %v, output %v", got[0], got[1], got[2])
}

// checkBatchScales checks that the second operand is constant with scales along its columns.
func checkBatchScales(g *Graph, n *Node) error {
	b := &g.Values[n.In[1]]
	dim := b.Shape.Rank - 1
	if n.Flags&FlagTransposeWeights != 0 {
		dim = b.Shape.Rank - 2
	}
	if !b.IsConst() {
		return n.fault("operand %s is not a constant", g.Describe(n.In[1]))
	}
	if b.Quant.ChannelDim != dim {
		return n.fault("operand %s with scales along dimension %d, want %d", g.Describe(n.In[1]), b.Quant.ChannelDim, dim)
	}
	return nil
}

// batchMatrixShape broadcasts the outer dimensions and multiplies the inner two.
func batchMatrixShape(g *Graph, n *Node, s []Shape) error {
	a, b := s[n.In[0]], s[n.In[1]]
	if a.Rank < 2 || b.Rank < 2 {
		return n.fault("operands of sizes %v and %v, want two dimensions at least", a, b)
	}
	m, k := a.FromEnd(1), a.FromEnd(0)
	kb, cols := b.FromEnd(1), b.FromEnd(0)
	if n.Flags&FlagTransposeWeights != 0 {
		kb, cols = cols, kb
	}
	if k != kb {
		return n.fault("operands of sizes %v and %v, want the same inner size", a, b)
	}
	outerA, outerB := a, b
	outerA.Rank, outerB.Rank = a.Rank-2, b.Rank-2
	out, ok := Broadcast(outerA, outerB)
	if !ok {
		return n.fault("operands of sizes %v and %v do not broadcast", a, b)
	}
	out.Rank += 2
	out.Dim[out.Rank-2], out.Dim[out.Rank-1] = m, cols
	s[n.Out[0]] = out
	return nil
}
