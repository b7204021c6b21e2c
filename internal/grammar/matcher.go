package grammar

import (
	"encoding/binary"
	"fmt"
)

// frame is a node to which a called rule returns.
type frame struct {
	id     uint32
	ret    int32
	parent *frame
	rest   int32 // tokens from ret to the end of the text
}

// config is a possible position in the grammar.
type config struct {
	at    int32
	stack *frame // nil in the first rule
}

// state is a set of positions: after the same bytes.
type state struct {
	configs []config
	least   int32 // tokens to the end of the text
	accepts bool
	next    map[byte]*state
}

// Matcher follows a text. It is for one goroutine.
type Matcher struct {
	g      *Grammar
	dist   []int32
	frames map[frameKey]*frame
	states map[string]*state
	ids    uint32
	key    []byte
	now    *state
	path   []*state
	kept   int             // positions of the known states
	visits int             // nodes that steps have looked at, in this call of Each
	seen   map[config]bool // in this step
	many   bool            // a state would have more alternatives than are supported
}

type frameKey struct {
	ret    int32
	parent *frame
}

// Limits on the work of a matcher.
const (
	maxStates = 1 << 14         // that are kept
	maxKept   = 1_000_000       // positions of them
	maxSeen   = 10 * maxConfigs // nodes of a step
	maxVisits = 1_000_000       // in a call of Each
)

// ErrTooMany reports a form that has more alternatives at some place than are supported.
var ErrTooMany = fmt.Errorf("more than %d alternatives at once", maxConfigs)

// NewMatcher returns a matcher at the beginning of a text of the tokens of v, without those that are excluded, a sorted list. The
// error is ErrTooMany.
func (g *Grammar) NewMatcher(v *Vocabulary, excluded []int) (*Matcher, error) {
	m := &Matcher{g: g, dist: g.distancesOf(v, excluded)}
	m.forget()
	m.begin()
	list := m.expand(nil, config{g.rules[g.start], nil})
	if m.many {
		return nil, ErrTooMany
	}
	m.now = m.state(list)
	return m, nil
}

// begin begins a step.
func (m *Matcher) begin() {
	if len(m.seen) > 256 || m.seen == nil { // to clear a large one takes longer
		m.seen = make(map[config]bool)
	}
	clear(m.seen)
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
	m.kept = 0
	m.frames, m.states = make(map[frameKey]*frame), make(map[string]*state)
}

// Least returns a number of tokens with which the text has an end. It is very large if there is none.
func (m *Matcher) Least() int { return int(m.now.least) }

// Ends reports whether an end was found that tokens reach.
func (m *Matcher) Ends() bool { return m.now.least < unreached }

// Accepts reports whether the text can end here.
func (m *Matcher) Accepts() bool { return m.now.accepts }

// Complete reports whether the text must end here.
func (m *Matcher) Complete() bool { return m.now.accepts && len(m.now.configs) == 0 }

// Allows reports whether the text can go on with bytes, and end with left further tokens.
func (m *Matcher) Allows(b []byte, left int) bool {
	s := m.after(m.now, b)
	return s != nil && int(s.least) <= left
}

// Advance moves on.
func (m *Matcher) Advance(b []byte) bool {
	s := m.after(m.now, b)
	if s == nil {
		return false
	}
	m.now = s
	return true
}

// after returns the state after bytes, nil if they do not belong to the form.
func (m *Matcher) after(s *state, b []byte) *state {
	for _, c := range b {
		if s = m.step(s, c); s == nil {
			return nil
		}
	}
	return s
}

// step returns the state after a byte.
func (m *Matcher) step(s *state, c byte) *state {
	if next, ok := s.next[c]; ok {
		return next
	}
	if len(m.states) > maxStates || m.kept > maxKept {
		m.forget()
	}
	m.begin()
	var list []config
	for _, p := range s.configs {
		if n := &m.g.nodes[p.at]; n.low <= c && c <= n.high {
			list = m.expand(list, config{n.next, p.stack})
		}
	}
	m.visits += len(s.configs) / 8
	if m.many {
		return nil // callers fail: some of the alternatives are missing
	}
	next := m.state(list)
	if s.next == nil {
		s.next = make(map[byte]*state)
	}
	s.next[c] = next
	return next
}

