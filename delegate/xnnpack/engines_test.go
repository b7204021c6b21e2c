package xnnpack

import (
	"context"
	"errors"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
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
	m := graphtest.NewMaker(7)
	if lo > 0 {
		m.Lo = lo
	}
	args := m.Arguments(g)
	return args, g, u.Execute(context.Background(), args)
}

// TestNodes runs every node type with every combination of datatypes on both engines. The library
// may not support a combination; the reference must.
func TestNodes(t *testing.T) {
	covered := make(map[string]bool)
	var lacking []string
	for _, s := range graphtest.Samples(1) {
		for i := range s.Graph.Nodes {
			covered[s.Graph.Nodes[i].Type.Name] = true
		}
		t.Run(s.Name, func(t *testing.T) {
			data := graphtest.Encode(s.Graph)
			want, g, err := execute(t, data, EngineGo, s.Lo, nil)
			if err != nil {
				t.Fatalf("reference: %v", err)
			}
			xnntest.Library(t)
			got, _, err := execute(t, data, EngineNative, s.Lo, nil)
			if errors.Is(err, delegate.ErrUnsupported) {
				lacking = append(lacking, s.Name)
				return
			}
			if err != nil {
				t.Fatalf("native: %v", err)
			}
			if err := s.Differ(got, want, g); err != nil {
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

// isNative reports whether the library runs an image.
func isNative(img delegate.Image) bool { return img.(*image).by.Name() == string(EngineNative) }
