package lowering_test

import (
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// checkNodes compares the node types of the compiled graph.
func checkNodes(t *testing.T, c *calls, want string) {
	t.Helper()
	img, err := engines()[0].compile(c.Graph)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	var names []string
	for _, n := range img.(*goengine.Image).Graph.Nodes {
		names = append(names, n.Type.Name)
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got nodes %s, want %s", got, want)
	}
}

func quantizedCases() (list []loweringCase) {
	const scale, zero = 0.03, 5
	add := func(name, nodes string, build func(c *calls, x func(sizes ...int) val) val) {
		list = append(list, loweringCase{name: "quantized " + name, nodes: nodes, build: func(c *calls) {
			c.Allowed = 1.01 * scale
			c.Outputs(quantizedOnce(c, build(c, func(sizes ...int) val { return quantizedOnce(c, c.Input(sizes...), 0.02, -3) }), scale, zero))
		}})
	}
	convolve := func(c *calls, x val, filter, bias any, groups int, transposed bool) val {
		return c.Do("aten::convolution.out", 4, x, filter, bias, []int{1, 1}, []int{1, 1}, []int{1, 1}, transposed, []int{0, 0}, groups)
	}
	one := func(op string, args ...any) func(c *calls, x func(...int) val) val {
		return func(c *calls, x func(...int) val) val { return c.Do(op, 3, append([]any{x(2, 3, 7)}, args...)...) }
	}
	add("convolution", "Convert StaticTranspose Conv2d StaticTranspose Convert", func(c *calls, x func(...int) val) val {
		return c.Do("aten::relu.out", 4, convolve(c, x(1, 3, 6, 5), c.Weights(8, 3, 3, 3), c.Constant(8), 1, false))
	})
	add("depthwise convolution", "", func(c *calls, x func(...int) val) val {
		return convolve(c, x(1, 4, 6, 5), c.Weights(4, 1, 3, 3), nil, 4, false)
	})
	add("convolution of floating weights", "", func(c *calls, x func(...int) val) val {
		c.Lo, c.Hi = -0.3, 0.3
		return convolve(c, x(1, 3, 6, 5), c.Constant(8, 3, 3, 3), c.Constant(8), 1, false)
	})
	add("linear", "Convert FullyConnected Convert", func(c *calls, x func(...int) val) val {
		return c.Do("aten::linear.out", 2, x(3, 7), c.Weights(5, 7), c.Constant(5))
	})
	add("convolution of codes", "Convert StaticTranspose Conv2d StaticTranspose Convert", func(c *calls, x func(...int) val) val {
		return convolve(c, x(1, 3, 6, 5), int8Weights(c, 0, 8, 3, 3, 3), c.Constant(8), 1, false)
	})
	add("depthwise convolution of codes", "", func(c *calls, x func(...int) val) val {
		return convolve(c, x(1, 4, 6, 5), int8Weights(c, 0, 4, 1, 3, 3), nil, 4, false)
	})
	add("transposed convolution of codes", "", func(c *calls, x func(...int) val) val {
		return convolve(c, x(1, 4, 6, 5), int8Weights(c, 1, 4, 3, 3, 3), nil, 1, true)
	})
	add("addmm of codes", "Convert FullyConnected Convert", func(c *calls, x func(...int) val) val {
		return c.Do("aten::addmm.out", 2, c.Constant(5), x(3, 7), c.Do("aten::permute_copy.out", 2, int8Weights(c, 0, 5, 7), []int{1, 0}), 1, 1)
	})
	add("addmm between views", "Convert StaticReshape FullyConnected StaticReshape Convert", func(c *calls, x func(...int) val) val {
		w := c.Do("aten::permute_copy.out", 2, int8Weights(c, 0, 5, 7), []int{1, 0})
		return c.View(c.Do("aten::addmm.out", 2, c.Constant(5), c.View(x(2, 3, 7), 6, 7), w, 1, 1), 2, 3, 5)
	})
	add("view", "Convert StaticReshape Table Convert", func(c *calls, x func(...int) val) val {
		return c.View(x(2, 3, 7), 6, 7)
	})
	add("mm of codes", "", func(c *calls, x func(...int) val) val {
		return c.Do("aten::mm.out", 2, x(3, 7), c.Do("aten::t_copy.out", 2, int8Weights(c, 1, 5, 7)))
	})
	list = append(list, loweringCase{name: "codes as weights of floats", tolerance: summed, build: func(c *calls) {
		c.Allowed = 1e-4
		w := int8Weights(c, 0, 5, 7)
		y := c.Do("aten::addmm.out", 2, c.Constant(5), c.Input(3, 7), c.Do("aten::t_copy.out", 2, w), 1, 1)
		c.Outputs(c.Do("aten::linear.out", 2, c.Input(2, 7), w, nil), y, w, c.Do("aten::add.out", 2, c.Input(5, 7), w, 1))
	}}, loweringCase{name: "constant in another order", tolerance: summed, build: func(c *calls) {
		w := c.Do("aten::transpose_copy.int_out", 3, c.Constant(2, 3, 4), 0, 2)
		c.Outputs(c.Do("aten::add.out", 3, c.Input(4, 3, 2), w, 1), w)
	}})
	chosen := func(c *calls, x val) val {
		rank := len(c.Graph.Values[x].Sizes)
		p := c.Call(chooseOp, []out{{One: true, DType: tensor.Float64}, {One: true, DType: tensor.Int64}}, x, -128, 127, 1e-7, int(tensor.Int8))
		y := c.Call(quantizeChosenOp, []out{{Rank: rank, DType: tensor.Int8}}, x, p[0], p[1], -128, 127, int(tensor.Int8))[0]
		return c.Do(dequantizeChosenOp, rank, y, p[0], p[1], -128, 127, int(tensor.Int8), nil)
	}
	list = append(list, loweringCase{name: "dynamically quantized rows", nodes: "Convert FullyConnected FullyConnected Add", build: func(c *calls) {
		c.Allowed = 0.06
		x := chosen(c, c.Input(1, 7))
		y := c.Do("aten::linear.out", 2, x, int8Weights(c, 0, 5, 7), c.Constant(5))
		z := c.Do("aten::addmm.out", 2, c.Constant(5), x, c.Do("aten::permute_copy.out", 2, c.Weights(5, 7), []int{1, 0}), 1, 1)
		c.Outputs(c.Do("aten::relu.out", 2, c.Do("aten::add.out", 2, y, z, 1)))
	}})
	add("addmm", "", func(c *calls, x func(...int) val) val {
		w := c.Weights(5, 7)
		t := tensor.Make(tensor.Float32, []int{7, 5}, []uint8{1, 0}, tensor.Static)
		t.Bind(c.Tensors[w].Data)
		flipped := tensor.New(tensor.Float32, 7, 5)
		for i := range 35 {
			tensor.View[float32](flipped.Data)[i%7*5+i/7] = tensor.View[float32](t.Data)[i]
		}
		return c.Do("aten::addmm.out", 2, c.Constant(5), x(3, 7), c.ConstantOf(flipped), 1, 1)
	})
	add("add", "Convert Convert Add Convert", func(c *calls, x func(...int) val) val {
		return c.Do("aten::relu.out", 3, c.Do("aten::add.out", 3, x(2, 3, 7), x(2, 3, 1), 1))
	})
	add("sub", "", func(c *calls, x func(...int) val) val { return c.Do("aten::sub.out", 3, x(2, 3, 7), x(7), 1) })
	add("mul", "", func(c *calls, x func(...int) val) val { return c.Do("aten::mul.out", 3, x(2, 3, 7), x(2, 3, 7)) })
	add("mul by a constant", "", func(c *calls, x func(...int) val) val { return c.Do("aten::mul.out", 3, x(2, 3, 7), c.Constant(7)) })
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
		return c.Do("aten::cat.out", 3, vals{x(2, 3, 7), quantizedOnce(c, c.Input(2, 2, 7), 0.05, 7)}, 1)
	})
	add("max_pool2d", "", func(c *calls, x func(...int) val) val {
		return c.Call("aten::max_pool2d_with_indices.out", []out{{Rank: 4}, {Rank: 4, DType: tensor.Int64}}, x(1, 3, 6, 5),
			[]int{2, 2}, []int{2, 2}, []int{0, 0}, []int{1, 1}, false)[0]
	})
	add("mean", "", func(c *calls, x func(...int) val) val {
		return c.Do("aten::mean.out", 2, x(2, 3, 6, 5), []int{2, 3}, false, nil)
	})
	add("resize", "", func(c *calls, x func(...int) val) val {
		return c.Do("aten::upsample_bilinear2d.vec_out", 4, x(1, 3, 4, 5), []int{7, 9}, false, nil)
	})
	list = append(list, loweringCase{name: "codes from input to output", tolerance: 1, nodes: "Add", build: func(c *calls) {
		t := tensor.New(tensor.Int8, 2, 7)
		for i := range t.Data {
			t.Data[i] = byte(c.Rand.Uint32())
		}
		x := c.Tensor(t)
		c.Graph.Inputs = append(c.Graph.Inputs, int(x))
		y := c.Dequantize(x, 0.02, 3)
		c.Allowed = 1.01
		c.Outputs(c.Quantize(c.Do("aten::add.out", 2, y, y, 1), 0.05, -2))
	}}, loweringCase{name: "dequantized values with another reader", build: func(c *calls) {
		x := quantizedOnce(c, c.Input(2, 7), 0.02, -3)
		y := c.Do("aten::sigmoid.out", 2, x)
		c.Allowed = 0.02
		c.Outputs(quantizedOnce(c, y, 1.0/256, -128), c.Do("aten::exp.out", 2, y), x)
	}})
	return list
}

