package goengine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
)

// longNodes are graphs of one node that takes far longer than the context.
var longNodes = map[string]func(m *graphtest.Maker) *graph.Graph{
	"a convolution": func(m *graphtest.Maker) *graph.Graph {
		return convolutionGraph32("Conv2d", 96, 96, graph.Window{KernelH: 31, KernelW: 31, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
			Groups: 1, GroupIn: 24, GroupOut: 24}, 0)
	},
	"a depthwise convolution": func(m *graphtest.Maker) *graph.Graph {
		return convolutionGraph32("DepthwiseConv2d", 160, 160, graph.Window{KernelH: 61, KernelW: 61, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
			Groups: 48, GroupIn: 1, GroupOut: 1}, 0)
	},
	"a fully connected node": func(m *graphtest.Maker) *graph.Graph {
		x, f, b, y := m.Input(graph.FP32, 1<<12, 1024), m.Constant(graph.FP32, 0, 1024, 1024), m.Constant(graph.FP32, 0, 1024), m.Value(graph.FP32, 1)
		m.Node("FullyConnected", []int{x, f, b}, []int{y})
		return m.Fix(y)
	},
	"a quantized product": func(m *graphtest.Maker) *graph.Graph {
		x, f, b := m.Quantized(m.Input(graph.FP32, 1<<13, 512), 1), m.Constant(graph.QCInt8, 0, 2048, 512), m.Constant(graph.FP32, 0, 2048)
		y := m.Value(graph.FP32, 1)
		m.Node("FullyConnected", []int{x, f, b}, []int{y})
		return m.Fix(y)
	},
	"a batch of products": func(m *graphtest.Maker) *graph.Graph {
		x, w, y := m.Input(graph.FP32, 8, 1024, 512), m.Input(graph.FP32, 8, 512, 1024), m.Value(graph.FP32, 1)
		m.Node("BatchMatrixMultiply", []int{x, w}, []int{y})
		return m.Fix(y)
	},
}

// TestStopsInsideNodes stops the Go engine inside a node. The unit remains usable.
func TestStopsInsideNodes(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	for name, make := range longNodes {
		t.Run(name, func(t *testing.T) {
			m := mustCompile(t, make(graphtest.NewMaker(3)))
			for _, p := range []*cpu.Pool{nil, pool} {
				stopInside(t, m, p)
			}
		})
	}
}

// stopInside stops a unit after a tenth of the time that it takes. It must end in half of that time, once in a few
// attempts, because the machine may do other things meanwhile.
func stopInside(t *testing.T, m *Image, p *cpu.Pool) {
	t.Helper()
	u, args := newUnit(m, delegate.Instance{Pool: p}), graphtest.NewMaker(7).Arguments(m.Graph)
	var took, all time.Duration
	for range 5 {
		begun := time.Now()
		if err := u.Execute(context.Background(), args); err != nil { // from the second attempt on, after it has been stopped
			t.Fatal(err)
		}
		all = time.Since(begun)
		ctx, cancel := context.WithTimeout(context.Background(), all/10)
		begun = time.Now()
		err := u.Execute(ctx, args)
		cancel()
		if took = time.Since(begun); errors.Is(err, context.DeadlineExceeded) && took < all/2 {
			return
		}
	}
	t.Errorf("%d threads: stopped after %v of %v", p.Size(), took, all)
}
