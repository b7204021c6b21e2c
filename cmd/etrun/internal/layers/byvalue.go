package layers

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// match is a value of A that a value of B is equal to.
type match struct {
	of    *Written
	equal bool // all elements are equal
}

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

// is reports whether c equals want, in the same order, or one of them in channels-last order.
func (c *candidate) is(want *candidate, tol kernels.Tolerance) bool {
	if squeezed(c.sizes, nil) == squeezed(want.sizes, nil) && near(c.numbers, want.numbers, tol) {
		return true
	}
	if last := c.lastOf(want); last != nil && near(c.numbers, last, tol) {
		return true
	}
	last := want.lastOf(c)
	return last != nil && near(last, want.numbers, tol)
}

// order returns the elements of both in one order, nil if the sizes differ.
func (c *candidate) order(want *candidate) (got, wanted []float32) {
	if squeezed(c.sizes, nil) == squeezed(want.sizes, nil) {
		return c.numbers, want.numbers
	}
	if last := c.lastOf(want); last != nil {
		return c.numbers, last
	}
	if last := want.lastOf(c); last != nil {
		return last, want.numbers
	}
	return nil, nil
}

// lastOf returns the elements of want in channels-last order if these are c's sizes, else nil.
func (c *candidate) lastOf(want *candidate) []float32 {
	if len(want.sizes) != 4 || len(c.sizes) != 4 || squeezed(c.sizes, nil) != squeezed(want.sizes, channelsLast) {
		return nil
	}
	if want.last == nil {
		want.last = make([]float32, len(want.numbers))
		channels, pixels := want.sizes[1], want.sizes[2]*want.sizes[3]
		for i, x := range want.numbers {
			image, channel, pixel := i/(channels*pixels), i/pixels%channels, i%pixels
			want.last[(image*pixels+pixel)*channels+channel] = x
		}
	}
	return want.last
}

var channelsLast = []int{0, 2, 3, 1}

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
