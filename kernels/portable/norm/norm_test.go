package norm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var types = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16}

func TestSoftmax(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cases []kerneltest.Case
	for i, sizes := range [][]int{{5}, {3, 4}, {2, 3, 70}, {2, 33, 5}, {4, 1, 7}, {2, 3, 4, 70}, {100, 9}, {1, 1000}, {3, 0}, {0, 3}} {
		for dim := -1; dim < len(sizes); dim++ {
			d := types[(i+dim+1)%len(types)]
			x := kerneltest.Noise(r, d, sizes, kerneltest.AnyOrder(r, len(sizes)))
			soft, log := softmaxOf(kerneltest.Dense(x), sizes, (dim+len(sizes))%len(sizes))
			name := fmt.Sprintf("%v dim %d", x, dim)
			cases = append(cases,
				kerneltest.Case{Name: name, Op: "aten::_softmax.out", Args: []any{x, dim, false},
					Want: []any{kerneltest.FromDense(d, sizes, kerneltest.AnyOrder(r, len(sizes)), soft)}},
				kerneltest.Case{Name: "log " + name, Op: "aten::_log_softmax.out", Args: []any{x, dim, false},
					Want: []any{kerneltest.FromDense(d, sizes, nil, log)}})
		}
	}
	kerneltest.Run(t, set, cases...)
}

// softmaxOf is softmax and its logarithm of a dense tensor along dim.
func softmaxOf(x []float64, sizes []int, dim int) (soft, log []float64) {
	stride := 1
	for _, s := range sizes[dim+1:] {
		stride *= s
	}
	soft, log = make([]float64, len(x)), make([]float64, len(x))
	for i := range x {
		first := i - i/stride%sizes[dim]*stride
		sum := 0.0
		for j := range sizes[dim] {
			sum += math.Exp(x[first+j*stride])
		}
		soft[i], log[i] = math.Exp(x[i])/sum, x[i]-math.Log(sum)
	}
	return soft, log
}

// moment is mean and variance of the elements for which in is true.
func moment(x []float64, in func(i int) bool) (mean, variance float64) {
	n := 0.0
	for i, v := range x {
		if in(i) {
			mean += v
			n++
		}
	}
	mean /= n
	for i, v := range x {
		if in(i) {
			variance += (v - mean) * (v - mean) / n
		}
	}
	return mean, variance
}

// grouped is the definition shared by the norms: part names the group that an
// element belongs to and weight that of its weight and bias.
func grouped(x []float64, groups int, eps float64, part, weight func(i int) int, w, b []float64) (y, mean, rstd []float64) {
	y, mean, rstd = make([]float64, len(x)), make([]float64, groups), make([]float64, groups)
	for g := range groups {
		m, v := moment(x, func(i int) bool { return part(i) == g })
		mean[g], rstd[g] = m, 1/math.Sqrt(v+eps)
	}
	for i, v := range x {
		y[i] = (v - mean[part(i)]) * rstd[part(i)]
		if w != nil {
			y[i] *= w[weight(i)]
		}
		if b != nil {
			y[i] += b[weight(i)]
		}
	}
	return y, mean, rstd
}

// affines are a weight and a bias of random presence, as tensors and as numbers.
func affines(r *rand.Rand, d tensor.DType, sizes ...int) (args [2]any, dense [2][]float64) {
	for i := range 2 {
		if r.IntN(3) > 0 {
			t := kerneltest.Noise(r, d, sizes, nil)
			t.Const = r.IntN(2) == 0
			args[i], dense[i] = t, kerneltest.Dense(t)
		}
	}
	return args, dense
}

func TestLayerNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var cases []kerneltest.Case
	for i := range 40 {
		d, rows, n, k := types[i%4], 1+r.IntN(5), 1+r.IntN(70), 1+r.IntN(3)
		x := kerneltest.Noise(r, d, []int{rows, n, k}, kerneltest.AnyOrder(r, 3))
		wb, dense := affines(r, d, n, k)
		y, mean, rstd := grouped(kerneltest.Dense(x), rows, 1e-5, func(i int) int { return i / (n * k) }, func(i int) int { return i % (n * k) }, dense[0], dense[1])
		stat := []int{rows, 1, 1}
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(x), Op: "aten::native_layer_norm.out", Args: []any{x, []int{n, k}, wb[0], wb[1], 1e-5}, Scale: 32,
			Want: []any{kerneltest.FromDense(d, x.Sizes, nil, y), kerneltest.FromDense(d, stat, nil, mean), kerneltest.FromDense(d, stat, nil, rstd)}})
	}
	kerneltest.Run(t, set, cases...)
}

func TestGroupNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var cases []kerneltest.Case
	for i := range 40 {
		d, n, group, per, h := types[i%4], 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(4), 2+r.IntN(40)
		c := group * per
		x := kerneltest.Noise(r, d, []int{n, c, h}, kerneltest.AnyOrder(r, 3))
		wb, dense := affines(r, d, c)
		y, mean, rstd := grouped(kerneltest.Dense(x), n*group, 1e-5, func(i int) int { return i / (per * h) }, func(i int) int { return i / h % c }, dense[0], dense[1])
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(x, " in ", group), Op: "aten::native_group_norm.out",
			Args: []any{x, wb[0], wb[1], n, c, h, group, 1e-5}, Scale: 32,
			Want: []any{kerneltest.FromDense(d, x.Sizes, nil, y), kerneltest.FromDense(d, []int{n, group}, nil, mean), kerneltest.FromDense(d, []int{n, group}, nil, rstd)}})
	}
	kerneltest.Run(t, set, cases...)
}

func TestBatchNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var cases []kerneltest.Case
	for i := range 40 {
		d, n, c, h := types[i%4], 1+r.IntN(3), 1+r.IntN(20), 2+r.IntN(40)
		order := kerneltest.AnyOrder(r, 4)
		x := kerneltest.Noise(r, d, []int{n, c, h, 2}, order)
		wb, dense := affines(r, d, c)
		channel := func(i int) int { return i / (2 * h) % c }
		xs := kerneltest.Dense(x)
		y, mean, rstd := grouped(xs, c, 1e-5, channel, channel, dense[0], dense[1])
		out := kerneltest.FromDense(d, x.Sizes, order, y)
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint("own statistics ", x), Op: "aten::_native_batch_norm_legit.no_stats_out",
			Args: []any{x, wb[0], wb[1], true, 0.1, 1e-5}, Scale: 32,
			Want: []any{out, kerneltest.FromDense(d, []int{c}, nil, mean), kerneltest.FromDense(d, []int{c}, nil, rstd)}})

		m, v := kerneltest.Noise(r, d, []int{c}, nil), kerneltest.Noise(r, d, []int{c}, nil)
		variance := kerneltest.Dense(v)
		for i := range variance {
			variance[i] = math.Abs(variance[i]) + 1
		}
		v = kerneltest.FromDense(d, []int{c}, nil, variance)
		variance, mean = kerneltest.Dense(v), kerneltest.Dense(m)
		for i := range y {
			ch := channel(i)
			y[i] = (xs[i] - mean[ch]) / math.Sqrt(variance[ch]+1e-3)
			if dense[0] != nil {
				y[i] *= dense[0][ch]
			}
			if dense[1] != nil {
				y[i] += dense[1][ch]
			}
		}
		none := tensor.New(d, 0)
		want := []any{kerneltest.FromDense(d, x.Sizes, order, y), none, none}
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint("given statistics ", x), Op: "aten::_native_batch_norm_legit_no_training.out",
			Args: []any{x, wb[0], wb[1], m, v, 0.1, 1e-3}, Want: want, Scale: 32},
			kerneltest.Case{Name: fmt.Sprint("not training ", x), Op: "aten::_native_batch_norm_legit.out",
				Args: []any{x, wb[0], wb[1], m, v, false, 0.1, 1e-3}, Want: want, Scale: 32})
	}
	kerneltest.Run(t, set, cases...)
}

func TestEdges(t *testing.T) {
	f := func(v ...float32) *tensor.Tensor { return tensor.Of(v, 1, len(v)) }
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	soft := func(name string, x, want *tensor.Tensor) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: "aten::_softmax.out", Args: []any{x, 1, false}, Want: []any{want}}
	}
	kerneltest.Run(t, set,
		soft("large elements", f(1000, 1000), f(0.5, 0.5)),
		soft("-Inf has no share", f(0, -inf), f(1, 0)),
		soft("nothing but -Inf", f(-inf, -inf), f(nan, nan)),
		soft("+Inf", f(inf, 0), f(nan, nan)),
		soft("NaN", f(nan, 0), f(nan, nan)),
		kerneltest.Case{Name: "log of large elements", Op: "aten::_log_softmax.out", Args: []any{f(1e4, 1e4-1), 1, false}, Want: []any{f(-0.31326166, -1.3132616)}, Scale: 1},
		kerneltest.Case{Name: "rank 0", Op: "aten::_softmax.out", Args: []any{tensor.Of([]float32{3}), -1, false}, Want: []any{tensor.Of([]float32{1})}},
		kerneltest.Case{Name: "half to float", Op: "aten::_softmax.out", Args: []any{kerneltest.FromDense(tensor.Float16, []int{1, 2}, nil, []float64{1, 1}), 1, true}, Want: []any{f(0.5, 0.5)}},
		kerneltest.Case{Name: "float to float", Op: "aten::_softmax.out", Args: []any{f(1), 1, true}, Outs: []any{f(1)}, Refused: "half_to_float"},
		kerneltest.Case{Name: "dimension out of range", Op: "aten::_softmax.out", Args: []any{f(1), 2, false}, Outs: []any{f(1)}, Refused: "dimension"},
		kerneltest.Case{Name: "far offset", Op: "aten::native_layer_norm.out", Args: []any{f(10001, 10003), []int{2}, nil, nil, 0.0}, Want: []any{f(-1, 1), f(10002), f(1)}},
	)
}

