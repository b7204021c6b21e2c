package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/move"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// sorter orders rows of n elements and keeps the first k of each. Elements become
// keys, unsigned numbers in the wanted order, NaN being the greatest value.
type sorter struct {
	dtype      tensor.DType
	n, k       int
	descending bool
	some       bool // topk: PyTorch's order of equal elements
	sorted     bool // topk: in order

	src, values []byte
	indices     []int64
	pairs       []pair // n for each worker
	wide        []int64
}

// pair is a key and the index of its element.
type pair struct {
	key uint64
	at  int64
}

func comparePairs(a, b pair) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	return cmp.Compare(a.at, b.at)
}

// Range sorts rows lo to hi.
func (s *sorter) Range(worker, lo, hi int) {
	pairs := s.pairs[worker*s.n : (worker+1)*s.n]
	wide := s.wide[worker*s.n : (worker+1)*s.n]
	elem := s.dtype.Size()
	for r := lo; r < hi; r++ {
		row := s.src[r*s.n*elem:][:s.n*elem]
		s.keys(pairs, wide, row)
		for i, p := range s.first(pairs) {
			s.indices[r*s.k+i] = p.at
			copy(s.values[(r*s.k+i)*elem:(r*s.k+i+1)*elem], row[int(p.at)*elem:])
		}
	}
}

// keys makes the pairs of a row.
func (s *sorter) keys(pairs []pair, wide []int64, row []byte) {
	var flip uint64
	if s.descending {
		flip = math.MaxUint64
	}
	if s.dtype.IsFloat() {
		floats := tensor.View[float64](tensor.BytesOf(wide))
		tensor.Loader[float64](s.dtype)(floats, row)
		for i, v := range floats {
			pairs[i] = pair{floatKey(v) ^ flip, int64(i)}
		}
		return
	}
	if s.dtype != tensor.Uint64 {
		flip ^= 1 << 63
	}
	tensor.Loader[int64](s.dtype)(wide, row)
	for i, v := range wide {
		pairs[i] = pair{uint64(v) ^ flip, int64(i)}
	}
}

// floatKey orders as floats do, with both zeros equal and NaN above all.
func floatKey(v float64) uint64 {
	switch b := math.Float64bits(v); {
	case v != v:
		return math.MaxUint64
	case v == 0:
		return 1 << 63
	case v < 0:
		return ^b
	default:
		return b | 1<<63
	}
}

// first puts the first k pairs in order: all of them stably, or some as topk does.
func (s *sorter) first(pairs []pair) []pair {
	if s.some {
		return selectFirst(pairs, s.k, s.sorted)
	}
	slices.SortFunc(pairs, comparePairs)
	return pairs
}

// topk is aten::topk: the k greatest or least along a dimension, in order.
func topk(c *kernels.Ctx, a kernels.Args) error {
	n, d, err := sortDim(a, 2)
	if err != nil {
		return err
	}
	count := a.Int(1)
	if count < 0 || count > int64(n) {
		return kernels.Badf(1, "at most "+itoa(n), "%d", count)
	}
	s := &kernels.Keep[keep](c).sort
	s.some, s.sorted, s.descending = true, a.Bool(4), a.Bool(3)
	return order(c, a, 5, d, n, int(count))
}

// sortValues is aten::sort; the order of equal elements is kept.
func sortValues(c *kernels.Ctx, a kernels.Args) error {
	n, d, err := sortDim(a, 1)
	if err != nil {
		return err
	}
	kernels.Keep[keep](c).sort.descending = a.Bool(2)
	return order(c, a, 3, d, n, n)
}

// sortStable is aten::sort.stable.
func sortStable(c *kernels.Ctx, a kernels.Args) error {
	n, d, err := sortDim(a, 2)
	if err != nil {
		return err
	}
	kernels.Keep[keep](c).sort.descending = a.Bool(3)
	return order(c, a, 4, d, n, n)
}

