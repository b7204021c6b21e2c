package ir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Exporters write the new value of a state back by aten::copy_, after all other instructions. They
// omit the copy if the new value is itself a buffer, and they find its destination by name: an
// argument of that name becomes the destination instead.

func (r Redirected) String() string {
	return fmt.Sprintf("chain %d, instruction %d (%s): writes value %d, a state that no instruction wrote, not input %d, which has its name",
		r.Chain, r.Index, copyName, r.To, r.Input)
}

const copyName = "aten::copy_"

// IsCopy reports whether a step copies a tensor onto another one.
func (s *Step) IsCopy() bool { return s.Kind == KernelCall && s.Op.Name() == copyName }

// fills reports whether a step that changes a tensor in place reads none of its elements: together with the other
// rounds of its loop, et_copy_index writes all.
func (s *Step) fills() bool {
	return s.IsCopy() || s.Op.Name() == "executorch_prim::et_copy_index.tensor"
}

// readsSizes lists the operators that read the sizes of their operand, and not its bytes.
var readsSizes = map[string]bool{"aten::sym_size.int": true, "aten::sym_numel": true, "aten::full_like.out": true}

// ReadsSizes reports whether the step computes a number from the sizes of its operand alone, or from numbers.
func (s *Step) ReadsSizes() bool {
	return s.Kind == KernelCall && s.Sig.Result != nil && !s.Sig.Result.Alias && len(s.Writes)+len(s.Updates) == 0 &&
		(len(s.Reads) == 0 || readsSizes[s.Op.Name()])
}

// redirectCopies finds copies onto arguments that the exporter confused with states, and makes them
// onto the states if there is only one for each. join has the values that share bytes.
func (b *builder) redirectCopies(join *forest) error {
	if !slices.ContainsFunc(b.Steps, func(s Step) bool { return s.IsCopy() }) {
		return nil
	}
	inputs := make(map[int]int) // root to index
	for i, v := range b.Inputs {
		if b.Values[v].Kind == tensor.KindTensor {
			inputs[join.find(v)] = i
		}
	}
	outputs := make(map[int]bool)
	for _, v := range b.tensors(nil, b.Outputs...) {
		outputs[join.find(v)] = true
	}
	copies := make(map[kindOf][]Misdirected)
	var kinds []kindOf
	for i := range b.Steps {
		s := &b.Steps[i]
		if !s.IsCopy() || len(s.Reads) == 0 || len(s.Updates) == 0 {
			continue
		}
		to, from := join.find(s.Updates[0]), join.find(s.Reads[0])
		in, ok := inputs[to]
		if !ok || to != from && outputs[to] {
			continue
		}
		k := kindOfTensor(b.Values[s.Reads[0]].Tensor)
		if copies[k] == nil {
			kinds = append(kinds, k)
		}
		copies[k] = append(copies[k], Misdirected{Origin: s.Origin, Input: in, Idle: to == from, step: i})
	}
	if len(kinds) == 0 {
		return nil
	}
	states := b.unwrittenKinds(join)
	for _, k := range kinds {
		if len(copies[k]) == 1 && len(states[k]) == 1 && !b.links.AsWritten {
			if err := b.redirect(&copies[k][0], states[k][0]); err != nil {
				return err
			}
			continue
		}
		for _, a := range copies[k] {
			a.States = states[k]
			b.Misdirected = append(b.Misdirected, a)
		}
	}
	return nil
}

// redirect makes a copy write a state.
func (b *builder) redirect(a *Misdirected, state int) error {
	s := &b.Steps[a.step]
	was, last := s.Args[0], len(s.Args)-1
	s.Args = slices.Clone(s.Args)
	s.Args[0] = state
	if s.Args[last] == was { // the slot of the result
		s.Args[last] = state
	}
	b.Redirected = append(b.Redirected, Redirected{a.Origin, a.Input, was, state})
	if err := b.setEffects(s); err != nil {
		return b.stepError(s, err)
	}
	return nil
}

// kindOf is what a state and its new value have in common.
type kindOf struct{ dtype, sizes, order string }

func kindOfTensor(t *Tensor) kindOf {
	order := t.DimOrder
	if order == nil {
		order = tensor.ContiguousOrder(len(t.Sizes))
	}
	return kindOf{t.DType.String(), fmt.Sprint(t.Sizes), fmt.Sprint(order)}
}

