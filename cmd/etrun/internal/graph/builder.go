package graph

import (
	"cmp"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/weight"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/pte"
)

// builder builds the graph of a method.
type builder struct {
	prog  *etrun.Program
	p     *Program
	spec  *pte.Method
	out   *Method
	left  *int // remaining nodes of the program
	seen  map[*byte]int
	m     *ir.Method
	infos []delegate.Info

	lowered bool
	plan    *plan.Memory   // nil if the method does not load
	outline *etrun.Outline // nil for a lowered method
	top     sheet
	inner   []sheet
	steps   []int // by step: its node, -1 for none
	live    map[ir.Origin]int64
	queue   []Node // insides of the delegate that is added next
}

// sheet is a sheet that is not drawn yet.
type sheet struct {
	nodes []int
	bands []int
	links []link
}

// add adds a node to the method's sheet.
func (b *builder) add(n Node, band int) int {
	b.out.Nodes = append(b.out.Nodes, n)
	b.top.nodes, b.top.bands = append(b.top.nodes, len(b.out.Nodes)-1), append(b.top.bands, band)
	*b.left--
	at := len(b.out.Nodes) - 1
	b.out.Nodes, b.queue = append(b.out.Nodes, b.queue...), nil
	return at
}

// link adds an edge to the method's sheet. Nodes with a negative index are not shown.
func (b *builder) link(from, to int, kind string) {
	if from >= 0 && to >= 0 && len(b.top.links) < maxEdges {
		b.top.links = append(b.top.links, link{from, to, kind})
	}
}

// link is an edge between nodes of the method.
type link struct {
	from, to int
	kind     string // of a jump; empty for a value
}

// constantOf adds a value that is a constant, and returns its index, else -1. name is that of the operand of node id. e says
// what quantized elements mean.
func (b *builder) constantOf(v int, id, name string, e *delegate.Elements) int {
	if v < 0 || b.m.Values[v].Kind != tensor.KindTensor {
		return -1
	}
	s := &b.m.Storages[b.m.Values[v].Storage]
	t := b.m.Values[v].Tensor
	if !s.Kind.IsConstant() || t.NBytes() > int64(len(s.Data)) {
		return -1
	}
	return b.p.constant(b.seen, weight.New(cmp.Or(t.Name, b.constantName(id, name)), t.DType, t.Sizes, t.DimOrder, s.Data[:t.NBytes()], e))
}

// constantName names a constant without a name of its own by the operand that it is: METHOD.NODE.OPERAND, in programs of one
// method NODE.OPERAND.
func (b *builder) constantName(id, operand string) string {
	name := strings.TrimSuffix(id+"."+operand, ".")
	if len(b.prog.Spec().Methods) > 1 {
		name = b.spec.Name + "." + name
	}
	return name
}
