package lower

import (
	"slices"

	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// nearElements is how many elements of each tensor stay in the nearest cache of a processor's core, farElements in all of
// its caches.
const nearElements, farElements = 1 << 12, 1 << 16

// elementwise returns amounts for n elements that are computed in rows.
func elementwise(n, rows float64) amounts {
	a := amounts{termStart: 1, termRow: rows, termElement: n}
	if n > nearElements {
		a[termTap] = n
	}
	return a
}

// written is an operator whose time is proportional to the elements of its results.
func written(c class) amountsOf {
	return func(o *operation) (class, amounts) { return c, elementwise(o.written(), 0) }
}

// rows is an operator that computes rows of its first result one after the other, planes one that also computes planes so.
func rows(c class) amountsOf {
	return func(o *operation) (class, amounts) {
		n, y := o.written(), o.firstOut()
		return c, elementwise(n, n/float64(last(y)))
	}
}

func planes(c class) amountsOf {
	return func(o *operation) (class, amounts) {
		_, a := rows(c)(o)
		if y := o.firstOut(); len(y.Sizes) > 2 {
			area, _ := tensor.Product(y.Sizes[2:])
			a[termPlane] = o.elements(y) / float64(max(area, 1))
		}
		return c, a
	}
}

// firstOut returns the first result.
func (o *operation) firstOut() *regions.GraphValue {
	for k, a := range o.c.Sig.Args {
		if a.Out {
			return o.value(k)
		}
	}
	return &absent
}

// copied is a copy in runs of elements that stay contiguous.
func copied(o *operation) (class, amounts) {
	x, y, n := o.argument(0), o.firstOut(), o.written()
	if x == nil || len(y.Sizes) != len(x.Sizes) {
		return classCopy, elementwise(n, 0)
	}
	inner := 1
	for i, size := range slices.Backward(y.Sizes) {
		if inner *= max(size, 1); size != x.Sizes[i] {
			break
		}
	}
	return classCopy, elementwise(n, n/float64(inner))
}

// reduced is an operator that reads the elements of its first argument.
func reduced(c class) amountsOf {
	return func(o *operation) (class, amounts) {
		a := elementwise(o.written(), 0)
		if x := o.argument(0); x != nil {
			a[termWork] = o.elements(x)
		}
		return c, a
	}
}

// unknown is a call of an operator with the name of a known one, but with other arguments.
func (o *operation) unknown() (class, amounts) { return classLoose, elementwise(o.written(), 0) }

// softmax is fast along the innermost dimension only.
func softmax(o *operation) (class, amounts) {
	y := o.out()
	if y == nil {
		return o.unknown()
	}
	n := o.elements(y)
	return classSoftmax, elementwise(n, n/float64(last(y)))
}

// joined is a concatenation, copied in runs of each tensor.
func joined(o *operation) (class, amounts) {
	y := o.out()
	if y == nil {
		return o.unknown()
	}
	rank, dim := len(y.Sizes), int(o.value(1).Int)
	if dim < 0 {
		dim += rank
	}
	if dim < 0 || dim >= rank {
		return o.unknown()
	}
	inner, _ := tensor.Product(y.Sizes[dim:])
	n := o.elements(y)
	return classJoin, elementwise(n, n/float64(max(inner, 1))*float64(len(o.value(0).Items)))
}

// pool reads the elements of windows.
func pool(c class) amountsOf {
	return func(o *operation) (class, amounts) {
		y, area, list := o.out(), 1.0, o.ints(1)
		if y == nil {
			return o.unknown()
		}
		for _, n := range list {
			area *= float64(max(n, 1))
		}
		if len(list) == 1 {
			area *= area
		}
		n := o.elements(y)
		a := elementwise(n, n/float64(last(y)))
		a[termWork] = n * area
		return c, a
	}
}

// broadcast is an elementwise function of two tensors, computed in runs along which each operand
// advances or is constant.
func broadcast(o *operation) (class, amounts) {
	y := o.out()
	if y == nil {
		return o.unknown()
	}
	n := o.elements(y)
	first, second := o.argument(0), o.argument(1)
	a := elementwise(n, n/float64(run(y, first, second)))
	if fills(first, y) && fills(second, y) {
		return classPair, a
	}
	return classBinary, a
}

// fills reports whether an operand has as many elements as the result: at most its leading sizes of 1 are missing.
func fills(x, y *regions.GraphValue) bool {
	if x == nil {
		return false
	}
	n, _ := tensor.Product(x.Sizes)
	all, _ := tensor.Product(y.Sizes)
	return n == all
}

// run returns how many innermost elements of y take consecutive elements, or one element, of each
// operand.
func run(y, a, b *regions.GraphValue) int {
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
func has(v *regions.GraphValue, back, size int) bool {
	return v != nil && back <= len(v.Sizes) && v.Sizes[len(v.Sizes)-back] == size
}

// permuted moves elements in runs, one by one, or not at all.
func permuted(o *operation) (class, amounts) {
	x, y := o.argument(0), o.out()
	if x == nil || y == nil {
		return o.unknown()
	}
	n := o.elements(y)
	row := o.moved(x)
	switch {
	case row == 0:
		return classCopy, elementwise(n, 0)
	case row > 1:
		return classMoveRows, elementwise(n, n/float64(row))
	}
	a := elementwise(n, n/float64(last(y)))
	if n > farElements {
		a[termWork] = n
	}
	return classMoveElements, a
}

// moved returns how many elements stay contiguous in a permutation, 0 for all.
func (o *operation) moved(x *regions.GraphValue) (row int) {
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
