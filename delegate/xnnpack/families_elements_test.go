package xnnpack

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func elementwiseLines() (list []line) {
	for _, n := range []int{16 << 10, 4 << 20} {
		size, sizes := fmt.Sprintf(" of %dK", n>>10), []int{n}
		for _, f := range []struct {
			name, node string
			naive      func(y, a, b []float32)
			extra      []any
		}{
			{"add", "Add", naiveAdd, []any{1}},
			{"mul", "Multiply", naiveMul, nil},
			{"maximum", "Maximum", naiveMaximum, nil},
		} {
			list = append(list, line{f.name + size, func() *match { return binaryMatch("aten::"+f.name+".out", f.node, f.naive, f.extra, sizes) }})
		}
		list = append(list, line{"relu" + size, func() *match { return unaryMatch("aten::relu.out", "Clamp", naiveRelu, nil, n) }})
	}
	list = append(list, functionLines()...)
	return append(list, broadcastLines()...)
}

// broadcastLines have a second operand of fewer elements. Those of four dimensions are images.
func broadcastLines() (list []line) {
	for _, f := range []struct {
		name         string
		sizes, other []int
		dtype        tensor.DType
	}{
		{"a row, 256x64", []int{256, 64}, []int{64}, tensor.Float32},
		{"a row, 256x64", []int{256, 64}, []int{64}, tensor.Float16},
		{"a row, 197x192", []int{197, 192}, []int{192}, tensor.Float32},
		{"a row, 1000x10", []int{1000, 10}, []int{10}, tensor.Float32},
		{"a row, 16x4096", []int{16, 4096}, []int{4096}, tensor.Float32},
		{"a column, 256x64", []int{256, 64}, []int{256, 1}, tensor.Float32},
		{"a column, 197x192", []int{197, 192}, []int{197, 1}, tensor.Float32},
		{"a column, 1000x10", []int{1000, 10}, []int{1000, 1}, tensor.Float32},
		{"a number, 256x64", []int{256, 64}, []int{1}, tensor.Float32},
		{"a mask, 12x64x64", []int{12, 64, 64}, []int{64, 64}, tensor.Float32},
		{"rows of 12x64x64", []int{12, 64, 64}, []int{12, 1, 64}, tensor.Float32},
		{"channels, 64 of 28x28", []int{1, 64, 28, 28}, []int{1, 64, 1, 1}, tensor.Float32},
		{"channels, 64 of 28x28", []int{1, 64, 28, 28}, []int{1, 64, 1, 1}, tensor.Float16},
		{"channels, 32 of 112x112", []int{1, 32, 112, 112}, []int{1, 32, 1, 1}, tensor.Float32},
		{"channels, 512 of 7x7", []int{1, 512, 7, 7}, []int{1, 512, 1, 1}, tensor.Float32},
		{"a plane, 64 of 28x28", []int{1, 64, 28, 28}, []int{1, 1, 28, 28}, tensor.Float32},
		{"columns, 64 of 28x28", []int{1, 64, 28, 28}, []int{1, 1, 1, 28}, tensor.Float32},
		{"rows, 64 of 28x28", []int{1, 64, 28, 28}, []int{1, 1, 28, 1}, tensor.Float32},
	} {
		name := f.name
		if f.dtype != tensor.Float32 {
			name += ", " + f.dtype.String()
		}
		list = append(list,
			line{"add of " + name, func() *match {
				return broadcastMatch("aten::add.out", "Add", naiveAdd, []any{1}, f.dtype, f.sizes, f.other)
			}},
			line{"mul by " + name, func() *match {
				return broadcastMatch("aten::mul.out", "Multiply", naiveMul, nil, f.dtype, f.sizes, f.other)
			}})
	}
	return list
}

// broadcastMatch broadcasts the second operand.
func broadcastMatch(op, node string, naive func(y, a, b []float32), extra []any, d tensor.DType, sizes, other []int) *match {
	a, b := noise(sizes...), noise(other...)
	in := []any{kerneltest.FromDense(d, sizes, nil, kerneltest.Dense(a)), kerneltest.FromDense(d, other, nil, kerneltest.Dense(b))}
	m := &match{op: op, args: append(in, extra...), outs: []*tensor.Tensor{blank(d, sizes...)}, units: a.Numel(), images: len(sizes) == 4,
		node: func(g *graphtest.Maker, x []int, y int) { g.Node(node, x, []int{y}) }}
	if d == tensor.Float32 {
		m.naive = func(y *tensor.Tensor) { naiveBroadcast(floats(y), floats(a), floats(b), sizes, other, naive) }
	}
	return m
}

