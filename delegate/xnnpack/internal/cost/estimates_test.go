package cost

import (
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// TestClasses requires a class for each type of nodes.
func TestClasses(t *testing.T) {
	for _, n := range graph.NodeTypes {
		if n == nil {
			continue
		}
		product := n.Convolution || n.Tag == graph.TagFullyConnected || n.Tag == graph.TagBatchMatrixMultiply
		if _, ok := classesOf[n.Tag]; ok == product {
			t.Errorf("%s: in classesOf %v, want %v", n.Name, ok, !product)
		}
	}
	for _, tag := range []uint8{graph.TagSiLU, graph.TagTable, graph.TagRearrange, graph.TagResizePlanes} {
		if _, ok := classesOf[tag]; !ok {
			t.Errorf("type %d, of the Go engine only: not in classesOf", tag)
		}
	}
}

// TestMargin checks that the library runs a graph only if it saves more than the margin.
func TestMargin(t *testing.T) {
	for _, test := range []struct {
		library, inGo time.Duration
		want          bool
	}{
		{90, 100, false}, {95, 100, false}, {97, 100, false}, {99, 100, true}, {100, 100, true}, {120, 100, true}, {Never / time.Microsecond, 100, true}, {1, 3, false},
		{9, 10, false}, {1, 2, false},
	} {
		if e := (Estimates{ByLibrary: test.library * time.Microsecond, ByGo: test.inGo * time.Microsecond}); e.PrefersGo() != test.want {
			t.Errorf("%v: got Go %v, want %v", e, e.PrefersGo(), test.want)
		}
	}
}

// TestLeastGain checks that the library must save some time at all: the runs of a process have to pay for opening it.
func TestLeastGain(t *testing.T) {
	for library, want := range map[time.Duration]bool{75: false, 81: true} {
		if e := (Estimates{ByLibrary: library, ByGo: 100}); e.PrefersGo() != want {
			t.Errorf("%v: got Go %v, want %v", e, e.PrefersGo(), want)
		}
	}
}
