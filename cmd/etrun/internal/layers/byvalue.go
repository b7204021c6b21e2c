package layers

import (
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// minElements is the minimum number of elements that identify a value.
const minElements = 8

func vector(x []float32) *tensor.Value {
	v := tensor.TensorValue(tensor.Of(x, len(x)))
	return &v
}

// candidate is a value with its elements in logical order.
type candidate struct {
	of      *Written
	sizes   []int
	numbers []float32
	last    []float32 // in channels-last order, for images; computed on demand
	weak    bool      // few elements, or all equal: others may be so by chance
}

func newCandidate(w *Written) *candidate {
	t := w.Value.Tensor
	if w.Value.Kind != tensor.KindTensor || !t.DType.IsFloat() || t.Numel() == 0 {
		return nil
	}
	c := &candidate{of: w, sizes: t.Sizes, numbers: make([]float32, t.Numel())}
	tensor.Loader[float32](t.DType)(c.numbers, t.Logical())
	c.weak = len(c.numbers) < minElements || !slices.ContainsFunc(c.numbers, func(x float32) bool { return x != c.numbers[0] })
	return c
}

// is reports whether c equals want in one of their arrangements.
func (c *candidate) is(want *candidate, tol kernels.Tolerance) bool {
	return slices.ContainsFunc(c.arrangements(want), func(x [2][]float32) bool { return near(x[0], x[1], tol) })
}

// arrangements returns the elements of both in the orders in which their sizes allow to compare them: as they are, and
// one of them in channels-last order.
func (c *candidate) arrangements(want *candidate) (list [][2][]float32) {
	if squeezed(c.sizes, nil) == squeezed(want.sizes, nil) {
		list = append(list, [2][]float32{c.numbers, want.numbers})
	}
	if last := c.lastOf(want); last != nil {
		list = append(list, [2][]float32{c.numbers, last})
	}
	if last := want.lastOf(c); last != nil {
		list = append(list, [2][]float32{last, want.numbers})
	}
	return list
}

// distance measures c from want in the arrangement in which they are the closest; ok is false if there is none.
func (c *candidate) distance(want *candidate, tol kernels.Tolerance) (best diff.Distance, ok bool) {
	for _, x := range c.arrangements(want) {
		if d := diff.Measure(vector(x[0]), vector(x[1]), tol); !ok || d.MeanAbs < best.MeanAbs {
			best, ok = d, true
		}
	}
	return best, ok
}

// lastOf returns the elements of want in channels-last order if these are c's sizes, else nil. Either may lack dimensions
// of size 1: exporters compute one-dimensional convolutions as images of one line.
func (c *candidate) lastOf(want *candidate) []float32 {
	if len(want.sizes) < 3 || squeezed(c.sizes, nil) != squeezed(want.sizes, channelsLast(len(want.sizes))) {
		return nil
	}
	if want.last == nil {
		want.last = make([]float32, len(want.numbers))
		channels, pixels := want.sizes[1], 1
		for _, size := range want.sizes[2:] {
			pixels *= size
		}
		for i, x := range want.numbers {
			image, channel, pixel := i/(channels*pixels), i/pixels%channels, i%pixels
			want.last[(image*pixels+pixel)*channels+channel] = x
		}
	}
	return want.last
}

// channelsLast returns the order of the dimensions of images with the channels, dimension 1, last.
func channelsLast(rank int) []int {
	order := make([]int, rank)
	for i := range order[1:] {
		order[i+1] = (i+1)%(rank-1) + 1
	}
	return order
}

// squeezed returns the sizes other than 1, in a dim order.
func squeezed(sizes []int, order []int) (s [8]int) {
	n := 0
	for i := range sizes {
		size := sizes[i]
		if order != nil {
			size = sizes[order[i]]
		}
		if size != 1 && n < len(s) {
			s[n] = size
			n++
		}
	}
	return s
}

func near(got, want []float32, tol kernels.Tolerance) bool {
	for i, x := range got {
		if !tol.Allows(float64(x), float64(want[i])) {
			return false
		}
	}
	return true
}
