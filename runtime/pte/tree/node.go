// Package tree (no compatibility promise) reads ExecuTorch's file formats into trees of
// tables that can be changed, and writes them back: for the command line's repairs, and
// for tests.
package tree

import (
	"fmt"
	"strconv"
	"strings"
)

// Node is a table: its fields by name, absent ones left out. A node that hangs at
// several places is written once and shared.
type Node struct {
	Type   string
	Fields map[string]any // Scalar, string, []byte, []Scalar, *Node or []*Node
}

// Scalar is a scalar of any type, as its bits.
type Scalar uint64

// New is a table without fields.
func New(typ string) *Node { return &Node{Type: typ, Fields: map[string]any{}} }

// With sets a field and returns n.
func (n *Node) With(field string, v any) *Node {
	n.Fields[field] = v
	return n
}

// column is that of a field, for a name that the schema has.
func (n *Node) column(field string) Column {
	for _, c := range Tables[n.Type] {
		if c.Name == field {
			return c
		}
	}
	panic(fmt.Sprintf("tree: table %s has no field %q", n.Type, field))
}

// Find is the node at a path like "execution_plan[0].values[3].val". It panics where
// there is none: a mistake of the caller.
func (n *Node) Find(path string) *Node {
	for part := range strings.SplitSeq(path, ".") {
		name, index, list := cutIndex(part)
		n.column(name)
		switch v := n.Fields[name].(type) {
		case *Node:
			n = v
		case []*Node:
			if !list || index >= len(v) {
				panic(fmt.Sprintf("tree: %q in path %q, the list has %d", part, path, len(v)))
			}
			n = v[index]
		default:
			panic(fmt.Sprintf("tree: %q in path %q is no table", part, path))
		}
	}
	return n
}

// Set sets the field at a path, or an element of a vector of scalars: v is a Scalar,
// an int for one, or any other type of field. Set with a nil v removes the field.
func (n *Node) Set(path string, v any) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		n, path = n.Find(path[:i]), path[i+1:]
	}
	if i, ok := v.(int); ok {
		v = Scalar(int64(i))
	}
	name, index, element := cutIndex(path)
	n.column(name)
	switch {
	case v == nil:
		delete(n.Fields, name)
	case element:
		if list, ok := n.Fields[name].([]*Node); ok {
			list[index] = v.(*Node)
			return
		}
		n.Fields[name].([]Scalar)[index] = v.(Scalar)
	default:
		n.Fields[name] = v
	}
}

// cutIndex splits "values[3]".
func cutIndex(part string) (name string, index int, ok bool) {
	name, rest, ok := strings.Cut(part, "[")
	if !ok {
		return name, 0, false
	}
	index, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	if err != nil {
		panic(fmt.Sprintf("tree: index in path element %q", part))
	}
	return name, index, true
}

// Scalars widens the elements of a vector.
func Scalars[T ~int | ~int32 | ~int64 | ~uint8 | ~uint64](v []T) []Scalar {
	out := make([]Scalar, len(v))
	for i, x := range v {
		out[i] = Scalar(x)
	}
	return out
}
