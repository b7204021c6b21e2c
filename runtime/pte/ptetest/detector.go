package ptetest

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Detector describes a program with random weights of the form of YOLOv8: forward(picture [1, 3, Side, Side] float32) → [1, 4+Classes,
// boxes] float32, boxes as center, width and height in pixels.
type Detector struct {
	Side, Width, Classes int    // Width: channels of the first convolution
	Depth                [2]int // bottlenecks of the outer and the inner stages
	Seed                 uint64
}

// File returns the bytes of the program.
func (c Detector) File() []byte {
	w := &detectorWriter{transformerWriter: Transformer{Seed: c.Seed}.writer(), Detector: c}
	w.static = true
	input := w.image(3, c.Side)
	w.end("forward", []int{input.v}, w.detect(w.pyramid(input)))
	return Write(&pte.Program{Methods: []pte.Method{w.m}}, Layout{})
}

// image is a value [1, channels, side, side].
type image struct{ v, channels, side int }

type detectorWriter struct {
	*transformerWriter
	Detector
}

func (w *detectorWriter) image(channels, side int) image {
	return image{w.tensor(tensor.Float32, false, 1, channels, side, side), channels, side}
}

// pyramid returns the images of three sizes that boxes are found in, the largest first.
func (w *detectorWriter) pyramid(x image) (levels [3]image) {
	n, outer, inner := w.Width, w.Depth[0], w.Depth[1]
	x = w.stage(w.conv(w.conv(x, n, 3, 2), 2*n, 3, 2), 2*n, outer, true)
	p3 := w.stage(w.conv(x, 4*n, 3, 2), 4*n, inner, true)
	p4 := w.stage(w.conv(p3, 8*n, 3, 2), 8*n, inner, true)
	p5 := w.pooled(w.stage(w.conv(p4, 16*n, 3, 2), 16*n, outer, true))
	p4 = w.stage(w.cat(w.larger(p5), p4), 8*n, outer, false)
	levels[0] = w.stage(w.cat(w.larger(p4), p3), 4*n, outer, false)
	levels[1] = w.stage(w.cat(w.conv(levels[0], 4*n, 3, 2), p4), 8*n, outer, false)
	levels[2] = w.stage(w.cat(w.conv(levels[1], 8*n, 3, 2), p5), 16*n, outer, false)
	return levels
}

// convolution adds a convolution without activation, padded to keep the size.
func (w *detectorWriter) convolution(x image, out, size, stride, bias int) image {
	y := w.image(out, x.side/stride)
	w.call("aten::convolution.out", x.v, w.weights(2/float32(x.channels*size*size), out, x.channels, size, size), bias, w.ints(stride, stride),
		w.ints(size/2, size/2), w.ints(1, 1), w.bool(false), w.ints(0, 0), w.int(1), y.v)
	return y
}

// conv adds a convolution, a batch norm and SiLU.
func (w *detectorWriter) conv(x image, out, size, stride int) image {
	x = w.convolution(x, out, size, stride, w.none())
	y, z, s := w.image(out, x.side), w.image(out, x.side), w.image(out, x.side)
	outs := []int{y.v, w.tensor(tensor.Float32, false, 0), w.tensor(tensor.Float32, false, 0)}
	list := w.value(pte.Value{Kind: tensor.KindTensorList, Items: outs})
	one, noise := func(int) float32 { return 1 }, w.weights(0.01, out)
	w.operator("aten::_native_batch_norm_legit_no_training.out", x.v, w.constant(one, out), noise, noise, w.constant(one, out),
		w.double(0.03), w.double(1e-3), outs[0], outs[1], outs[2], list)
	w.call("aten::sigmoid.out", y.v, s.v)
	w.call("aten::mul.out", y.v, s.v, z.v)
	return z
}

// stage is C2f: n bottlenecks of half of the channels, whose results are joined.
func (w *detectorWriter) stage(x image, out, n int, add bool) image {
	x = w.conv(x, out, 1, 1)
	halves := w.parts(x.v, 1, out/2, out/2)
	parts := []image{{halves[0], out / 2, x.side}, {halves[1], out / 2, x.side}}
	for range n {
		last := parts[len(parts)-1]
		y := w.conv(w.conv(last, out/2, 3, 1), out/2, 3, 1)
		if add {
			sum := w.image(out/2, x.side)
			w.call("aten::add.out", last.v, y.v, w.int(1), sum.v)
			y = sum
		}
		parts = append(parts, y)
	}
	return w.conv(w.cat(parts...), out, 1, 1)
}

// pooled is SPPF: three pools in a row, whose results are joined.
func (w *detectorWriter) pooled(x image) image {
	out := x.channels
	parts := []image{w.conv(x, out/2, 1, 1)}
	for i := range 3 {
		y, at := w.image(out/2, x.side), w.tensor(tensor.Int64, false, 1, out/2, x.side, x.side)
		w.operator("aten::max_pool2d_with_indices.out", parts[i].v, w.ints(5, 5), w.ints(1, 1), w.ints(2, 2), w.ints(1, 1), w.bool(false),
			y.v, at, w.value(pte.Value{Kind: tensor.KindTensorList, Items: []int{y.v, at}}))
		parts = append(parts, y)
	}
	return w.conv(w.cat(parts...), out, 1, 1)
}

// larger doubles the size.
func (w *detectorWriter) larger(x image) image {
	y := w.image(x.channels, 2*x.side)
	w.call("aten::upsample_nearest2d.vec_out", x.v, w.none(), w.value(pte.Value{Kind: tensor.KindDoubleList, Long: &pte.Long{Doubles: []float64{2, 2}}}), y.v)
	return y
}

func (w *detectorWriter) cat(list ...image) image {
	var values []int
	y := image{side: list[0].side}
	for _, x := range list {
		values, y.channels = append(values, x.v), y.channels+x.channels
	}
	y.v = w.joined(1, values, 1, y.channels, y.side, y.side)
	return y
}

// detect returns the boxes of all levels. Their sides are expectations of 16 distances.
func (w *detectorWriter) detect(levels [3]image) int {
	var sides, classes []int
	var anchors [2][]float32
	var strides []float32
	for _, x := range levels {
		n, stride := x.side*x.side, w.Side/x.side
		for i, out := range []int{64, w.Classes} {
			middle := max(16, levels[0].channels/4, 64)
			if i == 1 {
				middle = max(levels[0].channels, min(w.Classes, 100))
			}
			y := w.conv(w.conv(x, middle, 3, 1), middle, 3, 1)
			y = w.convolution(y, out, 1, 1, w.weights(0.1, out))
			list := []*[]int{&sides, &classes}[i]
			*list = append(*list, w.alias(y.v, 1, out, n))
		}
		for i := range n {
			anchors[0], anchors[1] = append(anchors[0], float32(i%x.side)+.5), append(anchors[1], float32(i/x.side)+.5)
			strides = append(strides, float32(stride))
		}
	}
	n, centers := len(strides), append(anchors[0], anchors[1]...)
	given := func(list []float32, sizes ...int) int {
		return w.constant(func(i int) float32 { return list[i] }, sizes...)
	}
	scores := w.joined(2, classes, 1, w.Classes, n)
	chances := w.tensor(tensor.Float32, false, 1, w.Classes, n)
	w.call("aten::sigmoid.out", scores, chances)
	distances := w.distances(w.joined(2, sides, 1, 64, n), n)
	return w.joined(1, []int{w.boxes(given(centers, 1, 2, n), distances, given(strides, 1, n), n), chances}, 1, 4+w.Classes, n)
}

// distances returns the expected distances of the sides, [1, 4, n].
func (w *detectorWriter) distances(x, n int) int {
	moved, soft, terms := w.tensor(tensor.Float32, false, 1, 16, 4, n), w.tensor(tensor.Float32, false, 1, 16, 4, n), w.tensor(tensor.Float32, false, 1, 16, 4, n)
	w.call("aten::permute_copy.out", w.alias(x, 1, 4, 16, n), w.ints(0, 2, 1, 3), moved)
	w.call("aten::_softmax.out", moved, w.int(1), w.bool(false), soft)
	w.call("aten::mul.out", soft, w.constant(func(i int) float32 { return float32(i) }, 1, 16, 1, 1), terms)
	out := w.tensor(tensor.Float32, false, 1, 4, n)
	w.call("aten::sum.IntList_out", terms, w.ints(1), w.bool(false), w.none(), out)
	return out
}

// boxes returns centers, widths and heights in pixels, [1, 4, n].
func (w *detectorWriter) boxes(centers, distances, strides, n int) int {
	two := func(name string, a, b int, more ...int) int {
		out := w.tensor(tensor.Float32, false, 1, 2, n)
		w.call(name, append(append([]int{a, b}, more...), out)...)
		return out
	}
	halves := w.parts(distances, 1, 2, 2)
	low, high := two("aten::sub.out", centers, halves[0], w.int(1)), two("aten::add.out", centers, halves[1], w.int(1))
	middle := two("aten::mul.out", two("aten::add.out", low, high, w.int(1)), w.constant(func(int) float32 { return .5 }, 1))
	x := w.joined(1, []int{middle, two("aten::sub.out", high, low, w.int(1))}, 1, 4, n)
	out := w.tensor(tensor.Float32, false, 1, 4, n)
	w.call("aten::mul.out", x, strides, out)
	return out
}
