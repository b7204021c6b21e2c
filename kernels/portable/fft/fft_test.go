package fft

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var set = kernels.NewSet(Ops())

const (
	r2c, c2r = "aten::_fft_r2c.out", "aten::_fft_c2r.out"
	c2c      = "aten::_fft_c2c.out"
)

func TestPlanFollowsTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 4, 5, 8, 12, 16, 30, 31, 37, 49, 64, 74, 97, 120, 121, 1009, 1024} {
		x := make([]complex128, n)
		for i := range x {
			x[i] = complex(r.NormFloat64(), r.NormFloat64())
		}
		p := newPlan(kernels.NewCtx(nil), n)
		got := make([]complex128, n)
		p.transform(kernels.NewCtx(nil), got, x, make([]complex128, p.work()))
		for q := range n {
			want := complex128(0)
			for j, v := range x {
				want += v * unit(float64(j*q%n)/float64(n))
			}
			if d := got[q] - want; math.Hypot(real(d), imag(d)) > 1e-12*float64(n) {
				t.Errorf("length %d, point %d: got %v, want %v", n, q, got[q], want)
				break
			}
		}
	}
}

// along transforms a complex array of the given sizes along dimension d by the definition.
func along(x []complex128, sizes []int, d int, sign float64) []complex128 {
	inner := 1
	for _, s := range sizes[d+1:] {
		inner *= s
	}
	n := sizes[d]
	y := make([]complex128, len(x))
	for i := range x {
		q := i / inner % n
		for j := range n {
			w := unit(float64(j*q%n) / float64(n))
			y[i] += x[i+(j-q)*inner] * complex(real(w), sign*imag(w))
		}
	}
	return y
}

// both returns the forward and inverse calls for a random real tensor, with the results by the
// definition.
func both(name string, sizes, dims []int, normalization int) []kerneltest.Case {
	r := rand.New(rand.NewPCG(uint64(len(sizes)), 3))
	x := tensor.New(tensor.Float64, sizes...)
	spectrum := make([]complex128, x.Numel())
	for i := range spectrum {
		tensor.Data[float64](x)[i] = r.NormFloat64()
		spectrum[i] = complex(tensor.Data[float64](x)[i], 0)
	}
	points := 1.0
	for _, d := range dims {
		spectrum = along(spectrum, sizes, d, 1)
		points *= float64(sizes[d])
	}
	factor := []float64{1, 1 / math.Sqrt(points), 1 / points}[normalization]
	last := dims[len(dims)-1]
	half := append([]int{}, sizes...)
	half[last] = sizes[last]/2 + 1
	whole, kept := tensor.New(tensor.Complex128, sizes...), tensor.New(tensor.Complex128, half...)
	inner := 1
	for _, s := range sizes[last+1:] {
		inner *= s
	}
	for i, v := range spectrum {
		v *= complex(factor, 0)
		tensor.Data[complex128](whole)[i] = v
		if k := i / inner % sizes[last]; k < half[last] {
			tensor.Data[complex128](kept)[(i/inner/sizes[last]*half[last]+k)*inner+i%inner] = v
		}
	}
	back := tensor.New(tensor.Float64, sizes...)
	for i, v := range tensor.Data[float64](x) {
		tensor.Data[float64](back)[i] = v * factor * factor * points
	}
	input, returned := tensor.New(tensor.Complex128, sizes...), tensor.New(tensor.Complex128, sizes...)
	for i, v := range tensor.Data[float64](x) {
		tensor.Data[complex128](input)[i] = complex(v, 0)
		tensor.Data[complex128](returned)[i] = complex(tensor.Data[float64](back)[i], 0)
	}
	tol := &kernels.Tolerance{Abs: 1e-12 * points, Rel: 1e-12}
	return []kerneltest.Case{
		{Name: name + ", half", Op: r2c, Args: []any{x, dims, normalization, true}, Want: []any{kept}, Tolerance: tol},
		{Name: name + ", whole", Op: r2c, Args: []any{x, dims, normalization, false}, Want: []any{whole}, Tolerance: tol},
		{Name: name + ", back", Op: c2r, Args: []any{kept, dims, normalization, sizes[last]}, Want: []any{back}, Tolerance: tol},
		{Name: name + ", complex", Op: c2c, Args: []any{input, dims, normalization, true}, Want: []any{whole}, Tolerance: tol},
		{Name: name + ", complex and back", Op: c2c, Args: []any{whole, dims, normalization, false}, Want: []any{returned}, Tolerance: tol},
	}
}

