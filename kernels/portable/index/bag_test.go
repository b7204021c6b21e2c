package index_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// bagCall is one call of _embedding_bag, in plain numbers.
type bagCall struct {
	table            [][]float64
	indices, offsets []int64
	mode             int
	factors          []float64 // nil for none
	last             bool
	padding          int64
}

// reduce follows the definition: index by index, into the bag of the last offset that is
// not behind it.
func (b *bagCall) reduce(dim int) (rows, bags, sizes, sources []float64) {
	n := len(b.offsets)
	if b.last {
		n--
	}
	rows, bags, sizes, sources = make([]float64, n*dim), make([]float64, len(b.indices)), make([]float64, n), make([]float64, n*dim)
	for i, index := range b.indices {
		bag := 0
		for k := range n {
			if b.offsets[k] <= int64(i) {
				bag = k
			}
		}
		bags[i] = float64(bag)
		if index == b.padding || n == 0 {
			continue
		}
		for j, v := range b.table[index] {
			switch at := bag*dim + j; {
			case b.mode == 2 && (sizes[bag] == 0 || v > rows[at]):
				rows[at], sources[at] = v, float64(index)
			case b.mode != 2 && b.factors != nil:
				rows[at] += v * b.factors[i]
			case b.mode != 2:
				rows[at] += v
			}
		}
		sizes[bag]++
	}
	if b.mode == 1 {
		for i := range rows {
			rows[i] /= max(sizes[i/dim], 1)
		}
	}
	return rows, bags, sizes, sources
}

// drawBags draws a call.
func drawBags(r *rand.Rand, rows int) *bagCall {
	b := &bagCall{mode: r.IntN(3), last: r.IntN(2) == 0, padding: int64(r.IntN(rows+2) - 2)}
	for range r.IntN(30) {
		b.indices = append(b.indices, int64(r.IntN(rows)))
	}
	b.offsets = []int64{0}
	for range r.IntN(8) {
		at := b.offsets[len(b.offsets)-1]
		b.offsets = append(b.offsets, at+int64(r.IntN(len(b.indices)-int(at)+1)))
	}
	return b
}

// TestBags compares random bags of every type and mode with the definition.
func TestBags(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	types := []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16}
	for i := range 300 {
		d, integer, rows, dim := types[i%4], tensor.Int64, 1+r.IntN(9), r.IntN(40)
		if r.IntN(2) == 0 {
			integer = tensor.Int32
		}
		b := drawBags(r, rows)
		weight := kerneltest.Noise(r, d, []int{rows, dim}, kerneltest.AnyOrder(r, 2))
		dense := kerneltest.Dense(weight)
		for k := range rows {
			b.table = append(b.table, dense[k*dim:][:dim])
		}
		var factors any
		if b.mode == 0 && r.IntN(2) == 0 {
			f := kerneltest.Noise(r, d, []int{len(b.indices)}, nil)
			factors, b.factors = f, kerneltest.Dense(f)
		}
		checkBags(t, r, b, weight, integer, factors, fmt.Sprint(i, " ", d))
	}
}

func checkBags(t *testing.T, r *rand.Rand, b *bagCall, weight *tensor.Tensor, integer tensor.DType, factors any, name string) {
	t.Helper()
	dim := weight.Sizes[1]
	out, bags, sizes, sources := b.reduce(dim)
	n := len(sizes)
	numbers := func(v []float64, sizes ...int) *tensor.Tensor {
		return kerneltest.FromDense(integer, sizes, kerneltest.AnyOrder(r, len(sizes)), v)
	}
	want := []any{kerneltest.FromDense(weight.DType, []int{n, dim}, kerneltest.AnyOrder(r, 2), out), numbers(bags, len(bags)), nil, nil}
	if b.mode == 0 {
		clear(sizes)
	}
	want[2], want[3] = numbers(sizes, n), numbers(sizes, n)
	if b.mode == 2 {
		want[3] = numbers(sources, n, dim)
	}
	indices, offsets := numbers(floatsOf(b.indices), len(b.indices)), numbers(floatsOf(b.offsets), len(b.offsets))
	for _, op := range []string{"aten::_embedding_bag.out", "aten::_embedding_bag_forward_only.out"} {
		kerneltest.Run(t, set, kerneltest.Case{Name: fmt.Sprintf("%s %s mode %d padding %d", name, op, b.mode, b.padding), Op: op,
			Args: []any{weight, indices, offsets, false, b.mode, false, factors, b.last, b.padding}, Want: want, Scale: 8})
	}
}

func floatsOf(v []int64) []float64 {
	f := make([]float64, len(v))
	for i := range v {
		f[i] = float64(v[i])
	}
	return f
}

