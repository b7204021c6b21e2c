// Package grammar (no compatibility promise) prescribes the form of generated texts: a grammar of bytes, and a matcher that
// knows after each byte which ones can follow, and with how many tokens the text can end. Grammars are made of JSON schemas.
package grammar

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"weak"
)

// Limits on grammars.
const (
	maxNodes   = 200_000
	batchNodes = 1024   // that are counted at once
	maxConfigs = 10_000 // alternatives of a state
	unreached  = math.MaxInt32 / 4
)

// kind is the kind of a node.
type kind uint8

const (
	bytesNode kind = iota // a byte from low to high, then next
	callNode              // a rule, then next
	splitNode             // one of several
	endNode               // the end of a rule
)

// node is a state of a rule.
type node struct {
	kind      kind
	low, high byte
	rule      int32
	next      int32
	others    []int32
}

// Part is a part of a grammar: it returns the node with which it begins, when the given one follows.
type Part func(b *Builder, next int32) int32

// Builder makes a grammar. Errors are kept until Build.
type Builder struct {
	nodes []node
	rules []int32    // the first nodes
	json  *jsonParts // nil before the first schema
	err   error

	limits  []Limit
	counted int // nodes that the limits allow
}

// Limit is called before a grammar gets more states, with their number; its error ends the making.
type Limit func(states int) error

// jsonParts are the parts of JSON texts.
type jsonParts struct {
	space, char, str, number, integer, any, object, list Part
}

// NewBuilder returns a builder without rules.
func NewBuilder(limits ...Limit) *Builder { return &Builder{limits: limits} }

func (b *Builder) add(n node) int32 {
	switch {
	case b.err != nil:
		return 0
	case len(b.nodes) >= maxNodes:
		b.err = fmt.Errorf("a form of more than %d states", maxNodes)
		return 0
	case len(b.nodes) == b.counted:
		if b.err = b.count(); b.err != nil {
			return 0
		}
	}
	b.nodes = append(b.nodes, n)
	return int32(len(b.nodes) - 1)
}

// count asks the limits for further nodes.
func (b *Builder) count() error {
	for _, limit := range b.limits {
		if err := limit(batchNodes); err != nil {
			return err
		}
	}
	b.counted += batchNodes
	return nil
}

// Declare returns a new rule, to be defined later.
func (b *Builder) Declare() int32 {
	b.rules = append(b.rules, -1)
	return int32(len(b.rules) - 1)
}

// Define sets what a rule consists of.
func (b *Builder) Define(rule int32, p Part) {
	b.rules[rule] = p(b, b.add(node{kind: endNode}))
}

// Rule returns a new rule as a part.
func (b *Builder) Rule(p Part) Part {
	r := b.Declare()
	b.Define(r, p)
	return Call(r)
}

// Call is a rule.
func Call(rule int32) Part {
	return func(b *Builder, next int32) int32 { return b.add(node{kind: callNode, rule: rule, next: next}) }
}

// Between is a byte from low to high.
func Between(low, high byte) Part {
	return func(b *Builder, next int32) int32 {
		return b.add(node{kind: bytesNode, low: low, high: high, next: next})
	}
}

// Text is a text.
func Text(s string) Part {
	return func(b *Builder, next int32) int32 {
		for i := len(s) - 1; i >= 0; i-- {
			next = b.add(node{kind: bytesNode, low: s[i], high: s[i], next: next})
		}
		return next
	}
}

// Seq is a sequence.
func Seq(parts ...Part) Part {
	return func(b *Builder, next int32) int32 {
		for i := len(parts) - 1; i >= 0 && b.err == nil; i-- {
			next = parts[i](b, next)
		}
		return next
	}
}

// Alt is one of several parts.
func Alt(parts ...Part) Part {
	return func(b *Builder, next int32) int32 {
		n, empty := node{kind: splitNode}, false
		for i := 0; i < len(parts) && b.err == nil; i++ {
			at := parts[i](b, next)
			if at != next || !empty { // several empty parts are one: so nodes bound the alternatives
				n.others = append(n.others, at)
			}
			empty = empty || at == next
		}
		return b.add(n)
	}
}

// Opt is a part, or nothing.
func Opt(p Part) Part { return Alt(p, Seq()) }

