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

// imageCalls builds graphs of one convolution that is called several times. If faulty, further calls
// have a float filter with the integer bias, and read images in channels first order.
type imageCalls struct {
	layoutCase
	filter, bias   int // of the first call
	floats, widens int // the same as float32
}

func newImageCalls(size [3]int, faulty bool) *imageCalls {
	return &imageCalls{layoutCase: *newLayoutCase(size, faulty)}
}

func (b *imageCalls) square(side int) graph.Window {
	return graph.Window{KernelH: side, KernelW: side, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Top: side / 2, Right: side / 2,
		Bottom: side / 2,
		Left:   side / 2, Groups: 1, GroupIn: b.c, GroupOut: b.c}
}

// first adds the first call, of x, and returns its output in channels last order, quantized.
func (b *imageCalls) first(x int) int {
	q := b.Value(graph.QInt8, b.image()...)
	b.Graph.Values[q].Quant = graph.Quant{Scale: 0.02, ZeroPoint: 3}
	b.Node("Convert", []int{x}, []int{q})
	in := b.TransposedLike(q, graph.ToChannelsLast)
	b.filter = b.Constant(graph.QCInt8, 0, b.c, 3, 3, b.c)
	m := &moduleCalls{Maker: b.Maker}
	b.bias = b.Constant(graph.QCInt32, 0, b.c)
	for c := range b.c {
		b.Graph.Values[b.bias].Quant.Scales[c] = float32(b.Graph.Values[q].Scale(0) * b.Graph.Values[b.filter].Scale(c))
	}
	b.floats, b.widens = m.floats(b.filter), m.floats(b.bias)
	y := b.Value(graph.QInt8, 1, b.h, b.w, b.c)
	b.Graph.Values[y].Quant = graph.Quant{Scale: 0.05, ZeroPoint: -6}
	b.Node("Conv2d", []int{in, b.filter, b.bias}, []int{y}, graphtest.WithWindow(b.square(3)))
	return y
}

// floating returns a quantized value as float32.
func (b *imageCalls) floating(v int) int {
	y := b.Value(graph.FP32, b.Graph.Values[v].Shape.Dims()...)
	b.Node("Convert", []int{v}, []int{y})
	return y
}

// again adds a further call, of v in channels first order, and returns its output in that order.
func (b *imageCalls) again(v int) int {
	bias := b.bias
	if !b.faulty {
		v, bias = b.transposed(v, graph.ToChannelsLast), b.widens
	}
	return b.againLast(v, bias)
}

// againLast is again for v in channels last order.
func (b *imageCalls) againLast(v, bias int) int {
	y := b.Value(graph.FP32, 1, b.h, b.w, b.c)
	b.Node("Conv2d", []int{v, b.floats, bias}, []int{y}, graphtest.WithWindow(b.square(3)))
	return b.transposed(y, toChannelsFirst)
}

// pooled adds a pool of v in channels first order, and returns its output in channels last order.
func (b *imageCalls) pooled(v int) int {
	if !b.faulty {
		v = b.transposed(v, graph.ToChannelsLast)
	}
	w := b.square(3)
	w.GroupIn, w.GroupOut, w.Groups = 0, 0, 0
	y := b.Value(graph.FP32, 1, b.h, b.w, b.c)
	b.Node("MaxPooling2d", []int{v}, []int{y}, graphtest.WithWindow(w))
	return y
}

