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
				p.dil[i] = 1 + r.IntN(2)
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

// each calls f for every output element: its flat index, its plane of x, its place.
func (p *problem) each(x []float64, f func(i int, plane []float64, o [3]int)) {
	points, outs := p.size[0]*p.size[1]*p.size[2], p.out[0]*p.out[1]*p.out[2]
	for i := range len(x) / points * outs {
		f(i, x[i/outs*points:][:points], [3]int{i % outs / p.out[2] / p.out[1], i / p.out[2] % p.out[1], i % p.out[2]})
	}
}

// layouts are channels and dim orders of input and output: any, or channels last with
// enough of them for vectors.
func layouts(r *rand.Rand, i, dims int) (channels int, in, out []uint8) {
	if i%4 == 0 {
		last := append([]uint8{0, 2, 3, 4}[:dims+1:dims+1], 1)
		return 8 + r.IntN(5), last, last
	}
	return 3, kerneltest.AnyOrder(r, dims+2), kerneltest.AnyOrder(r, dims+2)
}

func TestMaxPool(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cases []kerneltest.Case
	for i := range 400 {
		p, d := random(r, 2+i/120%2, true), types[i%len(types)]
		channels, from, to := layouts(r, i/2, p.dims)
		x := kerneltest.Noise(r, d, p.of(2, channels, &p.size), from)
		if xs := tensor.Data[float32](x); d == tensor.Float32 && i%2 == 0 {
			for range len(xs) / 2 {
				xs[r.IntN(len(xs))] = float32(math.Inf(-1)) // no more than padding
			}
		}
		sizes := p.of(2, channels, &p.out)
		n, _ := tensor.Product(sizes)
		want, index := make([]float64, n), make([]float64, n)
		missed := false
		p.each(kerneltest.Dense(x), func(i int, plane []float64, o [3]int) {
			best := -1
			p.window(o, func(at int) {
				if best < 0 || plane[at] > plane[best] {
					best = at
				}
			})
			if best < 0 {
				missed, want[i] = true, lowest[float64](d)
				return
			}
			want[i], index[i] = plane[best], float64(best)
		})
		var unread []int
		if i%3 == 0 || missed { // the index of a window without elements is nowhere defined
			unread = []int{maxIndices}
		}
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(d, " ", p, unread), Op: p.op("aten::max_pool%dd_with_indices.out"), Unread: unread,
			Args: []any{x, p.last(&p.kernel), p.last(&p.stride), p.last(&p.pad), p.last(&p.dil), p.ceil},
			Want: []any{kerneltest.FromDense(d, sizes, to, want), kerneltest.FromDense(tensor.Int64, sizes, to, index)}})
	}
	kerneltest.Run(t, set, cases...)
}

func TestMaxPoolBackward(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var cases []kerneltest.Case
	for i := range 40 {
		p, d := random(r, 2+i/30, false), types[i%4]
		x := kerneltest.Noise(r, d, p.of(2, 3, &p.size), nil)
		sizes, points := p.of(2, 3, &p.out), p.size[0]*p.size[1]*p.size[2]
		g := kerneltest.Noise(r, d, sizes, kerneltest.AnyOrder(r, p.dims+2))
		gs, index := kerneltest.Dense(g), make([]float64, g.Numel())
		want := make([]float64, x.Numel())
		p.each(kerneltest.Dense(x), func(i int, _ []float64, _ [3]int) {
			index[i] = float64(r.IntN(points))
			want[i/(p.out[0]*p.out[1]*p.out[2])*points+int(index[i])] += gs[i]
		})
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(d, " ", p), Op: p.op("aten::max_pool%dd_with_indices_backward.grad_input"), Scale: 40,
			Args: []any{g, x, p.last(&p.kernel), p.last(&p.stride), p.last(&p.pad), []int{1}, p.ceil, kerneltest.FromDense(tensor.Int64, sizes, nil, index)},
			Want: []any{kerneltest.FromDense(d, x.Sizes, nil, want)}})
	}
	kerneltest.Run(t, set, cases...)
}

func TestAvgPool(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var cases []kerneltest.Case
	for i := range 200 {
		p, d := random(r, 2+i/120, false), types[i%5]
		channels, from, to := layouts(r, i, p.dims)
		x := kerneltest.Noise(r, d, p.of(2, channels, &p.size), from)
		sizes := p.of(2, channels, &p.out)
		n, _ := tensor.Product(sizes)
		want := make([]float64, n)
		include, divisor := i%2 == 0, any(nil)
		if i%3 == 0 {
			divisor = 1 + r.IntN(5)
		}
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
			if d == tensor.Int64 {
				want[i] = math.Trunc(want[i])
			}
		})
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(d, " ", p, include, divisor), Op: p.op("aten::avg_pool%dd.out"), Scale: 16,
			Args: []any{x, p.last(&p.kernel), p.last(&p.stride), p.last(&p.pad), p.ceil, include, divisor},
			Want: []any{kerneltest.FromDense(d, sizes, to, want)}})
	}
	kerneltest.Run(t, set, cases...)
}