// Many is a part any number of times.
func Many(p Part) Part {
	return func(b *Builder, next int32) int32 {
		loop := b.add(node{kind: splitNode})
		begin := p(b, loop)
		b.nodes[loop].others = []int32{begin, next}
		return loop
	}
}

// Repeat is a part least to most times; a negative most is no limit.
func Repeat(p Part, least, most int) Part {
	return func(b *Builder, next int32) int32 {
		at := next
		if most < 0 {
			at = Many(p)(b, next)
		}
		for i := most; i > least && b.err == nil; i-- {
			one := p(b, at)
			if one == at {
				return at // nothing, any number of times
			}
			at = b.add(node{kind: splitNode, others: []int32{one, next}})
		}
		for i := 0; i < least && b.err == nil; i++ {
			one := p(b, at)
			if one == at {
				return at
			}
			at = one
		}
		return at
	}
}

// Literals is one of several texts. Those that begin alike share their beginning, so that there are few alternatives at once.
func Literals(texts []string) Part {
	list := slices.Clone(texts)
	slices.Sort(list)
	list = slices.Compact(list)
	return func(b *Builder, next int32) int32 { return b.trie(list, next) }
}

// Choice returns the grammar of one of several texts.
func Choice(texts []string, limits ...Limit) (*Grammar, error) {
	if len(texts) == 0 {
		return nil, errors.New("want a text or more")
	}
	return NewBuilder(limits...).Build(Literals(texts))
}

// trie adds the nodes of sorted texts, which are not equal.
func (b *Builder) trie(texts []string, next int32) int32 {
	if len(texts) == 1 {
		return Text(texts[0])(b, next)
	}
	n := node{kind: splitNode}
	for len(texts) > 0 && b.err == nil {
		if texts[0] == "" {
			n.others, texts = append(n.others, next), texts[1:]
			continue
		}
		same := 1
		for same < len(texts) && texts[same][0] == texts[0][0] {
			same++
		}
		common := shared(texts[0], texts[same-1]) // and those between them
		rest := make([]string, same)
		for i := range rest {
			rest[i] = texts[i][common:]
		}
		n.others = append(n.others, Text(texts[0][:common])(b, b.trie(rest, next)))
		texts = texts[same:]
	}
	return b.add(n)
}

// shared returns the number of bytes with which both texts begin.
func shared(s, t string) (n int) {
	for n < min(len(s), len(t)) && s[n] == t[n] {
		n++
	}
	return n
}

// Grammar is a finished grammar. It is safe for concurrent use.
type Grammar struct {
	nodes []node
	rules []int32
	start int32

	mu   sync.Mutex
	kept [2]distances // the last ones: for all tokens, and without some
}

// distances are those of a vocabulary without excluded tokens. A grammar can outlive models, and does not keep their vocabularies.
type distances struct {
	vocabulary weak.Pointer[Vocabulary]
	excluded   []int
	list       []int32 // by node
}

// Size returns the number of states, which bounds the memory of a grammar: about a hundred bytes each.
func (g *Grammar) Size() int { return len(g.nodes) }

// distancesOf returns the distances for a vocabulary without excluded tokens, a sorted list. Texts one after the other share them:
// clients send the same exclusions with each request.
func (g *Grammar) distancesOf(v *Vocabulary, excluded []int) []int32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := &g.kept[min(len(excluded), 1)]
	if k.list == nil || k.vocabulary.Value() != v || !slices.Equal(k.excluded, excluded) {
		*k = distances{weak.Make(v), slices.Clone(excluded), g.distances(func(s string) bool { return v.has(s, excluded) })}
	}
	return k.list
}

// distances returns for each node a number of tokens with which its rule has an end, if token reports whether a text is one.
func (g *Grammar) distances(token func(s string) bool) []int32 {
	d, users := make([]int32, len(g.nodes)), make([][]int32, len(g.nodes))
	var single [256]bool
	for b := range single {
		single[b] = token(string([]byte{byte(b)}))
	}
	var work distanceHeap
	for i := range d {
		d[i] = unreached
		for _, k := range g.needs(int32(i), &single, token) {
			users[k] = append(users[k], int32(i))
		}
		if g.nodes[i].kind == endNode {
			d[i] = 0
			work = append(work, reached{int32(i), 0})
		}
	}
	for len(work) > 0 { // the nodes in the order of their distances, so that the time is nearly linear
		x := heap.Pop(&work).(reached)
		if x.distance > d[x.node] {
			continue
		}
		for _, u := range users[x.node] {
			if n := g.by(x.node, &g.nodes[u], d); n < d[u] {
				d[u] = n
				heap.Push(&work, reached{u, n})
			}
		}
	}
	return d
}

