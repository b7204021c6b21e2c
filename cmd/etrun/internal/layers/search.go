package layers

import (
	"context"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// search finds the values of one program among those of another one by their elements and by the
// dataflow. A value of B has those values of A as matches whose elements are equal within the tolerance,
// and that depend on a match of each value that it is computed from. Of these count the nearest that
// have matches, since one program may have values that the other one does not have. Values that may be
// equal by chance (weak ones), and those computed at load, which the other program may have in its file, have
// matches, but prove nothing about others.
type search struct {
	a, b    []Written
	tol     kernels.Tolerance
	bySize  map[int][]indexed
	before  []bits        // of A: the values that each one depends on, and itself; nil if there are too many
	matches map[int][]int // of B: indexes of A; none of weak values
	nearest [][]int       // of B: the nearest values with matches that each one is computed from
	missing []indexed     // of B: those without matches, in order
	last    int           // of B: the last one with matches, -1 for none
	traced  *Traced
}

// indexed is a candidate with its index in its program.
type indexed struct {
	*candidate
	at int
}

// maxFlow is the maximum number of values whose dependences are known; they take quadratic memory.
const maxFlow = 1 << 14

// bits is a set of indexes.
type bits []uint64

func (s bits) has(i int) bool { return i/64 < len(s) && s[i/64]>>(i%64)&1 != 0 }

func newSearch(a, b *Recorder, tol kernels.Tolerance) *search {
	s := &search{a: a.all, b: b.all, tol: tol, bySize: make(map[int][]indexed), matches: make(map[int][]int),
		nearest: make([][]int, len(b.all)), last: -1, traced: &Traced{found: make(map[*tensor.Value]Pair)}}
	for i := range s.a {
		if c := newCandidate(&s.a[i]); c != nil {
			s.bySize[len(c.numbers)] = append(s.bySize[len(c.numbers)], indexed{c, i})
		}
	}
	if len(s.a) <= maxFlow {
		s.before = dependences(s.a)
	}
	return s
}

// dependences returns for each value those that it depends on, and itself.
func dependences(list []Written) []bits {
	sets := make([]bits, len(list))
	for i := range list {
		sets[i] = make(bits, i/64+1)
		sets[i][i/64] |= 1 << (i % 64)
		for _, from := range list[i].from {
			for k, word := range sets[from] {
				sets[i][k] |= word
			}
		}
	}
	return sets
}

// look searches for a value of B.
func (s *search) look(i int) {
	w := &s.b[i]
	s.computedFrom(i)
	c := newCandidate(w)
	if c == nil || len(s.bySize[len(c.numbers)]) == 0 {
		return
	}
	found := s.find(i, c)
	if !c.weak && w.Call != atLoad && len(found) > 0 {
		s.matches[i] = atOf(found)
	}
	switch {
	case w.Round == ofInput:
		return
	case len(found) == 0 && w.Call == atLoad:
	case len(found) == 0:
		s.missing = append(s.missing, indexed{c, i})
	default:
		s.last, s.traced.found[w.Value] = i, s.best(c, found)
	}
	s.traced.Looked++
}

// computedFrom collects the nearest values with matches that value i of B is computed from.
func (s *search) computedFrom(i int) {
	for _, from := range s.b[i].from {
		if s.matches[from] != nil {
			s.nearest[i] = append(s.nearest[i], from)
		} else {
			s.nearest[i] = append(s.nearest[i], s.nearest[from]...)
		}
	}
	s.nearest[i] = unique(s.nearest[i])
}

// find returns the values of A that a value of B is equal to, and that follow from the same values. If the nearest of
// these are found on another way, such as one of two equal computations of which A has one, those before them count.
func (s *search) find(i int, c *candidate) (list []indexed) {
	var others []indexed
	for _, want := range s.bySize[len(c.numbers)] {
		follows := s.follows(want.at, s.nearest[i])
		switch {
		case !follows && c.weak || !c.is(want.candidate, s.tol):
		case follows:
			list = append(list, want)
		case s.reaches(want.at, s.nearest[i], make(map[int]bool)):
			others = append(others, want)
		}
	}
	if list == nil {
		return others
	}
	return list
}

func atOf(list []indexed) (at []int) {
	for _, x := range list {
		at = append(at, x.at)
	}
	return at
}

// follows reports whether a value of A depends on a match of each of some values of B.
func (s *search) follows(a int, nearest []int) bool {
	if s.before == nil {
		return true
	}
	return !slices.ContainsFunc(nearest, func(b int) bool {
		return !slices.ContainsFunc(s.matches[b], s.before[a].has)
	})
}

// reaches reports whether a value of A depends for each of some values of B on a match of it, or of all before it.
func (s *search) reaches(a int, nearest []int, seen map[int]bool) bool {
	return !slices.ContainsFunc(nearest, func(b int) bool {
		if ok, known := seen[b]; known {
			return !ok
		}
		seen[b] = slices.ContainsFunc(s.matches[b], s.before[a].has) || len(s.nearest[b]) > 0 && s.reaches(a, s.nearest[b], seen)
		return !seen[b]
	})
}

// best is the pair with the closest of some values.
func (s *search) best(c *candidate, list []indexed) Pair {
	best := Pair{B: c.of}
	for _, want := range list {
		if d, ok := c.distance(want.candidate, s.tol); ok && (best.found == nil || d.MeanAbs < best.found.MeanAbs) {
			best.A, best.found = want.of, &d
		}
	}
	return best
}

// confirmed returns which values of B something with a match is computed from.
func (s *search) confirmed() []bool {
	list := make([]bool, len(s.b))
	for i := range slices.Backward(s.b) {
		if list[i] || s.matches[i] != nil {
			for _, from := range s.b[i].from {
				list[from] = true
			}
		}
	}
	return list
}

// result returns what was found.
func (s *search) result() *Traced {
	t, confirmed := s.traced, s.confirmed()
	t.Found = len(t.found)
	first := slices.IndexFunc(s.missing, func(x indexed) bool { return !confirmed[x.at] })
	if first >= 0 {
		x := s.missing[first]
		t.first, t.First, s.last = x.of, &x.of.Place, -1
		if p := s.closest(x); p.A != nil {
			t.closest, t.Closest = p, &Difference{p.A.Place, p.A.Output, p.A.TypeName(), *p.found}
		}
		for _, b := range s.nearest[x.at] {
			if s.b[b].Round != ofInput {
				s.last = b
			}
		}
	}
	if s.last >= 0 {
		t.Last = &s.b[s.last].Place
	}
	return t
}

// closest returns the pair with the closest value of the same sizes that follows from the same values, else with the
// closest of all, without A if none has these sizes.
func (s *search) closest(x indexed) Pair {
	all := s.bySize[len(x.numbers)]
	follow := slices.DeleteFunc(slices.Clone(all), func(want indexed) bool { return !s.follows(want.at, s.nearest[x.at]) })
	if p := s.best(x.candidate, follow); p.A != nil {
		return p
	}
	return s.best(x.candidate, all)
}

// traceValues searches for the values of b among those of a: floats of the same sizes, in the same
// or in channels-last order, that are computed from the same values (see search). It returns what it has found when ctx ends.
func traceValues(ctx context.Context, a, b *Recorder, tol kernels.Tolerance) *Traced {
	s := newSearch(a, b, tol)
	for i := range b.all {
		if ctx.Err() != nil {
			break
		}
		s.look(i)
	}
	return s.result()
}
