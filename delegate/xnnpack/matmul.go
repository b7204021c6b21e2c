package xnnpack

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// flagTransposeWeights means that a filter is [input, output channels], or that the second operand
// of a batch product is [N, K] (XNN_FLAG_TRANSPOSE_WEIGHTS, XNN_FLAG_TRANSPOSE_B).
const flagTransposeWeights = 1

// flagReshape2D means that the output is two-dimensional (XNN_FLAG_TENSORFLOW_RESHAPE_2D).
const flagReshape2D = 4

// matmulNodes are the types of matrix products.
var matmulNodes = []nodeType{
	// filter [output channels, input channels], bias [output channels]
	{tag: tagFullyConnected, name: "FullyConnected", read: readFullyConnected, check: checkFullyConnected,
		optional: 2, packs: true, widens: func(in datatype) bool { return in == fp32 },
		shape: fullyConnectedShape, bounded: true,
		cost: func(g *graph, n *node, s []shape) int64 {
			return times(s[n.In[0]].numel(), n.outputChannels(g))
		}},
	// [..., M, K] x [..., K, N]
	{tag: tagBatchMatrixMultiply, name: "BatchMatrixMultiply", read: readBinary, check: checkBatchMatrix, shape: batchMatrixShape,
		packs: true,
		cost: func(g *graph, n *node, s []shape) int64 {
			return times(s[n.Out[0]].numel(), s[n.In[0]].last())
		}},
}

func readFullyConnected(r *reader, t flatbuf.Table, n *node) {
	n.In = []int{id(t, 0, "input1_id"), id(t, 1, "filter_id"), id(t, 2, "bias_id")}
	n.Out = []int{id(t, 3, "output_id")}
	n.Flags = t.Uint32(4, "flags", 0)
}

// fullyConnectedTypes are the supported combinations of datatypes. 4-bit filters are unsigned, with
// zero point 8.
var fullyConnectedTypes = []weighted{
	{fp32, fp32, fp32, fp32},
	{fp16, fp32, fp32, fp16},
	{fp16, fp16, fp16, fp16},
	{bf16, bf16, bf16, bf16},
	{fp32, bf16, fp32, fp32},
	{fp32, qcint8, fp32, fp32},
	{fp32, qcint4, fp32, fp32},
	{qint8, qint8, qint32, qint8},
	{qint8, qcint8, qcint32, qint8},
	{quint8, quint8, qint32, quint8},
	{qdint8, qcint8, fp32, fp32},
	{qdint8, qcint8, fp32, fp16},
	{qdint8, qcint4, fp32, fp32},
	{qdint8, qcint4, fp32, fp16},
	{qdint8, qbint4, fp32, fp32},
	{qdint8, qbint4, fp32, fp16},
}

func checkFullyConnected(g *graph, n *node) error {
	if err := wantFlags(n, flagTransposeWeights|flagReshape2D); err != nil {
		return err
	}
	f := &g.Values[n.In[1]]
	if f.Shape.rank != 2 {
		return n.fault("filter %s, want two dimensions", g.describe(n.In[1]))
	}
	if !f.isConst() && f.Datatype != fp32 {
		return n.fault("filter %s is not a constant", g.describe(n.In[1]))
	}
	transposed := n.Flags&flagTransposeWeights != 0
	if transposed && f.Datatype.info().bits == 4 {
		return n.beyond("transposed filter %s", g.describe(n.In[1]))
	}
	dim := 0
	if transposed {
		dim = 1
	}
	return checkFilter(g, n, dim, fullyConnectedTypes)
}

func (n *node) inputChannels(g *graph) int {
	f := g.Values[n.In[1]].Shape
	if n.Flags&flagTransposeWeights != 0 {
		return f.dim[0]
	}
	return f.dim[1]
}

// fullyConnectedShape replaces the innermost size, the input channels, with the output channels.
func fullyConnectedShape(g *graph, n *node, s []shape) error {
	in := s[n.In[0]]
	if want := g.Values[n.In[1]].Shape; s[n.In[1]] != want {
		return n.fault("filter of sizes %v, want %v", s[n.In[1]], want)
	}
	channels := n.inputChannels(g)
	if n.Flags&flagReshape2D != 0 {
		if in.numel()%channels != 0 {
			return n.fault("input of sizes %v in rows of %d channels", in, channels)
		}
		s[n.Out[0]] = shapeOf(in.numel()/channels, n.outputChannels(g))
		return nil
	}
	if in.last() != channels {
		return n.fault("input of sizes %v, want %d channels", in, channels)
	}
	in.dim[in.rank-1] = n.outputChannels(g)
	s[n.Out[0]] = in
	return nil
}

// batchMatrixTypes are the supported datatypes of the operands and the output.
var batchMatrixTypes = [][3]datatype{
	{fp32, fp32, fp32}, {fp16, fp16, fp16}, {bf16, bf16, bf16}, {qdint8, qcint8, fp32},
}

func checkBatchMatrix(g *graph, n *node) error {
	if err := wantFlags(n, flagTransposeWeights); err != nil {
		return err
	}
	a, b := &g.Values[n.In[0]], &g.Values[n.In[1]]
	got := [3]datatype{a.Datatype, b.Datatype, g.Values[n.Out[0]].Datatype}
	for _, want := range batchMatrixTypes {
		if got != want {
			continue
		}
		if b.Datatype != qcint8 {
			return nil
		}
		if err := checkTokens(g, n); err != nil {
			return err
		}
		return checkBatchScales(g, n)
	}
	return n.beyond("operands %v and %v, output %v", got[0], got[1], got[2])
}

// checkBatchScales checks that the second operand is constant with scales along its columns.
func checkBatchScales(g *graph, n *node) error {
	b := &g.Values[n.In[1]]
	dim := b.Shape.rank - 1
	if n.Flags&flagTransposeWeights != 0 {
		dim = b.Shape.rank - 2
	}
	if !b.isConst() {
		return n.fault("operand %s is not a constant", g.describe(n.In[1]))
	}
	if b.Quant.ChannelDim != dim {
		return n.fault("operand %s with scales along dimension %d, want %d", g.describe(n.In[1]), b.Quant.ChannelDim, dim)
	}
	return nil
}

// batchMatrixShape broadcasts the outer dimensions and multiplies the inner two.
func batchMatrixShape(g *graph, n *node, s []shape) error {
	a, b := s[n.In[0]], s[n.In[1]]
	if a.rank < 2 || b.rank < 2 {
		return n.fault("operands of sizes %v and %v, want two dimensions at least", a, b)
	}
	m, k := a.fromEnd(1), a.fromEnd(0)
	kb, cols := b.fromEnd(1), b.fromEnd(0)
	if n.Flags&flagTransposeWeights != 0 {
		kb, cols = cols, kb
	}
	if k != kb {
		return n.fault("operands of sizes %v and %v, want the same inner size", a, b)
	}
	outerA, outerB := a, b
	outerA.rank, outerB.rank = a.rank-2, b.rank-2
	out, ok := broadcast(outerA, outerB)
	if !ok {
		return n.fault("operands of sizes %v and %v do not broadcast", a, b)
	}
	out.rank += 2
	out.dim[out.rank-2], out.dim[out.rank-1] = m, cols
	s[n.Out[0]] = out
	return nil
}
