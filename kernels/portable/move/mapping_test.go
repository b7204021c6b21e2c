package move_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// mapping is what a movement operator does, said the slow way: which element of self
// an element of the result is; nil for a zero.
type mapping struct {
	args  []any // after self
	sizes []int
	from  func(at []int) []int
}

// mappings make a legal call for a tensor of the given sizes at random.
var mappings = map[string]func(r *rand.Rand, n []int) mapping{
	"aten::permute_copy.out": func(r *rand.Rand, n []int) mapping {
		dims := r.Perm(len(n))
		sizes := make([]int, len(n))
		for i, d := range dims {
			sizes[i] = n[d]
		}
		return mapping{[]any{dims}, sizes, func(at []int) []int {
			in := make([]int, len(n))
			for i, d := range dims {
				in[d] = at[i]
			}
			return in
		}}
	},
	"aten::transpose_copy.int_out": func(r *rand.Rand, n []int) mapping {
		d, e := r.IntN(len(n)), r.IntN(len(n))
		swap := func(at []int) []int {
			at = slices.Clone(at)
			at[d], at[e] = at[e], at[d]
			return at
		}
		return mapping{[]any{d - len(n), e}, swap(n), swap}
	},
	"aten::slice_copy.Tensor_out": func(r *rand.Rand, n []int) mapping {
		d, step := r.IntN(len(n)), 1+r.IntN(3)
		start := r.IntN(n[d] + 1)
		end := start + r.IntN(n[d]-start+1)
		sizes := slices.Clone(n)
		sizes[d] = (end - start + step - 1) / step
		return mapping{[]any{d, start, end, step}, sizes, along(d, func(i int) int { return start + i*step })}
	},
	"aten::narrow_copy.out": func(r *rand.Rand, n []int) mapping {
		d := r.IntN(len(n))
		start := r.IntN(n[d] + 1)
		sizes := slices.Clone(n)
		sizes[d] = r.IntN(n[d] - start + 1)
		return mapping{[]any{d, start, sizes[d]}, sizes, along(d, func(i int) int { return start + i })}
	},
	"aten::select_copy.int_out": func(r *rand.Rand, n []int) mapping {
		d := r.IntN(len(n))
		i := r.IntN(n[d])
		return mapping{[]any{d, i - n[d]}, slices.Delete(slices.Clone(n), d, d+1), func(at []int) []int {
			return slices.Insert(slices.Clone(at), d, i)
		}}
	},
	"aten::unsqueeze_copy.out": func(r *rand.Rand, n []int) mapping {
		d := r.IntN(len(n) + 1)
		return mapping{[]any{d}, slices.Insert(slices.Clone(n), d, 1), func(at []int) []int {
			return slices.Delete(slices.Clone(at), d, d+1)
		}}
	},
	"aten::expand_copy.out": func(r *rand.Rand, n []int) mapping {
		sizes := append([]int{2, 3}, n...)
		return mapping{[]any{sizes, false}, sizes, func(at []int) []int { return at[2:] }}
	},
	"aten::repeat.out": func(r *rand.Rand, n []int) mapping {
		repeats, sizes := []int{2}, []int{2}
		for _, s := range n {
			repeats = append(repeats, 1+r.IntN(3))
			sizes = append(sizes, s*repeats[len(repeats)-1])
		}
		return mapping{[]any{repeats}, sizes, func(at []int) []int {
			in := slices.Clone(at[1:])
			for d := range in {
				in[d] %= n[d]
			}
			return in
		}}
	},
	"aten::flip.out": func(r *rand.Rand, n []int) mapping {
		d := r.IntN(len(n))
		return mapping{[]any{[]int{d}}, n, along(d, func(i int) int { return n[d] - 1 - i })}
	},
	"aten::roll.out": func(r *rand.Rand, n []int) mapping {
		d, by := r.IntN(len(n)), r.IntN(30)-15
		return mapping{[]any{[]int{by}, []int{d}}, n, along(d, func(i int) int { return ((i-by)%n[d] + n[d]) % n[d] })}
	},
	"aten::unfold_copy.out": func(r *rand.Rand, n []int) mapping {
		d, step := r.IntN(len(n)), 1+r.IntN(3)
		size := 1 + r.IntN(n[d])
		sizes := append(slices.Clone(n), size)
		sizes[d] = (n[d]-size)/step + 1
		return mapping{[]any{d, size, step}, sizes, func(at []int) []int {
			in := slices.Clone(at[:len(n)])
			in[d] = in[d]*step + at[len(n)]
			return in
		}}
	},
	"aten::tril.out": func(r *rand.Rand, n []int) mapping {
		diagonal := r.IntN(9) - 4
		return mapping{[]any{diagonal}, n, func(at []int) []int {
			if i, j := at[len(at)-2], at[len(at)-1]; j-i > diagonal {
				return nil
			}
			return at
		}}
	},
	"aten::constant_pad_nd.out": func(r *rand.Rand, n []int) mapping {
		last := len(n) - 1
		before, after := r.IntN(4)-min(n[last], 2), r.IntN(4)
		sizes := slices.Clone(n)
		sizes[last] = max(sizes[last]+before+after, 0)
		return mapping{[]any{[]int{before, sizes[last] - n[last] - before}, 0}, sizes, func(at []int) []int {
			if i := at[last] - before; i < 0 || i >= n[last] {
				return nil
			}
			return along(last, func(i int) int { return i - before })(at)
		}}
	},
	"aten::reflection_pad1d.out": func(r *rand.Rand, n []int) mapping {
		return padding(r, n, 0, func(i, n int) int {
			if i < 0 {
				return -i
			}
			return min(i, 2*(n-1)-i)
		})
	},
	"aten::replication_pad1d.out": func(r *rand.Rand, n []int) mapping {
		return padding(r, n, 3, func(i, n int) int { return min(max(i, 0), n-1) })
	},
	"aten::view_copy.out": func(r *rand.Rand, n []int) mapping {
		flat := 1
		for _, s := range n {
			flat *= s
		}
		return mapping{[]any{[]int{-1}}, []int{flat}, func(at []int) []int {
			in, i := make([]int, len(n)), at[0]
			for d := len(n) - 1; d >= 0; d-- {
				in[d] = i % n[d]
				i /= n[d]
			}
			return in
		}}
	},
}

