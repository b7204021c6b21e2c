package layers

import (
	"slices"

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
}

// minElements is the minimum number of elements that identify a value.
const minElements = 8

// Trace searches for the values of b among those of a: floats of the same sizes, in the same
// or in channels-last order.
func Trace(a, b []Written, tol kernels.Tolerance) *Traced {
	t, bySize := &Traced{}, make(map[int][]*candidate)
	for i := range a {
		if c := newCandidate(&a[i]); c != nil {
			bySize[len(c.numbers)] = append(bySize[len(c.numbers)], c)
		}
	}
	for i := range b {
		c := newCandidate(&b[i])
		if c == nil || len(bySize[len(c.numbers)]) == 0 {
			continue
		}
		t.Looked++
		if slices.ContainsFunc(bySize[len(c.numbers)], func(want *candidate) bool { return c.is(want, tol) }) {
			t.Found++
			t.Last, t.First = &b[i].Place, nil
		} else if t.First == nil {
			t.First = &b[i].Place
		}
	}
	return t
}

// candidate is a value with its elements in logical order.
type candidate struct {
	sizes   []int
	numbers []float32
	last    []float32 // in channels-last order, for images; computed on demand
}

func newCandidate(w *Written) *candidate {
	t := w.Value.Tensor
	if w.Value.Kind != tensor.KindTensor || !t.DType.IsFloat() || t.Numel() < minElements {
		return nil
	}
	c := &candidate{sizes: t.Sizes, numbers: make([]float32, t.Numel())}
	tensor.Loader[float32](t.DType)(c.numbers, t.Logical())
	return c
}

// is reports whether c equals want, in the same or in channels-last order.
func (c *candidate) is(want *candidate, tol kernels.Tolerance) bool {
	if squeezed(c.sizes, nil) == squeezed(want.sizes, nil) && near(c.numbers, want.numbers, tol) {
		return true
	}
	if len(want.sizes) != 4 || len(c.sizes) != 4 || squeezed(c.sizes, nil) != squeezed(want.sizes, channelsLast) {
		return false
	}
	if want.last == nil {
		want.last = make([]float32, len(want.numbers))
		channels, pixels := want.sizes[1], want.sizes[2]*want.sizes[3]
		for i, x := range want.numbers {
			image, channel, pixel := i/(channels*pixels), i/pixels%channels, i%pixels
			want.last[(image*pixels+pixel)*channels+channel] = x
		}
	}
	return near(c.numbers, want.last, tol)
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