// naiveBroadcast computes row by row, with a copy of the second operand's row.
func naiveBroadcast(y, a, b []float32, sizes, other []int, f func(y, a, b []float32)) {
	n := sizes[len(sizes)-1]
	row := make([]float32, n)
	for i := 0; i < len(a); i += n {
		at, rest, stride := 0, i/n, 1
		for d := len(sizes) - 1; d >= 0; d-- {
			from := d - len(sizes) + len(other)
			if d < len(sizes)-1 {
				if from >= 0 && other[from] > 1 {
					at += rest % sizes[d] * stride
				}
				rest /= sizes[d]
			}
			if from >= 0 {
				stride *= other[from]
			}
		}
		for j := range row {
			row[j] = b[at+j*(min(other[len(other)-1], 2)-1)]
		}
		f(y[i:][:n], a[i:][:n], row)
	}
}

// functionLines are elementwise functions of sizes within the caches and larger.
func functionLines() (list []line) {
	for _, f := range []struct {
		name, node string
		f          func(x float32) float32
		extra      []any
	}{
		{"sigmoid", "Sigmoid", func(x float32) float32 { return float32(1 / (1 + math.Exp(float64(-x)))) }, nil},
		{"tanh", "Tanh", func(x float32) float32 { return float32(math.Tanh(float64(x))) }, nil},
		{"exp", "Exp", func(x float32) float32 { return float32(math.Exp(float64(x))) }, nil},
		{"gelu", "Gelu", func(x float32) float32 { return x * float32(math.Erf(float64(x)*math.Sqrt2/2)+1) / 2 }, []any{"none"}},
		{"hardswish", "Hardswish", func(x float32) float32 { return x * min(max(x+3, 0), 6) / 6 }, nil},
		{"silu", "", func(x float32) float32 { return float32(float64(x) / (1 + math.Exp(float64(-x)))) }, nil},
	} {
		naive := func(y, x []float32) {
			for i, v := range x {
				y[i] = f.f(v)
			}
		}
		for _, n := range []int{256, 4 << 10, 64 << 10, 1 << 20} {
			name := fmt.Sprintf("%s of %d", f.name, n)
			list = append(list, line{name, func() *match {
				m := unaryMatch("aten::"+f.name+".out", f.node, naive, f.extra, n)
				if f.node == "" { // two nodes in the library
					m.node = func(g *graphtest.Maker, x []int, y int) {
						s := g.Value(graph.FP32, n)
						g.Node("Sigmoid", x, []int{s})
						g.Node("Multiply", []int{x[0], s}, []int{y})
					}
				}
				return m
			}})
		}
	}
	return list
}

func naiveAdd(y, a, b []float32) {
	for i, v := range a {
		y[i] = v + b[i]
	}
}

func naiveMul(y, a, b []float32) {
	for i, v := range a {
		y[i] = v * b[i]
	}
}

func naiveMaximum(y, a, b []float32) {
	for i, v := range a {
		y[i] = max(v, b[i])
	}
}

func naiveRelu(y, x []float32) {
	for i, v := range x {
		y[i] = max(v, 0)
	}
}

func binaryMatch(op, node string, naive func(y, a, b []float32), extra []any, sizes []int) *match {
	a, b := noise(sizes...), noise(sizes...)
	return &match{op: op, args: append([]any{a, b}, extra...), outs: []*tensor.Tensor{blank(tensor.Float32, sizes...)}, units: a.Numel(),
		naive: func(y *tensor.Tensor) { naive(floats(y), floats(a), floats(b)) },
		node:  func(g *graphtest.Maker, x []int, y int) { g.Node(node, x, []int{y}) }}
}

func unaryMatch(op, kind string, naive func(y, x []float32), extra []any, n int) *match {
	x := noise(n)
	return &match{op: op, args: append([]any{x}, extra...), outs: []*tensor.Tensor{blank(tensor.Float32, n)}, units: n,
		naive: func(y *tensor.Tensor) { naive(floats(y), floats(x)) },
		node: func(g *graphtest.Maker, x []int, y int) {
			g.Node(kind, x, []int{y}, func(n *graph.Node) {
				if kind == "Clamp" {
					n.Min = 0
				}
			})
		}}
}

