package prepare

import (
	"fmt"
	"reflect"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// linked is a method whose operators, backends and external data are found.
type linked struct{ links ir.Links }

// MissingError lists everything that a method needs and that is not available.
type MissingError struct {
	Operators []MissingOperator
	Backends  []string // IDs
	Data      []string // names of external tensors
}

// MissingOperator is an operator without a kernel.
type MissingOperator struct {
	Name         string
	Instructions []int // indices, in the flattened chains, of the instructions that call it
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("missing: %d operators, the backends %.200q, the data %.200q", len(e.Operators), e.Backends, e.Data)
}

// link resolves the operators, backends and external data of a method.
func (l *load) link() (*linked, error) {
	links, err := l.find()
	if err := l.report.Stage(trace.StageFind, 0, err); err != nil {
		return nil, err
	}
	return &linked{links}, nil
}

// find returns one MissingError for everything that is not available.
func (l *load) find() (links ir.Links, err error) {
	var missing MissingError
	if links.Operators, err = l.findOperators(&missing); err != nil {
		return links, err
	}
	seen := make(map[string]bool)
	for i := range l.Method.Delegates {
		id := l.Method.Delegates[i].ID
		if _, ok := l.Backends[id]; !ok && !seen[id] {
			seen[id] = true
			missing.Backends = append(missing.Backends, id)
		}
	}
	if links.Data, err = l.findData(&missing); err != nil {
		return links, err
	}
	if op, sig, ok, err := l.Options.Operators.Lookup("aten::view_copy.out"); ok && err == nil {
		links.View = &ir.Operator{Op: op, Sig: sig}
	}
	links.AsWritten = l.AsWritten
	if len(missing.Operators)+len(missing.Backends)+len(missing.Data) > 0 {
		return links, &missing
	}
	return links, nil
}

func (l *load) findOperators(missing *MissingError) ([]ir.Operator, error) {
	found := make([]ir.Operator, len(l.Method.Operators))
	for i, o := range l.Method.Operators {
		op, sig, ok, err := l.Options.Operators.Lookup(o.FullName())
		if err != nil {
			return nil, err
		}
		if ok {
			found[i] = ir.Operator{Op: op, Sig: sig, Own: l.standsIn(op)}
		}
	}
	calls := make(map[string]int) // name to index in missing.Operators
	step := 0
	for c := range l.Method.Chains {
		for _, in := range l.Method.Chains[c].Instructions {
			if in.Kind == pte.KernelCall && found[in.Index].Op == nil {
				name := l.Method.Operators[in.Index].FullName()
				at, ok := calls[name]
				if !ok {
					at = len(missing.Operators)
					calls[name] = at
					missing.Operators = append(missing.Operators, MissingOperator{Name: name})
				}
				missing.Operators[at].Instructions = append(missing.Operators[at].Instructions, step)
			}
			step++
		}
	}
	return found, nil
}

// standsIn reports whether op is a caller's operator with the name of one of this module.
func (l *load) standsIn(op *kernels.Op) bool {
	known, _, ok, _ := l.Known.Lookup(op.Name())
	return ok && reflect.ValueOf(known.Func).Pointer() != reflect.ValueOf(op.Func).Pointer()
}

// findData returns, by value index, the bytes of constants and external tensors.
func (l *load) findData(missing *MissingError) (map[int][]byte, error) {
	found := make(map[int][]byte)
	for v := range l.Method.Values {
		t := l.Method.Values[v].Tensor
		if l.Method.Values[v].Kind != tensor.KindTensor {
			continue
		}
		switch t.Storage {
		case pte.Constant, pte.PlannedInit:
			found[v] = t.Data
		case pte.External, pte.ExternalPlanned:
			data, ok, err := l.Data.TensorData(t)
			if err != nil {
				return nil, err
			}
			if !ok {
				missing.Data = append(missing.Data, t.Name)
			}
			found[v] = data
		}
	}
	if err := l.settleInitial(found); err != nil {
		return nil, err
	}
	if err := l.findInitial(found); err != nil {
		return nil, err
	}
	return found, l.alignConstants(found)
}

// findInitial finds the initial contents of states that only other methods of the program have.
func (l *load) findInitial(found map[int][]byte) error {
	lacking := make(map[ir.StateKey][]int)
	for v := range l.Method.Values {
		if t := l.Method.Values[v].Tensor; t != nil && t.Storage == pte.Planned {
			if k, ok := ir.KeyOf(t); ok {
				lacking[k] = append(lacking[k], v)
			}
		}
	}
	for i := range l.File.Methods {
		if len(lacking) == 0 {
			return nil
		}
		m := &l.File.Methods[i]
		for v := range m.Values {
			t := m.Values[v].Tensor
			if t == nil || t.Storage != pte.PlannedInit && t.Storage != pte.ExternalPlanned {
				continue
			}
			k, ok := ir.KeyOf(t)
			if !ok || lacking[k] == nil {
				continue
			}
			data, err := l.initialOf(m, v)
			if err != nil {
				return err
			}
			for _, v := range lacking[k] {
				found[v] = data
			}
			delete(lacking, k)
		}
	}
	return nil
}

// initialOf returns the initial contents of a state of any method.
func (l *load) initialOf(m *pte.Method, v int) ([]byte, error) {
	t := m.Values[v].Tensor
	if t.Storage == pte.ExternalPlanned {
		data, _, err := l.Data.TensorData(t)
		return data, err
	}
	for _, f := range m.Initial {
		if f.Value == v && l.AsWritten {
			return f.Written, nil
		} else if f.Value == v && f.Err != nil {
			return nil, f.Err
		}
	}
	return t.Data, nil
}

// settleInitial refuses state whose initial contents are not known. In a program that runs unchanged
// they are those of the file's numbers.
func (l *load) settleInitial(found map[int][]byte) error {
	for _, f := range l.Method.Initial {
		switch {
		case !l.AsWritten && f.Err != nil:
			return f.Err
		case !l.AsWritten:
		case f.Written == nil:
			return fmt.Errorf("value %d: initial state %d, which the mutable data segment does not have: %w", f.Value, f.Index, pte.ErrFormat)
		default:
			found[f.Value] = f.Written
		}
	}
	return nil
}

// alignConstants copies the constants that are not aligned to their element size, each byte range
// once. Overlapping constants could make the copies arbitrarily large, so their total is limited to
// the size of the files.
func (l *load) alignConstants(found map[int][]byte) error {
	type run struct {
		start *byte
		bytes int
	}
	copies := make(map[run][]byte)
	left := l.FileBytes
	for v, b := range found {
		t := l.Method.Values[v].Tensor
		if len(b) == 0 || t.Storage != pte.Constant && t.Storage != pte.External || tensor.Aligned(b, t.DType.Size()) {
			continue
		}
		r := run{&b[0], len(b)}
		if copies[r] == nil {
			if left -= int64(len(b)); left < 0 {
				return fmt.Errorf("constant of value %d: unaligned constants overlap: %w", v, pte.ErrFormat)
			}
			copies[r] = tensor.AlignedBytes(len(b))
			copy(copies[r], b)
		}
		found[v] = copies[r]
	}
	return nil
}
