package xnnpack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// typesOf returns the type names of a graph's nodes.
func typesOf(g *graph.Graph) (names []string) {
	for i := range g.Nodes {
		names = append(names, g.Nodes[i].Type.Name)
	}
	return names
}

// dump formats a graph: one line per value, one line per node.
func dump(g *graph.Graph) string {
	var b strings.Builder
	for v := range g.Values {
		x := &g.Values[v]
		fmt.Fprintf(&b, "  value %d: %v %v", v, x.Datatype, x.Shape)
		if x.IsConst() {
			fmt.Fprintf(&b, " constant of %d bytes", len(x.Data))
		}
		if x.Input {
			fmt.Fprintf(&b, " input %d", x.Arg)
		}
		if x.Output {
			fmt.Fprintf(&b, " output %d", x.Arg-g.Inputs)
		}
		q := &x.Quant
		switch x.Datatype.Info().Quant {
		case graph.PerTensor:
			fmt.Fprintf(&b, " scale %v zero %d", q.Scale, q.ZeroPoint)
		case graph.PerChannel:
			lo, hi := float32(0), float32(0)
			if len(q.Scales) > 0 {
				lo, hi = slices.Min(q.Scales), slices.Max(q.Scales)
			}
			fmt.Fprintf(&b, " %d scales %v to %v along %d", len(q.Scales), lo, hi, q.ChannelDim)
		case graph.PerToken:
			fmt.Fprintf(&b, " %d dimensions share a scale", q.Nonbatch)
		case graph.PerGroup:
			fmt.Fprintf(&b, " %d scales, groups of %d", len(q.Blocks), q.GroupSize)
		}
		b.WriteByte('\n')
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		fmt.Fprintf(&b, "  %s %v→%v", n.Type.Name, n.In, n.Out)
		if n.Flags != 0 {
			fmt.Fprintf(&b, " flags %#x", n.Flags)
		}
		if n.Min > -graph.Inf || n.Max < graph.Inf {
			fmt.Fprintf(&b, " bounds %v to %v", n.Min, n.Max)
		}
		if w := n.Window(); w != nil {
			fmt.Fprintf(&b, " kernel %dx%d stride %dx%d dilation %dx%d padding t%d r%d b%d l%d adjust %dx%d groups %d of %d to %d", w.KernelH, w.KernelW,
				w.StrideH, w.StrideW, w.DilationH, w.DilationW, w.Top, w.Right, w.Bottom, w.Left, w.AdjustH, w.AdjustW, w.Groups, w.GroupIn, w.GroupOut)
		}
		if n.Window() == nil && n.Params != nil {
			fmt.Fprintf(&b, " %+v", n.Params)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
