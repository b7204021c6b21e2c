package index

import (
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// set prepares for indices of the given sizes along dimension d of a table.
func (w *rowWalk) set(sizes, table []int, d int) {
	w.rank, w.n, w.next, w.step = len(sizes)-1, 1, 0, 1
	stride := 1
	for i := len(sizes) - 1; i >= 0; i-- {
		w.sizes[i], w.strides[i] = sizes[i], stride
		if i == d {
			w.strides[i], w.step = 0, stride
		}
		stride *= table[i]
	}
	if len(sizes) > 0 {
		w.n, w.next = sizes[w.rank], w.strides[w.rank]
	}
}

// start returns the start of row r in the table, and in an array of the given strides.
func (w *rowWalk) start(r int, strides []int) (base, with int) {
	for i := w.rank - 1; i >= 0; i-- {
		base += r % w.sizes[i] * w.strides[i]
		with += r % w.sizes[i] * strides[i]
		r /= w.sizes[i]
	}
	return base, with
}

func (w *rowWalk) rows() int {
	if w.n == 0 {
		return 0
	}
	return len(w.indices) / w.n
}

// Range gathers rows lo to hi into dense.
func (w *rowWalk) Range(_, lo, hi int) {
	strided.BySize(w.elem, gatherRows[uint8], gatherRows[uint16], gatherRows[uint32], gatherRows[uint64], gatherRows[complex128])(w, lo, hi)
}

func gatherRows[T tensor.Element](w *rowWalk, lo, hi int) {
	dense, table := tensor.View[T](w.dense), tensor.View[T](w.table)
	for r := lo; r < hi; r++ {
		at, _ := w.start(r, w.strides[:])
		row := dense[r*w.n:][:w.n]
		for indices := range slices.Chunk(w.indices[r*w.n:][:w.n], kernels.PollBlock) {
			if len(indices) == kernels.PollBlock {
				w.c.Poll()
			}
			for i, v := range indices {
				row[i] = table[at+int(v)*w.step+i*w.next]
			}
			row, at = row[len(indices):], at+len(indices)*w.next
		}
	}
}

// eachRow calls f for each row of indices: they name elements of the table from base
// on, and go with those from with on in an array of the given strides.
func (w *rowWalk) eachRow(strides []int, each int, f func(indices []int64, base, with int)) {
	poll := w.c.Poller()
	for r := range w.rows() {
		base, with := w.start(r, strides)
		for indices := range slices.Chunk(w.indices[r*w.n:][:w.n], kernels.PollBlock) {
			f(indices, base, with)
			base, with = base+len(indices)*w.next, with+len(indices)*each
			poll.Done(len(indices))
		}
	}
}

// scatterRows writes elements of src, whose strides are given, to the table; src with
// one element, and strides of 0, is written everywhere.
func (w *rowWalk) scatterRows(elem int, table, src []byte, strides []int, each int) {
	f := strided.BySize(elem, scatterOf[uint8], scatterOf[uint16], scatterOf[uint32], scatterOf[uint64], scatterOf[complex128])
	f(w, table, src, strides, each)
}

func scatterOf[T tensor.Element](w *rowWalk, table, src []byte, strides []int, each int) {
	t, s := tensor.View[T](table), tensor.View[T](src)
	w.eachRow(strides, each, func(indices []int64, base, with int) {
		step, next := w.step, w.next
		for _, v := range indices {
			t[base+int(v)*step] = s[with]
			base += next
			with += each
		}
	})
}

// gather is aten::gather: out[i][j] = self[index[i][j]][j] for dim 0.
func gather(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	self, index, out := a.Tensor(0), a.Tensor(2), a.Tensor(4)
	if err := k.along(c, a); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, 4, index.Sizes); err != nil {
		return err
	}
	rows := operand.OutRows(c, out)
	k.row.elem, k.row.dense, k.row.table = self.DType.Size(), rows, operand.Rows(c, self)
	c.Parallel(k.row.rows(), cpu.Grain(k.row.n, 1200), &k.row)
	k.row.indices, k.row.dense, k.row.table = nil, nil, nil
	operand.StoreRows(c, out, rows)
	return nil
}