// finerResults are calls whose results have a smaller scale than their operands: nodes that round in the operands' scales
// would be wrong by many codes of the results.
func finerResults() (list []loweringCase) {
	const scale = 0.01
	add := func(name string, build func(c *calls, x func(sizes ...int) val) val) {
		list = append(list, loweringCase{name: "finer " + name, build: func(c *calls) {
			c.Allowed = 1.01 * scale
			c.Outputs(quantizedOnce(c, build(c, func(sizes ...int) val { return quantizedOnce(c, c.Input(sizes...), 1, 0) }), scale, 0))
		}})
	}
	few := func(c *calls, scale float32, sizes ...int) val { // at most one element of a row is not 0
		t := c.Random(nil, sizes...)
		w := tensor.View[float32](t.Data)
		clear(w)
		for i := 1; i < len(w); i += 2 * sizes[1] {
			w[i] = scale
		}
		return c.ConstantOf(t)
	}
	bias := func(c *calls, n int) val {
		t := c.Random(nil, n)
		for i := range tensor.View[float32](t.Data) {
			tensor.View[float32](t.Data)[i] = 0.3
		}
		return c.ConstantOf(t)
	}
	add("linear with a bias", func(c *calls, x func(...int) val) val {
		return c.Do("aten::linear.out", 2, x(3, 7), few(c, 1, 4, 7), bias(c, 4))
	})
	add("addmm with a bias", func(c *calls, x func(...int) val) val {
		return c.Do("aten::addmm.out", 2, bias(c, 4), x(3, 7), c.Do("aten::t_copy.out", 2, few(c, 1, 4, 7)), 1, 1)
	})
	add("convolution with a bias", func(c *calls, x func(...int) val) val {
		return c.Do("aten::convolution.out", 4, x(1, 3, 4, 5), few(c, 1, 4, 3, 1, 1), bias(c, 4), []int{1, 1}, []int{0, 0}, []int{1, 1},
			false, []int{0, 0}, 1)
	})
	add("clamp", func(c *calls, x func(...int) val) val { return c.Do("aten::clamp.out", 2, x(3, 7), 0.3, 0.7) })
	add("relu6", func(c *calls, x func(...int) val) val { return c.Do("aten::hardtanh.out", 2, x(3, 7), 0.0, 0.6) })
	add("resize", func(c *calls, x func(...int) val) val {
		return c.Do("aten::upsample_bilinear2d.vec_out", 4, x(1, 3, 4, 5), []int{7, 9}, false, nil)
	})
	return list
}

