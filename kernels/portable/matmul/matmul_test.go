package matmul

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	floats = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16}
	reals  = append([]tensor.DType{tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64}, floats...)
)

// naive is x·y for dense batches; abs sums magnitudes instead, for the tolerance.
func naive(x, y []float64, batch, m, n, k int, abs bool) []float64 {
	out := make([]float64, batch*m*n)
	for i := range out {
		b, r, c := i/(m*n), i/n%m, i%n
		for p := range k {
			v := x[(b*m+r)*k+p] * y[(b*k+p)*n+c]
			if abs {
				v = math.Abs(v)
			}
			out[i] += v
		}
	}
	return out
}

func largest(s []float64) (m float64) {
	for _, v := range s {
		m = max(m, math.Abs(v))
	}
	return m
}

// shapes are m, n, k around the sizes of tiles and blocks, and random ones.
func shapes(r *rand.Rand) [][3]int {
	s := [][3]int{{1, 1, 1}, {0, 3, 2}, {3, 0, 2}, {3, 4, 0}, {1, 130, 40}, {6, 16, 256}, {7, 17, 257}, {25, 113, 300},
		{16, 112, 64}, {50, 225, 20}, {1, 600, 33}, {20, 520, 16}}
	for range 20 {
		s = append(s, [3]int{1 + r.IntN(40), 1 + r.IntN(40), 1 + r.IntN(40)})
	}
	return s
}

func TestProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cases []kerneltest.Case
	for i, s := range shapes(r) {
		m, n, k := s[0], s[1], s[2]
		d, batch := reals[i%len(reals)], 1+i%3
		x := kerneltest.Noise(r, d, []int{batch, m, k}, kerneltest.AnyOrder(r, 3))
		y := kerneltest.Noise(r, d, []int{batch, k, n}, kerneltest.AnyOrder(r, 3))
		a, b := kerneltest.Dense(x), kerneltest.Dense(y)
		want := kerneltest.FromDense(d, []int{batch, m, n}, kerneltest.AnyOrder(r, 3), naive(a, b, batch, m, n, k, false))
		scale := largest(naive(a, b, batch, m, n, k, true))
		cases = append(cases, kerneltest.Case{Name: fmt.Sprintf("bmm %v %dx%dx%dx%d", d, batch, m, n, k), Op: "aten::bmm.out",
			Args: []any{x, y}, Want: []any{want}, Scale: scale})
		x2, y2 := kerneltest.Noise(r, d, []int{m, k}, kerneltest.AnyOrder(r, 2)), kerneltest.Noise(r, d, []int{k, n}, kerneltest.AnyOrder(r, 2))
		a, b = kerneltest.Dense(x2), kerneltest.Dense(y2)
		want = kerneltest.FromDense(d, []int{m, n}, kerneltest.AnyOrder(r, 2), naive(a, b, 1, m, n, k, false))
		cases = append(cases, kerneltest.Case{Name: fmt.Sprintf("mm %v %dx%dx%d", d, m, n, k), Op: "aten::mm.out",
			Args: []any{x2, y2}, Want: []any{want}, Scale: largest(naive(a, b, 1, m, n, k, true))})
	}
	kerneltest.Run(t, set, cases...)
}

func TestAddmm(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var cases []kerneltest.Case
	for i, s := range shapes(r) {
		m, n, k := s[0], s[1], s[2]
		d := reals[i%len(reals)]
		addend := [][]int{{m, n}, {n}, {m, 1}, {1, n}, {1}, {}}[i%6]
		alpha, beta := []float64{1, 2, -1}[i%3], []float64{1, 0, 3, 2}[i%4]
		self := kerneltest.Noise(r, d, addend, nil)
		x, y := kerneltest.Noise(r, d, []int{m, k}, nil), kerneltest.Noise(r, d, []int{k, n}, nil)
		a, b, c := kerneltest.Dense(x), kerneltest.Dense(y), kerneltest.Dense(self)
		want, scale := naive(a, b, 1, m, n, k, false), naive(a, b, 1, m, n, k, true)
		row, col := broadcastStrides(addend)
		for j := range want {
			v := c[j/n*row+j%n*col]
			want[j] = alpha*want[j] + beta*v
			scale[j] = math.Abs(alpha)*scale[j] + math.Abs(beta*v)
		}
		args := []any{self, x, y, beta, alpha}
		if d.IsInt() {
			args = []any{self, x, y, int(beta), int(alpha)}
		}
		cases = append(cases, kerneltest.Case{Name: fmt.Sprintf("%v %dx%dx%d + %v, beta %v alpha %v", d, m, n, k, addend, beta, alpha),
			Op: "aten::addmm.out", Args: args, Want: []any{kerneltest.FromDense(d, []int{m, n}, nil, want)}, Scale: largest(scale)})
	}
	kerneltest.Run(t, set, cases...)
}

