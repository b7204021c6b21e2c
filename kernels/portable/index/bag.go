package index

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Modes of reduction.
const (
	bagSum = iota
	bagMean
	bagMax
)

// Arguments of _embedding_bag.
const (
	bagIndices, bagOffsets, bagMode, bagWeights, bagLast, bagPadding = 1, 2, 4, 6, 7, 8

	bagOut = 9 // the first of the four
)

// embeddingBag runs (Tensor weight, Tensor indices, Tensor offsets, bool
// scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool
// include_last_offset, int padding_idx, *, out0 … out3).
func embeddingBag(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	b := &k.bags
	if err := b.check(a); err != nil {
		return err
	}
	if err := k.readBags(c, a); err != nil {
		return err
	}
	if err := b.resize(a); err != nil {
		return err
	}
	weight, out := a.Tensor(0), a.Tensor(bagOut)
	n := len(b.sizes)
	b.rows, b.c = operand.Rows(c, weight), c
	rows := operand.OutRows(c, out)
	b.reduced, b.loaded, b.sources = rows, nil, nil
	if b.mode == bagMax {
		b.sources = kernels.Scratch[int64](c, n*b.dim)
	}
	if b.table != b.compute && n*b.dim > 0 {
		b.reduced = kernels.Scratch[uint8](c, n*b.dim*b.compute.Size())
		b.loaded = kernels.Scratch[uint8](c, c.Threads()*b.dim*b.compute.Size())
	}
	c.Parallel(n, cpu.Grain(len(b.indices)*b.dim/max(n, 1), 2400), b)
	if b.table != b.compute {
		tensor.CastBytes(rows, b.table, b.reduced, b.compute, n*b.dim)
	}
	operand.StoreRows(c, out, rows)
	k.writeIndices(c, a)
	b.drop()
	return nil
}

// check checks the types, ranks and modes.
func (b *bags) check(a kernels.Args) error {
	weight, indices, offsets := a.Tensor(0), a.Tensor(bagIndices), a.Tensor(bagOffsets)
	b.mode, b.padding = a.Int(bagMode), a.Int(bagPadding)
	switch {
	case weight.Rank() != 2:
		return kernels.Badf(0, "2 dimensions", "%d", weight.Rank())
	case indices.Rank() != 1:
		return kernels.Badf(bagIndices, "1 dimension", "%d", indices.Rank())
	case offsets.Rank() != 1:
		return kernels.Badf(bagOffsets, "1 dimension", "%d", offsets.Rank())
	case b.mode < bagSum || b.mode > bagMax:
		return kernels.Badf(bagMode, "0 (sum), 1 (mean) or 2 (max)", "%d", b.mode)
	case !weight.DType.IsFloat():
		return kernels.Bad(0, weight.DType.String(), "a float type")
	}
	compute, ok := tensor.ComputeType(weight.DType)
	if !ok {
		return kernels.Bad(0, weight.DType.String(), "a type that operators compute on")
	}
	if err := kernels.WantDType(bagOut, a.Tensor(bagOut), weight.DType); err != nil {
		return err
	}
	b.table, b.compute, b.dim = weight.DType, compute, weight.Sizes[1]
	integer := tensor.Int32
	if indices.DType != tensor.Int32 || offsets.DType != tensor.Int32 {
		integer = tensor.Int64
	}
	for i := bagOut + 1; i < bagOut+4; i++ {
		if err := kernels.WantDType(i, a.Tensor(i), integer); err != nil {
			return err
		}
	}
	return b.checkFactors(a)
}

// checkFactors checks per_sample_weights.
func (b *bags) checkFactors(a kernels.Args) error {
	t := a.OptTensor(bagWeights)
	switch {
	case t == nil:
		return nil
	case b.mode != bagSum:
		return kernels.Badf(bagWeights, "none but for a sum", "weights for mode %d", b.mode)
	case t.Rank() != 1 || t.Numel() != a.Tensor(bagIndices).Numel():
		return kernels.Badf(bagWeights, "one for each index", "sizes %v", t.Sizes)
	}
	return kernels.WantDType(bagWeights, t, b.table)
}

// readBags reads indices, offsets and factors.
func (k *state) readBags(c *kernels.Ctx, a kernels.Args) (err error) {
	b := &k.bags
	if b.indices, err = indices(c, a, bagIndices); err != nil {
		return err
	}
	if err := checkIndices(bagIndices, b.indices, a.Tensor(0).Sizes[0]); err != nil {
		return err
	}
	offsets, err := indices(c, a, bagOffsets)
	if err != nil {
		return err
	}
	n := len(offsets)
	if a.Bool(bagLast) {
		if n--; n < 0 {
			return kernels.Bad(bagOffsets, "none", "at least the last offset")
		}
	}
	from := int64(0)
	for i, v := range offsets {
		if v < from || v > int64(len(b.indices)) || i == 0 && v != 0 {
			return kernels.Badf(bagOffsets, "offsets from 0 that rise to at most "+itoa(len(b.indices)), "%d", v)
		}
		from = v
	}
	b.offsets = kernels.Scratch[int64](c, n+1)
	copy(b.offsets, offsets[:n])
	b.offsets[n] = int64(len(b.indices))
	b.sizes, b.factors = kernels.Scratch[int64](c, n), nil
	if t := a.OptTensor(bagWeights); t != nil {
		b.factors = operand.Convert(c, operand.Rows(c, t), b.table, b.compute)
	}
	return nil
}

