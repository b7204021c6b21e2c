package graph

import (
	"fmt"

	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// inFile describes the instructions of a method that does not load here. The effects of its operators are not known:
// the last argument is the result, and of a delegate those that nothing has written before.
func (b *builder) inFile() {
	meta, err := b.prog.Meta(b.spec.Name)
	if err != nil {
		return
	}
	written := make(map[int]int)
	for k, v := range b.spec.Inputs {
		written[v] = b.add(Node{ID: fmt.Sprintf("input%d", k), Kind: kindInput, Name: fmt.Sprintf("input %d", k), Result: b.fileType(v)}, 0)
	}
	for c := range b.spec.Chains {
		for i := range b.spec.Chains[c].Instructions {
			if *b.left <= 0 {
				b.out.Left++
				continue
			}
			from := &b.spec.Chains[c].Instructions[i]
			n := Node{ID: fmt.Sprintf("%d:%d", c, i), Kind: kindOperator, Name: from.Kind.String()}
			if c == 0 {
				n.ID = fmt.Sprint(i)
			}
			n.At = n.ID
			switch from.Kind {
			case pte.KernelCall:
				if n.Full = valuetext.Cut(meta.Operators[from.Index].Name); !meta.Operators[from.Index].Available {
					n.Fault = "operator missing in this build"
				}
				n.Name = valuetext.Cut(chart.Short(n.Full))
			case pte.DelegateCall:
				n.Kind, n.Name = kindDelegate, valuetext.Cut(meta.Delegates[from.Index].ID)
				if !meta.Delegates[from.Index].Available {
					n.Fault = "backend missing in this build"
				}
			}
			b.fileStep(n, from, written)
		}
	}
	for k, v := range b.spec.Outputs {
		to := b.add(Node{ID: fmt.Sprintf("output%d", k), Kind: kindOutput, Name: fmt.Sprintf("output %d", k), Result: b.fileType(v)}, 0)
		if from, ok := written[v]; ok {
			b.link(from, to, "")
		}
	}
}

// fileStep adds an instruction of the file with its edges.
func (b *builder) fileStep(n Node, from *pte.Instruction, written map[int]int) {
	n.Class = classOf(n.Name)
	var reads, writes []int
	for k, v := range from.Args {
		value := &b.spec.Values[v]
		_, known := written[v]
		constant := value.Kind == tensor.KindTensor && value.Tensor.Data != nil
		switch {
		case constant:
			t := value.Tensor
			if c := b.p.constant(b.seen, t.Name, t.DType, t.Sizes, t.Data); c >= 0 {
				n.Constants = append(n.Constants, Use{"", c})
			}
			continue
		case n.Kind == kindDelegate && !known, n.Kind != kindDelegate && k >= len(from.Args)-2 && value.Kind == tensor.KindTensor && !known:
			writes, n.Result = append(writes, v), b.fileType(v)
		default:
			reads = append(reads, v)
		}
		if len(n.Args) < maxArgs {
			n.Args = append(n.Args, Fact{"", valuetext.InFile(b.spec, v)})
		}
	}
	n.sign = n.Full + n.Name + n.Result + fmt.Sprint(n.Args)
	at := b.add(n, 0)
	for _, v := range reads {
		if by, ok := written[v]; ok {
			b.link(by, at, "")
		}
	}
	for _, v := range writes {
		written[v] = at
	}
}

func (b *builder) fileType(v int) string {
	value := &b.spec.Values[v]
	if value.Kind == tensor.KindTensor {
		return valuetext.Type(value.Tensor.DType, value.Tensor.Sizes)
	}
	return value.Kind.String()
}
