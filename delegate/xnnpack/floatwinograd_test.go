package xnnpack

import (
	"fmt"
	"math"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// blockWindow is a kernel of 3×3 taps, which the Go engine computes in blocks of 2×2 pixels if there are enough.
func blockWindow(pad, in, out int) graph.Window {
	return graph.Window{KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Top: pad, Left: pad, Bottom: pad, Right: pad,
		Groups: 1, GroupIn: in, GroupOut: out}
}

// usesBlocks reports whether the only node of a graph is computed in blocks.
func usesBlocks(g *graph.Graph) bool {
	n := &g.Nodes[0]
	w := n.Windows(g.Values[n.In[0]].Shape, g.Values[n.Out[0]].Shape)
	return w.Winograd()
}

// TestPixelBlocks compares convolutions in blocks with the plain loops: of even and odd sizes, with and without padding, on one thread
// and on three, with tiles that end within an image, and with functions merged into them.
func TestPixelBlocks(t *testing.T) {
	pool := cpu.NewPool(3)
	defer pool.Close()
	for _, channels := range [][2]int{{32, 32}, {48, 80}, {64, 144}} {
		for _, size := range [][2]int{{14, 16}, {13, 15}, {40, 7}, {7, 41}} {
			for pad := range 4 {
				for _, p := range []*cpu.Pool{nil, pool} {
					w := blockWindow(pad, channels[0], channels[1])
					if pad == 3 { // on two sides only
						w.Top, w.Left, w.Bottom, w.Right = 2, 0, 0, 1
					}
					name := fmt.Sprintf("%v channels, %v pixels, padding %d, %d threads", channels, size, pad, p.Size())
					g := convolutionGraph32("Conv2d", size[0], size[1], w, 0)
					if !usesBlocks(g) {
						t.Fatalf("%s: not in blocks", name)
					}
					compareWithPlain(t, graphtest.Sample{Name: name, Graph: g}, p)
				}
			}
		}
	}
}

// TestPixelBlocksThen compares a function that is merged into a convolution in blocks.
func TestPixelBlocksThen(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	for _, kind := range []string{"Sigmoid", "Clamp", "Hardswish"} {
		m := graphtest.NewMaker(5)
		m.Lo, m.Hi = -0.25, 0.25
		x, y, z := m.Input(graph.FP32, 1, 13, 15, 32), m.Value(graph.FP32, 1, 13, 15, 48), m.Value(graph.FP32, 1, 13, 15, 48)
		m.Node("Conv2d", []int{x, m.Constant(graph.FP32, 0, 48, 3, 3, 32), m.Constant(graph.FP32, 0, 48)}, []int{y},
			graphtest.WithWindow(blockWindow(1, 32, 48)))
		m.Node(kind, []int{y}, []int{z})
		compareWithPlain(t, graphtest.Sample{Name: kind, Graph: m.Done(z)}, pool)
	}
}

// TestPixelBlocksSpecial sets pixels to numbers that are not finite, or so large that sums of them are not: results are those of the
// definition, and those of the next call are not changed by them.
func TestPixelBlocksSpecial(t *testing.T) {
	g := convolutionGraph32("Conv2d", 13, 14, blockWindow(1, 32, 48), 0)
	img, err := compile(t, graphtest.Encode(g), EngineGo)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	fast, plain := goengine.NewUnit(goOf(img), delegate.Instance{}), goengine.NewUnit(goOf(img), delegate.Instance{})
	plain.Plain = true
	numbers := []float32{graph.Inf, -graph.Inf, float32(math.NaN()), math.MaxFloat32, 1}
	for i, special := range numbers {
		for pixel := 0; pixel < 2*13*14; pixel += 19 {
			got, want := graphtest.NewMaker(uint64(i)).Arguments(g), graphtest.NewMaker(uint64(i)).Arguments(g)
			for _, args := range [][]*tensor.Value{got, want} {
				tensor.View[float32](args[0].Tensor.Data)[pixel*32+pixel%32] = special
			}
			mustExecute(t, fast, got)
			mustExecute(t, plain, want)
			if err := sameBlocks(graphtest.NumbersOf(got[1].Tensor), graphtest.NumbersOf(want[1].Tensor)); err != nil {
				t.Fatalf("%v in pixel %d: %v", special, pixel, err)
			}
		}
	}
}

// sameBlocks compares results that are the same where they are not finite. Errors of the others are relative to the largest one:
// blocks add all elements of a pixel before they are multiplied by weights.
func sameBlocks(got, want []float64) error {
	largest := 0.0
	for _, y := range want {
		if !math.IsInf(y, 0) && !math.IsNaN(y) {
			largest = max(largest, math.Abs(y))
		}
	}
	for i, y := range want {
		finite := !math.IsInf(y, 0) && !math.IsNaN(y)
		if got[i] != y && !(math.IsNaN(y) && math.IsNaN(got[i])) && !(finite && math.Abs(got[i]-y) <= 1e-6*largest) {
			return fmt.Errorf("element %d: got %v, want %v", i, got[i], y)
		}
	}
	return nil
}

// TestPixelBlocksOfBatches checks that an image has the same results alone and in a batch.
func TestPixelBlocksOfBatches(t *testing.T) {
	var results [2][]float64
	for i, batch := range []int{1, 3} {
		m := graphtest.NewMaker(8)
		x, y := m.Input(graph.FP32, batch, 12, 12, 32), m.Value(graph.FP32, batch, 12, 12, 32)
		m.Node("Conv2d", []int{x, m.Constant(graph.FP32, 0, 32, 3, 3, 32), m.Constant(graph.FP32, 0, 32)}, []int{y},
			graphtest.WithWindow(blockWindow(1, 32, 32)))
		g := m.Done(y)
		img, err := compile(t, graphtest.Encode(g), EngineGo)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		args := graphtest.NewMaker(2).Arguments(g)
		mustExecute(t, goengine.NewUnit(goOf(img), delegate.Instance{}), args)
		results[i] = graphtest.NumbersOf(args[1].Tensor)
	}
	for i, x := range results[0] {
		if results[1][i] != x {
			t.Fatalf("element %d: %v alone, %v in a batch", i, x, results[1][i])
		}
	}
}
