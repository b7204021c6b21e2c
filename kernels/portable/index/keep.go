package index

import (
	"fmt"
	"math"
	"strconv"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/move"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// keep is what an instruction of this package keeps.
type keep struct {
	run  move.Strided
	pick picker
	row  rowWalk
	adv  advanced
	sort sorter

	bucket bucketer
	bags   bags

	sizes, strides, dense [tensor.MaxRank]int
}

func itoa(n int) string { return strconv.Itoa(n) }

// indices gives the elements of argument i, an integer tensor, row by row.
func (k *keep) indices(c *kernels.Ctx, a kernels.Args, i int) ([]int64, error) {
	t := a.Tensor(i)
	if !t.DType.IsInt() {
		return nil, kernels.Bad(i, t.DType.String(), "an integer type")
	}
	return k.integers(c, t), nil
}

// integers gives the elements of an integer tensor row by row.
func (k *keep) integers(c *kernels.Ctx, t *tensor.Tensor) []int64 {
	rows := k.run.Rows(c, t)
	if t.DType == tensor.Int64 {
		return tensor.View[int64](rows)
	}
	wide := kernels.Scratch[int64](c, t.Numel())
	tensor.Loader[int64](t.DType)(wide, rows)
	return wide
}

// checkIndices reports an index of argument i outside [0, n).
func checkIndices(i int, indices []int64, n int) error {
	for _, v := range indices {
		if uint64(v) >= uint64(n) {
			return kernels.Badf(i, "indices in [0, "+itoa(n)+")", "%d", v)
		}
	}
	return nil
}

// broadcast combines the sizes of two arguments in dst; j is the second one's index.
func broadcast(dst []int, x, y []int, j int) ([]int, error) {
	dst, ok := strided.Broadcast(append(dst[:0], x...), y)
	if !ok {
		return nil, kernels.Badf(j, fmt.Sprintf("sizes that broadcast with %v", x), "%v", y)
	}
	return dst, nil
}

// product is the number of elements of sizes that are a tensor's.
func product(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

// modest reports sizes whose elements are a few times those that were given: what
// broadcasts to more is refused, since a small file could ask for any memory.
func modest(sizes []int, given int) bool {
	n, ok := tensor.Product(sizes)
	return ok && n <= 1<<12+16*min(given, math.MaxInt>>13)
}
