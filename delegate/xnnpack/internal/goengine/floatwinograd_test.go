package goengine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
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
	image := mustCompile(t, g)
	fast, plain := newUnit(image, delegate.Instance{}), newPlainUnit(image, delegate.Instance{})
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

// TestPixelBlocksOfBatches checks that an image has the same results alone and in a batch, on one thread and on several.
func TestPixelBlocksOfBatches(t *testing.T) {
	for _, channels := range [][2]int{{32, 32}, {48, 80}} {
		var want []float64
		for _, batch := range []int{1, 2, 3} {
			m := graphtest.NewMaker(8)
			x, y := m.Input(graph.FP32, batch, 13, 14, channels[0]), m.Value(graph.FP32, batch, 13, 14, channels[1])
			m.Node("Conv2d", []int{x, m.Constant(graph.FP32, 0, channels[1], 3, 3, channels[0]), m.Constant(graph.FP32, 0, channels[1])}, []int{y},
				graphtest.WithWindow(blockWindow(1, channels[0], channels[1])))
			g := m.Done(y)
			image := mustCompile(t, g)
			for threads := 1; threads <= 4; threads++ {
				pool, args := cpu.NewPool(threads), graphtest.NewMaker(2).Arguments(g)
				mustExecute(t, newUnit(image, delegate.Instance{Pool: pool}), args)
				pool.Close()
				got := graphtest.NumbersOf(args[1].Tensor)
				if want == nil {
					want = got
				}
				if !slices.Equal(got[:len(want)], want) {
					t.Errorf("%v channels: results of an image in a batch of %d, on %d threads, differ from those alone", channels, batch, threads)
				}
			}
		}
	}
}

// TestPixelBlocksOfSizes compares calls of one unit whose images have other numbers and sizes, with too few blocks among them, and
// wants their working memory to be that of the estimate: it may be more at smaller sizes.
func TestPixelBlocksOfSizes(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	g := convolutionGraph32("Conv2d", 22, 21, blockWindow(1, 64, 80), 0)
	image := mustCompile(t, g)
	in := delegate.Instance{Pool: pool}
	fast, plain := newUnit(image, in), newPlainUnit(image, in)
	blocks, n := [2]int{}, &image.Graph.Nodes[0]
	for seed := range uint64(25) {
		got, want := graphtest.NewMaker(seed).Resized(g), graphtest.NewMaker(seed).Resized(g)
		mustExecute(t, fast, got)
		mustExecute(t, plain, want)
		name := fmt.Sprint("sizes ", got[0].Tensor.Sizes)
		sameResult(t, name, got[1].Tensor, want[1].Tensor, false)
		w := n.Windows(fast.Shapes[n.In[0]], fast.Shapes[n.Out[0]])
		if !w.Winograd() {
			blocks[0]++
			continue
		}
		blocks[1]++
		if need := needsOf(fast.Graph, fast.placement, pool.Size()); need.Shared < 2*4*int64(w.WinogradWork()) {
			t.Errorf("%s: %d bytes are estimated, of %d elements on each of two threads", name, need.Shared, w.WinogradWork())
		}
	}
	if blocks[0] == 0 || blocks[1] == 0 {
		t.Errorf("got %d calls without and with blocks, want both", blocks)
	}
}

// TestPixelBlocksErrors compares with sums of float64, for pixels and taps that roundings of a block's transforms could spoil. An
// error is relative to the largest pixel of the window times all taps, channel by channel: a pixel outside of a window has no influence.
func TestPixelBlocksErrors(t *testing.T) {
	const channels, height, width = 32, 13, 14
	for name, set := range map[string]func(r *rand.Rand, x, filter []float32){
		"pixels of all sizes":   func(r *rand.Rand, x, _ []float32) { scale(r, x, channels, 60) },
		"elements of all sizes": func(r *rand.Rand, x, _ []float32) { scale(r, x, 1, 60) },
		"taps of all sizes":     func(r *rand.Rand, _, f []float32) { scale(r, f, 1, 30) },
		"some large pixels": func(r *rand.Rand, x, _ []float32) {
			for range 5 {
				at := r.IntN(len(x)/channels) * channels
				scale(r, x[at:at+channels], channels, 100)
			}
		},
		"taps that cancel": func(_ *rand.Rand, x, f []float32) {
			for i := range x {
				x[i] += 1 << 12
			}
			for ; len(f) > 0; f = f[9*channels:] {
				for c := range channels {
					sum := float32(0)
					for tap := range 8 {
						sum += f[tap*channels+c]
					}
					f[8*channels+c] = -sum
				}
			}
		},
		"zeros": func(_ *rand.Rand, x, _ []float32) { clear(x[5*width*channels:]) },
	} {
		r := rand.New(rand.NewPCG(3, 11))
		g := convolutionGraph32("Conv2d", height, width, blockWindow(1, channels, channels), 0)
		n := &g.Nodes[0]
		filter, bias := tensor.View[float32](g.Values[n.In[1]].Data), tensor.View[float32](g.Values[n.In[2]].Data)
		args := graphtest.NewMaker(4).Arguments(g)
		x := tensor.View[float32](args[0].Tensor.Data)
		set(r, x, filter)
		mustExecute(t, mustUnit(t, g, delegate.Instance{}), args)
		for i, got := range tensor.View[float32](args[1].Tensor.Data) {
			pixel := i / channels
			image := x[pixel/(height*width)*height*width*channels:]
			window := pixelWindow{image, height, width, channels, pixel / width % height, pixel % width}
			want, most := window.times(filter[i%channels*9*channels:])
			want, most = want+float64(bias[i%channels]), most+math.Abs(float64(bias[i%channels]))
			if e := math.Abs(float64(got) - want); !(e <= 8*epsilon*most) {
				t.Fatalf("%s: element %d: got %v, want %v: difference %v, want at most %v", name, i, got, want, e, 8*epsilon*most)
			}
		}
	}
}

const epsilon = 1.0 / (1 << 24)

// scale multiplies groups of elements by powers of two from 2**-bits to 2**bits.
func scale(r *rand.Rand, x []float32, group, bits int) {
	for ; len(x) > 0; x = x[group:] {
		factor := float32(math.Ldexp(1, r.IntN(2*bits)-bits))
		for i := range group {
			x[i] *= factor
		}
	}
}

// pixelWindow is the window of 3×3 pixels around a pixel of an image.
type pixelWindow struct {
	image                         []float32
	height, width, channels, y, x int
}

// times returns the product with a filter, and the sum over the channels of the largest element times all taps.
func (w pixelWindow) times(filter []float32) (sum, most float64) {
	for c := range w.channels {
		largest, taps := 0.0, 0.0
		for tap := range 9 {
			y, x, weight := w.y+tap/3-1, w.x+tap%3-1, float64(filter[tap*w.channels+c])
			taps += math.Abs(weight)
			if y >= 0 && y < w.height && x >= 0 && x < w.width {
				element := float64(w.image[(y*w.width+x)*w.channels+c])
				sum, largest = sum+element*weight, max(largest, math.Abs(element))
			}
		}
		most += largest * taps
	}
	return sum, most
}
