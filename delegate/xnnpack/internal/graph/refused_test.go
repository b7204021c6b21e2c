package graph_test

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// linearGraph returns one fully connected node: input [2,64], filter [8,64] of the given datatype.
func linearGraph(d graph.Datatype) *graph.Graph {
	m := graphtest.NewMaker(4)
	types := map[graph.Datatype]graph.Weighted{graph.FP32: {In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}, graph.QCInt8: {In: graph.QDInt8, Filter: graph.QCInt8, Bias: graph.FP32, Out: graph.FP32},
		graph.QBInt4: {In: graph.QDInt8, Filter: graph.QBInt4, Bias: graph.FP32, Out: graph.FP32}, graph.QInt8: {In: graph.QInt8, Filter: graph.QInt8, Bias: graph.QInt32, Out: graph.QInt8}}[d]
	x := m.Input(graph.FP32, 2, 64)
	switch types.In {
	case graph.QDInt8:
		x = m.Quantized(x, 1)
	case graph.QInt8:
		m.Graph.Values[x].Datatype = graph.QInt8
		m.Graph.Values[x].Quant.Scale = 0.1
	}
	f, b, y := m.Constant(types.Filter, 0, 8, 64), m.Constant(types.Bias, 0, 8), m.Value(types.Out, 2, 8)
	m.Node("FullyConnected", []int{x, f, b}, []int{y})
	return m.Done(y)
}

// binaryGraph returns the sum of two inputs.
func binaryGraph() *graph.Graph {
	m := graphtest.NewMaker(5)
	a, b, y := m.Input(graph.FP32, 2, 3), m.Input(graph.FP32, 2, 3), m.Value(graph.FP32, 2, 3)
	m.Node("Add", []int{a, b}, []int{y})
	return m.Done(y)
}

// moveGraph returns one node with an input of sizes [2,3,4].
func moveGraph(name string, set func(*graph.Node)) *graph.Graph {
	m := graphtest.NewMaker(6)
	x, y := m.Input(graph.FP32, 2, 3, 4), m.Value(graph.FP32, 2, 3, 4)
	m.Node(name, []int{x}, []int{y}, set)
	return m.Done(y)
}

func poolGraph(w graph.Window) *graph.Graph {
	m := graphtest.NewMaker(6)
	x, y := m.Input(graph.FP32, 1, 6, 6, 2), m.Value(graph.FP32, 1, 3, 3, 2)
	m.Node("MaxPooling2d", []int{x}, []int{y}, graphtest.WithWindow(w))
	return m.Done(y)
}

func with(g *graph.Graph, change func(*graph.Graph)) *graph.Graph {
	change(g)
	return g
}

// TestRefused changes one field of a valid payload. The error must have the location and the reason,
// before an engine has the graph.
func TestRefused(t *testing.T) {
	for _, test := range refusedGraphs() {
		t.Run(test.name, func(t *testing.T) { checkRefused(t, graphtest.Encode(test.graph), test.reason, test.text) })
	}
}

type refusedGraph struct {
	name   string
	graph  *graph.Graph
	reason error
	text   string // parts of the message, separated by " … "
}