func TestAdaptiveAvgPool(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var cases []kerneltest.Case
	for i := range 60 {
		dims, d, in, out := 2+i/40, types[i%4], [3]int{1, 1, 1}, [3]int{1, 1, 1}
		for k := 3 - dims; k < 3; k++ {
			in[k], out[k] = 1+r.IntN(9), 1+r.IntN(9)
		}
		channels, from, to := layouts(r, i, dims)
		p := &problem{dims: dims, size: in, out: out, stride: [3]int{1, 1, 1}, dil: [3]int{1, 1, 1}}
		x := kerneltest.Noise(r, d, p.of(1, channels, &in), from)
		want := make([]float64, channels*out[0]*out[1]*out[2])
		p.each(kerneltest.Dense(x), func(i int, plane []float64, o [3]int) {
			for k := range 3 { // the window is one of its own, at its place
				lo := o[k] * in[k] / out[k]
				p.kernel[k], p.pad[k] = ((o[k]+1)*in[k]+out[k]-1)/out[k]-lo, o[k]-lo
			}
			p.window(o, func(at int) { want[i] += plane[at] / float64(p.kernel[0]*p.kernel[1]*p.kernel[2]) })
		})
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(d, in, "→", out), Op: p.op("aten::_adaptive_avg_pool%dd.out"), Scale: 4,
			Args: []any{x, p.last(&out)}, Want: []any{kerneltest.FromDense(d, p.of(1, channels, &out), to, want)}})
	}
	kerneltest.Run(t, set, cases...)
}

func TestEdges(t *testing.T) {
	f := func(v ...float32) *tensor.Tensor { return tensor.Of(v, 1, 1, len(v)) }
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	index := func(v ...int64) *tensor.Tensor { return tensor.Of(v, 1, 1, len(v)) }
	pool := func(name string, x *tensor.Tensor, kernel int, want ...any) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: "aten::max_pool2d_with_indices.out", Want: want, Args: []any{x, []int{1, kernel}, []int{}, []int{0}, []int{1}, false}}
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
		kerneltest.Case{Name: "index outside", Op: "aten::max_pool2d_with_indices_backward.grad_input", Outs: []any{f(1, 2)}, Refused: "indices into",
			Args: []any{f(1, 1), f(1, 2), one, one, []int{0, 0}, one, false, index(0, 2)}},
		kerneltest.Case{Name: "divisor of 0", Op: "aten::avg_pool2d.out", Outs: []any{f(1, 2)}, Refused: "anything but 0",
			Args: []any{f(1, 2), one, one, []int{0, 0}, false, true, 0}},
		kerneltest.Case{Name: "two sizes of three", Op: "aten::avg_pool3d.out", Outs: []any{tensor.New(tensor.Float32, 1, 2, 2, 2)}, Refused: "1 or 3",
			Args: []any{tensor.New(tensor.Float32, 1, 2, 2, 2), one, []int{}, []int{0}, false, true, nil}},
		kerneltest.Case{Name: "rank of 2 dimensions", Op: "aten::avg_pool3d.out", Outs: []any{f(1, 2)}, Refused: "rank 4 or 5",
			Args: []any{f(1, 2), []int{1}, []int{}, []int{0}, false, true, nil}},
		kerneltest.Case{Name: "no output", Op: "aten::_adaptive_avg_pool2d.out", Args: []any{f(1, 2), []int{0, 2}}, Want: []any{tensor.New(tensor.Float32, 1, 0, 2)}},
	)
}

func TestNoAllocs(t *testing.T) {
	x, y := tensor.New(tensor.Float32, 8, 40, 40), tensor.New(tensor.Float32, 8, 20, 20)
	i := tensor.New(tensor.Int64, 8, 20, 20)
	two := []int{2, 2}
	last := func(d tensor.DType, size int) *tensor.Tensor {
		return kerneltest.FromDense(d, []int{1, 8, size, size}, []uint8{0, 2, 3, 1}, make([]float64, 8*size*size))
	}
	deep := func(size int) *tensor.Tensor { return tensor.New(tensor.Float32, 4, size, size, size) }
	kerneltest.NoAllocs(t, set,
		kerneltest.Case{Name: "max", Op: "aten::max_pool2d_with_indices.out", Args: []any{x, two, two, []int{0}, []int{1}, false}, Want: []any{y, i}},
		kerneltest.Case{Name: "max backward", Op: "aten::max_pool2d_with_indices_backward.grad_input", Args: []any{y, x, two, two, []int{0}, []int{1}, false, i}, Want: []any{x}},
		kerneltest.Case{Name: "avg", Op: "aten::avg_pool2d.out", Args: []any{x, two, two, []int{0}, false, true, nil}, Want: []any{y}},
		kerneltest.Case{Name: "max, channels last", Op: "aten::max_pool2d_with_indices.out", Args: []any{last(tensor.Float32, 40), two, two, []int{0}, []int{1}, false},
			Want: []any{last(tensor.Float32, 20), last(tensor.Int64, 20)}},
		kerneltest.Case{Name: "avg, channels last", Op: "aten::avg_pool2d.out", Args: []any{last(tensor.Float32, 40), two, two, []int{0}, false, true, nil}, Want: []any{last(tensor.Float32, 20)}},
		kerneltest.Case{Name: "avg of large windows", Op: "aten::avg_pool2d.out", Args: []any{x, []int{10}, []int{10}, []int{0}, false, true, nil}, Want: []any{tensor.New(tensor.Float32, 8, 4, 4)}},
		kerneltest.Case{Name: "max of 3 dimensions", Op: "aten::max_pool3d_with_indices.out", Args: []any{deep(8), []int{2}, []int{2}, []int{1}, []int{1}, false},
			Want: []any{deep(5), tensor.New(tensor.Int64, 4, 5, 5, 5)}},
		kerneltest.Case{Name: "avg of 3 dimensions", Op: "aten::avg_pool3d.out", Args: []any{deep(8), []int{2}, []int{2}, []int{1}, false, true, nil}, Want: []any{deep(5)}},
		kerneltest.Case{Name: "adaptive", Op: "aten::_adaptive_avg_pool2d.out", Args: []any{x, []int{20, 20}}, Want: []any{y}},
	)
}
