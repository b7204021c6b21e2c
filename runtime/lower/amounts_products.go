package lower

import (
	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// matrixColumns is the number of result columns that a matrix product computes at once: fewer take
// as long.
const matrixColumns = 16

// filled returns a number of columns filled up to whole tiles.
func filled(columns int) float64 {
	return float64((max(columns, 1) + matrixColumns - 1) / matrixColumns * matrixColumns)
}

// coldElements is how many constants of a call the caches keep between two runs of a program.
const coldElements = 1 << 18

// product is a matrix product, plain or batched.
func product(o *operation) (class, amounts) {
	at := 0
	if o.c.Op.Class == opclass.AddMM {
		at = 1
	}
	left, right, y := o.argument(at), o.argument(at+1), o.out()
	if left == nil || right == nil || y == nil {
		return o.unknown()
	}
	out := o.elements(y)
	rows := out / float64(last(y))
	a := amounts{termStart: 1, termRow: rows, termWork: rows * filled(last(y)) * float64(last(left)),
		termElement: out, termWeight: o.elements(right)}
	if right.IsConst() && a[termWeight] > coldElements {
		a[termTap] = a[termWeight]
	}
	switch {
	case len(y.Sizes) == 3:
		a[termPlane] = float64(y.Sizes[0])
		return classBatch, a
	case o.c.Op.Class == opclass.Linear:
		return classLinear, a
	}
	return classMatrix, a
}

// convolution is a product of the filter and gathered columns, or a sum of shifted planes if groups
// have one channel.
func convolution(o *operation) (class, amounts) {
	in, weight, y := o.argument(0), o.argument(1), o.out()
	if in == nil || weight == nil || y == nil || !sameRank(weight, in, y) || weight.Sizes[0] == 0 {
		return o.unknown()
	}
	sum := o.elements(weight) / float64(weight.Sizes[0])
	switch {
	case o.value(6).Bool:
		return classTransposed, o.upsampled(sum)
	case weight.Sizes[1] == 1 && in.Sizes[1] > 1:
		return o.planes(sum)
	}
	return o.columns(sum)
}

// sameRank reports whether tensors have the rank of a filter. The declarations of a file can differ:
// such a call fails when it runs.
func sameRank(filter *regions.GraphValue, list ...*regions.GraphValue) bool {
	for _, v := range list {
		if len(filter.Sizes) < 3 || len(v.Sizes) != len(filter.Sizes) {
			return false
		}
	}
	return true
}

// upsampled is a transposed convolution: the product of a point and sum weights is added to the output.
func (o *operation) upsampled(sum float64) amounts {
	in := o.argument(0)
	points, _ := tensor.Product(in.Sizes[2:])
	channels := o.elements(in) / float64(max(points, 1))
	added := sum * channels / float64(max(in.Sizes[1], 1)) // rows of products
	return amounts{termStart: 1, termRow: added, termTap: added * float64(points),
		termWork: channels * sum * filled(points), termElement: o.elements(o.out())}
}

// columns is the product of a filter and columns of sum elements.
func (o *operation) columns(sum float64) (class, amounts) {
	in, weight, y := o.argument(0), o.argument(1), o.out()
	out, channels := o.elements(y), float64(weight.Sizes[0])
	points, _ := tensor.Product(y.Sizes[2:])
	images := out / channels / float64(max(points, 1))
	a := amounts{termStart: 1, termRow: images * channels * filled(points) / matrixColumns, termWork: images * channels * sum * filled(points),
		termElement: out, termWeight: o.elements(weight)}
	if sum == float64(weight.Sizes[1]) && !o.isStrided() {
		if n := o.elements(in); n > farElements {
			a[termTap] = n
		}
		return classPoint, a
	}
	planes := images * float64(max(o.value(8).Int, 1)) * sum
	a[termPlane], a[termTap], a[termLine] = planes, planes*float64(points), planes*float64(points)/float64(last(y))
	if o.isStrided() {
		return classStrided, a
	}
	return classWindow, a
}

// planes is a depthwise convolution with sum elements per window.
func (o *operation) planes(sum float64) (class, amounts) {
	in, y := o.argument(0), o.out()
	out, width := o.elements(y), last(y)
	points, _ := tensor.Product(y.Sizes[2:])
	planes, lines := out/float64(max(points, 1)), out/float64(width)
	a := amounts{termStart: 1, termPlane: planes, termTap: planes * sum, termLine: lines * sum, termWork: out * sum, termElement: out}
	switch {
	case window.ByPixels(last(in), width, y.Sizes[1]):
		channels := float64(max(y.Sizes[1], 1))
		return classPixels, amounts{termStart: 1, termRow: out / channels, termLine: lines / channels,
			termWork: out * sum, termElement: out, termTap: o.elements(in)}
	case o.isStrided():
		return classPlanesStrided, a
	}
	return classPlanes, a
}

// isStrided reports whether a window moves by more than one element.
func (o *operation) isStrided() bool {
	for _, n := range o.ints(3) {
		if n > 1 {
			return true
		}
	}
	return false
}
