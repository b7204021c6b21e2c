package grammar

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// config is a possible position in the grammar: a node of bytes, with all stacks of the rules around it. A state has each node once.
type config struct {
	at    int32
	stack *stack
}

// state is a set of positions: after the same bytes.
type state struct {
	configs []config
	least   int32 // tokens to the end of the text
	accepts bool
	next    []*state // by class of bytes; nil if it is not known, dead if there is none
}

// dead is the state after bytes that do not belong to the form.
var dead = &state{}

// Matcher follows a text. It is for one goroutine.
type Matcher struct {
	stacks
	g      *Grammar
	states map[string]*state
	now    *state
	path   []*state
	kept   int // positions of the known states
	visits int // nodes that steps have looked at, in this call of Each
	step   step
}

// step is the work on a byte.
type step struct {
	reached []config           // the nodes that are reached without a further byte
	more    map[int32][]*stack // further stacks of nodes that are not visited yet
	slots   *[]int32           // by node: 1 and more are places in that list
	work    []config
	accepts bool
}

// Limits on the work of a matcher.
const (
	maxStates = 1 << 14   // that are kept
	maxStacks = 1 << 18   // of these
	maxKept   = 1_000_000 // positions of them, and edges
	maxVisits = 1_000_000 // in a call of Each
)

// NewMatcher returns a matcher at the beginning of a text of the tokens of v, without those that are excluded, a sorted list.
func (g *Grammar) NewMatcher(v *Vocabulary, excluded []int) *Matcher {
	m := &Matcher{g: g, stacks: stacks{dist: g.distancesOf(v, excluded), joins: maxJoins}}
	m.forget()
	m.begin()
	m.enter(config{g.rules[g.start], bottom})
	m.now = m.finish()
	return m
}

// begin begins a step.
func (m *Matcher) begin() {
	m.step.slots = m.g.slots.Get().(*[]int32)
	m.step.reached, m.step.accepts, m.joins = m.step.reached[:0], false, min(max(m.joins, 0)+stepJoins, maxJoins)
}

// finish returns the state after a step.
func (m *Matcher) finish() *state {
	next := m.state(m.expand())
	for _, p := range m.step.reached {
		(*m.step.slots)[p.at] = 0
	}
	m.g.slots.Put(m.step.slots)
	m.step.slots = nil
	return next
}

// tidy forgets the known states if they are many.
func (m *Matcher) tidy() {
	if len(m.states) > maxStates || m.kept > maxKept || len(m.known)+len(m.joined) > maxStacks || m.edges > maxKept {
		m.forget()
	}
}

// forget drops the known states; those in use stay valid. They are unlinked: else the states in use would keep all others.
func (m *Matcher) forget() {
	for _, s := range m.states {
		s.next = nil
	}
	for _, s := range m.path {
		s.next = nil
	}
	if m.now != nil {
		m.now.next = nil
	}
	m.kept, m.states = 0, make(map[string]*state)
	m.stacks.forget()
}

// Least returns a number of tokens with which the text has an end. It is very large if there is none.
func (m *Matcher) Least() int { return int(m.now.least) }

// Ends reports whether an end was found that tokens reach.
func (m *Matcher) Ends() bool { return m.now.least < unreached }

// Accepts reports whether the text can end here.
func (m *Matcher) Accepts() bool { return m.now.accepts }

// Complete reports whether the text must end here.
func (m *Matcher) Complete() bool { return m.now.accepts && len(m.now.configs) == 0 }

// Allows reports whether the text can go on with bytes, and end with left further tokens. Advance can follow with the same bytes.
func (m *Matcher) Allows(b []byte, left int) bool {
	m.tidy()
	s := m.after(b)
	return s != dead && int(s.least) <= left
}

// Advance moves on.
func (m *Matcher) Advance(b []byte) bool {
	s := m.after(b)
	if s == dead {
		return false
	}
	m.now = s
	return true
}

