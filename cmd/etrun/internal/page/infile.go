package page

import (
	"fmt"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// asInFile shows the instructions of a method that does not load here, as they are in the file.
func (d *describer) asInFile(r *Method) {
	meta, err := d.program.Meta(d.spec.Name)
	if err != nil {
		return
	}
	for c := range d.spec.Chains {
		list := d.spec.Chains[c].Instructions
		for i := range list {
			if len(r.Instructions) == maxInstructions {
				r.Left += len(list) - i
				break
			}
			in := d.fileInstruction(meta, c, i)
			in.Step = len(r.Instructions)
			r.Instructions = append(r.Instructions, in)
		}
	}
}

// fileInstruction describes instruction i of chain c. Its arguments have no names, as these
// are in the operators' schemas.
func (d *describer) fileInstruction(meta *etrun.MethodMeta, c, i int) Instruction {
	from := &d.spec.Chains[c].Instructions[i]
	in := d.instruction(c, i, "operator", from.Kind.String())
	switch from.Kind {
	case pte.KernelCall:
		o := meta.Operators[from.Index]
		if in = d.instruction(c, i, "operator", o.Name); !o.Available {
			in.Fault = "operator missing in this build"
		}
	case pte.DelegateCall:
		o := meta.Delegates[from.Index]
		if in = d.instruction(c, i, "delegate", fmt.Sprintf("delegate %d, %s", from.Index, o.ID)); !o.Available {
			in.Fault = "backend missing in this build"
		}
	}
	for _, v := range from.Args {
		in.Args = append(in.Args, Arg{Text: valuetext.InFile(d.spec, v)})
		if t := d.spec.Values[v].Tensor; d.spec.Values[v].Kind == tensor.KindTensor {
			in.Result = valuetext.Type(t.DType, t.Sizes) // the last one is the result
		}
	}
	return in
}
