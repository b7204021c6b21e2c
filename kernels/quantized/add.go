package quantized

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// add is quantized_decomposed::add.out: both operands, of the same type and sizes, are dequantized,
// added and quantized again, all in float32.
func add(c *kernels.Ctx, a kernels.Args) error {
	x, out := a.Tensor(0), a.Tensor(14)
	if err := checkAdd(a); err != nil {
		return err
	}
	if err := resizeLike(a, 0, 14); err != nil {
		return err
	}
	s := kernels.Keep[adder](c)
	s.x, s.y = operandOf(a, 0), operandOf(a, 5)
	s.direct = dequantize8Of[float32](x.DType, tensor.Float32)
	s.load, s.sums = tensor.Loader[float32](x.DType), kernels.Scratch[float32](c, 2*sumSize*c.Threads())
	s.sum.params = one[float32](c, 1/a.Float(10), a.Int(11), x.Numel())
	s.sum.lo, s.sum.hi, s.sum.dst = a.Int(12), a.Int(13), out.Data
	s.sum.convert(tensor.Float32, out.DType)
	s.sum.reserve(c)
	c.Parallel(x.Numel(), cpu.Grain(1, elementCost), s)
	return nil
}

func checkAdd(a kernels.Args) error {
	x, y, out := a.Tensor(0), a.Tensor(5), a.Tensor(14)
	lo, hi, ok := codeRange(x.DType)
	if !ok || stored(x.DType) == tensor.Uint16 {
		return kernels.Bad(0, x.DType.String(), "uint8, int8, int16 or int32")
	}
	if y.DType != x.DType || !slices.Equal(x.Sizes, y.Sizes) {
		return kernels.Badf(5, fmt.Sprintf("as the other operand, %v", x), "%v", y)
	}
	if out.DType != x.DType {
		return kernels.Bad(14, out.DType.String(), x.DType.String())
	}
	for _, i := range [...]int{3, 8, 12} {
		if l, h := a.Int(i), a.Int(i+1); l < lo || h > hi || l > h {
			return kernels.Badf(i, fmt.Sprintf("bounds within [%d, %d]", lo, hi), "[%d, %d]", l, h)
		}
	}
	for _, i := range [...]int{2, 7, 11} {
		if err := wantZero(i, a.Int(i)); err != nil {
			return err
		}
	}
	return sameOrder(a, 0, 5)
}

// operand is a quantized operand.
type operand struct {
	bytes       []byte
	size        int
	scale, zero float32
}

// operandOf reads tensor argument i and the following scale and zero point.
func operandOf(a kernels.Args, i int) operand {
	t := a.Tensor(i)
	return operand{bytes: t.Data, size: t.DType.Size(), scale: float32(a.Float(i + 1)), zero: float32(a.Int(i + 2))}
}

// adder is the loop over elements.
type adder struct {
	x, y operand
	load tensor.LoadFunc[float32]
	// direct converts 8-bit elements, else nil
	direct func(dst, src []byte, scale, zero float32)
	sums   []float32 // per thread: sumSize elements of each operand
	sum    quantizer[float32]
}

// sumSize is the number of elements that are added at a time.
const sumSize = 4 * blockSize

// Range adds elements [lo, hi).
func (s *adder) Range(worker, lo, hi int) {
	sums := s.sums[2*sumSize*worker:][:2*sumSize]
	for at := lo; at < hi; at += sumSize {
		n := min(sumSize, hi-at)
		x, y := sums[:n], sums[sumSize:][:n]
		s.dequantize(&s.x, x, at)
		s.dequantize(&s.y, y, at)
		simd.Add(x, x, y)
		s.sum.elements(worker, tensor.BytesOf(x), at, n)
	}
}

// dequantize converts an operand's elements, starting at at, to float32.
func (s *adder) dequantize(o *operand, dst []float32, at int) {
	src := o.bytes[at*o.size : (at+len(dst))*o.size]
	if s.direct != nil {
		s.direct(tensor.BytesOf(dst), src, o.scale, o.zero)
		return
	}
	s.load(dst, src)
	for i, v := range dst {
		dst[i] = (v - o.zero) * o.scale
	}
}
