package resample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var types = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int64, tensor.Uint8}

// sized is a resize of [2, 3, h, w], asked for by sizes or by factors.
type sized struct {
	in, out [2]int
	factors []float64
}

func random(r *rand.Rand) (s sized) {
	f := make([]float64, 2)
	for i := range 2 {
		s.in[i], s.out[i] = 1+r.IntN(9), 1+r.IntN(20)
		f[i] = 1/float64(s.in[i]) + r.Float64()*3
	}
	if r.IntN(2) == 0 {
		s.factors = f
		for i := range 2 {
			s.out[i] = int(float64(s.in[i]) * f[i])
		}
	}
	return s
}

// step is the distance of output points in the input.
func (s *sized) step(d int, align bool) float64 {
	switch {
	case align:
		return float64(s.in[d]-1) / math.Max(float64(s.out[d]-1), 1)
	case s.factors != nil:
		return 1 / s.factors[d]
	}
	return float64(s.in[d]) / float64(s.out[d])
}

func (s *sized) args() (sizes, factors any) {
	if s.factors != nil {
		return nil, s.factors
	}
	return s.out[:], nil
}

// each computes every output element from its plane and place.
func (s *sized) each(x []float64, f func(plane []float64, y, x int) float64) []float64 {
	points, outs := s.in[0]*s.in[1], s.out[0]*s.out[1]
	want := make([]float64, len(x)/points*outs)
	for i := range want {
		want[i] = f(x[i/outs*points:][:points], i%outs/s.out[1], i%s.out[1])
	}
	return want
}

func (s *sized) sizes() []int { return []int{2, 3, s.out[0], s.out[1]} }

func TestNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cases []kerneltest.Case
	for i := range 60 {
		s, d := random(r), types[i%len(types)]
		x := kerneltest.Noise(r, d, []int{2, 3, s.in[0], s.in[1]}, kerneltest.AnyOrder(r, 4))
		source := func(d, i int) int {
			switch s.out[d] {
			case s.in[d]:
				return i
			case 2 * s.in[d]:
				return i / 2
			}
			return min(int(float32(i)*float32(s.step(d, false))), s.in[d]-1)
		}
		want := s.each(kerneltest.Dense(x), func(plane []float64, y, x int) float64 { return plane[source(0, y)*s.in[1]+source(1, x)] })
		sizes, factors := s.args()
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(d, " ", s), Op: "aten::upsample_nearest2d.vec_out", Args: []any{x, sizes, factors},
			Want: []any{kerneltest.FromDense(d, s.sizes(), kerneltest.AnyOrder(r, 4), want)}})
	}
	kerneltest.Run(t, set, cases...)
}

func TestBilinear(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var cases []kerneltest.Case
	for i := range 80 {
		s, d, align := random(r), types[i%4], i%3 == 0
		x := kerneltest.Noise(r, d, []int{2, 3, s.in[0], s.in[1]}, kerneltest.AnyOrder(r, 4))
		source := func(d, i int) (lo, hi int, w float64) {
			at := float64(i) * s.step(d, align)
			if !align {
				at = max((float64(i)+0.5)*s.step(d, align)-0.5, 0)
			}
			if s.in[d] == s.out[d] {
				at = float64(i)
			}
			lo = min(int(at), s.in[d]-1)
			return lo, min(lo+1, s.in[d]-1), min(at-float64(lo), 1)
		}
		want := s.each(kerneltest.Dense(x), func(plane []float64, y, x int) float64 {
			h0, h1, v := source(0, y)
			w0, w1, h := source(1, x)
			at := func(a, b int) float64 { return plane[a*s.in[1]+b] }
			return (1-v)*((1-h)*at(h0, w0)+h*at(h0, w1)) + v*((1-h)*at(h1, w0)+h*at(h1, w1))
		})
		sizes, factors := s.args()
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(d, " ", s, " align ", align), Op: "aten::upsample_bilinear2d.vec_out", Args: []any{x, sizes, align, factors},
			Want: []any{kerneltest.FromDense(d, s.sizes(), kerneltest.AnyOrder(r, 4), want)}, Scale: 8 * float64(max(s.in[0], s.in[1]))})
	}
	kerneltest.Run(t, set, cases...)
}

func TestAntialiased(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var cases []kerneltest.Case
	for i := range 40 {
		s, d, align := random(r), types[i%2], i%3 == 0
		s.factors = nil
		x := kerneltest.Noise(r, d, []int{2, 3, s.in[0], s.in[1]}, nil)
		weights := func(d, i int) []float64 {
			step, sum := s.step(d, align), 0.0
			if align && s.out[d] == 1 {
				step = 0
			}
			w := make([]float64, s.in[d])
			for j := range w {
				w[j] = max(0, 1-math.Abs(float64(j)+0.5-step*(float64(i)+0.5))/max(step, 1))
				sum += w[j]
			}
			for j := range w {
				w[j] /= sum
			}
			return w
		}
		want := s.each(kerneltest.Dense(x), func(plane []float64, y, x int) (v float64) {
			h, w := weights(0, y), weights(1, x)
			for i, p := range plane {
				v += p * h[i/s.in[1]] * w[i%s.in[1]]
			}
			return v
		})
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(d, " ", s, " align ", align), Op: "aten::_upsample_bilinear2d_aa.out", Args: []any{x, s.out[:], align, nil, nil},
			Want: []any{kerneltest.FromDense(d, s.sizes(), kerneltest.AnyOrder(r, 4), want)}, Scale: 16})
	}
	kerneltest.Run(t, set, cases...)
}

