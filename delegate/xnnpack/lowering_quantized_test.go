package xnnpack

import (
	"context"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// The operators of quantization.
const (
	quantizeOp         = "quantized_decomposed::quantize_per_tensor.out"
	dequantizeOp       = "quantized_decomposed::dequantize_per_tensor.out"
	chooseOp           = "quantized_decomposed::choose_qparams.Tensor_out"
	quantizeChosenOp   = "quantized_decomposed::quantize_per_tensor.Tensor_out"
	dequantizeChosenOp = "quantized_decomposed::dequantize_per_tensor.Tensor_out"
)

// codes adds a call that quantizes a tensor, numbers one that dequantizes it, and quantized both.
func (c *calls) codes(x val, scale float64, zero int) val {
	return c.call(quantizeOp, []out{{rank: len(c.g.Values[x].Sizes), order: c.g.Values[x].DimOrder, dtype: tensor.Int8}},
		x, scale, zero, -128, 127, int(tensor.Int8))[0]
}

func (c *calls) numbers(x val, scale float64, zero int) val {
	return c.call(dequantizeOp, []out{{rank: len(c.g.Values[x].Sizes), order: c.g.Values[x].DimOrder}},
		x, scale, zero, -128, 127, int(tensor.Int8), nil)[0]
}

func (c *calls) quantized(x val, scale float64, zero int) val {
	return c.numbers(c.codes(x, scale, zero), scale, zero)
}

// weights adds a float constant whose elements are multiples of per-channel scales along the first
// dimension.
func (c *calls) weights(sizes ...int) val {
	t := c.random(nil, sizes...)
	list := tensor.View[float32](t.Data)
	inner := len(list) / sizes[0]
	for i := range list {
		list[i] = float32(c.r.IntN(255)-127) * (0.003 + 0.0007*float32(i/inner))
	}
	return c.constantOf(t)
}

// int8Weights adds int8 weights and the call that dequantizes them.
func (c *calls) shortWeights(axis int, sizes ...int) val {
	t := tensor.New(tensor.Int8, sizes...)
	for i := range t.Data {
		t.Data[i] = byte(c.r.IntN(255) - 127)
	}
	scales := c.random(nil, sizes[axis])
	for i := range tensor.View[float32](scales.Data) {
		tensor.View[float32](scales.Data)[i] = 0.003 + 0.0007*float32(i)
	}
	zeros := c.constantOf(tensor.New(tensor.Int64, sizes[axis]))
	return c.do("quantized_decomposed::dequantize_per_channel.out", len(sizes), c.constantOf(t), c.constantOf(scales), zeros, axis,
		-127, 127, int(tensor.Int8), nil)
}

// checkNodes compares the node types of the compiled graph.
func (c *calls) checkNodes(t *testing.T, want string) {
	t.Helper()
	img, err := Backend{Engine: EngineGo}.CompileGraph(context.Background(), c.g)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	var names []string
	for i := range img.(*image).Graph.Nodes {
		names = append(names, img.(*image).Graph.Nodes[i].Type.Name)
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got nodes %s, want %s", got, want)
	}
}

func quantizedCases() (list []loweringCase) {
	const scale, zero = 0.03, 5
	add := func(name, nodes string, build func(c *calls, x func(sizes ...int) val) val) {
		list = append(list, loweringCase{name: "quantized " + name, nodes: nodes, build: func(c *calls) {
			c.allowed = 1.01 * scale
			c.outputs(c.quantized(build(c, func(sizes ...int) val { return c.quantized(c.input(sizes...), 0.02, -3) }), scale, zero))
		}})
	}
	convolve := func(c *calls, x val, filter, bias any, groups int, transposed bool) val {
		return c.do("aten::convolution.out", 4, x, filter, bias, []int{1, 1}, []int{1, 1}, []int{1, 1}, transposed, []int{0, 0}, groups)
	}
	one := func(op string, args ...any) func(c *calls, x func(...int) val) val {
		return func(c *calls, x func(...int) val) val { return c.do(op, 3, append([]any{x(2, 3, 7)}, args...)...) }
	}
	add("convolution", "Convert StaticTranspose Conv2d StaticTranspose Convert", func(c *calls, x func(...int) val) val {
		return c.do("aten::relu.out", 4, convolve(c, x(1, 3, 6, 5), c.weights(8, 3, 3, 3), c.constant(8), 1, false))
	})
	add("depthwise convolution", "", func(c *calls, x func(...int) val) val {
		return convolve(c, x(1, 4, 6, 5), c.weights(4, 1, 3, 3), nil, 4, false)
	})
	add("convolution of floating weights", "", func(c *calls, x func(...int) val) val {
		c.lo, c.hi = -0.3, 0.3
		return convolve(c, x(1, 3, 6, 5), c.constant(8, 3, 3, 3), c.constant(8), 1, false)
	})
	add("linear", "Convert FullyConnected Convert", func(c *calls, x func(...int) val) val {
		return c.do("aten::linear.out", 2, x(3, 7), c.weights(5, 7), c.constant(5))
	})
	add("convolution of codes", "Convert StaticTranspose Conv2d StaticTranspose Convert", func(c *calls, x func(...int) val) val {
		return convolve(c, x(1, 3, 6, 5), c.shortWeights(0, 8, 3, 3, 3), c.constant(8), 1, false)
	})
	add("depthwise convolution of codes", "", func(c *calls, x func(...int) val) val {
		return convolve(c, x(1, 4, 6, 5), c.shortWeights(0, 4, 1, 3, 3), nil, 4, false)
	})
	add("transposed convolution of codes", "", func(c *calls, x func(...int) val) val {
		return convolve(c, x(1, 4, 6, 5), c.shortWeights(1, 4, 3, 3, 3), nil, 1, true)
	})
	add("addmm of codes", "Convert FullyConnected Convert", func(c *calls, x func(...int) val) val {
		return c.do("aten::addmm.out", 2, c.constant(5), x(3, 7), c.do("aten::permute_copy.out", 2, c.shortWeights(0, 5, 7), []int{1, 0}), 1, 1)
	})
	add("addmm between views", "Convert StaticReshape FullyConnected StaticReshape Convert", func(c *calls, x func(...int) val) val {
		w := c.do("aten::permute_copy.out", 2, c.shortWeights(0, 5, 7), []int{1, 0})
		return c.view(c.do("aten::addmm.out", 2, c.constant(5), c.view(x(2, 3, 7), 6, 7), w, 1, 1), 2, 3, 5)
	})
	add("view", "Convert StaticReshape Table Convert", func(c *calls, x func(...int) val) val {
		return c.view(x(2, 3, 7), 6, 7)
	})
	add("mm of codes", "", func(c *calls, x func(...int) val) val {
		return c.do("aten::mm.out", 2, x(3, 7), c.do("aten::t_copy.out", 2, c.shortWeights(1, 5, 7)))
	})
	list = append(list, loweringCase{name: "codes as weights of floats", tolerance: summed, build: func(c *calls) {
		c.allowed = 1e-4
		w := c.shortWeights(0, 5, 7)
		y := c.do("aten::addmm.out", 2, c.constant(5), c.input(3, 7), c.do("aten::t_copy.out", 2, w), 1, 1)
		c.outputs(c.do("aten::linear.out", 2, c.input(2, 7), w, nil), y, w, c.do("aten::add.out", 2, c.input(5, 7), w, 1))
	}}, loweringCase{name: "constant in another order", tolerance: summed, build: func(c *calls) {
		w := c.do("aten::transpose_copy.int_out", 3, c.constant(2, 3, 4), 0, 2)
		c.outputs(c.do("aten::add.out", 3, c.input(4, 3, 2), w, 1), w)
	}})
	chosen := func(c *calls, x val) val {
		rank := len(c.g.Values[x].Sizes)
		p := c.call(chooseOp, []out{{one: true, dtype: tensor.Float64}, {one: true, dtype: tensor.Int64}}, x, -128, 127, 1e-7, int(tensor.Int8))
		y := c.call(quantizeChosenOp, []out{{rank: rank, dtype: tensor.Int8}}, x, p[0], p[1], -128, 127, int(tensor.Int8))[0]
		return c.do(dequantizeChosenOp, rank, y, p[0], p[1], -128, 127, int(tensor.Int8), nil)
	}
	list = append(list, loweringCase{name: "dynamically quantized rows", nodes: "Convert FullyConnected FullyConnected Add", build: func(c *calls) {
		c.allowed = 0.06
		x := chosen(c, c.input(1, 7))
		y := c.do("aten::linear.out", 2, x, c.shortWeights(0, 5, 7), c.constant(5))
		z := c.do("aten::addmm.out", 2, c.constant(5), x, c.do("aten::permute_copy.out", 2, c.weights(5, 7), []int{1, 0}), 1, 1)
		c.outputs(c.do("aten::relu.out", 2, c.do("aten::add.out", 2, y, z, 1)))
	}})
	add("addmm", "", func(c *calls, x func(...int) val) val {
		w := c.weights(5, 7)
		t := tensor.Make(tensor.Float32, []int{7, 5}, []uint8{1, 0}, tensor.Static)
		t.Bind(c.tensors[w].Data)
		flipped := tensor.New(tensor.Float32, 7, 5)
		for i := range 35 {
			tensor.View[float32](flipped.Data)[i%7*5+i/7] = tensor.View[float32](t.Data)[i]
		}
		return c.do("aten::addmm.out", 2, c.constant(5), x(3, 7), c.constantOf(flipped), 1, 1)
	})
	add("add", "Convert Convert Add Convert", func(c *calls, x func(...int) val) val {
		return c.do("aten::relu.out", 3, c.do("aten::add.out", 3, x(2, 3, 7), x(2, 3, 1), 1))
	})
	add("sub", "", func(c *calls, x func(...int) val) val { return c.do("aten::sub.out", 3, x(2, 3, 7), x(7), 1) })
	add("mul", "", func(c *calls, x func(...int) val) val { return c.do("aten::mul.out", 3, x(2, 3, 7), x(2, 3, 7)) })
	add("mul by a constant", "", func(c *calls, x func(...int) val) val { return c.do("aten::mul.out", 3, x(2, 3, 7), c.constant(7)) })
	add("sigmoid", "Convert Sigmoid Convert", one("aten::sigmoid.out"))
	add("tanh", "", one("aten::tanh.out"))
	add("leaky_relu", "", one("aten::leaky_relu.out", 0.1))
	add("hardtanh", "", one("aten::hardtanh.out", -0.5, 1.0))
	add("gelu", "", one("aten::gelu.out", "none"))
	add("permute", "", one("aten::permute_copy.out", []int{2, 0, 1}))
	add("slice", "", one("aten::slice_copy.Tensor_out", 2, 1, 5, 1))
	add("pad", "", one("aten::constant_pad_nd.out", []int{1, 2}, 0))
	add("pad by a number beyond the codes", "", one("aten::constant_pad_nd.out", []int{1, 2}, 100.0))
	add("pad by a number between two codes", "", one("aten::constant_pad_nd.out", []int{1, 2}, 0.517))
	list = append(list, finerResults()...)
	add("cat", "", func(c *calls, x func(...int) val) val {
		return c.do("aten::cat.out", 3, vals{x(2, 3, 7), c.quantized(c.input(2, 2, 7), 0.05, 7)}, 1)
	})
	add("max_pool2d", "", func(c *calls, x func(...int) val) val {
		return c.call("aten::max_pool2d_with_indices.out", []out{{rank: 4}, {rank: 4, dtype: tensor.Int64}}, x(1, 3, 6, 5),
			[]int{2, 2}, []int{2, 2}, []int{0, 0}, []int{1, 1}, false)[0]
	})
	add("mean", "", func(c *calls, x func(...int) val) val {
		return c.do("aten::mean.out", 2, x(2, 3, 6, 5), []int{2, 3}, false, nil)
	})
	add("resize", "", func(c *calls, x func(...int) val) val {
		return c.do("aten::upsample_bilinear2d.vec_out", 4, x(1, 3, 4, 5), []int{7, 9}, false, nil)
	})
	list = append(list, loweringCase{name: "codes from input to output", tolerance: 1, nodes: "Add", build: func(c *calls) {
		t := tensor.New(tensor.Int8, 2, 7)
		for i := range t.Data {
			t.Data[i] = byte(c.r.Uint32())
		}
		x := c.tensor(t)
		c.g.Inputs = append(c.g.Inputs, int(x))
		y := c.numbers(x, 0.02, 3)
		c.allowed = 1.01
		c.outputs(c.codes(c.do("aten::add.out", 2, y, y, 1), 0.05, -2))
	}}, loweringCase{name: "dequantized values with another reader", build: func(c *calls) {
		x := c.quantized(c.input(2, 7), 0.02, -3)
		y := c.do("aten::sigmoid.out", 2, x)
		c.allowed = 0.02
		c.outputs(c.quantized(y, 1.0/256, -128), c.do("aten::exp.out", 2, y), x)
	}})
	return list
}

// finerResults are calls whose results have a smaller scale than their operands: nodes that round in the operands' scales
// would be wrong by many codes of the results.
func finerResults() (list []loweringCase) {
	const scale = 0.01
	add := func(name string, build func(c *calls, x func(sizes ...int) val) val) {
		list = append(list, loweringCase{name: "finer " + name, build: func(c *calls) {
			c.allowed = 1.01 * scale
			c.outputs(c.quantized(build(c, func(sizes ...int) val { return c.quantized(c.input(sizes...), 1, 0) }), scale, 0))
		}})
	}
	few := func(c *calls, scale float32, sizes ...int) val { // at most one element of a row is not 0
		t := c.random(nil, sizes...)
		w := tensor.View[float32](t.Data)
		clear(w)
		for i := 1; i < len(w); i += 2 * sizes[1] {
			w[i] = scale
		}
		return c.constantOf(t)
	}
	bias := func(c *calls, n int) val {
		t := c.random(nil, n)
		for i := range tensor.View[float32](t.Data) {
			tensor.View[float32](t.Data)[i] = 0.3
		}
		return c.constantOf(t)
	}
	add("linear with a bias", func(c *calls, x func(...int) val) val {
		return c.do("aten::linear.out", 2, x(3, 7), few(c, 1, 4, 7), bias(c, 4))
	})
	add("addmm with a bias", func(c *calls, x func(...int) val) val {
		return c.do("aten::addmm.out", 2, bias(c, 4), x(3, 7), c.do("aten::t_copy.out", 2, few(c, 1, 4, 7)), 1, 1)
	})
	add("convolution with a bias", func(c *calls, x func(...int) val) val {
		return c.do("aten::convolution.out", 4, x(1, 3, 4, 5), few(c, 1, 4, 3, 1, 1), bias(c, 4), []int{1, 1}, []int{0, 0}, []int{1, 1},
			false, []int{0, 0}, 1)
	})
	add("clamp", func(c *calls, x func(...int) val) val { return c.do("aten::clamp.out", 2, x(3, 7), 0.3, 0.7) })
	add("relu6", func(c *calls, x func(...int) val) val { return c.do("aten::hardtanh.out", 2, x(3, 7), 0.0, 0.6) })
	add("resize", func(c *calls, x func(...int) val) val {
		return c.do("aten::upsample_bilinear2d.vec_out", 4, x(1, 3, 4, 5), []int{7, 9}, false, nil)
	})
	return list
}