// moveLines are permutations and copies in the same layout, and a resize of images.
func moveLines() []line {
	return []line{
		{"transpose 512x512", func() *match { return permutedMatch([]int{512, 512}, []int{1, 0}) }},
		{"permute 1x64x56x56 to channels last", func() *match { return permutedMatch([]int{1, 64, 56, 56}, []int{0, 2, 3, 1}) }},
		{"permute 197x3x64, heads first", func() *match { return permutedMatch([]int{197, 3, 64}, []int{1, 0, 2}) }},
		{"cat of two 64x28x28", func() *match { return catMatch(64 * 28 * 28) }},
		{"slice of 64x64x56, half of each row", func() *match { return sliceMatch(64*64, 56, 14, 42) }},
		{"pad of 64x56x56 by 1", func() *match { return paddedMatch(64, 56) }},
		{"upsample bilinear, 64 of 28x28 to 56x56", func() *match { return upsampledMatch(64, 28, 56) }},
	}
}

func permutedMatch(sizes, dims []int) *match {
	x, strides, n := noise(sizes...), [4]int{}, len(sizes)
	out, steps := make([]int, n), [4]int{}
	for i, stride := n-1, 1; i >= 0; i-- {
		strides[i], stride = stride, stride*sizes[i]
	}
	var from [4]int // sizes of the result, with leading ones
	for i := range from {
		from[i] = 1
	}
	for i, d := range dims {
		out[i], from[4-n+i], steps[4-n+i] = sizes[d], sizes[d], strides[d]
	}
	return &match{op: "aten::permute_copy.out", args: []any{x, dims}, outs: []*tensor.Tensor{blank(tensor.Float32, out...)}, units: x.Numel(),
		naive: func(out *tensor.Tensor) {
			x, y, o := floats(x), floats(out), 0
			for a := range from[0] {
				for b := range from[1] {
					for c := range from[2] {
						for d := range from[3] {
							y[o] = x[a*steps[0]+b*steps[1]+c*steps[2]+d*steps[3]]
							o++
						}
					}
				}
			}
		},
		node: func(g *graphtest.Maker, x []int, y int) {
			g.Node("StaticTranspose", x, []int{y}, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = dims })
		}}
}

func catMatch(n int) *match {
	a, b := noise(n), noise(n)
	return &match{op: "aten::cat.out", args: []any{[]*tensor.Tensor{a, b}, 0}, outs: []*tensor.Tensor{blank(tensor.Float32, 2*n)}, units: 2 * n,
		naive: func(out *tensor.Tensor) {
			a, b, y := floats(a), floats(b), floats(out)
			for i := range n {
				y[i], y[n+i] = a[i], b[i]
			}
		},
		node: func(g *graphtest.Maker, x []int, y int) { g.Node("Concatenate2", x, []int{y}) }}
}

func sliceMatch(rows, cols, from, to int) *match {
	x, n := noise(rows, cols), to-from
	return &match{op: "aten::slice_copy.Tensor_out", args: []any{x, 1, from, to, 1}, outs: []*tensor.Tensor{blank(tensor.Float32, rows, n)}, units: rows * n,
		naive: func(out *tensor.Tensor) {
			x, y := floats(x), floats(out)
			for i := range rows {
				for j := range n {
					y[i*n+j] = x[i*cols+from+j]
				}
			}
		},
		node: func(g *graphtest.Maker, x []int, y int) {
			g.Node("StaticSlice", x, []int{y}, func(node *graph.Node) {
				*graph.Params[graph.SliceParams](node) = graph.SliceParams{Offsets: []int{0, from}, Sizes: []int{rows, n}}
			})
		}}
}

func paddedMatch(planes, size int) *match {
	x, out := noise(planes, size, size), size+2
	return &match{op: "aten::constant_pad_nd.out", args: []any{x, []int{1, 1, 1, 1}, 0.5}, outs: []*tensor.Tensor{blank(tensor.Float32, planes, out, out)},
		units: planes * out * out,
		naive: func(result *tensor.Tensor) {
			x, y := floats(x), floats(result)
			for i := range y {
				y[i] = 0.5
			}
			for p := range planes {
				for i := range size {
					for j := range size {
						y[(p*out+i+1)*out+j+1] = x[(p*size+i)*size+j]
					}
				}
			}
		},
		node: func(g *graphtest.Maker, x []int, y int) {
			g.Node("StaticConstantPad", x, []int{y}, func(n *graph.Node) {
				*graph.Params[graph.PadParams](n) = graph.PadParams{Before: []int{0, 1, 1}, After: []int{0, 1, 1}, Value: 0.5}
			})
		}}
}