// resize resizes the outs. Versions of ATen differ in the sizes of those that nothing uses: a sum without padding may omit
// the bags of indices, and with a last offset there may be as many sizes, and as many rows of a sum or mean, as offsets. The
// capacity of each out decides for that out.
func (b *bags) resize(a kernels.Args) error {
	n := len(b.sizes)
	mapped := len(b.indices)
	if b.mode == bagSum && b.padding < 0 && a.Tensor(bagOut+1).Capacity() == 0 {
		mapped = 0
	}
	perBag := func(out int) int {
		if a.Bool(bagLast) && a.Tensor(out).Capacity() > n {
			return n + 1
		}
		return n
	}
	var buf [2]int
	sources := append(buf[:0], n, b.dim)
	if b.mode != bagMax {
		sources = append(buf[:0], perBag(bagOut+3))
	}
	for i, sizes := range [...][]int{{n, b.dim}, {mapped}, {perBag(bagOut + 2)}, sources} {
		if err := kernels.ResizeOut(a, bagOut+i, sizes); err != nil {
			return err
		}
	}
	return nil
}

// Range reduces bags lo to hi.
func (b *bags) Range(worker, lo, hi int) {
	operand.ByType(b.compute, reduceBags32, reduceBags64, nil)(b, worker, lo, hi)
}

func reduceBags32(b *bags, worker, lo, hi int) { reduceBags(b, worker, lo, hi, addScaled32) }
func reduceBags64(b *bags, worker, lo, hi int) { reduceBags(b, worker, lo, hi, addScaled64) }

func addScaled32(sum, row []float32, factor float32) {
	if factor == 1 {
		simd.Add(sum, sum, row)
	} else {
		simd.AddScaled(sum, sum, row, factor)
	}
}

func addScaled64(sum, row []float64, factor float64) {
	for i, v := range row {
		sum[i] += v * factor
	}
}

func reduceBags[C float32 | float64](b *bags, worker, lo, hi int, add func(sum, row []C, factor C)) {
	poll := b.c.Poller()
	for bag := lo; bag < hi; bag++ {
		out := tensor.View[C](b.reduced)[bag*b.dim:][:b.dim]
		clear(out)
		if b.mode == bagMax {
			clear(b.sources[bag*b.dim:][:b.dim])
		}
		count := 0
		for i := b.offsets[bag]; i < b.offsets[bag+1]; i++ {
			index := b.indices[i]
			poll.Done(1 + b.dim)
			if index == b.padding {
				continue
			}
			row := rowOf[C](b, worker, index)
			switch {
			case b.mode == bagMax:
				takeLarger(b, bag, out, row, index, count == 0)
			case b.factors != nil:
				add(out, row, tensor.View[C](b.factors)[i])
			default:
				add(out, row, 1)
			}
			count++
		}
		if b.mode == bagMean && count > 1 {
			for i := range out {
				out[i] /= C(count)
			}
		}
		b.sizes[bag] = int64(count)
	}
}

// rowOf returns a row of the table as the compute type.
func rowOf[C float32 | float64](b *bags, worker int, index int64) []C {
	size := b.table.Size() * b.dim
	row := b.rows[int(index)*size:][:size]
	if b.loaded == nil {
		return tensor.View[C](row)
	}
	loaded := tensor.View[C](b.loaded)[worker*b.dim:][:b.dim]
	tensor.Loader[C](b.table)(loaded, row)
	return loaded
}

// takeLarger stores the larger elements and their row indices. A NaN stays if it came first, and is ignored later, as
// in ATen.
func takeLarger[C float32 | float64](b *bags, bag int, out, row []C, index int64, first bool) {
	sources := b.sources[bag*b.dim:][:b.dim]
	for i, v := range row {
		if first || v > out[i] {
			out[i], sources[i] = v, index
		}
	}
}

// writeIndices writes the integer outs. As in ATen, the sizes of a sum are 0, and so are the row indices unless the
// mode is max.
func (k *state) writeIndices(c *kernels.Ctx, a kernels.Args) {
	b := &k.bags
	if n := a.Tensor(bagOut + 1).Numel(); n > 0 {
		mapped := kernels.Scratch[int64](c, n)
		clear(mapped) // there may be no bag
		for bag := range b.sizes {
			for i := b.offsets[bag]; i < b.offsets[bag+1]; i++ {
				mapped[i] = int64(bag)
			}
		}
		k.putIntegers(c, a.Tensor(bagOut+1), mapped)
	}
	if b.mode == bagSum {
		clear(b.sizes)
	}
	k.putIntegers(c, a.Tensor(bagOut+2), b.sizes)
	if b.mode != bagMax {
		b.sources = b.sizes
	}
	k.putIntegers(c, a.Tensor(bagOut+3), b.sources)
}

// putIntegers writes a tensor of integers in logical order; missing elements are 0.
func (k *state) putIntegers(c *kernels.Ctx, t *tensor.Tensor, from []int64) {
	rows := operand.OutRows(c, t)
	tensor.CastBytes(rows, t.DType, tensor.BytesOf(from), tensor.Int64, len(from))
	clear(rows[len(from)*t.DType.Size():])
	operand.StoreRows(c, t, rows)
}

// drop lets go of the arguments' bytes.
func (b *bags) drop() {
	b.indices, b.offsets, b.rows, b.factors, b.loaded, b.reduced, b.sizes, b.sources = nil, nil, nil, nil, nil, nil, nil, nil
}
