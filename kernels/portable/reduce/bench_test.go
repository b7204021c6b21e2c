package reduce_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkReduce reports ns per element and the ratio to a naive loop over the
// results, each of which goes through its elements.
func BenchmarkReduce(b *testing.B) {
	for _, s := range []shape{{64, 1024, 1}, {1000, 49, 1}, {1, 1 << 18, 1}, {1, 512, 256}, {16, 64, 64}} {
		benchFloat(b, s)
		benchInteger[int8](b, s)
		benchInteger[int64](b, s)
	}
}

// shape is a tensor [outer, n, inner] that is reduced over n.
type shape struct{ outer, n, inner int }

func (s shape) sizes() []int   { return []int{s.outer, s.n, s.inner} }
func (s shape) results() []int { return []int{s.outer, s.inner} }

// each calls f with the first element of each result.
func (s shape) each(f func(o, from int)) {
	for o := range s.outer * s.inner {
		f(o, o/s.inner*s.n*s.inner+o%s.inner)
	}
}

// versus benchmarks an operator against f for each result.
func (s shape) versus(b *testing.B, op string, x *tensor.Tensor, args []any, outs []any, f func(o, from int)) {
	c := kerneltest.Case{Name: fmt.Sprintf("%dx%dx%d/%v/%s", s.outer, s.n, s.inner, x.DType, op), Op: "aten::" + op, Args: append([]any{x}, args...), Outs: outs}
	kerneltest.VersusCase(b, set, c, x.Numel(), func() { s.each(f) })
}

func sumOf[T int8 | int64 | float32, C int64 | float32](x []T, n, step int) (s C) {
	for i := range n {
		s += C(x[i*step])
	}
	return s
}

func maxOf[T int8 | int64 | float32](x []T, n, step int) (best T, at int) {
	best = x[0]
	for i := range n {
		if v := x[i*step]; v > best {
			best, at = v, i
		}
	}
	return best, at
}

func varOf(x []float32, n, step int) float32 {
	mean, s := sumOf[float32, float32](x, n, step)/float32(n), float32(0)
	for i := range n {
		d := x[i*step] - mean
		s += d * d
	}
	return s / float32(n-1)
}

func anyOf[T int8 | int64 | float32](x []T, n, step int) bool {
	for i := range n {
		if x[i*step] != 0 {
			return true
		}
	}
	return false
}

func sums[T int64 | float32](y, x []T, n, step int) {
	var s T
	for i := range n {
		s += x[i*step]
		y[i*step] = s
	}
}

func benchFloat(b *testing.B, s shape) {
	x := kerneltest.Noise(rand.New(rand.NewPCG(1, 1)), tensor.Float32, s.sizes(), nil)
	y, z, at := tensor.New(tensor.Float32, s.results()...), tensor.New(tensor.Float32, s.sizes()...), tensor.New(tensor.Int64, s.results()...)
	xs, ys, zs, index := tensor.Data[float32](x), tensor.Data[float32](y), tensor.Data[float32](z), tensor.Data[int64](at)
	over := []any{[]int{1}, false}
	s.versus(b, "sum.IntList_out", x, append(over, nil), []any{y}, func(o, i int) { ys[o] = sumOf[float32, float32](xs[i:], s.n, s.inner) })
	s.versus(b, "mean.out", x, append(over, nil), []any{y}, func(o, i int) { ys[o] = sumOf[float32, float32](xs[i:], s.n, s.inner) / float32(s.n) })
	s.versus(b, "amax.out", x, over, []any{y}, func(o, i int) { ys[o], _ = maxOf(xs[i:], s.n, s.inner) })
	s.versus(b, "amin.out", x, over, []any{y}, func(o, i int) { ys[o], _ = maxOf(xs[i:], s.n, s.inner) })
	s.versus(b, "argmax.out", x, []any{1, false}, []any{at}, func(o, i int) { _, j := maxOf(xs[i:], s.n, s.inner); index[o] = int64(j) })
	s.versus(b, "var.out", x, []any{[]int{1}, true, false}, []any{y}, func(o, i int) { ys[o] = varOf(xs[i:], s.n, s.inner) })
	s.versus(b, "cumsum.out", x, []any{1, nil}, []any{z}, func(_, i int) { sums(zs[i:], xs[i:], s.n, s.inner) })
	for i := range xs {
		xs[i] = float32(math.Copysign(0, -1)) // nothing to find
	}
	truth := tensor.New(tensor.Bool, s.results()...)
	found := tensor.Data[bool](truth)
	s.versus(b, "any.dims_out", x, over, []any{truth}, func(o, i int) { found[o] = anyOf(xs[i:], s.n, s.inner) })
}

func benchInteger[T int8 | int64](b *testing.B, s shape) {
	d := tensor.TypeOf[T]()
	x := kerneltest.Noise(rand.New(rand.NewPCG(1, 1)), d, s.sizes(), nil)
	y, z, at := tensor.New(tensor.Int64, s.results()...), tensor.New(d, s.results()...), tensor.New(tensor.Int64, s.results()...)
	xs, ys, zs, index := tensor.Data[T](x), tensor.Data[int64](y), tensor.Data[T](z), tensor.Data[int64](at)
	s.versus(b, "sum.IntList_out", x, []any{[]int{1}, false, nil}, []any{y}, func(o, i int) { ys[o] = sumOf[T, int64](xs[i:], s.n, s.inner) })
	s.versus(b, "amax.out", x, []any{[]int{1}, false}, []any{z}, func(o, i int) { zs[o], _ = maxOf(xs[i:], s.n, s.inner) })
	s.versus(b, "argmax.out", x, []any{1, false}, []any{at}, func(o, i int) { _, j := maxOf(xs[i:], s.n, s.inner); index[o] = int64(j) })
	clear(xs)
	truth := tensor.New(tensor.Bool, s.results()...)
	found := tensor.Data[bool](truth)
	s.versus(b, "any.dims_out", x, []any{[]int{1}, false}, []any{truth}, func(o, i int) { found[o] = anyOf(xs[i:], s.n, s.inner) })
}
