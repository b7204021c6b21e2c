package quantized

import (
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// add is quantized_decomposed::add.out: both operands, of the same type and sizes,
// are dequantised, added and quantised again, all in float32.
func add(c *kernels.Ctx, a kernels.Args) error {
	x, y, out := a.Tensor(0), a.Tensor(5), a.Tensor(14)
	if err := checkAdd(a); err != nil {
		return err
	}
	if err := resizeLike(a, 0, 14); err != nil {
		return err
	}
	s := kernels.Keep[adder](c)
	*s = adder{x: operandOf(a, 0), y: operandOf(a, 5), out: out.Data, size: out.DType.Size(),
		load: tensor.Loader[float32](x.DType), store: tensor.Storer[int64](out.DType),
		factor: float32(1 / a.Float(10)), zero: float32(a.Int(11)), lo: a.Int(12), hi: a.Int(13)}
	s.x.bytes, s.y.bytes = x.Data, y.Data
	s.floats = kernels.Scratch[float32](c, 2*blockSize*c.Threads())
	s.codes = kernels.Scratch[int64](c, blockSize*c.Threads())
	c.Parallel(x.Numel(), grain, s)
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
	return sameOrder(a, 0, 5)
}

// operand is a quantised operand.
type operand struct {
	bytes       []byte
	scale, zero float32
}

// operandOf reads the scale and the zero point after tensor argument i.
func operandOf(a kernels.Args, i int) operand {
	return operand{scale: float32(a.Float(i + 1)), zero: float32(a.Int(i + 2))}
}

// adder is the loop over elements.
type adder struct {
	x, y         operand
	out          []byte
	size         int
	load         tensor.LoadFunc[float32]
	store        tensor.StoreFunc[int64]
	factor, zero float32
	lo, hi       int64
	floats       []float32 // per thread: a block of each operand
	codes        []int64   // per thread: a block of sums
}

// Range adds elements [lo, hi).
func (s *adder) Range(worker, lo, hi int) {
	floats, codes := s.floats[2*blockSize*worker:][:2*blockSize], s.codes[blockSize*worker:][:blockSize]
	for at := lo; at < hi; at += blockSize {
		n := min(blockSize, hi-at)
		x, y := floats[:n], floats[blockSize:][:n]
		s.load(x, s.x.bytes[at*s.size:])
		s.load(y, s.y.bytes[at*s.size:])
		for i := range n {
			sum := float32((x[i]-s.x.zero)*s.x.scale) + float32((y[i]-s.y.zero)*s.y.scale)
			v := float32(math.RoundToEven(float64(float32(sum * s.factor))))
			codes[i] = clamped(v+s.zero, s.lo, s.hi)
		}
		s.store(s.out[at*s.size:(at+n)*s.size], codes[:n])
	}
}