// sortDim resolves argument i, the dimension of argument 0 to sort along.
func sortDim(a kernels.Args, i int) (n, d int, err error) {
	self := a.Tensor(0)
	if _, ok := tensor.ComputeType(self.DType); !ok {
		return 0, 0, kernels.Bad(0, self.DType.String(), "a real type that operators compute on")
	}
	if d, err = kernels.WrapDim(i, a.Int(i), self.Rank()); err != nil || self.Rank() == 0 {
		return 1, 0, err
	}
	return self.Sizes[d], d, nil
}

// order writes the first count elements along dimension d, of size n, and their
// indices to out arguments o and o+1.
func order(c *kernels.Ctx, a kernels.Args, o, d, n, count int) error {
	k := kernels.Keep[keep](c)
	self, values, indices := a.Tensor(0), a.Tensor(o), a.Tensor(o+1)
	if err := sameType(a, 0, o); err != nil {
		return err
	}
	if err := kernels.WantDType(o+1, indices, tensor.Int64); err != nil {
		return err
	}
	var buf [tensor.MaxRank]int
	sizes := append(buf[:0], self.Sizes...)
	if len(sizes) > 0 {
		sizes[d] = count
	} else {
		count = 1
	}
	for _, i := range [...]int{o, o + 1} {
		if err := kernels.ResizeOut(a, i, sizes); err != nil {
			return err
		}
	}
	if values.Numel() == 0 {
		return nil
	}
	s := &k.sort
	s.dtype, s.n, s.k = self.DType, n, count
	s.src = k.dimLast(c, self, d)
	s.values = kernels.Scratch[uint8](c, values.NBytes())
	s.indices = kernels.Scratch[int64](c, indices.Numel())
	s.sort(c)
	k.fromDimLast(c, values, d, s.values)
	k.fromDimLast(c, indices, d, tensor.BytesOf(s.indices))
	s.src, s.values, s.indices, s.wide = nil, nil, nil, nil
	return nil
}

// lastSizes are t's sizes and strides with dimension d moved to the end.
func (k *keep) lastSizes(t *tensor.Tensor, d int) (sizes, strides []int) {
	sizes, strides = append(k.sizes[:0], t.Sizes...), append(k.strides[:0], t.Strides...)
	if len(sizes) == 0 {
		return sizes, strides
	}
	last := len(sizes) - 1
	copy(sizes[d:], t.Sizes[d+1:])
	copy(strides[d:], t.Strides[d+1:])
	sizes[last], strides[last] = t.Sizes[d], t.Strides[d]
	return sizes, strides
}

// dimLast gives t's elements row by row with dimension d moved to the end.
func (k *keep) dimLast(c *kernels.Ctx, t *tensor.Tensor, d int) []byte {
	if d >= t.Rank()-1 {
		return k.run.Rows(c, t)
	}
	sizes, strides := k.lastSizes(t, d)
	rows := kernels.Scratch[uint8](c, t.NBytes())
	k.run.Copy(c, t.DType.Size(), move.Box{Sizes: sizes, Dst: denseStrides(k.dense[:], sizes), Src: strides},
		move.Place{Data: rows}, move.Place{Data: t.Data})
	return rows
}

// fromDimLast is the inverse of dimLast.
func (k *keep) fromDimLast(c *kernels.Ctx, t *tensor.Tensor, d int, rows []byte) {
	sizes, strides := k.lastSizes(t, d)
	k.run.Copy(c, t.DType.Size(), move.Box{Sizes: sizes, Dst: strides, Src: denseStrides(k.dense[:], sizes)},
		move.Place{Data: t.Data}, move.Place{Data: rows})
}

// denseStrides are the strides of a contiguous array.
func denseStrides(dst, sizes []int) []int {
	n := 1
	for d := len(sizes) - 1; d >= 0; d-- {
		dst[d] = n
		n *= sizes[d]
	}
	return dst[:len(sizes)]
}

// sort sorts all rows.
func (s *sorter) sort(c *kernels.Ctx) {
	all := c.Threads() * s.n
	if len(s.pairs) < all {
		s.pairs = make([]pair, all)
	}
	s.wide = kernels.Scratch[int64](c, all)
	c.Parallel(len(s.indices)/s.k, 1<<10/s.n, s)
}
