package xnnpack

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkFamilies compares the portable operators, by family, with a naive loop and with the
// library, which runs a graph of one node. All compute the same on one thread. Images have layout
// [N, C, H, W] for the operators and [N, H, W, C] for the library; weights are constants. See
// [kerneltest.Compare] for the metrics. Lines without x-xnnpack have no node.
func BenchmarkFamilies(b *testing.B) {
	_, err := xnn.Open(xnntest.Path())
	if err != nil {
		b.Logf("naive loops only: needs libXNNPACK (make deps): %v", err)
	}
	set := kernels.NewSet(portable.Ops(), quantized.Ops())
	for _, f := range []struct {
		name  string
		lines []line
	}{
		{"convolution", convolutionLines()},
		{"matmul", matmulLines()},
		{"pool", poolLines()},
		{"norm", normLines()},
		{"elementwise", elementwiseLines()},
		{"reduce", reduceLines()},
		{"move", moveLines()},
		{"quantized", quantizedLines()},
	} {
		b.Run(f.name, func(b *testing.B) {
			for _, l := range f.lines {
				b.Run(l.name, func(b *testing.B) {
					m := l.match()
					kerneltest.Compare(b, m.units, m.implementations(b, set, err == nil)...)
				})
			}
		})
	}
}

// line is one line of the benchmark. Its tensors are created when it runs.
type line struct {
	name  string
	match func() *match
}

// match is a call of an operator and the implementations to compare it with.
type match struct {
	op   string
	args []any            // without the outs
	outs []*tensor.Tensor // types and sizes; all implementations compute the first
	// unread are the indices of arguments that are not read afterwards, as in models.
	unread []int
	units  int // MACs or elements
	// naive computes the first out in logical order; nil for types that have no naive loop.
	naive func(y *tensor.Tensor)
	// node adds the node that computes y from x, the operator's non-constant tensors; nil if the
	// library has no such node.
	node   func(m *graphtest.Maker, x []int, y int)
	images bool // the library's tensors are channels last
}

func (m *match) implementations(b *testing.B, set *kernels.Set, library bool) []kerneltest.Implementation {
	c := kerneltest.Case{Op: m.op, Args: m.args, Unread: m.unread}
	for _, t := range m.outs {
		c.Want = append(c.Want, t)
	}
	run, written := kerneltest.Prepare(b, set, c)
	y := tensor.New(m.outs[0].DType, m.outs[0].Sizes...)
	all := []kerneltest.Implementation{{Name: "portable", Run: run, Result: written[0]}}
	if m.naive != nil {
		all = append(all, kerneltest.Implementation{Name: "naive", Run: func() error { m.naive(y); return nil }, Result: y})
	}
	if library && m.node != nil {
		all = append(all, m.library(b))
	}
	return all
}

// library returns the implementation that runs a graph of one node.
func (m *match) library(b *testing.B) kerneltest.Implementation {
	g := graphtest.NewMaker(1)
	var values []int
	var args []*tensor.Value
	for _, t := range m.inputs() {
		_, own := m.layout(t)
		values = append(values, g.Input(datatypeOf(t), own.Sizes...))
		args = append(args, new(tensor.TensorValue(own)))
	}
	result, own := m.layout(m.outs[0])
	y := g.Value(datatypeOf(own), own.Sizes...)
	m.node(g, values, y)
	u, _ := mustUnit(b, g.Done(y), EngineNative, delegate.Instance{})
	args = append(args, new(tensor.TensorValue(own)))
	ctx := context.Background()
	return kerneltest.Implementation{Name: "xnnpack", Run: func() error { return u.Execute(ctx, args) }, Result: result}
}

// inputs returns the non-constant tensors of the call.
func (m *match) inputs() (list []*tensor.Tensor) {
	for _, a := range m.args {
		switch a := a.(type) {
		case *tensor.Tensor:
			list = append(list, a)
		case []*tensor.Tensor:
			list = append(list, a...)
		}
	}
	return slices.DeleteFunc(list, func(t *tensor.Tensor) bool { return t.Const })
}

// layout copies t to the library's layout. It returns two tensors over the same memory: with t's
// sizes and with the library's. A sequence is an image of one row.
func (m *match) layout(t *tensor.Tensor) (logical, own *tensor.Tensor) {
	var order []uint8
	sizes := t.Sizes
	if m.images {
		n, last := t.Rank(), t.Sizes[2:]
		order = append([]uint8{0}, tensor.ContiguousOrder(n)[2:]...)
		order = append(order, 1)
		sizes = []int{t.Sizes[0], 1, last[len(last)-1], t.Sizes[1]}
		if n == 4 {
			sizes[1] = last[0]
		}
	}
	logical = kerneltest.FromDense(t.DType, t.Sizes, order, kerneltest.Dense(t))
	own = tensor.Make(t.DType, sizes, nil, tensor.Static)
	own.Bind(logical.Data)
	return logical, own
}

func datatypeOf(t *tensor.Tensor) graph.Datatype {
	switch t.DType {
	case tensor.Int8:
		return graph.QInt8
	case tensor.Float16:
		return graph.FP16
	}
	return graph.FP32
}

// noise returns random numbers, the same for the same sizes.
func noise(sizes ...int) *tensor.Tensor {
	return kerneltest.Noise(rand.New(rand.NewPCG(uint64(len(sizes)), uint64(sizes[0]))), tensor.Float32, sizes, nil)
}

// noiseWeights returns noise as a constant.
func noiseWeights(sizes ...int) *tensor.Tensor {
	t := noise(sizes...)
	t.Const = true
	return t
}

func blank(d tensor.DType, sizes ...int) *tensor.Tensor { return tensor.New(d, sizes...) }

func blankOrdered(d tensor.DType, sizes []int, order []uint8) *tensor.Tensor {
	t := tensor.Make(d, sizes, order, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	return t
}

func floats(t *tensor.Tensor) []float32 { return tensor.Data[float32](t) }
