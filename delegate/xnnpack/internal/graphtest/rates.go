package graphtest

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// Datatypes of products.
var (
	floats       = graph.Weighted{In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}
	halves       = graph.Weighted{In: graph.FP16, Filter: graph.FP16, Bias: graph.FP16, Out: graph.FP16}
	bytes        = graph.Weighted{In: graph.QInt8, Filter: graph.QCInt8, Bias: graph.QCInt32, Out: graph.QInt8}
	groups4      = graph.Weighted{In: graph.QDInt8, Filter: graph.QBInt4, Bias: graph.FP32, Out: graph.FP32}
	dynamicBytes = graph.Weighted{In: graph.QDInt8, Filter: graph.QCInt8, Bias: graph.FP32, Out: graph.FP32}
)

// RateClasses are the names of the classes, and of more graphs for some of these.
var RateClasses = []string{
	"graph", "weights", "product32", "window32", "groups32", "product16", "narrow32", "product8",
	"dynamic8", "dynamic4", "batch", "depthwise32", "depthwise8", "transposed32", "transposed8", "pool32",
	"pool8", "mean", "softmax", "resize", "copy32", "copy8", "binary32", "binary8",
	"function32", "logarithm", "table8", "quantize", "quantizeRows", "convert", "transpose32", "transpose8",
	"large", "deep",
}

// RateToken and RateLargeToken are the names of graphs of a product of one row with 4-bit weights, a part of what a language model
// computes for a token, and RatePrompt is that of a part of a prompt. The library computes the first on one thread, the others on
// several.
const (
	RateToken      = "token4"
	RateLargeToken = "largetoken4"
	RatePrompt     = "prompt4"
)

// RateGraph returns a random graph of about one node of a class of the cost model, of sizes that models have.
func RateGraph(class string, seed uint64) *graph.Graph {
	m := NewMaker(seed<<8 | uint64(slices.Index(append(slices.Clip(RateClasses), RateToken, RateLargeToken, RatePrompt), class)))
	m.Lo, m.Hi = 0.1, 2
	return rateGraphs[class](&sizer{m, m.R})
}

// sizer chooses the sizes of graphs.
type sizer struct {
	*Maker
	*rand.Rand
}

// between returns a number from lo to hi, small ones as often as large ones. Half of the numbers above 8 are multiples of 8.
func (s *sizer) between(lo, hi int) int {
	n := int(math.Exp(math.Log(float64(lo)) + s.Float64()*math.Log(float64(hi+1)/float64(lo))))
	if n = min(max(n, lo), hi); n > 8 && s.IntN(4) > 0 {
		n = max(n/8*8, lo)
	}
	return n
}

func (s *sizer) one(list ...int) int { return list[s.IntN(len(list))] }

// image returns the sizes of an image.
func (s *sizer) image() []int {
	size := s.between(4, 64)
	return []int{1, size, size, s.between(3, max(4, min(512, 1<<18/(size*size))))}
}

