package index

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Arguments of searchsorted.
const searchSide, searchSorter, searchOut = 4, 5, 6

// searchSorted runs (Tensor sorted_sequence, Tensor or Scalar self, *, bool out_int32, bool right, str? side,
// Tensor? sorter, out): the buckets of values among the boundaries of their own row, or of the only row.
func searchSorted(c *kernels.Ctx, a kernels.Args) error {
	b := &kernels.Keep[state](c).bucket
	edges, out, sizes := a.Tensor(0), a.Tensor(searchOut), []int(nil)
	if a[1].Kind == tensor.KindTensor {
		sizes = a.Tensor(1).Sizes
	}
	if err := b.rows(edges, sizes); err != nil {
		return err
	}
	if err := b.direction(a); err != nil {
		return err
	}
	b.narrow = a.Bool(2)
	common, err := b.set(a, 1, 0, searchOut)
	if err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, searchOut, sizes); err != nil {
		return err
	}
	b.edges = b.compared(c, edges, common)
	b.rowSize = 0
	if r := edges.Rank(); r > 0 {
		b.rowSize = edges.Sizes[r-1] * b.compute.Size()
	}
	if err := b.sortEdges(c, a); err != nil {
		return err
	}
	b.search(c, a, 1, common, out)
	return nil
}

// rows finds how many values belong to each row of boundaries.
func (b *bucketer) rows(edges *tensor.Tensor, values []int) error {
	b.row = 0
	r := edges.Rank()
	switch {
	case r == 1:
		return nil
	case r == 0 || r != len(values) || !slices.Equal(edges.Sizes[:r-1], values[:r-1]):
		return kernels.Badf(0, "1 dimension, or the sizes of the values but for the last one", "%v for values %v", edges, values)
	}
	b.row = values[r-1]
	return nil
}

// direction reads right and side, which must agree.
func (b *bucketer) direction(a kernels.Args) error {
	side := a.Str(searchSide)
	switch {
	case a.IsNone(searchSide):
	case side != "left" && side != "right":
		return kernels.Badf(searchSide, "left or right", "%q", side)
	case side == "left" && a.Bool(3):
		return kernels.Badf(searchSide, "right, as the argument right", "%q", side)
	}
	b.right = a.Bool(3) || side == "right"
	return nil
}

// sortEdges puts the boundaries in the order of the argument sorter, indices within each row.
func (b *bucketer) sortEdges(c *kernels.Ctx, a kernels.Args) error {
	sorter, edges := a.OptTensor(searchSorter), a.Tensor(0)
	if sorter == nil {
		return nil
	}
	if err := kernels.WantDType(searchSorter, sorter, tensor.Int64); err != nil {
		return err
	}
	if !slices.Equal(sorter.Sizes, edges.Sizes) {
		return kernels.Badf(searchSorter, "the sizes of the boundaries, "+edges.String(), "%v", sorter)
	}
	n := edges.Sizes[edges.Rank()-1]
	order := operand.In[int64](c, sorter)
	if err := checkIndices(searchSorter, order, n); err != nil {
		return err
	}
	elem := b.compute.Size()
	sorted := kernels.Scratch[uint8](c, len(b.edges))
	for i, at := range order {
		copy(sorted[i*elem:][:elem], b.edges[(i/n*n+int(at))*elem:])
	}
	b.edges = sorted
	return nil
}
