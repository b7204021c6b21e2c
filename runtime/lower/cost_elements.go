package lower

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// softmax is fast along the innermost dimension only.
func softmax(o *operation) float64 {
	y := o.out()
	if y == nil {
		return written(o)
	}
	return o.elements(y) * (0.74 + 10/float64(last(y))) * speed.element
}

// joined is a concatenation, copied in runs of each tensor.
func joined(o *operation) float64 {
	y := o.out()
	if y == nil {
		return written(o)
	}
	n := o.elements(y) * 0.09
	rank := len(y.Sizes)
	dim := int(o.value(1).Int)
	if dim < 0 {
		dim += rank
	}
	if dim < 0 || dim >= rank {
		return n
	}
	inner, _ := tensor.Product(y.Sizes[dim:])
	return n + o.elements(y)/float64(max(inner, 1))*float64(len(o.value(0).Items))*0.65
}

// mean is a sum for each element of the result.
func mean(o *operation) float64 { return (reduced(o)*0.03 + written(o)*1.7) * speed.element }

// broadcast is an elementwise function of two tensors, computed in runs along which each operand
// advances or is constant.
func broadcast(o *operation) float64 {
	y := o.out()
	if y == nil {
		return written(o)
	}
	n := o.elements(y)
	return n * (near(n, 0.15) + 3.2/float64(run(y, o.argument(0), o.argument(1)))) * speed.element
}

// run returns how many innermost elements of y take consecutive elements, or one element, of each
// operand.
func run(y, a, b *delegate.GraphValue) int {
	n, goesOn := 1, [2]bool{}
	for back, size := range slices.Backward(y.Sizes) {
		if size == 1 {
			continue
		}
		now := [2]bool{has(a, len(y.Sizes)-back, size), has(b, len(y.Sizes)-back, size)}
		if n > 1 && now != goesOn {
			return n
		}
		n, goesOn = n*max(size, 1), now
	}
	return n
}

// has reports whether v's dimension back from the end has this size.
func has(v *delegate.GraphValue, back, size int) bool {
	return v != nil && back <= len(v.Sizes) && v.Sizes[len(v.Sizes)-back] == size
}

// farElements is the number of elements from which a tensor does not stay in a processor's caches.
const farElements = 1 << 16

// permuted moves elements in runs, one by one, or not at all.
func permuted(o *operation) float64 {
	x, y := o.argument(0), o.out()
	if x == nil || y == nil {
		return written(o)
	}
	const start = 90
	n := o.elements(y)
	switch row := o.moved(x); {
	case row == 0:
		return n * 0.03
	case row > 1:
		return start + n*(0.14+0.06/float64(row))
	case n > farElements:
		return start + n*0.16*speed.element
	}
	return start + n*0.085*speed.element
}

// moved returns how many elements stay contiguous in a permutation, 0 for all.
func (o *operation) moved(x *delegate.GraphValue) (row int) {
	perm := o.permutation(len(x.Sizes))
	row, at := 1, len(x.Sizes)
	for i := len(perm) - 1; i >= 0; i-- {
		switch {
		case perm[i] < 0 || perm[i] >= len(x.Sizes):
			return 1
		case x.Sizes[perm[i]] == 1:
			continue
		}
		for at--; at > 0 && x.Sizes[at] == 1; at-- {
		}
		if perm[i] != at {
			return row
		}
		row *= x.Sizes[at]
	}
	return 0
}

// permutation returns the dimensions of a permute_copy or transpose_copy.
func (o *operation) permutation(rank int) []int {
	if o.value(1).Items != nil {
		perm := o.ints(1)
		for i := range perm {
			if perm[i] < 0 {
				perm[i] += rank
			}
		}
		return perm
	}
	perm := make([]int, rank)
	for i := range perm {
		perm[i] = i
	}
	a, b := int(o.value(1).Int), int(o.value(2).Int)
	if a, b = (a+rank)%max(rank, 1), (b+rank)%max(rank, 1); min(a, b) >= 0 && max(a, b) < rank {
		perm[a], perm[b] = b, a
	}
	return perm
}
