package conv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// problem is a convolution with everything chosen at random, over three spatial
// dimensions; rank cuts the leading ones off.
type problem struct {
	rank                                 int // spatial
	batch, groups, in, out               int // in and out channels of a group
	size, kernel, stride, pad, dil, more [3]int
	outSize                              [3]int
	transposed                           bool
	last                                 bool // channels
}

func (p *problem) String() string {
	c := 3 - p.rank
	return fmt.Sprintf("%dd batch %d groups %d %d→%d size %v kernel %v stride %v pad %v dilation %v output pad %v transposed %v",
		p.rank, p.batch, p.groups, p.in, p.out, p.size[c:], p.kernel[c:], p.stride[c:], p.pad[c:], p.dil[c:], p.more[c:], p.transposed)
}

// random draws a problem, again until its output is not empty.
func random(r *rand.Rand) *problem {
	for {
		p := &problem{rank: 1 + r.IntN(3), batch: 1 + r.IntN(2), groups: 1 + r.IntN(3), in: 1 + r.IntN(5), out: 1 + r.IntN(9), transposed: r.IntN(3) == 0}
		if r.IntN(3) == 0 { // depthwise
			p.in, p.groups, p.out = 1, 1+r.IntN(6), 1+r.IntN(2)
		}
		ok := true
		for i := range 3 {
			p.size[i], p.kernel[i], p.stride[i], p.dil[i] = 1, 1, 1, 1
			if i >= 3-p.rank {
				p.size[i], p.kernel[i] = 1+r.IntN(14), 1+r.IntN(4)
				p.stride[i], p.pad[i], p.dil[i] = 1+r.IntN(3), r.IntN(3), 1+r.IntN(2)
				if p.transposed {
					p.more[i] = r.IntN(max(p.stride[i], p.dil[i]))
				}
			}
			reach := p.dil[i] * (p.kernel[i] - 1)
			p.outSize[i] = p.size[i] + 2*p.pad[i] - reach - 1
			ok = ok && (p.transposed || p.outSize[i] >= 0)
			p.outSize[i] = p.outSize[i]/p.stride[i] + 1
			if p.transposed {
				p.outSize[i] = (p.size[i]-1)*p.stride[i] - 2*p.pad[i] + reach + p.more[i] + 1
			}
			ok = ok && p.outSize[i] > 0
		}
		if ok {
			return p
		}
	}
}

func (p *problem) sizes(channels int, spatial [3]int, lead int) []int {
	return append([]int{lead, channels}, spatial[3-p.rank:]...)
}

func (p *problem) inputSizes() []int  { return p.sizes(p.in*p.groups, p.size, p.batch) }
func (p *problem) outputSizes() []int { return p.sizes(p.out*p.groups, p.outSize, p.batch) }

func (p *problem) weightSizes() []int {
	if p.transposed {
		return p.sizes(p.out, p.kernel, p.in*p.groups)
	}
	return p.sizes(p.in, p.kernel, p.out*p.groups)
}

func (p *problem) bias() int { return p.out * p.groups }

// params are the arguments stride to groups.
func (p *problem) params() []any {
	c := 3 - p.rank
	return []any{p.stride[c:], p.pad[c:], p.dil[c:], p.transposed, p.more[c:], p.groups}
}

// visit calls f with the flat index of every output, input and weight that belong
// together.
func (p *problem) visit(f func(y, x, w int)) {
	from, to := p.outSize, p.size // where a tap reads, as a function of the other side
	if p.transposed {
		from, to = p.size, p.outSize
	}
	for n := range p.batch {
		for g := range p.groups {
			for o := range p.out {
				for i := range p.in {
					for t := range window.Volume(p.kernel) {
						for a := range window.Volume(from) {
							at, inside := p.reach(a, t, from, to)
							if !inside {
								continue
							}
							oc, ic := g*p.out+o, g*p.in+i
							y, x, w := a, at, (oc*p.in+i)*window.Volume(p.kernel)+t
							if p.transposed {
								y, x, w = at, a, (ic*p.out+o)*window.Volume(p.kernel)+t
							}
							f((n*p.out*p.groups+oc)*window.Volume(p.outSize)+y, (n*p.in*p.groups+ic)*window.Volume(p.size)+x, w)
						}
					}
				}
			}
		}
	}
}

