// Package grammar (no compatibility promise) prescribes the form of generated texts: a grammar of bytes, and a matcher that
// knows after each byte which ones can follow, and how many bytes the shortest end needs. Grammars are made of JSON schemas.
package grammar

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Limits on grammars.
const (
	maxNodes   = 200_000
	maxConfigs = 2_000 // alternatives of a state
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
	rules []int32 // the first nodes
	err   error
}

// NewBuilder returns a builder without rules.
func NewBuilder() *Builder { return &Builder{} }

func (b *Builder) add(n node) int32 {
	if len(b.nodes) >= maxNodes {
		b.err = fmt.Errorf("a form of more than %d states", maxNodes)
		return 0
	}
	b.nodes = append(b.nodes, n)
	return int32(len(b.nodes) - 1)
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
		n := node{kind: splitNode}
		for _, p := range parts {
			if b.err == nil {
				n.others = append(n.others, p(b, next))
			}
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
			at = b.add(node{kind: splitNode, others: []int32{p(b, at), next}})
		}
		for i := 0; i < least && b.err == nil; i++ {
			at = p(b, at)
		}
		return at
	}
}

// Grammar is a finished grammar. It is immutable.
type Grammar struct {
	nodes []node
	rules []int32
	start int32
}

// Build returns the grammar whose texts are those of a part.
func (b *Builder) Build(p Part) (*Grammar, error) {
	r := b.Declare()
	b.Define(r, p)
	if b.err != nil {
		return nil, b.err
	}
	g := &Grammar{b.nodes, b.rules, r}
	if err := g.checkRecursion(); err != nil {
		return nil, err
	}
	var all [256]bool
	for i := range all {
		all[i] = true
	}
	if g.distances(&all)[g.rules[g.start]] >= unreached {
		return nil, errors.New("no finite text has this form")
	}
	return g, nil
}

// distances returns for each node the number of bytes to the end of its rule, with the bytes that tokens can add one by one.
func (g *Grammar) distances(usable *[256]bool) []int32 {
	d := make([]int32, len(g.nodes))
	for i := range d {
		d[i] = unreached
	}
	for changed := true; changed; {
		changed = false
		for i := range g.nodes {
			if x := g.distance(&g.nodes[i], d, usable); x < d[i] {
				d[i], changed = x, true
			}
		}
	}
	return d
}

func (g *Grammar) distance(n *node, d []int32, usable *[256]bool) int32 {
	best := int32(unreached)
	switch n.kind {
	case endNode:
		return 0
	case bytesNode:
		if slices.Contains(usable[n.low:int(n.high)+1], true) {
			best = d[n.next] + 1
		}
	case callNode:
		best = d[n.next] + d[g.rules[n.rule]]
	default:
		for _, k := range n.others {
			best = min(best, d[k])
		}
	}
	return min(best, unreached)
}

// checkRecursion rejects rules that begin with themselves.
func (g *Grammar) checkRecursion() error {
	var all [256]bool
	d := g.distances(&all) // 0 for what can be empty
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