// TestGridIdentity samples images at their own points, in every mode.
func TestGridIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var cases []kerneltest.Case
	for i := range 18 {
		mode, pad, d := i%3, i/3%3, types[i%2]
		h, w := 2+r.IntN(5), 2+r.IntN(5)
		x := kerneltest.Noise(r, d, []int{2, 3, h, w}, kerneltest.AnyOrder(r, 4))
		grid := make([]float64, 2*h*w*2)
		for j := range grid {
			p := j / 2 % (h * w)
			if j%2 == 0 {
				grid[j] = float64(p%w)*2/float64(w-1) - 1
			} else {
				grid[j] = float64(p/w)*2/float64(h-1) - 1
			}
		}
		cases = append(cases, kerneltest.Case{Name: fmt.Sprint(x, " mode ", mode, " padding ", pad), Op: "aten::grid_sampler_2d.out", Scale: 16,
			Args: []any{x, kerneltest.FromDense(d, []int{2, h, w, 2}, nil, grid), mode, pad, true}, Want: []any{x}})
	}
	kerneltest.Run(t, set, cases...)
}

func TestGridOutside(t *testing.T) {
	image := tensor.Of([]float32{1, 2, 3, 4}, 1, 1, 1, 4)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	sample := func(name string, mode, pad int, x, want float32) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: "aten::grid_sampler_2d.out", Args: []any{image, tensor.Of([]float32{x, 0}, 1, 1, 1, 2), mode, pad, false},
			Want: []any{tensor.Of([]float32{want}, 1, 1, 1, 1)}, Tolerance: &kernels.Tolerance{Abs: 1e-5}}
	}
	kerneltest.Run(t, set,
		sample("half outside, zeros", 0, 0, -1, 0.5),
		sample("far outside, zeros", 0, 0, 1e30, 0),
		sample("infinitely far, zeros", 0, 0, -inf, 0),
		sample("NaN, zeros", 0, 0, nan, 0),
		sample("far outside, border", 0, 1, 1e30, 4),
		sample("NaN, border", 1, 1, nan, 1),
		sample("reflected once", 1, 2, -1.25, 1),
		sample("reflected further", 1, 2, -1.75, 2),
		sample("infinitely far, reflected", 1, 2, inf, 1),
		sample("between, cubic", 2, 1, 0, 2.5),
	)
}

func TestRefusals(t *testing.T) {
	x := tensor.New(tensor.Float32, 1, 1, 2, 2)
	nearest := func(name, want string, sizes, factors any) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: "aten::upsample_nearest2d.vec_out", Args: []any{x, sizes, factors}, Outs: []any{x}, Refused: want}
	}
	kerneltest.Run(t, set,
		nearest("neither sizes nor factors", "either", nil, nil),
		nearest("both", "either", []int{2, 2}, []float64{1, 1}),
		nearest("size of 0", "sizes of 1", []int{0, 2}, nil),
		nearest("NaN factor", "factors", nil, []float64{math.NaN(), 1}),
		nearest("factor that leaves nothing", "factors", nil, []float64{0.1, 1}),
		nearest("huge factor", "factors", nil, []float64{1e300, 1}),
		nearest("three sizes", "2 sizes", []int{1, 2, 3}, nil),
		kerneltest.Case{Name: "unknown mode", Op: "aten::grid_sampler_2d.out", Args: []any{x, x, 3, 0, true}, Outs: []any{x}, Refused: "mode"},
		kerneltest.Case{Name: "grid of three coordinates", Op: "aten::grid_sampler_2d.out", Args: []any{x, tensor.New(tensor.Float32, 1, 2, 2, 3), 0, 0, true}, Outs: []any{x}, Refused: "2]"},
	)
}

func TestNoAllocs(t *testing.T) {
	x, y, grid := tensor.New(tensor.Float32, 2, 8, 10, 10), tensor.New(tensor.Float32, 2, 8, 33, 21), tensor.New(tensor.Float32, 2, 33, 21, 2)
	half, out := tensor.New(tensor.Float16, 1, 1, 4, 4), tensor.New(tensor.Float16, 1, 1, 3, 3)
	kerneltest.NoAllocs(t, set,
		kerneltest.Case{Name: "nearest", Op: "aten::upsample_nearest2d.vec_out", Args: []any{x, []int{33, 21}, nil}, Want: []any{y}},
		kerneltest.Case{Name: "bilinear", Op: "aten::upsample_bilinear2d.vec_out", Args: []any{x, []int{33, 21}, false, nil}, Want: []any{y}},
		kerneltest.Case{Name: "bilinear half", Op: "aten::upsample_bilinear2d.vec_out", Args: []any{half, []int{3, 3}, false, nil}, Want: []any{out}},
		kerneltest.Case{Name: "antialiased", Op: "aten::_upsample_bilinear2d_aa.out", Args: []any{x, []int{33, 21}, false, nil, nil}, Want: []any{y}},
		kerneltest.Case{Name: "grid", Op: "aten::grid_sampler_2d.out", Args: []any{x, grid, 2, 0, false}, Want: []any{y}},
	)
}
