package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Range sorts rows lo to hi.
func (s *sorter) Range(worker, lo, hi int) {
	elem, w := s.dtype.Size(), span{worker * s.n, s.n}
	for r := lo; r < hi; r++ {
		row, at := s.src[r*s.n*elem:][:s.n*elem], s.indices[r*s.k:][:s.k]
		if elem == 8 {
			s.order64(at, row, w)
		} else {
			s.order32(at, row, w)
		}
		s.takeValues(s.values[r*s.k*elem:], row, at)
	}
}

// span is a worker's part of a buffer.
type span struct{ from, n int }

func part[T any](s []T, w span) []T { return s[w.from:][:w.n] }

func (s *sorter) order32(at []int64, row []byte, w span) {
	keys := part(s.keys32, w)
	if s.some && heapSuffices(s.k, s.n) {
		s.few32(at, row, w)
		return
	}
	s.makeKeys32(keys, row, w)
	if s.some {
		first(s.c, at, part(s.pairs32, w), keys, s.sorted)
		return
	}
	a := part(s.a, w)
	for i, k := range keys {
		a[i] = uint64(k)<<32 | uint64(i)
	}
	switch {
	case len(a) <= 32:
		insertKeys(a)
	case len(a) < fewKeys:
		slices.Sort(a)
	default:
		a, _ = radixSort(s.c, a, part(s.b, w))
	}
	for i, v := range a {
		at[i] = int64(uint32(v))
	}
}

func (s *sorter) order64(at []int64, row []byte, w span) {
	keys := part(s.keys64, w)
	s.makeKeys64(keys, row, w)
	switch {
	case s.some:
		first(s.c, at, part(s.pairs64, w), keys, s.sorted)
	case len(keys) < fewKeys:
		sortPairs(at, part(s.pairs64, w), keys)
	default:
		sortHalves(s.c, at, keys, part(s.a, w), part(s.b, w))
	}
}

// insertKeys sorts the few keys of a short row.
func insertKeys(a []uint64) {
	for i, v := range a {
		for ; i > 0 && a[i-1] > v; i-- {
			a[i] = a[i-1]
		}
		a[i] = v
	}
}

func sortPairs(at []int64, pairs []pair[uint64], keys []uint64) {
	for i, k := range keys {
		pairs[i] = pair[uint64]{k, uint64(i)}
	}
	slices.SortFunc(pairs, func(a, b pair[uint64]) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.at, b.at)
	})
	for i, p := range pairs {
		at[i] = int64(p.at)
	}
}

// sortHalves sorts by the lower halves of keys, then by the upper ones.
func sortHalves(c *kernels.Ctx, at []int64, keys, a, b []uint64) {
	for i, k := range keys {
		a[i] = k<<32 | uint64(i)
	}
	a, b = radixSort(c, a, b)
	for i, v := range a {
		a[i] = keys[uint32(v)]>>32<<32 | v&math.MaxUint32
	}
	a, _ = radixSort(c, a, b)
	for i, v := range a {
		at[i] = int64(uint32(v))
	}
}

// first finds the least keys, as topk does.
func first[K key](c *kernels.Ctx, at []int64, pairs []pair[K], keys []K, sorted bool) {
	for i, k := range keys {
		pairs[i] = pair[K]{k, K(i)}
	}
	for i, p := range selectFirst(c, pairs, len(at), sorted) {
		at[i] = int64(p.at)
	}
}

// few32 is first for few elements of many: most of them are only compared with the greatest of the least so far.
func (s *sorter) few32(at []int64, row []byte, w span) {
	keys, heap, elem := part(s.keys32, w), part(s.pairs32, w)[:s.k], s.dtype.Size()
	s.makeKeys32(keys[:s.k], row, w)
	for i, k := range keys[:s.k] {
		heap[i] = pair[uint32]{k, uint32(i)}
	}
	makeHeap(s.c, heap)
	poll := s.c.Poller()
	for i, n := s.k, 0; i < s.n; i += n {
		poll.Done(n)
		n = min(max(i/4, 16), 256, s.n-i) // the further on, the rarer is one to take
		if s.beyond(row, i, n, int(heap[0].at)) {
			continue
		}
		keys := keys[:n]
		s.makeKeys32(keys, row[i*elem:], w)
		for j, k := range keys {
			if k < heap[0].key {
				siftDown(heap, 0, pair[uint32]{k, uint32(i + j)})
			}
		}
	}
	sortHeap(s.c, heap)
	for i, p := range heap {
		at[i] = int64(p.at)
	}
}

// beyond reports whether n float32 from element i are all no less, in the requested order, than the element at top.
func (s *sorter) beyond(row []byte, i, n, top int) bool {
	if s.dtype != tensor.Float32 {
		return false
	}
	x := tensor.View[float32](row)
	if s.descending {
		return simd.Max(x[i:i+n]) <= x[top]
	}
	return simd.Min(x[i:i+n]) >= x[top]
}

// fewKeys is the number of keys from which a radix sort is faster than comparisons.
const fewKeys = 160

// radixSort sorts by the upper 32 bits, a byte at a time from the lowest; it is stable. b has the same length; the
// result is in one of the two, and the other is returned as left.
func radixSort(c *kernels.Ctx, a, b []uint64) (sorted, left []uint64) {
	var counts [4][256]uint32
	for _, v := range a {
		counts[0][uint8(v>>32)]++
		counts[1][uint8(v>>40)]++
		counts[2][uint8(v>>48)]++
		counts[3][uint8(v>>56)]++
	}
	for d := range counts {
		places, shift := &counts[d], uint(32+8*d)&63
		if int(places[uint8(a[0]>>shift)]) == len(a) {
			continue // all the same
		}
		var sum uint32
		for i, n := range places {
			places[i] = sum
			sum += n
		}
		for from := range slices.Chunk(a, kernels.PollBlock) {
			c.Poll()
			for _, v := range from {
				p := &places[uint8(v>>shift)]
				b[*p] = v
				*p++
			}
		}
		a, b = b, a
	}
	return a, b
}

