package lowering_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestLoweringDynamic runs graphs at sizes up to the declared ones.
func TestLoweringDynamic(t *testing.T) {
	for _, test := range []struct {
		name  string
		sizes [][]int // of the input
		build func(c *calls, x val) val
	}{
		{"images", [][]int{{2, 3, 12, 10}, {1, 3, 12, 10}, {2, 3, 5, 7}, {2, 3, 12, 10}}, func(c *calls, x val) val {
			y := c.Do("aten::relu.out", 4, c.Convolve(x, 3, 4))
			y = c.Do("aten::add.out", 4, y, c.Do("aten::mean.out", 4, y, []int{2, 3}, true, nil), 1)
			return c.Do("aten::cat.out", 4, vals{y, x}, 1)
		}},
		{"rows", [][]int{{8, 6}, {1, 6}, {5, 6}}, func(c *calls, x val) val {
			y := c.Do("aten::linear.out", 2, x, c.Constant(6, 6), c.Constant(6))
			return c.Do("aten::_softmax.out", 2, c.Do("aten::mul.out", 2, y, x), -1, false)
		}},
		{"sequences", [][]int{{2, 9, 6}, {1, 9, 6}, {2, 4, 6}}, func(c *calls, x val) val {
			y := c.Do("aten::view_copy.out", 2, x, []int{-1, 6})
			return c.Do("aten::permute_copy.out", 2, c.Do("aten::gelu.out", 2, y, "none"), []int{1, 0})
		}},
		{"attention", [][]int{{2, 9, 6}, {2, 1, 6}, {1, 4, 6}}, func(c *calls, x val) val {
			return c.Do("aten::bmm.out", 3, c.Do("aten::bmm.out", 3, x, c.Do("aten::transpose_copy.int_out", 3, x, 1, 2)), x)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := callstest.New(5)
			c.Outputs(test.build(c, c.Input(test.sizes[0]...)))
			c.Dynamic()
			for _, e := range engines() {
				runCallsAt(t, c, e, test.sizes)
			}
		})
	}
}

// A product of batches has no result if their sizes differ, also if the matrices of one batch are equal.
func TestLoweringDynamicBatch(t *testing.T) {
	c := callstest.New(5)
	c.Outputs(c.Do("aten::bmm.out", 3, c.Input(4, 3, 7), c.ConstantOf(c.Repeated(4, 7, 5))))
	c.Dynamic()
	for _, e := range engines() {
		runCallsAt(t, c, e, [][]int{{4, 3, 7}, {4, 2, 7}})
		img, err := e.compile(c.Graph)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Tensors[c.Graph.Inputs[0]].Resize([]int{2, 3, 7}); err != nil {
			t.Fatal(err)
		}
		if err := execute(img, c.Arguments()); !errors.Is(err, delegate.ErrArgument) {
			t.Errorf("%s: got %v, want an error of the argument", e.name, err)
		}
		img.Close()
	}
}

// runCallsAt runs the graph on one unit at several sizes of its input.
func runCallsAt(t *testing.T, c *calls, e engine, sizes [][]int) {
	for i := range c.Graph.Calls {
		if reason := rejected(c.Graph, i); reason != "" {
			t.Fatalf("%s: got %q, want it accepted", c.Graph.Calls[i].Place, reason)
		}
	}
	img, err := e.compile(c.Graph)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	args := c.Arguments()
	for _, s := range sizes {
		if err := c.Tensors[c.Graph.Inputs[0]].Resize(s); err != nil {
			t.Fatal(err)
		}
		for _, again := range c.Again {
			if err := again(); err != nil {
				t.Fatal(err)
			}
		}
		if err := u.Execute(context.Background(), args); err != nil {
			t.Fatalf("%s at %v: %v", e.name, s, err)
		}
		if err := callstest.Near(args[1].Tensor, c.Tensors[c.Graph.Outputs[0]], summed); err != nil {
			t.Errorf("%s at %v: %v", e.name, s, err)
		}
	}
}

