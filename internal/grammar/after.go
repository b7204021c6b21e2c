package grammar

import "slices"

// maxBreaks is the number of line feeds between a mark and the text after it, as models write them.
const maxBreaks = 2

// After returns the grammar of texts with any beginning, a mark that does not occur before, and a text of g, which it copies.
func After(mark string, g *Grammar, limits ...Limit) (*Grammar, error) {
	b := NewBuilder(limits...)
	return b.Build(Seq(upTo(mark), Repeat(Text("\n"), 0, maxBreaks), g.part))
}

// part adds a copy of the grammar.
func (g *Grammar) part(b *Builder, next int32) int32 {
	node0, rule0 := int32(len(b.nodes)), int32(len(b.rules))
	for _, n := range g.nodes {
		n.rule, n.next, n.others = n.rule+rule0, n.next+node0, slices.Clone(n.others)
		for i := range n.others {
			n.others[i] += node0
		}
		b.add(n)
	}
	for _, first := range g.rules {
		b.rules = append(b.rules, first+node0)
	}
	b.skipped = append(b.skipped, g.skipped...)
	return Call(g.start+rule0)(b, next)
}

// upTo is a text that ends with a mark, which is nowhere before.
func upTo(mark string) Part {
	return func(b *Builder, next int32) int32 {
		states := make([]int32, len(mark), len(mark)+1) // by the length of the mark's beginning with which the text ends
		for i := range states {
			states[i] = b.add(node{kind: splitNode})
		}
		states = append(states, next)
		for i := range mark {
			var ways []int32
			low := 0
			for c := 1; c <= 256; c++ { // ranges of bytes that lead to the same state
				if to := overlap(mark, i, byte(low)); c == 256 || overlap(mark, i, byte(c)) != to {
					ways = append(ways, Between(byte(low), byte(c-1))(b, states[to]))
					low = c
				}
			}
			if b.err == nil {
				b.nodes[states[i]].others = ways
			}
		}
		return states[0]
	}
}

// overlap returns the length of the longest beginning of a mark with which its first n bytes and c end.
func overlap(mark string, n int, c byte) int {
	text := mark[:n] + string([]byte{c})
	for k := len(text); k > 0; k-- {
		if k <= len(mark) && text[len(text)-k:] == mark[:k] {
			return k
		}
	}
	return 0
}
