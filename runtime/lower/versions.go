package lower

import "github.com/etrun-go/etrun/runtime/ir"

// version is a tensor at one of its definitions.
type version struct{ value, def int }

// mark is an index that is valid in one round.
type mark struct{ round, index int32 }

// versions maps versions of a method to indexes, in one round after another. Values that are not
// tensors have one version, without a definition.
type versions struct {
	flow  *ir.Flow
	round int32
	fixed []mark          // by value: the version without a definition in the block
	made  []mark          // by definition: the version of the value that its step writes
	views map[version]int // all others
}

func newVersions(m *ir.Method, f *ir.Flow) versions {
	return versions{flow: f, round: 1, fixed: make([]mark, len(m.Values)), made: make([]mark, len(f.Defs))}
}

// reset forgets all indexes.
func (s *versions) reset() {
	s.round++
	clear(s.views)
}

// slot returns the mark of a version, nil for views.
func (s *versions) slot(at version) *mark {
	switch {
	case at.def == outside:
		return &s.fixed[at.value]
	case s.flow.Defs[at.def].Value == at.value:
		return &s.made[at.def]
	}
	return nil
}

// get returns the index of a version.
func (s *versions) get(at version) (index int, ok bool) {
	m := s.slot(at)
	if m == nil {
		index, ok = s.views[at]
		return index, ok
	}
	return int(m.index), m.round == s.round
}

func (s *versions) set(at version, index int) {
	m := s.slot(at)
	if m != nil {
		*m = mark{s.round, int32(index)}
		return
	}
	if s.views == nil {
		s.views = make(map[version]int)
	}
	s.views[at] = index
}

// chunks allocates short lists of integers together.
type chunks struct{ free, marked []int }

// list returns an empty list with room for n integers.
func (c *chunks) list(n int) []int {
	if cap(c.free) < n {
		c.free = make([]int, 0, max(n, 256))
		c.marked = c.free
	}
	list := c.free[:0:n]
	c.free = c.free[n:n:cap(c.free)]
	return list
}

// keep keeps the lists so far. The memory of later ones is free again after forget.
func (c *chunks) keep() { c.marked = c.free }

func (c *chunks) forget() { c.free = c.marked }

// outside stands for definitions before a block, and for a missing step or compiler.
const outside = -1
