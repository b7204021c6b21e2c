package xnnpack

import (
	"fmt"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd/simdtest"
)

// BenchmarkPeak measures products and convolutions of floats in the Go engine, on one thread and on two, as a share of the
// fused multiply-adds that the processor computes at most, measured in the same run.
func BenchmarkPeak(b *testing.B) {
	if simdtest.MultiplyAdds(1) == 0 {
		b.Skip("needs vectors")
	}
	for _, s := range peakShapes {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", s.name, threads), func(b *testing.B) { s.run(b, threads) })
		}
	}
}

// peakShape is a product of rows, or a convolution of an image with a side of so many pixels if it has a kernel.
type peakShape struct {
	name                          string
	rows, k, columns              int
	side, kernel, stride, in, out int
}

// peakShapes are products of transformers, and the convolutions of ResNet-18.
var peakShapes = []peakShape{
	{name: "197x384x1536", rows: 197, k: 384, columns: 1536},
	{name: "197x1536x384", rows: 197, k: 1536, columns: 384},
	{name: "128x768x3072", rows: 128, k: 768, columns: 3072},
	{name: "128x3072x768", rows: 128, k: 3072, columns: 768},
	{name: "512x512x512", rows: 512, k: 512, columns: 512},
	{name: "conv7x7s2_224x3x64", side: 224, kernel: 7, stride: 2, in: 3, out: 64},
	{name: "conv3x3_56x64x64", side: 56, kernel: 3, stride: 1, in: 64, out: 64},
	{name: "conv3x3s2_56x64x128", side: 56, kernel: 3, stride: 2, in: 64, out: 128},
	{name: "conv3x3_28x128x128", side: 28, kernel: 3, stride: 1, in: 128, out: 128},
	{name: "conv3x3_14x256x256", side: 14, kernel: 3, stride: 1, in: 256, out: 256},
	{name: "conv3x3_7x512x512", side: 7, kernel: 3, stride: 1, in: 512, out: 512},
}

// graph returns a graph of one node, and the number of its multiply-adds.
func (s *peakShape) graph() (*graph.Graph, int) {
	m := graphtest.NewMaker(1)
	if s.kernel == 0 {
		x, y := m.Input(graph.FP32, s.rows, s.k), m.Value(graph.FP32, s.rows, s.columns)
		m.Node("FullyConnected", []int{x, m.Constant(graph.FP32, 0, s.columns, s.k), m.Constant(graph.FP32, 0, s.columns)}, []int{y})
		return m.Done(y), s.rows * s.k * s.columns
	}
	pad, side := s.kernel/2, (s.side-1)/s.stride+1
	w := graph.Window{KernelH: s.kernel, KernelW: s.kernel, StrideH: s.stride, StrideW: s.stride, DilationH: 1, DilationW: 1,
		Top: pad, Bottom: pad, Left: pad, Right: pad, Groups: 1, GroupIn: s.in, GroupOut: s.out}
	x, y := m.Input(graph.FP32, 1, s.side, s.side, s.in), m.Value(graph.FP32, 1, side, side, s.out)
	m.Node("Conv2d", []int{x, m.Constant(graph.FP32, 0, s.out, s.kernel, s.kernel, s.in), m.Constant(graph.FP32, 0, s.out)}, []int{y},
		graphtest.WithWindow(w))
	return m.Done(y), side * side * s.kernel * s.kernel * s.in * s.out
}

func (s *peakShape) run(b *testing.B, threads int) {
	g, adds := s.graph()
	img, err := Backend{Engine: EngineGo}.Compile(b.Context(), &delegate.Payload{Data: graphtest.Encode(g), AsWritten: true, Threads: threads})
	if err != nil {
		b.Fatal(err)
	}
	defer img.Close()
	pool := cpu.NewPool(threads)
	defer pool.Close()
	unit, err := img.Unit(delegate.Instance{Pool: pool})
	if err != nil {
		b.Fatal(err)
	}
	defer unit.Close()
	args := graphtest.NewMaker(1).Arguments(g)
	best := time.Duration(1 << 62)
	for b.Loop() {
		start := time.Now()
		if err := unit.Execute(b.Context(), args); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	rate := float64(adds) / best.Seconds()
	b.ReportMetric(rate/1e9, "GMAC/s")
	b.ReportMetric(100*rate/(float64(threads)*peakRate()), "%peak")
}

// peakRate is the largest number of multiply-adds per second of a thread.
func peakRate() (best float64) {
	for range 20 {
		start := time.Now()
		n := simdtest.MultiplyAdds(20_000)
		best = max(best, float64(n)/time.Since(start).Seconds())
	}
	return best
}
