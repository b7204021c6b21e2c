package grammar

import (
	"encoding/binary"
	"slices"
)

// textState is a state of a deterministic automaton.
type textState struct {
	next []int32 // by letter; -1 is none
	ends bool
}

// run returns the states of the texts that a spot accepts. The first one is the beginning.
func (a *automaton) run(start, before int32) (states []textState, err error) {
	if len(a.spots) >= maxSpots {
		return nil, errTooLarge
	}
	if a.in == nil {
		a.divide()
	}
	ids := make(map[string]int32)
	type todo struct {
		list   readings
		before int32
	}
	var work []todo
	visit := func(list readings, before int32) int32 {
		if len(list) == 0 {
			return -1
		}
		if !a.context {
			before = beforeOther
		}
		key := binary.LittleEndian.AppendUint32(nil, uint32(before))
		for _, p := range list {
			for _, x := range p {
				key = binary.LittleEndian.AppendUint32(key, uint32(x))
			}
			key = append(key, 0xff, 0xff, 0xff, 0xff)
		}
		id, ok := ids[string(key)]
		if !ok {
			id = int32(len(work))
			ids[string(key)], work = id, append(work, todo{list, before})
		}
		return id
	}
	visit(reading(start), before)
	edges := 0
	for i := 0; i < len(work); i++ {
		w := work[i]
		s := textState{make([]int32, len(a.letters)), a.accepts(w.list, w.before)}
		classes := a.distinguished(w.list, w.before)
		known := make(map[string]int32) // by the classes that have a letter: the others lead to the same
		for n := range s.next {
			sign, to := make([]byte, len(classes)+1), beforeOther
			for i, class := range classes {
				if a.in[class][n] {
					sign[i] = 1
				}
			}
			if a.in[a.spots[wordSpot].class][n] && a.context {
				sign[len(classes)], to = 1, beforeWord
			}
			next, ok := known[string(sign)]
			if !ok {
				list := a.step(w.list, n, w.before)
				if next = visit(list, to); len(list) > maxReadings || len(work) > maxTextStates || a.failed || *a.work <= 0 {
					return nil, errTooLarge
				}
				known[string(sign)] = next
			}
			s.next[n] = next
		}
		if edges += targets(s.next); edges > maxTextEdges {
			return nil, errTooLarge
		}
		states, work[i].list = append(states, s), nil
	}
	return states, nil
}

// distinguished returns the classes on which it depends where a letter leads to.
func (a *automaton) distinguished(list readings, before int32) (classes []int32) {
	seen := make(map[int32]bool)
	var visit func(at int32)
	visit = func(at int32) {
		if *a.work--; seen[at] {
			return
		}
		seen[at] = true
		switch s := a.spots[at]; s.kind {
		case spotChar:
			classes = append(classes, s.class)
		case spotNot:
			visit(a.complement(s.next, before))
		case spotEdge, spotSame:
			classes = append(classes, a.spots[wordSpot].class)
			visit(s.next)
		case spotSome, spotAll:
			for _, k := range s.list {
				visit(k)
			}
		case spotBegin:
			if before == beforeNone {
				visit(s.next)
			}
		}
	}
	for _, p := range list {
		for _, at := range p {
			visit(at)
		}
	}
	slices.Sort(classes)
	classes = slices.Compact(classes)
	*a.work -= len(classes) * len(a.letters) / 16
	return classes
}

// step returns the readings of a text after a letter.
func (a *automaton) step(list readings, letter int, before int32) (all readings) {
	a.now++
	for _, p := range list {
		all = append(all, a.afterAll(p, letter, before)...)
	}
	return tidied(all)
}

// targets returns the number of different states of a list.
func targets(next []int32) int {
	list := slices.Clone(next)
	slices.Sort(list)
	return len(slices.Compact(list))
}

// matches reports whether a spot accepts a text, false beyond the limits.
func (a *automaton) matches(start int32, text string) bool {
	if a.in == nil {
		a.divide()
	}
	list, before := reading(start), beforeNone
	for _, r := range text {
		*a.work -= len(a.letters)
		letter := slices.IndexFunc(a.letters, func(pairs []rune) bool { return inRanges(pairs, r) })
		if letter < 0 || len(list) > maxReadings || *a.work <= 0 {
			return false
		}
		list = a.step(list, letter, before)
		if before = beforeOther; a.in[a.spots[wordSpot].class][letter] {
			before = beforeWord
		}
	}
	return a.accepts(list, before) && !a.failed && *a.work > 0
}

func inRanges(pairs []rune, r rune) bool {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] <= r && r <= pairs[i+1] {
			return true
		}
	}
	return false
}

// lively reports which states lead to an end.
func lively(states []textState) []bool {
	users, live := make([][]int32, len(states)), make([]bool, len(states))
	var work []int32
	for i, s := range states {
		for _, k := range s.next {
			if k >= 0 {
				users[k] = append(users[k], int32(i))
			}
		}
		if live[i] = s.ends; s.ends {
			work = append(work, int32(i))
		}
	}
	for ; len(work) > 0; work = work[1:] {
		for _, u := range users[work[0]] {
			if !live[u] {
				live[u], work = true, append(work, u)
			}
		}
	}
	return live
}

// part returns the texts of states, of which char writes a character of ranges; nil if there is none.
func (a *automaton) part(states []textState, char func(ranges []rune) Part) Part {
	live := lively(states)
	if !live[0] {
		return nil
	}
	return func(b *Builder, next int32) int32 {
		at := make([]int32, len(states))
		for i := range states {
			if live[i] {
				at[i] = b.add(node{kind: splitNode})
			}
		}
		for i, s := range states {
			if !live[i] || b.err != nil {
				continue
			}
			var others []int32
			if s.ends {
				others = append(others, next)
			}
			for n, k := range s.next {
				if k >= 0 && live[k] && slices.Index(s.next, k) == n {
					others = append(others, char(a.leading(s.next, k))(b, at[k]))
				}
			}
			if b.err == nil {
				b.nodes[at[i]].others = others
			}
		}
		return at[0]
	}
}

// leading returns the sorted ranges of the letters that lead to a state.
func (a *automaton) leading(next []int32, to int32) []rune {
	var pairs [][2]rune
	for n, k := range next {
		for i := 0; k == to && i+1 < len(a.letters[n]); i += 2 {
			pairs = append(pairs, [2]rune{a.letters[n][i], a.letters[n][i+1]})
		}
	}
	return joined(pairs)
}
