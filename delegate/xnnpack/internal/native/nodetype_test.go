package native

import (
	"fmt"
	"os"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// TestMain checks that each node type has a definition or a rule that refuses it, before any test: without, those that compile nodes
// of the type panic.
func TestMain(m *testing.M) {
	missing := false
	for tag, n := range graph.NodeTypes[:graph.Tags] {
		if row := &types[tag]; (n != nil) != (row.define != nil || row.rule != nil) {
			fmt.Printf("--- FAIL: tag %d, node type %v: definition %v, rule %v\n", tag, n, row.define != nil, row.rule != nil)
			missing = true
		}
	}
	if missing {
		os.Exit(1)
	}
	os.Exit(m.Run())
}