func refusedGraphs() []refusedGraph {
	most := int(min(uint64(math.MaxUint32), math.MaxInt/4))
	nan, infinity := float32(math.NaN()), float32(math.Inf(1))
	return []refusedGraph{
		{"undefined input", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].In[0] = 1 << 30 }), delegate.ErrPayload, "node 0 (Conv2d) … input 0 … no value has id"},
		{"undefined filter", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].In[1] = 455 }), delegate.ErrPayload, "node 0 (Conv2d) … input 1 … 555"},
		{"missing input", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].In[0] = graph.None }), delegate.ErrPayload, "node 0 (Conv2d) … input 0"},
		{"undefined output", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Out[0] = 77 }), delegate.ErrPayload, "node 0 (Conv2d) … output 0"},
		{"kernel 0", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Window().KernelH = 0 }), delegate.ErrPayload, "kernel 0x3"},
		{"stride 0", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Window().StrideW = 0 }), delegate.ErrPayload, "stride 1x0"},
		{"largest dilation", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Window().DilationH = most }), delegate.ErrPayload, "dilation"},
		{"largest padding", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Window().Left = most }), delegate.ErrPayload, "padding"},
		{"groups 0", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Window().Groups = 0 }), delegate.ErrPayload, "0 groups"},
		{"largest group input channels", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Window().GroupIn = most }), delegate.ErrPayload, "groups"},
		{"output channels differ from the filter", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Window().GroupOut = 1_000_000 }), delegate.ErrPayload, "want sizes [1000000 3 3 3]"},
		{"input channels differ from the filter", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Values[0].Shape = graph.ShapeOf(1, 5, 5, 4) }), delegate.ErrPayload, "want 3 channels"},
		{"input of rank 3", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Values[0].Shape = graph.ShapeOf(5, 5, 3) }), delegate.ErrPayload, "3 dimensions, want 4"},
		{"kernel larger than the input", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Values[0].Shape = graph.ShapeOf(1, 2, 2, 3) }), delegate.ErrPayload, "smaller than the 3x3 kernel"},
		{"bias of another size", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Values[2].Shape = graph.ShapeOf(3) }), delegate.ErrPayload, "want 4 elements"},
		{"bias of another type", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Values[2].Datatype = graph.Int32 }), delegate.ErrUnsupported, "bias int32"},
		{"computed filter", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].In[1] = 0 }), delegate.ErrPayload, "filter"},
		{"unknown flags", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Flags = 0x10000 }), delegate.ErrPayload, "flags 0x10000"},
		{"same and explicit padding", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Flags = 4; g.Nodes[0].Window().Top = 1 }), delegate.ErrPayload, "same padding"},
		{"bounds reversed", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Min, g.Nodes[0].Max = 1, -1 }), delegate.ErrPayload, "bounds 1 to -1"},
		{"NaN bound", with(graphtest.ConvolutionGraph(), func(g *graph.Graph) { g.Nodes[0].Min = nan; g.Nodes[0].Max = 0 }), delegate.ErrPayload, "bounds NaN"},

		{"size 0", with(binaryGraph(), func(g *graph.Graph) { g.Values[0].Shape = graph.ShapeOf(0, 3) }), delegate.ErrPayload, "value 100 … sizes [0 3]"},
		{"sizes whose product overflows", with(binaryGraph(), func(g *graph.Graph) { g.Values[0].Shape = graph.ShapeOf(most, most, most) }), delegate.ErrPayload, "value 100 … at most"},
		{"datatype 13", with(binaryGraph(), func(g *graph.Graph) { g.Values[0].Datatype = 13 }), delegate.ErrUnsupported, "datatype 13"},
		{"operands of two types", with(binaryGraph(), func(g *graph.Graph) { g.Values[1].Datatype = graph.FP16 }), delegate.ErrPayload, "node 0 (Add) … fp16"},
		{"operands that do not broadcast", with(binaryGraph(), func(g *graph.Graph) { g.Values[1].Shape = graph.ShapeOf(2, 4) }), delegate.ErrPayload, "do not broadcast"},
		{"value computed twice", with(binaryGraph(), func(g *graph.Graph) { g.Nodes = append(g.Nodes, g.Nodes[0]) }), delegate.ErrPayload, "node 1 (Add) … another node's"},
		{"computed input", with(binaryGraph(), func(g *graph.Graph) { g.Nodes[0].Out[0] = 0 }), delegate.ErrPayload, "value 100"},
		{"value read before it is computed", with(binaryGraph(), func(g *graph.Graph) { g.Nodes[0].In[0] = 2 }), delegate.ErrPayload, "read before"},
		{"output without a node", with(binaryGraph(), func(g *graph.Graph) { g.Nodes = nil }), delegate.ErrPayload, "output that no node computes"},
		{"two values with one external id", with(binaryGraph(), func(g *graph.Graph) { g.Values[1].Arg = 0 }), delegate.ErrPayload, "external id 0 is value 100's too"},
		{"external id above the count", with(binaryGraph(), func(g *graph.Graph) { g.Values[2].Arg = 3 }), delegate.ErrPayload, "external id 3 of 3"},
		{"input after an output", with(binaryGraph(), func(g *graph.Graph) { g.Values[1].Arg, g.Values[2].Arg = 2, 1 }), delegate.ErrPayload, "behind outputs"},
		{"no external values", with(binaryGraph(), func(g *graph.Graph) { g.Args = nil }), delegate.ErrPayload, "external id 0 of 0"},

		{"scale 0", with(linearGraph(graph.QInt8), func(g *graph.Graph) { g.Values[0].Quant.Scale = 0 }), delegate.ErrPayload, "value 100 … scale 0"},
		{"scale infinite", with(linearGraph(graph.QInt8), func(g *graph.Graph) { g.Values[0].Quant.Scale = infinity }), delegate.ErrPayload, "scale +Inf"},
		{"scale subnormal", with(linearGraph(graph.QInt8), func(g *graph.Graph) { g.Values[0].Quant.Scale = 1e-40 }), delegate.ErrPayload, "scale 1e-40"},
		{"zero point 200", with(linearGraph(graph.QInt8), func(g *graph.Graph) { g.Values[0].Quant.ZeroPoint = 200 }), delegate.ErrPayload, "zero point 200"},
		{"filter with a zero point", with(linearGraph(graph.QInt8), func(g *graph.Graph) { g.Values[1].Quant.ZeroPoint = 3 }), delegate.ErrPayload, "zero point 3, want 0"},
		{"too few channel scales", with(linearGraph(graph.QCInt8), func(g *graph.Graph) { g.Values[2].Quant.Scales = g.Values[2].Quant.Scales[:5] }), delegate.ErrPayload, "of 20 bytes, want 32"},
		{"channel scale negative", with(linearGraph(graph.QCInt8), func(g *graph.Graph) { g.Values[2].Quant.Scales[6] = -1 }), delegate.ErrPayload, "scale -1 of channel 6"},
		{"channel dimension 2", with(linearGraph(graph.QCInt8), func(g *graph.Graph) { g.Values[2].Quant.ChannelDim = 2 }), delegate.ErrPayload, "channel dimension 2 of 2"},
		{"scales along the input channels", with(linearGraph(graph.QCInt8), func(g *graph.Graph) {
			g.Values[2].Quant.ChannelDim = 1
			g.Values[2].Quant.Scales = make([]float32, 64)
			for i := range g.Values[2].Quant.Scales {
				g.Values[2].Quant.Scales[i] = 1
			}
		}), delegate.ErrPayload, "scales along dimension 1, want 0"},
		{"group size 48", with(linearGraph(graph.QBInt4), func(g *graph.Graph) { g.Values[2].Quant.GroupSize = 48 }), delegate.ErrPayload, "groups of 48 of 64"},
		{"too few group scales", with(linearGraph(graph.QBInt4), func(g *graph.Graph) { g.Values[2].Quant.Blocks = g.Values[2].Quant.Blocks[:9] }), delegate.ErrPayload, "constant"},
		{"rows that share a scale", with(linearGraph(graph.QCInt8), func(g *graph.Graph) { g.Values[1].Quant.Nonbatch = 2 }), delegate.ErrPayload, "2 dimensions share a scale"},
		{"no dimension shares a scale", with(linearGraph(graph.QCInt8), func(g *graph.Graph) { g.Values[1].Quant.Nonbatch = 0 }), delegate.ErrPayload, "0 dimensions share a scale"},
		{"input with fewer dimensions than share a scale", with(linearGraph(graph.QCInt8), func(g *graph.Graph) {
			g.Values[1].Shape, g.Values[1].Quant.Nonbatch = graph.ShapeOf(1, 1, 2, 64), 3
			g.Nodes[1].Type, g.Nodes[1].In = graph.NodeTypes[graph.TagConv2d], []int{1, 2, graph.None}
			g.Values[2].Shape, g.Nodes[1].Params = graph.ShapeOf(8, 1, 1, 64), &graph.Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1, GroupIn: 64, GroupOut: 8}
		}), delegate.ErrPayload, "3 dimensions share a scale"},
		{"dynamically quantized argument", with(linearGraph(graph.QCInt8), func(g *graph.Graph) { g.Values[1].Input, g.Values[1].Arg = true, 1 }), delegate.ErrUnsupported, "dynamically quantized argument"},
		{"input of other channels", with(linearGraph(graph.FP32), func(g *graph.Graph) { g.Values[0].Shape = graph.ShapeOf(2, 32) }), delegate.ErrPayload, "want 64 channels"},
		{"constant too short", with(linearGraph(graph.FP32), func(g *graph.Graph) { g.Values[1].Data = g.Values[1].Data[:100] }), delegate.ErrPayload, "100 bytes, want 2048"},
		{"constant that is an argument", with(linearGraph(graph.FP32), func(g *graph.Graph) { g.Values[1].Input, g.Values[1].Arg = true, 2 }), delegate.ErrPayload, "argument of the call too"},

		{"permutation with a repeat", moveGraph("StaticTranspose", func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = []int{0, 1, 1} }), delegate.ErrPayload, "permutation [0 1 1]"},
		{"permutation beyond the rank", moveGraph("StaticTranspose", func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = []int{0, 1, 7} }), delegate.ErrPayload, "permutation [0 1 7]"},
		{"permutation of another rank", moveGraph("StaticTranspose", func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = []int{1, 0} }), delegate.ErrPayload, "3 dimensions, want 2"},
		{"reshape to more elements", moveGraph("StaticReshape", func(n *graph.Node) { graph.Params[graph.ReshapeParams](n).Sizes = []int{5, 5} }), delegate.ErrPayload, "sizes [5 5]"},
		{"reshape with two unknown sizes", moveGraph("StaticReshape", func(n *graph.Node) { graph.Params[graph.ReshapeParams](n).Sizes = []int{0, 0} }), delegate.ErrPayload, "at most one to infer"},
		{"reshape that does not divide", moveGraph("StaticReshape", func(n *graph.Node) { graph.Params[graph.ReshapeParams](n).Sizes = []int{0, 7} }), delegate.ErrPayload, "sizes"},
		{"reshape that overflows", moveGraph("StaticReshape", func(n *graph.Node) { graph.Params[graph.ReshapeParams](n).Sizes = []int{most, most, 4} }), delegate.ErrPayload, "at most"},
		{"slice beyond the end", moveGraph("StaticSlice", func(n *graph.Node) {
			*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: []int{0, 2, 0}, Sizes: []int{2, 2, 4}}
		}), delegate.ErrPayload, "dimension 1: 2 elements at 2 of 3"},
		{"largest slice offset", moveGraph("StaticSlice", func(n *graph.Node) {
			*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: []int{most, 0, 0}, Sizes: []int{1, 3, 4}}
		}), delegate.ErrPayload, "dimension 0"},
		{"slice without sizes", moveGraph("StaticSlice", func(n *graph.Node) { graph.Params[graph.SliceParams](n).Offsets = []int{0, 0, 0} }), delegate.ErrPayload, "3 offsets and 0 sizes"},
		{"padding larger than memory", moveGraph("StaticConstantPad", func(n *graph.Node) {
			p := graph.Params[graph.PadParams](n)
			p.Before, p.After = []int{most, 0, 0}, []int{0, 0, 0}
		}), delegate.ErrUnsupported, "output of sizes"},
		{"resize of three dimensions", moveGraph("StaticResizeBilinear2D", func(n *graph.Node) { *graph.Params[graph.ResizeParams](n) = graph.ResizeParams{Height: 4, Width: 4} }), delegate.ErrPayload, "3 dimensions, want 4"},
		{"resize to 0", moveGraph("StaticResizeBilinear2D", func(n *graph.Node) { *graph.Params[graph.ResizeParams](n) = graph.ResizeParams{Height: 0, Width: 4} }), delegate.ErrPayload, "new sizes [0 4]"},
		{"axis 3", moveGraph("Concatenate2", func(n *graph.Node) { n.In = []int{0, 0}; graph.Params[graph.ConcatenateParams](n).Axis = 3 }), delegate.ErrPayload, "axis 3 of 3"},
		{"axis −4", moveGraph("Concatenate2", func(n *graph.Node) { n.In = []int{0, 0}; graph.Params[graph.ConcatenateParams](n).Axis = -4 }), delegate.ErrPayload, "axis -4 of 3"},

		{"pool of 0", poolGraph(graph.Window{KernelH: 0, KernelW: 2, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}), delegate.ErrPayload, "kernel 0x2"},
		{"pool padding of a whole window", poolGraph(graph.Window{Top: 2, KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2, DilationH: 1, DilationW: 1}), delegate.ErrPayload, "padding 2+0"},
		{"largest pool kernel", poolGraph(graph.Window{KernelH: most, KernelW: most, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}), delegate.ErrPayload, "kernel"},
	}
}

