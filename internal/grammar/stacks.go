package grammar

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// stack is a set of stacks of nodes to which called rules return. Those with the same top are one edge, and equal sets are one value:
// so alternatives that begin alike share what is below them, at any depth.
type stack struct {
	id    uint32
	empty bool   // one of the stacks has no node: the end of the rule is that of the text
	edges []edge // by the node on top, each once
	rest  int32  // tokens to the end of the text
}

// edge is a node on top of stacks, and what is below it.
type edge struct {
	ret   int32
	below *stack
}

// Limits on unions of stacks. Few forms need more than one for each byte: those whose texts can be read in very many ways.
const (
	maxJoins  = 20_000 // of a step
	stepJoins = 32     // that each further step can have
)

// bottom is the set of the empty stack.
var bottom = &stack{empty: true}

// stacks are the sets of a matcher.
type stacks struct {
	dist   []int32
	known  map[string]*stack
	joined map[[2]*stack]*stack
	ids    uint32
	edges  int // of the known sets
	joins  int // that are left
	key    []byte
}

// forget drops the known sets; those in use stay valid.
func (s *stacks) forget() {
	s.known, s.joined, s.edges = nil, nil, 0
}

// push returns the stacks with a node on top of others.
func (s *stacks) push(ret int32, below *stack) *stack {
	return s.of([]edge{{ret, below}}, false)
}

// of returns the set of sorted edges; the same one for the same arguments.
func (s *stacks) of(edges []edge, empty bool) *stack {
	s.key = s.key[:0]
	if empty {
		s.key = append(s.key, 1)
	}
	for _, e := range edges {
		s.key = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(s.key, uint32(e.ret)), e.below.id)
	}
	if x := s.known[string(s.key)]; x != nil {
		return x
	}
	s.ids++
	x := &stack{s.ids, empty, edges, unreached}
	if empty {
		x.rest = 0
	}
	for _, e := range edges {
		x.rest = min(x.rest, s.dist[e.ret]+e.below.rest)
	}
	if s.known == nil {
		s.known = make(map[string]*stack)
	}
	s.known[string(s.key)] = x
	s.edges += len(edges)
	return x
}

// join returns the union of two sets; nil is none. Beyond the bound on work it is the one with the nearer end: all of its texts are
// texts of the union, and so is the shortest one.
func (s *stacks) join(a, b *stack) *stack {
	switch {
	case a == b || b == nil:
		return a
	case a == nil:
		return b
	case a.id > b.id:
		a, b = b, a
	}
	if x := s.joined[[2]*stack{a, b}]; x != nil {
		return x
	}
	if s.joins--; s.joins < 0 {
		if b.rest < a.rest {
			return b
		}
		return a
	}
	x := s.of(s.merge(a.edges, b.edges), a.empty || b.empty)
	if s.joined == nil {
		s.joined = make(map[[2]*stack]*stack)
	}
	s.joined[[2]*stack{a, b}] = x
	return x
}

// union returns the union of several sets.
func (s *stacks) union(list []*stack) *stack {
	var edges []edge
	empty := false
	for _, x := range list {
		edges, empty = append(edges, x.edges...), empty || x.empty
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.ret, b.ret), cmp.Compare(a.below.id, b.below.id)) })
	n := 0
	for _, e := range edges {
		if n > 0 && edges[n-1].ret == e.ret {
			edges[n-1].below = s.join(edges[n-1].below, e.below)
		} else {
			edges[n] = e
			n++
		}
	}
	return s.of(edges[:n:n], empty)
}

// merge returns the edges of both lists.
func (s *stacks) merge(a, b []edge) []edge {
	list := make([]edge, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch x, y := a[0], b[0]; {
		case x.ret < y.ret:
			list, a = append(list, x), a[1:]
		case x.ret > y.ret:
			list, b = append(list, y), b[1:]
		default:
			list, a, b = append(list, edge{x.ret, s.join(x.below, y.below)}), a[1:], b[1:]
		}
	}
	return append(append(list, a...), b...)
}
