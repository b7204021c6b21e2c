package lower

import (
	"math"
	"strings"

	"github.com/etrun-go/etrun/delegate"
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

// start is the time of a convolution in addition to its work.
const start = 450

// convolution is a product of the filter and gathered columns, or a sum of shifted planes if groups
// have one channel.
func convolution(o *operation) float64 {
	in, weight, y := o.argument(0), o.argument(1), o.out()
	if in == nil || weight == nil || y == nil || !sameRank(weight, in, y) || weight.Sizes[0] == 0 {
		return written(o)
	}
	sum := o.elements(weight) / float64(weight.Sizes[0])
	switch {
	case o.value(6).Bool: // transposed
		return o.upsampled(sum)
	case weight.Sizes[1] == 1 && in.Sizes[1] > 1:
		return o.planes(sum)
	}
	return o.columns(sum)
}

// sameRank reports whether tensors have the rank of a filter. The declarations of a file can differ:
// such a call fails when it runs.
func sameRank(filter *delegate.GraphValue, list ...*delegate.GraphValue) bool {
	for _, v := range list {
		if len(filter.Sizes) < 3 || len(v.Sizes) != len(filter.Sizes) {
			return false
		}
	}
	return true
}

// upsampled is a transposed convolution: the product of a point and sum weights is added to the output.
func (o *operation) upsampled(sum float64) float64 {
	in, y := o.argument(0), o.out()
	points, _ := tensor.Product(in.Sizes[2:])
	channels := o.elements(in) / float64(max(points, 1))
	tiles := math.Ceil(float64(points) / matrixColumns)
	added := sum * channels / float64(max(in.Sizes[1], 1)) // rows of products
	return start + added*(14+0.15*float64(points)) + channels*sum*tiles*matrixColumns*0.022*speed.product + o.elements(y)*0.3
}

// columns is the product of a filter and columns of sum elements.
func (o *operation) columns(sum float64) float64 {
	in, weight, y := o.argument(0), o.argument(1), o.out()
	out, channels := o.elements(y), float64(weight.Sizes[0])
	points, _ := tensor.Product(y.Sizes[2:])
	images := out / channels / float64(max(points, 1))
	tiles := math.Ceil(float64(points) / matrixColumns)
	each := 0.0195
	if sum == float64(weight.Sizes[1]) && o.elements(in) > farImage { // every element comes from memory
		each = 0.024
	}
	time := start + images*channels*tiles*(2.6+sum*matrixColumns*each*speed.product) + out*0.02
	time += o.elements(weight) * 0.02
	groups := images * float64(max(o.value(8).Int, 1))
	gathered := groups * sum * float64(points)
	switch {
	case o.isStrided():
		step := 0.25
		if o.elements(in) > farImage {
			step = 0.45
		}
		time += groups*sum*14 + gathered*(step+2/float64(last(y)))
	case sum > float64(weight.Sizes[1]):
		time += groups*sum*14 + gathered*(0.22+0.8/float64(last(y)))
	}
	return time
}

// Depthwise convolutions compute planes, in rows of at least narrowRow points or else tiles, or all channels of a
// point in copies if these have narrowChannels or more, and channelsOfPoint for each point of a row.
const narrowRow, narrowChannels, channelsOfPoint = 12, 16, 5

// planes is a depthwise convolution with sum elements per window.
func (o *operation) planes(sum float64) float64 {
	y, weight := o.out(), o.argument(1)
	out, width := o.elements(y), last(y)
	points, _ := tensor.Product(y.Sizes[2:])
	channels, lines := out/float64(max(points, 1)), out/float64(width)
	plane, tap, term := 1.4, 0.8, 0.05
	if o.isStrided() {
		plane, tap, term = 6.6, 2.6, 0.1
	}
	switch {
	case width >= narrowRow:
		return start + channels*(plane+sum*tap) + lines*sum*0.19 + out*sum*term*speed.product
	case y.Sizes[1] >= max(narrowChannels, channelsOfPoint*width):
		each := 1 / float64(y.Sizes[1])
		return start + (8*out+35*lines)*each + out*sum*0.044*speed.product + (o.elements(o.argument(0))+out)*0.08*speed.element
	}
	reach := float64(last(weight) - 1)
	if o.isStrided() {
		return start + 42*channels + lines*sum*(float64(width)+reach/2)*0.115*speed.product
	}
	return start + 22*channels + lines*sum*(float64(width)+reach)*0.056*speed.product
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