// after returns the state after bytes.
func (m *Matcher) after(b []byte) *state {
	s := m.now
	for i := 0; i < len(b) && s != dead; i++ {
		s = m.next(s, b[i])
	}
	return s
}

// next returns the state after a byte.
func (m *Matcher) next(s *state, c byte) *state {
	class := m.g.classes[c]
	if s.next != nil && s.next[class] != nil {
		return s.next[class]
	}
	m.begin()
	for _, p := range s.configs {
		if n := &m.g.nodes[p.at]; n.low <= c && c <= n.high {
			m.enter(config{n.next, p.stack})
		}
	}
	m.visits += len(s.configs) / 8
	next := m.finish()
	if s.next == nil {
		s.next = make([]*state, m.g.width)
	}
	s.next[class] = next
	return next
}

// enter adds a position that a byte has led to. If its rule can end there, so it adds those behind the rules that called it.
func (m *Matcher) enter(p config) {
	work := append(m.step.work[:0], p)
	for len(work) > 0 {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		if m.visits++; !m.add(p.at, p.stack) || !m.g.nodes[p.at].ends {
			continue
		}
		m.step.accepts = m.step.accepts || p.stack.empty
		for _, e := range p.stack.edges {
			work = append(work, config{e.ret, e.below})
		}
	}
	m.step.work = work
}

// add adds a node with stacks, and reports whether they are new.
func (m *Matcher) add(at int32, s *stack) bool {
	slot := &(*m.step.slots)[at]
	if *slot == 0 {
		m.step.reached = append(m.step.reached, config{at, s})
		*slot = int32(len(m.step.reached))
		return true
	}
	known := &m.step.reached[*slot-1].stack
	joined := m.join(*known, s)
	if joined == *known {
		return false
	}
	*known = joined
	return true
}

// expand returns the positions that those of the step stand for: the nodes of bytes that are reached without one. A node is visited
// after all that lead to it, with the stacks of all of them; only of loops around what can be empty some are visited again.
func (m *Matcher) expand() []config {
	m.reach()
	list := m.step.reached
	slices.SortFunc(list, func(a, b config) int { return cmp.Compare(m.g.nodes[b.at].rank, m.g.nodes[a.at].rank) })
	bytes := 0
	for i, p := range list {
		(*m.step.slots)[p.at] = int32(i + 1)
		if m.g.nodes[p.at].kind == bytesNode {
			bytes++
		}
	}
	for again := true; again; {
		again = false
		for i := range list {
			m.settle(&list[i])
			again = m.spread(list[i]) || again
		}
	}
	positions := make([]config, 0, bytes)
	for _, p := range list {
		if m.g.nodes[p.at].kind == bytesNode {
			positions = append(positions, p)
		}
	}
	return positions
}

// reach adds the nodes to the step that are reached without a byte.
func (m *Matcher) reach() {
	for i := 0; i < len(m.step.reached); i++ {
		switch n := &m.g.nodes[m.step.reached[i].at]; n.kind {
		case callNode:
			first := m.g.rules[n.rule]
			m.add(first, nil)
			if m.g.nodes[first].ends {
				m.add(n.next, nil)
			}
		case splitNode:
			for _, k := range n.others {
				m.add(k, nil)
			}
		}
	}
	m.visits += len(m.step.reached)
}

// later adds stacks to a node that is visited later: all unions of it are one, else many callers of a rule would take quadratic time.
func (m *Matcher) later(at int32, s *stack) {
	known := &m.step.reached[(*m.step.slots)[at]-1].stack
	if *known == nil {
		*known = s
	} else if *known != s {
		if m.step.more == nil {
			m.step.more = make(map[int32][]*stack)
		}
		m.step.more[at] = append(m.step.more[at], s)
	}
}

