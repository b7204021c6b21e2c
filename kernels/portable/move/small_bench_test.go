package move_test

import (
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkPermute measures permutations of attention's sizes, where the cost of a
// call counts as much as that of an element.
func BenchmarkPermute(b *testing.B) {
	op, _, _, err := set.Lookup("aten::permute_copy.out")
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range []struct{ sizes, dims []int }{
		{[]int{4, 4}, []int{1, 0}},
		{[]int{16, 16}, []int{1, 0}},
		{[]int{17, 1, 64}, []int{1, 0, 2}},
		{[]int{17, 4, 16}, []int{1, 0, 2}},
		{[]int{1, 4, 17, 16}, []int{0, 1, 3, 2}},
		{[]int{16, 16, 3, 2, 8}, []int{2, 0, 3, 1, 4}},
		{[]int{16, 2, 16, 8}, []int{0, 1, 3, 2}},
		{[]int{16, 2, 16, 8}, []int{0, 2, 1, 3}},
		{[]int{64, 64}, []int{1, 0}},
	} {
		b.Run(fmt.Sprintf("%v %v", p.sizes, p.dims), func(b *testing.B) {
			x := tensor.New(tensor.Float32, p.sizes...)
			var items []*tensor.Value
			out := make([]int, len(p.dims))
			for i, d := range p.dims {
				items = append(items, new(tensor.IntValue(int64(d))))
				out[i] = p.sizes[d]
			}
			y := tensor.TensorValue(tensor.New(tensor.Float32, out...))
			a := kernels.Args{new(tensor.TensorValue(x)), new(tensor.NewList(tensor.KindIntList, items)), &y, &y}
			c := kernels.NewCtx(nil)
			for b.Loop() {
				if err := op.Func(c, a); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(x.Numel()), "ns/elem")
		})
	}
}
