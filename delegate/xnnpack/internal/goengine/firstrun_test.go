package goengine

import (
	"runtime"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestFirstRunPlansNothing checks that a unit of static sizes plans its products when it is created: its first run allocates less
// than the table of a convolution's rows takes.
func TestFirstRunPlansNothing(t *testing.T) {
	m := graphtest.NewMaker(5)
	x, f, b := m.Input(graph.QInt8, 1, 64, 64, 16), m.Constant(graph.QCInt8, 0, 32, 1, 1, 16), m.Constant(graph.QCInt32, 0, 32)
	y := m.Value(graph.QInt8, 1, 64, 64, 32)
	m.Node("Conv2d", []int{x, f, b}, []int{y}, graphtest.WithWindow(graph.Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1,
		DilationH: 1, DilationW: 1, Groups: 1, GroupIn: 16, GroupOut: 32}))
	c := compilation(t, m.Fix(y))
	for _, v := range c.Graph.Args {
		c.Args = append(c.Args, &delegate.ArgSpec{DType: c.Graph.Values[v].Datatype.Info().Tensor, Sizes: c.Shapes[v].Dims()})
	}
	own, err := NewImage(t.Context(), c, graph.WeightsCache{})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	var blocks [][]byte
	for _, b := range own.Workspace().Blocks {
		blocks = append(blocks, tensor.AlignedBytes(int(b.Bytes)))
	}
	for range 2 {
		u, args := newUnit(own, delegate.Instance{Blocks: blocks}), graphtest.NewMaker(3).Arguments(own.Graph)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := u.Execute(t.Context(), args)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; err != nil || n > 24<<10 {
			t.Errorf("the first run of a unit allocates %d bytes, error %v", n, err)
		}
	}
}

// TestFirstRunPacksNothing checks that the first run of a unit allocates less than a filter has bytes, besides the working memory
// of its threads: all filters were packed when the graph was compiled, and units share them.
func TestFirstRunPacksNothing(t *testing.T) {
	for name, g := range largeFilters() {
		t.Run(name, func(t *testing.T) {
			m := mustCompile(t, g)
			defer m.Close()
			args := graphtest.NewMaker(1).Arguments(m.Graph)
			for range 2 {
				u := newUnit(m, delegate.Instance{})
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				mustExecute(t, u, args)
				runtime.ReadMemStats(&after)
				scratch := uint64(needsOf(u.Graph, u.placement, 1).Scratch)
				if n := after.TotalAlloc - before.TotalAlloc; n > scratch+1<<18 {
					t.Errorf("the first run of a unit allocates %d bytes, its working memory has %d", n, scratch)
				}
			}
		})
	}
}
