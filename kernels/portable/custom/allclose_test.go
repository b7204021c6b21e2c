package custom

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var set = kernels.NewSet(Ops())

func truth(v bool) *tensor.Tensor { return tensor.Of([]bool{v}) }

func TestAllclose(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	f := func(v ...float64) *tensor.Tensor { return tensor.Of(v, len(v)) }
	near := make([]float64, 3*cpu.Grain(1, pairCost))
	far := make([]float64, 3*cpu.Grain(1, pairCost))
	far[2*cpu.Grain(1, pairCost)+1] = 1
	var cases []kerneltest.Case
	for _, c := range []struct {
		name string
		x, y *tensor.Tensor
		nan  bool
		want bool
	}{
		{"equal", f(1, -2, inf), f(1, -2, inf), false, true},
		{"within both tolerances", f(1.15, 0.05), f(1, 0), false, true},
		{"beyond", f(1.25), f(1), false, false},
		{"relative to the second", f(0, 10), f(0, 12), false, false},
		{"infinite against finite", f(inf), f(1), false, false},
		{"finite against infinite", f(1), f(inf), false, false},
		{"opposite infinities", f(inf), f(-inf), false, false},
		{"NaNs differ", f(nan), f(nan), false, false},
		{"NaNs equal", f(nan), f(nan), true, true},
		{"NaN against a number", f(nan), f(1), true, false},
		{"integers", tensor.Of([]int64{10, 20}, 2), tensor.Of([]int64{11, 20}, 2), false, true},
		{"none", f(), f(), false, true},
		{"many", f(near...), f(near...), false, true},
		{"one of many", f(near...), f(far...), false, false},
	} {
		cases = append(cases,
			kerneltest.Case{Name: c.name, Op: "aten::allclose.out", Args: []any{c.x, c.y, 0.1, 0.05, c.nan, false}, Want: []any{truth(c.want)}},
			kerneltest.Case{Name: c.name + ", returned", Op: "aten::allclose.Tensor", Args: []any{c.x, c.y, 0.1, 0.05, c.nan, false}, Want: []any{truth(c.want)}})
	}
	cases = append(cases,
		kerneltest.Case{Name: "other sizes", Op: "aten::allclose.out", Args: []any{f(1, 2), f(1), 0.0, 0.0, false, false}, Outs: []any{truth(false)}, Refused: "argument 1"},
		kerneltest.Case{Name: "out of another type", Op: "aten::allclose.out", Args: []any{f(1), f(1), 0.0, 0.0, false, false}, Outs: []any{tensor.New(tensor.Int8)}, Refused: "a bool tensor"})
	kerneltest.Run(t, set, cases...)
	kerneltest.NoAllocs(t, set, cases[24])
}

func TestTable(t *testing.T)  { kerneltest.Table(t, set) }
func TestCalls(t *testing.T)  { kerneltest.Calls(t, set) }
func TestRandom(t *testing.T) { kerneltest.Random(t, set, 200) }
