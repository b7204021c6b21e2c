package xnnpack

import (
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
)

// An engine that runs for want of the library says how to get it.
func TestNoLibraryIsSaid(t *testing.T) {
	img := &image{graph: &graph{}, noLibrary: &xnn.OpenError{Reason: xnn.ErrAbsent}}
	list := img.Warnings()
	if len(list) != 1 || list[0].Class != delegate.WarnEngine {
		t.Fatalf("got %q", list)
	}
	cures := []string{xnn.ErrAbsent.Error(), "make deps", "doctor --fix", xnn.EnvPath, xnn.UserFolder()}
	if !xnn.DynamicLoading {
		cures = []string{xnn.ErrAbsent.Error(), "nodl"}
	}
	for _, cure := range cures {
		if !strings.Contains(list[0].Text, cure) {
			t.Errorf("no %q in %q", cure, list[0].Text)
		}
	}
	if list := (&image{graph: &graph{}, whyReference: "the graph is not for it"}).Warnings(); len(list) > 0 {
		t.Errorf("a graph that the library may not have: %q", list)
	}
}
