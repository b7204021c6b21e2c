package graph

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/edits"
)

// Marks of nodes in a comparison of two programs.
const (
	markChanged = "changed" // it has a counterpart with other arguments, sizes or constants
	markOnly    = "only"    // it has no counterpart
)

// Compare marks what differs between two programs, method by method. Nodes without a mark are equal.
func Compare(a, b *Program) {
	for _, m := range a.Methods {
		if k := slices.IndexFunc(b.Methods, func(x *Method) bool { return x.Name == m.Name }); k >= 0 {
			pair(a, b, m, b.Methods[k])
			continue
		}
		markAll(m)
	}
	for _, m := range b.Methods {
		if !slices.ContainsFunc(a.Methods, func(x *Method) bool { return x.Name == m.Name }) {
			markAll(m)
		}
	}
}

func markAll(m *Method) {
	for i := range m.Nodes {
		m.Nodes[i].Mark = markOnly
	}
}

// pair aligns the nodes of two methods: first those that are equal, then between them those of one operator, then those of
// one class with results of one size, such as an operator and the node of a delegate that it became.
func pair(a, b *Program, x, y *Method) {
	markAll(x)
	markAll(y)
	xs, ys := x.signs(a), y.signs(b)
	from, to := 0, 0
	rest := func(i, j int) {
		x.pairNames(y, from, i, to, j)
		from, to = i+1, j+1
	}
	for _, p := range edits.Align(xs, ys) {
		if p.A >= 0 && p.B >= 0 {
			x.match(y, p.A, p.B, "")
			rest(p.A, p.B)
		}
	}
	rest(len(xs), len(ys))
}

// pairNames aligns nodes of one name between nodes that are equal.
func (m *Method) pairNames(to *Method, from, end, at, stop int) {
	if from >= end || at >= stop {
		return
	}
	m.align(to, (*Node).name, from, end, at, stop)
	m.align(to, (*Node).work, from, end, at, stop)
}

// align pairs the nodes of two ranges that are equal in the words of by and have no counterpart yet.
func (m *Method) align(to *Method, by func(*Node) string, from, end, at, stop int) {
	xs, as := m.words(by, from, end)
	ys, bs := to.words(by, at, stop)
	for _, p := range edits.Align(as, bs) {
		if p.A >= 0 && p.B >= 0 {
			m.match(to, xs[p.A], ys[p.B], markChanged)
		}
	}
}

// name is the operator of a node. The name of a delegate counts its operations.
func (n *Node) name() string {
	if n.Kind == kindDelegate {
		return n.Full
	}
	return n.Kind + " " + n.Full + " " + n.Name
}

// work is the class of an operation and the bytes of its first result, empty for nodes without one.
func (n *Node) work() string {
	if n.Class == "" || n.Sheet > 0 || n.size == 0 {
		return ""
	}
	return fmt.Sprint(n.Class, " ", n.size)
}

// words returns the nodes of a range without a counterpart, and what by returns for them, if anything.
func (m *Method) words(by func(*Node) string, from, end int) (nodes []int, list []string) {
	for i := from; i < end; i++ {
		if n := &m.Nodes[i]; n.Mark == markOnly {
			if word := by(n); word != "" {
				nodes, list = append(nodes, i), append(list, word)
			}
		}
	}
	return nodes, list
}

func (m *Method) match(to *Method, i, j int, mark string) {
	a, b := &m.Nodes[i], &to.Nodes[j]
	a.Mark, b.Mark, a.Peer, b.Peer = mark, mark, b.ID, a.ID
}

// signs returns what is equal for equal nodes.
func (m *Method) signs(p *Program) []string {
	list := make([]string, len(m.Nodes))
	for i := range m.Nodes {
		n := &m.Nodes[i]
		list[i] = n.Kind + " " + n.Name + " " + n.Result + " " + n.sign
		for _, c := range n.Constants {
			list[i] += fmt.Sprintf(" %s %x", p.Constants[c.At].Type, p.Constants[c.At].sum)
		}
	}
	return list
}

// Marks counts the nodes that differ from the other program.
func (m *Method) Marks() (changed, only int) {
	for i := range m.Nodes {
		switch m.Nodes[i].Mark {
		case markChanged:
			changed++
		case markOnly:
			only++
		}
	}
	return changed, only
}
