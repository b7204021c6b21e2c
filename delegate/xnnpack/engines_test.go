package xnnpack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/x448/float16"
)

// compile compiles a payload for an engine.
func compile(t testing.TB, data []byte, engine Engine) (delegate.Image, error) {
	t.Helper()
	img, err := Backend{Engine: engine, Library: xnntest.Path()}.Compile(context.Background(), &delegate.Payload{Data: data})
	if err == nil && engine == EngineNative && !isNative(img) {
		img.Close()
		return nil, graph.Unsupported("", "%s", img.(*image).notNative)
	}
	return img, err
}

// arguments returns tensors for a graph's arguments. Inputs have random elements.
func (m *maker) arguments(g *graph.Graph) []*tensor.Value {
	var args []*tensor.Value
	for _, v := range g.Args {
		x := &g.Values[v]
		t := tensor.New(x.Datatype.Info().Tensor, x.Shape.Dims()...)
		if x.Input {
			copy(t.Data, m.bytes(x.Datatype, x.Shape))
		}
		value := tensor.TensorValue(t)
		args = append(args, &value)
	}
	return args
}

// numbersOf returns an argument's elements as numbers, without dequantization.
func numbersOf(t *tensor.Tensor) []float64 {
	out := make([]float64, t.Numel())
	for i := range out {
		switch t.DType {
		case tensor.Float32:
			out[i] = float64(tensor.View[float32](t.Data)[i])
		case tensor.Float16:
			out[i] = float64(float16.Frombits(tensor.View[uint16](t.Data)[i]).Float32())
		case tensor.BFloat16:
			out[i] = float64(math.Float32frombits(uint32(tensor.View[uint16](t.Data)[i]) << 16))
		case tensor.Int8:
			out[i] = float64(tensor.View[int8](t.Data)[i])
		case tensor.Uint8:
			out[i] = float64(t.Data[i])
		case tensor.Int32:
			out[i] = float64(tensor.View[int32](t.Data)[i])
		case tensor.Int64:
			out[i] = float64(tensor.View[int64](t.Data)[i])
		}
	}
	return out
}

// differ returns an error for the first output element whose difference exceeds the sample's
// tolerance.
func (s *sample) differ(got, want []*tensor.Value, g *graph.Graph) error {
	for i := g.Inputs; i < len(g.Args); i++ {
		a, b := got[i].Tensor, want[i].Tensor
		if !equalShapes(graph.ShapeOf(a.Sizes...), b.Sizes) {
			return fmt.Errorf("output %d: got sizes %v, want %v", i-g.Inputs, a.Sizes, b.Sizes)
		}
		x, y := numbersOf(a), numbersOf(b)
		allowed := float64(s.steps)
		if d := g.Values[g.Args[i]].Datatype; d.IsFloat() {
			allowed = s.tolerance(d) * max(largest(y), 1e-3)
		}
		for j := range y {
			if x[j] != y[j] && !(math.Abs(x[j]-y[j]) <= allowed) && !(math.IsNaN(x[j]) && math.IsNaN(y[j])) {
				return fmt.Errorf("output %d, element %d: native %v, reference %v, difference %g, allowed %g",
					i-g.Inputs, j, x[j], y[j], math.Abs(x[j]-y[j]), allowed)
			}
		}
	}
	return nil
}

func equalShapes(s graph.Shape, sizes []int) bool { return s == graph.ShapeOf(sizes...) }

func largest(x []float64) float64 {
	most := 0.0
	for _, v := range x {
		if a := math.Abs(v); a > most && !math.IsInf(v, 0) {
			most = a
		}
	}
	return most
}

// execute runs a payload once on random arguments. Numbers are at least lo unless lo is 0.
func execute(t testing.TB, data []byte, engine Engine, lo float32, pool *cpu.Pool) ([]*tensor.Value, *graph.Graph, error) {
	t.Helper()
	img, err := compile(t, data, engine)
	if err != nil {
		return nil, nil, err
	}
	defer img.Close()
	u, err := img.Unit(delegate.Instance{Pool: pool})
	if err != nil {
		return nil, nil, err
	}
	defer u.Close()
	g := img.(*image).Graph
	m := newMaker(7)
	if lo > 0 {
		m.lo = lo
	}
	args := m.arguments(g)
	return args, g, u.Execute(context.Background(), args)
}

// TestNodes runs every node type with every combination of datatypes on both engines. The library
// may not support a combination; the reference must.
func TestNodes(t *testing.T) {
	covered := make(map[string]bool)
	var lacking []string
	for _, s := range samples(1) {
		for i := range s.graph.Nodes {
			covered[s.graph.Nodes[i].Type.Name] = true
		}
		t.Run(s.name, func(t *testing.T) {
			data := encode(s.graph)
			want, g, err := execute(t, data, EngineGo, s.lo, nil)
			if err != nil {
				t.Fatalf("reference: %v", err)
			}
			xnntest.Library(t)
			got, _, err := execute(t, data, EngineNative, s.lo, nil)
			if errors.Is(err, delegate.ErrUnsupported) {
				lacking = append(lacking, s.name)
				return
			}
			if err != nil {
				t.Fatalf("native: %v", err)
			}
			if err := s.differ(got, want, g); err != nil {
				t.Error(err)
			}
		})
	}
	for _, n := range graph.NodeTypes {
		if n != nil && !covered[n.Name] {
			t.Errorf("got no sample of %s", n.Name)
		}
	}
	t.Logf("not supported by the library: %q", lacking)
}

// runZeros runs a graph on the reference engine with inputs of zeros.
func runZeros(t *testing.T, g *graph.Graph, shapes []graph.Shape) {
	bytes := 0
	for v := range shapes {
		bytes += g.Values[v].Datatype.Bytes(shapes[v])
	}
	if bytes > 1<<22 {
		return
	}
	u := goengine.NewUnit(&goengine.Image{Compilation: &graph.Compilation{Graph: g, Shapes: shapes}}, delegate.Instance{})
	var args []*tensor.Value
	for _, v := range g.Args {
		value := tensor.TensorValue(tensor.New(g.Values[v].Datatype.Info().Tensor, shapes[v].Dims()...))
		args = append(args, &value)
	}
	if err := u.Execute(context.Background(), args); err != nil && !errors.Is(err, delegate.ErrArgument) {
		t.Fatal(err)
	}
}

// isNative reports whether the library runs an image.
func isNative(img delegate.Image) bool { return img.(*image).by.Name() == string(EngineNative) }

// nativeOf and goOf return an image as one of an engine, which must run it.
func nativeOf(img delegate.Image) *native.Image { return img.(*image).by.(*native.Image) }
func goOf(img delegate.Image) *goengine.Image   { return img.(*image).by.(*goengine.Image) }
