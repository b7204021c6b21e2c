package lowering_test

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// imageCases returns convolutions and batch norms.
func imageCases() (list []loweringCase) {
	add := func(name string, build func(c *calls) []val) {
		list = append(list, loweringCase{name: name, tolerance: summed, build: func(c *calls) { c.Outputs(build(c)...) }})
	}
	for _, g := range []struct {
		name                          string
		in, to, groups, h, w          int
		stride, pad, dilation, adjust []int
		transposed                    bool
	}{
		{"1x1", 3, 5, 1, 1, 1, []int{1, 1}, []int{0, 0}, []int{1, 1}, []int{0, 0}, false},
		{"3x2 stride 2", 3, 5, 1, 3, 2, []int{2, 1}, []int{1, 0}, []int{1, 2}, []int{0, 0}, false},
		{"one number for both", 3, 5, 1, 3, 3, []int{2}, []int{1}, []int{1}, []int{0}, false},
		{"groups", 4, 6, 2, 3, 3, []int{1, 1}, []int{1, 1}, []int{1, 1}, []int{0, 0}, false},
		{"depthwise", 6, 6, 6, 3, 3, []int{1, 1}, []int{1, 1}, []int{1, 1}, []int{0, 0}, false},
		{"depthwise of two outputs a channel", 3, 6, 3, 3, 3, []int{1, 1}, []int{1, 1}, []int{1, 1}, []int{0, 0}, false},
		{"depthwise 7x7", 6, 6, 6, 7, 7, []int{1, 1}, []int{3, 3}, []int{1, 1}, []int{0, 0}, false},
		{"one channel", 1, 4, 1, 3, 3, []int{1, 1}, []int{1, 1}, []int{1, 1}, []int{0, 0}, false},
		{"transposed", 4, 6, 1, 3, 3, []int{2, 2}, []int{1, 1}, []int{1, 1}, []int{1, 1}, true},
		{"transposed in groups", 4, 6, 2, 3, 2, []int{2, 1}, []int{1, 0}, []int{1, 1}, []int{0, 0}, true},
	} {
		sizes := []int{g.to, g.in / g.groups, g.h, g.w}
		if g.transposed {
			sizes = []int{g.in, g.to / g.groups, g.h, g.w}
		}
		rest := []any{g.stride, g.pad, g.dilation, g.transposed, g.adjust, g.groups}
		add("convolution "+g.name, func(c *calls) []val {
			return []val{c.Do("aten::convolution.out", 4, append([]any{c.Input(2, g.in, 9, 8), c.Constant(sizes...), c.Constant(g.to)}, rest...)...)}
		})
		add("convolution channels last "+g.name, func(c *calls) []val {
			filter := c.ConstantOf(c.Random(callstest.NHWC, sizes...))
			return c.Call("aten::convolution.out", []out{{Rank: 4, Order: callstest.NHWC}}, append([]any{c.InputIn(callstest.NHWC, 2, g.in, 9, 8), filter, nil}, rest...)...)
		})
		add("convolution of rows "+g.name, func(c *calls) []val {
			filter := c.Constant(sizes[0], sizes[1], g.w)
			one := func(list []int) []int { return list[len(list)-1:] }
			y := c.Do("aten::convolution.out", 3, c.Input(2, g.in, 11), filter, c.Constant(g.to), one(g.stride), one(g.pad), one(g.dilation),
				g.transposed, one(g.adjust), g.groups)
			return []val{c.Do("aten::relu.out", 3, y)}
		})
	}
	for rank := 2; rank <= 4; rank++ {
		add("batch norm", func(c *calls) []val {
			sizes := []int{2, 5, 4, 3}[:rank]
			lo := c.Lo
			c.Lo = 0.5
			variance := c.Random(nil, 5)
			c.Lo = lo
			none := out{Rank: 1}
			return c.Call("aten::_native_batch_norm_legit_no_training.out", []out{{Rank: rank}, none, none}, c.Input(sizes...), c.Constant(5), nil,
				c.Constant(5), c.ConstantOf(variance), 0.1, 1e-5)[:1]
		})
	}
	add("clamps in producers", func(c *calls) []val {
		y := c.Do("aten::relu.out", 4, c.Convolve(c.Input(1, 3, 6, 5), 3, 4))
		return []val{c.Do("aten::hardtanh.out", 4, c.Do("aten::add.out", 4, y, y, 1), 0, 6)}
	})
	add("result with two readers", func(c *calls) []val {
		x := c.Convolve(c.Input(1, 3, 6, 5), 3, 4)
		y := c.Do("aten::relu.out", 4, x)
		return []val{x, y, c.Convolve(y, 4, 3)}
	})
	add("copies of an input and of a result", func(c *calls) []val {
		x := c.Input(1, 3, 6, 5)
		y := c.Do("aten::relu.out", 4, x)
		return []val{c.Do("aten::clone.out", 4, x, nil), y, c.Do("aten::clone.out", 4, y, nil)}
	})
	return list
}

