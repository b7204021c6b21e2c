package elementwise

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Convert stores src in dst, whose sizes src broadcasts to, converted to dst's type with the rounding of
// [tensor.Cast]. Complex numbers lose their imaginary part in real types. The dim orders may differ; the bytes must
// not overlap. srcArg and dstArg are the argument indices for the error. It uses the instruction's state
// ([kernels.Keep]).
func Convert(c *kernels.Ctx, dst *tensor.Tensor, dstArg int, src *tensor.Tensor, srcArg int) error {
	if !strided.BroadcastsTo(src.Sizes, dst.Sizes) {
		return kernels.Badf(srcArg, "sizes that broadcast to the result's", "sizes %v", src.Sizes)
	}
	cl := call{in: [maxIn + 1]arg{{Tensor: src, i: srcArg}}, out: arg{Tensor: dst, i: dstArg}, compute: tensor.CastType(src.DType, dst.DType)}
	_, err := converting.compute(c, &cl)
	return err
}

// converting loads and stores elements. Complex ones pass through a buffer, which storing real parts uses up.
var converting = table{convert: true, c: identity[complex128]}