func TestLinear(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var cases []kerneltest.Case
	for i, s := range shapes(r) {
		m, n, k := s[0], s[1], s[2]
		d := floats[i%len(floats)]
		x, w := kerneltest.Noise(r, d, []int{2, m, k}, nil), kerneltest.Noise(r, d, []int{n, k}, nil)
		w.Const = i%2 == 0
		a, b := kerneltest.Dense(x), make([]float64, k*n)
		for j, v := range kerneltest.Dense(w) {
			b[j%k*n+j/k] = v
		}
		want, scale := naive(a, b, 1, 2*m, n, k, false), naive(a, b, 1, 2*m, n, k, true)
		args := []any{x, w, nil}
		if i%3 > 0 {
			bias := kerneltest.Noise(r, d, []int{n}, nil)
			args[2] = bias
			for j := range want {
				want[j] += kerneltest.Dense(bias)[j%n]
			}
		}
		cases = append(cases, kerneltest.Case{Name: fmt.Sprintf("%v 2x%dx%dx%d", d, m, n, k), Op: "aten::linear.out",
			Args: args, Want: []any{kerneltest.FromDense(d, []int{2, m, n}, nil, want)}, Scale: largest(scale) + 4})
	}
	kerneltest.Run(t, set, cases...)
}

func TestEdges(t *testing.T) {
	f := func(v ...float32) *tensor.Tensor { return tensor.Of(v, 1, len(v)) }
	col := func(v ...float32) *tensor.Tensor { return tensor.Of(v, len(v), 1) }
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	one := func(v float32) []any { return []any{tensor.Of([]float32{v}, 1, 1)} }
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "infinity times zero", Op: "aten::mm.out", Args: []any{f(inf, 1), col(0, 1)}, Want: one(nan)},
		kerneltest.Case{Name: "beta of 0 ignores a NaN", Op: "aten::addmm.out", Args: []any{f(nan), f(2), col(3), 0, 1}, Want: one(6)},
		kerneltest.Case{Name: "no terms", Op: "aten::addmm.out", Want: one(10),
			Args: []any{f(5), tensor.New(tensor.Float32, 1, 0), tensor.New(tensor.Float32, 0, 1), 2, 7}},
		kerneltest.Case{Name: "int8 wraps", Op: "aten::mm.out", Want: []any{tensor.Of([]int8{-56}, 1, 1)},
			Args: []any{tensor.Of([]int8{100}, 1, 1), tensor.Of([]int8{2}, 1, 1)}},
		kerneltest.Case{Name: "complex", Op: "aten::mm.out", Want: []any{tensor.Of([]complex64{-1 + 3i}, 1, 1)},
			Args: []any{tensor.Of([]complex64{1i, 2}, 1, 2), tensor.Of([]complex64{1i, 1.5i}, 2, 1)}},
		kerneltest.Case{Name: "inner sizes differ", Op: "aten::mm.out", Args: []any{f(1, 2), col(1, 2, 3)}, Outs: one(0), Refused: "rows as many"},
		kerneltest.Case{Name: "types differ", Op: "aten::mm.out", Args: []any{f(1), tensor.Of([]int32{1}, 1, 1)}, Outs: one(0), Refused: "got int32"},
		kerneltest.Case{Name: "fractional alpha of integers", Op: "aten::addmm.out", Refused: "whole number", Outs: []any{tensor.Of([]int32{1}, 1, 1)},
			Args: []any{tensor.Of([]int32{1}, 1, 1), tensor.Of([]int32{1}, 1, 1), tensor.Of([]int32{1}, 1, 1), 1, 0.5}},
		kerneltest.Case{Name: "addend does not expand", Op: "aten::addmm.out", Args: []any{f(1, 2), f(1), col(1), 1, 1}, Outs: one(0), Refused: "expands"},
		kerneltest.Case{Name: "negative norm", Op: "aten::_pdist_forward.out", Args: []any{f(1), -1.0}, Outs: []any{tensor.New(tensor.Float32, 0)}, Refused: "norm"},
	)
}

