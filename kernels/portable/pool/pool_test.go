package pool

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var types = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int64, tensor.Int8, tensor.Uint8}

// problem is a pooling over the last dims of three dimensions with everything chosen at random.
type problem struct {
	dims                                int
	size, kernel, stride, pad, dil, out [3]int
	ceil                                bool
}

// random draws a legal problem; dilation is 1 unless dilated.
func random(r *rand.Rand, dims int, dilated bool) *problem {
	one := [3]int{1, 1, 1}
	for {
		p := &problem{dims: dims, size: one, kernel: one, stride: one, dil: one, out: one, ceil: r.IntN(2) == 0}
		ok := true
		for i := 3 - dims; i < 3; i++ {
			p.size[i], p.kernel[i], p.stride[i] = 1+r.IntN(9), 1+r.IntN(4), 1+r.IntN(4)
			if r.IntN(4) == 0 && i > 0 { // several tiles, and rows longer than vectors
				p.size[i] = 20 + r.IntN(100/(dims-1))
			}
			if r.IntN(10) == 0 { // not tap by tap
				p.kernel[i] = 5 + r.IntN(20)
			}
			if dilated {
				p.dil[i] = 1 + r.IntN(3)
			}
			extent := p.dil[i]*(p.kernel[i]-1) + 1
			p.pad[i] = r.IntN(extent/2 + 1)
			room := p.size[i] + 2*p.pad[i] - extent
			ok = ok && room >= 0
			p.out[i] = room/p.stride[i] + 1
			if p.ceil && room%p.stride[i] > 0 && p.out[i]*p.stride[i] < p.size[i]+p.pad[i] {
				p.out[i]++
			}
		}
		if ok {
			return p
		}
	}
}

func (p *problem) String() string {
	return fmt.Sprintf("size %v kernel %v stride %v pad %v dilation %v ceil %v", p.size, p.kernel, p.stride, p.pad, p.dil, p.ceil)
}

// last is a size or parameter of the problem's own dimensions.
func (p *problem) last(v *[3]int) []int { return v[3-p.dims:] }

// of is sizes of a tensor with those at its end.
func (p *problem) of(batch, channels int, v *[3]int) []int {
	return append([]int{batch, channels}, p.last(v)...)
}

func (p *problem) op(format string) string { return fmt.Sprintf(format, p.dims) }

// window calls f for the input points of an output point that lie inside.
func (p *problem) window(o [3]int, f func(at int)) {
	for k := range p.kernel[0] * p.kernel[1] * p.kernel[2] {
		tap := [3]int{k / p.kernel[2] / p.kernel[1], k / p.kernel[2] % p.kernel[1], k % p.kernel[2]}
		at, inside := 0, true
		for i := range 3 {
			v := o[i]*p.stride[i] - p.pad[i] + tap[i]*p.dil[i]
			inside = inside && v >= 0 && v < p.size[i]
			at = at*p.size[i] + v
		}
		if inside {
			f(at)
		}
	}
}

// start is the index of the first tap of a window that does not lie before the input: PyTorch's result for a window
// without elements, even if that tap lies behind the input.
func (p *problem) start(o [3]int) (at int) {
	for i := range 3 {
		v := o[i]*p.stride[i] - p.pad[i]
		for v < 0 {
			v += p.dil[i]
		}
		at = at*p.size[i] + v
	}
	return at
}

// each calls f for every output element: its flat index, its plane of x, its place.
func (p *problem) each(x []float64, f func(i int, plane []float64, o [3]int)) {
	points, outs := p.size[0]*p.size[1]*p.size[2], p.out[0]*p.out[1]*p.out[2]
	for i := range len(x) / points * outs {
		f(i, x[i/outs*points:][:points], [3]int{i % outs / p.out[2] / p.out[1], i / p.out[2] % p.out[1], i % p.out[2]})
	}
}

// layouts are the batch, the channels and the dim orders of input and output: any, or channels last with
// enough of them for vectors. There may be fewer planes than threads.
func layouts(r *rand.Rand, i, dims int) (batch, channels int, in, out []uint8) {
	if i%4 == 0 {
		last := append([]uint8{0, 2, 3, 4}[:dims+1:dims+1], 1)
		return 2, 8 + r.IntN(5), last, last
	}
	return 1 + r.IntN(2), 1 + r.IntN(3), kerneltest.AnyOrder(r, dims+2), kerneltest.AnyOrder(r, dims+2)
}

