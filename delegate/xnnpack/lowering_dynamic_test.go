package xnnpack

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// dynamic gives all non-constant tensors dynamic sizes, bounded by the declared ones.
func (c *calls) dynamic() {
	for v := range c.g.Values {
		if x := &c.g.Values[v]; x.Kind == tensor.KindTensor && !x.IsConst() {
			x.Dynamism = tensor.DynamicBound
		}
	}
	for _, v := range c.g.Inputs {
		t := tensor.Make(tensor.Float32, c.g.Values[v].Sizes, c.g.Values[v].DimOrder, tensor.DynamicBound)
		t.Bind(slices.Clone(c.tensors[v].Data))
		*c.tensors[v] = *t
	}
}

// TestLoweringDynamic runs graphs at sizes up to the declared ones.
func TestLoweringDynamic(t *testing.T) {
	for _, test := range []struct {
		name  string
		sizes [][]int // of the input
		build func(c *calls, x val) val
	}{
		{"images", [][]int{{2, 3, 12, 10}, {1, 3, 12, 10}, {2, 3, 5, 7}, {2, 3, 12, 10}}, func(c *calls, x val) val {
			y := c.do("aten::relu.out", 4, c.convolve(x, 3, 4))
			y = c.do("aten::add.out", 4, y, c.do("aten::mean.out", 4, y, []int{2, 3}, true, nil), 1)
			return c.do("aten::cat.out", 4, vals{y, x}, 1)
		}},
		{"rows", [][]int{{8, 6}, {1, 6}, {5, 6}}, func(c *calls, x val) val {
			y := c.do("aten::linear.out", 2, x, c.constant(6, 6), c.constant(6))
			return c.do("aten::_softmax.out", 2, c.do("aten::mul.out", 2, y, x), -1, false)
		}},
		{"sequences", [][]int{{2, 9, 6}, {1, 9, 6}, {2, 4, 6}}, func(c *calls, x val) val {
			y := c.do("aten::view_copy.out", 2, x, []int{-1, 6})
			return c.do("aten::permute_copy.out", 2, c.do("aten::gelu.out", 2, y, "none"), []int{1, 0})
		}},
		{"attention", [][]int{{2, 9, 6}, {2, 1, 6}, {1, 4, 6}}, func(c *calls, x val) val {
			return c.do("aten::bmm.out", 3, c.do("aten::bmm.out", 3, x, c.do("aten::transpose_copy.int_out", 3, x, 1, 2)), x)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCalls(5)
			c.outputs(test.build(c, c.input(test.sizes[0]...)))
			c.dynamic()
			for _, b := range compilers() {
				c.runSizes(t, b, test.sizes)
			}
		})
	}
}

// A product of batches has no result if their sizes differ, also if the matrices of one batch are equal.
func TestLoweringDynamicBatch(t *testing.T) {
	c := newCalls(5)
	c.outputs(c.do("aten::bmm.out", 3, c.input(4, 3, 7), c.constantOf(c.repeated(4, 7, 5))))
	c.dynamic()
	for _, b := range compilers() {
		c.runSizes(t, b, [][]int{{4, 3, 7}, {4, 2, 7}})
		img, err := b.CompileGraph(context.Background(), c.g)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.tensors[c.g.Inputs[0]].Resize([]int{2, 3, 7}); err != nil {
			t.Fatal(err)
		}
		if err := executeImage(img, c.arguments()); !errors.Is(err, delegate.ErrArgument) {
			t.Errorf("%s: got %v, want an error of the argument", b.Engine, err)
		}
		img.Close()
	}
}

// runSizes runs the graph on one unit at several sizes of its input.
func (c *calls) runSizes(t *testing.T, b Backend, sizes [][]int) {
	for i := range c.g.Calls {
		if reason := b.Accepts(c.g, i); reason != "" {
			t.Fatalf("%s: got %q, want it accepted", c.g.Calls[i].Place, reason)
		}
	}
	img, err := b.CompileGraph(context.Background(), c.g)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	args := c.arguments()
	for _, s := range sizes {
		if err := c.tensors[c.g.Inputs[0]].Resize(s); err != nil {
			t.Fatal(err)
		}
		for _, again := range c.again {
			if err := again(); err != nil {
				t.Fatal(err)
			}
		}
		if err := u.Execute(context.Background(), args); err != nil {
			t.Fatalf("%s at %v: %v", b.Engine, s, err)
		}
		if err := near(args[1].Tensor, c.tensors[c.g.Outputs[0]], summed); err != nil {
			t.Errorf("%s at %v: %v", b.Engine, s, err)
		}
	}
}