// expand adds the positions that a position stands for: those of bytes, and the end of the text, which has no node. Beyond
// the limits positions are left out: the matcher then allows less than the grammar, but nothing that it does not.
func (m *Matcher) expand(list []config, p config) []config {
	work, seen := []config{p}, m.seen
	for len(work) > 0 && !m.many {
		m.visits++
		m.many = len(list) >= maxConfigs || len(seen) >= maxSeen
		p := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[p] {
			continue
		}
		seen[p] = true
		switch n := &m.g.nodes[p.at]; n.kind {
		case bytesNode:
			list = append(list, p)
		case callNode:
			stack := p.stack
			if m.g.nodes[n.next].kind != endNode { // else nothing follows here: rules that end with themselves need no stack
				stack = m.frame(n.next, p.stack)
			}
			work = append(work, config{m.g.rules[n.rule], stack})
		case splitNode:
			m.visits += len(n.others) / 8 // to list an alternative is less work than to look at it
			for _, k := range n.others {
				work = append(work, config{k, p.stack})
			}
		case endNode:
			if p.stack != nil {
				work = append(work, config{p.stack.ret, p.stack.parent})
			} else if end := (config{-1, nil}); !seen[end] {
				seen[end] = true
				list = append(list, end)
			}
		}
	}
	return list
}

// frame returns a frame; the same one for the same arguments.
func (m *Matcher) frame(ret int32, parent *frame) *frame {
	k := frameKey{ret, parent}
	f := m.frames[k]
	if f == nil {
		m.ids++
		f = &frame{m.ids, ret, parent, m.dist[ret]}
		if parent != nil {
			f.rest = min(f.rest+parent.rest, unreached)
		}
		m.frames[k] = f
	}
	return f
}

// state returns the state of positions, nil for none.
func (m *Matcher) state(list []config) *state {
	if len(list) == 0 {
		return nil
	}
	m.key = m.key[:0]
	for _, p := range list {
		id := uint32(0)
		if p.stack != nil {
			id = p.stack.id
		}
		m.key = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(m.key, uint32(p.at)), id)
	}
	if s := m.states[string(m.key)]; s != nil {
		return s
	}
	s := &state{least: unreached}
	for _, p := range list {
		if p.at < 0 {
			s.accepts, s.least = true, 0
			continue
		}
		d := m.dist[p.at]
		if p.stack != nil {
			d = min(d+p.stack.rest, unreached)
		}
		s.least = min(s.least, d)
		s.configs = append(s.configs, p)
	}
	m.states[string(m.key)] = s
	m.kept += len(list)
	return s
}

// Each calls f for each token with which the text can go on, and end with left further tokens. It is false if there are too many
// possibilities to find all of these tokens.
func (m *Matcher) Each(v *Vocabulary, left int, f func(id int)) bool {
	m.visits = 0
	m.path = append(m.path[:0], m.now)
	failed := int32(-1) // the length of a beginning that does not belong to the form
	for i, s := range v.texts {
		if m.visits > maxVisits || m.many {
			return false
		}
		common := v.shared[i]
		if failed >= 0 && common >= failed {
			continue // it has that beginning
		}
		failed = -1
		m.path = m.path[:min(int(common)+1, len(m.path))]
		for k := len(m.path) - 1; k < len(s); k++ {
			next := m.step(m.path[k], s[k])
			if next == nil {
				failed = int32(k + 1)
				break
			}
			m.path = append(m.path, next)
		}
		if failed < 0 && int(m.path[len(s)].least) <= left {
			f(int(v.ids[i]))
		}
	}
	return !m.many
}