// poolCases returns pools, means and resizes.
func poolCases() (list []loweringCase) {
	add := func(name string, build func(c *calls) []val) {
		list = append(list, loweringCase{name: name, tolerance: summed, build: func(c *calls) { c.Outputs(build(c)...) }})
	}
	pool := func(c *calls, args ...any) []val {
		return []val{c.Do("aten::avg_pool2d.out", 4, append([]any{c.Input(2, 3, 9, 8)}, args...)...)}
	}
	add("avg_pool2d", func(c *calls) []val { return pool(c, []int{3, 2}, []int{2, 1}, []int{0, 0}, false, true, nil) })
	add("avg_pool2d padded", func(c *calls) []val { return pool(c, []int{3, 3}, []int{2, 1}, []int{1, 1}, false, false, nil) })
	add("avg_pool2d of padding that only its divisor counts", func(c *calls) []val {
		return pool(c, []int{1, 3}, []int{1, 2}, []int{0, 1}, false, false, 3)
	})
	add("avg_pool2d of padding", func(c *calls) []val { return pool(c, []int{3, 3}, []int{}, []int{1, 0}, false, true, 9) })
	indices := out{Rank: 4, DType: tensor.Int64}
	maxima := func(c *calls, args ...any) []val {
		return c.Call("aten::max_pool2d_with_indices.out", []out{{Rank: 4}, indices}, append([]any{c.Input(2, 3, 9, 8)}, args...)...)[:1]
	}
	add("max_pool2d", func(c *calls) []val { return maxima(c, []int{3, 2}, []int{2, 1}, []int{1, 1}, []int{1, 1}, false) })
	add("max_pool2d dilated", func(c *calls) []val { return maxima(c, []int{3, 2}, []int{2, 1}, []int{0, 0}, []int{2, 1}, false) })
	add("max_pool2d rounded up", func(c *calls) []val { return maxima(c, []int{3}, []int{2}, []int{0}, []int{1}, true) })
	add("mean", func(c *calls) []val {
		return []val{c.Do("aten::mean.out", 4, c.Input(2, 3, 9, 8), []int{-1, -2}, true, nil)}
	})
	add("mean of images", func(c *calls) []val {
		return []val{c.Do("aten::mean.out", 2, c.Convolve(c.Input(2, 3, 9, 8), 3, 4), []int{2, 3}, false, nil)}
	})
	add("mean and linear", func(c *calls) []val {
		y := c.Do("aten::mean.out", 4, c.Convolve(c.Input(2, 3, 9, 8), 3, 4), []int{2, 3}, true, nil)
		return []val{c.Do("aten::linear.out", 2, c.View(y, 2, 4), c.Constant(5, 4), nil)}
	})
	for _, size := range [][]int{{1, 1}, {3, 2}, {9, 8}} {
		add("adaptive pool", func(c *calls) []val {
			return []val{c.Do("aten::_adaptive_avg_pool2d.out", 4, c.Input(2, 3, 9, 8), size)}
		})
	}
	for _, corners := range []bool{false, true} {
		add("resize", func(c *calls) []val {
			return []val{c.Do("aten::upsample_bilinear2d.vec_out", 4, c.Input(2, 3, 5, 6), []int{9, 13}, corners, nil)}
		})
		add("resize by a factor", func(c *calls) []val {
			return []val{c.Do("aten::upsample_bilinear2d.vec_out", 4, c.Input(2, 3, 5, 6), nil, corners, []float64{2, 1.5})}
		})
	}
	return list
}