func upsampledMatch(channels, in, out int) *match {
	x, step := noise(1, channels, in, in), float32(in)/float32(out)
	// at returns the left neighbor of an output position and the distance from it
	at := func(i int) (int, float32) {
		v := max((float32(i)+0.5)*step-0.5, 0)
		return int(v), v - float32(int(v))
	}
	return &match{op: "aten::upsample_bilinear2d.vec_out", args: []any{x, []int{out, out}, false, nil}, images: true, units: channels * out * out,
		outs: []*tensor.Tensor{blank(tensor.Float32, 1, channels, out, out)},
		naive: func(result *tensor.Tensor) {
			x, y := floats(x), floats(result)
			for i := range y {
				p := x[i/(out*out)*in*in:]
				h0, v := at(i / out % out)
				w0, u := at(i % out)
				h1, w1 := min(h0+1, in-1), min(w0+1, in-1)
				y[i] = (1-v)*((1-u)*p[h0*in+w0]+u*p[h0*in+w1]) + v*((1-u)*p[h1*in+w0]+u*p[h1*in+w1])
			}
		},
		node: func(g *graphtest.Maker, x []int, y int) {
			g.Node("StaticResizeBilinear2D", x, []int{y}, func(n *graph.Node) {
				*graph.Params[graph.ResizeParams](n) = graph.ResizeParams{Height: out, Width: out}
			})
		}}
}

// quantizedLines convert between float32 and int8, and add int8.
func quantizedLines() []line {
	const n = 256 << 10
	return []line{
		{"quantize 256K", func() *match { return quantizationMatch(n) }},
		{"dequantize 256K", func() *match { return dequantizationMatch(n) }},
		{"add 256K", func() *match { return quantizedAddMatch(n) }},
	}
}

const quantizedScale, quantizedZero = 0.05, 3

// withQuant sets the operators' scale and zero point for int8 values.
func withQuant(g *graphtest.Maker, values ...int) {
	for _, v := range values {
		g.Graph.Values[v].Quant = graph.Quant{Scale: quantizedScale, ZeroPoint: quantizedZero}
	}
}

func naiveQuantize(x float32) int8 {
	return int8(max(-128, min(127, math.RoundToEven(float64(x/quantizedScale))+quantizedZero)))
}

func quantizationMatch(n int) *match {
	x := noise(n)
	return &match{op: "quantized_decomposed::quantize_per_tensor.out", args: []any{x, quantizedScale, quantizedZero, -128, 127, tensor.Int8},
		outs: []*tensor.Tensor{blank(tensor.Int8, n)}, units: n,
		naive: func(y *tensor.Tensor) {
			q := tensor.Data[int8](y)
			for i, v := range floats(x) {
				q[i] = naiveQuantize(v)
			}
		},
		node: func(g *graphtest.Maker, x []int, y int) {
			withQuant(g, y)
			g.Node("Convert", x, []int{y})
		}}
}

// bytesOf returns n quantized random numbers.
func bytesOf(n int) *tensor.Tensor {
	q := blank(tensor.Int8, n)
	for i, v := range floats(noise(n)) {
		tensor.Data[int8](q)[i] = naiveQuantize(v)
	}
	return q
}

func dequantizationMatch(n int) *match {
	x := bytesOf(n)
	return &match{op: "quantized_decomposed::dequantize_per_tensor.out", args: []any{x, quantizedScale, quantizedZero, -128, 127, tensor.Int8, nil},
		outs: []*tensor.Tensor{blank(tensor.Float32, n)}, units: n,
		naive: func(out *tensor.Tensor) {
			y := floats(out)
			for i, v := range tensor.Data[int8](x) {
				y[i] = float32(int(v)-quantizedZero) * quantizedScale
			}
		},
		node: func(g *graphtest.Maker, x []int, y int) {
			withQuant(g, x[0])
			g.Node("Convert", x, []int{y})
		}}
}

func quantizedAddMatch(n int) *match {
	a, b := bytesOf(n), bytesOf(n)
	q := []any{quantizedScale, quantizedZero, -128, 127}
	args := append(append(append([]any{a}, q...), append([]any{b}, q...)...), q...)
	return &match{op: "quantized_decomposed::add.out", args: args, outs: []*tensor.Tensor{blank(tensor.Int8, n)}, units: n,
		naive: func(out *tensor.Tensor) {
			b, y := tensor.Data[int8](b), tensor.Data[int8](out)
			for i, v := range tensor.Data[int8](a) {
				sum := float32(int(v)-quantizedZero)*quantizedScale + float32(int(b[i])-quantizedZero)*quantizedScale
				y[i] = naiveQuantize(sum)
			}
		},
		node: func(g *graphtest.Maker, x []int, y int) {
			withQuant(g, x[0], x[1], y)
			g.Node("Add", x, []int{y})
		}}
}