// largest is a case of maxima of x, with an output in dim order to. missed reports whether a window has no elements.
func (p *problem) largest(x *tensor.Tensor, to []uint8, unread ...int) (c kerneltest.Case, missed bool) {
	sizes := p.of(x.Sizes[0], x.Sizes[1], &p.out)
	n, _ := tensor.Product(sizes)
	want, index := make([]float64, n), make([]float64, n)
	p.each(kerneltest.Dense(x), func(i int, plane []float64, o [3]int) {
		best := -1
		p.window(o, func(at int) {
			if best < 0 || plane[at] > plane[best] {
				best = at
			}
		})
		if best < 0 {
			missed, want[i], index[i] = true, lowest[float64](x.DType), float64(p.start(o))
			return
		}
		want[i], index[i] = plane[best], float64(best)
	})
	return kerneltest.Case{Name: fmt.Sprint(x.DType, " ", p, unread), Op: p.op("aten::max_pool%dd_with_indices.out"), Unread: unread,
		Args: []any{x, p.last(&p.kernel), p.last(&p.stride), p.last(&p.pad), p.last(&p.dil), p.ceil},
		Want: []any{kerneltest.FromDense(x.DType, sizes, to, want), kerneltest.FromDense(tensor.Int64, sizes, to, index)}}, missed
}

func TestMaxPool(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cases []kerneltest.Case
	var empty [2]int // problems with windows without elements, whose indices are read, or not
	for i := range 400 {
		p, d := random(r, 2+r.IntN(2), true), types[i%len(types)]
		batch, channels, from, to := layouts(r, i/2, p.dims)
		x := kerneltest.Noise(r, d, p.of(batch, channels, &p.size), from)
		if xs := tensor.Data[float32](x); d == tensor.Float32 && i%2 == 0 {
			for range len(xs) / 2 {
				xs[r.IntN(len(xs))] = float32(math.Inf(-1)) // no more than padding
			}
		}
		var unread []int
		if i%3 == 0 {
			unread = []int{maxIndices}
		}
		c, missed := p.largest(x, to, unread...)
		if missed {
			empty[len(unread)]++
		}
		cases = append(cases, c)
	}
	if empty[0] == 0 || empty[1] == 0 {
		t.Errorf("%d problems with windows without elements, want some with indices and some without", empty)
	}
	kerneltest.Run(t, set, cases...)
}

// TestFewPlanes pools fewer planes than threads, which are divided into tiles of rows.
func TestFewPlanes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	one := [3]int{1, 1, 1}
	var cases []kerneltest.Case
	for _, p := range []*problem{
		{dims: 2, size: [3]int{1, 220, 160}, kernel: [3]int{1, 2, 2}, stride: [3]int{1, 2, 2}, dil: one, out: [3]int{1, 110, 80}},
		{dims: 2, size: [3]int{1, 151, 160}, kernel: [3]int{1, 3, 3}, stride: one, pad: [3]int{0, 1, 1}, dil: one, out: [3]int{1, 151, 160}},
		{dims: 3, size: [3]int{2, 61, 160}, kernel: [3]int{2, 3, 3}, stride: one, pad: [3]int{0, 1, 1}, dil: one, out: [3]int{1, 61, 160}},
	} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.Int8, tensor.Uint8} {
			x := kerneltest.Noise(r, d, p.of(1, 2, &p.size), nil)
			read, _ := p.largest(x, nil)
			unread, _ := p.largest(x, nil, maxIndices)
			if cases = append(cases, read, unread); d.IsFloat() {
				cases = append(cases, p.mean(x, nil, false, nil))
			}
		}
	}
	kerneltest.Run(t, set, cases...)
}

