package xnnpack

import "fmt"

// The library ends the process where scales of quantized elements are too far apart
// for its fixed-point arithmetic. These are the bounds that it asserts; the reference
// has none.

// outside is a reason if x is not within [lo, hi).
func outside(what string, x, lo, hi float32) string {
	if x >= lo && x < hi {
		return ""
	}
	return fmt.Sprintf("%s %v, outside of %v to %v", what, x, lo, hi)
}

// quantizedScales are the scales of a node's operands and output; ok is false unless
// they are quantized with one each.
func quantizedScales(g *Graph, n *Node) (in []float32, out float32, ok bool) {
	y := &g.Values[n.Out[0]]
	if y.Datatype.info().quant != perTensor {
		return nil, 0, false
	}
	for _, v := range n.In {
		if g.Values[v].Datatype.info().quant != perTensor {
			return nil, 0, false
		}
		in = append(in, g.Values[v].Quant.Scale)
	}
	return in, y.Quant.Scale, true
}

// sumLimits are the bounds of quantized sums and differences.
func sumLimits(g *Graph, n *Node) string {
	in, out, ok := quantizedScales(g, n)
	if !ok {
		return ""
	}
	for _, s := range in {
		if reason := outside("scale ratio", s/out, 0x1p-10, 0x1p8); reason != "" {
			return reason
		}
	}
	return ""
}

// productLimits are the bounds of quantized products.
func productLimits(g *Graph, n *Node) string {
	if in, out, ok := quantizedScales(g, n); ok {
		return outside("scale ratio", in[0]*in[1]/out, 0x1p-16, 0x1p8)
	}
	return ""
}

// convertLimits are the bounds of a change of quantization.
func convertLimits(g *Graph, n *Node) string {
	if in, out, ok := quantizedScales(g, n); ok {
		return outside("scale ratio", in[0]/out, 0x1p-8, 0x1p7)
	}
	return ""
}

// leakyLimits are the bounds of a quantized LeakyReLU, on either side of 0.
func leakyLimits(g *Graph, n *Node) string {
	in, out, ok := quantizedScales(g, n)
	if !ok {
		return ""
	}
	if reason := convertLimits(g, n); reason != "" {
		return reason
	}
	below := in[0] / out * n.Param
	return outside("scale ratio below 0", max(below, -below), 0x1p-8, 0x1.FFFCp6)
}

// weightLimits are the bounds of sums of quantized products, for every output channel.
func weightLimits(g *Graph, n *Node) string {
	in, filter, out := &g.Values[n.In[0]], &g.Values[n.In[1]], &g.Values[n.Out[0]]
	if out.Datatype.info().quant != perTensor || in.Datatype.info().quant != perTensor {
		return ""
	}
	scales := filter.Quant.Scales
	if scales == nil {
		scales = []float32{filter.Quant.Scale}
	}
	for _, s := range scales {
		if reason := outside("scale of the sums", float32(in.Quant.Scale*s)/out.Quant.Scale, 0x1p-32, 0x1p8); reason != "" {
			return reason
		}
	}
	return ""
}

// boundLimits wants room between the bounds of a quantized output.
func boundLimits(g *Graph, n *Node) string {
	q := &g.Values[n.Out[0]].Quant
	if g.Values[n.Out[0]].Datatype.info().quant != perTensor {
		return ""
	}
	if quantize(n.Min/q.Scale, q.ZeroPoint, -128, 255) >= quantize(n.Max/q.Scale, q.ZeroPoint, -128, 255) {
		return "bounds that fall on one element"
	}
	return ""
}
