package quantized

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// dequantizePerTensor is quantized_decomposed::dequantize_per_tensor.out:
//
//	out = (input - zero_point) · scale
//
// in float32, or in float64 for a float64 out.
func dequantizePerTensor[F float](c *kernels.Ctx, a kernels.Args) error {
	if err := wantType(a, 6, a.Tensor(7)); err != nil {
		return err
	}
	return dequantizeFixed[F](c, a, 7)
}

// DequantizePerTensor is dequantizePerTensor to float32 for other namespaces, whose schema has no
// out_dtype: the out is argument 6.
func DequantizePerTensor(c *kernels.Ctx, a kernels.Args) error {
	if err := kernels.WantDType(6, a.Tensor(6), tensor.Float32); err != nil {
		return err
	}
	return dequantizeFixed[float32](c, a, 6)
}

// dequantizeFixed dequantizes with the constant parameters in arguments 1 and 2: the call can be
// repeated.
func dequantizeFixed[F float](c *kernels.Ctx, a kernels.Args, out int) error {
	if err := wantZero(2, a.Int(2)); err != nil {
		return err
	}
	if err := dequantize(c, a, 5, out, one[F](c, a.Float(1), a.Int(2), a.Tensor(0).Numel())); err != nil {
		return err
	}
	q := kernels.Keep[dequantizer[F]](c)
	q.persist()
	c.Repeat(q)
	return nil
}

// dequantizeBy returns the operator that dequantizes with the parameters that read returns, in the type of the scales.
// Argument dtype is the type of the stored integers, followed by out_dtype, or None, and the out.
func dequantizeBy[F float](read reader[F], dtype int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		p, err := read(c, a, false)
		if err != nil {
			return err
		}
		if err := wantType(a, dtype+1, a.Tensor(dtype+2)); err != nil {
			return err
		}
		return dequantize(c, a, dtype, dtype+2, p)
	}
}

// dequantize converts the stored integers of argument 0 to floats. Argument dtype is their type.
func dequantize[F float](c *kernels.Ctx, a kernels.Args, dtype, out int, p params[F]) error {
	in, to := a.Tensor(0), a.Tensor(out)
	if err := checkQuantized(a, 0, dtype); err != nil {
		return err
	}
	if err := kernels.WantDType(out, to, tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64); err != nil {
		return err
	}
	if err := resizeLike(a, 0, out); err != nil {
		return err
	}
	q := kernels.Keep[dequantizer[F]](c)
	*q = dequantizer[F]{params: p, n: in.Numel(), src: in.Data, dst: to.Data}
	q.load, q.srcSize = tensor.Loader[F](stored(in.DType)), in.DType.Size()
	q.store, q.dstSize = tensor.Storer[F](to.DType), to.DType.Size()
	q.direct = dequantize8Of[F](in.DType, to.DType)
	return q.Repeat(c)
}

// wantType checks that argument dtype, if not None, is the type of the out.
func wantType(a kernels.Args, dtype int, out *tensor.Tensor) error {
	if d := a.OptInt(dtype, int64(out.DType)); d != int64(out.DType) {
		return kernels.Badf(dtype, "the out's type, "+out.DType.String(), "%d", d)
	}
	return nil
}

// dequantizer is the loop over a tensor's elements in memory order.
type dequantizer[F float] struct {
	params[F]
	n                int
	src, dst         []byte
	srcSize, dstSize int
	load             tensor.LoadFunc[F]
	store            tensor.StoreFunc[F]
	direct           func(dst, src []byte, scale, zero float32) // 8 bits to float32, else nil
	floats           []F                                        // per thread: a block of values, of scales and of zero points
}

// Repeat dequantizes the same tensors again, with the same parameters.
func (q *dequantizer[F]) Repeat(c *kernels.Ctx) error {
	q.floats = kernels.Scratch[F](c, 3*blockSize*c.Threads())
	c.Parallel(q.n, cpu.Grain(1, elementCost), q)
	return nil
}

// Range dequantizes elements [lo, hi).
func (q *dequantizer[F]) Range(worker, lo, hi int) {
	floats := q.floats[3*blockSize*worker:][:3*blockSize]
	for n := 0; lo < hi; lo += n {
		if n = q.alike(lo, hi); n > 0 {
			i := lo / q.run % len(q.scale)
			q.direct(q.dst[lo*q.dstSize:(lo+n)*q.dstSize], q.src[lo*q.srcSize:(lo+n)*q.srcSize], float32(q.scale[i]), float32(q.zero[i]))
			continue
		}
		n = min(blockSize, hi-lo)
		q.block(floats, lo, n)
	}
}

// shortRun is the number of elements with common parameters from which on they are dequantized together.
const shortRun = 16

// alike returns the number of elements from lo on, before hi, that are dequantized together; 0 if
// they need the general implementation.
func (q *dequantizer[F]) alike(lo, hi int) int {
	switch {
	case q.direct == nil || len(q.scale) > 1 && q.run < shortRun:
		return 0
	case len(q.scale) == 1:
		return hi - lo
	}
	return min(hi-lo, q.run-lo%q.run)
}

// block dequantizes n elements from at on, each with its own parameters.
func (q *dequantizer[F]) block(floats []F, at, n int) {
	x, scale, zero := floats[:n], floats[blockSize:][:n], floats[2*blockSize:][:n]
	q.load(x, q.src[at*q.srcSize:(at+n)*q.srcSize])
	q.expand(scale, zero, at)
	for i := range x {
		x[i] = (x[i] - zero[i]) * scale[i]
	}
	q.store(q.dst[at*q.dstSize:(at+n)*q.dstSize], x)
}

func dequantize8Of[F float](from, to tensor.DType) func(dst, src []byte, scale, zero float32) {
	_, single := any(F(0)).(float32)
	switch {
	case !single:
		return nil
	case from == tensor.Uint8 && to == tensor.Float32:
		return dequantize8Vector[uint8]
	case from == tensor.Int8 && to == tensor.Float32:
		return dequantize8Vector[int8]
	}
	return nil
}

// dequantize8Vector is the vectorized dequantize8, for integral zero points whose differences from the stored
// values are exact.
func dequantize8Vector[T int8 | uint8](dst, src []byte, scale, zero float32) {
	if !integralZero(zero) {
		dequantize8[T](dst, src, scale, zero)
		return
	}
	codes := simd.Quantized{Signed: T(0)-1 < 0, Zero: int32(zero)}
	codes.Dequantize(tensor.View[float32](dst), src, scale)
}

// integralZero reports whether a zero point is integral and small enough to be exact.
func integralZero(zero float32) bool {
	return zero > -exact && zero < exact && zero == float32(int32(zero))
}

func dequantize8[T int8 | uint8](dst, src []byte, scale, zero float32) {
	d := tensor.View[float32](dst)
	x := tensor.View[T](src)[:len(d)]
	for i, v := range x {
		d[i] = (float32(v) - zero) * scale
	}
}
