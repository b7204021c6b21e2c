package graph_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// layoutCase builds a graph with correct layouts or, if faulty, as the exporter's layout pass writes
// it.
type layoutCase struct {
	*graphtest.Maker
	c, h, w int
	faulty  bool
}

var toChannelsFirst = []int{0, 3, 1, 2}

func (b *layoutCase) image() []int { return []int{1, b.c, b.h, b.w} }

// transposed adds a transpose of v and returns its output.
func (b *layoutCase) transposed(v int, perm []int) int {
	y := b.Value(graph.FP32, b.Graph.Values[v].Shape.Permuted(perm).Dims()...)
	b.Node("StaticTranspose", []int{v}, []int{y}, func(n *graph.Node) { *graph.Params[graph.TransposeParams](n) = graph.TransposeParams{Perm: perm} })
	return y
}

func (b *layoutCase) reshaped(v int, dims ...int) int {
	y := b.Value(graph.FP32, dims...)
	b.Node("StaticReshape", []int{v}, []int{y}, func(n *graph.Node) { *graph.Params[graph.ReshapeParams](n) = graph.ReshapeParams{Sizes: dims} })
	return y
}

func (b *layoutCase) unary(name string, v int, dims ...int) int {
	y := b.Value(graph.FP32, dims...)
	b.Node(name, []int{v}, []int{y})
	return y
}

// early returns the value that a node visited earlier by the pass reads: x, or its copy if faulty.
func (b *layoutCase) early(x, copied int) int {
	if b.faulty {
		return copied
	}
	return x
}

// convolved adds a convolution with dynamic quantization of v. Both v and the result are channels
// first. The exporter omits the transpose of v.
func (b *layoutCase) convolved(v int) int {
	if !b.faulty {
		v = b.transposed(v, graph.ToChannelsLast)
	}
	return b.convolvedLast(v, b.c)
}

// convolvedLast is convolved for a channels last value of c channels.
func (b *layoutCase) convolvedLast(v, c int) int {
	filter, bias := b.Constant(graph.QCInt8, 0, 3, 1, 1, c), b.Constant(graph.FP32, 0, 3)
	q := b.Quantized(v, 3)
	y := b.Value(graph.FP32, 1, b.h, b.w, 3)
	b.Node("Conv2d", []int{q, filter, bias}, []int{y}, graphtest.WithWindow(graph.Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1,
		DilationH: 1, DilationW: 1, Groups: 1, GroupIn: c, GroupOut: 3}))
	return b.transposed(y, toChannelsFirst)
}

var layoutCases = []struct {
	name  string
	build func(b *layoutCase) *graph.Graph
	vague [][3]int // sizes with an ambiguous order, which are rejected
}{
	{name: "reshape before a convolution", build: func(b *layoutCase) *graph.Graph {
		x := b.Input(graph.FP32, b.image()...)
		y := b.reshaped(b.early(x, b.transposed(x, graph.ToChannelsLast)), 1, b.c, b.h*b.w)
		return b.Done(b.convolved(b.reshaped(b.unary("Softmax", y, 1, b.c, b.h*b.w), b.image()...)))
	}},
	{name: "reshape parallel to a convolution", build: func(b *layoutCase) *graph.Graph {
		x := b.Input(graph.FP32, b.image()...)
		copied := b.transposed(x, graph.ToChannelsLast)
		y := b.reshaped(b.early(x, copied), b.c, b.h*b.w)
		return b.Done(y, b.convolvedLast(copied, b.c))
	}},
	{name: "elementwise result that is also an output", build: func(b *layoutCase) *graph.Graph {
		x := b.Input(graph.FP32, b.image()...)
		y := b.unary("Clamp", b.early(x, b.transposed(x, graph.ToChannelsLast)), b.image()...)
		return b.Done(y, b.convolved(y))
	}},
	{name: "product with per-channel factors", build: func(b *layoutCase) *graph.Graph {
		x, factors := b.Input(graph.FP32, b.image()...), b.Constant(graph.FP32, 0, 1, b.c, 1, 1)
		y := b.Value(graph.FP32, b.image()...)
		b.Node("Multiply", []int{b.early(x, b.transposed(x, graph.ToChannelsLast)), factors}, []int{y})
		return b.Done(b.convolved(y), b.reshaped(y, b.c*b.h*b.w))
	}},
	{name: "product of both orders", vague: [][3]int{{4, 4, 4}, {3, 3, 3}}, build: func(b *layoutCase) *graph.Graph {
		x := b.Input(graph.FP32, b.image()...)
		copied := b.transposed(x, graph.ToChannelsLast)
		s := b.transposed(b.unary("Sigmoid", b.early(x, copied), b.image()...), graph.ToChannelsLast)
		y := b.Value(graph.FP32, 1, b.h, b.w, b.c)
		b.Node("Multiply", []int{copied, s}, []int{y})
		return b.Done(b.convolvedLast(y, b.c))
	}},
	{name: "slice of channels", build: func(b *layoutCase) *graph.Graph {
		x := b.Input(graph.FP32, 1, b.c+1, b.h, b.w)
		y := b.Value(graph.FP32, b.image()...)
		b.Node("StaticSlice", []int{b.early(x, b.transposed(x, graph.ToChannelsLast))}, []int{y}, func(n *graph.Node) {
			*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: []int{0, 1, 0, 0}, Sizes: []int{1, b.c, b.h, b.w}}
		})
		return b.Done(b.convolved(y), b.reshaped(y, b.c*b.h*b.w))
	}},
	{name: "transpose in the model", build: func(b *layoutCase) *graph.Graph {
		x := b.Input(graph.FP32, b.image()...)
		y := b.transposed(b.early(x, b.transposed(x, graph.ToChannelsLast)), graph.ToChannelsLast)
		b.Graph.Values[y].Shape = graph.ShapeOf(1, b.h, b.w, b.c) // the declared shape is that of x transposed
		z := b.transposed(b.reshaped(y, 1, b.h, b.w, b.c), toChannelsFirst)
		return b.Done(b.convolved(b.reshaped(z, b.image()...)))
	}},
	{name: "after another convolution", vague: [][3]int{{3, 3, 3}}, build: func(b *layoutCase) *graph.Graph {
		x, shift := b.Input(graph.FP32, b.image()...), b.Constant(graph.FP32, 0, 3, 1, 1)
		between := b.convolvedLast(b.transposed(x, graph.ToChannelsLast), b.c)
		b.c = 3
		y := b.Value(graph.FP32, b.image()...)
		b.Node("Add", []int{between, shift}, []int{y})
		return b.Done(b.convolved(y))
	}},
	{name: "concatenation", build: func(b *layoutCase) *graph.Graph {
		x := b.Value(graph.FP32, b.image()...)
		b.Node("Concatenate2", []int{b.Input(graph.FP32, 1, 1, b.h, b.w), b.Input(graph.FP32, 1, b.c-1, b.h, b.w)}, []int{x},
			func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = 1 })
		copied := b.transposed(x, graph.ToChannelsLast)
		return b.Done(b.reshaped(b.early(x, copied), b.c, b.h*b.w), b.convolvedLast(copied, b.c))
	}},
}

