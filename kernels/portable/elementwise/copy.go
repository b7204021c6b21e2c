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
	cl := call{in: [maxIn + 1]arg{{Tensor: src, i: srcArg}}, out: arg{Tensor: dst, i: dstArg}}
	switch tensor.CastType(src.DType, dst.DType) {
	case tensor.Float32:
		return convert[float32](c, &cl, nil)
	case tensor.Float64:
		return convert[float64](c, &cl, nil)
	case tensor.Int32:
		return convert[int32](c, &cl, nil)
	case tensor.Int64:
		return convert[int64](c, &cl, nil)
	case tensor.Complex128:
		return convert(c, &cl, identity[complex128]) // into a buffer, which storing real parts uses up
	}
	return badType(cl.out)
}

// converting has no kernels: elements are loaded and stored.
var converting table

func convert[C compute](c *kernels.Ctx, cl *call, k kernel[C]) error {
	return kernels.Keep[loop[C]](c).run(c, cl, &converting, k)
}
