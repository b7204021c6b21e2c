package index

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// resolve reads indices, the list that is argument 1, for the tensor that is
// argument 0: masks become the indices of their true elements, indices broadcast,
// negative ones count from the end. Indices are then within the tensor.
func (k *state) resolve(c *kernels.Ctx, a kernels.Args) error {
	v := &k.adv
	v.n, v.rank = 0, 0
	self, d := a.Tensor(0), 0
	for _, t := range a.Tensors(1) {
		var err error
		switch {
		case t == nil:
			d++
		case t.DType == tensor.Bool || t.DType == tensor.Uint8:
			d, err = k.addMask(c, self, t, d)
		default:
			d, err = k.addIndex(c, self, t, d)
		}
		if err != nil {
			return err
		}
		if d > self.Rank() {
			return kernels.Badf(1, "indices for at most "+itoa(self.Rank())+" dimensions", "%d", d)
		}
	}
	if v.n == 0 {
		return kernels.Bad(1, "no index", "an index for at least one dimension")
	}
	if err := v.broadcast(); err != nil {
		return err
	}
	v.layOut(self)
	return v.check(self)
}

// addIndex adds an integer tensor as the indices of dimension d.
func (k *state) addIndex(c *kernels.Ctx, self, t *tensor.Tensor, d int) (next int, err error) {
	if t.DType != tensor.Int64 && t.DType != tensor.Int32 {
		return 0, kernels.Bad(1, t.DType.String(), "int64, int32, bool or uint8 indices")
	}
	if d < self.Rank() {
		k.adv.add(d, operand.In[int64](c, t), t.Sizes)
	}
	return d + 1, nil
}

// addMask adds the indices of a mask's true elements for as many dimensions as the mask has, from d.
func (k *state) addMask(c *kernels.Ctx, self, mask *tensor.Tensor, d int) (next int, err error) {
	rank := mask.Rank()
	if rank == 0 || d+rank > self.Rank() || !slices.Equal(mask.Sizes, self.Sizes[d:d+rank]) {
		return 0, kernels.Badf(1, "a mask of the sizes of "+self.String(), "%v at dimension %d", mask, d)
	}
	truth := operand.Rows(c, mask)
	n := countTrue(truth)
	found := kernels.Scratch[int64](c, n*rank)
	writeIndices(c, found, truth, mask.Sizes)
	for i := range rank {
		column := kernels.Scratch[int64](c, n)
		for j := range column {
			column[j] = found[j*rank+i]
		}
		count := &k.adv.counts[d+i]
		count[0] = n
		k.adv.add(d+i, column, count[:])
	}
	return d + rank, nil
}

func (v *advanced) add(d int, indices []int64, shape []int) {
	v.dims[v.n], v.indices[v.n], v.shapes[v.n] = d, indices, shape
	v.n++
}

// broadcast finds the sizes that all indices have in common.
func (v *advanced) broadcast() error {
	for _, shape := range v.shapes[:v.n] {
		var buf [tensor.MaxRank]int
		sizes, err := broadcast(buf[:], v.common[:v.rank], shape, 1)
		if err != nil {
			return err
		}
		v.rank = copy(v.common[:], sizes)
	}
	return nil
}

// layOut computes the result's sizes. The indices' sizes replace adjacent indexed dimensions; if the dimensions are
// not adjacent, they come first.
func (v *advanced) layOut(self *tensor.Tensor) {
	first, last := v.dims[0], v.dims[v.n-1]
	sizes := v.sizes[:0]
	if v.adjacent() {
		sizes = append(sizes, self.Sizes[:first]...)
		sizes = append(sizes, v.common[:v.rank]...)
	} else {
		sizes = append(sizes, v.common[:v.rank]...)
		sizes = v.restSizes(sizes, self.Sizes[:last])
	}
	v.total = len(append(sizes, self.Sizes[last+1:]...))
}

func (v *advanced) adjacent() bool { return v.dims[v.n-1]-v.dims[0]+1 == v.n }

// check returns an error for an index outside its dimension.
func (v *advanced) check(self *tensor.Tensor) error {
	for i, indices := range v.indices[:v.n] {
		n := self.Sizes[v.dims[i]]
		for _, x := range indices {
			if x < -int64(n) || x >= int64(n) {
				return kernels.Badf(1, "indices in [-"+itoa(n)+", "+itoa(n)+") for dimension "+itoa(v.dims[i]), "%d", x)
			}
		}
	}
	return nil
}

// planGather sets the gather plan for a contiguous tensor of self's sizes. The indexed result is not empty and fits memory.
func (k *state) planGather(c *kernels.Ctx, self *tensor.Tensor) {
	v := &k.adv
	first, last := v.dims[0], v.dims[v.n-1]
	k.gather = gatherPlan{outer: 1, rest: noRest, run: product(self.Sizes[last+1:])}
	if v.adjacent() {
		k.gather.outer, k.gather.stride = product(self.Sizes[:first]), product(self.Sizes[first:])
	} else {
		k.gather.rest = v.restOffsets(c, self, v.sizes[v.rank:v.total-(self.Rank()-1-last)])
	}
	k.addOffsets(c, self)
}

// restSizes appends the sizes of the dimensions that are not indexed.
func (v *advanced) restSizes(dst, sizes []int) []int {
	for d, n := range sizes {
		if !slices.Contains(v.dims[:v.n], d) {
			dst = append(dst, n)
		}
	}
	return dst
}