func TestDistances(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var cases []kerneltest.Case
	for i, p := range []float64{0, 1, 2, 3, 0.5, math.Inf(1)} {
		d := floats[i%len(floats)]
		x, y := kerneltest.Noise(r, d, []int{2, 1, 5, 3}, nil), kerneltest.Noise(r, d, []int{4, 6, 3}, nil)
		a, b := kerneltest.Dense(x), kerneltest.Dense(y)
		want := make([]float64, 2*4*5*6)
		for j := range want {
			n, q, row, c := j/120, j/30%4, j/6%5, j%6
			want[j] = norm(a[(n*5+row)*3:][:3], b[(q*6+c)*3:][:3], p)
		}
		cases = append(cases, kerneltest.Case{Name: fmt.Sprintf("cdist %v p=%v", d, p), Op: "aten::_cdist_forward.out",
			Args: []any{x, y, p, nil}, Want: []any{kerneltest.FromDense(d, []int{2, 4, 5, 6}, nil, want)}})
		z := kerneltest.Noise(r, d, []int{5, 4}, nil)
		a, want = kerneltest.Dense(z), nil
		for j := range 5 {
			for k := j + 1; k < 5; k++ {
				want = append(want, norm(a[j*4:][:4], a[k*4:][:4], p))
			}
		}
		cases = append(cases, kerneltest.Case{Name: fmt.Sprintf("pdist %v p=%v", d, p), Op: "aten::_pdist_forward.out",
			Args: []any{z, p}, Want: []any{kerneltest.FromDense(d, []int{10}, nil, want)}})
	}
	kerneltest.Run(t, set, cases...)
}

func norm(a, b []float64, p float64) (s float64) {
	for i := range a {
		d := math.Abs(a[i] - b[i])
		switch {
		case math.IsInf(p, 1):
			s = max(s, d)
		case p != 0:
			s += math.Pow(d, p)
		case d != 0:
			s++
		}
	}
	if p != 0 && !math.IsInf(p, 1) {
		s = math.Pow(s, 1/p)
	}
	return s
}

func TestNoAllocs(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	noise := func(d tensor.DType, sizes ...int) *tensor.Tensor { return kerneltest.Noise(r, d, sizes, nil) }
	f := tensor.Float32
	weights := noise(f, 200, 40)
	weights.Const = true
	kerneltest.NoAllocs(t, set,
		kerneltest.Case{Name: "mm", Op: "aten::mm.out", Args: []any{noise(f, 30, 40), noise(f, 40, 200)}, Want: []any{noise(f, 30, 200)}},
		kerneltest.Case{Name: "mm half", Op: "aten::mm.out", Args: []any{noise(tensor.Float16, 3, 4), noise(tensor.Float16, 4, 2)}, Want: []any{noise(tensor.Float16, 3, 2)}},
		kerneltest.Case{Name: "bmm", Op: "aten::bmm.out", Args: []any{noise(f, 4, 30, 40), noise(f, 4, 40, 20)}, Want: []any{noise(f, 4, 30, 20)}},
		kerneltest.Case{Name: "addmm", Op: "aten::addmm.out", Args: []any{noise(f, 200), noise(f, 1, 40), noise(f, 40, 200), 1, 1}, Want: []any{noise(f, 1, 200)}},
		kerneltest.Case{Name: "linear", Op: "aten::linear.out", Args: []any{noise(f, 30, 40), weights, nil}, Want: []any{noise(f, 30, 200)}},
		kerneltest.Case{Name: "cdist", Op: "aten::_cdist_forward.out", Args: []any{noise(f, 30, 4), noise(f, 20, 4), 2.0, nil}, Want: []any{noise(f, 30, 20)}},
		kerneltest.Case{Name: "pdist", Op: "aten::_pdist_forward.out", Args: []any{noise(f, 5, 4), 2.0}, Want: []any{noise(f, 10)}},
	)
}

// BenchmarkAddmm reports ns per multiplication and the ratio to a naive loop.
func BenchmarkAddmm(b *testing.B) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, s := range [][3]int{{1, 1000, 1280}, {1, 64, 64}, {5, 192, 64}, {17, 192, 64}, {49, 96, 96}, {128, 512, 128}, {256, 256, 256}} {
		m, n, k := s[0], s[1], s[2]
		x, y := kerneltest.Noise(r, tensor.Float32, []int{m, k}, nil), kerneltest.Noise(r, tensor.Float32, []int{k, n}, nil)
		bias, out := kerneltest.Noise(r, tensor.Float32, []int{n}, nil), tensor.New(tensor.Float32, m, n)
		v := func(t *tensor.Tensor) *tensor.Value { return new(tensor.TensorValue(t)) }
		one := new(tensor.IntValue(1))
		args := kernels.Args{v(bias), v(x), v(y), one, one, v(out), v(out)}
		kerneltest.Versus(b, fmt.Sprintf("%dx%dx%d", m, n, k), m*n*k,
			func(c *kernels.Ctx) error { return addmm(c, args) },
			func() {
				naiveFloat32(tensor.Data[float32](x), tensor.Data[float32](y), tensor.Data[float32](out), m, n, k)
			})
	}
}

// naiveFloat32 is the loop of a straightforward kernel.
func naiveFloat32(x, y, out []float32, m, n, k int) {
	for i := range m {
		for j := range n {
			var s float32
			for p := range k {
				s += x[i*k+p] * y[p*n+j]
			}
			out[i*n+j] = s
		}
	}
}
