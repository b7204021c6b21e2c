package lowering_test

import (
	"math/bits"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// exact, rounded and summed are tolerances relative to the largest number.
const (
	exact   = 0
	rounded = 4e-6
	summed  = 2e-5
)

// TestLoweringRows compiles one or more calls of every operator in the lowering table and compares
// them with the portable kernels.
func TestLoweringRows(t *testing.T) {
	seen := make(map[opclass.Class]bool)
	for _, test := range loweringCases() {
		t.Run(test.name, func(t *testing.T) {
			c := callstest.New(3)
			test.build(c)
			for i := range c.Graph.Calls {
				if op := c.Graph.Calls[i].Op; op != nil {
					seen[op.Class] = true
				}
			}
			checkCalls(t, c, test.tolerance)
			if test.nodes != "" {
				checkNodes(t, c, test.nodes)
			}
		})
	}
	for class := range opclass.Count {
		if lowering.Supports(&kernels.Op{Class: class}) && !seen[class] {
			t.Errorf("got no case for class %v", class)
		}
	}
}

type loweringCase struct {
	name      string
	tolerance float64
	build     func(c *calls)
	nodes     string // expected node types, or "" for any
}

func loweringCases() (list []loweringCase) {
	add := func(name string, tolerance float64, build func(c *calls) []val) {
		list = append(list, loweringCase{name: name, tolerance: tolerance, build: func(c *calls) { c.Outputs(build(c)...) }})
	}
	for _, f := range []struct {
		op   string
		lo   float64
		args []any
	}{
		{"abs", -2, nil}, {"neg", -2, nil}, {"ceil", -2, nil}, {"floor", -2, nil}, {"sqrt", 0.1, nil}, {"rsqrt", 0.1, nil}, {"exp", -2, nil},
		{"log", 0.1, nil}, {"sin", -2, nil}, {"cos", -2, nil}, {"sigmoid", -2, nil}, {"tanh", -2, nil}, {"relu", -2, nil},
		{"silu", -2, nil}, {"hardswish", -2, nil},
		{"hardtanh", -2, []any{-0.5, 0.75}}, {"clamp", -2, []any{nil, 1}}, {"clamp", -2, []any{-1.0, nil}}, {"gelu", -2, []any{"none"}},
		{"leaky_relu", -2, []any{0.1}}, {"elu", -2, []any{1.5, 1, 1}},
	} {
		for _, sizes := range [][]int{{}, {7}, {2, 3, 5, 4}} {
			add(f.op, rounded, func(c *calls) []val {
				c.Lo = f.lo
				return []val{c.Do("aten::"+f.op+".out", len(sizes), append([]any{c.Input(sizes...)}, f.args...)...)}
			})
		}
		add(f.op+" channels last", rounded, func(c *calls) []val {
			c.Lo = f.lo
			return c.Call("aten::"+f.op+".out", []out{{Rank: 4, Order: callstest.NHWC}}, append([]any{c.InputIn(callstest.NHWC, 2, 3, 5, 4)}, f.args...)...)
		})
	}
	add("pow", rounded, func(c *calls) []val { return []val{c.Do("aten::pow.Tensor_Scalar_out", 2, c.Input(3, 4), 2)} })
	for _, dim := range []int{-1, 1} {
		add("softmax", rounded, func(c *calls) []val { return []val{c.Do("aten::_softmax.out", 4, c.Input(2, 3, 5, 4), dim, false)} })
	}
	list = append(list, binaryCases()...)
	list = append(list, moveCases()...)
	list = append(list, matmulCases()...)
	list = append(list, imageCases()...)
	list = append(list, poolCases()...)
	return append(list, quantizedCases()...)
}

func binaryCases() (list []loweringCase) {
	add := func(name string, build func(c *calls) []val) {
		list = append(list, loweringCase{name: name, tolerance: rounded, build: func(c *calls) { c.Outputs(build(c)...) }})
	}
	for _, op := range []string{"add", "sub", "mul", "div", "maximum", "minimum"} {
		rest := []any{}
		if op == "add" || op == "sub" {
			rest = append(rest, 1)
		}
		do := func(c *calls, rank int, args ...any) []val {
			return []val{c.Do("aten::"+op+".out", rank, append(args, rest...)...)}
		}
		lo := -2.0
		if op == "div" {
			lo = 0.5
		}
		add(op, func(c *calls) []val { c.Lo = lo; return do(c, 3, c.Input(2, 3, 4), c.Input(2, 3, 4)) })
		add(op+" broadcast", func(c *calls) []val { c.Lo = lo; return do(c, 4, c.Input(2, 3, 1, 4), c.Input(5, 1)) })
		add(op+" constant", func(c *calls) []val { c.Lo = lo; return do(c, 4, c.Input(2, 3, 5, 4), c.Constant(3, 1, 1)) })
		add(op+" by itself", func(c *calls) []val { c.Lo = lo; x := c.Input(2, 3); return do(c, 2, x, x) })
		add(op+" scalar of another type", func(c *calls) []val {
			c.Lo = lo
			return do(c, 2, c.Input(2, 3), c.ConstantOf(tensor.Of([]int64{3})).Scalar(c))
		})
		add(op+" after a convolution", func(c *calls) []val {
			c.Lo = lo
			y := c.Convolve(c.Input(1, 3, 5, 4), 3, 3)
			return do(c, 4, do(c, 4, y, c.Constant(3, 1, 1))[0], c.Input(1, 3, 1, 1))
		})
	}
	for _, op := range []string{"add.Scalar_out", "sub.Scalar_out", "rsub.Scalar_out", "mul.Scalar_out", "div.Scalar_out"} {
		add(op, func(c *calls) []val {
			args := []any{c.Input(2, 3, 4), 1.7}
			if op[:3] != "mul" && op[:3] != "div" {
				args = append(args, 1)
			}
			return []val{c.Do("aten::"+op, 3, args...)}
		})
	}
	return list
}

func moveCases() (list []loweringCase) {
	add := func(name string, build func(c *calls) []val) {
		list = append(list, loweringCase{name: name, tolerance: summed, build: func(c *calls) { c.Outputs(build(c)...) }})
	}
	for _, op := range []string{"aten::alias_copy.out", "aten::detach_copy.out", "aten::lift_fresh_copy.out"} {
		add(op, func(c *calls) []val { return []val{c.Do(op, 3, c.Input(2, 3, 4))} })
	}
	add("clone", func(c *calls) []val { return []val{c.Do("aten::clone.out", 3, c.Input(2, 3, 4), nil)} })
	add("_to_copy", func(c *calls) []val { return []val{c.Do("aten::_to_copy.out", 3, c.Input(2, 3, 4), false, nil)} })
	add("expand_copy", func(c *calls) []val {
		return []val{c.Do("aten::expand_copy.out", 2, c.Input(2, 3), []int{2, 3}, false)}
	})
	for _, op := range []string{"dim_order_ops::_to_dim_order_copy.out", "dim_order_ops::_clone_dim_order.out"} {
		add(op+" to channels last", func(c *calls) []val {
			return c.Call(op, []out{{Rank: 4, Order: callstest.NHWC}}, c.Input(2, 3, 4, 5), false, []int{0, 2, 3, 1})
		})
		add(op+" and back", func(c *calls) []val {
			y := c.Call(op, []out{{Rank: 4, Order: callstest.NHWC}}, c.Input(2, 3, 4, 5), false, []int{0, 2, 3, 1})
			return append(y, c.Do(op, 4, y[0], false, []int{0, 1, 2, 3}))
		})
	}
	for _, perm := range [][]int{{0, 2, 3, 1}, {0, 3, 1, 2}, {3, -2, 1, 0}, {0, 1, 2, 3}} {
		add("permute", func(c *calls) []val { return []val{c.Do("aten::permute_copy.out", 4, c.Input(2, 3, 4, 5), perm)} })
		add("permute of images", func(c *calls) []val {
			y := c.Do("aten::permute_copy.out", 4, c.Convolve(c.Input(2, 3, 4, 5), 3, 3), perm)
			return []val{c.Do("aten::relu.out", 4, y), y}
		})
	}
	add("t", func(c *calls) []val { return []val{c.Do("aten::t_copy.out", 2, c.Input(2, 3))} })
	add("transpose", func(c *calls) []val { return []val{c.Do("aten::transpose_copy.int_out", 3, c.Input(2, 3, 4), -1, 1)} })
	add("view_copy", func(c *calls) []val { return []val{c.Do("aten::view_copy.out", 2, c.Input(2, 3, 4), []int{-1, 4})} })
	add("view", func(c *calls) []val {
		x := c.Input(2, 3, 4)
		return []val{c.Do("aten::relu.out", 2, c.View(x, 8, 3)), c.View(x, 24)}
	})
	add("view of images", func(c *calls) []val { return []val{c.View(c.Convolve(c.Input(1, 3, 4, 5), 3, 3), 3, 20)} })
	add("unsqueeze", func(c *calls) []val { return []val{c.Do("aten::unsqueeze_copy.out", 3, c.Input(2, 3), 1)} })
	add("squeeze", func(c *calls) []val { return []val{c.Do("aten::squeeze_copy.dim_out", 2, c.Input(2, 1, 3), 1)} })
	add("squeeze of dims", func(c *calls) []val {
		return []val{c.Do("aten::squeeze_copy.dims_out", 2, c.Input(2, 1, 3, 1), []int{1, 3})}
	})
	for n := range 12 {
		add("cat", func(c *calls) []val {
			var parts vals
			for i := range n + 1 {
				parts = append(parts, c.Input(2, 1+i%3, 3))
			}
			return []val{c.Do("aten::cat.out", 3, parts, 1)}
		})
	}
	add("cat of images", func(c *calls) []val {
		x := c.Input(1, 3, 4, 5)
		return []val{c.Do("aten::cat.out", 4, vals{c.Convolve(x, 3, 2), x, c.Constant(1, 1, 4, 5)}, -3)}
	})
	for _, bounds := range [][2]any{{nil, nil}, {1, 3}, {-3, -1}, {0, 1 << (bits.UintSize - 3)}} {
		add("slice", func(c *calls) []val {
			return []val{c.Do("aten::slice_copy.Tensor_out", 3, c.Input(2, 5, 3), 1, bounds[0], bounds[1], 1)}
		})
		add("slice of images", func(c *calls) []val {
			return []val{c.Do("aten::slice_copy.Tensor_out", 4, c.Convolve(c.Input(1, 3, 4, 5), 3, 6), 1, bounds[0], bounds[1], 1)}
		})
	}
	add("narrow", func(c *calls) []val { return []val{c.Do("aten::narrow_copy.out", 2, c.Input(5, 3), 0, 1, 3)} })
	add("select", func(c *calls) []val { return []val{c.Do("aten::select_copy.int_out", 2, c.Input(2, 5, 3), 1, -2)} })
	add("split", func(c *calls) []val {
		return c.Call("aten::split_copy.Tensor_out", []out{{Rank: 2, List: 3}}, c.Input(5, 3), 2, 0)[1:]
	})
	add("split with sizes", func(c *calls) []val {
		y := c.Call("aten::split_with_sizes_copy.out", []out{{Rank: 2, List: 2}}, c.Input(5, 3), []int{1, 4}, 0)
		return append(y, c.Do("aten::relu.out", 2, y[0]))
	})
	add("unbind", func(c *calls) []val {
		return c.Call("aten::unbind_copy.int_out", []out{{Rank: 2, List: 3}}, c.Input(2, 3, 4), 1)
	})
	add("pad", func(c *calls) []val {
		return []val{c.Do("aten::constant_pad_nd.out", 3, c.Input(2, 3, 4), []int{1, 2, 0, 3}, 0.5)}
	})
	add("pad of images", func(c *calls) []val {
		return []val{c.Convolve(c.Do("aten::constant_pad_nd.out", 4, c.Convolve(c.Input(1, 3, 4, 5), 3, 3), []int{1, 2, 0, 3}, 0), 3, 3)}
	})
	return list
}

func matmulCases() (list []loweringCase) {
	add := func(name string, build func(c *calls) []val) {
		list = append(list, loweringCase{name: name, tolerance: summed, build: func(c *calls) { c.Outputs(build(c)...) }})
	}
	flipped := func(c *calls, rows, cols int) val {
		t := c.Random([]uint8{1, 0}, rows, cols)
		return c.ConstantOf(t)
	}
	add("mm", func(c *calls) []val { return []val{c.Do("aten::mm.out", 2, c.Input(3, 7), c.Constant(7, 5))} })
	add("mm of inputs", func(c *calls) []val { return []val{c.Do("aten::mm.out", 2, c.Input(3, 7), c.Input(7, 5))} })
	add("addmm", func(c *calls) []val {
		return []val{c.Do("aten::addmm.out", 2, c.Constant(5), c.Input(3, 7), c.Constant(7, 5), 1, 1)}
	})
	add("addmm with one bias", func(c *calls) []val {
		return []val{c.Do("aten::addmm.out", 2, c.Constant(1), c.Input(3, 7), c.Constant(7, 5), 1, 1)}
	})
	add("addmm with a matrix", func(c *calls) []val {
		return []val{c.Do("aten::addmm.out", 2, c.Input(3, 5), c.Input(3, 7), c.Constant(7, 5), 1, 1)}
	})
	add("addmm with a column", func(c *calls) []val {
		return []val{c.Do("aten::addmm.out", 2, c.Constant(3, 1), c.Input(3, 7), c.Constant(7, 5), 1, 1)}
	})
	add("linear", func(c *calls) []val {
		y := c.Do("aten::linear.out", 3, c.Input(2, 3, 7), c.Constant(5, 7), c.Constant(5))
		return []val{c.Do("aten::hardtanh.out", 3, y, 0, 6)}
	})
	add("linear without bias", func(c *calls) []val { return []val{c.Do("aten::linear.out", 2, c.Input(3, 7), c.Constant(5, 7), nil)} })
	add("linear by columns", func(c *calls) []val { return []val{c.Do("aten::linear.out", 2, c.Input(3, 7), flipped(c, 5, 7), nil)} })
	add("bmm", func(c *calls) []val { return []val{c.Do("aten::bmm.out", 3, c.Input(2, 3, 7), c.Input(2, 7, 5))} })
	add("bmm of a constant", func(c *calls) []val { return []val{c.Do("aten::bmm.out", 3, c.Input(2, 3, 7), c.Constant(2, 7, 5))} })
	add("bmm of equal matrices", func(c *calls) []val {
		return []val{c.Do("aten::bmm.out", 3, c.Input(2, 3, 7), c.ConstantOf(c.Repeated(2, 7, 5)))}
	})
	add("bmm by a constant", func(c *calls) []val { return []val{c.Do("aten::bmm.out", 3, c.Constant(2, 3, 7), c.Input(2, 7, 5))} })
	return list
}
