package xnnpack

import (
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/advice"
)

// TestMissingLibrary checks that one line says what a missing library means, and what to do, to the command's reader.
func TestMissingLibrary(t *testing.T) {
	for _, e := range []*xnn.OpenError{
		{Reason: xnn.ErrAbsent},
		{Reason: xnn.ErrAbsent, Tried: []xnn.Attempt{{Path: "/usr/lib", Absent: true}}},
	} {
		list := (&image{Compilation: &graph.Compilation{Graph: &graph.Graph{}}, noLibrary: e}).Warnings()
		if len(list) != 1 {
			t.Fatalf("got %q, want one warning", list)
		}
		got, way := advice.Command(list[0].Text), advice.Library.Command()
		if !xnn.DynamicLoading {
			way = "without the tag nodl"
		}
		if len(got) > 240 || strings.Contains(got, "\n") || !strings.Contains(got, advice.GoEngine) || !strings.Contains(got, way) {
			t.Errorf("got %q, want one line with %q and %q", got, advice.GoEngine, way)
		}
	}
}
