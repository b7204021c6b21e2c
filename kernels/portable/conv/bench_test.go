package conv

import (
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// layer is a convolution of a square image with a square kernel, padded to keep its
// size at stride 1.
type layer struct {
	name                                 string
	in, out, size, kernel, stride, group int
}

var layers = []layer{
	{"stem 3x3 s2", 3, 32, 224, 3, 2, 1},
	{"pointwise 112", 16, 96, 112, 1, 1, 1},
	{"pointwise 56", 144, 24, 56, 1, 1, 1},
	{"pointwise 14", 96, 576, 14, 1, 1, 1},
	{"pointwise 7", 960, 160, 7, 1, 1, 1},
	{"depthwise 112 s2", 96, 96, 112, 3, 2, 96},
	{"depthwise 56", 144, 144, 56, 3, 1, 144},
	{"depthwise 14", 384, 384, 14, 3, 1, 384},
	{"depthwise 7", 960, 960, 7, 3, 1, 960},
	{"3x3 56", 64, 64, 56, 3, 1, 1},
	{"3x3 7", 256, 256, 7, 3, 1, 1},
}

func (l layer) args() kernels.Args {
	pad := l.kernel / 2
	size := (l.size+2*pad-l.kernel)/l.stride + 1
	list := func(n int) *tensor.Value {
		return new(tensor.NewList(tensor.KindIntList, []*tensor.Value{new(tensor.IntValue(int64(n)))}))
	}
	value := func(t *tensor.Tensor) *tensor.Value { return new(tensor.TensorValue(t)) }
	x, w := tensor.New(tensor.Float32, 1, l.in, l.size, l.size), tensor.New(tensor.Float32, l.out, l.in/l.group, l.kernel, l.kernel)
	for _, t := range []*tensor.Tensor{x, w} {
		for i, d := 0, tensor.Data[float32](t); i < len(d); i++ {
			d[i] = float32(i%13)/13 - 0.5
		}
	}
	out := value(tensor.New(tensor.Float32, 1, l.out, size, size))
	return kernels.Args{value(x), value(w), new(tensor.Value), list(l.stride), list(pad), list(1),
		new(tensor.BoolValue(false)), list(0), new(tensor.IntValue(int64(l.group))), out, out}
}

// BenchmarkConvolution reports ns per multiplication and the ratio to a naive loop.
func BenchmarkConvolution(b *testing.B) {
	for _, l := range layers {
		a := l.args()
		x, w, out := a.Tensor(argInput), a.Tensor(argWeight), a.Tensor(argOut)
		size := out.Sizes[2]
		macs := out.Numel() * l.in / l.group * l.kernel * l.kernel
		kerneltest.Versus(b, l.name, macs,
			func(c *kernels.Ctx) error { return convolution(c, a) },
			func() { l.naive(tensor.Data[float32](x), tensor.Data[float32](w), tensor.Data[float32](out), size) })
	}
}

// naive is the loop of a straightforward kernel.
func (l layer) naive(x, w, y []float32, size int) {
	outGroup := l.out / l.group
	for oc := range l.out {
		for oy := range size {
			for ox := range size {
				y[(oc*size+oy)*size+ox] = l.point(x, w, oc/outGroup, oc, oy*l.stride-l.kernel/2, ox*l.stride-l.kernel/2)
			}
		}
	}
}

// point is one output element, whose window starts at (y, x).
func (l layer) point(in, w []float32, group, oc, y, x int) (sum float32) {
	perGroup := l.in / l.group
	for ic := range perGroup {
		for ky := range l.kernel {
			for kx := range l.kernel {
				iy, ix := y+ky, x+kx
				if iy >= 0 && iy < l.size && ix >= 0 && ix < l.size {
					sum += in[((group*perGroup+ic)*l.size+iy)*l.size+ix] * w[((oc*perGroup+ic)*l.kernel+ky)*l.kernel+kx]
				}
			}
		}
	}
	return sum
}
