package move_test

import (
	"math/bits"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func ints(sizes []int, v ...int32) *tensor.Tensor { return tensor.Of(v, sizes...) }

func list(t ...*tensor.Tensor) []*tensor.Tensor { return t }

func TestCases(t *testing.T) {
	square := ints([]int{2, 2}, 1, 2, 3, 4)
	row := ints([]int{3}, 1, 2, 3)
	none := ints([]int{0})
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "a size is inferred for an empty tensor", Op: "aten::view_copy.out",
			Args: []any{ints([]int{0, 3}), []int{3, -1}}, Want: []any{ints([]int{3, 0})}},
		kerneltest.Case{Name: "a size that could be anything is not inferred", Op: "aten::view_copy.out",
			Args: []any{ints([]int{0, 3}), []int{0, -1}}, Outs: []any{ints([]int{0, 0})}, Refused: "sizes of 0 elements"},
		kerneltest.Case{Name: "two sizes cannot be inferred", Op: "aten::view_copy.out",
			Args: []any{square, []int{-1, -1}}, Outs: []any{square}, Refused: "one -1"},
		kerneltest.Case{Name: "a dimension larger than 1 is not squeezed", Op: "aten::squeeze_copy.dims_out",
			Args: []any{ints([]int{1, 2, 1}, 5, 6), []int{0, 1}}, Want: []any{ints([]int{2, 1}, 5, 6)}},
		kerneltest.Case{Name: "a dimension is squeezed once", Op: "aten::squeeze_copy.dims_out",
			Args: []any{ints([]int{1, 2}, 5, 6), []int{0, -2}}, Outs: []any{ints([]int{2}, 5, 6)}, Refused: "each dimension once"},
		kerneltest.Case{Name: "all dimensions of size 1 are squeezed", Op: "aten::squeeze_copy.out",
			Args: []any{ints([]int{1, 2, 1}, 5, 6)}, Want: []any{ints([]int{2}, 5, 6)}},
		kerneltest.Case{Name: "the stride of a reshape is ignored", Op: "aten::_reshape_alias_copy.out",
			Args: []any{square, []int{4}, []int{1}}, Want: []any{ints([]int{4}, 1, 2, 3, 4)}},
		kerneltest.Case{Name: "bits of floats", Op: "aten::view_copy.dtype_out",
			Args: []any{tensor.Of([]float32{1, -2}, 2), tensor.Int32}, Want: []any{ints([]int{2}, 0x3f800000, -0x40000000)}},
		kerneltest.Case{Name: "bytes of integers", Op: "aten::view_copy.dtype_out",
			Args: []any{ints([]int{1, 2}, 0x01020304, -1), tensor.Uint8}, Want: []any{tensor.Of([]uint8{4, 3, 2, 1, 255, 255, 255, 255}, 1, 8)}},
		kerneltest.Case{Name: "integers of bytes", Op: "aten::view_copy.dtype_out",
			Args: []any{tensor.Of([]uint8{1, 0, 0, 0, 0, 1, 0, 0}, 2, 4), tensor.Int32}, Want: []any{ints([]int{2, 1}, 1, 256)}},
		kerneltest.Case{Name: "bytes that no integer fills", Op: "aten::view_copy.dtype_out",
			Args: []any{tensor.New(tensor.Uint8, 6), tensor.Int32}, Outs: []any{ints([]int{1}, 0)}, Refused: "int32 elements divide"},
		kerneltest.Case{Name: "bytes of a number", Op: "aten::view_copy.dtype_out",
			Args: []any{ints(nil, 1), tensor.Uint8}, Outs: []any{tensor.New(tensor.Uint8, 4)}, Refused: "a last dimension"},
		kerneltest.Case{Name: "another type than the out's", Op: "aten::view_copy.dtype_out",
			Args: []any{row, tensor.Float32}, Outs: []any{row}, Refused: "the out's type, int32"},
		kerneltest.Case{Name: "the upper triangle", Op: "aten::triu.out",
			Args: []any{ints([]int{3, 2}, 1, 2, 3, 4, 5, 6), 0}, Want: []any{ints([]int{3, 2}, 1, 2, 0, 4, 0, 0)}},
		kerneltest.Case{Name: "above the diagonal", Op: "aten::triu.out", Args: []any{square, 1}, Want: []any{ints([]int{2, 2}, 0, 2, 0, 0)}},
		kerneltest.Case{Name: "the diagonal below", Op: "aten::triu.out", Args: []any{square, -1}, Want: []any{square}},
		kerneltest.Case{Name: "the triangle of a row", Op: "aten::triu.out", Args: []any{row, 0}, Outs: []any{row},
			Refused: "at least 2 dimensions"},
		kerneltest.Case{Name: "a permutation names each dimension once", Op: "aten::permute_copy.out",
			Args: []any{square, []int{0, 0}}, Outs: []any{square}, Refused: "each dimension once"},
		kerneltest.Case{Name: "an out of another type is refused", Op: "aten::t_copy.out",
			Args: []any{square}, Outs: []any{tensor.New(tensor.Float32, 2, 2)}, Refused: "want int32"},
		kerneltest.Case{Name: "a slice past the end is empty", Op: "aten::slice_copy.Tensor_out",
			Args: []any{row, 0, 7, int64(9223372036854775807), 1}, Want: []any{none}},
		kerneltest.Case{Name: "a slice counts from the end", Op: "aten::slice_copy.Tensor_out",
			Args: []any{row, 0, -2, nil, int64(9223372036854775807)}, Want: []any{ints([]int{1}, 2)}},
		kerneltest.Case{Name: "a slice goes forward", Op: "aten::slice_copy.Tensor_out",
			Args: []any{row, 0, nil, nil, -1}, Outs: []any{row}, Refused: "a step of at least 1"},
		kerneltest.Case{Name: "a tensor of rank 0 has no slices", Op: "aten::slice_copy.Tensor_out",
			Args: []any{ints(nil, 4), 0, nil, nil, 1}, Outs: []any{ints(nil, 4)}, Refused: "a tensor with dimensions"},
		kerneltest.Case{Name: "an index past the end is refused", Op: "aten::select_copy.int_out",
			Args: []any{row, 0, 3}, Outs: []any{ints(nil, 0)}, Refused: "an index into 3"},
		kerneltest.Case{Name: "blank tensors are left out", Op: "aten::cat.out",
			Args: []any{list(none, square, none), 1}, Want: []any{square}},
		kerneltest.Case{Name: "only blank tensors", Op: "aten::cat.out", Args: []any{list(none, none), 0}, Want: []any{none}},
		kerneltest.Case{Name: "pieces of other ranks do not fit", Op: "aten::cat.out",
			Args: []any{list(row, ints(nil, 1)), 0}, Outs: []any{row}, Refused: "sizes like"},
		kerneltest.Case{Name: "integers become floats", Op: "aten::cat.out",
			Args: []any{list(row, tensor.Of([]float32{0.5}, 1)), 0}, Want: []any{tensor.Of([]float32{1, 2, 3, 0.5}, 4)}},
		kerneltest.Case{Name: "floats do not become integers", Op: "aten::cat.out",
			Args: []any{list(row, tensor.Of([]float32{0.5}, 1)), 0}, Outs: []any{ints([]int{4}, 0, 0, 0, 0)}, Refused: "got float32"},
		kerneltest.Case{Name: "the last part is shorter", Op: "aten::split_copy.Tensor_out",
			Args: []any{row, 2, 0}, Want: []any{list(ints([]int{2}, 1, 2), ints([]int{1}, 3))}},
		kerneltest.Case{Name: "the number of parts must fit", Op: "aten::split_copy.Tensor_out",
			Args: []any{row, 2, 0}, Outs: []any{list(row)}, Refused: "2 tensors"},
		kerneltest.Case{Name: "parts must add up", Op: "aten::split_with_sizes_copy.out",
			Args: []any{row, []int{1, 1}, 0}, Outs: []any{list(ints([]int{1}, 0), ints([]int{1}, 0))}, Refused: "sum to 3"},
		kerneltest.Case{Name: "negative padding crops", Op: "aten::constant_pad_nd.out",
			Args: []any{row, []int{-1, 2}, 7}, Want: []any{ints([]int{4}, 2, 3, 7, 7)}},
		kerneltest.Case{Name: "padding may crop all but the border", Op: "aten::constant_pad_nd.out",
			Args: []any{row, []int{-3, 2}, 7}, Want: []any{ints([]int{2}, 7, 7)}},
		kerneltest.Case{Name: "a value that does not fit is refused", Op: "aten::constant_pad_nd.out",
			Args: []any{tensor.Of([]int8{1}, 1), []int{1, 1}, 128}, Outs: []any{tensor.New(tensor.Int8, 3)}, Refused: "fits int8"},
		kerneltest.Case{Name: "a reflection is shorter than what it mirrors", Op: "aten::reflection_pad1d.out",
			Args: []any{square, []int{2, 0}}, Outs: []any{ints([]int{2, 4}, make([]int32, 8)...)}, Refused: "below the size"},
		kerneltest.Case{Name: "strides stay within the tensor", Op: "aten::as_strided_copy.out",
			Args: []any{square, []int{2, 2}, []int{2, 2}, 0}, Outs: []any{square}, Refused: "within 4 elements"},
		kerneltest.Case{Name: "strides may overlap", Op: "aten::as_strided_copy.out",
			Args: []any{square, []int{2, 2}, []int{1, 1}, 1}, Want: []any{ints([]int{2, 2}, 2, 3, 3, 4)}},
		kerneltest.Case{Name: "a diagonal beside the matrix is empty", Op: "aten::diagonal_copy.out",
			Args: []any{square, 2, 0, 1}, Want: []any{none}},
		kerneltest.Case{Name: "without dims the whole tensor rolls", Op: "aten::roll.out",
			Args: []any{square, []int{1}, []int{}}, Want: []any{ints([]int{2, 2}, 4, 1, 2, 3)}},
		kerneltest.Case{Name: "shifts of one dimension add up", Op: "aten::roll.out",
			Args: []any{row, []int{2, 2}, []int{0, 0}}, Want: []any{ints([]int{3}, 3, 1, 2)}},
		kerneltest.Case{Name: "a tensor of rank 0 has one window", Op: "aten::unfold_copy.out",
			Args: []any{ints(nil, 4), 0, 1, 1}, Want: []any{ints([]int{1}, 4)}},
		kerneltest.Case{Name: "channels become space", Op: "aten::pixel_shuffle.out",
			Args: []any{ints([]int{4, 1, 2}, 0, 1, 10, 11, 20, 21, 30, 31), 2}, Want: []any{ints([]int{1, 2, 4}, 0, 10, 1, 11, 20, 30, 21, 31)}},
		kerneltest.Case{Name: "space becomes channels", Op: "aten::pixel_unshuffle.out",
			Args: []any{ints([]int{1, 2, 4}, 0, 10, 1, 11, 20, 30, 21, 31), 2}, Want: []any{ints([]int{4, 1, 2}, 0, 1, 10, 11, 20, 21, 30, 31)}},
		kerneltest.Case{Name: "a part is cast on replacing another", Op: "aten::select_scatter.out",
			Args: []any{square, tensor.Of([]int8{8, 9}, 2), 1, -1}, Want: []any{ints([]int{2, 2}, 1, 8, 3, 9)}},
		kerneltest.Case{Name: "each index as often as it says", Op: "aten::repeat_interleave.Tensor_out",
			Args: []any{ints([]int{3}, 2, 0, 1), 3}, Want: []any{ints([]int{3}, 0, 0, 2)}},
		kerneltest.Case{Name: "a negative number of repeats", Op: "aten::repeat_interleave.Tensor_out",
			Args: []any{ints([]int{1}, -1), nil}, Outs: []any{none}, Refused: "repeats of at least 0"},
	)
}

