package tokenizer

import (
	"slices"
	"strings"
)

// prefixes finds tokens at the beginning of a text. It is a sorted list; each byte of the text
// narrows the range of candidates.
type prefixes struct {
	sorted []entry
	first  [257]int32 // index of the first entry by its first byte
}

type entry struct {
	text string
	id   int32
}

// newPrefixes makes the list of entries. Empty texts are ignored; of equal texts the one with the
// highest id is found.
func newPrefixes(entries []entry) *prefixes {
	order := make([]int32, len(entries))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, k int32) int {
		a, b := &entries[i], &entries[k]
		if c := strings.Compare(a.text, b.text); c != 0 {
			return c
		}
		return int(b.id - a.id)
	})
	p := &prefixes{sorted: make([]entry, 0, len(entries))}
	for _, i := range order {
		e, n := entries[i], len(p.sorted)
		if e.text == "" || n > 0 && p.sorted[n-1].text == e.text {
			continue
		}
		p.sorted = append(p.sorted, e)
		p.first[int(e.text[0])+1]++
	}
	for i := range 256 {
		p.first[i+1] += p.first[i]
	}
	return p
}

// all yields the length and the id of each token that s begins with, the shortest first.
func (p *prefixes) all(s string, yield func(length int, id int32) bool) {
	if s == "" {
		return
	}
	low, high := int(p.first[s[0]]), int(p.first[int(s[0])+1])
	for depth := 1; low < high; depth++ {
		e := &p.sorted[low]
		if low+1 == high && len(e.text) > depth {
			if strings.HasPrefix(s, e.text) {
				yield(len(e.text), e.id)
			}
			return
		}
		if len(e.text) == depth {
			if !yield(depth, e.id) {
				return
			}
			low++
		}
		if depth == len(s) {
			return
		}
		low, high = p.narrow(low, high, depth, s[depth])
	}
}

// narrow returns the range of the entries whose byte at depth is c. All entries are longer than depth.
func (p *prefixes) narrow(low, high, depth int, c byte) (from, to int) {
	from = p.search(low, high, depth, int(c))
	return from, p.search(from, high, depth, int(c)+1)
}

// search returns the index of the first entry whose byte at depth is at least c.
func (p *prefixes) search(low, high, depth, c int) int {
	for low < high {
		middle := int(uint(low+high) / 2)
		if int(p.sorted[middle].text[depth]) < c {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// longest returns the longest token that s begins with; a length of 0 means none.
func (p *prefixes) longest(s string) (length int, id int32) {
	p.all(s, func(n int, i int32) bool {
		length, id = n, i
		return true
	})
	return length, id
}

// next returns the leftmost token in s, of several the longest; a length of 0 means none.
func (p *prefixes) next(s string) (start, length int, id int32) {
	if p == nil || len(p.sorted) == 0 {
		return len(s), 0, 0
	}
	for i := range len(s) {
		if p.first[s[i]] == p.first[int(s[i])+1] {
			continue
		}
		if length, id = p.longest(s[i:]); length > 0 {
			return i, length, id
		}
	}
	return len(s), 0, 0
}
