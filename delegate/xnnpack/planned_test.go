package xnnpack

import (
	"testing"

	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestPlanned runs the Go engine in blocks of a memory plan, at the declared sizes and at other ones.
func TestPlanned(t *testing.T) {
	planned, list := 0, append(graphtest.Samples(1), graphtest.Sample{Name: "several nodes", Graph: graphtest.RandomGraph(12, 7)})
	for _, s := range list {
		img, err := compile(t, graphtest.Encode(s.Graph), EngineGo)
		if err != nil {
			continue
		}
		defer img.Close()
		g, m := img.(*image).Graph, graphtest.NewMaker(3)
		calls := [][]*tensor.Value{m.Arguments(g), m.Resized(g), m.Arguments(g), m.Resized(g)}
		if err := delegatetest.CheckPlanned(img.(lowering.Planned), nil, calls); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if img.(lowering.Planned).Workspace() != nil {
			planned++
		}
	}
	if planned < len(list)/2 {
		t.Errorf("%d of %d graphs have a plan", planned, len(list))
	}
}
