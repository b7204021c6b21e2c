package reduce_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestLong reduces rows and columns longer than every block and chunk, of each way to
// compute, against plain loops in float64.
func TestLong(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for _, s := range []shape{{3, 1100, 1}, {5, 49, 1}, {2, 130, 72}, {1, 700, 19}, {1, 3, 1500}, {1, 9000, 1}} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.Int8, tensor.Uint8, tensor.Int32, tensor.Int64} {
			x := kerneltest.Noise(r, d, s.sizes(), nil)
			dense := kerneltest.Dense(x)
			if d == tensor.Float32 && s.n > 100 {
				for range 9 {
					dense[r.IntN(len(dense))] = math.NaN()
				}
				x = kerneltest.FromDense(d, s.sizes(), nil, dense)
			}
			checkLong(t, s, x, dense)
		}
	}
}

// checkLong compares what operators make of x with what loops make of its elements.
func checkLong(t *testing.T, s shape, x *tensor.Tensor, dense []float64) {
	n := s.outer * s.inner
	sum, mean, spread, truth := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	most, least, atMost, atLeast := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	running := make([]float64, len(dense))
	s.each(func(o, from int) {
		most[o], least[o] = math.Inf(-1), math.Inf(1)
		for i := range s.n {
			v := dense[from+i*s.inner]
			sum[o] += v
			running[from+i*s.inner] = sum[o]
			if most[o] == most[o] && !(v <= most[o]) {
				most[o], atMost[o] = v, float64(i)
			}
			if least[o] == least[o] && !(v >= least[o]) {
				least[o], atLeast[o] = v, float64(i)
			}
			if v != 0 {
				truth[o] = 1
			}
		}
		mean[o] = sum[o] / float64(s.n)
		for i := range s.n {
			d := dense[from+i*s.inner] - mean[o]
			spread[o] += d * d / float64(s.n-1)
		}
	})
	wide := tensor.Int64
	if x.DType.IsFloat() {
		wide = x.DType
	}
	want := func(d tensor.DType, v []float64) *tensor.Tensor { return kerneltest.FromDense(d, s.results(), nil, v) }
	over := []any{x, []int{1}, false}
	cases := []kerneltest.Case{
		{Op: "aten::sum.IntList_out", Args: append(over, nil), Want: []any{want(wide, sum)}},
		{Op: "aten::amax.out", Args: over, Want: []any{want(x.DType, most)}},
		{Op: "aten::amin.out", Args: over, Want: []any{want(x.DType, least)}},
		{Op: "aten::max.dim_max", Args: []any{x, 1, false}, Want: []any{want(x.DType, most), want(tensor.Int64, atMost)}},
		{Op: "aten::argmin.out", Args: []any{x, 1, false}, Want: []any{want(tensor.Int64, atLeast)}},
		{Op: "aten::any.dims_out", Args: over, Want: []any{want(tensor.Bool, truth)}},
		{Op: "aten::cumsum.out", Args: []any{x, 1, nil}, Want: []any{kerneltest.FromDense(wide, s.sizes(), nil, running)}},
	}
	if x.DType.IsFloat() {
		cases = append(cases,
			kerneltest.Case{Op: "aten::mean.out", Args: append(over, nil), Want: []any{want(x.DType, mean)}},
			kerneltest.Case{Op: "aten::var_mean.correction_out", Args: []any{x, []int{1}, 1, false}, Want: []any{want(x.DType, spread), want(x.DType, mean)}})
	}
	for _, c := range cases {
		c.Name, c.Scale = fmt.Sprint(c.Op, s, x.DType), float64(4*s.n)
		kerneltest.Run(t, set, c)
	}
}

// TestSparseTruth looks for the only element that is not zero, wherever it lies in a
// word, and passes over negative zeros.
func TestSparseTruth(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Bool, tensor.Int8, tensor.Float16, tensor.Float32, tensor.Int64, tensor.Float64} {
		for _, s := range []shape{{3, 16, 1}, {3, 5, 1}, {2, 3, 8}, {1, 4, 11}} {
			for one := range s.outer * s.n * s.inner {
				dense, want := make([]float64, s.outer*s.n*s.inner), make([]float64, s.outer*s.inner)
				for i := range dense {
					dense[i] = math.Copysign(0, -1)
				}
				dense[one] = 1
				want[one/(s.n*s.inner)*s.inner+one%s.inner] = 1
				kerneltest.Run(t, set, kerneltest.Case{Name: fmt.Sprint(d, s, one), Op: "aten::any.dims_out",
					Args: []any{kerneltest.FromDense(d, s.sizes(), nil, dense), []int{1}, false}, Want: []any{kerneltest.FromDense(tensor.Bool, s.results(), nil, want)}})
			}
		}
	}
}
