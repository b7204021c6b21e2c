package xnnpack

import (
	"fmt"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// layer is a convolution of an image with a square kernel, or of a sequence if height is 0.
type layer struct {
	name                string
	in, out             int // channels
	height, width       int
	kernel, stride, pad int
	groups              int
	transposed          bool
}

func convolutionLines() (list []line) {
	for _, l := range []layer{
		{"dense 3x3", 64, 64, 56, 56, 3, 1, 1, 1, false},
		{"dense 3x3 deep", 256, 256, 7, 7, 3, 1, 1, 1, false},
		{"dense 3x3 stride 2, stem", 3, 32, 224, 224, 3, 2, 1, 1, false},
		{"pointwise narrow", 144, 24, 56, 56, 1, 1, 0, 1, false},
		{"pointwise wide", 96, 576, 14, 14, 1, 1, 0, 1, false},
		{"pointwise deep", 960, 160, 7, 7, 1, 1, 0, 1, false},
		{"pointwise stride 2", 64, 128, 56, 56, 1, 2, 0, 1, false},
		{"depthwise 3x3", 144, 144, 56, 56, 3, 1, 1, 144, false},
		{"depthwise 3x3 small", 384, 384, 14, 14, 3, 1, 1, 384, false},
		{"depthwise 3x3 deep", 960, 960, 7, 7, 3, 1, 1, 960, false},
		{"depthwise 3x3 stride 2", 96, 96, 112, 112, 3, 2, 1, 96, false},
		{"depthwise 5x5", 240, 240, 14, 14, 5, 1, 2, 240, false},
		{"grouped 3x3", 128, 128, 28, 28, 3, 1, 1, 8, false},
		{"sequence of 7", 64, 64, 0, 500, 7, 1, 3, 1, false},
		{"transposed 2x2 stride 2", 64, 32, 28, 28, 2, 2, 0, 1, true},
		{"transposed 4x4 stride 2", 32, 32, 28, 28, 4, 2, 1, 1, true},
		{"transposed 3x3 stride 2", 64, 64, 14, 14, 3, 2, 1, 1, true},
		{"transposed 3x3", 32, 32, 28, 28, 3, 1, 1, 1, true},
		{"transposed 5x5 stride 3", 32, 16, 14, 14, 5, 3, 1, 1, true},
		{"transposed depthwise 4x4 stride 2", 64, 64, 28, 28, 4, 2, 1, 64, true},
	} {
		shape := fmt.Sprintf("%d to %d, %dx%d", l.in, l.out, l.height, l.width)
		if l.height == 0 {
			shape = fmt.Sprintf("%d to %d, %d", l.in, l.out, l.width)
		}
		list = append(list, line{l.name + ", " + shape, l.match})
	}
	return list
}

// extent returns the output's size along a dimension of size n.
func (l *layer) extent(n int) int {
	if l.transposed {
		return (n-1)*l.stride - 2*l.pad + l.kernel
	}
	return (n+2*l.pad-l.kernel)/l.stride + 1
}

func (l layer) match() *match {
	kh, rows, out := l.kernel, l.extent(l.height), l.extent(l.width)
	x, y := []int{1, l.in}, []int{1, l.out}
	w, spatial := []int{l.out, l.in / l.groups}, 2
	if l.transposed {
		w = []int{l.in, l.out / l.groups}
	}
	if l.height > 0 {
		x, y, w = append(x, l.height), append(y, rows), append(w, kh)
	} else {
		l.height, kh, rows, spatial = 1, 1, 1, 1
	}
	list := func(n int) []int { return []int{n, n}[:spatial] }
	input, filter, bias := noise(append(x, l.width)...), noiseWeights(append(w, l.kernel)...), noiseWeights(l.out)
	m := &match{op: "aten::convolution.out", images: true,
		args: []any{input, filter, bias, list(l.stride), list(l.pad), list(1), l.transposed, list(0), l.groups},
		outs: []*tensor.Tensor{blank(tensor.Float32, append(y, out)...)}}
	m.units = max(l.height*l.width, rows*out) * l.out * l.in / l.groups * kh * l.kernel
	m.naive = func(y *tensor.Tensor) {
		if l.transposed {
			l.scatter(floats(y), floats(input), floats(filter), floats(bias), kh, rows, out)
		} else {
			l.gather(floats(y), floats(input), floats(filter), floats(bias), kh, rows, out)
		}
	}
	m.node = func(g *graphtest.Maker, x []int, y int) { l.node(g, x[0], y, kh, filter, bias) }
	return m
}

// node adds the convolution with the weights in the library's layout.
func (l *layer) node(g *graphtest.Maker, x, y, kh int, filter, bias *tensor.Tensor) {
	pad := l.pad
	if kh == 1 && l.kernel > 1 {
		pad = 0
	}
	n := graph.Window{Top: pad, Right: l.pad, Bottom: pad, Left: l.pad, KernelH: kh, KernelW: l.kernel, StrideH: l.stride, StrideW: l.stride,
		DilationH: 1, DilationW: 1, Groups: l.groups, GroupIn: l.in / l.groups, GroupOut: l.out / l.groups}
	kind, dims := "Conv2d", []int{l.out, kh, l.kernel, l.in / l.groups}
	switch {
	case l.transposed:
		kind = "ConvTranspose2d"
	case l.in == l.groups:
		kind, dims = "DepthwiseConv2d", []int{1, kh, l.kernel, l.out}
	}
	f := tensor.New(tensor.Float32, dims...)
	l.arrange(floats(f), floats(filter), kh*l.kernel)
	g.Node(kind, []int{x, g.Given(f, dims...), g.Given(bias, l.out)}, []int{y}, graphtest.WithWindow(n))
}

// arrange copies filters to the library's layout: output channel, tap, input channel of the group.
// Depthwise filters have layout tap, channel.
func (l *layer) arrange(dst, src []float32, taps int) {
	in, out := l.in/l.groups, l.out/l.groups
	for oc := range l.out {
		for ic := range in {
			for t := range taps {
				from := (oc*in+ic)*taps + t
				if l.transposed {
					from = ((oc/out*in+ic)*out+oc%out)*taps + t
				}
				to := (oc*taps+t)*in + ic
				if in == 1 && !l.transposed {
					to = t*l.out + oc
				}
				dst[to] = src[from]
			}
		}
	}
}

// gather sums up each output point's window.
func (l *layer) gather(y, x, w, bias []float32, kh, rows, cols int) {
	for oc := range l.out {
		for oy := range rows {
			for ox := range cols {
				y[(oc*rows+oy)*cols+ox] = bias[oc] + l.point(x, w, kh, oc, oy*l.stride-l.pad*min(kh-1, 1), ox*l.stride-l.pad)
			}
		}
	}
}

// point returns the sum of the window at (top, left) for an output channel.
func (l *layer) point(x, w []float32, kh, oc, top, left int) (sum float32) {
	in := l.in / l.groups
	first := oc / (l.out / l.groups) * in
	for ic := range in {
		for ky := range kh {
			for kx := range l.kernel {
				iy, ix := top+ky, left+kx
				if iy >= 0 && iy < l.height && ix >= 0 && ix < l.width {
					sum += x[((first+ic)*l.height+iy)*l.width+ix] * w[((oc*in+ic)*kh+ky)*l.kernel+kx]
				}
			}
		}
	}
	return sum
}

// scatter adds each input point's products to the outputs in its window.
func (l *layer) scatter(y, x, w, bias []float32, kh, rows, cols int) {
	in, out := l.in/l.groups, l.out/l.groups
	for oc := range l.out {
		plane := y[oc*rows*cols:][:rows*cols]
		for i := range plane {
			plane[i] = bias[oc]
		}
		for ic := oc / out * in; ic < (oc/out+1)*in; ic++ {
			for i, v := range x[ic*l.height*l.width:][:l.height*l.width] {
				top, left, w := i/l.width*l.stride-l.pad, i%l.width*l.stride-l.pad, w[(ic*out+oc%out)*kh*l.kernel:]
				for ky := range kh {
					for kx := range l.kernel {
						if oy, ox := top+ky, left+kx; oy >= 0 && oy < rows && ox >= 0 && ox < cols {
							plane[oy*cols+ox] += v * w[ky*l.kernel+kx]
						}
					}
				}
			}
		}
	}
}

func matmulLines() []line {
	return []line{
		{"mm 128x128x128", func() *match { return productMatch("aten::mm.out", 128, 128, 128) }},
		{"mm 256x256x256", func() *match { return productMatch("aten::mm.out", 256, 256, 256) }},
		{"mm 512x512x512", func() *match { return productMatch("aten::mm.out", 512, 512, 512) }},
		{"addmm 1x64x256", func() *match { return productMatch("aten::addmm.out", 1, 64, 256) }},
		{"addmm 1x256x1024", func() *match { return productMatch("aten::addmm.out", 1, 256, 1024) }},
		{"addmm 1x1024x1024", func() *match { return productMatch("aten::addmm.out", 1, 1024, 1024) }},
		{"addmm 1x4096x4096", func() *match { return productMatch("aten::addmm.out", 1, 4096, 4096) }},
		{"addmm 4x256x256", func() *match { return productMatch("aten::addmm.out", 4, 256, 256) }},
		{"addmm 16x64x256", func() *match { return productMatch("aten::addmm.out", 16, 64, 256) }},
		{"addmm 64x192x192", func() *match { return productMatch("aten::addmm.out", 64, 192, 192) }},
		{"addmm 64x64x1024", func() *match { return productMatch("aten::addmm.out", 64, 64, 1024) }},
		{"addmm 197x192x576", func() *match { return productMatch("aten::addmm.out", 197, 192, 576) }},
		{"addmm 197x768x192", func() *match { return productMatch("aten::addmm.out", 197, 768, 192) }},
		{"linear 1x1280x1000", func() *match { return productMatch("aten::linear.out", 1, 1280, 1000) }},
		{"linear 64x256x256", func() *match { return productMatch("aten::linear.out", 64, 256, 256) }},
		{"bmm 3 of 197x64x197", func() *match { return batchProductMatch(3, 197, 64, 197) }},
		{"bmm 3 of 197x197x64", func() *match { return batchProductMatch(3, 197, 197, 64) }},
		{"bmm 8 of 16x32x16", func() *match { return batchProductMatch(8, 16, 32, 16) }},
		{"bmm 8 of 1x64x128", func() *match { return batchProductMatch(8, 1, 64, 128) }},
	}
}

// productMatch multiplies [m, k] by constant weights of [k, n], or [n, k] for linear, and adds a bias
// unless op is mm.
func productMatch(op string, m, k, n int) *match {
	x, w, bias := noise(m, k), noiseWeights(k, n), noiseWeights(n)
	flags, dims := uint32(graph.FlagTransposeWeights), []int{k, n}
	t := &match{op: op, units: m * k * n, outs: []*tensor.Tensor{blank(tensor.Float32, m, n)}}
	switch op {
	case "aten::mm.out":
		t.args = []any{x, w}
	case "aten::addmm.out":
		t.args = []any{bias, x, w, 1, 1}
	case "aten::linear.out":
		w, flags, dims = noiseWeights(n, k), 0, []int{n, k}
		t.args = []any{x, w, bias}
	}
	if op == "aten::mm.out" {
		clear(floats(bias))
	}
	t.naive = func(y *tensor.Tensor) {
		if flags == 0 {
			naiveLinear(floats(y), floats(x), floats(w), floats(bias), m, k, n)
		} else {
			naiveProduct(floats(y), floats(x), floats(w), floats(bias), m, k, n)
		}
	}
	t.node = func(g *graphtest.Maker, v []int, y int) {
		g.Node("FullyConnected", []int{v[0], g.Given(w, dims...), g.Given(bias, n)}, []int{y}, func(n *graph.Node) { n.Flags = flags })
	}
	return t
}

func batchProductMatch(batch, m, k, n int) *match {
	a, b, none := noise(batch, m, k), noise(batch, k, n), make([]float32, n)
	return &match{op: "aten::bmm.out", args: []any{a, b}, units: batch * m * k * n, outs: []*tensor.Tensor{blank(tensor.Float32, batch, m, n)},
		naive: func(y *tensor.Tensor) {
			for i := range batch {
				naiveProduct(floats(y)[i*m*n:], floats(a)[i*m*k:], floats(b)[i*k*n:], none, m, k, n)
			}
		},
		node: func(g *graphtest.Maker, x []int, y int) { g.Node("BatchMatrixMultiply", x, []int{y}) }}
}

func naiveProduct(y, a, b, bias []float32, m, k, n int) {
	for i := range m {
		row := y[i*n:][:n]
		copy(row, bias)
		for p := range k {
			v := a[i*k+p]
			for j, w := range b[p*n:][:n] {
				row[j] += v * w
			}
		}
	}
}

func naiveLinear(y, a, w, bias []float32, m, k, n int) {
	for i := range m {
		for j := range n {
			sum := bias[j]
			for p, v := range a[i*k:][:k] {
				sum += v * w[j*k+p]
			}
			y[i*n+j] = sum
		}
	}
}
