package kernels

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// WrapDim returns a dimension argument in [0, rank), after adding rank to a negative one. As in
// ATen, rank 0 counts as 1. i is the argument's index, for the error.
func WrapDim(i int, dim int64, rank int) (int, error) {
	n := int64(max(rank, 1))
	if dim < -n || dim >= n {
		return 0, Badf(i, fmt.Sprintf("a dimension in [%d, %d]", -n, n-1), "%d", dim)
	}
	if dim < 0 {
		dim += n
	}
	return int(dim), nil
}

// DimSet returns distinct dimensions, the elements of argument i, as a set of bits.
func DimSet(i int, dims []int64, rank int) (set uint32, err error) {
	for _, v := range dims {
		d, err := WrapDim(i, v, rank)
		if err != nil {
			return 0, err
		}
		if set>>d&1 != 0 {
			return 0, Badf(i, "each dimension once", "%v", dims)
		}
		set |= 1 << d
	}
	return set, nil
}

// ResizeOut resizes out argument i to the sizes that the operator computed.
func ResizeOut(a Args, i int, sizes []int) error {
	if err := a[i].Tensor.Resize(sizes); err != nil {
		return &OutError{Arg: i, Err: err}
	}
	return nil
}

// OutError reports an out argument that cannot be resized to the result's shape. It matches
// ErrArgument and wraps the *tensor.ResizeError.
type OutError struct {
	Arg int
	Err error
}

func (e *OutError) Error() string { return fmt.Sprintf("out argument %d: %v", e.Arg, e.Err) }

// Unwrap returns ErrArgument and the cause.
func (e *OutError) Unwrap() []error { return []error{ErrArgument, e.Err} }

// WantDType returns an error for argument i unless it has one of the types.
func WantDType(i int, t *tensor.Tensor, types ...tensor.DType) error {
	if slices.Contains(types, t.DType) {
		return nil
	}
	names := make([]string, len(types)) // not types itself, which would then escape in every call
	for j, d := range types {
		names[j] = d.String()
	}
	return Bad(i, t.DType.String(), strings.Join(names, " or "))
}

// Sizes converts an int[] argument to sizes in dst, which must have capacity MaxRank. It returns an
// error for negative or too many sizes. i is the argument's index.
func Sizes(dst []int, i int, list []int64) ([]int, error) {
	if len(list) > tensor.MaxRank {
		return nil, Badf(i, fmt.Sprintf("at most %d sizes", tensor.MaxRank), "%d", len(list))
	}
	dst = dst[:0]
	for _, v := range list {
		if v < 0 || v > math.MaxInt>>7 {
			return nil, Badf(i, "non-negative sizes", "%v", list)
		}
		dst = append(dst, int(v))
	}
	if _, ok := tensor.Product(dst); !ok {
		return nil, Badf(i, "sizes whose product does not overflow", "%v", list)
	}
	return dst, nil
}

// InferSizes is Sizes for a tensor of n elements, where one size may be -1 and is inferred.
func InferSizes(dst []int, i int, list []int64, n int) ([]int, error) {
	if len(list) > tensor.MaxRank {
		return nil, Badf(i, fmt.Sprintf("at most %d sizes", tensor.MaxRank), "%d", len(list))
	}
	dst = dst[:len(list)]
	infer := -1
	for d, v := range list {
		if v == -1 && infer < 0 {
			infer, v = d, 1
		}
		if v < 0 || v > math.MaxInt {
			return nil, Badf(i, "non-negative sizes, at most one -1", "%v", list)
		}
		dst[d] = int(v)
	}
	known, ok := tensor.Product(dst)
	switch {
	case ok && infer < 0 && known == n:
		return dst, nil
	case ok && infer >= 0 && known > 0 && n%known == 0:
		dst[infer] = n / known
		return dst, nil
	}
	return nil, Badf(i, fmt.Sprintf("sizes of %d elements", n), "%v", list)
}