// settle unites the stacks of a node.
func (m *Matcher) settle(p *config) {
	if more := m.step.more[p.at]; len(more) == 1 {
		p.stack = m.join(p.stack, more[0])
	} else if len(more) > 1 {
		p.stack = m.union(append(more, p.stack))
		m.visits += len(p.stack.edges)
	} else {
		return
	}
	delete(m.step.more, p.at)
}

// spread adds the stacks of a node to those that follow it. It reports whether one of these was visited before.
func (m *Matcher) spread(p config) (again bool) {
	n, s := &m.g.nodes[p.at], p.stack
	to := func(k int32, s *stack) {
		if m.g.nodes[k].rank < n.rank {
			m.later(k, s)
		} else {
			again = m.add(k, s) || again
		}
	}
	switch {
	case s == nil:
	case n.kind == splitNode:
		for _, k := range n.others {
			to(k, s)
		}
	case n.kind == callNode:
		first := m.g.rules[n.rule]
		if m.g.nodes[first].ends { // no text: the rule's end is not looked at again
			to(n.next, s)
		}
		if m.g.nodes[n.next].kind != endNode { // else nothing follows here: rules that end with themselves need no stack
			s = m.push(n.next, s)
		}
		to(first, s)
	}
	return again
}

// state returns the state of positions.
func (m *Matcher) state(list []config) *state {
	if len(list) == 0 && !m.step.accepts {
		return dead
	}
	m.key = m.key[:0]
	if m.step.accepts {
		m.key = append(m.key, 1)
	}
	for _, p := range list {
		m.key = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(m.key, uint32(p.at)), p.stack.id)
	}
	if s := m.states[string(m.key)]; s != nil {
		return s
	}
	s := &state{configs: list, accepts: m.step.accepts, least: unreached}
	if s.accepts {
		s.least = 0
	}
	for _, p := range list {
		s.least = min(s.least, m.dist[p.at]+p.stack.rest)
	}
	m.states[string(m.key)] = s
	m.kept += len(list)
	return s
}

// Each calls f for each token with which the text can go on, and end with left further tokens. It is false if it took too much work to
// look at all tokens: f was then called for some of them, at least those on a way to the nearest end.
func (m *Matcher) Each(v *Vocabulary, left int, f func(id int)) bool {
	m.visits = 0
	m.path = append(m.path[:0], m.now)
	failed := int32(-1) // the length of a beginning that does not belong to the form
	for i, s := range v.texts {
		common := v.shared[i]
		if failed >= 0 && common >= failed {
			continue // it has that beginning
		}
		if m.Spent() {
			m.nearest(v, left, f)
			m.visits = 0
			return false
		}
		failed = -1
		m.path = m.path[:min(int(common)+1, len(m.path))]
		for k := len(m.path) - 1; k < len(s); k++ {
			m.tidy()
			next := m.next(m.path[k], s[k])
			if next == dead {
				failed = int32(k + 1)
				break
			}
			m.path = append(m.path, next)
		}
		if failed < 0 && int(m.path[len(s)].least) <= left {
			f(int(v.ids[i]))
		}
	}
	return true
}

// Spent reports whether there was much work since Each.
func (m *Matcher) Spent() bool { return m.visits > maxVisits }

// nearest calls f for the tokens that lead from the position with the nearest end toward it.
func (m *Matcher) nearest(v *Vocabulary, left int, f func(id int)) {
	best, least := int32(-1), int32(unreached)
	for _, p := range m.now.configs {
		if n := m.dist[p.at] + p.stack.rest; n < least {
			best, least = p.at, n
		}
	}
	if best < 0 {
		return
	}
	try := func(text []byte) {
		if ids := v.all(string(text)); len(ids) > 0 && m.Allows(text, left) {
			for _, id := range ids {
				f(int(id))
			}
		}
	}
	n := &m.g.nodes[best]
	for c := int(n.low); c <= int(n.high); c++ {
		try([]byte{byte(c)})
	}
	for text := range m.g.fixed(best) {
		if len(text) > 1 {
			try(text)
		}
	}
}
