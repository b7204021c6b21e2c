package xnnpack

import "testing"

// TestTables checks that the engines' tables have the rows of the node types.
func TestTables(t *testing.T) {
	for tag, n := range nodeTypes {
		if n == nil {
			if tag < tagSiLU && (goTypes[tag].run != nil || nativeTypes[tag].rule != nil || nativeTypes[tag].define != nil) {
				t.Errorf("tag %d: an engine has a row, there is no node type", tag)
			}
			continue
		}
		if goTypes[tag].run == nil {
			t.Errorf("%s: no row of the Go engine", n.name)
		}
		if x := &nativeTypes[tag]; x.define == nil && x.rule == nil {
			t.Errorf("%s: no row of the library: neither a definition nor a rule that refuses the node", n.name)
		}
	}
	for _, n := range []*nodeType{&siluNode, &tableNode, &rearrangeNode, &resizePlanesNode} {
		if goTypes[n.tag].run == nil || nodeTypes[n.tag] != nil {
			t.Errorf("%s: want a row of the Go engine only", n.name)
		}
	}
}
