package reduce_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestLogSumExp(t *testing.T) {
	const op = "aten::logsumexp.out"
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "no power overflows", Op: op, Args: []any{tensor.Of([]float32{1000, 1000, -1000, -1000}, 2, 2), []int{1}, false},
			Want: []any{tensor.Of([]float32{1000 + math.Ln2, -1000 + math.Ln2}, 2)}},
		kerneltest.Case{Name: "infinities and NaN", Op: op, Args: []any{tensor.Of([]float32{inf, 1, -inf, -inf, nan, 1}, 3, 2), []int{-1}, true},
			Want: []any{tensor.Of([]float32{inf, -inf, nan}, 3, 1)}},
		kerneltest.Case{Name: "nothing", Op: op, Args: []any{tensor.New(tensor.Float32, 2, 0), []int{1}, false}, Want: []any{tensor.Of([]float32{-inf, -inf}, 2)}},
		kerneltest.Case{Name: "integers", Op: op, Args: []any{tensor.Of([]int64{1}, 1), []int{0}, false}, Outs: []any{tensor.New(tensor.Float32)}, Refused: "a floating type"},
	)
	r := rand.New(rand.NewPCG(9, 9))
	for range 100 {
		sizes := []int{1 + r.IntN(4), 1 + r.IntN(40), 1 + r.IntN(5)}
		for d := range sizes {
			x := kerneltest.Noise(r, tensor.Float32, sizes, kerneltest.AnyOrder(r, 3))
			dense := kerneltest.Dense(x)
			outer, inner := 1, 1
			for i, n := range sizes {
				if i < d {
					outer *= n
				} else if i > d {
					inner *= n
				}
			}
			want := make([]float64, outer*inner)
			for i := range want {
				sum := 0.0
				for k := range sizes[d] {
					sum += math.Exp(dense[(i/inner*sizes[d]+k)*inner+i%inner])
				}
				want[i] = math.Log(sum)
			}
			kept := append([]int(nil), sizes...)
			kept[d] = 1
			kerneltest.Run(t, set, kerneltest.Case{Name: fmt.Sprint(sizes, d, x.DimOrder), Op: op, Args: []any{x, []int{d}, true},
				Want: []any{kerneltest.FromDense(tensor.Float32, kept, nil, want)}})
		}
	}
}