var rateGraphs = map[string]func(s *sizer) *graph.Graph{
	"graph": func(s *sizer) *graph.Graph {
		x := s.Input(graph.FP32, 1)
		for range s.between(1, 8) {
			y := s.Value(graph.FP32, 1)
			s.Node("Abs", []int{x}, []int{y})
			x = y
		}
		return s.Done(x)
	},
	"weights": func(s *sizer) *graph.Graph {
		n := s.between(256, 1024)
		x := s.Input(graph.FP32, s.between(1, 16), n)
		for range s.between(4, 8) {
			y := s.Value(graph.FP32, s.Graph.Values[x].Shape.Dims()...)
			s.Node("FullyConnected", []int{x, s.Constant(graph.FP32, 0, n, n), s.Constant(graph.FP32, 0, n)}, []int{y})
			x = y
		}
		return s.Done(x)
	},
	"product32": func(s *sizer) *graph.Graph {
		return s.pixels(floats)
	},
	"window32": func(s *sizer) *graph.Graph {
		return s.windows(floats, s.one(2, 3, 3, 3, 3, 5, 7))
	},
	"groups32": func(s *sizer) *graph.Graph {
		groups, in, to := s.one(2, 4, 8, 16, 32), s.between(1, 16), s.between(1, 16)
		if s.IntN(4) == 0 { // too many taps for depthwise kernels of the library
			groups, in, to = s.between(8, 128), 1, 1
			return s.convolution("DepthwiseConv2d", floats, s.between(4, 28), groups, groups, 7, 1, groups)
		}
		return s.convolution("Conv2d", floats, s.between(4, 56), groups*in, groups*to, s.one(1, 3, 3, 3), s.one(1, 1, 2), groups)
	},
	"product16": func(s *sizer) *graph.Graph {
		return s.product(halves)
	},
	"narrow32": func(s *sizer) *graph.Graph {
		if s.IntN(2) == 0 {
			return s.convolution("Conv2d", floats, s.between(4, 32), s.between(3, 64), s.between(1, 15), s.one(1, 3, 3, 5), s.one(1, 1, 2), 1)
		}
		return s.connectedOf(floats, s.between(1, 256), s.between(16, 512), s.between(1, 31))
	},
	"product8": func(s *sizer) *graph.Graph {
		return s.product(bytes)
	},
	"dynamic8": func(s *sizer) *graph.Graph {
		return s.product(dynamicBytes)
	},
	"dynamic4": func(s *sizer) *graph.Graph {
		return s.connected(graph.Weighted{In: graph.QDInt8, Filter: []graph.Datatype{graph.QBInt4, graph.QCInt4}[s.IntN(2)], Bias: graph.FP32, Out: graph.FP32})
	},
	RateToken: func(s *sizer) *graph.Graph {
		return s.connectedOf(groups4, 1, s.between(512, 1664), s.between(512, 1664))
	},
	RateLargeToken: func(s *sizer) *graph.Graph {
		return s.connectedOf(groups4, 1, s.between(2048, 4096), s.between(2048, 4096))
	},
	RatePrompt: func(s *sizer) *graph.Graph {
		return s.connectedOf(groups4, s.between(32, 256), s.between(512, 2048), s.between(512, 2048))
	},
	"batch": (*sizer).batchProduct,
	"depthwise32": func(s *sizer) *graph.Graph {
		return s.depthwise(floats)
	},
	"depthwise8": func(s *sizer) *graph.Graph {
		return s.depthwise(bytes)
	},
	"transposed32": func(s *sizer) *graph.Graph {
		return s.transposed(floats)
	},
	"transposed8": func(s *sizer) *graph.Graph {
		return s.transposed(bytes)
	},
	"pool32": func(s *sizer) *graph.Graph { return s.pool(graph.FP32) },
	"pool8":  func(s *sizer) *graph.Graph { return s.pool(graph.QInt8) },
	"mean": func(s *sizer) *graph.Graph {
		return s.unary("GlobalAvgPooling2d", graph.FP32, graph.FP32, s.image()...)
	},
	"softmax": func(s *sizer) *graph.Graph {
		return s.unary("Softmax", graph.FP32, graph.FP32, s.between(1, 512), s.between(2, 256))
	},
	"resize": func(s *sizer) *graph.Graph {
		dims := s.image()
		x, h, w := s.Input(graph.FP32, dims...), s.between(4, 96), s.between(4, 96)
		y := s.Value(graph.FP32, 1, h, w, dims[3])
		s.Node("StaticResizeBilinear2D", []int{x}, []int{y}, func(n *graph.Node) { *graph.Params[graph.ResizeParams](n) = graph.ResizeParams{Height: h, Width: w} })
		return s.Done(y)
	},
	"copy32": func(s *sizer) *graph.Graph { return s.move(graph.FP32, "Clamp") },
	"copy8":  func(s *sizer) *graph.Graph { return s.move(graph.QInt8, "Clamp") },
	"binary32": func(s *sizer) *graph.Graph {
		return s.binary(graph.FP32, "Add", "Multiply", "Subtract", "Maximum", "Div")
	},
	"binary8": func(s *sizer) *graph.Graph { return s.binary(graph.QInt8, "Add", "Multiply", "Subtract") },
	"function32": func(s *sizer) *graph.Graph {
		names := []string{"Sigmoid", "Tanh", "Gelu", "ELU", "ReciprocalSquareRoot"}
		return s.unary(names[s.IntN(len(names))], graph.FP32, graph.FP32, s.between(1, 64), s.between(4, 1024))
	},
	"logarithm": func(s *sizer) *graph.Graph {
		names := []string{"Exp", "Sin", "Cos"}
		return s.unary(names[s.IntN(len(names))], graph.FP32, graph.FP32, s.between(1, 32), s.between(4, 256))
	},
	"table8": func(s *sizer) *graph.Graph {
		names := []string{"Sigmoid", "Tanh"}
		return s.unary(names[s.IntN(len(names))], graph.QInt8, graph.QInt8, s.between(1, 64), s.between(4, 1024))
	},
	"quantize": func(s *sizer) *graph.Graph {
		return s.unary("Convert", graph.FP32, graph.QInt8, s.between(1, 64), s.between(4, 1024))
	},
	"convert": func(s *sizer) *graph.Graph {
		return s.unary("Convert", graph.QInt8, graph.FP32, s.between(1, 64), s.between(4, 1024))
	},
	"quantizeRows": func(s *sizer) *graph.Graph {
		return s.connectedOf(dynamicBytes, s.between(1, 256), s.between(16, 1024), 4)
	},
	"transpose32": func(s *sizer) *graph.Graph { return s.transpose(graph.FP32) },
	"transpose8":  func(s *sizer) *graph.Graph { return s.transpose(graph.QInt8) },
	"large": func(s *sizer) *graph.Graph {
		batch, channels := s.between(1, 32), s.one(1, 2, 4)
		side := 1 << 20 / (batch * channels)
		rows := s.between(16, 256)
		return s.transposeOf(graph.FP32, batch, channels, rows, s.between(side/2, 2*side)/rows)
	},
	"deep": func(s *sizer) *graph.Graph { // weights that fill the caches
		rows, n, inner := s.between(1, 128), s.between(512, 1024), s.between(1024, 3072)
		x := s.Input(graph.FP32, rows, n)
		for i := range 2 * (1 + deepWeights/(2*n*inner)) {
			k, columns := n, inner
			if i%2 == 1 {
				k, columns = inner, n
			}
			y := s.Value(graph.FP32, rows, columns)
			s.Node("FullyConnected", []int{x, s.Constant(graph.FP32, 0, columns, k), s.Constant(graph.FP32, 0, columns)}, []int{y})
			x = y
		}
		return s.Done(x)
	},
}

