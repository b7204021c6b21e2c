package graph_test

import (
	"bytes"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestConstantsAligned checks that the constants of a payload are aligned, larger ones to cache lines, whatever the size of the
// FlatBuffer.
func TestConstantsAligned(t *testing.T) {
	for nodes := range 12 {
		m := graphtest.NewMaker(uint64(nodes))
		width := 62 + nodes
		x := m.Input(fp32, 1, width)
		for i := range nodes + 1 {
			y := m.Value(fp32, 1, width)
			m.Node("Add", []int{x, m.Constant(fp32, 0, 1, max(1, i%2*width))}, []int{y})
			x = y
		}
		g := m.Done(x)
		data := g.Payload(0)
		got, err := graph.ReadPayload(&delegate.Payload{Data: data}, false)
		if err != nil {
			t.Fatal(err)
		}
		for v := range got.Values {
			c := &got.Values[v]
			if !c.IsConst() {
				continue
			}
			at, align := xnn.AddressOf(c.Data)-xnn.AddressOf(data), xnn.Address(16)
			if len(c.Data) >= 256 {
				align = 64
			}
			if at%align != 0 || !bytes.Equal(c.Data, g.Values[v].Data) {
				t.Errorf("%d nodes: constant of %d bytes at %d", nodes, len(c.Data), at)
			}
		}
	}
}
