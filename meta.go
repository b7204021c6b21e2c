package etrun

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// MethodMeta describes a method as declared in the file.
type MethodMeta struct {
	Name         string
	Inputs       []ValueMeta
	Outputs      []ValueMeta
	Attributes   []ValueMeta    // tensors with a name: parameters and buffers
	Operators    []OperatorMeta // in file order
	Delegates    []DelegateMeta
	Instructions int
	ArenaBytes   []int64 // sizes of the file's planned arenas
	ConstBytes   int64   // bytes of the file's constants, each counted once
}

// ValueMeta describes an input or output.
type ValueMeta struct {
	Kind     tensor.Kind
	Value    int // index in the value table
	DType    tensor.DType
	Sizes    []int // upper bounds if the tensor is dynamic
	DimOrder []uint8
	Dynamism tensor.Dynamism
	Name     string       // fully qualified name, may be empty
	Scalar   tensor.Value // the file's value if Kind is not KindTensor
	Planned  bool         // the file has memory or contents for the tensor
}

// NewTensor returns a zeroed tensor of the declared type and dim order and the largest sizes, nil
// if the value is not a tensor.
func (v *ValueMeta) NewTensor() *tensor.Tensor {
	if v.Kind != tensor.KindTensor {
		return nil
	}
	t := tensor.Make(v.DType, v.Sizes, v.DimOrder, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	return t
}

// OperatorMeta describes an operator that a method calls.
type OperatorMeta struct {
	Name      string
	Calls     int
	Available bool
}

// DelegateMeta describes a delegate of a method.
type DelegateMeta struct {
	ID        string
	Bytes     int
	Calls     int
	Available bool // a backend with this ID was passed to Open
}

// Meta describes a method without loading it. The empty name means "forward".
func (p *Program) Meta(name string) (*MethodMeta, error) {
	i, err := p.methodIndex(name)
	if err != nil {
		return nil, err
	}
	return p.meta(i), nil
}

func (p *Program) meta(index int) *MethodMeta {
	spec := &p.spec.Methods[index]
	m := &MethodMeta{Name: spec.Name}
	for _, v := range spec.Inputs {
		m.Inputs = append(m.Inputs, valueMeta(spec, v))
	}
	for _, v := range spec.Outputs {
		m.Outputs = append(m.Outputs, valueMeta(spec, v))
	}
	for v := range spec.Values {
		if t := spec.Values[v].Tensor; spec.Values[v].Kind == tensor.KindTensor && t.Name != "" {
			m.Attributes = append(m.Attributes, valueMeta(spec, v))
		}
	}
	for _, a := range spec.Arenas {
		m.ArenaBytes = append(m.ArenaBytes, a.Size)
	}
	m.ConstBytes = constBytes(spec)
	p.countCalls(spec, m)
	return m
}

func valueMeta(spec *pte.Method, v int) ValueMeta {
	s := &spec.Values[v]
	m := ValueMeta{Kind: s.Kind, Value: v}
	if t := s.Tensor; s.Kind == tensor.KindTensor {
		m.DType, m.Sizes, m.DimOrder, m.Dynamism, m.Name = t.DType, t.Sizes, t.DimOrder, t.Dynamism, t.Name
		m.Planned = t.Storage != pte.Unplanned && t.Storage != pte.External
		return m
	}
	m.Scalar = s.Scalar()
	return m
}

// constBytes counts the bytes of constants, each byte range once.
func constBytes(spec *pte.Method) (n int64) {
	seen := make(map[*byte]bool)
	for v := range spec.Values {
		if t := spec.Values[v].Tensor; spec.Values[v].Kind == tensor.KindTensor && len(t.Data) > 0 && !seen[&t.Data[0]] {
			seen[&t.Data[0]] = true
			n += int64(len(t.Data))
		}
	}
	return n
}

func (p *Program) countCalls(spec *pte.Method, m *MethodMeta) {
	m.Operators = make([]OperatorMeta, len(spec.Operators))
	for i, o := range spec.Operators {
		_, _, ok, _ := p.config.operators.Lookup(o.FullName())
		m.Operators[i] = OperatorMeta{Name: o.FullName(), Available: ok}
	}
	m.Delegates = make([]DelegateMeta, len(spec.Delegates))
	for i := range spec.Delegates {
		d := &spec.Delegates[i]
		_, ok := p.config.backends[d.ID]
		m.Delegates[i] = DelegateMeta{ID: d.ID, Bytes: len(d.Data), Available: ok}
	}
	for c := range spec.Chains {
		m.Instructions += len(spec.Chains[c].Instructions)
		for _, in := range spec.Chains[c].Instructions {
			switch in.Kind {
			case pte.KernelCall:
				m.Operators[in.Index].Calls++
			case pte.DelegateCall:
				m.Delegates[in.Index].Calls++
			}
		}
	}
}