// unwrittenKinds lists the tensors that may be states and that no step writes, by type and sizes.
// Of values that share bytes it lists the first.
func (b *builder) unwrittenKinds(join *forest) map[kindOf][]int {
	fixed := make([]bool, len(b.Values))
	for i := range b.Steps {
		b.Steps[i].changes(func(v int) { fixed[join.find(v)] = true })
	}
	for _, v := range b.Inputs {
		fixed[join.find(v)] = true
	}
	for v := range b.Values {
		if b.Values[v].Kind == tensor.KindTensor && !b.mayBeState(v) {
			fixed[join.find(v)] = true
		}
	}
	list := make(map[kindOf][]int)
	for v := range b.Values {
		if b.Values[v].Kind == tensor.KindTensor && join.find(v) == v && !fixed[v] && b.Values[v].Tensor.NBytes() > 0 {
			k := kindOfTensor(b.Values[v].Tensor)
			list[k] = append(list[k], v)
		}
	}
	return list
}

// mayBeState reports whether a tensor's bytes are in memory that only steps write. Those of external
// state may be changed by others, such as an optimizer.
func (b *builder) mayBeState(v int) bool {
	switch b.src.Values[v].Tensor.Storage {
	case pte.Constant, pte.External, pte.ExternalPlanned:
		return false
	}
	return true
}

// changes calls f with the values whose bytes a step writes. A view writes none, and neither does a
// copy of a value onto itself.
func (s *Step) changes(f func(v int)) {
	if s.IsView() || s.IsCopy() && len(s.Args) > 1 && s.Args[0] == s.Args[1] {
		return
	}
	for _, list := range [...][]int{s.Writes, s.Updates} {
		for _, v := range list {
			f(v)
		}
	}
}

// findUnwritten lists the storages that are read and that nothing writes.
func (b *builder) findUnwritten() {
	fixed := make([]bool, len(b.Storages))
	for i := range b.Steps {
		b.Steps[i].changes(func(v int) { fixed[b.Values[v].Storage] = true })
	}
	for _, v := range b.tensors(nil, b.Inputs...) {
		fixed[b.Values[v].Storage] = true
	}
	for i := range b.Storages {
		s := &b.Storages[i]
		fixed[i] = fixed[i] || s.Bytes == 0 || slices.ContainsFunc(s.Values, func(v int) bool { return !b.mayBeState(v) })
	}
	found := func(reader int, values []int) {
		for _, v := range values {
			if at := b.Values[v].Storage; !fixed[at] {
				fixed[at] = true // once
				b.Unwritten = append(b.Unwritten, Unwritten{v, reader, b.Storages[at].Data != nil, b.Storages[at].Output})
			}
		}
	}
	var read []int
	for i := range b.Steps {
		read = b.contentsRead(&b.Steps[i], read[:0])
		found(i, read)
	}
	found(len(b.Steps), b.tensors(nil, b.Outputs...))
}

// contentsRead appends the tensors whose elements a step reads. A view reads none, and neither does
// an operator of its scratch memory, which only a device uses.
func (b *builder) contentsRead(s *Step, to []int) []int {
	switch {
	case s.Kind != KernelCall:
		return append(to, s.Reads...)
	case s.IsView() || s.IsCopy() && s.Args[0] == s.Args[1]:
		return to
	}
	for i := range s.Sig.Args {
		a := &s.Sig.Args[i]
		if a.Out || isScratch(a) || i == 0 && readsSizes[s.Op.Name()] {
			continue
		}
		to = b.tensors(to, s.Args[i])
	}
	return to
}

// isScratch reports whether an argument is memory that only a device uses.
func isScratch(a *kernels.Arg) bool { return strings.HasSuffix(a.Name, "scratch") }

// isScratch reports whether a step has a value only as scratch memory.
func (s *Step) isScratch(v int) (is bool) {
	if s.Kind != KernelCall {
		return false
	}
	for i := range s.Sig.Args {
		if s.Args[i] == v {
			if is = isScratch(&s.Sig.Args[i]); !is {
				return false
			}
		}
	}
	return is
}
