package reduce

import (
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
)

// exponentials sums e^(x - shift); its chunks are summed.
var exponentials = fold[float64]{row: exponentialRow, cols: exponentialCols, join: &sum64}

func exponentialRow(acc float64, x []float64, shift float64) float64 {
	for _, v := range x {
		acc += math.Exp(v - shift)
	}
	return acc
}

func exponentialCols(acc, x, shift []float64) {
	x, shift = x[:len(acc)], shift[:len(acc)]
	for i := range acc {
		acc[i] += math.Exp(x[i] - shift[i])
	}
}

// logSumExp is aten::logsumexp: log Σ e^x in float64. The greatest element, unless it is infinite, is subtracted so
// that no power overflows.
func logSumExp(c *kernels.Ctx, a kernels.Args) error {
	self, out := a.Tensor(0), a.Tensor(3)
	d, err := readDims(a, 3)
	if err != nil {
		return err
	}
	s, from, err := d.inFloat64(c, a, 3)
	if err != nil {
		return err
	}
	greatest := s.stage.results(c, &max64, s.plan.layout, from)
	for i, v := range greatest {
		if math.IsInf(v, 0) {
			greatest[i] = 0
		}
	}
	s.stage.shift = greatest
	sums := s.stage.results(c, &exponentials, s.plan.layout, from)
	for i, v := range sums {
		sums[i] = math.Log(v) + greatest[i]
	}
	s.plan.write(c, out, self, d.set, operand.Bytes(c, out.DType, sums))
	return nil
}
