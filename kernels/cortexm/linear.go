package cortexm

import (
	"fmt"

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
	p := kernels.Keep[linear](c)
	if err := p.read(a); err != nil {
		return err
	}
	in, w := a.Tensor(linearInput), a.Tensor(linearWeights)
	sizes := append(append(p.sizes[:0], in.Sizes[:in.Rank()-1]...), w.Sizes[0])
	if err := kernels.ResizeOut(a, linearOut, sizes); err != nil {
		return err
	}
	rows, _ := tensor.Product(in.Sizes[:in.Rank()-1])
	p.setRows(1, rows, w.Sizes[1], w.Sizes[0])
	p.input.set(in)
	p.output.set(a.Tensor(linearOut))
	p.weights.in.set(w)
	return p.begin(c)
}

type linear struct {
	product
	sizes [tensor.MaxRank]int
}

// setRows makes p a product of batches of rows by k and k by n.
func (p *product) setRows(batch, rows, k, n int) {
	points := [3]int{1, 1, rows}
	p.images = images{batch: batch, channels: k, Shape: window.Shape{In: points, Out: points, Kernel: ones, Stride: ones, Dilate: ones}}
	p.groups, p.outChannels = 1, n
}

// read checks the arguments and reads the parameters.
func (p *linear) read(a kernels.Args) (err error) {
	if err := checkLinear(a); err != nil {
		return err
	}
	if p.weights.offset, err = within(a, linearWOffset, -maxWeightOffset, maxWeightOffset); err != nil {
		return err
	}
	if p.xOffset, err = within(a, linearXOffset, -maxInputOffset, maxInputOffset); err != nil {
		return err
	}
	bias, q := linearBias, &p.codes
	if !a.IsNone(linearSum) {
		bias, p.xOffset = linearSum, 0
	}
	if err := q.setBias(a, bias, a.Tensor(linearWeights).Sizes[0]); err != nil {
		return err
	}
	if q.one, err = scaleOfLists(a, linearMultipliers); err != nil {
		return err
	}
	if q.zero, err = zeroPoint(a, linearZero); err != nil {
		return err
	}
	q.least, q.most, err = bounds(a, linearLeast, linearMost)
	return err
}

func checkLinear(a kernels.Args) error {
	if err := wantInt8(a, linearInput, linearWeights, linearOut); err != nil {
		return err
	}
	in, w := a.Tensor(linearInput), a.Tensor(linearWeights)
	if w.Rank() != 2 || w.Numel() == 0 {
		return kernels.Badf(linearWeights, "[out, in], both at least 1", "%v", w)
	}
	if r := in.Rank(); r == 0 || in.Sizes[r-1] != w.Sizes[1] {
		return kernels.Badf(linearInput, fmt.Sprintf("rows of %d", w.Sizes[1]), "%v", in)
	}
	return nil
}

// scaleOfLists reads a multiplier and a shift from lists of one entry, arguments i and
// i+1: a linear layer has one scale.
func scaleOfLists(a kernels.Args, i int) (s scale, err error) {
	for k, dst := range [...]*int32{&s.multiplier, &s.shift} {
		list, lo, hi := a.Ints(i+k), int64(-1<<31), int64(1<<31-1)
		if k == 1 {
			lo, hi = -maxShift, maxShift
		}
		if len(list) != 1 || list[0] < lo || list[0] > hi {
			return s, kernels.Badf(i+k, fmt.Sprintf("one entry in [%d, %d]", lo, hi), "%v", list)
		}
		*dst = int32(list[0])
	}
	return s, nil
}

// Arguments of quantized_batch_matmul.out.
const (
	matmulLeft, matmulRight, matmulZero   = 0, 2, 4
	matmulScale, matmulScratch, matmulOut = 5, 7, 8
)

// batchMatmul is cortex_m::quantized_batch_matmul.out, of [B, M, K] and [B, N, K]: the right
// operand is transposed. Zero points are passed as offsets, their negatives.
func batchMatmul(c *kernels.Ctx, a kernels.Args) error {
	p := kernels.Keep[product](c)
	if err := p.readMatmul(a); err != nil {
		return err
	}
	l, r := a.Tensor(matmulLeft), a.Tensor(matmulRight)
	sizes := [3]int{l.Sizes[0], l.Sizes[1], r.Sizes[1]}
	if _, ok := tensor.Product(sizes[:]); !ok {
		return kernels.Badf(matmulRight, "sizes whose product fits", "%v", r)
	}
	if err := kernels.ResizeOut(a, matmulOut, sizes[:]); err != nil {
		return err
	}
	p.setRows(l.Sizes[0], l.Sizes[1], l.Sizes[2], r.Sizes[1])
	p.input.set(l)
	p.output.set(a.Tensor(matmulOut))
	p.weights.in.set(r)
	p.weights.perImage = true
	return p.begin(c)
}

// readMatmul checks the arguments of a batch of matrix products and reads the parameters.
func (p *product) readMatmul(a kernels.Args) (err error) {
	if err := wantInt8(a, matmulLeft, matmulRight, matmulOut); err != nil {
		return err
	}
	if err := wantBytes(a, matmulScratch); err != nil {
		return err
	}
	l, r := a.Tensor(matmulLeft), a.Tensor(matmulRight)
	if l.Rank() != 3 || l.Sizes[2] == 0 {
		return kernels.Badf(matmulLeft, "[B, M, K], K at least 1", "%v", l)
	}
	if r.Rank() != 3 || r.Sizes[0] != l.Sizes[0] || r.Sizes[2] != l.Sizes[2] {
		return kernels.Badf(matmulRight, fmt.Sprintf("[%d, N, %d]", l.Sizes[0], l.Sizes[2]), "%v", r)
	}
	if p.xOffset, err = within(a, matmulLeft+1, -maxInputOffset, maxInputOffset); err != nil {
		return err
	}
	if p.weights.offset, err = within(a, matmulRight+1, -maxWeightOffset, maxWeightOffset); err != nil {
		return err
	}
	zero, err := zeroPoint(a, matmulZero)
	if err != nil {
		return err
	}
	p.codes.codes = wholeRange(zero)
	p.codes.one, err = scaleOf(a, matmulScale)
	return err
}
