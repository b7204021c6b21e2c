package cortexm

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// Arguments of quantized_linear.out. The maximum precedes the minimum.
const (
	linearInput, linearWeights, linearBias, linearSum = 0, 1, 2, 3
	linearXOffset, linearWOffset, linearZero          = 4, 5, 6
	linearMultipliers, linearShifts                   = 7, 8
	linearMost, linearLeast, linearOut                = 9, 10, 11
)

// quantizedLinear is cortex_m::quantized_linear.out, of an input [..., in] and weights [out, in].
// Programs for processors with MVE have kernel sums, which include the input offset and the bias,
// and take precedence over a bias:
//
//	Σ input · (weights + filter_offset) + kernel_sum
//
// Other programs have a bias or none:
//
//	Σ (input + input_offset) · (weights + filter_offset) + bias
func quantizedLinear(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[linear](c), reader{Args: a}
	if p.read(&r); r.err != nil {
		return r.err
	}
	in, w := a.Tensor(linearInput), a.Tensor(linearWeights)
	sizes := append(append(p.sizes[:0], in.Sizes[:in.Rank()-1]...), w.Sizes[0])
	if err := kernels.ResizeOut(a, linearOut, sizes); err != nil {
		return err
	}
	rows, _ := tensor.Product(in.Sizes[:in.Rank()-1])
	p.setRows(1, rows, w.Sizes[1], w.Sizes[0])
	p.bind(in, w, a.Tensor(linearOut))
	return p.begin(c, &r)
}

type linear struct {
	product
	sizes [tensor.MaxRank]int
}

// bind sets the operands of a product of matrices.
func (p *product) bind(in, w, out *tensor.Tensor) {
	p.input.set(in)
	p.weights.in.set(w)
	p.output.set(out)
}

// setRows makes p a product of batches of rows by k and k by n.
func (p *product) setRows(batch, rows, k, n int) {
	points := [3]int{1, 1, rows}
	p.batch, p.channels = batch, k
	p.Shape = window.Shape{In: points, Out: points, Kernel: ones, Stride: ones, Dilate: ones}
	p.groups, p.outChannels = 1, n
}

// read checks the arguments and reads the parameters.
func (p *linear) read(r *reader) {
	r.int8(linearInput, linearWeights, linearOut)
	in, w := r.Tensor(linearInput), r.Tensor(linearWeights)
	if w.Rank() != 2 || w.Numel() == 0 {
		r.bad(linearWeights, "%v", "[out, in], both at least 1", w)
		return
	}
	if n := in.Rank(); n == 0 || in.Sizes[n-1] != w.Sizes[1] {
		r.bad(linearInput, "%v", fmt.Sprintf("rows of %d", w.Sizes[1]), in)
	}
	p.weights.offset, p.xOffset = r.weightOffset(linearWOffset), r.inputOffset(linearXOffset)
	bias, q := linearBias, &p.codes
	if !r.IsNone(linearSum) {
		bias, p.xOffset = linearSum, 0
	}
	q.setBias(r, bias, w.Sizes[0])
	// A linear layer has one scale.
	q.one.multiplier = r.single(linearMultipliers, math.MinInt32, math.MaxInt32)
	q.one.shift = r.single(linearShifts, -maxShift, maxShift)
	q.zero = r.int32(linearZero)
	q.least, q.most = r.bounds(linearLeast, linearMost)
}

// single reads a list of one entry, which must lie within [lo, hi].
func (r *reader) single(i int, lo, hi int64) int32 {
	list := r.Ints(i)
	if len(list) != 1 || list[0] < lo || list[0] > hi {
		r.bad(i, "%v", fmt.Sprintf("one entry in [%d, %d]", lo, hi), list)
		return 0
	}
	return int32(list[0])
}

// Arguments of quantized_batch_matmul.out.
const (
	matmulLeft, matmulRight, matmulZero   = 0, 2, 4
	matmulScale, matmulScratch, matmulOut = 5, 7, 8
)

// batchMatmul is cortex_m::quantized_batch_matmul.out, of [B, M, K] and [B, N, K]: the right
// operand is transposed. Zero points are passed as offsets, their negatives.
func batchMatmul(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[product](c), reader{Args: a}
	if p.readMatmul(&r); r.err != nil {
		return r.err
	}
	left, right := a.Tensor(matmulLeft), a.Tensor(matmulRight)
	sizes := [3]int{left.Sizes[0], left.Sizes[1], right.Sizes[1]}
	r.resize(matmulOut, sizes[:])
	p.setRows(left.Sizes[0], left.Sizes[1], left.Sizes[2], right.Sizes[1])
	p.bind(left, right, a.Tensor(matmulOut))
	p.weights.perImage = true
	return p.begin(c, &r)
}

// readMatmul checks the arguments of a batch of matrix products and reads the parameters.
func (p *product) readMatmul(r *reader) {
	r.int8(matmulLeft, matmulRight, matmulOut)
	r.bytes(matmulScratch)
	left, right := r.Tensor(matmulLeft), r.Tensor(matmulRight)
	if left.Rank() != 3 || left.Sizes[2] == 0 {
		r.bad(matmulLeft, "%v", "[B, M, K], K at least 1", left)
		return
	}
	if right.Rank() != 3 || right.Sizes[0] != left.Sizes[0] || right.Sizes[2] != left.Sizes[2] {
		r.bad(matmulRight, "%v", fmt.Sprintf("[%d, N, %d]", left.Sizes[0], left.Sizes[2]), right)
	}
	p.xOffset, p.weights.offset = r.inputOffset(matmulLeft+1), r.weightOffset(matmulRight+1)
	p.codes.quantizer, p.codes.one = int8Range(r.int32(matmulZero)), r.scale(matmulScale)
}
