package xnnpack

import (
	"context"
	"testing"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/cost"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// rateSample is a graph whose time is compared with the estimate from the table of rates.
type rateSample struct {
	name  string
	build func(m *graphtest.Maker) *graph.Graph
}

func rateSamples() (list []rateSample) {
	add := func(name string, build func(m *graphtest.Maker) *graph.Graph) {
		list = append(list, rateSample{name, build})
	}
	unary := func(name string, dims ...int) {
		add(name, func(m *graphtest.Maker) *graph.Graph {
			m.Lo, m.Hi = 0.1, 2
			x, y := m.Input(graph.FP32, dims...), m.Value(graph.FP32, dims...)
			m.Node(name, []int{x}, []int{y}, func(n *graph.Node) {
				graphtest.SetScalar(n, 0.5)
				if name == "Clamp" {
					n.Min, n.Max = 0, 1
				}
				if p, ok := n.Params.(*graph.TransposeParams); ok {
					p.Perm = []int{0, 3, 1, 2}
				}
			})
			return m.Fix(y)
		})
	}
	elements := [][]int{{1, 1}, {1, 16}, {1, 1024}, {1, 28, 28, 96}}
	for i := range graph.UnaryNodes {
		for _, dims := range elements {
			unary(graph.UnaryNodes[i].Name, dims...)
		}
	}
	for _, dims := range [][]int{{10, 7}, {16, 64}} {
		unary("Softmax", dims...)
	}
	for _, dims := range [][]int{{2, 3, 5, 4}, {1, 31, 4, 16}, {1, 8, 8, 32}} {
		unary("StaticTranspose", dims...)
	}
	unary("Softmax", 1, 8, 128, 128)
	unary("Copy", 1, 28, 28, 96)
	unary("StaticTranspose", 1, 28, 28, 96)
	unary("StaticTranspose", 1, 224, 224, 3)
	unary("StaticTranspose", 1, 7, 7, 320)
	unary("GlobalAvgPooling2d", 1, 28, 28, 96)
	binary := func(name string, a, b []int) {
		add(name, func(m *graphtest.Maker) *graph.Graph {
			m.Lo, m.Hi = 0.1, 2
			x, z, y := m.Input(graph.FP32, a...), m.Input(graph.FP32, b...), m.Value(graph.FP32, a...)
			m.Node(name, []int{x, z}, []int{y})
			return m.Done(y)
		})
	}
	for i := range graph.BinaryNodes {
		for _, dims := range elements {
			binary(graph.BinaryNodes[i].Name, dims, dims)
		}
	}
	for _, b := range [][]int{{1}, {64}, {16, 1}} {
		binary("Multiply", []int{16, 64}, b)
	}
	convolve := func(label, name string, size, in, to, k, stride, groups int) {
		add(label, func(m *graphtest.Maker) *graph.Graph {
			w := graph.Window{KernelH: k, KernelW: k, StrideH: stride, StrideW: stride, DilationH: 1, DilationW: 1, Top: k / 2, Bottom: k / 2, Left: k / 2, Right: k / 2,
				Groups: groups, GroupIn: in / groups, GroupOut: to / groups}
			x := m.Input(graph.FP32, 1, size, size, in)
			f := []int{to, k, k, in / groups}
			if name == "DepthwiseConv2d" {
				f = []int{1, k, k, to}
			}
			y := m.Value(graph.FP32, 1, 1, 1, to)
			m.Node(name, []int{x, m.Constant(graph.FP32, 0, f...), m.Constant(graph.FP32, 0, to)}, []int{y}, graphtest.WithWindow(w))
			return m.Fix(y)
		})
	}
	for _, to := range []int{8, 16, 24, 32, 64, 256} {
		convolve("Conv2d 1x1", "Conv2d", 28, 64, to, 1, 1, 1)
		convolve("Conv2d 3x3", "Conv2d", 28, 64, to, 3, 1, 1)
	}
	convolve("Conv2d 3x3 of 3 channels", "Conv2d", 224, 3, 32, 3, 2, 1)
	convolve("Conv2d 7x7 of small images", "Conv2d", 7, 320, 1280, 1, 1, 1)
	convolve("Conv2d groups", "Conv2d", 28, 64, 64, 3, 1, 4)
	for _, k := range []int{1, 3, 5, 7, 9} {
		convolve("DepthwiseConv2d", "DepthwiseConv2d", 28, 96, 96, k, 1, 96)
	}
	convolve("ConvTranspose2d", "ConvTranspose2d", 28, 64, 64, 3, 2, 1)
	codes := func(label, name string, size, in, to, k, groups int) {
		add(label+" of codes", func(m *graphtest.Maker) *graph.Graph {
			w := graph.Window{KernelH: k, KernelW: k, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Top: k / 2, Bottom: k / 2, Left: k / 2, Right: k / 2,
				Groups: groups, GroupIn: in / groups, GroupOut: to / groups}
			f, channel := []int{to, k, k, in / groups}, 0
			if name == "DepthwiseConv2d" {
				f, channel = []int{1, k, k, to}, 3
			}
			x, y := m.Input(graph.QInt8, 1, size, size, in), m.Value(graph.QInt8, 1, 1, 1, to)
			m.Node(name, []int{x, m.Constant(graph.QCInt8, channel, f...), m.Constant(graph.QCInt32, 0, to)}, []int{y}, graphtest.WithWindow(w))
			return m.Fix(y)
		})
	}
	codes("Conv2d 1x1", "Conv2d", 28, 64, 64, 1, 1)
	codes("Conv2d 3x3", "Conv2d", 28, 64, 64, 3, 1)
	codes("DepthwiseConv2d 3x3", "DepthwiseConv2d", 28, 96, 96, 3, 96)
	for _, name := range []string{"Add", "Multiply", "Sigmoid", "Clamp"} {
		add(name+" of codes", func(m *graphtest.Maker) *graph.Graph {
			in := []int{m.Input(graph.QInt8, 1, 28, 28, 96)}
			if name == "Add" || name == "Multiply" {
				in = append(in, m.Input(graph.QInt8, 1, 28, 28, 96))
			}
			y := m.Value(graph.QInt8, 1, 28, 28, 96)
			m.Graph.Values[y].Quant = m.Graph.Values[in[0]].Quant
			n := m.Node(name, in, []int{y})
			if name == "Clamp" {
				n.Min, n.Max = 0, 0.5
			}
			return m.Done(y)
		})
	}
	for _, pair := range [][2]graph.Datatype{{graph.FP32, graph.QInt8}, {graph.QInt8, graph.FP32}} {
		add("Convert to "+pair[1].String(), func(m *graphtest.Maker) *graph.Graph {
			x, y := m.Input(pair[0], 1, 28, 28, 96), m.Value(pair[1], 1, 28, 28, 96)
			m.Node("Convert", []int{x}, []int{y})
			return m.Done(y)
		})
	}
	for _, size := range [][2]int{{1, 16}, {4, 64}, {16, 64}, {1, 768}, {4, 768}, {16, 768}, {197, 768}} {
		for _, types := range []graph.Weighted{{In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}, {In: graph.QInt8, Filter: graph.QCInt8, Bias: graph.QCInt32, Out: graph.QInt8}} {
			add("FullyConnected "+graphtest.WeightedName(types), func(m *graphtest.Maker) *graph.Graph {
				x, y := m.Input(types.In, size[0], size[1]), m.Value(types.Out, size[0], size[1])
				m.Node("FullyConnected", []int{x, m.Constant(types.Filter, 0, size[1], size[1]), m.Constant(types.Bias, 0, size[1])}, []int{y})
				return m.Done(y)
			})
		}
	}
	for _, size := range [][3]int{{4, 12, 16}, {8, 128, 64}} {
		add("BatchMatrixMultiply", func(m *graphtest.Maker) *graph.Graph {
			n, rows, k := size[0], size[1], size[2]
			a, b, y := m.Input(graph.FP32, n, rows, k), m.Input(graph.FP32, n, k, rows), m.Value(graph.FP32, n, rows, rows)
			m.Node("BatchMatrixMultiply", []int{a, b}, []int{y})
			return m.Done(y)
		})
	}
	for _, name := range []string{"AvgPooling2d", "MaxPooling2d"} {
		for _, k := range []int{2, 3, 7} {
			add(name, func(m *graphtest.Maker) *graph.Graph {
				x, y := m.Input(graph.FP32, 1, 28, 28, 96), m.Value(graph.FP32, 1, 1, 1, 96)
				m.Node(name, []int{x}, []int{y}, graphtest.WithWindow(graph.Window{KernelH: k, KernelW: k, StrideH: 2, StrideW: 2, DilationH: 1, DilationW: 1}))
				return m.Fix(y)
			})
		}
	}
	add("Concatenate2", func(m *graphtest.Maker) *graph.Graph {
		x, z, y := m.Input(graph.FP32, 1, 28, 28, 48), m.Input(graph.FP32, 1, 28, 28, 48), m.Value(graph.FP32, 1, 28, 28, 96)
		m.Node("Concatenate2", []int{x, z}, []int{y}, func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = 3 })
		return m.Done(y)
	})
	add("StaticSlice", func(m *graphtest.Maker) *graph.Graph {
		x, y := m.Input(graph.FP32, 1, 28, 28, 96), m.Value(graph.FP32, 1, 28, 28, 48)
		m.Node("StaticSlice", []int{x}, []int{y}, func(n *graph.Node) {
			*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: make([]int, 4), Sizes: []int{1, 28, 28, 48}}
		})
		return m.Done(y)
	})
	for _, channels := range []int{2, 4, 8, 16, 48} {
		add("StaticSlice of rows", func(m *graphtest.Maker) *graph.Graph {
			x, y := m.Input(graph.FP32, 1, 28, 28, 2*channels), m.Value(graph.FP32, 1, 28, 28, channels)
			sizes := []int{1, 28, 28, channels}
			m.Node("StaticSlice", []int{x}, []int{y}, func(n *graph.Node) {
				*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: make([]int, 4), Sizes: sizes}
			})
			return m.Done(y)
		})
		for _, name := range []string{"Multiply", "PReLU"} {
			add(name+" of channels", func(m *graphtest.Maker) *graph.Graph {
				x, c, y := m.Input(graph.FP32, 1, 28, 28, channels), m.Constant(graph.FP32, 0, channels), m.Value(graph.FP32, 1, 28, 28, channels)
				m.Node(name, []int{x, c}, []int{y})
				return m.Done(y)
			})
		}
	}
	for _, dims := range [][]int{{1, 16, 8, 8}, {1, 28, 4, 32}, {4, 31, 8, 16}} {
		add("StaticTranspose of rows", func(m *graphtest.Maker) *graph.Graph {
			x, y := m.Input(graph.FP32, dims...), m.Value(graph.FP32, dims[0], dims[2], dims[1], dims[3])
			m.Node("StaticTranspose", []int{x}, []int{y}, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = []int{0, 2, 1, 3} })
			return m.Done(y)
		})
	}
	for _, perm := range [][]int{graph.ToChannelsLast, graph.ToChannelsFirst} {
		for _, s := range [][2]int{{2, 28}, {3, 16}, {3, 56}, {3, 224}, {4, 28}, {16, 28}} {
			add("StaticTranspose of images", func(m *graphtest.Maker) *graph.Graph {
				in := graph.ShapeOf(1, s[0], s[1], s[1])
				if perm[1] == 3 {
					in = graph.ShapeOf(1, s[1], s[1], s[0])
				}
				x, y := m.Input(graph.FP32, in.Dims()...), m.Value(graph.FP32, in.Permuted(perm).Dims()...)
				m.Node("StaticTranspose", []int{x}, []int{y}, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = perm })
				return m.Done(y)
			})
		}
	}
	add("StaticConstantPad", func(m *graphtest.Maker) *graph.Graph {
		x, y := m.Input(graph.FP32, 1, 28, 28, 96), m.Value(graph.FP32, 1, 30, 30, 96)
		m.Node("StaticConstantPad", []int{x}, []int{y}, func(n *graph.Node) {
			pad := []int{0, 1, 1, 0}
			*graph.Params[graph.PadParams](n) = graph.PadParams{Before: pad, After: pad, Value: 0}
		})
		return m.Done(y)
	})
	add("StaticResizeBilinear2D", func(m *graphtest.Maker) *graph.Graph {
		x, y := m.Input(graph.FP32, 1, 28, 28, 96), m.Value(graph.FP32, 1, 56, 56, 96)
		m.Node("StaticResizeBilinear2D", []int{x}, []int{y}, func(n *graph.Node) { *graph.Params[graph.ResizeParams](n) = graph.ResizeParams{Height: 56, Width: 56} })
		return m.Done(y)
	})
	for _, s := range [][4]int{{3, 112, 224, 224}, {24, 28, 56, 56}, {96, 28, 56, 56}, {21, 33, 129, 129}} {
		add("ResizeBilinearToPlanes", func(*graphtest.Maker) *graph.Graph { return planesGraph(s[0], s[1], s[1], s[2], s[3], 0, false) })
	}
	add("Copy of one element", func(m *graphtest.Maker) *graph.Graph {
		x, y := m.Input(graph.FP32, 1), m.Value(graph.FP32, 1)
		m.Node("Abs", []int{x}, []int{y})
		return m.Done(y)
	})
	add("five nodes of one element", func(m *graphtest.Maker) *graph.Graph {
		x := m.Input(graph.FP32, 1)
		for range 5 {
			y := m.Value(graph.FP32, 1)
			m.Node("Abs", []int{x}, []int{y})
			x = y
		}
		return m.Done(x)
	})
	return list
}

