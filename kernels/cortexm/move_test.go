package cortexm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// advance counts an index up in logical order; ok is false after the last.
func advance(index, sizes []int) (ok bool) {
	for d := len(sizes) - 1; d >= 0; d-- {
		if index[d]++; index[d] < sizes[d] {
			return true
		}
		index[d] = 0
	}
	return false
}

// element is where a logical index lies in an array of the given sizes.
func element(index, sizes []int) (at int) {
	for d, i := range index {
		at = at*sizes[d] + i
	}
	return at
}

func TestTranspose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cases []kerneltest.Case
	for range 60 {
		sizes := []int{1 + r.IntN(5), 1 + r.IntN(6), 1 + r.IntN(7), 1 + r.IntN(40)}[r.IntN(4):]
		x, perm := noise(r, i8, anyOrder(r, sizes), sizes...), r.Perm(len(sizes))
		out, index := make([]int, len(sizes)), make([]int, len(sizes))
		for i, d := range perm {
			out[i] = sizes[d]
		}
		want, v := make([]float64, x.Numel()), dense(x)
		for ok := true; ok; ok = advance(index, sizes) {
			to := make([]int, len(sizes))
			for i, d := range perm {
				to[i] = index[d]
			}
			want[element(to, out)] = float64(v[element(index, sizes)])
		}
		cases = append(cases, gives(fmt.Sprint(sizes, perm), "transpose", kerneltest.FromDense(i8, out, anyOrder(r, out), want), x, perm))
	}
	x := tensor.New(i8, 2, 3)
	kerneltest.Run(t, set, append(cases,
		gives("from the end", "transpose", tensor.New(i8, 3, 2), x, []int{-1, 0}),
		refuses("a dimension twice", "transpose", "each dimension once", x, x, []int{1, 1}),
		refuses("too few", "transpose", "2 dimensions", x, x, []int{1}),
		refuses("no such dimension", "transpose", "a dimension in", x, x, []int{0, 2}),
		refuses("floats", "transpose", "got float32", x, tensor.New(f32, 2, 3), []int{1, 0}))...)
}

// TestPad has images whose paddings come in the order that the device stores them in,
// for which it takes one channel or one point for either, and contiguous tensors.
func TestPad(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var cases []kerneltest.Case
	for range 150 {
		sizes := []int{1 + r.IntN(2), 1 + r.IntN(4), 1 + r.IntN(4), 1 + r.IntN(5)}[r.IntN(4):]
		var order []uint8
		physical := false
		if len(sizes) == 4 {
			if r.IntN(2) == 0 {
				order = last
			}
			physical = order != nil || sizes[1] == 1 || sizes[2] == 1 && sizes[3] == 1
		}
		pre, post := []int{0, 0, 0, 0}, []int{0, 0, 0, 0}
		out, before := append([]int{}, sizes...), make([]int, len(sizes))
		for d := range sizes {
			at := 4 - len(sizes) + d
			if physical {
				at = []int{0, 3, 1, 2}[d]
			}
			pre[at], post[at] = r.IntN(3), r.IntN(3)
			before[d] = pre[at]
			out[d] += pre[at] + post[at]
		}
		x, value := noise(r, i8, order, sizes...), r.IntN(256)-128
		n, _ := tensor.Product(out)
		want, v, index := make([]float64, n), dense(x), make([]int, len(sizes))
		for i := range want {
			want[i] = float64(value)
		}
		for ok := true; ok; ok = advance(index, sizes) {
			to := make([]int, len(sizes))
			for d, i := range index {
				to[d] = i + before[d]
			}
			want[element(to, out)] = float64(v[element(index, sizes)])
		}
		cases = append(cases, gives(fmt.Sprint(sizes, order, pre, post), "pad",
			kerneltest.FromDense(i8, out, anyOrder(r, out), want), x, pre, post, value))
	}
	x, none := tensor.New(i8, 2, 3), []int{0, 0, 0, 0}
	kerneltest.Run(t, set, append(cases,
		gives("of nothing", "pad", of(i8, []int{1, 2}, 5, 5), tensor.New(i8, 0, 2), []int{0, 0, 1, 0}, none, 5),
		refuses("a scalar", "pad", "rank 1 to 4", tensor.New(i8), tensor.New(i8), none, none, 0),
		refuses("two entries", "pad", "4 entries", x, x, []int{0, 0}, none, 0),
		refuses("negative", "pad", "entries in [0", x, x, none, []int{0, 0, -1, 0}, 0),
		refuses("of a dimension that is not there", "pad", "missing dimensions", x, x, []int{0, 1, 0, 0}, none, 0),
		refuses("huge", "pad", "entries in [0", x, x, []int64{0, 0, 1 << 40, 0}, none, 0),
		refuses("value out of range", "pad", "argument 3", x, x, none, none, 128),
		refuses("more than the out", "pad", "out argument", x, x, []int{0, 0, 0, 1}, none, 0))...)
}