// checkRefused reads and repairs a payload, and checks the error.
func checkRefused(t *testing.T, data []byte, reason error, text string) {
	t.Helper()
	g, err := graphtest.ReadGraph(data, nil)
	if err == nil {
		_, err = g.Repair()
	}
	var placed *delegate.Error
	if !errors.Is(err, reason) || !errors.As(err, &placed) {
		t.Fatalf("got %v, want %v", err, reason)
	}
	for _, part := range strings.Split(text, " … ") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got error %q, want %q in it", err, part)
		}
	}
}

// TestRefusedBytes checks the errors of payloads with an invalid header or FlatBuffer.
func TestRefusedBytes(t *testing.T) {
	le := binary.LittleEndian
	tests := []struct {
		name string
		edit func(b []byte) []byte
		text string
	}{
		{"empty", func(b []byte) []byte { return nil }, "identifier"},
		{"magic", func(b []byte) []byte { copy(b[4:], "XXXX"); return b }, "identifier"},
		{"header length", func(b []byte) []byte { le.PutUint16(b[8:], 8); return b }, "length 8, want at least 30"},
		{"flatbuffer offset", func(b []byte) []byte { le.PutUint32(b[10:], 1<<31); return b }, "header: flatbuffer"},
		{"flatbuffer inside the header", func(b []byte) []byte { le.PutUint32(b[10:], 4); return b }, "header: flatbuffer"},
		{"flatbuffer size", func(b []byte) []byte { le.PutUint32(b[14:], 1<<31); return b }, "header: flatbuffer"},
		{"flatbuffer size 0", func(b []byte) []byte { le.PutUint32(b[14:], 0); return b }, "identifier"},
		{"constant data offset", func(b []byte) []byte { le.PutUint32(b[18:], 1<<31); return b }, "header: constant data"},
		{"constant data size", func(b []byte) []byte { le.PutUint64(b[22:], 1<<63); return b }, "header: constant data"},
		{"identifier", func(b []byte) []byte { copy(b[36:], "YN01"); return b }, `"YN01"`},
		{"root offset", func(b []byte) []byte { le.PutUint32(b[32:], 1<<30); return b }, "root"},
		{"truncated", func(b []byte) []byte { return b[:len(b)/2] }, "header"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkRefused(t, test.edit(graphtest.Encode(graphtest.ConvolutionGraph())), delegate.ErrPayload, test.text)
		})
	}
}

