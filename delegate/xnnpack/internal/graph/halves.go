package graph

import (
	"bytes"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// narrowFilters makes the constants of fully connected nodes of halves halves, as exporters do, if they have the numbers: the graph
// has them as floats. The filters of convolutions remain floats, as in payloads of exporters: the XNNPACK of runtimes before 1.5
// has no convolution of halves with a filter of halves.
func (g *Graph) narrowFilters() {
	halves := make(map[int]int) // by constant, None if it has other numbers
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Type.Tag != TagFullyConnected || g.Values[n.In[0]].Datatype != FP16 || g.Values[n.Out[0]].Datatype != FP16 {
			continue
		}
		in := []int{n.In[0], g.half(halves, n.In[1]), None}
		if n.In[2] != None {
			if in[2] = g.half(halves, n.In[2]); in[2] == None {
				continue
			}
		}
		if in[1] != None {
			n.In = in
		}
	}
}

// half returns a constant of floats as halves, None if it is not one, or has numbers that halves do not have.
func (g *Graph) half(known map[int]int, v int) int {
	if to, ok := known[v]; ok {
		return to
	}
	known[v] = None
	x := g.Values[v]
	if !x.IsConst() || x.Datatype != FP32 {
		return None
	}
	n := x.Shape.Numel()
	if len(x.Data) < 4*n {
		return None
	}
	halves, back := make([]uint16, n), make([]float32, n)
	EncodeFP16(halves, tensor.View[float32](x.Data)[:n])
	DecodeFloats(back, FP16, tensor.BytesOf(halves))
	if !bytes.Equal(tensor.BytesOf(back), x.Data[:4*n]) {
		return None
	}
	x.Datatype, x.Data, x.Found = FP16, tensor.BytesOf(halves), nil
	x.ID = uint32(len(g.Values))
	known[v] = len(g.Values)
	g.Values = append(g.Values, x)
	return known[v]
}