// deepWeights is how many weights are more than the caches of a processor.
const deepWeights = 8 << 20

// maxMACs bounds the size of products.
const maxMACs = 16 << 20

func (s *sizer) product(types graph.Weighted) *graph.Graph {
	if s.IntN(2) == 0 {
		return s.pixels(types)
	}
	return s.windows(types, s.one(3, 3, 3, 5, 7))
}

// pixels is a fully connected node or a convolution of one pixel.
func (s *sizer) pixels(types graph.Weighted) *graph.Graph {
	if s.IntN(2) == 0 {
		return s.connected(types)
	}
	if s.IntN(4) == 0 { // of a large image
		return s.convolution("Conv2d", types, s.between(56, 112), s.between(8, 32), s.between(16, 128), 1, 1, 1)
	}
	return s.windows(types, 1)
}

func (s *sizer) windows(types graph.Weighted, kernel int) *graph.Graph {
	stride := s.one(1, 1, 2)
	switch s.IntN(6) {
	case 0: // deep in a model: few pixels, many channels
		return s.convolution("Conv2d", types, s.between(4, 8), s.between(128, 384), s.between(128, 384), min(kernel, 3), stride, 1)
	case 1: // the first layer
		return s.convolution("Conv2d", types, s.between(16, 112), s.one(1, 3, 3, 4), s.between(8, 48), kernel, stride, 1)
	case 2: // a small model
		return s.convolution("Conv2d", types, s.between(4, 16), s.between(3, 32), s.between(8, 64), kernel, stride, 1)
	}
	for {
		size, in, to := s.between(4, 112), s.between(3, 512), s.between(4, 512)
		if size*size/(stride*stride)*kernel*kernel*in*to <= maxMACs {
			return s.convolution("Conv2d", types, size, in, to, kernel, stride, 1)
		}
	}
}

