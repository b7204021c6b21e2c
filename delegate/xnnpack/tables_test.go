package xnnpack

import (
	"fmt"
	"os"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
)

// TestMain checks that the engines' tables have the rows of the node types, before any test: without a row, those that run
// nodes of each type panic.
func TestMain(m *testing.M) {
	missing := missingRows()
	for _, text := range missing {
		fmt.Println("--- FAIL: tables of node types:", text)
	}
	if len(missing) > 0 {
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// missingRows describes the rows that are missing.
func missingRows() (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for tag, n := range graph.NodeTypes {
		if n == nil {
			if tag < graph.TagSiLU && (goengine.Types[tag].Loop != nil || native.Types[tag].Rule != nil || native.Types[tag].Define != nil) {
				add("tag %d: an engine has a row, there is no node type", tag)
			}
			continue
		}
		if goengine.Types[tag].Loop == nil {
			add("%s: no row of goengine.Types", n.Name)
		}
		if x := &native.Types[tag]; x.Define == nil && x.Rule == nil {
			add("%s: no row of native.Types: neither a definition nor a rule that refuses the node", n.Name)
		}
	}
	for _, n := range []*graph.NodeType{&graph.SiLUNode, &graph.TableNode, &graph.RearrangeNode, &graph.ResizePlanesNode} {
		if goengine.Types[n.Tag].Loop == nil || graph.NodeTypes[n.Tag] != nil {
			add("%s: want a row of goengine.Types only", n.Name)
		}
	}
	return list
}
