package pool

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkPool reports ns per element of the windows and the ratio to a naive loop,
// which goes through planes whatever the dim order: that is its fastest way.
func BenchmarkPool(b *testing.B) {
	for _, g := range []struct{ planes, in, kernel, stride, pad int }{
		{24, 64, 3, 2, 0},
		{24, 64, 3, 2, 1},
		{24, 64, 2, 2, 0},
		{24, 64, 3, 1, 1},
		{64, 14, 3, 1, 1},
		{64, 14, 2, 2, 0},
		{256, 8, 2, 2, 0},
	} {
		for _, order := range [][]uint8{nil, {0, 2, 3, 1}} {
			layout := "nchw"
			if order != nil {
				layout = "nhwc"
			}
			name := fmt.Sprintf("%dx%d²-%d:%d:%d/%s", g.planes, g.in, g.kernel, g.stride, g.pad, layout)
			out := (g.in+2*g.pad-g.kernel)/g.stride + 1
			loop := naive{g.planes, g.in, g.kernel, g.stride, g.pad, out}
			benchMax[float32](b, name, loop, order)
			benchAvg(b, name, loop, order)
			if order == nil {
				benchMax[int8](b, name, loop, order)
			}
		}
	}
	benchAdaptive(b)
}

// naive is a pooling of square planes, window by window.
type naive struct{ planes, in, kernel, stride, pad, out int }

func (g naive) units() int { return g.planes * g.out * g.out * g.kernel * g.kernel }

func benchMax[T int8 | float32](b *testing.B, name string, g naive, order []uint8) {
	d := tensor.TypeOf[T]()
	x := kerneltest.Noise(rand.New(rand.NewPCG(1, 1)), d, []int{1, g.planes, g.in, g.in}, order)
	y, at := tensor.Make(d, []int{1, g.planes, g.out, g.out}, order, tensor.Static), tensor.Make(tensor.Int64, []int{1, g.planes, g.out, g.out}, order, tensor.Static)
	y.Bind(tensor.AlignedBytes(y.NBytes()))
	at.Bind(tensor.AlignedBytes(at.NBytes()))
	xs, ys, index := tensor.Data[T](x), tensor.Data[T](y), tensor.Data[int64](at)
	c := kerneltest.Case{Name: fmt.Sprintf("max/%v/%s", d, name), Op: "aten::max_pool2d_with_indices.out",
		Args: []any{x, []int{g.kernel}, []int{g.stride}, []int{g.pad}, []int{1}, false}, Outs: []any{y, at}}
	kerneltest.VersusCase(b, set, c, g.units(), func() {
		o := 0
		for p := range g.planes {
			plane := xs[p*g.in*g.in:][:g.in*g.in]
			for i := range g.out {
				for j := range g.out {
					best, from := T(-128), 0
					for h := max(i*g.stride-g.pad, 0); h < min(i*g.stride-g.pad+g.kernel, g.in); h++ {
						for w := max(j*g.stride-g.pad, 0); w < min(j*g.stride-g.pad+g.kernel, g.in); w++ {
							if v := plane[h*g.in+w]; v > best {
								best, from = v, h*g.in+w
							}
						}
					}
					ys[o], index[o] = best, int64(from)
					o++
				}
			}
		}
	})
}

func benchAvg(b *testing.B, name string, g naive, order []uint8) {
	x := kerneltest.Noise(rand.New(rand.NewPCG(1, 1)), tensor.Float32, []int{1, g.planes, g.in, g.in}, order)
	y := tensor.Make(tensor.Float32, []int{1, g.planes, g.out, g.out}, order, tensor.Static)
	y.Bind(tensor.AlignedBytes(y.NBytes()))
	xs, ys := tensor.Data[float32](x), tensor.Data[float32](y)
	c := kerneltest.Case{Name: "avg/" + name, Op: "aten::avg_pool2d.out",
		Args: []any{x, []int{g.kernel}, []int{g.stride}, []int{g.pad}, false, true, nil}, Outs: []any{y}}
	kerneltest.VersusCase(b, set, c, g.units(), func() {
		o := 0
		for p := range g.planes {
			plane := xs[p*g.in*g.in:][:g.in*g.in]
			for i := range g.out {
				for j := range g.out {
					var sum float32
					for h := max(i*g.stride-g.pad, 0); h < min(i*g.stride-g.pad+g.kernel, g.in); h++ {
						for w := max(j*g.stride-g.pad, 0); w < min(j*g.stride-g.pad+g.kernel, g.in); w++ {
							sum += plane[h*g.in+w]
						}
					}
					ys[o] = sum / float32(g.kernel*g.kernel)
					o++
				}
			}
		}
	})
}

func benchAdaptive(b *testing.B) {
	for _, g := range []struct{ planes, in, out int }{{512, 7, 1}, {256, 14, 7}, {64, 32, 5}} {
		for _, order := range [][]uint8{nil, {0, 2, 3, 1}} {
			x := kerneltest.Noise(rand.New(rand.NewPCG(1, 1)), tensor.Float32, []int{1, g.planes, g.in, g.in}, order)
			y := tensor.Make(tensor.Float32, []int{1, g.planes, g.out, g.out}, order, tensor.Static)
			y.Bind(tensor.AlignedBytes(y.NBytes()))
			xs, ys := tensor.Data[float32](x), tensor.Data[float32](y)
			c := kerneltest.Case{Name: fmt.Sprintf("adaptive/%dx%d²→%d²/%v", g.planes, g.in, g.out, order), Op: "aten::_adaptive_avg_pool2d.out",
				Args: []any{x, []int{g.out, g.out}}, Outs: []any{y}}
			kerneltest.VersusCase(b, set, c, g.planes*g.in*g.in, func() {
				for p := range g.planes {
					for i := range g.out * g.out {
						h0, h1 := i/g.out*g.in/g.out, ((i/g.out+1)*g.in+g.out-1)/g.out
						w0, w1 := i%g.out*g.in/g.out, ((i%g.out+1)*g.in+g.out-1)/g.out
						var sum float32
						for h := h0; h < h1; h++ {
							for w := w0; w < w1; w++ {
								sum += xs[(p*g.in+h)*g.in+w]
							}
						}
						ys[p*g.out*g.out+i] = sum / float32((h1-h0)*(w1-w0))
					}
				}
			})
		}
	}
}
