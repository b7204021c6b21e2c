package xnnpack

import (
	"math/bits"
	"testing"

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
			c := newCalls(3)
			test.build(c)
			for i := range c.g.Calls {
				if op := c.g.Calls[i].Op; op != nil {
					seen[op.Class] = true
				}
			}
			c.check(t, test.tolerance)
			if test.nodes != "" {
				c.checkNodes(t, test.nodes)
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

var nhwc = []uint8{0, 2, 3, 1}

func loweringCases() (list []loweringCase) {
	add := func(name string, tolerance float64, build func(c *calls) []val) {
		list = append(list, loweringCase{name: name, tolerance: tolerance, build: func(c *calls) { c.outputs(build(c)...) }})
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
				c.lo = f.lo
				return []val{c.do("aten::"+f.op+".out", len(sizes), append([]any{c.input(sizes...)}, f.args...)...)}
			})
		}
		add(f.op+" channels last", rounded, func(c *calls) []val {
			c.lo = f.lo
			return c.call("aten::"+f.op+".out", []out{{rank: 4, order: nhwc}}, append([]any{c.inputIn(nhwc, 2, 3, 5, 4)}, f.args...)...)
		})
	}
	add("pow", rounded, func(c *calls) []val { return []val{c.do("aten::pow.Tensor_Scalar_out", 2, c.input(3, 4), 2)} })
	for _, dim := range []int{-1, 1} {
		add("softmax", rounded, func(c *calls) []val { return []val{c.do("aten::_softmax.out", 4, c.input(2, 3, 5, 4), dim, false)} })
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
		list = append(list, loweringCase{name: name, tolerance: rounded, build: func(c *calls) { c.outputs(build(c)...) }})
	}
	for _, op := range []string{"add", "sub", "mul", "div", "maximum", "minimum"} {
		rest := []any{}
		if op == "add" || op == "sub" {
			rest = append(rest, 1)
		}
		do := func(c *calls, rank int, args ...any) []val {
			return []val{c.do("aten::"+op+".out", rank, append(args, rest...)...)}
		}
		lo := -2.0
		if op == "div" {
			lo = 0.5
		}
		add(op, func(c *calls) []val { c.lo = lo; return do(c, 3, c.input(2, 3, 4), c.input(2, 3, 4)) })
		add(op+" broadcast", func(c *calls) []val { c.lo = lo; return do(c, 4, c.input(2, 3, 1, 4), c.input(5, 1)) })
		add(op+" constant", func(c *calls) []val { c.lo = lo; return do(c, 4, c.input(2, 3, 5, 4), c.constant(3, 1, 1)) })
		add(op+" by itself", func(c *calls) []val { c.lo = lo; x := c.input(2, 3); return do(c, 2, x, x) })
		add(op+" scalar of another type", func(c *calls) []val {
			c.lo = lo
			return do(c, 2, c.input(2, 3), c.constantOf(tensor.Of([]int64{3})).scalar(c))
		})
		add(op+" after a convolution", func(c *calls) []val {
			c.lo = lo
			y := c.convolve(c.input(1, 3, 5, 4), 3, 3)
			return do(c, 4, do(c, 4, y, c.constant(3, 1, 1))[0], c.input(1, 3, 1, 1))
		})
	}
	for _, op := range []string{"add.Scalar_out", "sub.Scalar_out", "rsub.Scalar_out", "mul.Scalar_out", "div.Scalar_out"} {
		add(op, func(c *calls) []val {
			args := []any{c.input(2, 3, 4), 1.7}
			if op[:3] != "mul" && op[:3] != "div" {
				args = append(args, 1)
			}
			return []val{c.do("aten::"+op, 3, args...)}
		})
	}
	return list
}

// scalar changes a tensor of one element to rank 0.
func (v val) scalar(c *calls) val {
	t := tensor.Make(c.tensors[v].DType, nil, nil, tensor.Static)
	t.Bind(c.tensors[v].Data)
	c.tensors[v], c.g.Values[v].Sizes, c.g.Values[v].DimOrder = t, nil, nil
	return v
}

// convolve adds a 3x3 convolution.
func (c *calls) convolve(x val, in, to int) val {
	return c.do("aten::convolution.out", 4, x, c.constant(to, in, 3, 3), c.constant(to), []int{1, 1}, []int{1, 1}, []int{1, 1}, false, []int{0, 0}, 1)
}