// TestNewerVersion checks the error of a payload with a newer schema.
func TestNewerVersion(t *testing.T) {
	data := graphtest.Encode(graphtest.ConvolutionGraph())
	copy(data[36:], "XN02")
	checkRefused(t, data, delegate.ErrUnsupported, `"XN02", the newest known is "XN01": written by a newer exporter`)
}

// TestBareFlatbuffer reads a payload of the oldest form: no header and identifier "XN00".
func TestBareFlatbuffer(t *testing.T) {
	g := binaryGraph()
	g.Version = "XN00"
	data := graphtest.Encode(g)
	le := binary.LittleEndian
	bare := data[le.Uint32(data[10:]):][:le.Uint32(data[14:])]
	read, err := graphtest.ReadGraph(bare, nil)
	if err != nil {
		t.Fatal(err)
	}
	if read.Version != "XN00" || len(read.Nodes) != 1 || read.Inputs != 2 {
		t.Errorf("got %+v, want version XN00, 1 node, 2 inputs", read)
	}
}

// FuzzPayload checks that a payload either fails with a *delegate.Error or runs on the reference,
// without a panic.
func FuzzPayload(f *testing.F) {
	for _, s := range graphtest.Samples(1) {
		f.Add(graphtest.Encode(s.Graph))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := graphtest.ReadGraph(data, nil)
		var placed *delegate.Error
		if err == nil {
			shapes, fault := g.Repair()
			if err = fault; err == nil && g.Cost(shapes) < 1e7 {
				runZeros(t, g, shapes)
			}
		}
		if err != nil && !errors.As(err, &placed) {
			t.Fatalf("got error of type %T: %v, want *delegate.Error", err, err)
		}
	})
}
