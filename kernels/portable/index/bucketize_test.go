package index_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// bucketOf counts the boundaries that are below a value, or not above it to the right.
func bucketOf(edges []float64, v float64, right bool) float64 {
	n := 0.0
	for _, edge := range edges {
		if v != v || edge < v || right && edge == v {
			n++
		}
	}
	return n
}

// TestBucketize compares with a count of the boundaries below, in every type.
func TestBucketize(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	types := []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32, tensor.Int64}
	for i := range 200 {
		d, sizes, right := types[i%len(types)], []int{1 + r.IntN(40), r.IntN(30)}, r.IntN(2) == 0
		edges := kerneltest.Dense(kerneltest.Noise(r, d, []int{r.IntN(20)}, nil))
		slices.Sort(edges)
		values := kerneltest.Noise(r, d, sizes, kerneltest.AnyOrder(r, 2))
		dense := kerneltest.Dense(values)
		for k := range dense {
			if len(edges) > 0 && r.IntN(3) == 0 {
				dense[k] = edges[r.IntN(len(edges))]
			}
			if d.IsFloat() && r.IntN(9) == 0 {
				dense[k] = [...]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
			}
		}
		values = kerneltest.FromDense(d, sizes, values.DimOrder, dense)
		buckets := make([]float64, len(dense))
		for k, v := range dense {
			buckets[k] = bucketOf(edges, v, right)
		}
		out := tensor.Int64
		if i%2 == 0 {
			out = tensor.Int32
		}
		kerneltest.Run(t, set, kerneltest.Case{Name: fmt.Sprint(i, " ", d, " right ", right), Op: "aten::bucketize.Tensor_out",
			Args: []any{values, kerneltest.FromDense(d, []int{len(edges)}, nil, edges), out == tensor.Int32, right},
			Want: []any{kerneltest.FromDense(out, sizes, kerneltest.AnyOrder(r, 2), buckets)}})
	}
}

func TestBucketizeCorners(t *testing.T) {
	nan, big := float32(math.NaN()), int64(1)<<53
	const op, scalar = "aten::bucketize.Tensor_out", "aten::bucketize.Scalar_out"
	half := tensor.New(tensor.Float16, 2)
	tensor.Cast(half, floats([]int{2}, 1, 2048))
	edges := floats([]int{3}, 1, 2, 3)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "to the left", Op: op, Args: []any{floats([]int{4}, 1, 2.5, 3, 4), edges, false, false}, Want: []any{longs([]int{4}, 0, 2, 2, 3)}},
		kerneltest.Case{Name: "to the right", Op: op, Args: []any{floats([]int{4}, 1, 2.5, 3, 4), edges, true, true}, Want: []any{tensor.Of([]int32{1, 2, 3, 3}, 4)}},
		kerneltest.Case{Name: "NaN boundaries at the end", Op: op, Args: []any{floats([]int{3}, 0, 5, nan), floats([]int{3}, 1, nan, nan), false, false}, Want: []any{longs([]int{3}, 3, 3, 3)}},
		kerneltest.Case{Name: "no boundaries", Op: op, Args: []any{floats([]int{1}, 5), floats([]int{0}), false, true}, Want: []any{longs([]int{1}, 0)}},
		kerneltest.Case{Name: "large integers compare exactly", Op: op, Args: []any{longs([]int{2}, big, big+1), longs([]int{1}, big+1), false, false}, Want: []any{longs([]int{2}, 0, 0)}},
		kerneltest.Case{Name: "but to the right", Op: op, Args: []any{longs([]int{2}, big, big+1), longs([]int{1}, big+1), false, true}, Want: []any{longs([]int{2}, 0, 1)}},
		kerneltest.Case{Name: "integers round to the boundaries' halves", Op: op, Args: []any{longs([]int{2}, 2049, 2051), half, false, true}, Want: []any{longs([]int{2}, 2, 2)}},
		kerneltest.Case{Name: "a double without dimensions is a float", Op: op, Args: []any{tensor.Of([]float64{2 + 1e-12}), edges, false, false}, Want: []any{longs(nil, 1)}},
		kerneltest.Case{Name: "a double with dimensions is none", Op: op, Args: []any{tensor.Of([]float64{2 + 1e-12}, 1), edges, false, false}, Want: []any{longs([]int{1}, 2)}},
		kerneltest.Case{Name: "a number", Op: scalar, Args: []any{2, edges, false, false}, Want: []any{longs(nil, 1)}},
		kerneltest.Case{Name: "a number among integers", Op: scalar, Args: []any{2.5, longs([]int{3}, 1, 2, 3), true, false}, Want: []any{tensor.Of([]int32{2})}},
		kerneltest.Case{Name: "a number between halves", Op: scalar, Args: []any{1.5, half, false, true}, Want: []any{longs(nil, 1)}},
		kerneltest.Case{Name: "out of another type", Op: op, Args: []any{edges, edges, true, false}, Outs: []any{longs([]int{3}, 0, 0, 0)}, Refused: "want int32"},
		kerneltest.Case{Name: "boundaries in rows", Op: op, Args: []any{edges, floats([]int{1, 3}, 1, 2, 3), false, false}, Outs: []any{longs([]int{3}, 0, 0, 0)}, Refused: "want 1 dimension"},
		kerneltest.Case{Name: "bool", Op: op, Args: []any{tensor.New(tensor.Bool, 1), tensor.New(tensor.Bool, 1), false, false}, Outs: []any{longs([]int{1}, 0)}, Refused: "numbers to compare"},
		kerneltest.Case{Name: "complex", Op: op, Args: []any{tensor.New(tensor.Complex64, 1), edges, false, false}, Outs: []any{longs([]int{1}, 0)}, Refused: "numbers to compare"},
	)
}