// along applies f to one index.
func along(d int, f func(i int) int) func(at []int) []int {
	return func(at []int) []int {
		at = slices.Clone(at)
		at[d] = f(at[d])
		return at
	}
}

// padding pads the last dimension by what f says of indices outside; more is how far
// the padding may exceed the size.
func padding(r *rand.Rand, n []int, more int, f func(i, n int) int) mapping {
	last := len(n) - 1
	before, after := r.IntN(n[last]+more), r.IntN(n[last]+more)
	sizes := slices.Clone(n)
	sizes[last] += before + after
	return mapping{[]any{[]int{before, after}}, sizes, along(last, func(i int) int { return f(i-before, n[last]) })}
}

// inOrder is an int32 tensor counting up in logical order, in a random dim order.
func inOrder(r *rand.Rand, sizes []int, value func(at []int) int32) *tensor.Tensor {
	order := make([]uint8, len(sizes))
	for i, d := range r.Perm(len(sizes)) {
		order[i] = uint8(d)
	}
	t := tensor.Make(tensor.Int32, sizes, order, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	data := tensor.Data[int32](t)
	at := make([]int, len(sizes))
	for range t.Numel() {
		place := 0
		for d, i := range at {
			place += i * t.Strides[d]
		}
		data[place] = value(at)
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d] < sizes[d] {
				break
			}
			at[d] = 0
		}
	}
	return t
}

func TestMappings(t *testing.T) {
	for op, make := range mappings {
		t.Run(op, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 8))
			for i := range 40 {
				rank := 2 + r.IntN(2)
				n := []int{}
				for range rank {
					n = append(n, 1+r.IntN(7))
				}
				number := func(at []int) int32 {
					v := int32(1)
					for d, i := range at {
						v = v*int32(n[d]+1) + int32(i)
					}
					return v
				}
				m := make(r, n)
				want := inOrder(r, m.sizes, func(at []int) int32 {
					if in := m.from(at); in != nil {
						return number(in)
					}
					return 0
				})
				kerneltest.Run(t, set, kerneltest.Case{
					Name: fmt.Sprint(i, n, m.args), Op: op,
					Args: append([]any{inOrder(r, n, number)}, m.args...),
					Want: []any{want},
				})
			}
		})
	}
}
