package xnnpack

import (
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/advice"
)

// TestNoLibraryWarning checks that the warning about a missing library names the remedies.
func TestNoLibraryWarning(t *testing.T) {
	img := &image{Compilation: &graph.Compilation{Graph: &graph.Graph{}}, noLibrary: &xnn.OpenError{Reason: xnn.ErrAbsent}}
	list := img.Warnings()
	if len(list) != 1 || list[0].Class != delegate.WarnEngine {
		t.Fatalf("got %q, want one warning of class %v", list, delegate.WarnEngine)
	}
	hints := []string{xnn.ErrAbsent.Error(), "make deps", "doctor --fix", xnn.EnvPath, advice.GoEngine}
	if !xnn.DynamicLoading {
		hints = []string{xnn.ErrAbsent.Error(), "nodl"}
	}
	for _, hint := range hints {
		if !strings.Contains(list[0].Text, hint) {
			t.Errorf("got %q, want %q in it", list[0].Text, hint)
		}
	}
	if list := (&image{Compilation: &graph.Compilation{Graph: &graph.Graph{}}, notNative: "the graph is not for it"}).Warnings(); len(list) > 0 {
		t.Errorf("graph not for the library: got %q, want no warning", list)
	}
}