// TestTiles pools in all layouts of tiles: of many planes, of one, and of rows too long for lanes.
func TestTiles(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	one := [3]int{1, 1, 1}
	var cases []kerneltest.Case
	for _, g := range []struct{ planes, height, width, kernel, stride, pad, dilation int }{
		{150, 8, 8, 2, 2, 0, 1}, {200, 5, 5, 3, 2, 1, 1}, {200, 5, 7, 3, 1, 1, 1}, {200, 7, 7, 3, 3, 1, 1},
		{40, 30, 31, 3, 2, 1, 1}, {40, 30, 31, 5, 3, 2, 1}, {40, 30, 31, 2, 2, 0, 2},
		{1, 9, 150, 70, 1, 35, 1}, {2, 70, 90, 9, 2, 4, 7}, {3, 4, 20000, 3, 5, 1, 1}, {1, 3, 20000, 2, 1, 1, 1},
		{2, 17000, 3, 17000, 1, 0, 1}, // more rows than are listed
		{40, 2, 7, 4, 1, 5, 3},        // several planes at a time, and windows without elements
	} {
		p := &problem{dims: 2, size: [3]int{1, g.height, g.width}, stride: [3]int{1, g.stride, g.stride}, kernel: one, dil: one, out: one}
		p.dil, p.pad = [3]int{1, g.dilation, g.dilation}, [3]int{0, g.pad, g.pad}
		for i := 1; i < 3; i++ {
			if p.kernel[i] = g.kernel; g.dilation == 1 {
				p.kernel[i] = min(g.kernel, p.size[i])
			}
			p.pad[i] = min(g.pad, (g.dilation*(p.kernel[i]-1)+1)/2)
			p.out[i] = (p.size[i]+2*p.pad[i]-g.dilation*(p.kernel[i]-1)-1)/g.stride + 1
		}
		for _, d := range []tensor.DType{tensor.Float32, tensor.Int64} {
			x := kerneltest.Noise(r, d, p.of(1, g.planes, &p.size), nil)
			c, _ := p.largest(x, nil, maxIndices)
			if cases = append(cases, c); g.dilation == 1 {
				cases = append(cases, p.mean(x, nil, false, nil), p.mean(x, nil, true, nil))
			}
		}
	}
	kerneltest.Run(t, set, cases...)
}

func TestMaxPoolBackward(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var cases []kerneltest.Case
	for i := range 40 {
		p, d := random(r, 2+r.IntN(2), false), types[i%4]
		x := kerneltest.Noise(r, d, p.of(2, 3, &p.size), nil)
		sizes, points := p.of(2, 3, &p.out), p.size[0]*p.size[1]*p.size[2]
		g := kerneltest.Noise(r, d, sizes, kerneltest.AnyOrder(r, p.dims+2))
		gs, index := kerneltest.Dense(g), make([]float64, g.Numel())
		want := make([]float64, x.Numel())
		p.each(kerneltest.Dense(x), func(i int, _ []float64, _ [3]int) {
			index[i] = float64(r.IntN(points))
			want[i/(p.out[0]*p.out[1]*p.out[2])*points+int(index[i])] += gs[i]
		})
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(d, " ", p),
			Op: p.op("aten::max_pool%dd_with_indices_backward.grad_input"), Scale: 40,
			Args: []any{g, x, p.last(&p.kernel), p.last(&p.stride), p.last(&p.pad), []int{1}, p.ceil,
				kerneltest.FromDense(tensor.Int64, sizes, nil, index)},
			Want: []any{kerneltest.FromDense(d, x.Sizes, nil, want)}})
	}
	kerneltest.Run(t, set, cases...)
}

// mean is a case of means of x, with an output in dim order to.
func (p *problem) mean(x *tensor.Tensor, to []uint8, include bool, divisor any) kerneltest.Case {
	sizes := p.of(x.Sizes[0], x.Sizes[1], &p.out)
	n, _ := tensor.Product(sizes)
	want := make([]float64, n)
	p.each(kerneltest.Dense(x), func(i int, plane []float64, o [3]int) {
		count := 0
		p.window(o, func(at int) { want[i] += plane[at]; count++ })
		switch {
		case divisor != nil:
			count = divisor.(int)
		case include:
			count = 1
			for d, at := range o {
				start := at*p.stride[d] - p.pad[d]
				count *= min(start+p.kernel[d], p.size[d]+p.pad[d]) - start
			}
		}
		want[i] /= float64(max(count, 1))
		if x.DType == tensor.Int64 {
			want[i] = math.Trunc(want[i])
		}
	})
	return kerneltest.Case{Name: fmt.Sprint(x.DType, " ", p, include, divisor), Op: p.op("aten::avg_pool%dd.out"), Scale: 16,
		Args: []any{x, p.last(&p.kernel), p.last(&p.stride), p.last(&p.pad), p.ceil, include, divisor},
		Want: []any{kerneltest.FromDense(x.DType, sizes, to, want)}}
}

func TestAvgPool(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var cases []kerneltest.Case
	for i := range 200 {
		p, d := random(r, 2+r.IntN(2), false), types[i%5]
		batch, channels, from, to := layouts(r, i, p.dims)
		x, divisor := kerneltest.Noise(r, d, p.of(batch, channels, &p.size), from), any(nil)
		if i%3 == 0 {
			divisor = 1 + r.IntN(5)
		}
		cases = append(cases, p.mean(x, to, i%2 == 0, divisor))
	}
	kerneltest.Run(t, set, cases...)
}

