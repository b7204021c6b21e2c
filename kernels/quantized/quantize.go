package quantized

import (
	"math"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// quantizePerTensor is quantized_decomposed::quantize_per_tensor.out:
//
//	out = clamp(round(input · (1/scale)) + zero_point, quant_min, quant_max)
//
// in float32. PyTorch rounds the reciprocal of the double scale once, which equals the float32
// reciprocal if the scale is a float32 number.
func quantizePerTensor(c *kernels.Ctx, a kernels.Args) error {
	return QuantizePerTensor(c, a, float32(1/a.Float(1)))
}

// QuantizePerTensor is quantizePerTensor for other namespaces, with their own rounding of the
// reciprocal scale, factor.
func QuantizePerTensor(c *kernels.Ctx, a kernels.Args, factor float32) error {
	if err := wantZero(2, a.Int(2)); err != nil {
		return err
	}
	if err := quantize(c, a, 6, false, one[float32](c, float64(factor), a.Int(2), a.Tensor(0).Numel())); err != nil {
		return err
	}
	q := kernels.Keep[quantizer[float32]](c)
	q.persist()
	c.Repeat(q)
	return nil
}

// quantizeBy returns the operator that quantizes with the parameters that read returns: the out is argument out. For
// addFirst see quantizer.
func quantizeBy[F float](read reader[F], out int, addFirst bool) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		p, err := read(c, a, true)
		if err != nil {
			return err
		}
		return quantize(c, a, out, addFirst, p)
	}
}

// quantize quantizes argument 0 to argument out, which follows quant_min, quant_max and dtype. The
// scales of p are reciprocals.
func quantize[F float](c *kernels.Ctx, a kernels.Args, out int, addFirst bool, p params[F]) error {
	in, to := a.Tensor(0), a.Tensor(out)
	if err := kernels.WantDType(0, in, tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64); err != nil {
		return err
	}
	if err := checkQuantized(a, out, out-1); err != nil {
		return err
	}
	if err := resizeLike(a, 0, out); err != nil {
		return err
	}
	q := kernels.Keep[quantizer[F]](c)
	*q = quantizer[F]{params: p, n: in.Numel(), src: in.Data, dst: to.Data, lo: a.Int(out - 3), hi: a.Int(out - 2), addFirst: addFirst}
	q.convert(in.DType, to.DType)
	return q.Repeat(c)
}

// Repeat quantizes the same tensors again, with the same parameters.
func (q *quantizer[F]) Repeat(c *kernels.Ctx) error {
	q.reserve(c)
	c.Parallel(q.n, cpu.Grain(1, elementCost), q)
	return nil
}

// quantizer is the loop over a tensor's elements in memory order.
type quantizer[F float] struct {
	params[F]
	n                int
	src, dst         []byte
	srcSize, dstSize int
	load             tensor.LoadFunc[F]
	store            tensor.StoreFunc[int64]
	direct           func(dst, src []byte, s step) // float32 to 8 bits, else nil
	signed           bool                          // those are int8
	lo, hi           int64
	addFirst         bool    // add the zero point before rounding, as quantize_per_token does, not after
	floats           []F     // per thread: a block of values, of scales and of zero points
	codes            []int64 // per thread: a block of codes
}

// convert selects the conversions.
func (q *quantizer[F]) convert(from, to tensor.DType) {
	q.load, q.srcSize = tensor.Loader[F](from), from.Size()
	q.store, q.dstSize = tensor.Storer[int64](stored(to)), to.Size()
	q.direct, q.signed = quantize8Of[F](from, to), to == tensor.Int8
}

// reserve allocates scratch memory.
func (q *quantizer[F]) reserve(c *kernels.Ctx) {
	q.floats = kernels.Scratch[F](c, 3*blockSize*c.Threads())
	q.codes = kernels.Scratch[int64](c, blockSize*c.Threads())
}

// Range quantizes elements [lo, hi).
func (q *quantizer[F]) Range(worker, lo, hi int) {
	q.elements(worker, q.src[lo*q.srcSize:hi*q.srcSize], lo, hi-lo)
}

// elements quantizes the n elements of src to elements at, at+1, … of the out: together if they have common parameters,
// else block by block.
func (q *quantizer[F]) elements(worker int, src []byte, at, n int) {
	if q.together(src, at, n) {
		return
	}
	for i := 0; i < n; i += blockSize {
		m := min(blockSize, n-i)
		if part := src[i*q.srcSize : (i+m)*q.srcSize]; !q.together(part, at+i, m) {
			q.block(worker, part, at+i, m)
		}
	}
}

