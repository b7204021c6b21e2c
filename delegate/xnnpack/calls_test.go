//go:build linux

package xnnpack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// callSet is a call of the graph: shapes and bytes of the inputs.
type callSet struct {
	shapes []graph.Shape // of all values; nil if the input sizes are inconsistent
	sizes  []graph.Shape // of the inputs
	inputs [][]byte
	want   []*tensor.Value
	bounds *bounds
}

// makeSets creates a call at the declared sizes, and sometimes one at other sizes and a third at the
// declared ones.
func (t *trial) makeSets() {
	g := t.graph
	count := 1
	if t.r.IntN(3) == 0 {
		count = 3
	}
	m := &graphtest.Maker{Builder: graph.Builder{Graph: g}, R: t.r, Lo: -2, Hi: 2}
	switch t.r.IntN(8) {
	case 0:
		m.Lo, m.Hi = 0, 1
	case 1:
		m.Lo, m.Hi = -1000, 1000
	case 2:
		m.Lo, m.Hi = 1e-6, 2e-6
	}
	for k := range count {
		set := callSet{shapes: make([]graph.Shape, len(g.Values))}
		for _, v := range g.Args[:g.Inputs] {
			s := g.Values[v].Shape
			if k == 1 {
				for i := range s.Dims() {
					s.Dim[i] = max(1, one(t.r, s.Dim[i], s.Dim[i], 1, s.Dim[i]-1, s.Dim[i]+1, s.Dim[i]/2, 1+t.r.IntN(2*s.Dim[i])))
				}
			}
			set.shapes[v] = s
			set.sizes = append(set.sizes, s)
			set.inputs = append(set.inputs, t.inputBytes(m, &g.Values[v], s))
		}
		if g.Infer(set.shapes) != nil || g.Cost(set.shapes) > 4*largeCost {
			set.shapes = nil
		}
		t.sets = append(t.sets, set)
	}
}

// inputBytes returns an input's elements, sometimes with special values such as NaN and infinity.
func (t *trial) inputBytes(m *graphtest.Maker, v *graph.Value, s graph.Shape) []byte {
	b := m.Bytes(v.Datatype, s)
	if len(b) == 0 || t.r.IntN(6) > 0 {
		return b
	}
	for range 1 + t.r.IntN(4) {
		i := t.r.IntN(s.Numel())
		switch v.Datatype {
		case graph.FP32:
			tensor.View[float32](b)[i] = one(t.r, graph.Inf, -graph.Inf, float32(math.NaN()), math.MaxFloat32, 0, 0x1p-149, -0x1p-130, 1e30)
		case graph.FP16, graph.BF16:
			tensor.View[uint16](b)[i] = uint16(t.r.Uint32())
		default:
			b[i] = one[byte](t.r, 0, 0x80, 0x7f, 0xff)
		}
	}
	return b
}

// arguments places a call's arguments in guarded memory: at the end of their pages with slack
// readable bytes after them, or at the start. The surrounding bytes contain poison.
func (t *trial) arguments(set *callSet, slack int, poison byte) (args []*tensor.Value, edges [][2][]byte, err error) {
	g := t.graph
	args = []*tensor.Value{}
	for i, v := range g.Args {
		x, s := &g.Values[v], t.shapes[v]
		if set.shapes != nil {
			s = set.shapes[v]
		} else if x.Input {
			s = set.sizes[i]
		}
		dtype := x.Datatype.Info().Tensor
		if x.Datatype == graph.Int32 && !x.Input && len(g.Nodes)%2 == 0 {
			dtype = tensor.Int64
		}
		a := tensor.Make(dtype, s.Dims(), nil, tensor.DynamicUnbound)
		n := a.NBytes()
		m, err := t.arena.Allocate(n + 128)
		if err != nil {
			return nil, nil, err
		}
		m.Fill(poison)
		b := m.End(n, slack)
		if t.underrun {
			b = m.Start(n, 0)
			whole := m.Start(m.Len(), 0)
			edges = append(edges, [2][]byte{nil, whole[n:min(n+64, len(whole))]})
		} else {
			whole := m.End(m.Len(), 0)
			at := len(whole) - slack - n
			edges = append(edges, [2][]byte{whole[max(0, at-64):at], whole[len(whole)-slack:]})
		}
		if x.Input {
			copy(b, set.inputs[i])
		}
		a.Bind(b)
		value := tensor.TensorValue(a)
		args = append(args, &value)
	}
	return args, edges, nil
}

// intact checks that the poison around arguments is unchanged.
func intact(edges [][2][]byte, poison byte) error {
	for i, pair := range edges {
		for side, b := range pair {
			if j := slices.IndexFunc(b, func(x byte) bool { return x != poison }); j >= 0 {
				return &campaign.Finding{Kind: "write", Message: fmt.Sprintf("argument %d: byte %d %s it changed", i, j, [2]string{"before", "after"}[side])}
			}
		}
	}
	return nil
}

// wantExecute checks that a call of consistent sizes succeeded and that others were rejected.
func (t *trial) wantExecute(engine Engine, set *callSet, err error) error {
	switch {
	case set.shapes == nil && errors.Is(err, delegate.ErrArgument):
		return nil
	case set.shapes == nil && (err == nil || errors.Is(err, delegate.ErrMemory)) && t.graph.Infer(shapesOf(t.graph, set)) == nil:
		return nil // valid sizes, above the cost limit
	case set.shapes != nil && err == nil:
		return nil
	}
	return &campaign.Finding{Kind: "execute", Message: fmt.Sprintf("%s engine, inputs of sizes %v: %v", engine, set.sizes, err)}
}

func shapesOf(g *graph.Graph, set *callSet) []graph.Shape {
	s := make([]graph.Shape, len(g.Values))
	for i, v := range g.Args[:g.Inputs] {
		s[v] = set.sizes[i]
	}
	return s
}

func detach(args []*tensor.Value) []*tensor.Value {
	out := make([]*tensor.Value, len(args))
	for i, a := range args {
		x := tensor.Make(a.Tensor.DType, a.Tensor.Sizes, nil, tensor.DynamicUnbound)
		x.Bind(append(tensor.AlignedBytes(x.NBytes())[:0], a.Tensor.Data...))
		value := tensor.TensorValue(x)
		out[i] = &value
	}
	return out
}

// again repeats a call with different bytes around its arguments and in its outputs.
func (t *trial) again(unit delegate.Unit, args []*tensor.Value, edges [][2][]byte, want []*tensor.Value) error {
	for _, pair := range edges {
		for _, b := range pair {
			for i := range b {
				b[i] = 0x55
			}
		}
	}
	for _, a := range args[t.graph.Inputs:] {
		for i := range a.Tensor.Data {
			a.Tensor.Data[i] = 0x55
		}
	}
	if err := unit.Execute(context.Background(), args); err != nil {
		return &campaign.Finding{Kind: "execute", Message: "second call: " + err.Error()}
	}
	return sameBytes(want, args, t.graph)
}

func sameBytes(a, b []*tensor.Value, g *graph.Graph) error {
	if a == nil || b == nil {
		return nil
	}
	for i := g.Inputs; i < len(a); i++ {
		if x, y := a[i].Tensor.Data, b[i].Tensor.Data; !bytes.Equal(x, y) {
			j := 0
			for x[j] == y[j] {
				j++
			}
			return &campaign.Finding{Kind: "foreign", Message: fmt.Sprintf("output %d, byte %d depends on memory outside the graph: %#x and %#x", i-g.Inputs, j, x[j], y[j])}
		}
	}
	return nil
}
