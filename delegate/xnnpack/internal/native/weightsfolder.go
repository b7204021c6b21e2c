package native

import (
	"os"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/cachefolder"
)

// writeFile stores the packed weights. The file appears complete or not at all.
func (w *weights) writeFile(folder *os.Root, name string, g *graph.Graph) error {
	data, err := w.encode(g)
	if err != nil {
		return err
	}
	return cachefolder.Replace(folder, name, data)
}

// maxPacked returns an upper bound for the size of a file of packed weights, computed from the
// graph's constants: channels are padded to the largest tiles, and each element and channel needs
// the largest number of bytes.
func maxPacked(g *graph.Graph) int64 {
	most := int64(weightsHeader + 2*weightsAlign)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Type.Packs && g.Values[n.In[1]].IsConst() {
			most = graph.Plus(most, graph.Plus(maxPackedBytes(n, g.Values[n.In[1]].Shape), weightsEntry+2*weightsAlign))
		}
	}
	return most
}

func maxPackedBytes(n *graph.Node, s graph.Shape) int64 {
	const element, channel, kernels = 4, 32, 4 // in bytes; kernels for which one node may be packed
	if w := n.Window(); n.Type.Convolution {
		out := graph.Times(w.Groups, graph.RoundUp(w.GroupOut, tileOut))
		return graph.Times(kernels, int(graph.Times(int(out), w.KernelH*w.KernelW, graph.RoundUp(w.GroupIn, tileOut), element)+
			graph.Times(int(out), channel, 1+w.StrideH*w.StrideW)))
	}
	rows, columns := graph.RoundUp(s.FromEnd(1), tileOut), graph.RoundUp(s.FromEnd(0), tileOut)
	return graph.Times(kernels, s.Leading(s.Rank-2), rows*columns*element+channel*max(rows, columns))
}
