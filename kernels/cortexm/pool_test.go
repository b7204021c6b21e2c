package cortexm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// pool is a pooling of an image; out is found by trying windows.
type pool struct {
	sizes               []int
	kernel, stride, pad [2]int
	ceil                bool
}

// windows counts the windows of dimension d by the definition: they lie within the
// padded input, or in ceil mode start within the input or the padding before it.
func (p *pool) windows(d int) (n int) {
	size := p.sizes[2+d]
	for start := -p.pad[d]; ; start += p.stride[d] {
		ends := start+p.kernel[d] <= size+p.pad[d]
		if !ends && (!p.ceil || start >= size || start+p.kernel[d]-p.stride[d] >= size+p.pad[d]) {
			return n
		}
		n++
	}
}

// each calls f with the codes of each window, in logical order.
func (p *pool) each(x *tensor.Tensor, f func(codes []int32)) []int {
	v := dense(x)
	out := []int{p.sizes[0], p.sizes[1], p.windows(0), p.windows(1)}
	for plane := range p.sizes[0] * p.sizes[1] {
		for row := range out[2] {
			for col := range out[3] {
				var codes []int32
				for ky := range p.kernel[0] {
					for kx := range p.kernel[1] {
						y, x := row*p.stride[0]+ky-p.pad[0], col*p.stride[1]+kx-p.pad[1]
						if y >= 0 && x >= 0 && y < p.sizes[2] && x < p.sizes[3] {
							codes = append(codes, v[(plane*p.sizes[2]+y)*p.sizes[3]+x])
						}
					}
				}
				f(codes)
			}
		}
	}
	return out
}

func randomPool(r *rand.Rand, ceil bool) pool {
	p := pool{sizes: []int{1 + r.IntN(2), 1 + r.IntN(20), 0, 0}, ceil: ceil && r.IntN(2) == 0}
	for d := range 2 {
		p.kernel[d], p.stride[d] = 1+r.IntN(4), 1+r.IntN(4)
		p.pad[d] = r.IntN(p.kernel[d])
		p.sizes[2+d] = max(p.kernel[d]-2*p.pad[d], 1) + r.IntN(8)
	}
	return p
}

func TestAvgPool(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cases []kerneltest.Case
	for range 150 {
		p := randomPool(r, true)
		x := noise(r, i8, imageOrder(r), p.sizes...)
		var want []float64
		out := p.each(x, func(codes []int32) {
			sum := 0.0
			for _, c := range codes {
				sum += float64(c)
			}
			want = append(want, math.Round(sum/float64(len(codes)))) // halves away from 0
		})
		cases = append(cases, gives(fmt.Sprint(p), "quantized_avg_pool2d", kerneltest.FromDense(i8, out, imageOrder(r), want),
			x, p.kernel[:], p.stride[:], p.pad[:], p.ceil, r.IntN(256)-128, 1<<30, -5, tensor.New(u8, r.IntN(9))))
	}
	kerneltest.Run(t, set, cases...)
}

func TestMaxPool(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var cases []kerneltest.Case
	for range 150 {
		p := randomPool(r, false)
		x := noise(r, i8, imageOrder(r), p.sizes...)
		least, most, zero := -r.Int64N(129), r.Int64N(128), r.IntN(256)-128
		var want []float64
		out := p.each(x, func(codes []int32) {
			largest := codes[0]
			for _, c := range codes {
				largest = max(largest, c)
			}
			want = append(want, clamp(int64(largest), least, most))
		})
		cases = append(cases, gives(fmt.Sprint(p), "quantized_max_pool2d", kerneltest.FromDense(i8, out, imageOrder(r), want),
			x, p.kernel[:], p.stride[:], p.pad[:], []int{1, 1}, false, zero, zero, least, most))
	}
	kerneltest.Run(t, set, cases...)
}

func TestPoolRefused(t *testing.T) {
	x, y := image(1, 2, 6, 6), image(1, 2, 3, 3)
	two, one, none, scratch := []int{2, 2}, []int{1, 1}, []int{0, 0}, tensor.New(u8, 0)
	avg := func(name, refused string, x *tensor.Tensor, kernel, stride, pad any) kerneltest.Case {
		return refuses("avg: "+name, "quantized_avg_pool2d", refused, y, x, kernel, stride, pad, false, 0, 0, 0, scratch)
	}
	biggest := func(name, refused string, args ...any) kerneltest.Case {
		return refuses("max: "+name, "quantized_max_pool2d", refused, y, append([]any{x, two, two, none}, args...)...)
	}
	kerneltest.Run(t, set,
		avg("three dimensions", "an image", tensor.New(i8, 2, 6, 6), two, two, none),
		avg("uint8", "got uint8", tensor.New(u8, 1, 2, 6, 6), two, two, none),
		avg("kernel of 0", "entries in [1", x, none, two, none),
		avg("kernel larger than the input", "fits the input", x, []int{7, 2}, two, none),
		avg("one stride", "2 entries", x, two, []int{2}, none),
		avg("stride of 0", "entries in [1", x, two, none, none),
		avg("padding of the kernel", "less than the kernel", x, two, two, two),
		avg("negative padding", "entries in [0", x, two, two, []int{0, -1}),
		biggest("dilation", "[1 1]", two, false, 0, 0, -128, 127),
		biggest("ceil mode", "got true", one, true, 0, 0, -128, 127),
		biggest("unlike zero points", "the input's, 3", one, false, 3, 4, -128, 127),
		biggest("zero point out of range", "argument 6", one, false, 128, 128, -128, 127),
		biggest("bounds in the wrong order", "at most -1", one, false, 0, 0, 1, -1),
	)
}
