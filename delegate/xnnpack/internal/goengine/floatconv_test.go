package goengine

import (
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
)

// convolutionGraph32 returns a convolution of floats with a bias.
func convolutionGraph32(name string, h, v int, w graph.Window, flags uint32) *graph.Graph {
	m := graphtest.NewMaker(13)
	m.Lo, m.Hi = -0.25, 0.25
	in, out := w.Groups*w.GroupIn, w.Groups*w.GroupOut
	filter := []int{out, w.KernelH, w.KernelW, w.GroupIn}
	if name == "DepthwiseConv2d" {
		filter = []int{1, w.KernelH, w.KernelW, out}
	}
	x, y := m.Input(graph.FP32, 2, h, v, in), m.Value(graph.FP32, 2, 1, 1, out)
	f, b := m.Constant(graph.FP32, 0, filter...), m.Constant(graph.FP32, 0, out)
	m.Node(name, []int{x, f, b}, []int{y}, graphtest.WithWindow(w), func(n *graph.Node) { n.Flags = flags })
	return m.Fix(y)
}

// narrowKernel returns a k×1 kernel for images of one column, or a 1×k kernel for images of one line.
func narrowKernel(column bool, k, stride, dilation, pad, groups, in, out int) graph.Window {
	w := graph.Window{KernelH: k, KernelW: 1, StrideH: stride, StrideW: 1, DilationH: dilation, DilationW: 1, Top: pad, Bottom: pad}
	if !column {
		w = graph.Window{KernelH: 1, KernelW: k, StrideH: 1, StrideW: stride, DilationH: 1, DilationW: dilation, Left: pad, Right: pad}
	}
	w.Groups, w.GroupIn, w.GroupOut = groups, in, out
	return w
}

// TestNarrowImages compares convolutions of images of one column or one line with the plain loops.
func TestNarrowImages(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	for _, c := range []struct{ k, stride, dilation, pad int }{{3, 1, 1, 0}, {3, 1, 1, 1}, {4, 2, 1, 1}, {3, 1, 2, 2}, {7, 3, 1, 3}} {
		for _, channels := range [][3]int{ // groups, inputs and outputs of one
			{1, 9, 3}, {1, 9, 19}, {1, 10, 3}, {1, 10, 19}, {1, 8, 3}, {1, 3, 4}, {1, 70, 2}, {3, 9, 2}, {2, 33, 3},
		} {
			for _, long := range []int{9, 20, 41} {
				for _, column := range []bool{true, false} {
					w, h, v := narrowKernel(column, c.k, c.stride, c.dilation, c.pad, channels[0], channels[1], channels[2]), long, 1
					if !column {
						h, v = v, h
					}
					name := fmt.Sprintf("%+v, groups and channels %v, %dx%d", c, channels, h, v)
					compareWithPlain(t, graphtest.Sample{Name: name, Graph: convolutionGraph32("Conv2d", h, v, w, 0)}, pool)
				}
			}
		}
	}
}

// TestDepthwiseMultiplied compares depthwise convolutions with several outputs per input channel with the
// plain loops.
func TestDepthwiseMultiplied(t *testing.T) {
	for _, k := range [][2]int{{1, 9}, {9, 1}, {3, 3}, {4, 5}, {9, 9}, {12, 8}, {21, 21}} {
		for i, channels := range [][2]int{{1, 3}, {1, 19}, {1, 32}, {2, 3}, {5, 4}, {3, 16}, {2, 17}} {
			for _, width := range []int{k[1], k[1] + 20} {
				for _, flags := range []uint32{0, graph.FlagSamePadding} {
					w := graph.Window{KernelH: k[0], KernelW: k[1], StrideH: 1, StrideW: 1 + i%2, DilationH: 1, DilationW: 1,
						Groups: channels[0], GroupIn: 1, GroupOut: channels[1]}
					name := fmt.Sprintf("%dx%d, %d groups of %d outputs, width %d, flags %d, stride %d", k[0], k[1], channels[0], channels[1], width, flags,
						w.StrideW)
					compareWithPlain(t, graphtest.Sample{Name: name, Graph: convolutionGraph32("DepthwiseConv2d", k[0]+3, width, w, flags)}, nil)
				}
			}
		}
	}
}