func (s *sizer) depthwise(types graph.Weighted) *graph.Graph {
	size := s.between(4, 112)
	c := s.between(8, max(16, min(1024, 1<<19/(size*size))))
	if s.IntN(8) == 0 { // of an image
		c = s.between(1, 7)
	}
	return s.convolution("DepthwiseConv2d", types, size, c, c, s.one(3, 3, 5, 7), s.one(1, 1, 2), c)
}

func (s *sizer) transposed(types graph.Weighted) *graph.Graph {
	for {
		size, in, to, k := s.between(4, 32), s.between(8, 128), s.between(4, 64), s.one(2, 3, 4)
		if size*size*k*k*in*to <= maxMACs {
			return s.convolution("ConvTranspose2d", types, size, in, to, k, s.one(1, 2, 2), 1)
		}
	}
}

func (s *sizer) convolution(name string, types graph.Weighted, size, in, to, k, stride, groups int) *graph.Graph {
	w := graph.Window{KernelH: k, KernelW: k, StrideH: stride, StrideW: stride, DilationH: 1, DilationW: 1,
		Top: k / 2, Bottom: k / 2, Left: k / 2, Right: k / 2, Groups: groups, GroupIn: in / groups, GroupOut: to / groups}
	if name == "ConvTranspose2d" {
		w.Top, w.Bottom, w.Left, w.Right = 0, 0, 0, 0
	}
	dims, channel := []int{to, k, k, in / groups}, 0
	if name == "DepthwiseConv2d" {
		dims, channel = []int{1, k, k, to}, 3
	}
	x, y := graph.None, s.Value(types.Out, 1, 1, 1, to)
	if types.In == graph.QDInt8 {
		x = s.Quantized(s.Input(types.Out, 1, size, size, in), 3)
	} else {
		x = s.Input(types.In, 1, size, size, in)
	}
	s.Node(name, []int{x, s.Constant(types.Filter, channel, dims...), s.Constant(types.Bias, 0, to)}, []int{y}, WithWindow(w))
	return s.Fix(y)
}

func (s *sizer) connected(types graph.Weighted) *graph.Graph {
	for {
		rows, k, cols := s.between(1, 256), s.between(16, 1024), s.between(8, 1024)
		if rows*k*cols <= maxMACs {
			return s.connectedOf(types, rows, k, cols)
		}
	}
}

func (s *sizer) connectedOf(types graph.Weighted, rows, k, cols int) *graph.Graph {
	if types.Filter.Info().Bits == 4 {
		k = graph.RoundUp(k, 32)
	}
	var x int
	if types.In == graph.QDInt8 {
		x = s.Quantized(s.Input(types.Out, rows, k), 1)
	} else {
		x = s.Input(types.In, rows, k)
	}
	y := s.Value(types.Out, rows, cols)
	s.Node("FullyConnected", []int{x, s.Constant(types.Filter, 0, cols, k), s.Constant(types.Bias, 0, cols)}, []int{y})
	return s.Done(y)
}

func (s *sizer) batchProduct() *graph.Graph {
	for {
		n, rows, k, cols := s.between(1, 12), s.between(1, 200), s.between(8, 200), s.between(8, 200)
		if n*rows*k*cols <= maxMACs {
			a, b, y := s.Input(graph.FP32, n, rows, k), s.Input(graph.FP32, n, k, cols), s.Value(graph.FP32, n, rows, cols)
			s.Node("BatchMatrixMultiply", []int{a, b}, []int{y})
			return s.Done(y)
		}
	}
}