// reached is a node with a distance.
type reached struct{ node, distance int32 }

// distanceHeap has the smallest distance first.
type distanceHeap []reached

func (h distanceHeap) Len() int           { return len(h) }
func (h distanceHeap) Less(i, k int) bool { return h[i].distance < h[k].distance }
func (h distanceHeap) Swap(i, k int)      { h[i], h[k] = h[k], h[i] }

// Push adds an element, for package heap.
func (h *distanceHeap) Push(x any) { *h = append(*h, x.(reached)) }

// Pop removes the last element, for package heap.
func (h *distanceHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// needs returns the nodes on whose distances that of a node depends.
func (g *Grammar) needs(at int32, single *[256]bool, token func(s string) bool) []int32 {
	switch n := &g.nodes[at]; n.kind {
	case bytesNode:
		return g.hops(at, single, token)
	case callNode:
		return []int32{n.next, g.rules[n.rule]}
	default:
		return n.others
	}
}

// maxHop bounds the bytes of tokens that are considered for the distance of a fixed text.
const maxHop = 16

// hops returns the nodes that one token reaches from a node: after a byte, or after several of a fixed text.
func (g *Grammar) hops(at int32, single *[256]bool, token func(s string) bool) (list []int32) {
	n := &g.nodes[at]
	if n.kind != bytesNode {
		return nil
	}
	if slices.Contains(single[n.low:int(n.high)+1], true) {
		list = append(list, n.next)
	}
	var text []byte
	for len(text) < maxHop && n.kind == bytesNode && n.low == n.high {
		text = append(text, n.low)
		if len(text) > 1 && token(string(text)) {
			list = append(list, n.next)
		}
		n = &g.nodes[n.next]
	}
	return list
}

// by returns the distance of a node by way of one that it needs. The others are not looked at, else a node with many alternatives
// would take quadratic time.
func (g *Grammar) by(way int32, n *node, d []int32) int32 {
	switch n.kind {
	case bytesNode:
		return min(d[way]+1, unreached)
	case callNode:
		return min(d[n.next]+d[g.rules[n.rule]], unreached)
	}
	return d[way]
}

// Build returns the grammar whose texts are those of a part.
func (b *Builder) Build(p Part) (*Grammar, error) {
	r := b.Declare()
	b.Define(r, p)
	if b.err != nil {
		return nil, b.err
	}
	g := &Grammar{nodes: b.nodes, rules: b.rules, start: r}
	if err := g.checkRecursion(); err != nil {
		return nil, err
	}
	if g.distances(func(s string) bool { return len(s) == 1 })[g.rules[g.start]] >= unreached {
		return nil, errors.New("no finite text has this form")
	}
	return g, nil
}

// checkRecursion rejects rules that begin with themselves.
func (g *Grammar) checkRecursion() error {
	d := g.distances(func(string) bool { return false }) // 0 for what can be empty
	const (
		open = iota + 1
		done
	)
	state := make([]uint8, len(g.rules))
	var visit func(rule int32) error
	var walk func(at int32, seen map[int32]bool) error
	walk = func(at int32, seen map[int32]bool) error {
		if seen[at] {
			return nil
		}
		seen[at] = true
		n := &g.nodes[at]
		switch n.kind {
		case callNode:
			if err := visit(n.rule); err != nil {
				return err
			}
			if d[g.rules[n.rule]] == 0 {
				return walk(n.next, seen)
			}
		case splitNode:
			for _, k := range n.others {
				if err := walk(k, seen); err != nil {
					return err
				}
			}
		}
		return nil
	}
	visit = func(rule int32) error {
		if state[rule] == open {
			return errors.New("a form that begins with itself")
		}
		if state[rule] == done || g.rules[rule] < 0 {
			return nil
		}
		state[rule] = open
		err := walk(g.rules[rule], make(map[int32]bool))
		state[rule] = done
		return err
	}
	for r := range g.rules {
		if err := visit(int32(r)); err != nil {
			return err
		}
	}
	return nil
}