// reach is the point of to that tap t connects with point a of from.
func (p *problem) reach(a, t int, from, to [3]int) (at int, inside bool) {
	var x [3]int
	for d := 2; d >= 0; d-- {
		x[d] = a%from[d]*p.stride[d] - p.pad[d] + t%p.kernel[d]*p.dil[d]
		a, t = a/from[d], t/p.kernel[d]
		if x[d] < 0 || x[d] >= to[d] {
			return 0, false
		}
	}
	return (x[0]*to[1]+x[1])*to[2] + x[2], true
}

var types = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Float32,
	tensor.Int32, tensor.Int64, tensor.Int8, tensor.Uint8}

func TestConvolution(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cases []kerneltest.Case
	for i := range 180 {
		p, d := random(r), types[i%len(types)]
		cases = append(cases, p.forward(r, d))
	}
	kerneltest.Run(t, set, cases...)
}

// TestLayers takes sizes beyond one block.
func TestLayers(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	one := [3]int{1, 1, 1}
	var cases []kerneltest.Case
	for _, p := range []problem{
		{rank: 2, batch: 1, groups: 1, in: 70, out: 50, size: [3]int{1, 15, 13}, kernel: [3]int{1, 3, 3}, pad: [3]int{0, 1, 1}},
		{rank: 2, batch: 2, groups: 1, in: 300, out: 20, size: [3]int{1, 9, 13}, kernel: one},
		{rank: 2, batch: 1, groups: 3, in: 1, out: 1, size: [3]int{1, 70, 80}, kernel: [3]int{1, 5, 5}, pad: [3]int{0, 2, 2}},
		{rank: 2, batch: 1, groups: 1, in: 30, out: 20, size: [3]int{1, 15, 13}, kernel: [3]int{1, 3, 3}, transposed: true},
		{rank: 2, batch: 1, groups: 1, in: 2, out: 3, size: [3]int{1, 45, 46}, kernel: [3]int{1, 40, 41}},
		{rank: 1, batch: 1, groups: 1, in: 20, out: 24, size: [3]int{1, 1, 300}, kernel: [3]int{1, 1, 11}},
		{rank: 2, batch: 2, groups: 1, in: 1, out: 40, size: [3]int{1, 7, 9}, kernel: [3]int{1, 3, 3}, pad: [3]int{0, 1, 1}},
		{rank: 2, batch: 1, groups: 3, in: 1, out: 17, size: [3]int{1, 12, 5}, kernel: [3]int{1, 3, 2}},
		{rank: 2, batch: 2, groups: 18, in: 1, out: 1, size: [3]int{1, 6, 3}, kernel: [3]int{1, 3, 3}, pad: [3]int{0, 1, 1}},
	} {
		p.stride, p.dil = one, one
		for i := range 3 {
			p.outSize[i] = p.size[i] + 2*p.pad[i] - p.kernel[i] + 1
			if p.transposed {
				p.outSize[i] = p.size[i] - 1 - 2*p.pad[i] + p.kernel[i]
			}
		}
		cases = append(cases, p.forward(r, tensor.Float32))
	}
	kerneltest.Run(t, set, cases...)
}

// TestDepthwise takes channels enough for vectors, side by side and in planes.
func TestDepthwise(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	var cases []kerneltest.Case
	for i := range 60 {
		p := random(r)
		for p.rank != 2 || p.transposed {
			p = random(r)
		}
		if p.in, p.out, p.groups = 1, 1, 8+r.IntN(20); i%2 == 0 {
			p.groups = 64 + r.IntN(30)
		}
		p.last = i%3 == 0
		cases = append(cases, p.forward(r, tensor.Float32))
	}
	kerneltest.Run(t, set, cases...)
}

