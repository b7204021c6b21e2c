package lower

import (
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// matrixColumns is the number of result columns that a matrix product computes at once: fewer take
// as long.
const matrixColumns = 16

// full returns the fraction of the computed columns that are used.
func full(columns int) float64 {
	return float64(max(columns, 1)) / float64((max(columns, 1)+matrixColumns-1)/matrixColumns*matrixColumns)
}

// product is a matrix product, plain or batched.
func product(o *operation) float64 {
	at := 0
	if strings.HasPrefix(o.c.Op.Schema, "aten::addmm") {
		at = 1
	}
	left, right, y := o.argument(at), o.argument(at+1), o.out()
	if left == nil || right == nil || y == nil {
		return written(o)
	}
	out := o.elements(y)
	fetch := 0.005
	if strings.HasPrefix(o.c.Op.Schema, "aten::linear") {
		fetch = 0.1 // by rows
	}
	time := 40 + out*float64(last(left))/full(last(y))*0.022*speed.product + out*0.02 + o.elements(right)*fetch
	if len(y.Sizes) == 3 {
		time += 58 * float64(y.Sizes[0])
	}
	return time
}

// farImage is how many elements of an image are in a near cache.
const farImage = 1 << 15

// convolution is a product of the filter and gathered columns, or a sum of shifted planes if groups
// have one channel.
func convolution(o *operation) float64 {
	in, weight, y := o.argument(0), o.argument(1), o.out()
	if in == nil || weight == nil || y == nil || len(weight.Sizes) < 3 || len(in.Sizes) != len(weight.Sizes) || weight.Sizes[0] == 0 {
		return written(o)
	}
	const start = 500
	out, sum := o.elements(y), o.elements(weight)/float64(weight.Sizes[0])
	switch {
	case o.g.Values[o.c.Args[6]].Bool: // transposed
		return start + o.elements(in)*sum*0.11*speed.product
	case weight.Sizes[1] == 1 && in.Sizes[1] > 1:
		return o.planes(sum)
	}
	points, _ := tensor.Product(y.Sizes[2:])
	gathered := out / float64(weight.Sizes[0]) * float64(max(o.g.Values[o.c.Args[8]].Int, 1)) // for each group
	least := 0.0175
	if sum == float64(weight.Sizes[1]) { // every element of large images comes from memory
		least = 0.024
	}
	each := max(least, 1/float64(max(points, 1))) * speed.product // few points do not fill vectors
	time := start + out*(0.02+sum*each) + o.elements(weight)*0.02 + gathered*2
	switch {
	case o.isStrided():
		step := 0.28
		if o.elements(in) > farImage {
			step = 0.45
		}
		time += gathered * sum * (step + 3/float64(last(y)))
	case sum > float64(weight.Sizes[1]):
		time += gathered * sum * (0.25 + 1.5/float64(last(y)))
	}
	return time
}

// narrowRow is the length from which on a depthwise convolution computes rows of an image;
// shorter ones it copies, and computes channels.
const narrowRow = 12

// planes is a depthwise convolution with sum elements per window.
func (o *operation) planes(sum float64) float64 {
	y := o.out()
	out := o.elements(y)
	points, _ := tensor.Product(y.Sizes[2:])
	if last(y) < narrowRow {
		return 250 + out*sum*0.045*speed.product + (o.elements(o.argument(0))+out)*0.5*speed.element
	}
	return 250 + out*sum*0.027*speed.product + out*sum/float64(last(y))*0.7*speed.product + out/float64(max(points, 1))*60
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
