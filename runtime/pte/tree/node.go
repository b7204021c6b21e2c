// Package tree (no compatibility promise) converts ExecuTorch's file formats to trees of tables
// that can be modified, and back: for the repairs of the command line, and for tests.
package tree

import (
	"fmt"
	"strconv"
	"strings"
)

// Node is a table: its fields by name, without absent ones. A node that several fields refer to is
// written once and shared.
type Node struct {
	Type   string
	Fields map[string]any // values are Scalar, string, []byte, which is not changed, []Scalar, *Node or []*Node
}

// Scalar contains the bits of a scalar of any type.
type Scalar uint64

// New returns a table without fields.
func New(typ string) *Node { return &Node{Type: typ, Fields: map[string]any{}} }

// With sets a field and returns n.
func (n *Node) With(field string, v any) *Node {
	n.Fields[field] = v
	return n
}

// column returns the column of a field, which must be in the schema.
func (n *Node) column(field string) Column {
	for _, c := range Tables[n.Type] {
		if c.Name == field {
			return c
		}
	}
	panic(fmt.Sprintf("tree: table %s has no field %q", n.Type, field))
}

// Find returns the node at a path like "execution_plan[0].values[3].val". It panics if there is
// none, which is a bug in the caller.
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

// Set sets the field at a path, or an element of a vector of scalars: v is a Scalar, an int (stored
// as a Scalar), or any other type of field. A nil v removes the field.
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

// Scalars converts the elements of a vector.
func Scalars[T ~int | ~int32 | ~int64 | ~uint8 | ~uint64](v []T) []Scalar {
	out := make([]Scalar, len(v))
	for i, x := range v {
		out[i] = Scalar(x)
	}
	return out
}
