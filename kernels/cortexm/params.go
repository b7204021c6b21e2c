package cortexm

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// within reads an int argument that must lie within [lo, hi].
func within(a kernels.Args, i int, lo, hi int64) (int32, error) {
	v := a.Int(i)
	if v < lo || v > hi {
		return 0, kernels.Badf(i, fmt.Sprintf("a number in [%d, %d]", lo, hi), "%d", v)
	}
	return int32(v), nil
}

// zeroPoint reads a zero point. It need not fit int8: the exporter shifts that of a hard swish's
// input.
func zeroPoint(a kernels.Args, i int) (int32, error) {
	return within(a, i, math.MinInt32, math.MaxInt32)
}

// code reads a number that fits int8.
func code(a kernels.Args, i int) (int32, error) {
	return within(a, i, math.MinInt8, math.MaxInt8)
}

// Bounds of the offsets, the negative zero points, that are added to the factors of a product: all
// of them are exact in float32, as are sums of a few.
const maxInputOffset, maxWeightOffset = 1 << 15, 1 << 7

// bounds reads the minimum and maximum of an output.
func bounds(a kernels.Args, least, most int) (lo, hi int32, err error) {
	if lo, err = code(a, least); err != nil {
		return 0, 0, err
	}
	if hi, err = code(a, most); err != nil {
		return 0, 0, err
	}
	if lo > hi {
		return 0, 0, kernels.Badf(least, fmt.Sprintf("at most %d, the largest", hi), "%d", lo)
	}
	return lo, hi, nil
}

// wantInt8 checks that the tensors among the arguments are of int8; it skips None.
func wantInt8(a kernels.Args, args ...int) error {
	for _, i := range args {
		if t := a.OptTensor(i); t != nil && t.DType != tensor.Int8 {
			return kernels.Bad(i, t.DType.String(), "int8")
		}
	}
	return nil
}

// wantBytes checks a scratch tensor, which only the device uses.
func wantBytes(a kernels.Args, i int) error {
	return kernels.WantDType(i, a.Tensor(i), tensor.Uint8, tensor.Int8)
}

// wantChannels checks a tensor of one int32 per channel.
func wantChannels(a kernels.Args, i, n int) error {
	t := a.Tensor(i)
	if t.DType != tensor.Int32 || t.Numel() != n || !t.IsContiguous() {
		return kernels.Badf(i, fmt.Sprintf("int32, one for each of %d channels", n), "%v", t)
	}
	return nil
}