var callCases = []struct {
	name  string
	build func(b *imageCalls, x int) *graph.Graph
}{
	{"the first output is returned", func(b *imageCalls, x int) *graph.Graph {
		y := b.floating(b.TransposedLike(b.first(x), toChannelsFirst))
		return b.Done(y, b.again(y))
	}},
	{"three calls", func(b *imageCalls, x int) *graph.Graph {
		y := b.floating(b.TransposedLike(b.first(x), toChannelsFirst))
		z := b.again(y)
		return b.Done(y, z, b.again(z))
	}},
	{"two calls of one value", func(b *imageCalls, x int) *graph.Graph {
		y := b.floating(b.TransposedLike(b.first(x), toChannelsFirst))
		return b.Done(b.again(y), y, b.again(b.unary("Abs", y, b.image()...)))
	}},
	{"of the input", func(b *imageCalls, x int) *graph.Graph {
		y := b.floating(b.TransposedLike(b.first(x), toChannelsFirst))
		return b.Done(y, b.again(x))
	}},
	{"relu between", func(b *imageCalls, x int) *graph.Graph {
		y := b.floating(b.TransposedLike(b.first(x), toChannelsFirst))
		return b.Done(y, b.again(b.unary("Clamp", y, b.image()...)))
	}},
	{"pool between", func(b *imageCalls, x int) *graph.Graph {
		y := b.floating(b.TransposedLike(b.first(x), toChannelsFirst))
		bias := b.pick(b.bias, b.widens)
		return b.Done(y, b.againLast(b.pooled(y), bias))
	}},
	{"sum of calls", func(b *imageCalls, x int) *graph.Graph {
		y := b.floating(b.TransposedLike(b.first(x), toChannelsFirst))
		sum := b.Value(graph.FP32, b.image()...)
		b.Node("Add", []int{y, b.again(y)}, []int{sum})
		return b.Done(b.again(sum))
	}},
	{"chain in channels last order", func(b *imageCalls, x int) *graph.Graph {
		y := b.floating(b.first(x))
		return b.Done(b.againLast(y, b.pick(b.bias, b.widens)))
	}},
}

func (b *imageCalls) pick(faulty, right int) int {
	if b.faulty {
		return faulty
	}
	return right
}

// callSizes are channels, height and width.
var callSizes = [][3]int{{3, 6, 6}, {4, 4, 4}, {3, 3, 3}, {5, 4, 6}, {6, 6, 3}, {1, 4, 4}, {1, 1, 1}, {4, 1, 1}, {4, 4, 1}}

// TestCallLayouts checks that further calls of a convolution read images in its order.
func TestCallLayouts(t *testing.T) {
	for _, c := range callCases {
		for _, size := range callSizes {
			t.Run(fmt.Sprintf("%s/%v", c.name, size), func(t *testing.T) {
				b := newImageCalls(size, false)
				right := c.build(b, b.Input(graph.FP32, b.image()...))
				want, repairs, err := runPayload(t, payloadOf(right))
				if err != nil || len(repairs) > 0 {
					t.Fatalf("correct graph: got repairs %q, error %v, want none", repairs, err)
				}
				b = newImageCalls(size, true)
				got, repairs, err := runPayload(t, payloadOf(c.build(b, b.Input(graph.FP32, b.image()...))))
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

// TestCallLayoutsRefused checks that a call of a sum of both orders is refused.
func TestCallLayoutsRefused(t *testing.T) {
	for name, build := range map[string]func(b *imageCalls, y, last int) int{
		"read by a call": func(b *imageCalls, y, last int) int {
			sum := b.Value(graph.FP32, b.image()...)
			b.Node("Add", []int{y, last}, []int{sum})
			return b.again(sum)
		},
		"an output": func(b *imageCalls, y, last int) int {
			sum := b.Value(graph.FP32, b.image()...)
			b.Node("Add", []int{y, last}, []int{sum})
			return sum
		},
	} {
		b := newImageCalls([3]int{4, 4, 4}, true)
		last := b.first(b.Input(graph.FP32, b.image()...))
		y := b.floating(b.TransposedLike(last, toChannelsFirst))
		g := b.Done(y, b.again(y), build(b, y, b.floating(last)))
		_, _, err := runPayload(t, payloadOf(g))
		if !errors.Is(err, delegate.ErrUnsupported) || !strings.Contains(err.Error(), "channels last order") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestSoundImagesStay checks that graphs without mixed operands are left alone, whatever their
// orders seem to be.
func TestSoundImagesStay(t *testing.T) {
	b := newImageCalls([3]int{4, 4, 4}, true)
	x := b.Input(graph.FP32, b.image()...)
	y := b.Value(graph.FP32, b.image()...)
	b.Node("Conv2d", []int{x, b.Constant(graph.FP32, 0, 4, 3, 3, 4), b.Constant(graph.FP32, 0, 4)}, []int{y}, graphtest.WithWindow(b.square(3)))
	_, repairs, err := runPayload(t, payloadOf(b.Done(y)))
	if err != nil || slices.ContainsFunc(repairs, func(r string) bool { return strings.Contains(r, "transposed") }) {
		t.Errorf("repairs %q, error %v", repairs, err)
	}
}
