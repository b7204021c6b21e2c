package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/cmd/etrun/internal/weight"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/runtime/ir"
)

// unfold adds the operations of a delegate as a sheet of their own. node is the delegate's index.
func (b *builder) unfold(n *Node, s *ir.Step, node int) {
	info := &b.infos[s.Delegate]
	n.Name = valuetext.Cut(fmt.Sprintf("%s, %d operations", info.Backend, len(info.Nodes)))
	for _, f := range info.Facts[:min(len(info.Facts), maxFacts)] {
		n.Facts = append(n.Facts, Fact{valuetext.Cut(f[0]), valuetext.Cut(f[1])})
	}
	if info.Engine != "" {
		n.Facts = append(n.Facts, Fact{"engine", valuetext.Cut(info.Engine)})
	}
	if len(info.Nodes) == 0 || len(info.Nodes)+len(s.Args) > *b.left {
		b.out.Left += len(info.Nodes)
		return
	}
	*b.left -= len(info.Nodes) + len(s.Args)
	b.inner = append(b.inner, sheet{})
	n.Sheet = len(b.inner)
	u := &unfolder{builder: b, s: s, info: info, id: n.ID, base: node + 1, sheet: &b.inner[n.Sheet-1]}
	u.nodes()
}

// unfolder fills the sheet of a delegate. Its nodes follow that of the delegate: inputs, operations, outputs.
type unfolder struct {
	*builder
	s     *ir.Step
	info  *delegate.Info
	id    string
	base  int // index of the first node
	sheet *sheet
	list  []Node
}

func (u *unfolder) nodes() {
	npu := u.commands()
	for k := range u.s.Inputs {
		u.list = append(u.list, u.port(kindInput, k, k))
	}
	for k := range u.info.Nodes {
		n := &u.info.Nodes[k]
		list := Node{ID: fmt.Sprintf("%s.%d", u.id, k), Kind: kindInner, Name: valuetext.Cut(n.Name), Class: classOf(n.Name), Source: valuetext.Cut(n.Detail)}
		if _, result, ok := strings.Cut(n.Detail, " → "); ok {
			list.Result = valuetext.Cut(result)
		}
		for _, a := range n.Attributes {
			list.Args = append(list.Args, Fact{valuetext.Cut(a.Name), valuetext.Text(a.Value)})
		}
		u.operands(&list, n)
		list.sign = n.Name + " " + n.Detail + fmt.Sprint(list.Args)
		u.list = append(u.list, list)
	}
	for k := u.s.Inputs; k < len(u.s.Args); k++ {
		u.list = append(u.list, u.port(kindOutput, k, k-u.s.Inputs))
	}
	if npu != nil {
		u.connectCommands(npu)
	} else {
		u.connectOperands()
	}
	u.pending()
}

// port is a node for an argument of the delegate.
func (u *unfolder) port(kind string, arg, k int) Node {
	return u.end(kind, fmt.Sprintf("%s.%s%d", u.id, kind, k), k, u.s.Args[arg])
}

// operands adds the constants of an operation, and the bytes that it writes.
func (u *unfolder) operands(to *Node, n *delegate.Node) {
	k := 0
	for i, v := range n.Reads {
		if v < 0 || v >= len(u.info.Operands) || !u.info.Operands[v].Constant {
			continue
		}
		c, name := -1, [...]string{"operand", "filter", "bias"}[min(i, 2)]
		if k < len(n.Constants) {
			t := n.Constants[k]
			var e *delegate.Elements
			if f := u.info.Operands[v].Elements; f != nil {
				e = f()
			}
			c = u.p.constant(u.seen, weight.New(u.constantName(to.ID, name), t.DType, t.Sizes, nil, t.Data, e))
			k++
		}
		if c >= 0 {
			to.Constants = append(to.Constants, Use{name, c})
		} else {
			to.Facts = append(to.Facts, Fact{name, valuetext.Cut(u.info.Operands[v].Type)})
		}
	}
	for _, v := range n.Writes {
		if v < 0 || v >= len(u.info.Operands) {
			continue
		}
		if to.Bytes == 0 {
			to.size = u.info.Operands[v].Bytes
		}
		to.Bytes += u.info.Operands[v].Bytes
	}
}

// connectOperands adds the edges of values that a payload lists; without a list, those of the order.
func (u *unfolder) connectOperands() {
	if len(u.info.Operands) == 0 {
		u.chain()
		return
	}
	writer := make(map[int]int)
	inputs, outputs := 0, u.s.Inputs+len(u.info.Nodes)
	for v := range u.info.Operands {
		if arg := u.info.Operands[v].Arg; arg >= 0 && arg < u.s.Inputs {
			writer[v] = inputs + arg
		}
	}
	for k := range u.info.Nodes {
		n := &u.info.Nodes[k]
		for _, v := range n.Reads {
			if from, ok := writer[v]; ok {
				u.edge(from, u.s.Inputs+k)
			}
		}
		for _, v := range n.Writes {
			writer[v] = u.s.Inputs + k
		}
	}
	for v := range u.info.Operands {
		arg := u.info.Operands[v].Arg
		if from, ok := writer[v]; ok && arg >= u.s.Inputs && arg < len(u.s.Args) {
			u.edge(from, outputs+arg-u.s.Inputs)
		}
	}
}

// chain connects the operations in their order, the first with all inputs, the last with all outputs.
func (u *unfolder) chain() {
	first, last := u.s.Inputs, u.s.Inputs+len(u.info.Nodes)-1
	for k := range u.s.Inputs {
		u.edge(k, first)
	}
	for k := first; k < last; k++ {
		u.edge(k, k+1)
	}
	for k := last + 1; k < len(u.list); k++ {
		u.edge(last, k)
	}
}

func (u *unfolder) edge(from, to int) {
	if len(u.sheet.links) < maxEdges {
		u.sheet.links = append(u.sheet.links, link{from, to, ""})
	}
}

// pending makes the list the nodes of the sheet. They are appended once the delegate's own node is.
func (u *unfolder) pending() {
	for k := range u.list {
		u.sheet.nodes = append(u.sheet.nodes, u.base+k)
	}
	for i := range u.sheet.links {
		u.sheet.links[i].from += u.base
		u.sheet.links[i].to += u.base
	}
	u.queue = append(u.queue, u.list...)
}

// npuPayload returns the payload of an Ethos-U delegate of the file; nil for others.
func (b *builder) npuPayload(index int) []byte {
	if index < len(b.spec.Delegates) && b.spec.Delegates[index].ID == ethosu.ID {
		return b.spec.Delegates[index].Data
	}
	return nil
}

// unique returns a list without repetitions, in order.
func unique(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}
