package native

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// packedSamples returns graphs of one node whose filter is released once it is packed, for every node type
// and datatype row. They are large enough for several threads.
func packedSamples() (list []graphtest.Sample) {
	for i, types := range graph.ConvolutionTypes {
		for _, kind := range []string{"Conv2d", "ConvTranspose2d"} {
			for _, shape := range []struct{ side, stride, groups int }{{1, 1, 1}, {1, 1, 2}, {2, 1, 1}, {2, 2, 1}, {2, 2, 2}} {
				name := fmt.Sprintf("%s %v, %+v", kind, types, shape)
				g := manyPixels(graphtest.NewMaker(uint64(i)), kind, types, shape.side, shape.stride, shape.groups)
				list = append(list, graphtest.Sample{Name: name, Graph: g})
			}
		}
	}
	for i, types := range graph.FullyConnectedTypes {
		g := graphtest.NewMaker(uint64(i)).ProductSample(types, 150, 160, 256)
		list = append(list, graphtest.Sample{Name: "FullyConnected " + graphtest.WeightedName(types), Graph: g})
	}
	return list
}

// TestReleaseAllRows releases the filters of all datatype rows. Runtimes that are created later do not read them: for units with
// threads, with profiling, and for further units.
func TestReleaseAllRows(t *testing.T) {
	xnntest.Library(t)
	pool := cpu.NewPool(2)
	defer pool.Close()
	tried := 0
	for _, s := range packedSamples() {
		args := graphtest.NewMaker(7).Arguments(s.Graph)
		img, err := compile(graphtest.Encode(s.Graph))
		if errors.Is(err, delegate.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		tried++
		want := mustRun(t, img, delegate.Instance{}, args, false)
		img.Close()
		released := compilePoisoned(t, s.Graph)
		for _, in := range []delegate.Instance{{Pool: pool}, {}} {
			for _, timed := range []bool{false, true} {
				if got := mustRun(t, released, in, args, timed); !slices.Equal(got, want) {
					t.Errorf("%s, threads %t, profiling %t: got %v, want %v", s.Name, in.Pool != nil, timed, got[:4], want[:4])
				}
			}
		}
		released.Close()
	}
	if tried < 20 {
		t.Errorf("got %d graphs for the library", tried)
	}
}

// compilePoisoned compiles a graph and overwrites what it releases, which is at least one filter.
func compilePoisoned(t *testing.T, g *graph.Graph) *Image {
	t.Helper()
	got := 0
	img, err := open(&delegate.Payload{
		Data: graphtest.Encode(g), Args: graphtest.ArgSpecs(g, false), Release: func(data []byte) bool {
			got += len(data)
			for i := range data {
				data[i] = 0x7f
			}
			return true
		}}, graph.WeightsCache{}, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	if got == 0 {
		t.Fatal("no filter was released")
	}
	return img
}

// mustRun runs a new unit of an image once, and returns the first output.
func mustRun(t *testing.T, img *Image, in delegate.Instance, args []*tensor.Value, timed bool) []float64 {
	t.Helper()
	u, err := img.Unit(in)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if err := u.(delegate.Profiler).SetProfiling(timed); err != nil {
		t.Fatal(err)
	}
	clear(args[len(args)-1].Tensor.Data)
	run(t, u, args)
	return graphtest.NumbersOf(args[len(args)-1].Tensor)
}

// manyPixels makes a graph of a convolution of a square image.
func manyPixels(m *graphtest.Maker, kind string, types graph.Weighted, side, stride, groups int) *graph.Graph {
	m.Lo, m.Hi = -1, 1
	w := graph.Window{KernelH: side, KernelW: side, StrideH: stride, StrideW: stride, DilationH: 1, DilationW: 1,
		Groups: groups, GroupIn: 128, GroupOut: 136}
	x := m.Activations(types, 3, 1, 15/side, 14/side, groups*w.GroupIn)
	filter := m.Constant(types.Filter, 0, groups*w.GroupOut, side, side, w.GroupIn)
	y := m.Value(types.Out, 1, 1, 1, groups*w.GroupOut)
	m.Node(kind, []int{x, filter, m.Constant(types.Bias, 0, groups*w.GroupOut)}, []int{y}, graphtest.WithWindow(w))
	return m.Fix(y)
}
