// Package pool (no compatibility promise) holds the ATen pooling operators over two
// spatial dimensions.
package pool

import (
	"fmt"
	"math/bits"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Ops are the operators of the package.
func Ops() []kernels.Op {
	const float = "float16, bfloat16, float32, float64"
	return []kernels.Op{
		{Schema: "aten::max_pool2d_with_indices.out(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, " +
			"int[2] dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices)",
			Func: maxPool, DTypes: "integers, " + float, Family: kernels.Exact, Note: "NaN wins, as in PyTorch"},
		{Schema: "aten::max_pool2d_with_indices_backward.grad_input(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, " +
			"int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices, *, Tensor(a!) grad_input)",
			Func: maxPoolBackward, DTypes: float, Family: kernels.Sum},
		{Schema: "aten::avg_pool2d.out(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, " +
			"bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out)",
			Func: avgPool, DTypes: "int64, " + float, Family: kernels.Sum},
		{Schema: "aten::_adaptive_avg_pool2d.out(Tensor self, SymInt[2] output_size, *, Tensor(a!) out)",
			Func: adaptiveAvgPool, DTypes: "int64, " + float, Family: kernels.Sum},
	}
}

// window is the geometry of a pooling: planes of in points become planes of out
// points; index 0 is height, 1 width.
type window struct {
	planes, rank                int
	in, out                     [2]int
	kernel, stride, pad, dilate [2]int
}

// limit bounds every size, parameter and extent: 2^31, or where int has 32 bits 2^28. No
// product of two leaves int64, and no sum of four leaves int.
const (
	limit     = 1 << limitBits
	limitBits = min(31, bits.UintSize-4)
)

// input checks argument i, [channels, height, width] with or without a batch.
func (w *window) input(i int, t *tensor.Tensor) error {
	w.rank = t.Rank()
	if w.rank != 3 && w.rank != 4 {
		return kernels.Bad(i, t.String(), "rank 3 or 4")
	}
	for d, n := range t.Sizes {
		if n > limit || n == 0 && (d > 0 || w.rank == 3) {
			return kernels.Bad(i, t.String(), fmt.Sprintf("sizes of at least 1 and at most 2^%d behind the batch", limitBits))
		}
	}
	w.in = [2]int(t.Sizes[w.rank-2:])
	w.planes = 1
	for _, n := range t.Sizes[:w.rank-2] {
		w.planes *= n
	}
	return nil
}

// sizes are the output's, out last.
func (w *window) sizes(dst *[4]int, in *tensor.Tensor) []int {
	copy(dst[:], in.Sizes)
	copy(dst[w.rank-2:], w.out[:])
	return dst[:w.rank]
}

// slide reads kernel size, stride and padding, arguments from first on, then
// dilation unless dilation is negative, and computes the output's size.
func (w *window) slide(a kernels.Args, first, dilation int, ceil bool) error {
	if err := pair(&w.kernel, a, first, 1, nil); err != nil {
		return err
	}
	if err := pair(&w.stride, a, first+1, 1, &w.kernel); err != nil {
		return err
	}
	if err := pair(&w.pad, a, first+2, 0, nil); err != nil {
		return err
	}
	w.dilate = [2]int{1, 1}
	if dilation >= 0 {
		if err := pair(&w.dilate, a, dilation, 1, nil); err != nil {
			return err
		}
	}
	for i := range 2 {
		extent := int(min(int64(w.dilate[i])*int64(w.kernel[i]-1)+1, 4*limit-1)) // at most 3·limit fits
		if w.pad[i] > extent/2 {
			return kernels.Badf(first+2, fmt.Sprintf("at most half of the kernel's extent %d", extent), "%d", w.pad[i])
		}
		w.out[i] = outSize(w.in[i], extent, w.stride[i], w.pad[i], ceil)
		if w.out[i] < 1 {
			return kernels.Badf(first, "a kernel that fits the input", "extent %d for size %d and padding %d", extent, w.in[i], w.pad[i])
		}
	}
	return nil
}

// outSize is the number of windows; in ceil mode the last may end outside, but not
// start there.
func outSize(in, extent, stride, pad int, ceil bool) int {
	room := in + 2*pad - extent
	if ceil {
		room += stride - 1
	}
	if room < 0 {
		return 0
	}
	n := room/stride + 1
	if ceil && (n-1)*stride >= in+pad {
		n--
	}
	return n
}

// pair reads an int[2] of one entry for both dimensions or two; unset stands for an
// empty list, where that is allowed.
func pair(dst *[2]int, a kernels.Args, arg int, least int64, unset *[2]int) error {
	list := a.Ints(arg)
	if len(list) == 0 && unset != nil {
		*dst = *unset
		return nil
	}
	if len(list) != 1 && len(list) != 2 {
		return kernels.Badf(arg, "1 or 2 entries", "%v", list)
	}
	for i := range dst {
		v := list[min(i, len(list)-1)]
		if v < least || v > limit {
			return kernels.Badf(arg, fmt.Sprintf("entries in [%d, 2^%d]", least, limitBits), "%v", list)
		}
		dst[i] = int(v)
	}
	return nil
}

// span is where a window over a dimension lies: from its first tap, the range of
// taps inside the input.
func (w *window) span(dim, at int) (start, lo, hi int) {
	start = at*w.stride[dim] - w.pad[dim]
	d := w.dilate[dim]
	if start < 0 {
		lo = (-start + d - 1) / d
	}
	hi = min(w.kernel[dim], (w.in[dim]-start+d-1)/d)
	return start, lo, max(hi, lo)
}
