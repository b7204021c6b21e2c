// Package grammar (no compatibility promise) prescribes the form of generated texts: a grammar of bytes, and a matcher that
// knows after each byte which ones can follow, and with how many tokens the text can end. Grammars are made of JSON schemas.
package grammar

import (
	"container/heap"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"weak"
)

// Limits on grammars.
const (
	maxNodes   = 200_000
	batchNodes = 1024 // that are counted at once
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
	ends      bool  // the rule can end here
	rank      int32 // more than those of the nodes that are reached from it without a byte, but for loops around what can be empty
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

	skipped []string // keywords of schemas that are not enforced
	limits  []Limit
	counted int // nodes that the limits allow
}

// Limit is called before a grammar gets more states, with their number; its error ends the making.
type Limit func(states int) error

// jsonParts are the parts of JSON texts.
type jsonParts struct {
	space, char, str, number, integer, any, object, list Part

	further [maxFraction]Part // up to so many digits
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
	nodes   []node
	rules   []int32
	start   int32
	classes [256]uint8 // of bytes that no node tells apart
	width   int        // number of classes
	skipped []string

	mu   sync.Mutex
	kept [2]distances // the last ones: for all tokens, and without some

	slots sync.Pool // of steps
}

// distances are those of a vocabulary without excluded tokens. A grammar can outlive models, and does not keep their vocabularies.
type distances struct {
	vocabulary weak.Pointer[Vocabulary]
	excluded   []int
	list       []int32 // by node
}

// Size returns the number of states, which bounds the memory of a grammar: about a hundred bytes each.
func (g *Grammar) Size() int { return len(g.nodes) }

// NotEnforced returns pointers to the keywords of schemas that texts of the grammar may not satisfy, such as "#/properties/a/not".
func (g *Grammar) NotEnforced() []string { return g.skipped }

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
	for text, next := range g.fixed(at) {
		if len(text) > 1 && token(string(text)) {
			list = append(list, next)
		}
	}
	return list
}

// fixed yields the beginnings of the fixed text at a node, and the nodes after them.
func (g *Grammar) fixed(at int32) iter.Seq2[[]byte, int32] {
	return func(yield func([]byte, int32) bool) {
		var text []byte
		n := &g.nodes[at]
		for len(text) < maxHop && n.kind == bytesNode && n.low == n.high {
			if text = append(text, n.low); !yield(text, n.next) {
				return
			}
			n = &g.nodes[n.next]
		}
	}
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
	g := &Grammar{nodes: b.nodes, rules: b.rules, start: r, skipped: b.skipped}
	if err := g.order(); err != nil {
		return nil, err
	}
	g.classify()
	g.slots.New = func() any { list := make([]int32, len(g.nodes)); return &list }
	if g.distances(func(s string) bool { return len(s) == 1 })[g.rules[g.start]] >= unreached {
		return nil, errors.New("no finite text has this form")
	}
	return g, nil
}

// classify sets the classes of bytes.
func (g *Grammar) classify() {
	var begins [257]bool
	for i := range g.nodes {
		if n := &g.nodes[i]; n.kind == bytesNode {
			begins[n.low], begins[int(n.high)+1] = true, true
		}
	}
	class := uint8(0)
	for c := range g.classes {
		if c > 0 && begins[c] {
			class++
		}
		g.classes[c] = class
	}
	g.width = int(class) + 1
}

// order sets which nodes can end, and the ranks. It rejects rules that begin with themselves.
func (g *Grammar) order() error {
	for i, d := range g.distances(func(string) bool { return false }) { // 0 for what can be empty
		g.nodes[i].ends = d == 0
	}
	o := &orderer{g, make([]uint8, len(g.rules)), make([]bool, len(g.nodes)), 0}
	for r := range g.rules {
		if err := o.rule(int32(r)); err != nil {
			return err
		}
	}
	for i := range g.nodes {
		if err := o.node(int32(i)); err != nil { // cannot happen: all rules were visited
			return err
		}
	}
	return nil
}

// orderer ranks nodes.
type orderer struct {
	*Grammar
	rules []uint8 // 1 while the rule's beginning is visited, 2 behind that
	seen  []bool
	rank  int32
}

func (o *orderer) rule(r int32) error {
	switch {
	case o.rules[r] == 1:
		return errors.New("a form that begins with itself")
	case o.rules[r] == 2 || o.Grammar.rules[r] < 0:
		return nil
	}
	o.rules[r] = 1
	err := o.node(o.Grammar.rules[r])
	o.rules[r] = 2
	return err
}

func (o *orderer) node(at int32) error {
	if o.seen[at] {
		return nil
	}
	o.seen[at] = true
	n := &o.nodes[at]
	switch n.kind {
	case callNode:
		if err := o.rule(n.rule); err != nil {
			return err
		}
		if o.nodes[o.Grammar.rules[n.rule]].ends {
			if err := o.node(n.next); err != nil {
				return err
			}
		}
	case splitNode:
		for _, k := range n.others {
			if err := o.node(k); err != nil {
				return err
			}
		}
	}
	n.rank = o.rank
	o.rank++
	return nil
}
