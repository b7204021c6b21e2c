package etrun

import (
	"fmt"
	"reflect"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// link resolves the operators, backends and external data of a method. One MissingError lists
// everything that is not available.
func (p *preparation) link() (links ir.Links, err error) {
	var missing MissingError
	if links.Operators, err = p.findOperators(&missing); err != nil {
		return links, err
	}
	seen := make(map[string]bool)
	for i := range p.spec.Delegates {
		id := p.spec.Delegates[i].ID
		if _, ok := p.config.backends[id]; !ok && !seen[id] {
			seen[id] = true
			missing.Backends = append(missing.Backends, id)
		}
	}
	if links.Data, err = p.findData(&missing); err != nil {
		return links, err
	}
	if op, sig, ok, err := p.config.operators.Lookup("aten::view_copy.out"); ok && err == nil {
		links.View = &ir.Operator{Op: op, Sig: sig}
	}
	links.AsWritten = p.config.asWritten
	if len(missing.Operators)+len(missing.Backends)+len(missing.Data) > 0 {
		return links, &missing
	}
	return links, nil
}

func (p *preparation) findOperators(missing *MissingError) ([]ir.Operator, error) {
	found := make([]ir.Operator, len(p.spec.Operators))
	for i, o := range p.spec.Operators {
		op, sig, ok, err := p.config.operators.Lookup(o.FullName())
		if err != nil {
			return nil, err
		}
		if ok {
			found[i] = ir.Operator{Op: op, Sig: sig, Own: standsIn(op)}
		}
	}
	calls := make(map[string]int) // name to index in missing.Operators
	step := 0
	for c := range p.spec.Chains {
		for _, in := range p.spec.Chains[c].Instructions {
			if in.Kind == pte.KernelCall && found[in.Index].Op == nil {
				name := p.spec.Operators[in.Index].FullName()
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
func standsIn(op *kernels.Op) bool {
	known, _, ok, _ := DefaultOperators().Lookup(op.Name())
	return ok && reflect.ValueOf(known.Func).Pointer() != reflect.ValueOf(op.Func).Pointer()
}

// findData returns, by value index, the bytes of constants and external tensors.
func (p *preparation) findData(missing *MissingError) (map[int][]byte, error) {
	found := make(map[int][]byte)
	for v := range p.spec.Values {
		t := p.spec.Values[v].Tensor
		if p.spec.Values[v].Kind != tensor.KindTensor {
			continue
		}
		switch t.Storage {
		case pte.Constant, pte.PlannedInit:
			found[v] = t.Data
		case pte.External, pte.ExternalPlanned:
			data, ok, err := p.data.tensorData(t)
			if err != nil {
				return nil, err
			}
			if !ok {
				missing.Data = append(missing.Data, t.Name)
			}
			found[v] = data
		}
	}
	if err := p.settleInitial(found); err != nil {
		return nil, err
	}
	return found, p.alignConstants(found)
}

// settleInitial refuses state whose initial contents are not known. In a program that runs unchanged
// they are those of the file's numbers.
func (p *preparation) settleInitial(found map[int][]byte) error {
	for _, f := range p.spec.Initial {
		switch {
		case !p.config.asWritten && f.Err != nil:
			return f.Err
		case !p.config.asWritten:
		case f.Written == nil:
			return fmt.Errorf("value %d: initial state %d, which the mutable data segment does not have: %w", f.Value, f.Index, ErrFormat)
		default:
			found[f.Value] = f.Written
		}
	}
	return nil
}

// alignConstants copies the constants that are not aligned to their element size, each byte range
// once. Overlapping constants could make the copies arbitrarily large, so their total is limited to
// the size of the files.
func (p *preparation) alignConstants(found map[int][]byte) error {
	type run struct {
		start *byte
		bytes int
	}
	copies := make(map[run][]byte)
	left := p.fileBytes
	for v, b := range found {
		t := p.spec.Values[v].Tensor
		if len(b) == 0 || t.Storage != pte.Constant && t.Storage != pte.External || tensor.Aligned(b, t.DType.Size()) {
			continue
		}
		r := run{&b[0], len(b)}
		if copies[r] == nil {
			if left -= int64(len(b)); left < 0 {
				return fmt.Errorf("constant of value %d: unaligned constants overlap: %w", v, ErrFormat)
			}
			copies[r] = tensor.AlignedBytes(len(b))
			copy(copies[r], b)
		}
		found[v] = copies[r]
	}
	return nil
}
