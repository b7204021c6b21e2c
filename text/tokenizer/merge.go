package tokenizer

import (
	"strings"
	"sync"
)

// symbol is a part of a text while neighbors are merged. Symbols form a doubly linked list.
type symbol struct {
	start, end int32 // bytes of the text
	prev, next int32 // indices of the neighbors, -1 for none
	id         int32 // token, -1 for none
	fixed      bool  // never merged
}

// dead is the value of next for a symbol that was merged into its predecessor.
const dead = -2

// candidate is a pair of neighbors that can be merged.
type candidate struct {
	rank  float64 // the lowest is merged first, of equal ones the leftmost
	left  int32
	right int32
	end   int32 // of the right symbol when the candidate was found
	id    int32 // of the merged token
}

// joiner returns the token of two neighbors together, and its rank.
type joiner interface {
	join(text string, a, b *symbol) (id int32, rank float64, ok bool)
}

// merger applies byte pair encoding to one text after another.
type merger struct {
	symbols []symbol
	heap    []candidate
}

var mergers = sync.Pool{New: func() any { return new(merger) }}

// release returns a merger to the pool, unless it holds the memory of a long text.
func (m *merger) release() {
	if cap(m.symbols) <= 1<<14 {
		m.symbols, m.heap = m.symbols[:0], m.heap[:0]
		mergers.Put(m)
	}
}

// add appends a symbol to the list.
func (m *merger) add(s symbol) {
	n := int32(len(m.symbols))
	s.prev, s.next = n-1, -1
	if n > 0 {
		m.symbols[n-1].next = n
	}
	m.symbols = append(m.symbols, s)
}

// run merges until no pair is left, in O(n log n). The result is the list from symbol 0.
func (m *merger) run(text string, j joiner) {
	for i := 1; i < len(m.symbols); i++ {
		m.propose(text, j, int32(i-1), int32(i))
	}
	for len(m.heap) > 0 {
		c := m.pop()
		left, right := &m.symbols[c.left], &m.symbols[c.right]
		if left.next != c.right || right.next == dead || right.end != c.end {
			continue // one of them was merged with another symbol in the meantime
		}
		left.end, left.id, left.next = right.end, c.id, right.next
		if right.next >= 0 {
			m.symbols[right.next].prev = c.left
		}
		right.next = dead
		m.propose(text, j, left.prev, c.left)
		m.propose(text, j, c.left, left.next)
	}
}

// propose adds a pair to the heap if it can be merged.
func (m *merger) propose(text string, j joiner, l, r int32) {
	if l < 0 || r < 0 {
		return
	}
	left, right := &m.symbols[l], &m.symbols[r]
	if left.fixed || right.fixed {
		return
	}
	if id, rank, ok := j.join(text, left, right); ok {
		m.push(candidate{rank: rank, left: l, right: r, end: right.end, id: id})
	}
}

func (c *candidate) before(d *candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.left < d.left
}

func (m *merger) push(c candidate) {
	m.heap = append(m.heap, c)
	i := len(m.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !c.before(&m.heap[parent]) {
			break
		}
		m.heap[i] = m.heap[parent]
		i = parent
	}
	m.heap[i] = c
}

func (m *merger) pop() candidate {
	top, last := m.heap[0], m.heap[len(m.heap)-1]
	m.heap = m.heap[:len(m.heap)-1]
	n, i := len(m.heap), 0
	if n == 0 {
		return top
	}
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && m.heap[child+1].before(&m.heap[child]) {
			child++
		}
		if !m.heap[child].before(&last) {
			break
		}
		m.heap[i] = m.heap[child]
		i = child
	}
	m.heap[i] = last
	return top
}

// wordEnd returns the end of the first word of a text in which ▁ replaces spaces: the first ▁ after
// another character. If no token crosses it, words can be encoded one by one.
func wordEnd(s string) int {
	for i := 0; ; i += len(meta) {
		k := strings.Index(s[i:], meta)
		if k < 0 {
			return len(s)
		}
		if i += k; k > 0 {
			return i
		}
	}
}

// scored joins symbols whose text is a token. It is for kinds that have no list of merges.
type scored struct {
	ids     map[string]int32
	ranks   []float64 // by id
	longest int       // bytes of the longest token
}

func newScored(size int) scored {
	return scored{ids: make(map[string]int32, size), ranks: make([]float64, size)}
}

func (s *scored) add(text string, id int, rank float64) {
	s.ids[text], s.ranks[id] = int32(id), rank
	s.longest = max(s.longest, len(text))
}

func (s *scored) join(text string, a, b *symbol) (id int32, rank float64, ok bool) {
	if int(b.end-a.start) > s.longest {
		return 0, 0, false
	}
	if id, ok = s.ids[text[a.start:b.end]]; !ok {
		return 0, 0, false
	}
	return id, s.ranks[id], true
}

// find returns the token of a text, -1 for none.
func (s *scored) find(text string) int32 {
	if id, ok := s.ids[text]; ok {
		return id
	}
	return -1
}

// meta is SentencePiece's replacement for a space.
const meta = "▁"
