package llm

import (
	"math"
	"math/bits"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/loops"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// hadamard is llama::fast_hadamard_transform.out: it multiplies each row of the last dimension, of n = 2^k elements,
// by the Hadamard matrix of that size in Sylvester's order, divided by √n. A row of 28·2^k elements is 28 such rows:
// they are transformed one by one and then multiplied, element by element across them, by an unscaled 28×28 Hadamard
// matrix.
func hadamard(c *kernels.Ctx, a kernels.Args) error {
	x, out := a.Tensor(0), a.Tensor(1)
	if x.DType != tensor.Float32 && x.DType != tensor.Float64 && x.DType != tensor.Float16 || out.DType != x.DType {
		return kernels.Badf(0, "float32, float64 or float16, and the out's type", "%v for %v", x.DType, out.DType)
	}
	if err := kernels.ResizeOut(a, 1, x.Sizes); err != nil {
		return err
	}
	if !x.IsContiguous() || !out.IsContiguous() {
		return kernels.Badf(0, "contiguous tensors", "dim orders %v and %v", x.DimOrder, out.DimOrder)
	}
	if x.Rank() == 0 || x.Numel() == 0 {
		copy(out.Data, x.Data)
		return nil
	}
	if x.DType == tensor.Float64 {
		return transform[float64](c, x, out)
	}
	return transform[float32](c, x, out)
}

func transform[F float32 | float64](c *kernels.Ctx, x, out *tensor.Tensor) error {
	h := kernels.Keep[hadamardRows[F]](c)
	h.c = c
	h.n = x.Sizes[x.Rank()-1]
	h.parts = 1
	if h.n%len(williamson) == 0 {
		h.parts = len(williamson)
	}
	if size := h.n / h.parts; size&(size-1) != 0 {
		return kernels.Badf(0, "a power of two, or 28 times one, elements in the last dimension", "%d", h.n)
	}
	h.src, h.dst, h.size = x.Data, out.Data, x.DType.Size()
	h.load, h.store = tensor.Loader[F](x.DType), tensor.Storer[F](x.DType)
	if h.add == nil {
		h.add, h.sub = loops.Add[F], loops.Sub[F]
		if f, ok := any(h).(*hadamardRows[float32]); ok {
			f.add, f.sub = simd.Add, simd.Sub
		}
	}
	h.scratch = kernels.Scratch[F](c, 2*h.n*c.Threads())
	c.Parallel(x.Numel()/h.n, cpu.Grain(h.n*bits.Len(uint(h.n)), macCost), h)
	return nil
}

// hadamardRows is the loop over rows.
type hadamardRows[F float32 | float64] struct {
	c        *kernels.Ctx
	n, parts int // elements of a row, and powers of two in it
	src, dst []byte
	size     int
	load     tensor.LoadFunc[F]
	store    tensor.StoreFunc[F]
	add, sub func(dst, x, y []F)
	scratch  []F // per thread: a row, and what it becomes
}

// Range transforms rows [lo, hi).
func (h *hadamardRows[F]) Range(worker, lo, hi int) {
	scratch := h.scratch[2*h.n*worker:][:2*h.n]
	for i := lo; i < hi; i++ {
		row, other := scratch[:h.n], scratch[h.n:]
		at, end := i*h.n*h.size, (i+1)*h.n*h.size
		h.load(row, h.src[at:end])
		row, other = h.butterflies(row, other, h.n/h.parts)
		if h.parts > 1 {
			h.mix(other, row, h.n/h.parts)
			row = other
		}
		h.store(h.dst[at:end], row)
	}
}

// butterflies transforms the rows of v, each a power of two, and scales them. Both
// slices are used; it returns the one with the result first.
func (h *hadamardRows[F]) butterflies(v, other []F, size int) (result, spare []F) {
	const short = 16 // steps that are not worth a call
	for step := 1; step < size; step *= 2 {
		h.c.Poll()
		for i := 0; i < len(v); i += 2 * step {
			x, y := v[i:i+step], v[i+step:i+2*step]
			sum, difference := other[i:i+step], other[i+step:i+2*step]
			if step >= short {
				h.add(sum, x, y)
				h.sub(difference, x, y)
				continue
			}
			for j, a := range x {
				b := y[j]
				sum[j], difference[j] = a+b, a-b
			}
		}
		v, other = other, v
	}
	scale := F(1 / math.Sqrt(float64(size)))
	for i := range v {
		v[i] *= scale
	}
	return v, other
}

// mix multiplies the rows of v, each of size elements, by the 28×28 matrix.
func (h *hadamardRows[F]) mix(dst, v []F, size int) {
	for i, signs := range williamson {
		h.c.Poll()
		sum := dst[i*size : (i+1)*size]
		clear(sum)
		for j := range signs {
			if x := v[j*size : (j+1)*size]; signs[j] == '+' {
				h.add(sum, sum, x)
			} else {
				h.sub(sum, sum, x)
			}
		}
	}
}

// williamson is the Hadamard matrix had.28.will of N. J. A. Sloane's library, which the exporter's rotations use.
var williamson = [28]string{
	"+------++----++-+--+-+--++--", "-+-----+++-----+-+--+-+--++-", "--+-----+++---+-+-+----+--++", "---+-----+++---+-+-+-+--+--+",
	"----+-----+++---+-+-+++--+--", "-----+-----++++--+-+--++--+-", "------++----++-+--+-+--++--+", "--++++-+-------++--+++-+--+-",
	"---++++-+-----+-++--+-+-+--+", "+---+++--+----++-++--+-+-+--", "++---++---+----++-++--+-+-+-", "+++---+----+----++-++--+-+-+",
	"++++--------+-+--++-++--+-+-", "-++++--------+++--++--+--+-+", "-+-++-++--++--+--------++++-", "+-+-++--+--++--+--------++++",
	"-+-+-++--+--++--+----+---+++", "+-+-+-++--+--+---+---++---++", "++-+-+-++--+------+--+++---+", "-++-+-+-++--+------+-++++---",
	"+-++-+---++--+------+-++++--", "-++--++-+-++-+++----++------", "+-++--++-+-++-+++-----+-----", "++-++---+-+-++-+++-----+----",
	"-++-++-+-+-+-+--+++-----+---", "--++-++++-+-+----+++-----+--", "+--++-+-++-+-+----+++-----+-", "++--++-+-++-+-+----++------+",
}