func TestAdaptiveAvgPool(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var cases []kerneltest.Case
	for i := range 60 {
		dims, d, in, out := 2+r.IntN(2), types[i%4], [3]int{1, 1, 1}, [3]int{1, 1, 1}
		for k := 3 - dims; k < 3; k++ {
			in[k], out[k] = 1+r.IntN(9), 1+r.IntN(9)
		}
		batch, channels, from, to := layouts(r, i, dims)
		p := &problem{dims: dims, size: in, out: out, stride: [3]int{1, 1, 1}, dil: [3]int{1, 1, 1}}
		x := kerneltest.Noise(r, d, p.of(batch, channels, &in), from)
		want := make([]float64, batch*channels*out[0]*out[1]*out[2])
		p.each(kerneltest.Dense(x), func(i int, plane []float64, o [3]int) {
			for k := range 3 { // the window is one of its own, at its place
				lo := o[k] * in[k] / out[k]
				p.kernel[k], p.pad[k] = ((o[k]+1)*in[k]+out[k]-1)/out[k]-lo, o[k]-lo
			}
			p.window(o, func(at int) { want[i] += plane[at] / float64(p.kernel[0]*p.kernel[1]*p.kernel[2]) })
		})
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(d, in, "→", out), Op: p.op("aten::_adaptive_avg_pool%dd.out"), Scale: 4,
			Args: []any{x, p.last(&out)}, Want: []any{kerneltest.FromDense(d, p.of(batch, channels, &out), to, want)}})
	}
	kerneltest.Run(t, set, cases...)
}

func TestEdges(t *testing.T) {
	f := func(v ...float32) *tensor.Tensor { return tensor.Of(v, 1, 1, len(v)) }
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	index := func(v ...int64) *tensor.Tensor { return tensor.Of(v, 1, 1, len(v)) }
	pool := func(name string, x *tensor.Tensor, kernel int, want ...any) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: "aten::max_pool2d_with_indices.out", Want: want,
			Args: []any{x, []int{1, kernel}, []int{}, []int{0}, []int{1}, false}}
	}
	refused := func(name, want string, kernel, stride, pad, dilation []int) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: "aten::max_pool2d_with_indices.out", Outs: []any{f(1), index(0)}, Refused: want,
			Args: []any{f(1, 2, 3), kernel, stride, pad, dilation, false}}
	}
	one := []int{1, 1}
	kerneltest.Run(t, set,
		pool("the first of equals", f(1, 2, 2), 3, f(2), index(1)),
		pool("NaN wins, the last of them", f(nan, 5, nan, 7), 4, f(nan), index(2)),
		pool("nothing but -Inf", f(inf, inf), 2, f(inf), index(0)),
		refused("kernel of 0", "entries in [1", []int{0, 1}, one, []int{0, 0}, one),
		refused("stride of 0", "entries in [1", one, []int{0, 1}, []int{0, 0}, one),
		refused("padding above half the kernel", "half", one, one, one, one),
		refused("kernel larger than the input", "fits", []int{1, 9}, one, []int{0, 0}, one),
		refused("three strides", "1 or 2", one, []int{1, 1, 1}, []int{0, 0}, one),
		kerneltest.Case{Name: "index outside", Op: "aten::max_pool2d_with_indices_backward.grad_input", Outs: []any{f(1, 2)},
			Refused: "indices into",
			Args:    []any{f(1, 1), f(1, 2), one, one, []int{0, 0}, one, false, index(0, 2)}},
		kerneltest.Case{Name: "divisor of 0", Op: "aten::avg_pool2d.out", Outs: []any{f(1, 2)}, Refused: "anything but 0",
			Args: []any{f(1, 2), one, one, []int{0, 0}, false, true, 0}},
		kerneltest.Case{Name: "two sizes of three", Op: "aten::avg_pool3d.out", Outs: []any{tensor.New(tensor.Float32, 1, 2, 2, 2)},
			Refused: "1 or 3",
			Args:    []any{tensor.New(tensor.Float32, 1, 2, 2, 2), one, []int{}, []int{0}, false, true, nil}},
		kerneltest.Case{Name: "rank of 2 dimensions", Op: "aten::avg_pool3d.out", Outs: []any{f(1, 2)}, Refused: "rank 4 or 5",
			Args: []any{f(1, 2), []int{1}, []int{}, []int{0}, false, true, nil}},
		kerneltest.Case{Name: "no output", Op: "aten::_adaptive_avg_pool2d.out", Args: []any{f(1, 2), []int{0, 2}},
			Want: []any{tensor.New(tensor.Float32, 1, 0, 2)}},
	)
}