// TestZeroMaskedRows compares with the definition, and wants NaN and -0 to stay.
func TestZeroMaskedRows(t *testing.T) {
	const op = "etrun::zero_masked_rows.out"
	inf, nan, zero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	scores := []float64{-inf, -inf, -inf, -inf, -inf, 1, 0, -inf, -inf, nan, -inf, -inf, -inf, nan, -inf, inf, -inf, -inf}
	x := []float64{nan, nan, nan, 1, zero, 2, 3, inf, -inf, nan, nan, nan, nan, zero, 1, 1, 2, zero}
	want := append([]float64{0, 0, 0}, x[3:]...)
	var cases []kerneltest.Case
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16} {
		of := func(v []float64) *tensor.Tensor { return kerneltest.FromDense(d, []int{2, 3, 3}, nil, v) }
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint("rows of ", d), Op: op, Args: []any{of(x), of(scores)}, Want: []any{of(want)}})
	}
	f := func(sizes ...int) *tensor.Tensor { return tensor.New(tensor.Float32, sizes...) }
	last := tensor.Make(tensor.Float32, []int{2, 2}, []uint8{1, 0}, tensor.Static)
	last.Bind(make([]byte, 16))
	kerneltest.Run(t, set, append(cases,
		kerneltest.Case{Name: "no rows", Op: op, Args: []any{f(0, 3), f(0, 3)}, Want: []any{f(0, 3)}},
		kerneltest.Case{Name: "empty rows", Op: op, Args: []any{f(3, 0), f(3, 0)}, Want: []any{f(3, 0)}},
		kerneltest.Case{Name: "other sizes", Op: op, Args: []any{f(2, 3), f(3)}, Outs: []any{f(2, 3)}, Refused: "the sizes of self"},
		kerneltest.Case{Name: "no dimension", Op: op, Args: []any{f(), f()}, Outs: []any{f()}, Refused: "last dimension"},
		kerneltest.Case{Name: "another type", Op: op, Args: []any{f(2), tensor.New(tensor.Float64, 2)}, Outs: []any{f(2)}, Refused: "argument 0's float32"},
		kerneltest.Case{Name: "another order", Op: op, Args: []any{f(2, 2), last}, Outs: []any{f(2, 2)}, Refused: "contiguous"},
	)...)
}

func TestNoAllocs(t *testing.T) {
	x, c, none, one := tensor.New(tensor.Float32, 8, 16, 40), tensor.New(tensor.Float32, 16), tensor.New(tensor.Float32, 0), tensor.New(tensor.Float32, 8, 1, 1)
	w := tensor.New(tensor.Float32, 16, 40)
	group := tensor.New(tensor.Float32, 8, 4)
	kerneltest.NoAllocs(t, set,
		kerneltest.Case{Name: "softmax", Op: "aten::_softmax.out", Args: []any{x, 2, false}, Want: []any{x}},
		kerneltest.Case{Name: "masked rows", Op: "etrun::zero_masked_rows.out", Args: []any{x, x}, Want: []any{x}},
		kerneltest.Case{Name: "softmax across", Op: "aten::_log_softmax.out", Args: []any{x, 1, false}, Want: []any{x}},
		kerneltest.Case{Name: "layer", Op: "aten::native_layer_norm.out", Args: []any{x, []int{16, 40}, w, w, 1e-5}, Want: []any{x, one, one}},
		kerneltest.Case{Name: "group", Op: "aten::native_group_norm.out", Args: []any{x, c, c, 8, 16, 40, 4, 1e-5}, Want: []any{x, group, group}},
		kerneltest.Case{Name: "batch", Op: "aten::_native_batch_norm_legit_no_training.out", Args: []any{x, c, c, c, c, 0.1, 1e-5}, Want: []any{x, none, none}},
		kerneltest.Case{Name: "batch's own", Op: "aten::_native_batch_norm_legit.no_stats_out", Args: []any{x, c, nil, true, 0.1, 1e-5}, Want: []any{x, c, c}},
	)
}
