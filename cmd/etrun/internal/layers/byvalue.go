package layers

import (
	"context"
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Traced locates where the values of a program diverge from those of another one, for
// programs with different instructions, such as a portable one and its delegated one, whose
// nodes compute several operators.
type Traced struct {
	Looked int    `json:"looked"`          // values of B with the element count of a value of A
	Found  int    `json:"found"`           // those equal to a value of A within the tolerance
	Last   *Place `json:"last_found"`      // last value of B that also occurs in A, in the order of execution, null for none
	First  *Place `json:"first_not_found"` // first value of B after it that does not, null for none
	// Closest is the value of A that is the closest to First, with First's distance from it.
	Closest *Difference `json:"closest,omitempty"`

	found map[*Written]bool // of B, those found: whether all elements are equal
}

// MinElements is the minimum number of elements that identify a value.
const MinElements = 8

// Trace searches for the values of b among those of a: floats of the same sizes, in the same
// or in channels-last order. It returns what it has found when ctx ends.
func Trace(ctx context.Context, a, b []Written, tol kernels.Tolerance) *Traced {
	t := &Traced{found: make(map[*Written]bool)}
	bySize := make(map[int][]*candidate)
	var first *candidate
	for i := range a {
		if c := newCandidate(&a[i]); c != nil {
			bySize[len(c.numbers)] = append(bySize[len(c.numbers)], c)
		}
	}
	for i := range b {
		if ctx.Err() != nil {
			break
		}
		c := newCandidate(&b[i])
		if c == nil || len(bySize[len(c.numbers)]) == 0 {
			continue
		}
		t.Looked++
		if c.among(bySize[len(c.numbers)], tol, t) {
			t.Last, t.First = &c.of.Place, nil
		} else if t.First == nil {
			t.First, first = &c.of.Place, c
		}
	}
	if t.Found = len(t.found); t.First != nil {
		t.Closest = first.closest(bySize[len(first.numbers)], tol)
	}
	return t
}

// among reports whether a value of a list is equal within the tolerance, and records it.
func (c *candidate) among(list []*candidate, tol kernels.Tolerance, t *Traced) bool {
	at := slices.IndexFunc(list, func(want *candidate) bool { return c.is(want, tol) })
	if at < 0 {
		return false
	}
	t.found[c.of] = slices.Equal(c.numbers, list[at].numbers) || slices.Equal(c.numbers, list[at].last)
	return true
}

// closest returns the distance from the closest value of a list, nil if none has the same sizes.
func (c *candidate) closest(list []*candidate, tol kernels.Tolerance) (best *Difference) {
	for _, want := range list {
		numbers := c.order(want)
		if numbers == nil {
			continue
		}
		d := Difference{want.of.Place, want.of.Output, want.of.TypeName(), diff.Measure(vector(c.numbers), vector(numbers), tol)}
		if best == nil || d.MeanAbs < best.MeanAbs {
			best = &d
		}
	}
	return best
}

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
}

func newCandidate(w *Written) *candidate {
	t := w.Value.Tensor
	if w.Value.Kind != tensor.KindTensor || !t.DType.IsFloat() || t.Numel() < MinElements {
		return nil
	}
	c := &candidate{of: w, sizes: t.Sizes, numbers: make([]float32, t.Numel())}
	tensor.Loader[float32](t.DType)(c.numbers, t.Logical())
	return c
}

// is reports whether c equals want, in the same or in channels-last order.
func (c *candidate) is(want *candidate, tol kernels.Tolerance) bool {
	if squeezed(c.sizes, nil) == squeezed(want.sizes, nil) && near(c.numbers, want.numbers, tol) {
		return true
	}
	last := c.lastOf(want)
	return last != nil && near(c.numbers, last, tol)
}

// order returns the elements of want in c's order, nil if the sizes differ.
func (c *candidate) order(want *candidate) []float32 {
	if squeezed(c.sizes, nil) == squeezed(want.sizes, nil) {
		return want.numbers
	}
	return c.lastOf(want)
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
