package xnnpack

import (
	"context"
	"errors"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestInvalidPayloads checks that the library gets no graph of an invalid payload: it counts the calls of xnn_create_subgraph, with
// which every graph starts.
func TestInvalidPayloads(t *testing.T) {
	lib, n := xnntest.Library(t), 0
	create := lib.CreateSubgraph
	defer func() { lib.CreateSubgraph = create }()
	lib.CreateSubgraph = func(externalValueIDs, flags uint32, out *xnn.Subgraph) xnn.Status {
		n++
		return create(externalValueIDs, flags, out)
	}
	for name, change := range map[string]func(g *graph.Graph){
		"valid":         func(*graph.Graph) {},
		"no such value": func(g *graph.Graph) { g.Nodes[0].In[0] = 77 },
		"a stride of 0": func(g *graph.Graph) { g.Nodes[0].Window().StrideW = 0 },
		"other sizes":   func(g *graph.Graph) { g.Values[0].Shape = graph.ShapeOf(1, 5, 5, 4) },
	} {
		n = 0
		g := graphtest.ConvolutionGraph()
		change(g)
		img, err := compile(t, graphtest.Encode(g), EngineNative)
		if valid := name == "valid"; (err == nil) != valid || (n > 0) != valid || !valid && !errors.Is(err, delegate.ErrPayload) {
			t.Errorf("%s: error %v, %d subgraphs in the library", name, err, n)
		}
		if err == nil {
			img.Close()
		}
	}
}

// TestRepairedPayload checks that a payload with a fault of an exporter, an argument whose order in memory it does not know, has the
// results of one without on each engine; and so has the repaired payload, which needs no repair.
func TestRepairedPayload(t *testing.T) {
	forEngines(t, func(t *testing.T, engine Engine) {
		m := graphtest.NewMaker(5)
		x, y := m.Input(graph.FP32, 3, 3), m.Value(graph.FP32, 3, 3)
		m.Node("Square", []int{x}, []int{y})
		g := m.Done(y)
		p := &delegate.Payload{Data: graphtest.Encode(g), Args: graphtest.ArgSpecs(g, false)}
		p.Args[0].DimOrder, p.Args[1].DimOrder = []uint8{1, 0}, []uint8{0, 1}
		for _, repairs := range []int{1, 0} {
			img, err := Backend{Engine: engine, Library: xnntest.Path()}.Compile(context.Background(), p)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			args := graphtest.NewMaker(7).Arguments(g)
			if err := runOnce(img, args); err != nil {
				t.Fatal(err)
			}
			in, got := graphtest.NumbersOf(args[0].Tensor), graphtest.NumbersOf(args[1].Tensor)
			for i := range got {
				if want := in[i%3*3+i/3]; float32(got[i]) != float32(want)*float32(want) {
					t.Errorf("element %d: got %v, want the square of %v", i, got[i], want)
				}
			}
			info := img.Info()
			if len(info.Repairs) != repairs {
				t.Errorf("got repairs %q, want %d", info.Repairs, repairs)
			}
			if repairs == 1 {
				p.Data = info.Repaired
			}
		}
	})
}
