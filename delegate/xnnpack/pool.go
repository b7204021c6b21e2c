package xnnpack

import (
	"math"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// poolNodes reduce windows or rows of a value.
var poolNodes = []nodeType{
	// over [N, H, W, C]; padding is excluded from the mean
	{tag: tagAvgPooling2d, name: "AvgPooling2d", read: readAveragePool, params: newParams[window],
		check: checkPool(elementwiseTypes), shape: poolShape, cost: poolCost, bounded: true},
	{tag: tagMaxPooling2d, name: "MaxPooling2d", read: readPool, params: newParams[window],
		check: checkPool(elementwiseTypes), shape: poolShape, cost: poolCost, bounded: true},
	// two outputs: the maxima, and their indices in the window
	{tag: tagArgMaxPooling2d, name: "ArgMaxPooling2d", read: readArgmaxPool, params: newParams[window],
		check: checkArgmaxPool, shape: argmaxShape, cost: poolCost},
	// mean over H and W of [N, H, W, C], which become 1
	{tag: tagGlobalAvgPooling2d, name: "GlobalAvgPooling2d", read: readUnary, check: checkGlobalPool, bounded: true,
		shape: func(g *graph, n *node, s []shape) error {
			if err := wantRank(g, n, n.In[0], s, 4); err != nil {
				return err
			}
			in := s[n.In[0]]
			s[n.Out[0]] = shapeOf(in.dim[0], 1, 1, in.dim[3])
			return nil
		},
		cost: func(g *graph, n *node, s []shape) int64 { return int64(s[n.In[0]].numel()) }},
	// over the innermost dimension
	{tag: tagSoftmax, name: "Softmax", read: readUnary, shape: sameShape, inPlace: true, cost: transcendental,
		check: func(g *graph, n *node) error {
			if err := wantDatatype(g, n, n.In[0], fp32, fp16, bf16); err != nil {
				return err
			}
			return wantSame(g, n, n.In[0], n.Out[0])
		}},
}

func readPool(r *reader, t flatbuf.Table, n *node) {
	readPoolWindow(t, n, true)
	n.In = []int{id(t, 10, "input_id")}
	n.Out = []int{id(t, 11, "output_id")}
	n.Flags = t.Uint32(12, "flags", 0)
}

// readAveragePool is readPool without dilation, whose fields are 0 in files.
func readAveragePool(r *reader, t flatbuf.Table, n *node) {
	readPool(r, t, n)
	n.window().dilationH, n.window().dilationW = 1, 1
}

// readPoolWindow reads paddings and size and, if strides is set, strides and dilations. Otherwise
// windows do not overlap.
func readPoolWindow(t flatbuf.Table, n *node, strides bool) {
	w := n.window()
	w.top, w.right = extent(t, 0, "padding_top"), extent(t, 1, "padding_right")
	w.bottom, w.left = extent(t, 2, "padding_bottom"), extent(t, 3, "padding_left")
	w.kernelH, w.kernelW = extent(t, 4, "pooling_height"), extent(t, 5, "pooling_width")
	w.strideH, w.strideW, w.dilationH, w.dilationW = w.kernelH, w.kernelW, 1, 1
	if strides {
		w.strideH, w.strideW = extent(t, 6, "stride_height"), extent(t, 7, "stride_width")
		w.dilationH, w.dilationW = extent(t, 8, "dilation_height"), extent(t, 9, "dilation_width")
	}
}

func readArgmaxPool(r *reader, t flatbuf.Table, n *node) {
	readPoolWindow(t, n, false)
	n.In = []int{id(t, 6, "input_id")}
	n.Out = []int{id(t, 7, "output_value_id"), id(t, 8, "output_index_id")}
	n.Flags = t.Uint32(9, "flags", 0)
}

func checkPool(types []datatype) func(*graph, *node) error {
	return func(g *graph, n *node) error {
		if err := wantFlags(n, flagSamePadding|xnn.FlagKeepDims); err != nil {
			return err
		}
		if err := checkWindow(n); err != nil {
			return err
		}
		if err := checkPoolPadding(n); err != nil {
			return err
		}
		if err := wantDatatype(g, n, n.In[0], types...); err != nil {
			return err
		}
		return wantSame(g, n, n.In[0], n.Out[0])
	}
}

// checkPoolPadding checks that every window contains an element of the input.
func checkPoolPadding(n *node) error {
	w := n.window()
	h, v := w.dilationH*(w.kernelH-1)+1, w.dilationW*(w.kernelW-1)+1
	if w.top >= h || w.bottom >= h || w.left >= v || w.right >= v {
		return n.fault("padding %d+%d x %d+%d for windows of %dx%d", w.top, w.bottom, w.left, w.right, h, v)
	}
	return nil
}

func checkArgmaxPool(g *graph, n *node) error {
	if err := wantFlags(n, flagSamePadding|xnn.FlagKeepDims); err != nil {
		return err
	}
	if err := checkWindow(n); err != nil {
		return err
	}
	if err := checkPoolPadding(n); err != nil {
		return err
	}
	if n.Out[0] == n.Out[1] {
		return n.fault("both outputs are %s", g.describe(n.Out[0]))
	}
	if err := wantDatatype(g, n, n.In[0], fp32); err != nil {
		return err
	}
	if err := wantDatatype(g, n, n.Out[0], fp32); err != nil {
		return err
	}
	return wantDatatype(g, n, n.Out[1], plainInt32)
}

func checkGlobalPool(g *graph, n *node) error {
	if err := wantFlags(n, xnn.FlagKeepDims); err != nil {
		return err
	}
	if err := wantDatatype(g, n, n.In[0], elementwiseTypes...); err != nil {
		return err
	}
	return wantDatatype(g, n, n.Out[0], g.Values[n.In[0]].Datatype)
}

func poolShape(g *graph, n *node, s []shape) error {
	if err := wantRank(g, n, n.In[0], s, 4); err != nil {
		return err
	}
	out, err := windowShape(n, s[n.In[0]])
	s[n.Out[0]] = out
	return err
}

func argmaxShape(g *graph, n *node, s []shape) error {
	err := poolShape(g, n, s)
	s[n.Out[1]] = s[n.Out[0]]
	return err
}

func poolCost(_ *graph, n *node, s []shape) int64 {
	return times(s[n.Out[0]].numel(), n.window().kernelH, n.window().kernelW)
}

// lowest is the initial value of a search for a maximum.
var lowest = float32(math.Inf(-1))
