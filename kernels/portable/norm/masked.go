package norm

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// maskedRows is the state of a call of zeroMaskedRows. A row is the bytes along the last dimension.
type maskedRows struct {
	dst, src, scores []byte
	row, size        int
	inf              [1]float64
	minusInf         [8]byte // the bytes of an element that is -∞
}

// zeroMaskedRows is etrun::zero_masked_rows.out: rows of self along the last dimension, but zeros where every score of the
// row is -∞. Their softmax is NaN; exporters replace it by zeros in six steps, which lowering replaces by this one.
func zeroMaskedRows(c *kernels.Ctx, a kernels.Args) error {
	x, scores, out := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	if err := floating(a, 0, 1, 2); err != nil {
		return err
	}
	if !slices.Equal(x.Sizes, scores.Sizes) || x.Rank() == 0 {
		return kernels.Badf(1, fmt.Sprintf("the sizes of self, %v, with a last dimension", x.Sizes), "%v", scores.Sizes)
	}
	if err := kernels.ResizeOut(a, 2, x.Sizes); err != nil {
		return err
	}
	for i := range 3 {
		if t := a.Tensor(i); !t.IsContiguous() {
			return kernels.Badf(i, "a contiguous tensor", "dim order %v", t.DimOrder)
		}
	}
	if out.Numel() == 0 {
		return nil
	}
	p := kernels.Keep[maskedRows](c)
	p.dst, p.src, p.scores, p.size = out.Data, x.Data, scores.Data, x.DType.Size()
	p.row = p.size * x.Sizes[x.Rank()-1]
	p.inf[0] = math.Inf(-1)
	tensor.Storer[float64](x.DType)(p.minusInf[:p.size], p.inf[:])
	c.Parallel(out.Numel()*p.size/p.row, cpu.Grain(p.row, byteCost), p)
	p.dst, p.src, p.scores = nil, nil, nil
	return nil
}

// byteCost is the cost of a byte that is copied, in picoseconds.
const byteCost = 100

// Range computes rows [lo, hi).
func (p *maskedRows) Range(_, lo, hi int) {
	for at := lo * p.row; at < hi*p.row; at += p.row {
		if dst := p.dst[at : at+p.row]; p.isMasked(p.scores[at : at+p.row]) {
			clear(dst)
		} else {
			copy(dst, p.src[at:at+p.row])
		}
	}
}

// isMasked reports whether all elements of a row are -∞: the first one is, and each is the one before.
func (p *maskedRows) isMasked(row []byte) bool {
	return bytes.Equal(row[:p.size], p.minusInf[:p.size]) && bytes.Equal(row[p.size:], row[:len(row)-p.size])
}
