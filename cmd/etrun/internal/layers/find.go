package layers

import (
	"bytes"
	"context"
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Difference is a value that differs from its counterpart.
type Difference struct {
	Place
	Output int    `json:"output"`
	Type   string `json:"type"`
	diff.Distance
}

// Result is the result of comparing two runs value by value.
type Result struct {
	Compared int         `json:"compared"`               // values with a counterpart
	Values   int         `json:"values"`                 // values of B
	Equal    int         `json:"equal"`                  // equal among the compared values
	Unequal  *Difference `json:"first_not_equal"`        // in the order of execution, null for none
	First    *Difference `json:"first_beyond_tolerance"` // in the order of execution, null for none
}

// Find compares pairs in order. It returns the result of those before ctx ended.
func Find(ctx context.Context, pairs []Pair, tol kernels.Tolerance) *Result {
	r := &Result{}
	for _, p := range pairs {
		if ctx.Err() != nil {
			break
		}
		r.Compared++
		if sameBytes(p.A.Value, p.B.Value) {
			r.Equal++
			continue
		}
		d := Difference{p.B.Place, p.B.Output, p.B.TypeName(), p.Distance(tol)}
		if d.Equal {
			r.Equal++
			continue
		}
		if r.Unequal == nil {
			r.Unequal = &d
		}
		if r.First == nil && d.Differs != "" {
			r.First = &d
		}
	}
	return r
}

// sameBytes reports whether two tensors have the same bytes, which is a cheap check.
func sameBytes(a, b *tensor.Value) bool {
	if a.Kind != tensor.KindTensor || b.Kind != tensor.KindTensor {
		return false
	}
	x, y := a.Tensor, b.Tensor
	return x.DType == y.DType && slices.Equal(x.Sizes, y.Sizes) && slices.Equal(x.DimOrder, y.DimOrder) && bytes.Equal(x.Data, y.Data)
}

// Counterparts pairs the values of two runs of the same instructions, or of different ones (see alignOther), in b's order.
// With trace it searches for the others by value; t is nil without others. Pairs of both kinds have their distances by
// Pair.Distance.
func Counterparts(ctx context.Context, a, b *Recorder, other, trace bool, tol kernels.Tolerance) (pairs []Pair, t *Traced) {
	if other {
		pairs = alignOther(ctx, a.List, b.List, tol)
	} else {
		pairs = alignSame(a.List, b.List)
	}
	if trace && len(pairs) < len(b.List) {
		t = traceValues(ctx, a, b, tol)
		t.leave(pairs)
	}
	return pairs, t
}

// leave forgets the values that are in pairs.
func (t *Traced) leave(pairs []Pair) {
	for _, p := range pairs {
		delete(t.found, p.B.Value)
	}
}

// Add counts the values that were found by value.
func (r *Result) Add(t *Traced) {
	r.Compared += len(t.found)
	for _, p := range t.found {
		if p.found.Equal {
			r.Equal++
		}
	}
}

// Earlier makes the first value that was not found the first one beyond the tolerance if it precedes that in b.
func (r *Result) Earlier(t *Traced, b []Written) {
	if r.First == nil || t.First == nil || t.Closest == nil {
		return
	}
	at := func(p *Place) int { return slices.IndexFunc(b, func(w Written) bool { return w.Place == *p }) }
	if at(t.First) < at(&r.First.Place) {
		r.First = &Difference{*t.First, t.first.Output, t.first.TypeName(), t.Closest.Distance}
	}
}

// alike is the least cosine similarity of First with the closest value at which that is its counterpart.
const alike = 0.9

// Pairs returns the found values with their matches, in the order of b, and First with the closest value if they are alike.
func (t *Traced) Pairs(b []Written) (pairs []Pair) {
	for i := range b {
		if m, ok := t.found[b[i].Value]; ok {
			pairs = append(pairs, m)
		}
	}
	if t.closest.A != nil && t.closest.found.Cosine >= alike {
		pairs = append(pairs, t.closest)
	}
	return pairs
}

// Traced locates where the values of a program diverge from those of another one, for
// programs with different instructions, such as a portable one and its delegated one, whose
// nodes compute several operators.
type Traced struct {
	Looked int `json:"looked"` // values of B with the element count of a value of A
	Found  int `json:"found"`  // those equal to a value of A within the tolerance
	// Last is the last value of B that also occurs in A, of those from which First is computed; null for none.
	Last *Place `json:"last_found"`
	// First is the first value of B, in the order of execution, that does not occur in A, and from which nothing is computed that
	// does; null for none.
	First *Place `json:"first_not_found"`
	// Closest is the value of A that is the closest to First, with First's distance from it.
	Closest *Difference `json:"closest,omitempty"`

	found   map[*tensor.Value]Pair // of B, those found
	first   *Written               // of First
	closest Pair                   // of First, without A if there is none
}
