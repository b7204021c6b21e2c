package xnnpack

import (
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
)

// TestTables checks that the engines' tables have the rows of the node types.
func TestTables(t *testing.T) { checkTables(t) }

// checkTables reports rows that are missing. Tests that run nodes of each type call it first: without a row they panic.
func checkTables(t *testing.T) {
	t.Helper()
	for tag, n := range graph.NodeTypes {
		if n == nil {
			if tag < graph.TagSiLU && (goengine.Types[tag].Run != nil || native.Types[tag].Rule != nil || native.Types[tag].Define != nil) {
				t.Errorf("tag %d: an engine has a row, there is no node type", tag)
			}
			continue
		}
		if goengine.Types[tag].Run == nil {
			t.Errorf("%s: no row of the Go engine", n.Name)
		}
		if x := &native.Types[tag]; x.Define == nil && x.Rule == nil {
			t.Errorf("%s: no row of the library: neither a definition nor a rule that refuses the node", n.Name)
		}
	}
	for _, n := range []*graph.NodeType{&goengine.SiLUNode, &goengine.TableNode, &graph.RearrangeNode, &goengine.ResizePlanesNode} {
		if goengine.Types[n.Tag].Run == nil || graph.NodeTypes[n.Tag] != nil {
			t.Errorf("%s: want a row of the Go engine only", n.Name)
		}
	}
}
