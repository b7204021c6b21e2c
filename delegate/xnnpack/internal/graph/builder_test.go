package graph_test

import (
	"errors"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestBuilderChecks checks that the builder accepts every sample and random graphs, as the reader
// does.
func TestBuilderChecks(t *testing.T) {
	for _, s := range graphtest.Samples(1) {
		b := graph.Builder{Graph: s.Graph}
		if _, err := b.Finish(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	for seed := range uint64(200) {
		b := graph.Builder{Graph: graphtest.RandomGraph(seed, 7)}
		if _, err := b.Finish(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestBuilderAgreesWithReader checks that the builder rejects the invalid graphs that the reader
// rejects, for the same reason.
func TestBuilderAgreesWithReader(t *testing.T) {
	refused := 0
	for _, test := range refusedGraphs() {
		data := graphtest.Encode(test.graph)
		_, want := graphtest.ReadGraph(data, nil)
		b := graph.Builder{Graph: test.graph}
		_, got := b.Finish()
		var x, y *delegate.Error
		if errors.As(want, &x) && (!errors.As(got, &y) || y.Reason != x.Reason) {
			t.Errorf("%s: got %v from the builder, want the reader's %v", test.name, got, want)
		}
		if want != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("the reader rejected no graph")
	}
}
