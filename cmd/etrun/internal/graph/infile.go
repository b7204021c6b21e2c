package graph

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// inFile describes the instructions of a method whose dataflow is not known: each follows the last one before it that names
// one of its values.
func (b *builder) inFile() {
	last := make(map[int]int) // by value
	add := func(n Node, values ...int) {
		to := b.add(n, 0)
		for _, v := range unique(slices.Clone(values)) {
			if t := b.spec.Values[v].Tensor; t == nil || t.Data != nil {
				continue
			}
			if from, ok := last[v]; ok {
				b.link(from, to, "")
			}
			last[v] = to
		}
	}
	for k, v := range b.spec.Inputs {
		add(Node{ID: fmt.Sprintf("input%d", k), Kind: kindInput, Name: fmt.Sprintf("input %d", k), Result: b.fileType(v)}, v)
	}
	for c := range b.spec.Chains {
		for i := range b.spec.Chains[c].Instructions {
			if *b.left <= 0 {
				b.out.Left++
				continue
			}
			in := &b.spec.Chains[c].Instructions[i]
			n := Node{Kind: kindOperator, Name: in.Kind.String(), At: ir.Origin{Chain: c, Index: i}.String()}
			switch n.ID = n.At; in.Kind {
			case pte.KernelCall:
				n.Full = valuetext.Cut(b.spec.Operators[in.Index].FullName())
				n.Name = valuetext.Cut(chart.Short(n.Full))
			case pte.DelegateCall:
				n.Kind, n.Name = kindDelegate, valuetext.Cut(b.spec.Delegates[in.Index].ID)
			}
			n.Class = classOf(n.Name)
			for _, v := range in.Args[:min(len(in.Args), maxArgs)] {
				n.Args = append(n.Args, Fact{"", valuetext.InFile(b.spec, v)})
			}
			n.sign = n.Full + n.Name + fmt.Sprint(n.Args)
			add(n, in.Args...)
		}
	}
	for k, v := range b.spec.Outputs {
		add(Node{ID: fmt.Sprintf("output%d", k), Kind: kindOutput, Name: fmt.Sprintf("output %d", k), Result: b.fileType(v)}, v)
	}
}

func (b *builder) fileType(v int) string {
	value := &b.spec.Values[v]
	if value.Kind == tensor.KindTensor {
		return valuetext.Type(value.Tensor.DType, value.Tensor.Sizes)
	}
	return value.Kind.String()
}