// layoutSizes are channels, height and width of the images.
var layoutSizes = [][3]int{{6, 4, 5}, {8, 8, 3}, {4, 3, 4}, {3, 5, 5}, {4, 4, 4}, {3, 3, 3}}

func newLayoutCase(size [3]int, faulty bool) *layoutCase {
	return &layoutCase{Maker: graphtest.NewMaker(5), c: size[0], h: size[1], w: size[2], faulty: faulty}
}

// TestLayoutRepairs checks that graphs with misplaced transposes have the results of correct graphs,
// and that correct graphs are not repaired.
func TestLayoutRepairs(t *testing.T) {
	for _, c := range layoutCases {
		for _, size := range layoutSizes {
			t.Run(fmt.Sprintf("%s/%v", c.name, size), func(t *testing.T) {
				right := c.build(newLayoutCase(size, false))
				want, repairs, err := runPayload(t, payloadOf(right))
				if err != nil || len(repairs) > 0 {
					t.Fatalf("correct graph: got repairs %q, error %v, want none", repairs, err)
				}
				got, repairs, err := runPayload(t, payloadOf(c.build(newLayoutCase(size, true))))
				if slices.Contains(c.vague, size) {
					if !errors.Is(err, delegate.ErrUnsupported) || !strings.Contains(err.Error(), "cannot be determined") {
						t.Fatalf("got %v, want %v with %q", err, delegate.ErrUnsupported, "cannot be determined")
					}
					return
				}
				if err != nil || len(repairs) == 0 {
					t.Fatalf("faulty graph: got repairs %q, error %v", repairs, err)
				}
				if err := (&graphtest.Sample{}).Differ(got, want, right); err != nil {
					t.Errorf("%v, repairs %q", err, repairs)
				}
			})
		}
	}
}

// TestLayoutRepairsRefused checks the errors of ambiguous graphs, and that AsWritten disables repairs.
func TestLayoutRepairsRefused(t *testing.T) {
	size := [3]int{6, 4, 5}
	for _, c := range []struct {
		name, text string
		build      func(b *layoutCase) *graph.Graph
	}{
		{"declared sizes match no order", "no order of its operands gives the declared sizes", func(b *layoutCase) *graph.Graph {
			x := b.Input(graph.FP32, b.image()...)
			y := b.unary("Clamp", b.transposed(x, graph.ToChannelsLast), 1, 5, 4, 6)
			return b.Done(y, b.convolved(y))
		}},
		{"both orders", "read in channels first and channels last order", func(b *layoutCase) *graph.Graph {
			b.c, b.h, b.w = 4, 4, 4
			x := b.Input(graph.FP32, b.image()...)
			y := b.unary("Clamp", b.transposed(x, graph.ToChannelsLast), b.image()...)
			pooled := b.Value(graph.FP32, 1, 1, 1, 4)
			b.Node("GlobalAvgPooling2d", []int{y}, []int{pooled})
			return b.Done(b.reshaped(y, 64), b.convolved(y), pooled)
		}},
		{"reader declares other sizes", "the payload declares", func(b *layoutCase) *graph.Graph {
			x := b.Input(graph.FP32, b.image()...)
			y := b.unary("Clamp", b.transposed(x, graph.ToChannelsLast), b.image()...)
			return b.Done(b.unary("Sigmoid", y, 1, 5, 4, 6), b.convolved(y))
		}},
	} {
		_, _, err := runPayload(t, payloadOf(c.build(newLayoutCase(size, true))))
		if !errors.Is(err, delegate.ErrUnsupported) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want …%s…", c.name, err, c.text)
		}
	}
	p := payloadOf(layoutCases[0].build(newLayoutCase(size, true)))
	p.AsWritten = true
	if _, _, err := runPayload(t, p); !errors.Is(err, delegate.ErrPayload) {
		t.Errorf("as written: got %v, want %v", err, delegate.ErrPayload)
	}
}