// TestHostile calls operators with sizes that a small file can name but no machine
// can walk through.
func TestHostile(t *testing.T) {
	const huge = 1 << (bits.UintSize * 5 / 8)
	none := ints([]int{2, huge, 0})
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "rows of nothing", Op: "aten::tril.out", Args: []any{none, 0}, Want: []any{none}},
		kerneltest.Case{Name: "roll nothing", Op: "aten::roll.out", Args: []any{none, []int{3}, []int{1}}, Want: []any{none}},
		kerneltest.Case{Name: "repeat nothing", Op: "aten::repeat.out", Args: []any{none, []int{1, 8, 9}}, Want: []any{ints([]int{2, 8 * huge, 0})}},
		kerneltest.Case{Name: "repeat beyond any memory", Op: "aten::repeat.out",
			Args: []any{ints([]int{1}, 1), []int{huge}}, Outs: []any{ints([]int{1}, 1)}, Refused: "cannot resize to"},
		kerneltest.Case{Name: "expand nothing", Op: "aten::expand_copy.out", Args: []any{ints([]int{1, 0}), []int{huge, 0}, false}, Want: []any{ints([]int{huge, 0})}},
		kerneltest.Case{Name: "pad nothing with nothing", Op: "aten::constant_pad_nd.out",
			Args: []any{none, []int{0, 0, huge, huge}, 1}, Want: []any{ints([]int{2, 3 * huge, 0})}},
		kerneltest.Case{Name: "a factor without a square", Op: "aten::pixel_unshuffle.out",
			Args: []any{ints([]int{1, 0, 0}), int64(1 << 31)}, Outs: []any{none}, Refused: "a factor"},
		kerneltest.Case{Name: "strides that overflow", Op: "aten::as_strided_copy.out",
			Args: []any{ints([]int{1}, 1), []int{3, 3}, []int64{1 << 60, 1 << 60}, 0}, Outs: []any{ints([]int{3, 3}, make([]int32, 9)...)}, Refused: "within 1 elements"},
	)
}