func (p *problem) forward(r *rand.Rand, d tensor.DType) kerneltest.Case {
	order := func() []uint8 {
		if p.last {
			return []uint8{0, 2, 3, 1}
		}
		return kerneltest.AnyOrder(r, p.rank+2)
	}
	x, w := kerneltest.Noise(r, d, p.inputSizes(), order()), kerneltest.Noise(r, d, p.weightSizes(), order())
	w.Const = r.IntN(2) == 0
	out := p.outputSizes()
	n, _ := tensor.Product(out)
	want, scale := make([]float64, n), make([]float64, n)
	args := []any{x, w, nil}
	if r.IntN(2) == 0 {
		bias := kerneltest.Noise(r, d, []int{p.bias()}, nil)
		args[2] = bias
		for i, b := range kerneltest.Dense(bias) {
			for j := range want {
				if j/window.Volume(p.outSize)%p.bias() == i {
					want[j], scale[j] = b, math.Abs(b)
				}
			}
		}
	}
	a, b := kerneltest.Dense(x), kerneltest.Dense(w)
	p.visit(func(y, x, w int) {
		want[y] += a[x] * b[w]
		scale[y] += math.Abs(a[x] * b[w])
	})
	return kerneltest.Case{Name: fmt.Sprint(d, " ", p), Op: "aten::convolution.out", Args: append(args, p.params()...),
		Want: []any{kerneltest.FromDense(d, out, order(), want)}, Scale: slices.Max(scale)}
}

func TestBackward(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var cases []kerneltest.Case
	for i := range 80 {
		p, d := random(r), types[i%4]
		x, w := kerneltest.Noise(r, d, p.inputSizes(), nil), kerneltest.Noise(r, d, p.weightSizes(), nil)
		g := kerneltest.Noise(r, d, p.outputSizes(), kerneltest.AnyOrder(r, p.rank+2))
		xs, ws, gs := kerneltest.Dense(x), kerneltest.Dense(w), kerneltest.Dense(g)
		dx, dw, db := make([]float64, len(xs)), make([]float64, len(ws)), make([]float64, p.bias())
		scale := 0.0
		p.visit(func(y, x, w int) {
			dx[x] += gs[y] * ws[w]
			dw[w] += gs[y] * xs[x]
			scale += math.Abs(gs[y]*ws[w]) / float64(len(dx))
		})
		for i, v := range gs {
			db[i/window.Volume(p.outSize)%p.bias()] += v
			scale += math.Abs(v) / float64(len(db))
		}
		args := append([]any{g, x, w, []int{p.bias()}}, p.params()...)
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(d, " ", p), Op: "aten::convolution_backward.out", Scale: scale,
			Args: append(args, []bool{true, true, true}), Want: []any{
				kerneltest.FromDense(d, x.Sizes, nil, dx), kerneltest.FromDense(d, w.Sizes, nil, dw), kerneltest.FromDense(d, []int{p.bias()}, nil, db)}})
	}
	kerneltest.Run(t, set, cases...)
}