func TestBagCorners(t *testing.T) {
	nan := float32(math.NaN())
	grid := floats([]int{3, 2}, 1, nan, 2, 5, -3, 7)
	at, from := longs([]int{4}, 0, 1, 2, 1), longs([]int{2}, 0, 3)
	outs := func(rows ...int) []any {
		return []any{tensor.New(tensor.Float32, 2, 2), tensor.New(tensor.Int64, 4), tensor.New(tensor.Int64, 2), tensor.New(tensor.Int64, rows...)}
	}
	const op = "aten::_embedding_bag.out"
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "a NaN in front stays the maximum", Op: op, Args: []any{grid, at, from, false, 2, false, nil, false, -1},
			Want: []any{floats([]int{2, 2}, 2, nan, 2, 5), longs([]int{4}, 0, 0, 0, 1), longs([]int{2}, 3, 1), longs([]int{2, 2}, 1, 0, 1, 1)}},
		kerneltest.Case{Name: "and one behind is passed over", Op: op, Args: []any{grid, longs([]int{2}, 1, 0), longs([]int{1}, 0), false, 2, false, nil, false, -1},
			Want: []any{floats([]int{1, 2}, 2, 5), longs([]int{2}, 0, 0), longs([]int{1}, 2), longs([]int{1, 2}, 1, 1)}},
		kerneltest.Case{Name: "a sum without the bags of indices", Op: op, Args: []any{grid, longs([]int{2}, 1, 2), longs([]int{1}, 0), false, 0, false, nil, false, -1},
			Want: []any{floats([]int{1, 2}, -1, 12), longs([]int{0}), longs([]int{1}, 0), longs([]int{1}, 0)}},
		kerneltest.Case{Name: "sizes of as many bags as offsets", Op: "aten::_embedding_bag_forward_only.out", Args: []any{grid, longs([]int{2}, 1, 2), longs([]int{2}, 0, 2), false, 1, false, nil, true, -1},
			Want: []any{floats([]int{1, 2}, -0.5, 6), longs([]int{2}, 0, 0), longs([]int{2}, 2, 0), longs([]int{2}, 2, 0)}},
		kerneltest.Case{Name: "a maximum has no row after the last offset", Op: op, Args: []any{grid, longs([]int{2}, 0, 2), longs([]int{2}, 0, 2), false, 2, false, nil, true, -1},
			Want: []any{floats([]int{1, 2}, 1, nan), longs([]int{2}, 0, 0), longs([]int{2}, 2, 0), longs([]int{1, 2}, 0, 0)}},
		kerneltest.Case{Name: "int32 with int64 is int64", Op: op, Args: []any{grid, tensor.Of([]int32{1}, 1), longs([]int{1}, 0), false, 1, false, nil, false, -1},
			Want: []any{floats([]int{1, 2}, 2, 5), longs([]int{1}, 0), longs([]int{1}, 1), longs([]int{1}, 1)}},
		kerneltest.Case{Name: "a row outside the table", Op: op, Args: []any{grid, longs([]int{4}, 0, 1, 3, 1), from, false, 0, false, nil, false, 3}, Outs: outs(2), Refused: "indices in [0, 3)"},
		kerneltest.Case{Name: "offsets that fall", Op: op, Args: []any{grid, at, longs([]int{3}, 0, 3, 2), false, 0, false, nil, true, -1}, Outs: outs(2), Refused: "offsets from 0 that rise to at most 4"},
		kerneltest.Case{Name: "offsets beyond the end", Op: op, Args: []any{grid, at, longs([]int{2}, 0, 5), false, 0, false, nil, false, -1}, Outs: outs(2), Refused: "got 5"},
		kerneltest.Case{Name: "offsets that do not start at 0", Op: op, Args: []any{grid, at, longs([]int{2}, 1, 3), false, 0, false, nil, false, -1}, Outs: outs(2), Refused: "got 1"},
		kerneltest.Case{Name: "no last offset", Op: op, Args: []any{grid, at, longs([]int{0}), false, 0, false, nil, true, -1}, Outs: outs(2), Refused: "at least the last offset"},
		kerneltest.Case{Name: "weights of a mean", Op: op, Args: []any{grid, at, from, false, 1, false, floats([]int{4}, 1, 1, 1, 1), false, -1}, Outs: outs(2), Refused: "none but for a sum"},
		kerneltest.Case{Name: "too few weights", Op: op, Args: []any{grid, at, from, false, 0, false, floats([]int{3}, 1, 1, 1), false, -1}, Outs: outs(2), Refused: "one for each index"},
		kerneltest.Case{Name: "weights of another type", Op: op, Args: []any{grid, at, from, false, 0, false, tensor.New(tensor.Float64, 4), false, -1}, Outs: outs(2), Refused: "want float32"},
		kerneltest.Case{Name: "no such mode", Op: op, Args: []any{grid, at, from, false, 3, false, nil, false, -1}, Outs: outs(2), Refused: "got 3"},
		kerneltest.Case{Name: "indices in rows", Op: op, Args: []any{grid, longs([]int{2, 2}, 0, 1, 2, 1), from, false, 0, false, nil, false, -1}, Outs: outs(2), Refused: "want 1 dimension"},
		kerneltest.Case{Name: "a table of integers", Op: op, Args: []any{tensor.New(tensor.Int32, 3, 2), at, from, false, 0, false, nil, false, -1}, Outs: outs(2), Refused: "a float type"},
	)
}

// Each of the outs that nothing uses may have a number more than there are bags, if there is a last offset.
func TestBagOutsAfterLastOffset(t *testing.T) {
	grid := floats([]int{3, 2}, 1, 4, 2, 5, -3, 7)
	for _, op := range []string{"aten::_embedding_bag.out", "aten::_embedding_bag_forward_only.out"} {
		for mode, out := range []*tensor.Tensor{floats([]int{1, 2}, -1, 12), floats([]int{1, 2}, -0.5, 6)} {
			for more := range 4 {
				sizes := func(extra int) *tensor.Tensor {
					return longs([]int{1 + extra}, []int64{2 * int64(mode), 0}[:1+extra]...)
				}
				kerneltest.Run(t, set, kerneltest.Case{Name: fmt.Sprintf("%s mode %d, %d and %d more", op, mode, more&1, more>>1), Op: op,
					Args: []any{grid, longs([]int{2}, 1, 2), longs([]int{2}, 0, 2), false, mode, false, nil, true, -1},
					Want: []any{out, longs([]int{2}, 0, 0), sizes(more & 1), sizes(more >> 1)}})
			}
		}
	}
}
