package native

import (
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// The library's nodes of bytes multiply by ratios of scales, slopes and weights of pixels that are rounded to 8 or 11 bits:
// one element in 20 is a step beside that of PyTorch and of the Go engine. With halves, scales are rounded to halves. Such
// nodes are computed on float32, between two conversions, which are exact.

// isViaFloats reports whether a node is computed on float32.
func isViaFloats(g *graph.Graph, n *graph.Node) bool {
	x, y := g.Values[n.In[0]].Datatype, g.Values[n.Out[0]].Datatype
	bytes := x.Info().Quant == graph.PerTensor || y.Info().Quant == graph.PerTensor
	return typeOf(n).viaFloats && bytes && x != graph.FP32 && y != graph.FP32
}

// viaFloats defines a node of float32, and the conversions around it.
func (b *builder) viaFloats(n *graph.Node) call {
	in, out := n.In[0], n.Out[0]
	from, to := b.ids[in], b.ids[out]
	defer func() { b.ids[in], b.ids[out] = from, to }()
	if c := b.floats(in); c.status != xnn.Success {
		return c
	}
	if c := b.convert(from, b.ids[in]); c.status != xnn.Success {
		return c
	}
	if n.Type.Tag == graph.TagConvert {
		return b.convert(b.ids[in], to)
	}
	if c := b.floats(out); c.status != xnn.Success {
		return c
	}
	if c := typeOf(n).Define(b, n); c.status != xnn.Success {
		return c
	}
	return b.convert(b.ids[out], to)
}

// floats defines a value of float32 in the shape of a value of the graph, whose id becomes that.
func (b *builder) floats(v int) call {
	return b.tensor(&graph.Value{Datatype: graph.FP32}, b.shapes[v], xnn.NoValue, 0, &b.ids[v])
}

func (b *builder) convert(from, to uint32) call {
	return call{"xnn_define_unary", b.lib.DefineUnary(b.sub, b.lib.Soname.Unary[xnn.Convert], nil, from, to, 0)}
}

// floatBytes returns the size of the values of float32 that a node is computed on.
func floatBytes(n *graph.Node, s []graph.Shape) (bytes int64) {
	values := []int{n.In[0], n.Out[0]}
	if n.Type.Tag == graph.TagConvert {
		values = values[:1]
	}
	for _, v := range values {
		bytes = graph.Plus(bytes, graph.Times(4, s[v].Numel())+2*lineBytes)
	}
	return bytes
}