func TestEdges(t *testing.T) {
	f := func(sizes ...int) *tensor.Tensor { return tensor.New(tensor.Float32, sizes...) }
	one, zero := []int{1}, []int{0}
	refused := func(name, want string, args ...any) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: "aten::convolution.out", Args: args, Outs: []any{f(1, 1, 1, 1)}, Refused: want}
	}
	x, w := f(1, 1, 4, 4), f(1, 1, 3, 3)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "no images", Op: "aten::convolution.out", Args: []any{f(0, 1, 4, 4), w, nil, one, zero, one, false, zero, 1}, Want: []any{f(0, 1, 2, 2)}},
		kerneltest.Case{Name: "no input channels", Op: "aten::convolution.out", Want: []any{f(1, 2, 2, 2)},
			Args: []any{f(1, 0, 4, 4), f(2, 0, 3, 3), nil, one, zero, one, false, zero, 1}},
		refused("stride of 0", "entries in [1", x, w, nil, zero, zero, one, false, zero, 1),
		refused("negative padding", "entries in [0", x, w, nil, one, []int{-1}, one, false, zero, 1),
		refused("dilation of 0", "entries in [1", x, w, nil, one, zero, zero, false, zero, 1),
		refused("huge padding", "2^", x, w, nil, one, []int64{1 << 40}, one, false, zero, 1),
		refused("groups of 0", "at least 1", x, w, nil, one, zero, one, false, zero, 0),
		refused("groups that do not divide", "groups", x, w, nil, one, zero, one, false, zero, 2),
		refused("kernel of size 0", "zero sizes", x, f(1, 1, 0, 3), nil, one, zero, one, false, zero, 1),
		refused("kernel larger than the input", "fits", x, f(1, 1, 5, 3), nil, one, zero, one, false, zero, 1),
		refused("three strides for two dimensions", "1 or 2 entries", x, w, nil, []int{1, 1, 1}, zero, one, false, zero, 1),
		refused("output padding of the stride", "less than", x, w, nil, one, zero, one, true, one, 1),
		refused("bias of another length", "output channel", x, w, f(2), one, zero, one, false, zero, 1),
		refused("unbatched", "rank", f(1, 4), f(1, 4), nil, one, zero, one, false, zero, 1),
		refused("sparse taps", "out argument", x, f(1, 1, 2, 2), nil, one, []int{1 << 20}, []int{1 << 20}, false, zero, 1),
	)
}

func TestNoAllocs(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	noise := func(d tensor.DType, sizes ...int) *tensor.Tensor { return kerneltest.Noise(r, d, sizes, nil) }
	f, h := tensor.Float32, tensor.Float16
	one, list := []int{1}, []int{1, 1}
	last := tensor.Make(f, []int{1, 8, 6, 6}, []uint8{0, 2, 3, 1}, tensor.Static)
	last.Bind(make([]byte, last.NBytes()))
	kerneltest.NoAllocs(t, set,
		kerneltest.Case{Name: "3x3", Op: "aten::convolution.out", Args: []any{noise(f, 1, 8, 30, 30), noise(f, 40, 8, 3, 3), noise(f, 40), list, list, list, false, []int{0, 0}, 1},
			Want: []any{noise(f, 1, 40, 30, 30)}},
		kerneltest.Case{Name: "depthwise half", Op: "aten::convolution.out", Args: []any{noise(h, 1, 8, 6, 6), noise(h, 8, 1, 3, 3), nil, one, one, one, false, []int{0}, 8},
			Want: []any{noise(h, 1, 8, 6, 6)}},
		kerneltest.Case{Name: "channels last", Op: "aten::convolution.out", Args: []any{last, noise(f, 8, 8, 1, 1), nil, one, []int{0}, one, false, []int{0}, 1}, Want: []any{last}},
		kerneltest.Case{Name: "depthwise, channels last", Op: "aten::convolution.out", Args: []any{last, noise(f, 8, 1, 3, 3), nil, one, one, one, false, []int{0}, 8}, Want: []any{last}},
		kerneltest.Case{Name: "depthwise, narrow", Op: "aten::convolution.out", Args: []any{noise(f, 2, 64, 6, 6), noise(f, 64, 1, 3, 3), nil, one, one, one, false, []int{0}, 64},
			Want: []any{noise(f, 2, 64, 6, 6)}},
		kerneltest.Case{Name: "transposed", Op: "aten::convolution.out", Args: []any{noise(f, 1, 8, 6, 6), noise(f, 8, 4, 3, 3), nil, one, one, one, true, []int{0}, 1},
			Want: []any{noise(f, 1, 4, 6, 6)}},
	)
}
