// Package tree (no compatibility promise) converts ExecuTorch's file formats to trees of tables
// that can be modified, and back: for the repairs of the command line, and for tests.
package tree

import "fmt"

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

// Scalars converts the elements of a vector.
func Scalars[T ~int | ~int32 | ~int64 | ~uint8 | ~uint64](v []T) []Scalar {
	out := make([]Scalar, len(v))
	for i, x := range v {
		out[i] = Scalar(x)
	}
	return out
}
