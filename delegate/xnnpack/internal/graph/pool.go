package graph

import (
	"cmp"
	"math"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// poolNodes reduce windows or rows of a value.
var poolNodes = []NodeType{
	// over [N, H, W, C]; padding is excluded from the mean
	{Tag: TagAvgPooling2d, Name: "AvgPooling2d", read: readAveragePool, Params: newParams[Window],
		Check: checkPool(ElementwiseTypes), Shape: poolShape, Cost: poolCost, Bounded: true},
	{Tag: TagMaxPooling2d, Name: "MaxPooling2d", read: readPool, Params: newParams[Window],
		Check: checkPool(ElementwiseTypes), Shape: poolShape, Cost: poolCost, Bounded: true},
	// two outputs: the maxima, and their indices in the window
	{Tag: TagArgMaxPooling2d, Name: "ArgMaxPooling2d", read: readArgmaxPool, Params: newParams[Window],
		Check: checkArgmaxPool, Shape: argmaxShape, Cost: poolCost},
	// mean over H and W of [N, H, W, C], which become 1
	{Tag: TagGlobalAvgPooling2d, Name: "GlobalAvgPooling2d", read: readUnary, Check: checkGlobalPool, Bounded: true,
		Shape: func(g *Graph, n *Node, s []Shape) error {
			if err := wantRank(g, n, n.In[0], s, 4); err != nil {
				return err
			}
			in := s[n.In[0]]
			s[n.Out[0]] = ShapeOf(in.Dim[0], 1, 1, in.Dim[3])
			return nil
		},
		Cost: func(g *Graph, n *Node, s []Shape) int64 { return int64(s[n.In[0]].Numel()) }},
	// over the innermost dimension
	{Tag: TagSoftmax, Name: "Softmax", read: readUnary, Shape: sameShape, InPlace: true, Cost: transcendental,
		Check: func(g *Graph, n *Node) error {
			if err := wantDatatype(g, n, n.In[0], FP32, FP16, BF16); err != nil {
				return err
			}
			return WantSame(g, n, n.In[0], n.Out[0])
		}},
}

func readPool(r *Reader, t flatbuf.Table, n *Node) {
	readPoolWindow(t, n, true)
	readEnds(t, 10, n)
}

// readAveragePool is readPool without dilation, whose fields are 0 in files.
func readAveragePool(r *Reader, t flatbuf.Table, n *Node) {
	readPool(r, t, n)
	n.Window().DilationH, n.Window().DilationW = 1, 1
}

// readPoolWindow reads paddings and size and, if strides is set, strides and dilations. Otherwise
// windows do not overlap.
func readPoolWindow(t flatbuf.Table, n *Node, strides bool) {
	w := n.Window()
	w.Top, w.Right = extent(t, 0, "padding_top"), extent(t, 1, "padding_right")
	w.Bottom, w.Left = extent(t, 2, "padding_bottom"), extent(t, 3, "padding_left")
	w.KernelH, w.KernelW = extent(t, 4, "pooling_height"), extent(t, 5, "pooling_width")
	w.StrideH, w.StrideW, w.DilationH, w.DilationW = w.KernelH, w.KernelW, 1, 1
	if strides {
		w.StrideH, w.StrideW = extent(t, 6, "stride_height"), extent(t, 7, "stride_width")
		w.DilationH, w.DilationW = extent(t, 8, "dilation_height"), extent(t, 9, "dilation_width")
	}
}

func readArgmaxPool(r *Reader, t flatbuf.Table, n *Node) {
	readPoolWindow(t, n, false)
	n.In = []int{id(t, 6, "input_id")}
	n.Out = []int{id(t, 7, "output_value_id"), id(t, 8, "output_index_id")}
	n.Flags = t.Uint32(9, "flags", 0)
}

func checkPool(types []Datatype) func(*Graph, *Node) error {
	return func(g *Graph, n *Node) error {
		return cmp.Or(checkPoolWindow(n), wantDatatype(g, n, n.In[0], types...), WantSame(g, n, n.In[0], n.Out[0]))
	}
}

// checkPoolWindow checks the flags, the window and its padding.
func checkPoolWindow(n *Node) error {
	return cmp.Or(wantFlags(n, FlagSamePadding|xnn.FlagKeepDims), checkWindow(n), checkPoolPadding(n))
}

// checkPoolPadding checks that every window contains an element of the input.
func checkPoolPadding(n *Node) error {
	w := n.Window()
	h, v := w.DilationH*(w.KernelH-1)+1, w.DilationW*(w.KernelW-1)+1
	if w.Top >= h || w.Bottom >= h || w.Left >= v || w.Right >= v {
		return n.fault("padding %d+%d x %d+%d for windows of %dx%d", w.Top, w.Bottom, w.Left, w.Right, h, v)
	}
	return nil
}

func checkArgmaxPool(g *Graph, n *Node) error {
	if err := checkPoolWindow(n); err != nil {
		return err
	}
	if n.Out[0] == n.Out[1] {
		return n.fault("both outputs are %s", g.Describe(n.Out[0]))
	}
	return cmp.Or(wantDatatype(g, n, n.In[0], FP32), wantDatatype(g, n, n.Out[0], FP32), wantDatatype(g, n, n.Out[1], Int32))
}

func checkGlobalPool(g *Graph, n *Node) error {
	return cmp.Or(wantFlags(n, xnn.FlagKeepDims), checkUnary(g, n))
}

func poolShape(g *Graph, n *Node, s []Shape) error {
	if err := wantRank(g, n, n.In[0], s, 4); err != nil {
		return err
	}
	out, err := WindowShape(n, s[n.In[0]])
	s[n.Out[0]] = out
	return err
}

func argmaxShape(g *Graph, n *Node, s []Shape) error {
	err := poolShape(g, n, s)
	s[n.Out[1]] = s[n.Out[0]]
	return err
}

func poolCost(_ *Graph, n *Node, s []Shape) int64 {
	return Times(s[n.Out[0]].Numel(), n.Window().KernelH, n.Window().KernelW)
}

// Lowest is the initial value of a search for a maximum.
var Lowest = float32(math.Inf(-1))