// batchTime is the approximate time of a batch of runs measured together: reading the clock costs as
// much as a run of a small graph.
const batchTime = 30 * time.Microsecond

// BenchmarkRates times one node of each kind on one thread. It reports the shortest time of a run, the
// average of a batch, and the ratio of the estimate to it.
func BenchmarkRates(b *testing.B) {
	for i, engine := range []Engine{cost.ByLibrary: EngineNative, cost.ByGo: EngineGo} {
		for _, s := range rateSamples() {
			b.Run(string(engine)+"/"+s.name, func(b *testing.B) {
				m := graphtest.NewMaker(1)
				g := s.build(m)
				shapes, err := g.Declared()
				if err != nil {
					b.Fatal(err)
				}
				u, _ := mustUnit(b, g, engine, delegate.Instance{})
				args, ctx := m.Arguments(g), context.Background()
				run := func(n int) time.Duration {
					start := time.Now()
					for range n {
						if err := u.Execute(ctx, args); err != nil {
							b.Fatal(err)
						}
					}
					return time.Since(start)
				}
				run(1)
				batch := 1 + int(batchTime/run(1))
				best := run(batch)
				for range b.N {
					best = min(best, run(batch))
				}
				nanoseconds := float64(best) / float64(batch)
				b.ReportMetric(nanoseconds, "best-ns")
				b.ReportMetric(float64(cost.Estimate(g, xnntest.Library(b).Soname, shapes, i, make([]bool, g.Inputs), 1))/nanoseconds, "x-estimated")
			})
		}
	}
}
