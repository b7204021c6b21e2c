package index

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

const (
	ruleMedian    rankRule = iota // the lower one of two; the first NaN if there is one
	ruleNaNMedian                 // of the elements that are not NaN
	ruleKth
	ruleMode // the least of the most frequent elements
)

// Range finds the elements of rows lo to hi.
func (k *ranker) Range(worker, lo, hi int) {
	elem, w := k.dtype.Size(), span{worker * k.n, k.n}
	for r := lo; r < hi; r++ {
		row, at := k.src[r*k.n*elem:][:k.n*elem], k.indices[r:r+1]
		if elem == 8 {
			keys := part(k.keys64, w)
			k.makeKeys64(keys, row, w)
			at[0] = int64(rank(k, keys, part(k.pairs64, w)))
		} else {
			keys := part(k.keys32, w)
			k.makeKeys32(keys, row, w)
			at[0] = int64(rank(k, keys, part(k.pairs32, w)))
		}
		k.takeValues(k.values[r*elem:], row, at)
	}
}

// rank returns the index of the element of a row that the rule names. pairs is a buffer.
func rank[K key](k *ranker, keys []K, pairs []pair[K]) K {
	for i, v := range keys {
		pairs[i] = pair[K]{v, K(i)}
	}
	nan := ^K(0)
	switch k.rule {
	case ruleKth:
		return quickSelect(k.c, pairs, k.kth)
	case ruleMode:
		return mode(k.c, pairs, k.dtype.IsFloat())
	case ruleMedian:
		if i := slices.Index(keys, nan); i >= 0 && k.dtype.IsFloat() {
			return K(i)
		}
	}
	n := len(keys)
	if k.dtype.IsFloat() {
		n -= count(keys, nan)
	}
	nth := max(n-1, 0) / 2
	nthElement(k.c, pairs, nth)
	return pairs[nth].at
}

func count[K key](keys []K, v K) (n int) {
	for _, k := range keys {
		if k == v {
			n++
		}
	}
	return n
}

// mode returns the index of the last of the most frequent keys in order. Every NaN is an element of its own.
func mode[K key](c *kernels.Ctx, s []pair[K], isFloat bool) (at K) {
	introsort(c, s)
	n, most := 0, 0
	for i, p := range s {
		n++
		if i+1 < len(s) && s[i+1].key == p.key && !(isFloat && p.key == ^K(0)) {
			continue
		}
		if n > most {
			at, most = p.at, n
		}
		n = 0
	}
	return at
}

// quickSelect returns the index of the pair of rank k. It partitions as PyTorch does, whose time is quadratic for some
// orders: from a limit on, it sorts.
func quickSelect[K key](c *kernels.Ctx, s []pair[K], k int) K {
	lo, hi := 0, len(s)-1
	for left := 16 * len(s); hi > lo+1; left -= hi - lo {
		if left < 0 {
			introsort(c, s[lo:hi+1])
			break
		}
		c.Poll()
		j := partitionAround(s, lo, hi)
		if j <= k {
			lo = j
		}
		if j >= k {
			hi = j - 1
		}
	}
	if hi == lo+1 && s[hi].before(s[lo]) {
		s[lo], s[hi] = s[hi], s[lo]
	}
	return s[k].at
}

// partitionAround partitions s[lo:hi+1], of at least 3 pairs, around a median of three, and returns where that is.
func partitionAround[K key](s []pair[K], lo, hi int) int {
	mid := lo + (hi-lo)/2
	s[mid], s[lo+1] = s[lo+1], s[mid]
	for _, p := range [...][2]int{{lo + 1, hi}, {lo, hi}, {lo + 1, lo}} {
		if a, b := p[0], p[1]; s[b].before(s[a]) {
			s[a], s[b] = s[b], s[a]
		}
	}
	i, j, pivot := lo+1, hi, s[lo]
	for {
		for i++; s[i].before(pivot); i++ {
		}
		for j--; pivot.before(s[j]); j-- {
		}
		if j < i {
			s[lo], s[j] = s[j], s[lo]
			return j
		}
		s[i], s[j] = s[j], s[i]
	}
}

