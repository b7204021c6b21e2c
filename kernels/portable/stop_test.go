package portable

import (
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestStops stops one operator of each family of loops: one row, plane or window, so that nothing divides the work.
func TestStops(t *testing.T) {
	const n = 1 << 20
	r := rand.New(rand.NewPCG(7, 8))
	noise := func(d tensor.DType, sizes ...int) *tensor.Tensor { return kerneltest.Noise(r, d, sizes, nil) }
	row, out, places := noise(tensor.Float32, n), tensor.New(tensor.Float32, n), tensor.New(tensor.Int64, n)
	index, none := tensor.New(tensor.Int64, n), []int{}
	for i, d := 0, tensor.Data[int64](index); i < n; i++ {
		d[i] = r.Int64N(n)
	}
	one, place := tensor.New(tensor.Float32, none...), tensor.New(tensor.Int64, none...)
	big := noise(tensor.Float32, 1, 1, 1024, 1024)
	outs := func(t ...any) []any { return t }
	kerneltest.Stops(t, set,
		kerneltest.Case{Name: "sort", Op: "aten::sort.values", Args: []any{row, 0, false}, Outs: outs(out, places)},
		kerneltest.Case{Name: "sort int64", Op: "aten::sort.values", Args: []any{index, 0, false}, Outs: outs(tensor.New(tensor.Int64, n), places)},
		kerneltest.Case{Name: "topk", Op: "aten::topk.values", Args: []any{row, n, 0, true, true}, Outs: outs(out, places)},
		kerneltest.Case{Name: "topk by a heap", Op: "aten::topk.values", Args: []any{index, n / 64, 0, true, true},
			Outs: outs(tensor.New(tensor.Int64, n/64), tensor.New(tensor.Int64, n/64))},
		kerneltest.Case{Name: "mode", Op: "aten::mode.values", Args: []any{row, 0, false}, Outs: outs(one, place)},
		kerneltest.Case{Name: "kthvalue", Op: "aten::kthvalue.values", Args: []any{row, n / 2, 0, false}, Outs: outs(one, place)},
		kerneltest.Case{Name: "logcumsumexp", Op: "aten::logcumsumexp.out", Args: []any{row, 0}, Outs: outs(out)},
		kerneltest.Case{Name: "scatter_reduce", Op: "aten::scatter_reduce.two_out", Args: []any{row, 0, index, row, "prod", true}, Outs: outs(out)},
		kerneltest.Case{Name: "index_put", Op: "aten::index_put.out", Args: []any{row, []*tensor.Tensor{index}, row, true}, Outs: outs(out)},
		kerneltest.Case{Name: "randperm", Op: "aten::randperm.out", Args: []any{n}, Outs: outs(places)},
		kerneltest.Case{Name: "fft", Op: "aten::_fft_r2c.out", Args: []any{noise(tensor.Float32, 1<<19), []int{0}, 0, true},
			Outs: outs(tensor.New(tensor.Complex64, 1<<18+1))},
		kerneltest.Case{Name: "cdist", Op: "aten::_cdist_forward.out", Args: []any{noise(tensor.Float32, 2, 2048), noise(tensor.Float32, 512, 2048), 3.0, nil},
			Outs: outs(tensor.New(tensor.Float32, 2, 512))},
		kerneltest.Case{Name: "bicubic grid", Op: "aten::grid_sampler_2d.out", Args: []any{noise(tensor.Float32, 1, 512, 8, 8),
			noise(tensor.Float32, 1, 1, 1<<13, 2), 2, 0, true}, Outs: outs(tensor.New(tensor.Float32, 1, 512, 1, 1<<13))},
		kerneltest.Case{Name: "pdist", Op: "aten::_pdist_forward.out", Args: []any{noise(tensor.Float32, 64, 1024), 3.0},
			Outs: outs(tensor.New(tensor.Float32, 64*63/2))},
		kerneltest.Case{Name: "large windows", Op: "aten::max_pool2d_with_indices.out", Args: []any{big, []int{1018, 1018}, []int{1, 1}, []int{0, 0}, []int{1, 1}, false},
			Outs: outs(tensor.New(tensor.Float32, 1, 1, 7, 7), tensor.New(tensor.Int64, 1, 1, 7, 7))},
		kerneltest.Case{Name: "depthwise", Op: "aten::convolution.out", Args: []any{big, noise(tensor.Float32, 1, 1, 60, 60), nil, []int{1, 1}, []int{0, 0}, []int{1, 1}, false, []int{0, 0}, 1},
			Outs: outs(tensor.New(tensor.Float32, 1, 1, 965, 965))},
	)
}