func moveCases() (list []loweringCase) {
	add := func(name string, build func(c *calls) []val) {
		list = append(list, loweringCase{name: name, tolerance: summed, build: func(c *calls) { c.outputs(build(c)...) }})
	}
	for _, op := range []string{"aten::alias_copy.out", "aten::detach_copy.out", "aten::lift_fresh_copy.out"} {
		add(op, func(c *calls) []val { return []val{c.do(op, 3, c.input(2, 3, 4))} })
	}
	add("clone", func(c *calls) []val { return []val{c.do("aten::clone.out", 3, c.input(2, 3, 4), nil)} })
	add("_to_copy", func(c *calls) []val { return []val{c.do("aten::_to_copy.out", 3, c.input(2, 3, 4), false, nil)} })
	add("expand_copy", func(c *calls) []val {
		return []val{c.do("aten::expand_copy.out", 2, c.input(2, 3), []int{2, 3}, false)}
	})
	for _, op := range []string{"dim_order_ops::_to_dim_order_copy.out", "dim_order_ops::_clone_dim_order.out"} {
		add(op+" to channels last", func(c *calls) []val {
			return c.call(op, []out{{rank: 4, order: nhwc}}, c.input(2, 3, 4, 5), false, []int{0, 2, 3, 1})
		})
		add(op+" and back", func(c *calls) []val {
			y := c.call(op, []out{{rank: 4, order: nhwc}}, c.input(2, 3, 4, 5), false, []int{0, 2, 3, 1})
			return append(y, c.do(op, 4, y[0], false, []int{0, 1, 2, 3}))
		})
	}
	for _, perm := range [][]int{{0, 2, 3, 1}, {0, 3, 1, 2}, {3, -2, 1, 0}, {0, 1, 2, 3}} {
		add("permute", func(c *calls) []val { return []val{c.do("aten::permute_copy.out", 4, c.input(2, 3, 4, 5), perm)} })
		add("permute of images", func(c *calls) []val {
			y := c.do("aten::permute_copy.out", 4, c.convolve(c.input(2, 3, 4, 5), 3, 3), perm)
			return []val{c.do("aten::relu.out", 4, y), y}
		})
	}
	add("t", func(c *calls) []val { return []val{c.do("aten::t_copy.out", 2, c.input(2, 3))} })
	add("transpose", func(c *calls) []val { return []val{c.do("aten::transpose_copy.int_out", 3, c.input(2, 3, 4), -1, 1)} })
	add("view_copy", func(c *calls) []val { return []val{c.do("aten::view_copy.out", 2, c.input(2, 3, 4), []int{-1, 4})} })
	add("view", func(c *calls) []val {
		x := c.input(2, 3, 4)
		return []val{c.do("aten::relu.out", 2, c.view(x, 8, 3)), c.view(x, 24)}
	})
	add("view of images", func(c *calls) []val { return []val{c.view(c.convolve(c.input(1, 3, 4, 5), 3, 3), 3, 20)} })
	add("unsqueeze", func(c *calls) []val { return []val{c.do("aten::unsqueeze_copy.out", 3, c.input(2, 3), 1)} })
	add("squeeze", func(c *calls) []val { return []val{c.do("aten::squeeze_copy.dim_out", 2, c.input(2, 1, 3), 1)} })
	add("squeeze of dims", func(c *calls) []val {
		return []val{c.do("aten::squeeze_copy.dims_out", 2, c.input(2, 1, 3, 1), []int{1, 3})}
	})
	for n := range 12 {
		add("cat", func(c *calls) []val {
			var parts vals
			for i := range n + 1 {
				parts = append(parts, c.input(2, 1+i%3, 3))
			}
			return []val{c.do("aten::cat.out", 3, parts, 1)}
		})
	}
	add("cat of images", func(c *calls) []val {
		x := c.input(1, 3, 4, 5)
		return []val{c.do("aten::cat.out", 4, vals{c.convolve(x, 3, 2), x, c.constant(1, 1, 4, 5)}, -3)}
	})
	for _, bounds := range [][2]any{{nil, nil}, {1, 3}, {-3, -1}, {0, 1 << (bits.UintSize - 3)}} {
		add("slice", func(c *calls) []val {
			return []val{c.do("aten::slice_copy.Tensor_out", 3, c.input(2, 5, 3), 1, bounds[0], bounds[1], 1)}
		})
		add("slice of images", func(c *calls) []val {
			return []val{c.do("aten::slice_copy.Tensor_out", 4, c.convolve(c.input(1, 3, 4, 5), 3, 6), 1, bounds[0], bounds[1], 1)}
		})
	}
	add("narrow", func(c *calls) []val { return []val{c.do("aten::narrow_copy.out", 2, c.input(5, 3), 0, 1, 3)} })
	add("select", func(c *calls) []val { return []val{c.do("aten::select_copy.int_out", 2, c.input(2, 5, 3), 1, -2)} })
	add("split", func(c *calls) []val {
		return c.call("aten::split_copy.Tensor_out", []out{{rank: 2, list: 3}}, c.input(5, 3), 2, 0)[1:]
	})
	add("split with sizes", func(c *calls) []val {
		y := c.call("aten::split_with_sizes_copy.out", []out{{rank: 2, list: 2}}, c.input(5, 3), []int{1, 4}, 0)
		return append(y, c.do("aten::relu.out", 2, y[0]))
	})
	add("unbind", func(c *calls) []val {
		return c.call("aten::unbind_copy.int_out", []out{{rank: 2, list: 3}}, c.input(2, 3, 4), 1)
	})
	add("pad", func(c *calls) []val {
		return []val{c.do("aten::constant_pad_nd.out", 3, c.input(2, 3, 4), []int{1, 2, 0, 3}, 0.5)}
	})
	add("pad of images", func(c *calls) []val {
		return []val{c.convolve(c.do("aten::constant_pad_nd.out", 4, c.convolve(c.input(1, 3, 4, 5), 3, 3), []int{1, 2, 0, 3}, 0), 3, 3)}
	})
	return list
}