func TestTransforms(t *testing.T) {
	var cases []kerneltest.Case
	cases = append(cases, both("one dimension", []int{8}, []int{0}, 0)...)
	cases = append(cases, both("odd", []int{3, 9}, []int{1}, 1)...)
	cases = append(cases, both("outer dimension", []int{6, 5}, []int{0}, 2)...)
	cases = append(cases, both("two dimensions", []int{4, 6, 7}, []int{1, 2}, 1)...)
	cases = append(cases, both("three, the last in front", []int{5, 4, 6}, []int{1, 2, 0}, 0)...)
	cases = append(cases, both("a prime", []int{2, 53}, []int{1}, 0)...)
	cases = append(cases, both("one point", []int{2, 1}, []int{1}, 0)...)
	cases = append(cases, both("many", []int{64, 96}, []int{1}, 0)...)
	single := tensor.Of([]float32{1, 2, 3, 4}, 4)
	half := tensor.Of([]complex64{10, -2 + 2i, -2}, 3)
	cases = append(cases,
		kerneltest.Case{Name: "float32", Op: r2c, Args: []any{single, []int{-1}, 0, true}, Want: []any{half}},
		kerneltest.Case{Name: "complex64", Op: c2r, Args: []any{half, []int{0}, 2, 4}, Want: []any{single}},
		kerneltest.Case{Name: "imaginary ends do not count", Op: c2r, Args: []any{tensor.Of([]complex64{10 + 5i, -2 + 2i, -2 + 7i}, 3), []int{0}, 2, 4}, Want: []any{single}},
		kerneltest.Case{Name: "of complex64", Op: c2c, Args: []any{tensor.Of([]complex64{1, 1i, -1, -1i}, 4), []int{0}, 0, true},
			Want: []any{tensor.Of([]complex64{0, 4, 0, 0}, 4)}},
		kerneltest.Case{Name: "of real numbers", Op: c2c, Args: []any{single, []int{0}, 0, true}, Outs: []any{tensor.New(tensor.Complex64, 4)},
			Refused: "argument 0"},
		kerneltest.Case{Name: "types", Op: r2c, Args: []any{single, []int{0}, 0, true}, Outs: []any{tensor.New(tensor.Complex128, 3)}, Refused: "argument 0"},
		kerneltest.Case{Name: "a dimension twice", Op: r2c, Args: []any{tensor.New(tensor.Float32, 2, 2), []int{1, -1}, 0, true}, Outs: []any{tensor.New(tensor.Complex64, 2, 2)}, Refused: "different dimensions"},
		kerneltest.Case{Name: "no dimension", Op: r2c, Args: []any{single, []int{}, 0, true}, Outs: []any{tensor.New(tensor.Complex64, 3)}, Refused: "at least one"},
		kerneltest.Case{Name: "an empty dimension", Op: r2c, Args: []any{tensor.New(tensor.Float32, 0), []int{0}, 0, true}, Outs: []any{tensor.New(tensor.Complex64, 1)}, Refused: "not empty"},
		kerneltest.Case{Name: "normalization", Op: r2c, Args: []any{single, []int{0}, 3, true}, Outs: []any{tensor.New(tensor.Complex64, 3)}, Refused: "0, 1 or 2"},
		kerneltest.Case{Name: "another size", Op: c2r, Args: []any{half, []int{0}, 0, 6}, Outs: []any{tensor.New(tensor.Float32, 6)}, Refused: "argument 3"},
		kerneltest.Case{Name: "a huge size", Op: c2r, Args: []any{half, []int{0}, 0, int64(math.MaxInt64)}, Outs: []any{tensor.New(tensor.Float32, 6)}, Refused: "argument 3"},
	)
	kerneltest.Run(t, set, cases...)
	kerneltest.NoAllocs(t, set, cases[15], cases[16], cases[17], cases[18], cases[25])
}

func TestTable(t *testing.T)  { kerneltest.Table(t, set) }
func TestCalls(t *testing.T)  { kerneltest.Calls(t, set) }
func TestRandom(t *testing.T) { kerneltest.Random(t, set, 200) }
func FuzzOps(f *testing.F)    { kerneltest.Fuzz(f, set) }