func (s *sizer) pool(d graph.Datatype) *graph.Graph {
	dims, k := s.image(), s.one(2, 3, 3)
	name := "MaxPooling2d"
	if d == graph.FP32 && s.IntN(3) == 0 {
		name = "AvgPooling2d"
	}
	x, y := s.Input(d, dims...), s.Value(d, 1, 1, 1, dims[3])
	s.Graph.Values[y].Quant = s.Graph.Values[x].Quant
	s.Node(name, []int{x}, []int{y}, WithWindow(graph.Window{KernelH: k, KernelW: k, StrideH: 2, StrideW: 2, DilationH: 1, DilationW: 1}))
	return s.Fix(y)
}

func (s *sizer) unary(name string, in, out graph.Datatype, dims ...int) *graph.Graph {
	x, y := s.Input(in, dims...), s.Value(out, dims...)
	if in == out {
		s.Graph.Values[y].Quant = s.Graph.Values[x].Quant
	}
	s.Node(name, []int{x}, []int{y}, func(n *graph.Node) {
		SetScalar(n, 0.5)
		if name == "Clamp" {
			n.Min, n.Max = 0, 1
		}
	})
	return s.Fix(y)
}

// move is a copy of elements by one of several kinds of nodes.
func (s *sizer) move(d graph.Datatype, same ...string) *graph.Graph {
	dims := s.image()
	x := s.Input(d, dims...)
	like := func(dims ...int) int {
		y := s.Value(d, dims...)
		s.Graph.Values[y].Quant = s.Graph.Values[x].Quant
		return y
	}
	switch s.IntN(4) {
	case 0:
		return s.unary(same[s.IntN(len(same))], d, d, dims...)
	case 1:
		z := s.Input(d, dims...)
		s.Graph.Values[z].Quant = s.Graph.Values[x].Quant
		y := like(1, dims[1], dims[2], 2*dims[3])
		s.Node("Concatenate2", []int{x, z}, []int{y}, func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = 3 })
		return s.Done(y)
	case 2:
		half := []int{1, dims[1], dims[2], max(dims[3]/2, 1)}
		y := like(half...)
		s.Node("StaticSlice", []int{x}, []int{y}, func(n *graph.Node) {
			*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: make([]int, 4), Sizes: half}
		})
		return s.Done(y)
	}
	y := like(1, dims[1]+2, dims[2]+2, dims[3])
	s.Node("StaticConstantPad", []int{x}, []int{y}, func(n *graph.Node) {
		pad := []int{0, 1, 1, 0}
		*graph.Params[graph.PadParams](n) = graph.PadParams{Before: pad, After: pad}
	})
	return s.Done(y)
}

func (s *sizer) binary(d graph.Datatype, names ...string) *graph.Graph {
	dims := s.image()
	x, y := s.Input(d, dims...), s.Value(d, dims...)
	z := x
	if s.IntN(2) == 0 {
		z = s.Input(d, dims[3])
	} else {
		z = s.Input(d, dims...)
	}
	s.Node(names[s.IntN(len(names))], []int{x, z}, []int{y})
	return s.Done(y)
}

func (s *sizer) transpose(d graph.Datatype) *graph.Graph {
	dims := s.image()
	if s.IntN(4) == 0 { // beyond the caches
		dims = []int{1, s.between(64, 512), s.between(64, 512), s.between(8, 16)}
	}
	return s.transposeOf(d, dims...)
}

func (s *sizer) transposeOf(d graph.Datatype, dims ...int) *graph.Graph {
	perm := [][]int{graph.ToChannelsLast, graph.ToChannelsFirst, {0, 2, 1, 3}, {0, 1, 3, 2}}[s.IntN(4)]
	x, y := s.Input(d, dims...), s.Value(d, graph.ShapeOf(dims...).Permuted(perm).Dims()...)
	s.Graph.Values[y].Quant = s.Graph.Values[x].Quant
	s.Node("StaticTranspose", []int{x}, []int{y}, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = perm })
	return s.Done(y)
}