// restOffsets returns the offsets of the dimensions that are not indexed, except those after the last index.
func (v *advanced) restOffsets(c *kernels.Ctx, self *tensor.Tensor, rest []int) []int64 {
	places := kernels.Scratch[int64](c, product(rest))
	places[0] = 0
	filled, i := 1, len(rest)-1
	stride := product(self.Sizes[v.dims[v.n-1]:])
	for d := v.dims[v.n-1] - 1; d >= 0; d-- {
		if !slices.Contains(v.dims[:v.n], d) {
			filled = repeatOffsets(places, filled, rest[i], int64(stride))
			i--
		}
		stride *= self.Sizes[d]
	}
	return places
}

// repeatOffsets repeats the first filled places n times, each time stride further on.
func repeatOffsets(places []int64, filled, n int, stride int64) int {
	for j := filled; j < filled*n; j++ {
		places[j] = places[j-filled] + stride
	}
	return filled * n
}

// addOffsets computes the offset of each index of the common sizes.
func (k *state) addOffsets(c *kernels.Ctx, self *tensor.Tensor) {
	v := &k.adv
	common := v.common[:v.rank]
	k.gather.offsets = kernels.Scratch[int64](c, product(common))
	clear(k.gather.offsets)
	for i, indices := range v.indices[:v.n] {
		n, stride := int64(self.Sizes[v.dims[i]]), int64(product(self.Sizes[v.dims[i]+1:]))
		for j, x := range expandIndices(c, indices, v.shapes[i], common) {
			k.gather.offsets[j] += fromStart(x, n) * stride
		}
		v.indices[i] = nil
	}
}

// expandIndices broadcasts indices of the given shape to sizes.
func expandIndices(c *kernels.Ctx, indices []int64, shape, sizes []int) []int64 {
	n := product(sizes)
	if len(indices) == n {
		return indices
	}
	expanded := kernels.Scratch[int64](c, n)
	var src, dst strided.View
	src.Dense(tensor.BytesOf(indices), 8, shape)
	src.Expand(sizes)
	dst.Dense(tensor.BytesOf(expanded), 8, sizes)
	strided.CopyView(c, &dst, &src)
	return expanded
}

// fromStart counts an index of n from the start.
func fromStart(x, n int64) int64 {
	if x < 0 {
		return x + n
	}
	return x
}

// indexTensor is aten::index.Tensor.
func indexTensor(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	if err := k.resolve(c, a); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, 2, k.adv.sizes[:k.adv.total]); err != nil {
		return err
	}
	if a.Tensor(2).Numel() > 0 {
		k.planGather(c, a.Tensor(0))
		k.takeInto(c, a.Tensor(2), a.Tensor(0))
	}
	return nil
}

// indexPut is aten::index_put and aten::index_put_: self, in the out or in place, with values at the indexed elements.
func indexPut(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	self, out := a.Tensor(0), a.Tensor(0)
	values, err := k.values(c, a)
	if err != nil {
		return err
	}
	if len(a) > 5 {
		out = a.Tensor(4)
		if err := kernels.ResizeOut(a, 4, self.Sizes); err != nil {
			return err
		}
	}
	rows := operand.OutRows(c, out)
	if out != self || !self.IsContiguous() {
		operand.Broadcast(c, rows, self, self.Sizes)
	}
	k.write(c, a, rows, values)
	operand.StoreRows(c, out, rows)
	return nil
}

// values resolves the indices and returns values, argument 2, in logical order, expanded to the sizes of the indexed
// result.
func (k *state) values(c *kernels.Ctx, a kernels.Args) ([]byte, error) {
	self, values := a.Tensor(0), a.Tensor(2)
	if _, ok := tensor.ComputeType(self.DType); a.Bool(3) && !ok {
		return nil, kernels.Bad(0, self.DType.String(), "a real type that operators compute on")
	}
	if err := k.resolve(c, a); err != nil {
		return nil, err
	}
	sizes := k.adv.sizes[:k.adv.total]
	if len(sizes) > tensor.MaxRank || !strided.BroadcastsTo(values.Sizes, sizes) {
		return nil, kernels.Badf(2, "sizes that broadcast to the indexed part's", "%v", values)
	}
	given := self.Numel() + values.Numel()
	for _, indices := range k.adv.indices[:k.adv.n] {
		given += len(indices)
	}
	if !isBounded(sizes, given) {
		return nil, kernels.Badf(1, "indices that broadcast to a few times the elements given", "sizes %v", k.adv.common[:k.adv.rank])
	}
	return operand.Expand(c, values, sizes), nil
}

// write stores values in the rows of the table or, if argument 3 is true, adds them.
func (k *state) write(c *kernels.Ctx, a kernels.Args, rows, values []byte) {
	if len(values) == 0 {
		return
	}
	k.planGather(c, a.Tensor(0))
	if d := a.Tensor(0).DType; a.Bool(3) {
		operand.ByCompute(d, addGathered[float32], addGathered[float64], addGathered[int64])(k, c, d, rows, values)
	} else {
		k.gather.put(c, d.Size(), rows, values)
	}
	k.gather.offsets, k.gather.rest = nil, nil
}

func addGathered[C tensor.Compute](k *state, c *kernels.Ctx, d tensor.DType, table, dense []byte) {
	accumulate(c, d, table, dense, func(sums, x []C) { add(c, &k.gather, sums, x) })
}