// block quantizes the n elements of src, at most blockSize, to elements at, at+1, … of the out, each with its own
// parameters.
func (q *quantizer[F]) block(worker int, src []byte, at, n int) {
	floats, codes := q.floats[3*blockSize*worker:], q.codes[blockSize*worker:][:n]
	x, scale, zero := floats[:n], floats[blockSize:][:n], floats[2*blockSize:][:n]
	q.load(x, src)
	q.expand(scale, zero, at)
	q.encode(codes, x, scale, zero)
	q.store(q.dst[at*q.dstSize:(at+n)*q.dstSize], codes)
}

// encode quantizes a block with separate parameters for each element.
func (q *quantizer[F]) encode(codes []int64, x, scale, zero []F) {
	for i := range codes {
		v := F(x[i] * scale[i])
		if q.addFirst {
			v = F(math.RoundToEven(float64(F(v + zero[i]))))
		} else {
			v = F(math.RoundToEven(float64(v))) + zero[i]
		}
		codes[i] = clamped(v, q.lo, q.hi)
	}
}

// clamped converts a whole number; NaN becomes 0, as in PyTorch on x86-64.
func clamped[F float](v F, lo, hi int64) int64 {
	if v != v {
		return 0
	}
	code := lo
	if v >= F(lo) {
		code = max(lo, tensor.FloatToInt(v)) // MinInt64 if v is too large, which becomes hi
	}
	if v > F(hi) || code > hi {
		return hi
	}
	return code
}

// step quantizes float32 numbers to 8 bits: round(clamp(x·factor + add)) + base.
type step struct {
	factor, add, lo, hi float32
	base                int32
}

// exact is a bound below which float32 has enough precision for rounding: then clamping to integers
// and rounding commute.
const exact = 1 << 20

// together quantizes elements with common parameters; done is false if they need the general
// implementation.
func (q *quantizer[F]) together(src []byte, at, n int) (done bool) {
	if q.direct == nil {
		return false
	}
	i, same := q.uniform(at, n)
	zero := float64(q.zero[i])
	if !same || !(zero > -exact && zero < exact) {
		return false
	}
	s, dst := q.step(zero, float32(q.scale[i])), q.dst[at*q.dstSize:(at+n)*q.dstSize]
	if !q.addFirst && q.lo <= q.hi && s.factor != 0 && s.factor-s.factor == 0 {
		codes := simd.Quantized{Signed: q.signed, Zero: int32(zero), Lo: int32(q.lo), Hi: int32(q.hi)}
		q.vectors(dst, tensor.View[float32](src), s, &codes)
		return true
	}
	q.direct(dst, src, s)
	return true
}

// vectors quantizes x by vectors, except blocks with NaN.
func (q *quantizer[F]) vectors(dst []byte, x []float32, s step, codes *simd.Quantized) {
	for len(x) > 0 {
		n := codes.QuantizeNumbers(dst, x, s.factor)
		dst, x = dst[n:], x[n:]
		part := x[:min(blockSize, len(x))]
		if hasNaN(part) {
			q.direct(dst[:len(part)], tensor.BytesOf(part), s)
		} else {
			codes.Quantize(dst, part, s.factor)
		}
		dst, x = dst[len(part):], x[len(part):]
	}
}

// step returns the step for a zero point and a factor.
func (q *quantizer[F]) step(zero float64, factor float32) step {
	if q.addFirst {
		return step{factor: factor, add: float32(zero), lo: float32(q.lo), hi: float32(q.hi)}
	}
	return step{factor: factor, base: int32(zero), lo: float32(float64(q.lo) - zero), hi: float32(float64(q.hi) - zero)}
}

// hasNaN reports whether x contains NaN, or infinities of both signs. NaN must become 0, which the
// vector loop does not do.
func hasNaN(x []float32) bool {
	sum := simd.Sum(x)
	return sum != sum
}

func quantize8Of[F float](from, to tensor.DType) func(dst, src []byte, s step) {
	_, single := any(F(0)).(float32)
	switch {
	case !single:
		return nil
	case from == tensor.Float32 && to == tensor.Uint8:
		return quantize8[uint8]
	case from == tensor.Float32 && to == tensor.Int8:
		return quantize8[int8]
	}
	return nil
}

// magic moves a whole number of up to 22 bits into the low bits of a float32, and
// rounds half to even on the way.
const (
	magic     = float32(3 << 22)
	magicBits = 0x4b400000
)

func quantize8[T int8 | uint8](dst, src []byte, s step) {
	d := tensor.View[T](dst)
	x := tensor.View[float32](src)[:len(d)]
	for i, v := range x {
		v = float32(float32(v*s.factor) + s.add)
		if !(v >= s.lo) {
			if v != v {
				d[i] = 0
				continue
			}
			v = s.lo
		}
		if v > s.hi {
			v = s.hi
		}
		d[i] = T(int32(math.Float32bits(v+magic)) - magicBits + s.base)
	}
}
