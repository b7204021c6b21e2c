package reduce_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkReduce reports, besides ns per element, the ratio to a plain loop that
// adds up the same bytes as float32 in one accumulator.
func BenchmarkReduce(b *testing.B) {
	for _, shape := range [][]int{{4096, 256}, {256, 4096}, {64, 64, 256}, {100000, 10}} {
		x := tensor.New(tensor.Float32, shape...)
		for i, d := 0, tensor.Data[float32](x); i < len(d); i++ {
			d[i] = float32(i%1001) * 0.01
		}
		for _, dim := range []int{0, len(shape) - 1} {
			benchDim(b, "aten::sum.IntList_out", x, dim, 4)
			benchDim(b, "aten::amax.out", x, dim, 3)
			benchDim(b, "aten::max.dim_max", x, dim, 3)
			benchDim(b, "aten::var.out", x, dim, 4)
			benchDim(b, "aten::cumsum.out", x, dim, 3)
			benchDim(b, "aten::any.dims_out", x, dim, 3)
		}
	}
}

func benchDim(b *testing.B, name string, x *tensor.Tensor, dim, outs int) {
	op, sig, _, err := set.Lookup(name)
	if err != nil {
		b.Fatal(err)
	}
	sizes := append([]int{}, x.Sizes...)
	if name != "aten::cumsum.out" {
		sizes[dim] = 1
	}
	dims := tensor.NewList(tensor.KindIntList, []*tensor.Value{new(tensor.IntValue(int64(dim)))})
	var a kernels.Args
	for _, arg := range sig.Args {
		v := new(tensor.Value)
		switch {
		case arg.Out && arg.Name == "max_values":
			*v = tensor.TensorValue(tensor.New(tensor.Int64, sizes...))
		case arg.Out && op.Name() == "aten::any.dims_out":
			*v = tensor.TensorValue(tensor.New(tensor.Bool, sizes...))
		case arg.Out:
			*v = tensor.TensorValue(tensor.New(tensor.Float32, sizes...))
		case arg.Name == "self":
			*v = tensor.TensorValue(x)
		case arg.Kinds.Has(tensor.KindIntList):
			*v = dims
		case arg.Name == "dim":
			*v = tensor.IntValue(int64(dim))
		case arg.Type == "bool":
			*v = tensor.BoolValue(true)
		}
		a = append(a, v)
	}
	a = append(a, a[outs])
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("%s/%v/dim=%d/threads=%d", name, x.Sizes, dim, threads), func(b *testing.B) {
			pool := cpu.NewPool(threads)
			defer pool.Close()
			c := kernels.NewCtx(pool)
			for b.Loop() {
				if err := op.Func(c, a); err != nil {
					b.Fatal(err)
				}
				c.Release()
			}
			start := time.Now()
			for range b.N {
				plainSum(tensor.Data[float32](x))
			}
			b.ReportMetric(float64(b.Elapsed())/float64(time.Since(start)), "x-plain")
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(x.Numel()), "ns/elem")
		})
	}
}

//go:noinline
func plainSum(x []float32) (s float32) {
	for _, v := range x {
		s += v
	}
	return s
}