// TestLoweringRefuses checks the reasons for calls without a node, and that the graphs do not compile.
func TestLoweringRefuses(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		build        func(c *calls) val
	}{
		{"unsupported operator", "no XNNPACK node", func(c *calls) val { return c.do("aten::reciprocal.out", 1, c.input(3)) }},
		{"alpha 2", "alpha 2", func(c *calls) val { return c.do("aten::add.out", 1, c.input(3), c.input(3), 2) }},
		{"infinity", "the number +Inf", func(c *calls) val { return c.do("aten::mul.Scalar_out", 1, c.input(3), math.Inf(1)) }},
		{"division by 0", "the number 0", func(c *calls) val { return c.do("aten::div.Scalar_out", 1, c.input(3), 0.0) }},
		{"gelu with tanh", "tanh", func(c *calls) val { return c.do("aten::gelu.out", 1, c.input(3), "tanh") }},
		{"exponent 3", "exponent 3", func(c *calls) val { return c.do("aten::pow.Tensor_Scalar_out", 1, c.input(3), 3) }},
		{"empty range", "bounds 1 to 1", func(c *calls) val { return c.do("aten::clamp.out", 1, c.input(3), 1, 1) }},
		{"negative ELU alpha", "alpha", func(c *calls) val { return c.do("aten::elu.out", 1, c.input(3), -1.0, 1, 1) }},
		{"softmax of rows", "dimension 0", func(c *calls) val { return c.do("aten::_softmax.out", 2, c.input(3, 4), 0, false) }},
		{"slice with a step", "step 2", func(c *calls) val { return c.do("aten::slice_copy.Tensor_out", 1, c.input(5), 0, 0, 5, 2) }},
		{"no elements", "sizes [0 3]", func(c *calls) val { return c.do("aten::relu.out", 2, c.input(0, 3)) }},
		{"seven dimensions", "7 dimensions", func(c *calls) val { return c.do("aten::relu.out", 7, c.input(1, 1, 1, 1, 1, 1, 2)) }},
		{"unsupported dim order", "dim order", func(c *calls) val {
			return c.call("aten::relu.out", []out{{rank: 3, order: []uint8{2, 1, 0}}}, c.inputIn([]uint8{2, 1, 0}, 2, 3, 4))[0]
		}},
		{"only constants", "all operands are constants", func(c *calls) val { return c.do("aten::relu.out", 1, c.constant(3)) }},
		{"mean of rows", "mean over dimensions [1]", func(c *calls) val { return c.do("aten::mean.out", 4, c.input(1, 2, 3, 4), []int{1}, true, nil) }},
		{"repeated sizes", "repeated", func(c *calls) val { return c.do("aten::expand_copy.out", 2, c.input(1, 3), []int{4, 3}, false) }},
		{"computed filter", "filter is not a constant", func(c *calls) val {
			return c.do("aten::linear.out", 2, c.input(3, 4), c.input(5, 4), nil)
		}},
		{"pool of one element", "one element", func(c *calls) val {
			return c.do("aten::avg_pool2d.out", 4, c.input(1, 2, 5, 5), []int{1, 1}, []int{1, 1}, []int{0, 0}, false, true, nil)
		}},
		{"indices are read", "other than the first", func(c *calls) val {
			y := c.call("aten::max_pool2d_with_indices.out", []out{{rank: 4}, {rank: 4, dtype: tensor.Int64}}, c.input(1, 2, 5, 5),
				[]int{2, 2}, []int{2, 2}, []int{0, 0}, []int{1, 1}, false)
			c.outputs(y[1])
			return y[0]
		}},
		{"resize by 1.3", "scale", func(c *calls) val {
			return c.do("aten::upsample_bilinear2d.vec_out", 4, c.input(1, 2, 5, 5), nil, false, []float64{1.3, 1.3})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCalls(5)
			c.outputs(test.build(c))
			last := len(c.g.Calls) - 1
			if reason := (Backend{}).Accepts(c.g, last); !strings.Contains(reason, test.reason) {
				t.Errorf("got %q, want %q", reason, test.reason)
			}
			if img, err := (Backend{}).CompileGraph(context.Background(), c.g); err == nil {
				img.Close()
				t.Error("the graph compiles, want an error")
			}
		})
	}
}

// TestLoweringRefusesDynamic checks the reason for dynamic sizes in nodes that store sizes.
func TestLoweringRefusesDynamic(t *testing.T) {
	for _, test := range []struct {
		name  string
		build func(c *calls) val
	}{
		{"slice", func(c *calls) val { return c.do("aten::slice_copy.Tensor_out", 2, c.input(5, 3), 0, 0, 3, 1) }},
		{"select", func(c *calls) val { return c.do("aten::select_copy.int_out", 1, c.input(5, 3), 0, 1) }},
		{"unsqueeze", func(c *calls) val { return c.do("aten::unsqueeze_copy.out", 3, c.input(5, 3), 0) }},
		{"view", func(c *calls) val { return c.view(c.input(5, 3), 15) }},
		{"mean without its dimensions", func(c *calls) val { return c.do("aten::mean.out", 2, c.input(1, 2, 3, 4), []int{2, 3}, false, nil) }},
		{"resize", func(c *calls) val {
			return c.do("aten::upsample_bilinear2d.vec_out", 4, c.input(1, 2, 5, 5), []int{7, 7}, false, nil)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCalls(5)
			c.outputs(test.build(c))
			c.dynamic()
			if reason := (Backend{}).Accepts(c.g, 0); !strings.Contains(reason, "dynamic sizes") {
				t.Errorf("got %q, want %q in it", reason, "dynamic sizes")
			}
		})
	}
}

// TestLoweringRefusesZeroPoints checks that a zero point is compared with those of the type, not with its low bits.
func TestLoweringRefusesZeroPoints(t *testing.T) {
	for _, test := range []struct {
		zero     int64
		accepted bool
	}{{0, true}, {127, true}, {-128, true}, {128, false}, {1 << 32, false}, {-1 << 32, false}, {math.MaxInt64, false},
		{math.MinInt64, false}} {
		c := newCalls(5)
		c.outputs(c.numbers(c.codes(c.input(2, 3), 0.1, 7), 0.1, 7))
		for v := range c.g.Values {
			if x := &c.g.Values[v]; x.Kind == tensor.KindInt && x.Int == 7 {
				x.Int = test.zero
			}
		}
		for i := range c.g.Calls {
			if reason := (Backend{}).Accepts(c.g, i); (reason == "") != test.accepted {
				t.Errorf("zero point %d, call %d: got %q, accepted: want %v", test.zero, i, reason, test.accepted)
			}
		}
	}
}