func matmulCases() (list []loweringCase) {
	add := func(name string, build func(c *calls) []val) {
		list = append(list, loweringCase{name: name, tolerance: summed, build: func(c *calls) { c.outputs(build(c)...) }})
	}
	flipped := func(c *calls, rows, cols int) val {
		t := c.random([]uint8{1, 0}, rows, cols)
		return c.constantOf(t)
	}
	add("mm", func(c *calls) []val { return []val{c.do("aten::mm.out", 2, c.input(3, 7), c.constant(7, 5))} })
	add("mm of inputs", func(c *calls) []val { return []val{c.do("aten::mm.out", 2, c.input(3, 7), c.input(7, 5))} })
	add("addmm", func(c *calls) []val {
		return []val{c.do("aten::addmm.out", 2, c.constant(5), c.input(3, 7), c.constant(7, 5), 1, 1)}
	})
	add("addmm with one bias", func(c *calls) []val {
		return []val{c.do("aten::addmm.out", 2, c.constant(1), c.input(3, 7), c.constant(7, 5), 1, 1)}
	})
	add("addmm with a matrix", func(c *calls) []val {
		return []val{c.do("aten::addmm.out", 2, c.input(3, 5), c.input(3, 7), c.constant(7, 5), 1, 1)}
	})
	add("addmm with a column", func(c *calls) []val {
		return []val{c.do("aten::addmm.out", 2, c.constant(3, 1), c.input(3, 7), c.constant(7, 5), 1, 1)}
	})
	add("linear", func(c *calls) []val {
		y := c.do("aten::linear.out", 3, c.input(2, 3, 7), c.constant(5, 7), c.constant(5))
		return []val{c.do("aten::hardtanh.out", 3, y, 0, 6)}
	})
	add("linear without bias", func(c *calls) []val { return []val{c.do("aten::linear.out", 2, c.input(3, 7), c.constant(5, 7), nil)} })
	add("linear by columns", func(c *calls) []val { return []val{c.do("aten::linear.out", 2, c.input(3, 7), flipped(c, 5, 7), nil)} })
	add("bmm", func(c *calls) []val { return []val{c.do("aten::bmm.out", 3, c.input(2, 3, 7), c.input(2, 7, 5))} })
	add("bmm of a constant", func(c *calls) []val { return []val{c.do("aten::bmm.out", 3, c.input(2, 3, 7), c.constant(2, 7, 5))} })
	add("bmm of equal matrices", func(c *calls) []val {
		return []val{c.do("aten::bmm.out", 3, c.input(2, 3, 7), c.constantOf(c.repeated(2, 7, 5)))}
	})
	add("bmm by a constant", func(c *calls) []val { return []val{c.do("aten::bmm.out", 3, c.constant(2, 3, 7), c.input(2, 7, 5))} })
	return list
}
