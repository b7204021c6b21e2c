package xnnpack

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// constantCall is a product with a filter and a sum with an offset, both of which are arguments of the call, and the arguments of
// a call.
func constantCall() (*graph.Graph, []*tensor.Value) {
	m := graphtest.NewMaker(1)
	x, filter, offset := m.Input(graph.FP32, 2, 64), m.Input(graph.FP32, 96, 64), m.Input(graph.FP32, 1, 96)
	product, y := m.Value(graph.FP32, 2, 96), m.Value(graph.FP32, 2, 96)
	m.Node("FullyConnected", []int{x, filter, graph.None}, []int{product})
	m.Node("Add", []int{product, offset}, []int{y})
	g := m.Done(y)
	return g, graphtest.NewMaker(2).Arguments(g)
}

// TestConstantArguments checks which arguments that are constants of the program nodes read as constants. They are never released:
// other calls may read them.
func TestConstantArguments(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(filter, offset *delegate.ArgSpec)
		want   int // of the two
	}{
		{"both", func(_, _ *delegate.ArgSpec) {}, 2},
		{"fewer dimensions", func(_, offset *delegate.ArgSpec) { offset.Sizes = []int{96} }, 2},
		{"one computed", func(filter, _ *delegate.ArgSpec) { filter.Const = nil }, 1},
		{"another type", func(_, offset *delegate.ArgSpec) { offset.DType = tensor.Int32 }, 1},
		{"other sizes", func(_, offset *delegate.ArgSpec) { offset.Sizes = []int{2, 48} }, 1},
		{"too few bytes", func(filter, _ *delegate.ArgSpec) { filter.Const = filter.Const[:len(filter.Const)-1] }, 1},
		{"no alignment", func(_, offset *delegate.ArgSpec) {
			offset.Const = append(make([]byte, 1, 1+len(offset.Const)), offset.Const...)[1:]
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			forEngines(t, func(t *testing.T, engine Engine) {
				g, args := constantCall()
				specs := graphtest.ArgSpecs(g, false)
				if err := runConstantCall(t, &delegate.Payload{Data: graphtest.Encode(g), Args: specs}, EngineGo, args, 0); err != nil {
					t.Fatal(err)
				}
				want := bytes.Clone(args[3].Tensor.Data)
				for i := 1; i <= 2; i++ { // with readable bytes behind them
					specs[i].Const = append(tensor.AlignedBytes(len(args[i].Tensor.Data) + graph.ReadBehind)[:0], args[i].Tensor.Data...)
				}
				c.change(specs[1], specs[2])
				clear(args[3].Tensor.Data)
				err := runConstantCall(t, &delegate.Payload{Data: graphtest.Encode(g), Args: specs, Release: func([]byte) bool {
					t.Error("a constant is released")
					return false
				}}, engine, args, c.want)
				if err != nil || engine == EngineGo && !bytes.Equal(args[3].Tensor.Data, want) {
					t.Errorf("got %v, %v", graphtest.NumbersOf(args[3].Tensor), err)
				}
			})
		})
	}
}

// runConstantCall executes a payload of which this number of constants are arguments.
func runConstantCall(t *testing.T, p *delegate.Payload, engine Engine, args []*tensor.Value, constants int) error {
	t.Helper()
	img, err := Backend{Engine: engine}.Compile(context.Background(), p)
	if err != nil {
		return err
	}
	defer img.Close()
	g, lent := img.(*image).Graph, 0
	for v := range g.Values {
		if g.Values[v].Lent {
			lent++
		}
	}
	if used := graph.UsedValues(g); lent != constants || lent != 0 && !used[len(g.Values)-1] {
		t.Errorf("%d arguments are constants, want %d", lent, constants)
	}
	if n := img.Info().WeightBytes; n != 0 {
		t.Errorf("the payload has constants of %d bytes", n)
	}
	return runOnce(img, args)
}

// TestConstantArgumentsChecked requires that a call still has all arguments.
func TestConstantArgumentsChecked(t *testing.T) {
	forEngines(t, func(t *testing.T, engine Engine) {
		g, args := constantCall()
		specs := graphtest.ArgSpecs(g, false)
		specs[1].Const, specs[2].Const = args[1].Tensor.Data, args[2].Tensor.Data
		img, err := Backend{Engine: engine}.Compile(context.Background(), &delegate.Payload{Data: graphtest.Encode(g), Args: specs})
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		if err := runOnce(img, append(args[:1:1], args[3])); !errors.Is(err, delegate.ErrArgument) {
			t.Errorf("got %v, want %v", err, delegate.ErrArgument)
		}
	})
}
