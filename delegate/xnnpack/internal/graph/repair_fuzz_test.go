package graph_test

import (
	"errors"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// faultyGraphs returns graphs with each fault that the backend repairs.
func faultyGraphs() (list []*graph.Graph) {
	for _, c := range layoutCases {
		for _, size := range layoutSizes {
			list = append(list, c.build(newLayoutCase(size, true)))
		}
	}
	for _, c := range weightCases {
		list = append(list, c.build(&moduleCalls{Maker: graphtest.NewMaker(3), faulty: true}))
	}
	for _, c := range callCases {
		b := newImageCalls([3]int{4, 4, 4}, true)
		list = append(list, c.build(b, b.Input(graph.FP32, b.image()...)))
	}
	return append(list, lostGraph(graphtest.NewMaker(3), true, 2, 3, 4, 5), lostGraph(graphtest.NewMaker(3), true, 1, 4, 4, 4))
}

// FuzzRepairs changes bytes of payloads with faults. A payload either fails with a *delegate.Error
// or runs.
func FuzzRepairs(f *testing.F) {
	graphs := faultyGraphs()
	var specs [][]*delegate.ArgSpec
	for i, g := range graphs {
		f.Add(graphtest.Encode(g), uint8(i), uint8(0))
		args := g.Args[:len(g.Args):len(g.Args)]
		if args[len(args)-1] == graph.None { // a lost output
			args = append(args[:len(args)-1:len(args)-1], args[0])
		}
		specs = append(specs, specsOf(&graph.Graph{Values: g.Values, Args: args}))
	}
	f.Fuzz(func(t *testing.T, data []byte, which, order uint8) {
		list := specs[int(which)%len(specs)]
		if order > 0 { // change the dim order of an argument
			list = append([]*delegate.ArgSpec(nil), list...)
			a := *list[int(order)%len(list)]
			if len(a.DimOrder) == 4 {
				a.DimOrder = []uint8{0, 2, 3, 1}
			}
			list[int(order)%len(list)] = &a
		}
		g, err := graph.ReadPayload(&delegate.Payload{Data: data, Args: list}, true)
		var placed *delegate.Error
		if err == nil {
			shapes, fault := g.Repair()
			if err = fault; err == nil && g.Cost(shapes) < 1e7 {
				runZeros(t, g, shapes)
			}
		}
		if err != nil && !errors.As(err, &placed) {
			t.Fatalf("got error of type %T: %v, want *delegate.Error", err, err)
		}
	})
}
