package lower

import (
	"math/bits"
	"slices"
)

// maxPartitionWork bounds the partitioning of a method, in words of sets: a fraction of a second.
// Steps beyond it are not lowered.
const maxPartitionWork = 1 << 27

// set is a set of small integers.
type set []uint64

func (s set) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s set) join(t set) {
	for w, b := range t {
		s[w] |= b
	}
}

// visit calls f for each member, in ascending order.
func (s set) visit(f func(i int)) {
	for w, b := range s {
		for ; b != 0; b &= b - 1 {
			f(w*64 + bits.TrailingZeros64(b))
		}
	}
}

// partition joins steps of a block into clusters. Clusters are convex: no dependence path between
// two members leads through another step, so each can run as a whole.
type partition struct {
	*flow
	left    *int     // work that may yet be done: words of sets
	cluster []int    // by step: the first member of its cluster
	kind    []int    // by step: its compiler, outside for none; only steps of one kind are joined
	words   int      // of a set
	sets    []uint64 // three for each cluster, by first member, and two more
}

// members returns the members of cluster i, by its first one.
func (p *partition) members(i int) set { return p.set(3 * i) }

// up returns the steps that come before a member of cluster i, members left out.
func (p *partition) up(i int) set { return p.set(3*i + 1) }

// down returns the steps that come after a member.
func (p *partition) down(i int) set { return p.set(3*i + 2) }

func (p *partition) set(n int) set { return p.sets[n*p.words : (n+1)*p.words] }

// newPartition puts each step into a cluster of its own. ok is false if that is too much work. The
// sets are in memory, which is used again for the next partition.
func newPartition(f *flow, kind []int, left *int, memory *[]uint64) (p *partition, ok bool) {
	n := f.to - f.from
	words := (n + 63) / 64
	*memory = slices.Grow((*memory)[:0], (3*n+2)*words)[:(3*n+2)*words]
	clear(*memory)
	p = &partition{flow: f, left: left, kind: kind, words: words, cluster: make([]int, n), sets: *memory}
	for i := range n {
		p.cluster[i] = i
		p.members(i).add(i)
		if *left -= (2 + 2*len(f.after[i])) * words; *left < 0 {
			return nil, false
		}
		for _, j := range f.after[i] {
			p.up(i).join(p.up(j))
			p.up(i).add(j)
		}
	}
	for i := n - 1; i >= 0; i-- {
		for _, j := range f.after[i] {
			p.down(j).join(p.down(i))
			p.down(j).add(i)
		}
	}
	return p, true
}

// grow joins each step with the producers of its operands and, after that, with the previous reader
// of the same value, in file order, wherever the result is convex.
func (p *partition) grow() {
	p.visitReads(func(i int, r version) {
		if r.def != outside {
			p.merge(p.maker(r.def), i)
		}
	})
	latest := &p.known // no graph is being made
	latest.reset()
	p.visitReads(func(i int, r version) {
		if p.m.Values[r.value].Tensor.Const {
			return
		}
		if other, ok := latest.get(r); ok {
			p.merge(other, i)
		}
		latest.set(r, i)
	})
}

// visitReads calls do for each definition that taken steps read.
func (p *partition) visitReads(do func(i int, r version)) {
	for i, kind := range p.kind {
		if kind == outside {
			continue
		}
		for k, v := range p.step(i).Reads {
			do(i, version{v, p.sees(i, k)})
		}
	}
}

// merge joins the clusters of two steps unless a path between them leads through another step.
func (p *partition) merge(a, b int) {
	if p.kind[a] != p.kind[b] || p.cluster[a] == p.cluster[b] {
		return
	}
	a, b = p.cluster[a], p.cluster[b]
	if *p.left -= 4 * p.words; *p.left < 0 || p.between(a, b) || p.between(b, a) {
		return
	}
	a, b = min(a, b), max(a, b)
	members, up, down := p.members(a), p.up(a), p.down(a)
	before, behind := p.set(3*len(p.cluster)), p.set(3*len(p.cluster)+1) // one of the two, as others know already of both
	for w := range before {
		before[w], behind[w] = up[w]^p.up(b)[w], down[w]^p.down(b)[w]
	}
	members.join(p.members(b))
	up.join(p.up(b))
	down.join(p.down(b))
	for w, m := range members {
		up[w] &^= m
		down[w] &^= m
	}
	p.members(b).visit(func(i int) { p.cluster[i] = a })
	before.visit(func(i int) { p.spread(i, p.down(i), a, down) })
	behind.visit(func(i int) { p.spread(i, p.up(i), a, up) })
}

// between reports whether a step lies on a path from cluster a to cluster b.
func (p *partition) between(a, b int) bool {
	up, first, second := p.up(b), p.members(a), p.members(b)
	for w, after := range p.down(a) {
		if after&up[w]&^first[w]&^second[w] != 0 {
			return true
		}
	}
	return false
}

// spread adds the members of cluster a, and what lies beyond, to a set of cluster i on one side of
// it.
func (p *partition) spread(i int, to set, a int, beyond set) {
	if p.cluster[i] == i {
		*p.left -= 2 * len(beyond)
		to.join(beyond)
		to.join(p.members(a))
	}
}

// clusters lists the clusters of taken steps, by first member.
func (p *partition) clusters() (list [][]int) {
	all := make([]int, 0, len(p.cluster))
	for i := range p.cluster {
		if p.kind[i] == outside || p.cluster[i] != i {
			continue
		}
		from := len(all)
		p.members(i).visit(func(i int) { all = append(all, i) })
		list = append(list, slices.Clip(all[from:]))
	}
	return list
}

// sequence orders the steps of a block after clustering. A cluster runs at its last step's position
// or later; any other step keeps its position or follows the cluster that it depends on. steps[n]
// is the first member of a cluster, or a single step.
func (f *flow) sequence(cluster []int) (steps []int) {
	n := len(cluster)
	key, waits, next := make([]int, n), make([]int, n), make([][]int, n)
	for i, c := range cluster {
		key[c] = i // the last one stays
		for _, j := range f.after[i] {
			if d := cluster[j]; d != c {
				next[d] = append(next[d], c)
				waits[c]++
			}
		}
	}
	ready := make(set, (n+63)/64) // keys
	byKey := make([]int, n)
	for i, c := range cluster {
		if c == i {
			if byKey[key[i]] = i; waits[i] == 0 {
				ready.add(key[i])
			}
		}
	}
	for first := ready.first(); first >= 0; first = ready.first() {
		ready[first/64] &^= 1 << (first % 64)
		c := byKey[first]
		steps = append(steps, c)
		for _, d := range next[c] {
			if waits[d]--; waits[d] == 0 {
				ready.add(key[d])
			}
		}
	}
	return steps
}

// first returns the smallest member, -1 of an empty set.
func (s set) first() int {
	w := slices.IndexFunc(s, func(b uint64) bool { return b != 0 })
	if w < 0 {
		return -1
	}
	return w*64 + bits.TrailingZeros64(s[w])
}