// along resolves dim, argument 1, and index, argument 2, for a table with the sizes
// of argument 0: index is no larger than that but along dim.
func (k *state) along(c *kernels.Ctx, a kernels.Args) error {
	self, index := a.Tensor(0), a.Tensor(2)
	d, err := kernels.WrapDim(1, a.Int(1), self.Rank())
	if err != nil {
		return err
	}
	indices, err := indices(c, a, 2)
	if err != nil {
		return err
	}
	if max(index.Rank(), 1) != max(self.Rank(), 1) {
		return kernels.Badf(2, "as many dimensions as self, "+itoa(self.Rank()), "%d", index.Rank())
	}
	n := 1
	if self.Rank() > 0 {
		n = self.Sizes[d]
	}
	for i := range min(self.Rank(), index.Rank()) {
		if i != d && index.Sizes[i] > self.Sizes[i] && len(indices) > 0 {
			return kernels.Badf(2, "sizes within "+self.String(), "%v", index)
		}
	}
	k.row.indices, k.row.c = indices, c
	if index.Rank() == 0 || self.Rank() == 0 {
		k.row.set([]int{len(indices)}, []int{n}, 0)
	} else {
		k.row.set(index.Sizes, self.Sizes, d)
	}
	return checkIndices(2, indices, n)
}

// scatter copies argument 0 to the out and then elements of src, each apart, to the elements that index
// refers to. If add is not nil, it adds them.
func (k *state) scatter(c *kernels.Ctx, a kernels.Args, src []byte, each int, add accumulator) error {
	o := len(a) - 2
	self, out := a.Tensor(0), a.Tensor(o)
	if err := k.along(c, a); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, o, self.Sizes); err != nil {
		return err
	}
	rows := operand.OutRows(c, out)
	operand.Broadcast(c, rows, self, self.Sizes)
	if add != nil {
		add(k, c, self.DType, rows, src)
	} else {
		k.row.scatterRows(self.DType.Size(), rows, src, k.strides[:], each)
	}
	operand.StoreRows(c, out, rows)
	return nil
}

// source checks src, argument 3 of a scatter: at least as large as index.
func (k *state) source(c *kernels.Ctx, a kernels.Args) (rows []byte, err error) {
	index, src := a.Tensor(2), a.Tensor(3)
	if max(index.Rank(), 1) != max(src.Rank(), 1) {
		return nil, kernels.Badf(3, "as many dimensions as index, "+itoa(index.Rank()), "%d", src.Rank())
	}
	if n := index.Numel(); n > src.Numel() {
		return nil, kernels.Badf(3, "at least the sizes of index, "+index.String(), "%v", src)
	}
	for d := range min(src.Rank(), index.Rank()) {
		if index.Numel() > 0 && index.Sizes[d] > src.Sizes[d] {
			return nil, kernels.Badf(3, "at least the sizes of index, "+index.String(), "%v", src)
		}
	}
	strided.DenseStrides(k.strides[:], src.Sizes)
	return operand.Rows(c, src), nil
}

// scatterSrc is aten::scatter.src: out[index[i][j]][j] = src[i][j] for dim 0, self elsewhere; of equal indices the last
// one wins.
func scatterSrc(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	src, err := k.source(c, a)
	if err != nil {
		return err
	}
	return k.scatter(c, a, src, 1, nil)
}

// scatterValue is aten::scatter.value: scatter.src of one number.
func scatterValue(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	one, err := k.number(c, a)
	if err != nil {
		return err
	}
	return k.scatter(c, a, one, 0, nil)
}

// number returns argument 3 of a scatter, a number, as an element of self's type. It is the source everywhere.
func (k *state) number(c *kernels.Ctx, a kernels.Args) ([]byte, error) {
	self, value := a.Tensor(0), a.Scalar(3)
	if err := kernels.CheckFits(3, value, self.DType); err != nil {
		return nil, err
	}
	one := kernels.Scratch[uint8](c, self.DType.Size())
	if !value.Put(one, self.DType) {
		return nil, kernels.Bad(0, self.DType.String(), "a type that operators compute on")
	}
	clear(k.strides[:])
	return one, nil
}

// scatterAdd is aten::scatter_add: out[index[i][j]][j] += src[i][j] for dim 0.
func scatterAdd(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	add := operand.ByCompute(a.Tensor(0).DType, addAlong[float32], addAlong[float64], addAlong[int64])
	if add == nil {
		return kernels.Bad(0, a.Tensor(0).DType.String(), "a real type that operators compute on")
	}
	src, err := k.source(c, a)
	if err != nil {
		return err
	}
	return k.scatter(c, a, src, 1, add)
}

func addAlong[C tensor.Compute](k *state, c *kernels.Ctx, d tensor.DType, table, dense []byte) {
	accumulate(c, d, table, dense, func(sums, x []C) {
		k.row.eachRow(k.strides[:], 1, func(indices []int64, base, with int) {
			step, next := k.row.step, k.row.next
			for i, v := range indices {
				sums[base+int(v)*step+i*next] += x[with+i]
			}
		})
	})
}
