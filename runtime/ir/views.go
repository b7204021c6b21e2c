package ir

import (
	"fmt"

	"github.com/etrun-go/etrun/runtime/pte"
)

// A view gets its sizes and bytes from the step that makes it. Before that step it would have those of
// the previous run.

// checkViews refuses methods that use a view on a path on which no step has made it, and those that make
// a view of an input's slot, which the caller resizes.
func (m *Method) checkViews() error {
	index, views := make(map[int]int), m.Views()
	for v, is := range views {
		if is {
			index[v] = len(index)
		}
	}
	if len(index) == 0 {
		return nil
	}
	for i, v := range m.Inputs {
		if views[v] {
			return fmt.Errorf("input %d (value %d) is made a view of another value: %w", i, v, pte.ErrUnsupported)
		}
	}
	made, err := m.madeViews(index)
	if err != nil {
		return err
	}
	for i := range m.Steps {
		for _, v := range m.usedViews(&m.Steps[i], views) {
			if !made.has(i, index[v]) {
				return m.stepError(&m.Steps[i], fmt.Errorf("value %d is used before a step has made it a view: %w", v, pte.ErrFormat))
			}
		}
	}
	for _, v := range m.tensors(nil, m.Outputs...) {
		if views[v] && !made.has(len(m.Steps), index[v]) {
			return fmt.Errorf("output value %d is a view that not every run makes: %w", v, pte.ErrFormat)
		}
	}
	return nil
}

// usedViews returns the views that a step uses.
func (m *Method) usedViews(s *Step, views []bool) (list []int) {
	lists := [...][]int{s.Reads, s.Updates, s.Writes}
	if s.IsView() {
		lists[2] = nil
	}
	for _, values := range lists {
		for _, v := range values {
			if views[v] {
				list = append(list, v)
			}
		}
	}
	return list
}

// rows is a set of bits for each step and for the end.
type rows struct {
	words int
	bits  []uint64
}

func (r *rows) row(i int) []uint64          { return r.bits[i*r.words : (i+1)*r.words] }
func (r *rows) has(i, bit int) bool         { return r.row(i)[bit/64]>>(bit%64)&1 != 0 }
func (r *rows) set(words []uint64, bit int) { words[bit/64] |= 1 << (bit % 64) }

// madeViews returns, for each step, the views that are made on every path to it: the textbook forward
// analysis, which begins with all views everywhere except at the first step.
func (m *Method) madeViews(index map[int]int) (*rows, error) {
	n, r := len(m.Steps), &rows{words: (len(index) + 63) / 64}
	if (n+1)*r.words > maxLiveWords {
		return nil, fmt.Errorf("%d views in %d steps: %w", len(index), n, pte.ErrLimit)
	}
	r.bits = make([]uint64, (n+1)*r.words)
	for i := r.words; i < len(r.bits); i++ {
		r.bits[i] = ^uint64(0)
	}
	out := make([]uint64, r.words)
	for left, changed := maxLiveWork, true; changed; {
		if left -= (n + 1) * r.words; left < 0 {
			return nil, fmt.Errorf("%d views in %d steps with jumps: %w", len(index), n, pte.ErrLimit)
		}
		changed = false
		for i := range m.Steps {
			s := &m.Steps[i]
			copy(out, r.row(i))
			if s.IsView() {
				for _, v := range s.Writes {
					r.set(out, index[v])
				}
			}
			changed = meet(r.row(i+1), out) || changed
			if s.IsJump() {
				changed = meet(r.row(s.Target), out) || changed
			}
		}
	}
	return r, nil
}

// meet removes from a set what another has not, and reports whether it changed.
func meet(set, other []uint64) (changed bool) {
	for w := range set {
		if both := set[w] & other[w]; both != set[w] {
			set[w], changed = both, true
		}
	}
	return changed
}
