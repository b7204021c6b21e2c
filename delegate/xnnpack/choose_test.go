package xnnpack

import (
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestChosenEngine compiles products of floats on both sides of the limit, with each engine.
func TestChosenEngine(t *testing.T) {
	xnntest.Library(t)
	for _, test := range []struct {
		engine Engine
		rows   int
		name   string
		why    string
	}{
		{EngineAuto, 1, "native", ""},
		{EngineAuto, 8, "go", "32768 multiplications, at least 30000"},
		{EngineNative, 8, "native", ""},
		{EngineGo, 1, "go", ""},
	} {
		m := graphtest.NewMaker(1)
		x, y := m.Input(graph.FP32, test.rows, 64), m.Value(graph.FP32, test.rows, 64)
		m.Node("FullyConnected", []int{x, m.Constant(graph.FP32, 0, 64, 64), graph.None}, []int{y})
		g := m.Done(y)
		img, err := Backend{Engine: test.engine, Library: xnntest.Path()}.Compile(t.Context(), &delegate.Payload{Data: graphtest.Encode(g), Args: graphtest.ArgSpecs(g, false)})
		if err != nil {
			t.Fatal(err)
		}
		info := img.Info()
		img.Close()
		why := ""
		for _, f := range info.Facts {
			if f[0] == "in Go" {
				why = f[1]
			}
		}
		if !strings.HasPrefix(info.Engine, test.name) || why != test.why {
			t.Errorf("%s, %d rows: engine %q, because of %q; want %q, %q", test.engine, test.rows, info.Engine, why, test.name, test.why)
		}
	}
}