// TestLoweringRefuses checks the reasons for calls without a node, and that the graphs do not compile.
func TestLoweringRefuses(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		build        func(c *calls) val
	}{
		{"unsupported operator", "no XNNPACK node", func(c *calls) val { return c.Do("aten::reciprocal.out", 1, c.Input(3)) }},
		{"alpha 2", "alpha 2", func(c *calls) val { return c.Do("aten::add.out", 1, c.Input(3), c.Input(3), 2) }},
		{"infinity", "the number +Inf", func(c *calls) val { return c.Do("aten::mul.Scalar_out", 1, c.Input(3), math.Inf(1)) }},
		{"division by 0", "the number 0", func(c *calls) val { return c.Do("aten::div.Scalar_out", 1, c.Input(3), 0.0) }},
		{"gelu with tanh", "tanh", func(c *calls) val { return c.Do("aten::gelu.out", 1, c.Input(3), "tanh") }},
		{"exponent 3", "exponent 3", func(c *calls) val { return c.Do("aten::pow.Tensor_Scalar_out", 1, c.Input(3), 3) }},
		{"empty range", "bounds 1 to 1", func(c *calls) val { return c.Do("aten::clamp.out", 1, c.Input(3), 1, 1) }},
		{"negative ELU alpha", "alpha", func(c *calls) val { return c.Do("aten::elu.out", 1, c.Input(3), -1.0, 1, 1) }},
		{"softmax of rows", "dimension 0", func(c *calls) val { return c.Do("aten::_softmax.out", 2, c.Input(3, 4), 0, false) }},
		{"slice with a step", "step 2", func(c *calls) val { return c.Do("aten::slice_copy.Tensor_out", 1, c.Input(5), 0, 0, 5, 2) }},
		{"no elements", "sizes [0 3]", func(c *calls) val { return c.Do("aten::relu.out", 2, c.Input(0, 3)) }},
		{"seven dimensions", "7 dimensions", func(c *calls) val { return c.Do("aten::relu.out", 7, c.Input(1, 1, 1, 1, 1, 1, 2)) }},
		{"unsupported dim order", "dim order", func(c *calls) val {
			return c.Call("aten::relu.out", []out{{Rank: 3, Order: []uint8{2, 1, 0}}}, c.InputIn([]uint8{2, 1, 0}, 2, 3, 4))[0]
		}},
		{"only constants", "all operands are constants", func(c *calls) val { return c.Do("aten::relu.out", 1, c.Constant(3)) }},
		{"mean of rows", "mean over dimensions [1]", func(c *calls) val { return c.Do("aten::mean.out", 4, c.Input(1, 2, 3, 4), []int{1}, true, nil) }},
		{"repeated sizes", "repeated", func(c *calls) val { return c.Do("aten::expand_copy.out", 2, c.Input(1, 3), []int{4, 3}, false) }},
		{"computed filter", "filter is not a constant", func(c *calls) val {
			return c.Do("aten::linear.out", 2, c.Input(3, 4), c.Input(5, 4), nil)
		}},
		{"pool of one element", "one element", func(c *calls) val {
			return c.Do("aten::avg_pool2d.out", 4, c.Input(1, 2, 5, 5), []int{1, 1}, []int{1, 1}, []int{0, 0}, false, true, nil)
		}},
		{"indices are read", "other than the first", func(c *calls) val {
			y := c.Call("aten::max_pool2d_with_indices.out", []out{{Rank: 4}, {Rank: 4, DType: tensor.Int64}}, c.Input(1, 2, 5, 5),
				[]int{2, 2}, []int{2, 2}, []int{0, 0}, []int{1, 1}, false)
			c.Outputs(y[1])
			return y[0]
		}},
		{"resize by 1.3", "scale", func(c *calls) val {
			return c.Do("aten::upsample_bilinear2d.vec_out", 4, c.Input(1, 2, 5, 5), nil, false, []float64{1.3, 1.3})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := callstest.New(5)
			c.Outputs(test.build(c))
			last := len(c.Graph.Calls) - 1
			if reason := rejected(c.Graph, last); !strings.Contains(reason, test.reason) {
				t.Errorf("got %q, want %q", reason, test.reason)
			}
			if img, err := engines()[0].compile(c.Graph); err == nil {
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
		{"slice", func(c *calls) val { return c.Do("aten::slice_copy.Tensor_out", 2, c.Input(5, 3), 0, 0, 3, 1) }},
		{"select", func(c *calls) val { return c.Do("aten::select_copy.int_out", 1, c.Input(5, 3), 0, 1) }},
		{"unsqueeze", func(c *calls) val { return c.Do("aten::unsqueeze_copy.out", 3, c.Input(5, 3), 0) }},
		{"view", func(c *calls) val { return c.View(c.Input(5, 3), 15) }},
		{"mean without its dimensions", func(c *calls) val { return c.Do("aten::mean.out", 2, c.Input(1, 2, 3, 4), []int{2, 3}, false, nil) }},
		{"resize", func(c *calls) val {
			return c.Do("aten::upsample_bilinear2d.vec_out", 4, c.Input(1, 2, 5, 5), []int{7, 7}, false, nil)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := callstest.New(5)
			c.Outputs(test.build(c))
			c.Dynamic()
			if reason := rejected(c.Graph, 0); !strings.Contains(reason, "dynamic sizes") {
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
		c := callstest.New(5)
		c.Outputs(c.Dequantize(c.Quantize(c.Input(2, 3), 0.1, 7), 0.1, 7))
		for v := range c.Graph.Values {
			if x := &c.Graph.Values[v]; x.Kind == tensor.KindInt && x.Int == 7 {
				x.Int = test.zero
			}
		}
		for i := range c.Graph.Calls {
			if reason := rejected(c.Graph, i); (reason == "") != test.accepted {
				t.Errorf("zero point %d, call %d: got %q, accepted: want %v", test.zero, i, reason, test.accepted)
			}
		}
	}
}
