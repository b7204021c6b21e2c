package index

import (
	"fmt"
	"math"
	"strconv"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// state is the state of an instruction.
type state struct {
	gather gatherPlan
	row    rowWalk
	adv    advanced
	sort   sorter
	rank   ranker
	fold   fold

	bucket bucketer
	bags   bags

	strides [tensor.MaxRank]int // of the source of a scatter
}

func itoa(n int) string { return strconv.Itoa(n) }

// indices returns the elements of argument i, an integer tensor, in logical order.
func indices(c *kernels.Ctx, a kernels.Args, i int) ([]int64, error) {
	t := a.Tensor(i)
	if !t.DType.IsInt() {
		return nil, kernels.Bad(i, t.DType.String(), "an integer type")
	}
	return operand.In[int64](c, t), nil
}

// checkIndices returns an error for argument i if an index is outside [0, n).
func checkIndices(i int, indices []int64, n int) error {
	for _, v := range indices {
		if uint64(v) >= uint64(n) {
			return kernels.Badf(i, "%d", "indices in [0, "+itoa(n)+")", v)
		}
	}
	return nil
}

// broadcast combines the sizes of two arguments in dst. j is the index of the second one.
func broadcast(dst []int, x, y []int, j int) ([]int, error) {
	dst, ok := strided.Broadcast(append(dst[:0], x...), y)
	if !ok {
		return nil, kernels.Badf(j, "%v", fmt.Sprintf("sizes that broadcast with %v", x), y)
	}
	return dst, nil
}

// product returns the number of elements of a tensor's sizes.
func product(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

// isBounded reports whether sizes have at most a few times the given number of elements. Larger broadcasts are errors,
// since a small file could request any amount of memory.
func isBounded(sizes []int, given int) bool {
	n, ok := tensor.Product(sizes)
	return ok && n <= 1<<12+16*min(given, math.MaxInt>>13)
}
