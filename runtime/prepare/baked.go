package prepare

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Exporters treat a state that is a weight as a constant, and write its initial elements into a payload. Its updates, which
// stay in the program, then have no effect.

// checkBaked returns texts about states that are probably constants of payloads: only their own updates read them, and a
// payload has a constant of the same elements.
func (l *load) checkBaked(m *ir.Method) (found []string) {
	if !slices.ContainsFunc(m.Storages, func(s ir.Storage) bool { return s.Kind == ir.State }) {
		return nil
	}
	payloads, constants := make([]lowering.Examined, len(l.files.opened)), make([][]lowering.Constant, len(l.files.opened))
	for d, o := range l.files.opened {
		if o == nil {
			continue
		}
		if x, ok := o.Opened.(lowering.Examined); ok {
			payloads[d], constants[d] = x, x.Constants()
		}
	}
	budget, search := maxBakedWork, l.bakedSearch(m, payloads)
	for i := range m.Storages {
		s := &m.Storages[i]
		if s.Kind != ir.State || s.Bytes == 0 || len(s.Values) == 0 {
			continue
		}
		for d, list := range constants {
			n, _ := tensor.Product(m.Values[s.Values[0]].Tensor.Sizes)
			budget -= len(list)
			if !slices.ContainsFunc(list, func(c lowering.Constant) bool {
				if c.Elements == n {
					budget -= n
				}
				return c.Elements == n && budget > 0 && sameElements(m, s, &c)
			}) {
				continue
			}
			if budget -= search; budget > 0 && onlyOwnUpdate(m, i, payloads) && !l.readElsewhere(s) {
				found = append(found, fmt.Sprintf("%s is read by its own update alone, and delegate %d (%.100q) has a constant of the same "+
					"elements: the exporter wrote the state into the payload, where its updates have no effect; export again with a copy of the "+
					"state (clone it, or add 0) before its use", l.stateName(s.Values[0]), d, l.Method.Delegates[d].ID))
			}
			break
		}
	}
	return found
}

// bakedSearch returns the work of following one state through a method, and of looking for it in the others.
func (l *load) bakedSearch(m *ir.Method, payloads []lowering.Examined) (work int) {
	for i := range m.Steps {
		work++
		if s := &m.Steps[i]; s.Kind == ir.DelegateCall && s.Delegate < len(payloads) && payloads[s.Delegate] != nil {
			work += payloads[s.Delegate].Size()
		}
	}
	if m.HasJumps() {
		work *= maxBakedRounds
	}
	for i := range l.File.Methods {
		for c := range l.File.Methods[i].Chains {
			work += len(l.File.Methods[i].Chains[c].Instructions)
		}
	}
	return work
}

const (
	maxBakedWork   = 1 << 26 // steps, nodes, constants and elements that are searched
	maxBakedRounds = 8       // of a loop, until what is computed from a state is known
)

// sameElements reports whether a constant has the initial elements of a state, in any order: payloads have filters in
// another one. Zeros are zeros in each type.
func sameElements(m *ir.Method, s *ir.Storage, c *lowering.Constant) bool {
	size := m.Values[s.Values[0]].Tensor.DType.Size()
	if isZero(s.Data) {
		return isZero(c.Data)
	}
	return len(c.Data) == len(s.Data) && elementSum(c.Data, size) == elementSum(s.Data, size)
}

func isZero(data []byte) bool { return !slices.ContainsFunc(data, func(b byte) bool { return b != 0 }) }

// elementSum returns a number that depends on the elements, and not on their order.
func elementSum(data []byte, size int) (sum uint64) {
	var word [8]byte
	for ; len(data) >= size; data = data[size:] {
		clear(word[:])
		copy(word[:], data[:size])
		x := binary.LittleEndian.Uint64(word[:]) + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		sum += x ^ x>>31
	}
	return sum
}

// onlyOwnUpdate reports whether what is computed from a state reaches nothing that outlasts the call but the state.
func onlyOwnUpdate(m *ir.Method, state int, payloads []lowering.Examined) bool {
	reached := make([]bool, len(m.Storages))
	reached[state] = true
	isReached := func(v int) bool { return reached[m.Values[v].Storage] }
	for round, changed := 0, true; changed; round++ {
		if changed = false; round == maxBakedRounds {
			return false
		}
		for i := range m.Steps {
			s := &m.Steps[i]
			if !slices.ContainsFunc(s.Reads, isReached) && !slices.ContainsFunc(s.Updates, isReached) {
				continue
			}
			if s.IsJump() || s.Kind == ir.KernelCall && s.Sig.Result != nil && !s.Sig.Result.Alias && len(s.Writes)+len(s.Updates) == 0 {
				return false // the state decides the path, or becomes a number
			}
			for _, v := range reachedBy(s, payloads, isReached) {
				if at := m.Values[v].Storage; !reached[at] {
					reached[at], changed = true, true
				}
			}
		}
		if !m.HasJumps() {
			break
		}
	}
	for i := range m.Storages {
		if s := &m.Storages[i]; reached[i] && (s.Output || s.Kind == ir.Input || s.Kind == ir.State && i != state) {
			return false
		}
	}
	return true
}

// reachedBy returns what a step writes that depends on values that are reached.
func reachedBy(s *ir.Step, payloads []lowering.Examined, isReached func(v int) bool) (list []int) {
	if s.Kind != ir.DelegateCall || s.Delegate >= len(payloads) || payloads[s.Delegate] == nil || len(s.Reads) != s.Inputs {
		return slices.Concat(s.Writes, s.Updates)
	}
	inputs := make([]bool, s.Inputs)
	for i, v := range s.Reads {
		inputs[i] = isReached(v)
	}
	for i, is := range payloads[s.Delegate].Reaches(inputs) {
		if is && i < len(s.Writes) {
			list = append(list, s.Writes[i])
		}
	}
	return list
}

// readElsewhere reports whether another method uses a state.
func (l *load) readElsewhere(s *ir.Storage) bool {
	keys := make(map[ir.StateKey]bool)
	for _, v := range s.Values {
		if v < len(l.Method.Values) {
			if k, ok := ir.KeyOf(l.Method.Values[v].Tensor); ok {
				keys[k] = true
			}
		}
	}
	for i := range l.File.Methods {
		other := &l.File.Methods[i]
		if len(keys) == 0 || other == l.Method {
			continue
		}
		used := func(v int) bool {
			if v < 0 || other.Values[v].Tensor == nil {
				return false
			}
			k, ok := ir.KeyOf(other.Values[v].Tensor)
			return ok && keys[k]
		}
		for c := range other.Chains {
			for k := range other.Chains[c].Instructions {
				if slices.ContainsFunc(other.Chains[c].Instructions[k].Args, used) {
					return true
				}
			}
		}
		if slices.ContainsFunc(other.Outputs, used) {
			return true
		}
	}
	return false
}