// The operators of quantization with scales that are chosen at run time.
const (
	chooseOp           = "quantized_decomposed::choose_qparams.Tensor_out"
	quantizeChosenOp   = "quantized_decomposed::quantize_per_tensor.Tensor_out"
	dequantizeChosenOp = "quantized_decomposed::dequantize_per_tensor.Tensor_out"
)

// quantizedOnce adds calls that quantize and dequantize a tensor.
func quantizedOnce(c *callstest.Calls, x callstest.Val, scale float64, zero int) callstest.Val {
	return c.Dequantize(c.Quantize(x, scale, zero), scale, zero)
}

// int8Weights adds int8 weights and the call that dequantizes them.
func int8Weights(c *callstest.Calls, axis int, sizes ...int) callstest.Val {
	t := tensor.New(tensor.Int8, sizes...)
	for i := range t.Data {
		t.Data[i] = byte(c.Rand.IntN(255) - 127)
	}
	scales := c.Random(nil, sizes[axis])
	for i := range tensor.View[float32](scales.Data) {
		tensor.View[float32](scales.Data)[i] = 0.003 + 0.0007*float32(i)
	}
	zeros := c.ConstantOf(tensor.New(tensor.Int64, sizes[axis]))
	return c.Do("quantized_decomposed::dequantize_per_channel.out", len(sizes), c.ConstantOf(t), c.ConstantOf(scales), zeros, axis,
		-127, 127, int(tensor.Int8), nil)
}
