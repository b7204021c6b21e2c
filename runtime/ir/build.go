package ir

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Links resolves the names in a file.
type Links struct {
	Operators []Operator // one per operator of the method
	Delegates []Delegate // one per delegate
	// Data holds the bytes of constants and the initial bytes of state, by value, if they are not
	// in the description of the method: in an external file, of another method, or copied elsewhere.
	Data map[int][]byte
	// View is aten::view_copy.out, which lays out elided views. If nil, methods that need it are
	// refused.
	View *Operator
	// AsWritten leaves elided views at the file's places, even if that is wrong.
	AsWritten bool
}

// Operator is a row of the operator tables and its parsed schema.
type Operator struct {
	Op  *kernels.Op
	Sig *kernels.Signature
	// Own means that the caller's operator replaces one of this module: facts attached to that name
	// do not apply.
	Own bool
}

// Delegate describes the calls of a compiled delegate.
type Delegate struct {
	Inputs int // the number of leading arguments that are inputs; the others are outputs
}

// builder builds a method from a description.
type builder struct {
	*Method
	src   *pte.Method
	links Links

	relaid   []bool   // by value: it is copied from the value that it is an elided view of
	followed []Relaid // elided views that share the bytes of values of varying sizes
}

// Build analyzes a method. Its time is linear in the method's size for methods without backward
// jumps. Errors at an instruction are *StepError.
func Build(src *pte.Method, links Links) (*Method, error) {
	b := &builder{Method: &Method{Name: src.Name, Inputs: src.Inputs, Outputs: src.Outputs}, src: src, links: links}
	for _, a := range src.Arenas {
		b.Arenas = append(b.Arenas, a.Size)
	}
	for i := range src.Delegates {
		b.Delegates = append(b.Delegates, fmt.Sprintf("delegate %d, %.100s", i, src.Delegates[i].ID))
	}
	b.addValues()
	if err := b.addSteps(); err != nil {
		return nil, err
	}
	for v, changes := range b.changing() {
		b.Values[v].Changes = changes
	}
	if err := b.addStorages(); err != nil {
		return nil, err
	}
	b.setRows()
	b.setLifetimes()
	if err := b.checkViews(); err != nil {
		return nil, err
	}
	return b.Method, b.check()
}

func (b *builder) addValues() {
	b.Values = make([]Value, len(b.src.Values))
	count := 0
	for v := range b.src.Values {
		if b.src.Values[v].Kind == tensor.KindTensor {
			count++
		}
	}
	tensors := make([]Tensor, 0, count)
	for v := range b.src.Values {
		s := &b.src.Values[v]
		b.Values[v] = Value{Kind: s.Kind, Bool: s.Bool, Int: s.Int, Double: s.Double, Storage: -1}
		if s.Long != nil || s.Items != nil {
			b.Values[v].more = &more{s.Long, s.Items}
		}
		if s.Kind != tensor.KindTensor {
			continue
		}
		t := s.Tensor
		tensors = append(tensors, Tensor{DType: t.DType, Sizes: t.Sizes, DimOrder: t.DimOrder, Dynamism: t.Dynamism, Name: t.Name,
			Const: t.Storage == pte.Constant || t.Storage == pte.External})
		b.Values[v].Tensor = &tensors[len(tensors)-1]
	}
}

// maxEffects bounds the number of values that all steps read and write: a list that many
// instructions use counts each time.
const maxEffects = 1 << 22

func (b *builder) addSteps() error {
	base, effects, n := 0, 0, 0
	for c := range b.src.Chains {
		n += len(b.src.Chains[c].Instructions)
	}
	b.Steps = make([]Step, 0, n)
	for c := range b.src.Chains {
		list := b.src.Chains[c].Instructions
		for i := range list {
			s := b.step(&list[i], base)
			s.Origin = Origin{c, i}
			if effects += b.operands(&s); effects > maxEffects {
				return b.stepError(&s, fmt.Errorf("more than %d operands in the method, items of lists included: %w", maxEffects, pte.ErrLimit))
			}
			if err := b.setEffects(&s); err != nil {
				return b.stepError(&s, err)
			}
			b.Steps = append(b.Steps, s)
		}
		base += len(list)
	}
	return nil
}

// step returns an instruction without its effects; base is the first step of its chain.
func (b *builder) step(in *pte.Instruction, base int) Step {
	switch in.Kind {
	case pte.KernelCall:
		o := &b.links.Operators[in.Index]
		return Step{Kind: KernelCall, Op: o.Op, Sig: o.Sig, Own: o.Own, Args: in.Args}
	case pte.DelegateCall:
		return Step{Kind: DelegateCall, Delegate: in.Index, Inputs: b.links.Delegates[in.Index].Inputs, Args: in.Args}
	case pte.MoveCall:
		return Step{Kind: MoveCall, Args: []int{in.Index, in.Target}}
	case pte.JumpFalseCall:
		return Step{Kind: JumpFalseCall, Args: []int{in.Index}, Target: base + in.Target}
	}
	return Step{Kind: FreeCall, Args: []int{in.Index}}
}

// operands counts the arguments of a step and the items of their lists.
func (b *builder) operands(s *Step) int {
	n := len(s.Args)
	for _, v := range s.Args {
		n += len(b.Values[v].Items())
	}
	return n
}

// setRows gives the outs of operators that write rows contiguous order, whatever the file declares.
func (b *builder) setRows() {
	for i := range b.Steps {
		if s := &b.Steps[i]; s.Kind == KernelCall && s.Op.Rows {
			for _, v := range s.Writes {
				b.Values[v].Tensor.DimOrder = nil
			}
		}
	}
}
