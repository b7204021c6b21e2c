package ptetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// Find returns the node at a path like "execution_plan[0].values[3].val". It panics if there is none.
func Find(n *tree.Node, path string) *tree.Node {
	for part := range strings.SplitSeq(path, ".") {
		name, index := element(n, part)
		switch v := n.Fields[name].(type) {
		case *tree.Node:
			n = v
		case []*tree.Node:
			n = v[index]
		default:
			panic(fmt.Sprintf("ptetest: %q in path %q is no table", part, path))
		}
	}
	return n
}

// Set sets the field at a path, or an element of a list: v is a Scalar, an int (stored as a Scalar), or any other type of field. A
// nil v removes the field.
func Set(n *tree.Node, path string, v any) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		n, path = Find(n, path[:i]), path[i+1:]
	}
	if i, ok := v.(int); ok {
		v = tree.Scalar(int64(i))
	}
	name, index := element(n, path)
	switch {
	case v == nil:
		delete(n.Fields, name)
	case index < 0:
		n.Fields[name] = v
	default:
		if list, ok := n.Fields[name].([]*tree.Node); ok {
			list[index] = v.(*tree.Node)
		} else {
			n.Fields[name].([]tree.Scalar)[index] = v.(tree.Scalar)
		}
	}
}

// element splits "values[3]". It panics if the schema has no such field; without an index, it is -1.
func element(n *tree.Node, part string) (name string, index int) {
	name, rest, ok := strings.Cut(part, "[")
	index = -1
	if ok {
		var err error
		if index, err = strconv.Atoi(strings.TrimSuffix(rest, "]")); err != nil {
			panic(fmt.Sprintf("ptetest: index in path element %q", part))
		}
	}
	if !slices.ContainsFunc(tree.Tables[n.Type], func(c tree.Column) bool { return c.Name == name }) {
		panic(fmt.Sprintf("ptetest: table %s has no field %q", n.Type, name))
	}
	return name, index
}
