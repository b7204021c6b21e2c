package layers

import (
	"context"
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// maxSearched limits the values of one operator and type among which counterparts are searched, which takes quadratic time.
// Larger groups are paired in order.
const maxSearched = 2048

// alignOther pairs values of different programs, in b's order: those of operators outside delegates of which both programs
// have equally many with the same name and result type. Exporters order branches differently, so the counterpart is the first
// value that is equal within the tolerance, else the nearest. It returns what it has when ctx ends.
func alignOther(ctx context.Context, a, b []Written, tol kernels.Tolerance) []Pair {
	ga, gb := byOperator(a), byOperator(b)
	of := make(map[*Written]*Written)
	for k, list := range gb {
		if len(ga[k]) == len(list) && ctx.Err() == nil {
			assign(ga[k], list, of, tol)
		}
	}
	var pairs []Pair
	for i := range b {
		if want := of[&b[i]]; want != nil {
			pairs = append(pairs, Pair{A: want, B: &b[i]})
		}
	}
	return pairs
}

// byOperator groups the values of operators outside delegates by operator and result type.
func byOperator(list []Written) map[key][]*Written {
	groups := make(map[key][]*Written)
	for i := range list {
		if w := &list[i]; w.Delegate < 0 && w.Operator != "MoveCall" {
			k := key{method: w.Method, call: w.Call, output: w.Output, text: w.Operator + " " + w.TypeName()}
			groups[k] = append(groups[k], w)
		}
	}
	return groups
}

// assign pairs two lists of equal length.
func assign(a, b []*Written, of map[*Written]*Written, tol kernels.Tolerance) {
	if len(a) == 1 || len(a) > maxSearched {
		for i, w := range b {
			of[w] = a[i]
		}
		return
	}
	left := make([]*sample, len(a)) // nil if it is paired
	for i, w := range a {
		left[i] = newSample(w)
	}
	var rest []*sample
	for i, w := range b {
		s := newSample(w)
		if k := s.equal(left, i, tol); k >= 0 {
			of[w], left[k] = left[k].of, nil
			continue
		}
		rest = append(rest, s)
	}
	for _, s := range rest {
		k := s.nearest(left)
		of[s.of], left[k] = left[k].of, nil
	}
}

// maxSamples is the number of elements by which values are paired.
const maxSamples = 64

// sample has elements of a value, in equal distances.
type sample struct {
	of       *Written
	elements []float64
}

func newSample(w *Written) *sample {
	s := &sample{of: w}
	switch v := w.Value; v.Kind {
	case tensor.KindTensor:
		s.elements = elements(v.Tensor)
	case tensor.KindInt:
		s.elements = []float64{float64(v.Int)}
	case tensor.KindDouble:
		s.elements = []float64{v.Double}
	}
	return s
}

func elements(t *tensor.Tensor) []float64 {
	load, size, n := tensor.Loader[float64](t.DType), t.DType.Size(), t.Numel()
	if load == nil || n == 0 {
		return nil
	}
	list, data := make([]float64, min(n, maxSamples)), t.Logical()
	for i := range list {
		load(list[i:i+1], data[i*n/len(list)*size:])
	}
	return list
}

// equal returns the index of the first sample that is equal within the tolerance, beginning at first; -1 for none.
func (s *sample) equal(list []*sample, first int, tol kernels.Tolerance) int {
	for n := range list {
		k := (first + n) % len(list)
		if list[k] != nil && s.allowed(list[k], tol) && compare.Values(s.of.Value, list[k].of.Value, tol) == nil {
			return k
		}
	}
	return -1
}

func (s *sample) allowed(want *sample, tol kernels.Tolerance) bool {
	for i, x := range s.elements {
		if i >= len(want.elements) || !tol.Allows(x, want.elements[i]) {
			return false
		}
	}
	return true
}

// nearest returns the index of the sample with the smallest sum of distances.
func (s *sample) nearest(list []*sample) int {
	best, smallest := -1, 0.0
	for k, want := range list {
		if want == nil {
			continue
		}
		if d := s.distance(want); best < 0 || d < smallest {
			best, smallest = k, d
		}
	}
	return best
}

func (s *sample) distance(want *sample) (sum float64) {
	for i, x := range s.elements[:min(len(s.elements), len(want.elements))] {
		if d := math.Abs(x - want.elements[i]); !math.IsNaN(d) {
			sum += d
		}
	}
	return sum
}
