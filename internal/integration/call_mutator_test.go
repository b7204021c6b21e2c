package integration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// callMutator changes what the operators of a program are called with. Most of its programs load,
// unlike those of ptetest.Mutate.
type callMutator struct {
	*rand.Rand
	program *pte.Program
	log     []string
}

// change changes one value, argument or operator of a method.
func (m *callMutator) change() {
	if len(m.program.Methods) == 0 {
		return
	}
	method := &m.program.Methods[m.IntN(len(m.program.Methods))]
	if len(method.Values) == 0 {
		return
	}
	switch m.IntN(4) {
	case 0:
		m.argument(method)
	case 1:
		m.operator(method)
	default:
		v := m.IntN(len(method.Values))
		m.log = append(m.log, fmt.Sprintf("%s: value %d, %s", method.Name, v, m.value(method, v)))
	}
}

// someCall returns a random call of an operator, nil if there is none.
func (m *callMutator) someCall(method *pte.Method) *pte.Instruction {
	var calls []*pte.Instruction
	for c := range method.Chains {
		for i := range method.Chains[c].Instructions {
			if s := &method.Chains[c].Instructions[i]; s.Kind == pte.KernelCall && len(s.Args) > 0 && s.Index < len(method.Operators) {
				calls = append(calls, s)
			}
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return calls[m.IntN(len(calls))]
}

// argument passes another value of the same kind.
func (m *callMutator) argument(method *pte.Method) {
	s := m.someCall(method)
	if s == nil {
		return
	}
	at, v := m.IntN(len(s.Args)), m.IntN(len(method.Values))
	for range 8 {
		if old := s.Args[at]; old >= 0 && old < len(method.Values) && method.Values[old].Kind == method.Values[v].Kind {
			break
		}
		v = m.IntN(len(method.Values))
	}
	m.log = append(m.log, fmt.Sprintf("%s: argument %d of %s is value %d", method.Name, at, method.Operators[s.Index].FullName(), v))
	s.Args = slices.Clone(s.Args)
	s.Args[at] = v
}

// operatorNames are those of the built-in operators.
var operatorNames = etrun.DefaultOperators().Names()

// operator calls another operator with the same arguments, if it accepts their kinds.
func (m *callMutator) operator(method *pte.Method) {
	s := m.someCall(method)
	for range 64 {
		if s == nil {
			return
		}
		name := operatorNames[m.IntN(len(operatorNames))]
		_, sig, ok, err := etrun.DefaultOperators().Lookup(name)
		if !ok || err != nil || !acceptsKinds(sig, method, s.Args) {
			continue
		}
		m.log = append(m.log, fmt.Sprintf("%s: %s is %s", method.Name, method.Operators[s.Index].FullName(), name))
		s.Index = len(method.Operators)
		method.Operators = append(method.Operators, operatorOf(name))
		return
	}
}

// acceptsKinds reports whether a signature accepts the kinds of the arguments.
func acceptsKinds(sig *kernels.Signature, method *pte.Method, args []int) bool {
	if sig.Slots() != len(args) {
		return false
	}
	for i, a := range sig.Args {
		if v := args[i]; v >= 0 && v < len(method.Values) && !a.Kinds.Has(method.Values[v].Kind) {
			return false
		}
	}
	return true
}

func operatorOf(name string) pte.Operator {
	base, overload, _ := strings.Cut(name, ".")
	return pte.Operator{Name: base, Overload: overload}
}

// value changes a value, and describes the change.
func (m *callMutator) value(method *pte.Method, at int) string {
	v := &method.Values[at]
	switch v.Kind {
	case tensor.KindInt:
		old := v.Int
		v.Int = pick(m, -2, -1, 0, 1, 2, 3, 4, 7, old+1, old-1, 2*old, -old, math.MaxInt64, math.MinInt64, 1<<31, 1<<40)
		return fmt.Sprintf("int %d to %d", old, v.Int)
	case tensor.KindBool:
		v.Bool = !v.Bool
		return fmt.Sprintf("bool to %v", v.Bool)
	case tensor.KindDouble:
		old := v.Double
		v.Double = pick(m, 0, 1, -1, 0.5, -old, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 1e-300)
		return fmt.Sprintf("double %v to %v", old, v.Double)
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		return m.items(method, v)
	case tensor.KindTensor:
		return m.tensor(method, v)
	}
	v.Kind = tensor.None
	return "to none"
}

func pick[T any](m *callMutator, of ...T) T { return of[m.IntN(len(of))] }

// items changes a list.
func (m *callMutator) items(method *pte.Method, v *pte.Value) string {
	old := v.Items
	v.Items = slices.Clone(old)
	switch n := len(old); {
	case n == 0 || m.IntN(4) == 0:
		v.Items = append(v.Items, m.IntN(len(method.Values)))
	case m.IntN(3) == 0:
		v.Items = v.Items[:m.IntN(n)]
	case m.IntN(2) == 0:
		v.Items[m.IntN(n)] = v.Items[m.IntN(n)]
	default:
		v.Items[m.IntN(n)] = m.IntN(len(method.Values))
	}
	return fmt.Sprintf("list %v to %v", old, v.Items)
}

// tensor changes the declaration of a tensor.
func (m *callMutator) tensor(method *pte.Method, v *pte.Value) string {
	t := *v.Tensor
	t.Sizes, t.DimOrder = slices.Clone(t.Sizes), slices.Clone(t.DimOrder)
	rank := len(t.Sizes)
	switch m.IntN(6) {
	case 0:
		t.Dynamism = pick(m, tensor.Static, tensor.DynamicBound, tensor.DynamicUnbound)
	case 1:
		t.DType = pick(m, tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
			tensor.Float16, tensor.Float32, tensor.Float64, tensor.Bool, tensor.BFloat16)
	case 2:
		if rank > 1 {
			i, j := m.IntN(rank), m.IntN(rank)
			t.Sizes[i], t.Sizes[j] = t.Sizes[j], t.Sizes[i]
			if order := t.DimOrder; len(order) == rank && m.IntN(2) == 0 {
				order[i], order[j] = order[j], order[i]
			}
		}
	case 3:
		t.Sizes = append(t.Sizes, 1)
		t.DimOrder = tensor.ContiguousOrder(rank + 1)
	default:
		if rank > 0 {
			i := m.IntN(rank)
			t.Sizes[i] = pick(m, 0, 1, 2, 3, t.Sizes[i]+1, max(t.Sizes[i]-1, 0), min(2*t.Sizes[i], 1<<12), t.Sizes[i]/2)
		}
	}
	change := fmt.Sprintf("%v %v %v %v to %v %v %v %v", v.Tensor.DType, v.Tensor.Sizes, v.Tensor.DimOrder, v.Tensor.Dynamism,
		t.DType, t.Sizes, t.DimOrder, t.Dynamism)
	m.fit(method, &t)
	v.Tensor = &t
	return change
}

// fit sets a tensor's memory for its sizes: the bytes of a constant, or often the end of its arena.
func (m *callMutator) fit(method *pte.Method, t *pte.Tensor) {
	n := t.NBytes()
	if n < 0 || n > 1<<20 {
		return
	}
	switch t.Storage {
	case pte.Constant, pte.PlannedInit:
		data := make([]byte, n)
		for i := range data {
			if data[i] = byte(i); len(t.Data) > 0 {
				data[i] = t.Data[i%len(t.Data)]
			}
		}
		t.Data = data
	}
	if t.Arena < len(method.Arenas) && t.Storage == pte.Planned && m.IntN(2) == 0 {
		a := &method.Arenas[t.Arena]
		t.Offset = (int64(a.Size) + 63) / 64 * 64
		a.Size = t.Offset + n
	}
}
