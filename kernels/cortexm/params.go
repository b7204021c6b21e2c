package cortexm

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// reader reads and checks the arguments of a call. It keeps the first error; what it reads after
// that must not be used.
type reader struct {
	kernels.Args
	err error
}

// bad reports argument i, as [kernels.Badf].
func (r *reader) bad(i int, got, want string, args ...any) {
	r.keep(kernels.Badf(i, want, got, args...))
}

// keep keeps the first error.
func (r *reader) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

// within reads an int argument that must lie within [lo, hi].
func (r *reader) within(i int, lo, hi int64) int32 {
	v := r.Int(i)
	if v < lo || v > hi {
		r.bad(i, "%d", fmt.Sprintf("a number in [%d, %d]", lo, hi), v)
	}
	return int32(v)
}

// int32 reads a number that fits int32: a multiplier, or a zero point. A zero point need not fit
// int8: the exporter shifts that of a hard swish's input.
func (r *reader) int32(i int) int32 { return r.within(i, math.MinInt32, math.MaxInt32) }

// code reads a number that fits int8.
func (r *reader) code(i int) int32 { return r.within(i, math.MinInt8, math.MaxInt8) }

// Bounds of the offsets, the negative zero points, that are added to the factors of a product: all
// of them are exact in float32, as are sums of a few.
const maxInputOffset, maxWeightOffset = 1 << 15, 1 << 7

// inputOffset and weightOffset read the offset of an operand of a product.
func (r *reader) inputOffset(i int) int32  { return r.within(i, -maxInputOffset, maxInputOffset) }
func (r *reader) weightOffset(i int) int32 { return r.within(i, -maxWeightOffset, maxWeightOffset) }

// bounds reads the minimum and maximum of an output.
func (r *reader) bounds(least, most int) (lo, hi int32) {
	if lo, hi = r.code(least), r.code(most); lo > hi {
		r.bad(least, "%d", fmt.Sprintf("at most %d, the largest", hi), lo)
	}
	return lo, hi
}

// scale reads a multiplier and the following shift.
func (r *reader) scale(i int) scale { return scale{r.int32(i), r.within(i+1, -maxShift, maxShift)} }

// int8 checks that the tensors among the arguments are of int8; it skips None.
func (r *reader) int8(args ...int) {
	for _, i := range args {
		if t := r.OptTensor(i); t != nil {
			r.keep(kernels.WantDType(i, t, tensor.Int8))
		}
	}
}

// bytes checks a scratch tensor, which only the device uses.
func (r *reader) bytes(i int) { r.keep(kernels.WantDType(i, r.Tensor(i), tensor.Uint8, tensor.Int8)) }

// perChannel reads a tensor of one int32 for each of n channels.
func (r *reader) perChannel(i, n int) *tensor.Tensor {
	t := r.Tensor(i)
	if t.DType != tensor.Int32 || t.Numel() != n || !t.IsContiguous() {
		r.bad(i, "%v", fmt.Sprintf("int32, one for each of %d channels", n), t)
	}
	return t
}

// resize resizes the out, argument i, unless there is an error already.
func (r *reader) resize(i int, sizes []int) {
	if r.err != nil {
		return
	}
	if _, ok := tensor.Product(sizes); !ok {
		r.bad(i, "%v", "sizes whose product fits", append([]int(nil), sizes...))
		return
	}
	r.keep(kernels.ResizeOut(r.Args, i, sizes))
}