func TestNoAllocs(t *testing.T) {
	two := []int{2, 2}
	flat := func(d tensor.DType, planes, size int) *tensor.Tensor { return tensor.New(d, planes, size, size) }
	last := func(d tensor.DType, size int) *tensor.Tensor {
		return kerneltest.FromDense(d, []int{1, 8, size, size}, []uint8{0, 2, 3, 1}, make([]float64, 8*size*size))
	}
	deep := func(d tensor.DType, size int) *tensor.Tensor { return tensor.New(d, 4, size, size, size) }
	largest := func(name string, x, y, index *tensor.Tensor, unread ...int) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: "aten::max_pool2d_with_indices.out", Unread: unread,
			Args: []any{x, two, two, []int{0}, []int{1}, false}, Want: []any{y, index}}
	}
	mean := func(name string, x, y *tensor.Tensor, window int) kerneltest.Case {
		size := []int{window, window}
		return kerneltest.Case{Name: name, Op: "aten::avg_pool2d.out", Args: []any{x, size, size, []int{0}, false, true, nil}, Want: []any{y}}
	}
	x, y, index, narrow := flat(tensor.Float32, 8, 40), flat(tensor.Float32, 8, 20), flat(tensor.Int64, 8, 20), flat(tensor.Int64, 8, 4)
	kerneltest.NoAllocs(t, set,
		largest("max", x, y, index),
		largest("max, channels last", last(tensor.Float32, 40), last(tensor.Float32, 20), last(tensor.Int64, 20)),
		largest("max without indices", x, y, index, maxIndices),
		largest("max of halves", flat(tensor.Float16, 8, 40), flat(tensor.Float16, 8, 20), index),
		largest("max of halves without indices", flat(tensor.Float16, 8, 40), flat(tensor.Float16, 8, 20), index, maxIndices),
		largest("max of int8", flat(tensor.Int8, 8, 40), flat(tensor.Int8, 8, 20), index),
		largest("max of int8 without indices", flat(tensor.Int8, 8, 40), flat(tensor.Int8, 8, 20), index, maxIndices),
		largest("max of narrow planes", flat(tensor.Float32, 8, 8), flat(tensor.Float32, 8, 4), narrow),
		largest("max of narrow planes of int8 without indices", flat(tensor.Int8, 8, 8), flat(tensor.Int8, 8, 4), narrow, maxIndices),
		mean("avg", x, y, 2),
		mean("avg, channels last", last(tensor.Float32, 40), last(tensor.Float32, 20), 2),
		mean("avg of large windows", x, flat(tensor.Float32, 8, 4), 10),
		mean("avg of halves", flat(tensor.Float16, 8, 40), flat(tensor.Float16, 8, 20), 2),
		mean("avg of narrow planes", flat(tensor.Float32, 8, 8), flat(tensor.Float32, 8, 4), 2),
		mean("avg of narrow planes of halves", flat(tensor.Float16, 8, 8), flat(tensor.Float16, 8, 4), 2),
		kerneltest.Case{Name: "max backward", Op: "aten::max_pool2d_with_indices_backward.grad_input",
			Args: []any{y, x, two, two, []int{0}, []int{1}, false, index}, Want: []any{x}},
		kerneltest.Case{Name: "max of 3 dimensions", Op: "aten::max_pool3d_with_indices.out",
			Args: []any{deep(tensor.Float32, 8), []int{2}, []int{2}, []int{1}, []int{1}, false},
			Want: []any{deep(tensor.Float32, 5), deep(tensor.Int64, 5)}},
		kerneltest.Case{Name: "avg of 3 dimensions", Op: "aten::avg_pool3d.out",
			Args: []any{deep(tensor.Float32, 8), []int{2}, []int{2}, []int{1}, false, true, nil}, Want: []any{deep(tensor.Float32, 5)}},
		kerneltest.Case{Name: "adaptive", Op: "aten::_adaptive_avg_pool2d.out", Args: []any{x, []int{20, 20}}, Want: []any{y}},
	)
}