// takeValues copies the elements of a row that at names.
func (s *sorter) takeValues(dst, row []byte, at []int64) {
	elem := s.dtype.Size()
	pick := strided.BySize(elem, pickEach[uint8], pickEach[uint16], pickEach[uint32], pickEach[uint64], nil)
	for ; len(at) > kernels.PollBlock; at = at[kernels.PollBlock:] {
		s.c.Poll()
		pick(dst, row, at[:kernels.PollBlock])
		dst = dst[kernels.PollBlock*elem:]
	}
	pick(dst, row, at)
}

func pickEach[T tensor.Element](dst, src []byte, at []int64) {
	d, s := tensor.View[T](dst)[:len(at)], tensor.View[T](src)
	for i, v := range at {
		d[i] = s[v]
	}
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
	s := &kernels.Keep[state](c).sort
	s.some, s.sorted, s.descending = true, a.Bool(4), a.Bool(3)
	return order(c, a, 5, d, n, int(count))
}

// sortAlong is aten::sort, whose dim is argument dim, followed by descending and the outs. It is stable.
func sortAlong(dim int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		n, d, err := sortDim(a, dim)
		if err != nil {
			return err
		}
		kernels.Keep[state](c).sort.descending = a.Bool(dim + 1)
		return order(c, a, dim+2, d, n, n)
	}
}

// maxRow is the length of the longest row: indices have 32 bits.
const maxRow = math.MaxUint32

// sortDim resolves argument i, the dimension of argument 0 to sort along.
func sortDim(a kernels.Args, i int) (n, d int, err error) {
	self := a.Tensor(0)
	if _, ok := tensor.ComputeType(self.DType); !ok {
		return 0, 0, kernels.Bad(0, self.DType.String(), "a real type that operators compute on")
	}
	if d, err = kernels.WrapDim(i, a.Int(i), self.Rank()); err != nil || self.Rank() == 0 {
		return 1, 0, err
	}
	if n = self.Sizes[d]; int64(n) > maxRow {
		return 0, 0, kernels.Badf(i, "a dimension of less than 2^32", "%d", n)
	}
	return n, d, nil
}

// order writes the first count elements along dimension d, of size n, and their
// indices to out arguments o and o+1.
func order(c *kernels.Ctx, a kernels.Args, o, d, n, count int) error {
	k := kernels.Keep[state](c)
	self, values, indices := a.Tensor(0), a.Tensor(o), a.Tensor(o+1)
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
	s.src = dimLast(c, self, d)
	s.values = kernels.Scratch[uint8](c, values.NBytes())
	s.indices = kernels.Scratch[int64](c, indices.Numel())
	s.sort(c)
	storeDimLast(c, values, d, s.values)
	storeDimLast(c, indices, d, tensor.BytesOf(s.indices))
	s.src, s.values, s.indices = nil, nil, nil
	return nil
}

// dimLast returns t's elements in logical order with dimension d moved to the end.
func dimLast(c *kernels.Ctx, t *tensor.Tensor, d int) []byte {
	if d >= t.Rank()-1 {
		return operand.Rows(c, t)
	}
	rows := kernels.Scratch[uint8](c, t.NBytes())
	var dst, src strided.View
	viewDimLast(&src, &dst, t, d, rows)
	strided.CopyView(c, &dst, &src)
	return rows
}

// storeDimLast is the inverse of dimLast.
func storeDimLast(c *kernels.Ctx, t *tensor.Tensor, d int, rows []byte) {
	var dst, src strided.View
	viewDimLast(&dst, &src, t, d, rows)
	strided.CopyView(c, &dst, &src)
}

// viewDimLast sets own to a view of t with dimension d moved to the end, and dense to one of rows of the same sizes.
func viewDimLast(own, dense *strided.View, t *tensor.Tensor, d int, rows []byte) {
	own.Of(t)
	if own.Rank > 0 {
		own.Move(d, own.Rank-1)
	}
	dense.Dense(rows, own.Elem, own.Shape())
}

// sort sorts all rows.
func (s *sorter) sort(c *kernels.Ctx) {
	all := c.Threads() * s.n
	s.c = c
	s.keyScratch(c, all)
	switch {
	case !s.some && (s.n >= fewKeys || s.dtype.Size() < 8):
		s.a, s.b = kernels.Scratch[uint64](c, all), kernels.Scratch[uint64](c, all)
	case s.dtype.Size() == 8:
		s.pairs64 = pack.Grow(s.pairs64, all)
	default:
		s.pairs32 = pack.Grow(s.pairs32, all)
	}
	c.Parallel(len(s.indices)/s.k, cpu.Grain(s.n, 20_000), s)
	s.keys32, s.keys64, s.floats, s.wide, s.a, s.b = nil, nil, nil, nil, nil, nil
}

// keyScratch provides memory for the keys of n elements.
func (s *sorter) keyScratch(c *kernels.Ctx, n int) {
	switch {
	case s.dtype.Size() == 8:
		s.keys64 = kernels.Scratch[uint64](c, n)
	case s.dtype.IsFloat():
		s.keys32, s.floats = kernels.Scratch[uint32](c, n), kernels.Scratch[float32](c, n)
	default:
		s.keys32, s.wide = kernels.Scratch[uint32](c, n), kernels.Scratch[int64](c, n)
	}
}
