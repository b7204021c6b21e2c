package graph

import (
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// ConstantArguments makes the nodes of a repaired graph read arguments that are constants of the program as constants of the
// graph, so that they are folded and packed as such. The call has the arguments nevertheless. It returns the shapes s of the
// values, with those of the constants.
func (g *Graph) ConstantArguments(args []*delegate.ArgSpec, s []Shape) []Shape {
	if len(args) != len(g.Args) {
		return s
	}
	at := make(map[int]int) // by argument: the constant
	for k, v := range g.Args[:g.Inputs] {
		if data := constantBytes(args[k], &g.Values[v]); data != nil {
			x := g.Values[v]
			x.Arg, x.Input, x.Data, x.Lent = None, false, data, true
			at[v] = len(g.Values)
			g.Values, s = append(g.Values, x), append(s, s[v])
		}
	}
	if len(at) == 0 {
		return s
	}
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			if c, ok := at[v]; ok {
				g.Nodes[i].replaceOperand(v, c)
			}
		}
	}
	return s
}

// smallConstant is the size in bytes of constants that an engine may copy, as it reads beyond their last element.
const smallConstant = 16 << 10

// constantBytes returns the bytes of an argument that is a constant of the declared type and sizes, nil for others.
func constantBytes(a *delegate.ArgSpec, x *Value) []byte {
	if a == nil || a.Const == nil || a.DType != x.Datatype.Info().Tensor || specShape(a).squeezed() != x.Shape.squeezed() {
		return nil
	}
	n := x.Datatype.Bytes(x.Shape)
	if n == 0 || len(a.Const) < n || !tensor.Aligned(a.Const, 4) || n > smallConstant && !ReadableBehind(a.Const[:n]) {
		return nil
	}
	return a.Const[:n]
}

// ReadableBehind reports whether a vector behind the last byte can be read: it is in the same memory page, or in the slice's
// capacity.
func ReadableBehind(b []byte) bool {
	const page = 4096
	last := uintptr(xnn.AddressOf(b)) + uintptr(len(b)) - 1
	return cap(b)-len(b) >= ReadBehind || last/page == (last+ReadBehind)/page
}