// median runs (Tensor self, int dim, bool keepdim, values, indices).
func median(rule rankRule) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		n, d, err := sortDim(a, 1)
		if err != nil {
			return err
		}
		return rankAlong(c, a, rule, d, n, 0)
	}
}

// kthValue is aten::kthvalue: k counts from 1.
func kthValue(c *kernels.Ctx, a kernels.Args) error {
	n, d, err := sortDim(a, 2)
	if err != nil {
		return err
	}
	k := a.Int(1)
	if k < 1 || k > int64(n) {
		return kernels.Badf(1, "from 1 to "+itoa(n), "%d", k)
	}
	return rankAlong(c, a, ruleKth, d, n, int(k-1))
}

// rankAlong finds an element of each row of n elements along dimension d. The last arguments are keepdim, and the outs
// of values and indices.
func rankAlong(c *kernels.Ctx, a kernels.Args, rule rankRule, d, n, kth int) error {
	o := len(a) - 3
	self, values, indices := a.Tensor(0), a.Tensor(o), a.Tensor(o+1)
	if err := kernels.WantDType(o+1, indices, tensor.Int64); err != nil {
		return err
	}
	if n == 0 {
		return kernels.Badf(0, "a dimension that is not empty", "%v", self)
	}
	for _, i := range [...]int{o, o + 1} {
		if err := resizeReduced(a, i, d, a.Bool(o-1)); err != nil {
			return err
		}
	}
	k := &kernels.Keep[state](c).rank
	k.rule, k.kth, k.n, k.dtype = rule, kth, n, self.DType
	rows, at := operand.OutRows(c, values), operand.OutRows(c, indices)
	k.find(c, dimLast(c, self, d), rows, tensor.View[int64](at))
	operand.StoreRows(c, values, rows)
	operand.StoreRows(c, indices, at)
	return nil
}

// resizeReduced resizes out argument i to the sizes of argument 0 without dimension d, or with size 1 for it.
func resizeReduced(a kernels.Args, i, d int, keepdim bool) error {
	var buf [tensor.MaxRank]int
	sizes := append(buf[:0], a.Tensor(0).Sizes...)
	switch {
	case len(sizes) == 0:
	case keepdim:
		sizes[d] = 1
	default:
		sizes = append(sizes[:d], sizes[d+1:]...)
	}
	return kernels.ResizeOut(a, i, sizes)
}

// medianOfAll runs (Tensor self, out). The median of no floats is NaN.
func medianOfAll(rule rankRule) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		self, out := a.Tensor(0), a.Tensor(1)
		n := self.Numel()
		_, known := tensor.ComputeType(self.DType)
		switch {
		case !known:
			return kernels.Bad(0, self.DType.String(), "a real type that operators compute on")
		case n == 0 && !self.DType.IsFloat():
			return kernels.Badf(0, "at least one element", "%v", self)
		case int64(n) > maxRow:
			return kernels.Badf(0, "less than 2^32 elements", "%d", n)
		}
		if err := kernels.ResizeOut(a, 1, nil); err != nil {
			return err
		}
		if n == 0 {
			kernels.Scalar{Type: tensor.Float64, F: math.NaN()}.Put(out.Data, out.DType)
			return nil
		}
		k := &kernels.Keep[state](c).rank
		k.rule, k.n, k.dtype = rule, n, self.DType
		k.find(c, operand.Rows(c, self), out.Data, kernels.Scratch[int64](c, 1))
		return nil
	}
}

// find leaves the elements of the rows of src, and their indices, in values and indices.
func (k *ranker) find(c *kernels.Ctx, src, values []byte, indices []int64) {
	if len(indices) == 0 {
		return
	}
	all := c.Threads() * k.n
	k.c = c
	k.src, k.values, k.indices = src, values, indices
	k.keyScratch(c, all)
	if k.dtype.Size() == 8 {
		k.pairs64 = pack.Grow(k.pairs64, all)
	} else {
		k.pairs32 = pack.Grow(k.pairs32, all)
	}
	c.Parallel(len(indices), cpu.Grain(k.n, 20_000), k)
	k.src, k.values, k.indices = nil, nil, nil
	k.keys32, k.keys64, k.floats, k.wide = nil, nil, nil, nil
}
