package xnnpack

import (
	"fmt"
	"math"
	"strings"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// poolOp is a pooling of square images of type float32, or of the given one.
type poolOp struct {
	kind                                string // "max", "avg"
	channels, size, kernel, stride, pad int
	with                                string // "indices" that are read, "channels last", or both
	dtype                               tensor.DType
}

func poolLines() (list []line) {
	for _, p := range []poolOp{
		{"max", 64, 112, 3, 2, 1, "", 0},
		{"max", 64, 28, 3, 1, 1, "", 0},
		{"max", 128, 20, 5, 1, 2, "", 0},
		{"max", 64, 60, 3, 3, 0, "", 0},
		{"max", 32, 56, 2, 2, 0, "", 0},
		{"max", 256, 14, 2, 2, 0, "", 0},
		{"max", 64, 112, 3, 2, 1, "channels last", 0},
		{"max", 128, 20, 5, 1, 2, "channels last", 0},
		{"max", 256, 14, 2, 2, 0, "channels last", 0},
		{"max", 64, 112, 3, 2, 1, "indices", 0},
		{"max", 64, 28, 3, 1, 1, "indices", 0},
		{"max", 128, 20, 5, 1, 2, "indices", 0},
		{"max", 64, 60, 3, 3, 0, "indices", 0},
		{"max", 64, 56, 2, 2, 0, "indices", 0},
		{"max", 256, 14, 2, 2, 0, "indices", 0},
		{"max", 64, 112, 3, 2, 1, "indices, channels last", 0},
		{"max", 64, 28, 3, 1, 1, "indices, channels last", 0},
		{"max", 256, 14, 2, 2, 0, "indices, channels last", 0},
		{"max", 64, 56, 2, 2, 0, "", tensor.Float16},
		{"max", 64, 56, 2, 2, 0, "", tensor.Int8},
		{"avg", 64, 28, 3, 1, 1, "", 0},
		{"avg", 64, 112, 3, 2, 1, "", 0},
		{"avg", 64, 30, 5, 3, 0, "", 0},
		{"avg", 128, 56, 2, 2, 0, "", 0},
		{"avg", 256, 14, 2, 2, 0, "", 0},
		{"avg", 64, 28, 3, 1, 1, "channels last", 0},
		{"avg", 128, 56, 2, 2, 0, "channels last", 0},
	} {
		list = append(list, line{p.String(), p.match})
	}
	return list
}

func (p poolOp) String() string {
	if p.dtype == 0 {
		p.dtype = tensor.Float32
	}
	text := fmt.Sprintf("%s %dx%[2]d stride %d, %d of %dx%[5]d", p.kind, p.kernel, p.stride, p.channels, p.size)
	if p.dtype != tensor.Float32 {
		text += ", " + p.dtype.String()
	}
	switch {
	case strings.HasPrefix(p.with, "indices"):
		text += " and " + p.with
	case p.with != "":
		text += ", " + p.with
	}
	return text
}

// match has the indices of maxima read or not; the library computes the maxima alone. Means exclude padding.
func (p poolOp) match() *match {
	x, out, mean := noise(1, p.channels, p.size, p.size), (p.size+2*p.pad-p.kernel)/p.stride+1, p.kind == "avg"
	window := graph.Window{Top: p.pad, Right: p.pad, Bottom: p.pad, Left: p.pad, KernelH: p.kernel, KernelW: p.kernel,
		StrideH: p.stride, StrideW: p.stride, DilationH: 1, DilationW: 1}
	d, order := p.dtype, []uint8(nil)
	if d == 0 {
		d = tensor.Float32
	}
	if strings.HasSuffix(p.with, "channels last") {
		order = []uint8{0, 2, 3, 1}
	}
	in, sizes := kerneltest.FromDense(d, x.Sizes, order, kerneltest.Dense(x)), []int{1, p.channels, out, out}
	y, at := blankOrdered(d, sizes, order), blankOrdered(tensor.Int64, sizes, order)
	m := &match{op: "aten::max_pool2d_with_indices.out", images: true, units: p.channels * out * out * p.kernel * p.kernel,
		args: []any{in, []int{p.kernel}, []int{p.stride}, []int{p.pad}, []int{1}, false}, outs: []*tensor.Tensor{y, at}}
	kind := "MaxPooling2d"
	switch {
	case mean:
		kind, m.op, m.outs = "AvgPooling2d", "aten::avg_pool2d.out", m.outs[:1]
		m.args = []any{in, []int{p.kernel}, []int{p.stride}, []int{p.pad}, false, false, nil}
	case !strings.HasPrefix(p.with, "indices"):
		m.unread = []int{7}
	}
	if d == tensor.Float32 {
		m.naive = func(y *tensor.Tensor) { naivePool(floats(y), floats(x), p.size, out, p.kernel, p.stride, p.pad, mean) }
	}
	m.node = func(g *graphtest.Maker, x []int, y int) {
		if d == tensor.Int8 {
			withQuant(g, x[0], y)
		}
		g.Node(kind, x, []int{y}, graphtest.WithWindow(window))
	}
	return m
}

func naivePool(y, x []float32, size, out, kernel, stride, pad int, mean bool) {
	for o := range y {
		plane, top, left := x[o/(out*out)*size*size:], o/out%out*stride-pad, o%out*stride-pad
		best, sum, n := float32(math.Inf(-1)), float32(0), 0
		for iy := max(top, 0); iy < min(top+kernel, size); iy++ {
			for ix := max(left, 0); ix < min(left+kernel, size); ix++ {
				v := plane[iy*size+ix]
				best, sum, n = max(best, v), sum+v, n+1
			}
		}
		if mean {
			best = sum / float32(n)
		}
		y[o] = best
	}
}

// normLines are softmax and norms. The library supports only softmax.
func normLines() []line {
	return []line{
		{"softmax 1x256", func() *match { return softmaxMatch(1, 256) }},
		{"softmax 64x64", func() *match { return softmaxMatch(64, 64) }},
		{"softmax 256x256", func() *match { return softmaxMatch(256, 256) }},
		{"softmax 1024x1024", func() *match { return softmaxMatch(1024, 1024) }},
		{"softmax 197x192", func() *match { return softmaxMatch(197, 192) }},
		{"softmax 591x197", func() *match { return softmaxMatch(591, 197) }},
		{"softmax 1x1000", func() *match { return softmaxMatch(1, 1000) }},
		{"layer norm 197x192", func() *match { return layerNormMatch(197, 192) }},
		{"batch norm 64 of 28x28", func() *match { return batchNormMatch(64, 28) }},
		{"group norm 8 groups, 64 of 28x28", func() *match { return groupNormMatch(8, 64, 28) }},
	}
}

func softmaxMatch(rows, n int) *match {
	x := noise(rows, n)
	return &match{op: "aten::_softmax.out", args: []any{x, 1, false}, outs: []*tensor.Tensor{blank(tensor.Float32, rows, n)}, units: rows * n,
		naive: func(y *tensor.Tensor) {
			for i := range rows {
				naiveSoftmax(floats(x)[i*n:][:n], floats(y)[i*n:][:n])
			}
		},
		node: func(g *graphtest.Maker, x []int, y int) { g.Node("Softmax", x, []int{y}) }}
}

func naiveSoftmax(x, y []float32) {
	m, sum := x[0], float32(0)
	for _, v := range x {
		m = max(m, v)
	}
	for i, v := range x {
		y[i] = float32(math.Exp(float64(v - m)))
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
}

func layerNormMatch(rows, n int) *match {
	x, w, bias := noise(rows, n), noiseWeights(n), noiseWeights(n)
	return &match{op: "aten::native_layer_norm.out", args: []any{x, []int{n}, w, bias, 1e-5}, units: rows * n,
		outs: []*tensor.Tensor{blank(tensor.Float32, rows, n), blank(tensor.Float32, rows, 1), blank(tensor.Float32, rows, 1)},
		naive: func(y *tensor.Tensor) {
			for i := range rows {
				scale, shift := naiveStatistics(floats(x)[i*n:][:n])
				w, bias, y := floats(w), floats(bias), floats(y)[i*n:][:n]
				for j, v := range floats(x)[i*n:][:n] {
					y[j] = (v*scale+shift)*w[j] + bias[j]
				}
			}
		}}
}

func groupNormMatch(groups, channels, size int) *match {
	points := size * size
	x, w, bias := noise(1, channels, size, size), noiseWeights(channels), noiseWeights(channels)
	n := channels / groups * points
	return &match{op: "aten::native_group_norm.out", args: []any{x, w, bias, 1, channels, points, groups, 1e-5}, units: channels * points,
		outs: []*tensor.Tensor{blank(tensor.Float32, 1, channels, size, size), blank(tensor.Float32, 1, groups), blank(tensor.Float32, 1, groups)},
		naive: func(y *tensor.Tensor) {
			for i := range groups {
				scale, shift := naiveStatistics(floats(x)[i*n:][:n])
				for c := i * channels / groups; c < (i+1)*channels/groups; c++ {
					w, bias, y := floats(w)[c], floats(bias)[c], floats(y)[c*points:][:points]
					for j, v := range floats(x)[c*points:][:points] {
						y[j] = (v*scale+shift)*w + bias
					}
				}
			}
		}}
}

// naiveStatistics returns the scale and shift that normalize x.
func naiveStatistics(x []float32) (scale, shift float32) {
	var sum, squares float32
	for _, v := range x {
		sum += v
		squares += v * v
	}
	mean := sum / float32(len(x))
	scale = 1 / float32(math.Sqrt(float64(squares/float32(len(x))-mean*mean+1e-5)))
	return scale, -mean * scale
}

func batchNormMatch(channels, size int) *match {
	points := size * size
	x, w, bias, mean, variance := noise(1, channels, size, size), noiseWeights(channels), noiseWeights(channels), noiseWeights(channels), noiseWeights(channels)
	for i, v := range floats(variance) {
		floats(variance)[i] = v*v + 1
	}
	return &match{op: "aten::_native_batch_norm_legit_no_training.out", args: []any{x, w, bias, mean, variance, 0.1, 1e-5}, units: channels * points,
		outs: []*tensor.Tensor{blank(tensor.Float32, 1, channels, size, size), blank(tensor.Float32, 0), blank(tensor.Float32, 0)},
		naive: func(y *tensor.Tensor) {
			for c := range channels {
				mean, std, w, bias := floats(mean)[c], float32(math.Sqrt(float64(floats(variance)[c]+1e-5))), floats(w)[c], floats(bias)[c]
				y := floats(y)[c*points:][:points]
				for i, v := range floats(x)[c*points:][:points] {
					y[i] = (v-mean)/std*w + bias
				}
			}
		}}
}

// reduceLines are means and sums. Of the library's reductions, payloads only have the mean of images.
func reduceLines() []line {
	const mean, adaptive = "aten::mean.out", "aten::_adaptive_avg_pool2d.out"
	last := []uint8{0, 2, 3, 1}
	return []line{
		{"mean of images, 1280 of 7x7", func() *match { return imageMeanMatch(mean, 1280, 7, tensor.Float32, nil) }},
		{"mean of images, 64 of 56x56", func() *match { return imageMeanMatch(mean, 64, 56, tensor.Float32, nil) }},
		{"mean of images, 256 of 14x14", func() *match { return imageMeanMatch(mean, 256, 14, tensor.Float32, nil) }},
		{"mean of images, 256 of 14x14, float16", func() *match { return imageMeanMatch(mean, 256, 14, tensor.Float16, nil) }},
		{"mean of images, 256 of 14x14, channels last", func() *match { return imageMeanMatch(mean, 256, 14, tensor.Float32, last) }},
		{"adaptive mean of images, 1280 of 7x7", func() *match { return imageMeanMatch(adaptive, 1280, 7, tensor.Float32, nil) }},
		{"adaptive mean of images, 256 of 14x14, channels last", func() *match { return imageMeanMatch(adaptive, 256, 14, tensor.Float32, last) }},
		{"mean of rows, 1024x256", func() *match { return rowReductionMatch("aten::mean.out", 1024, 256, 1, 256) }},
		{"sum of rows, 1024x256", func() *match { return rowReductionMatch("aten::sum.IntList_out", 1024, 256, 1, 1) }},
		{"sum of columns, 1024x256", func() *match { return rowReductionMatch("aten::sum.IntList_out", 1024, 256, 0, 1) }},
	}
}

// imageMeanMatch is a mean over the points of each channel, by the operator mean or adaptive pooling.
func imageMeanMatch(op string, channels, size int, d tensor.DType, order []uint8) *match {
	x, points := noise(1, channels, size, size), size*size
	m := &match{op: op, outs: []*tensor.Tensor{blankOrdered(d, []int{1, channels, 1, 1}, order)}, images: true, units: channels * points,
		args: []any{kerneltest.FromDense(d, x.Sizes, order, kerneltest.Dense(x))},
		node: func(g *graphtest.Maker, x []int, y int) { g.Node("GlobalAvgPooling2d", x, []int{y}) }}
	if m.args = append(m.args, []int{1, 1}); op == "aten::mean.out" {
		m.args = append(m.args[:1], []int{2, 3}, true, nil)
	}
	if d == tensor.Float32 {
		m.naive = func(y *tensor.Tensor) {
			for c := range floats(y) {
				var sum float32
				for _, v := range floats(x)[c*points:][:points] {
					sum += v
				}
				floats(y)[c] = sum / float32(points)
			}
		}
	}
	return m
}

func rowReductionMatch(op string, rows, cols, dim int, divisor float32) *match {
	x, kept := noise(rows, cols), []int{rows, cols}[1-dim]
	return &match{op: op, args: []any{x, []int{dim}, false, nil}, outs: []*tensor.Tensor{blank(tensor.Float32, kept)}, units: rows * cols,
		naive: func(out *tensor.Tensor) {
			y := floats(out)
			clear(y)
			for i := range rows {
				row := floats(x)[i*cols:][:cols]
				if dim == 1 {
					var sum float32
					for _, v := range row {
						sum += v
					}
					y[i] = sum / divisor
					continue
				}
				for j, v := range row {
					y[j] += v
				}
			}
		}}
}
