package pool

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestLines(t *testing.T) {
	x := tensor.Of([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 1, 2, 5)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "means of two", Op: "aten::avg_pool1d.out", Args: []any{x, []int{2}, []int{}, []int{0}, false, true},
			Want: []any{tensor.Of([]float32{1.5, 3.5, 6.5, 8.5}, 1, 2, 2)}},
		kerneltest.Case{Name: "with padding that counts, up to the end", Op: "aten::avg_pool1d.out",
			Args: []any{x, []int{3}, []int{2}, []int{1}, true, true},
			Want: []any{tensor.Of([]float32{1, 3, 3, 13. / 3, 8, 19. / 3}, 1, 2, 3)}},
		kerneltest.Case{Name: "with padding that does not", Op: "aten::avg_pool1d.out", Args: []any{x, []int{3}, []int{2}, []int{1}, false,
			false},
			Want: []any{tensor.Of([]float32{1.5, 3, 4.5, 6.5, 8, 9.5}, 1, 2, 3)}},
		kerneltest.Case{Name: "without a batch", Op: "aten::adaptive_avg_pool1d.out", Args: []any{tensor.Of([]float64{1, 2, 3, 4, 5}, 1, 5),
			[]int{2}},
			Want: []any{tensor.Of([]float64{2, 4}, 1, 2)}},
		kerneltest.Case{Name: "a plane", Op: "aten::avg_pool1d.out", Args: []any{tensor.New(tensor.Float32, 1, 1, 2, 2), []int{1}, []int{1},
			[]int{0}, false, true},
			Outs: []any{tensor.New(tensor.Float32, 1, 1, 2, 2)}, Refused: "rank 2 or 3"},
		kerneltest.Case{Name: "two sizes", Op: "aten::adaptive_avg_pool1d.out", Args: []any{x, []int{2, 2}},
			Outs: []any{tensor.New(tensor.Float32, 1, 2, 2)}, Refused: "1 entries"},
	)
}

func TestAdaptiveMax(t *testing.T) {
	nan := float32(math.NaN())
	x := tensor.Of([]float32{1, 5, 2, 5, 0, 3, 4, nan, -1, -2, -3, -4, 9, 9, nan}, 1, 1, 3, 5)
	longs := func(v ...int64) *tensor.Tensor { return tensor.Of(v, 1, 1, 2, 2) }
	run := func(name, op string, x *tensor.Tensor, size []int, want ...any) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: op, Args: []any{x, size}, Want: want}
	}
	const two, three = "aten::adaptive_max_pool2d.out", "aten::adaptive_max_pool3d.out"
	bad := run("one size", two, x, []int{2}, tensor.New(tensor.Float32, 1, 1, 2, 2), longs(0, 0, 0, 0))
	bad.Refused = "2 entries"
	narrow := run("int32 indices", two, x, []int{2, 2}, tensor.New(tensor.Float32, 1, 1, 2, 2), tensor.New(tensor.Int32, 1, 1, 2, 2))
	narrow.Refused = "want int64"
	kerneltest.Run(t, set,
		run("overlapping parts, the last NaN", two, x, []int{2, 2}, tensor.Of([]float32{nan, nan, nan, nan}, 1, 1, 2, 2), longs(7, 7, 7, 14)),
		run("every point", two, tensor.Of([]int64{3, 1, 2, 4}, 1, 2, 2), []int{2, 2}, tensor.Of([]int64{3, 1, 2, 4}, 1, 2, 2),
			tensor.Of([]int64{0, 1, 2, 3}, 1, 2, 2)),
		run("the first of equal ones", two, tensor.Of([]float64{2, 7, 7, 1}, 1, 1, 4), []int{1, 1}, tensor.Of([]float64{7}, 1, 1, 1),
			tensor.Of([]int64{1}, 1, 1, 1)),
		run("a volume", three, tensor.Of([]float32{1, 2, 3, 4, 8, 7, 6, 5}, 1, 2, 2, 2), []int{2, 1, 1}, tensor.Of([]float32{4, 8}, 1, 2, 1, 1),
			tensor.Of([]int64{3, 4}, 1, 2, 1, 1)),
		bad, narrow,
	)
}

func TestColumns(t *testing.T) {
	ones := func(n int) (v []float32) {
		for range n {
			v = append(v, 1)
		}
		return v
	}
	count := tensor.Of([]float32{1, 2, 1, 2, 4, 2, 1, 2, 1}, 1, 3, 3) // of the windows of two by two on each point
	col := func(name string, self *tensor.Tensor, size, kernel, dilation, pad, stride []int, want *tensor.Tensor) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: "aten::col2im.out", Args: []any{self, size, kernel, dilation, pad, stride}, Want: []any{want}}
	}
	two, one, none := []int{2, 2}, []int{1, 1}, []int{0, 0}
	bad := col("other columns", tensor.New(tensor.Float32, 4, 5), []int{3, 3}, two, one, none, one, count)
	bad.Refused = "sizes [channels · 4, 4]"
	large := col("a kernel beyond the image", tensor.New(tensor.Float32, 16, 1), []int{3, 3}, []int{4, 4}, one, none, one, count)
	large.Refused = "a kernel that fits the image"
	kerneltest.Run(t, set,
		col("overlapping windows", tensor.Of(ones(16), 4, 4), []int{3, 3}, two, one, none, one, count),
		col("a window of its own for each point", tensor.Of([]float32{1, 2, 3, 4}, 1, 1, 4), two, one, one, none, one,
			tensor.Of([]float32{1, 2, 3, 4}, 1, 1, 2, 2)),
		col("padding is cut off", tensor.Of([]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, 4, 4), two, two, one, one, two,
			tensor.Of([]int64{13, 10, 7, 4}, 1, 2, 2)),
		col("dilation", tensor.Of([]float32{1, 2, 3, 4}, 4, 1), []int{3, 3}, two, two, none, one,
			tensor.Of([]float32{1, 0, 2, 0, 0, 0, 3, 0, 4}, 1, 3, 3)),
		bad, large,
	)
}
