package pte

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Exporters that name mutable buffers look the initial contents of a state up among the constants.
// If a constant with the same bytes was emitted before, data_buffer_idx of the state is the index of
// that constant. Else the state gets a new part of the mutable data segment. The parts are numbered
// 1, 2, 3, … in the order of emission over all methods, and named states share none.

func (f InitialFault) String() string {
	return fmt.Sprintf("state %s (value %d): its initial contents are those of constant %d, whose index it has", quote(f.Name), f.Value,
		f.Index)
}

// initial is the use of a number by a state.
type initial struct {
	method, value int
	t             *Tensor
	table         flatbuf.Table
	index         int
	part          []byte // nil if the segment has no such part
	fits          bool   // the part has as many bytes as the state
	constant      []byte // of that number, emitted earlier and with as many bytes; nil for none
	isNew, isOld  bool   // it can be a part, or a constant
}

func (s *initial) named() bool { return s.t.Name != "" }

// initialState returns the initial bytes of a mutable buffer. Those of named ones may change later.
func (m *methodReader) initialState(t flatbuf.Table, out *Tensor, idx uint32, segment uint64) []byte {
	n := out.NBytes()
	use := initial{method: m.number, value: m.next, t: out, table: t, index: int(idx)}
	if out.Name == "" || segment > 0 {
		if segment >= uint64(len(m.initial)) {
			t.Failf(ErrFormat, bufferIdx, "data_buffer_idx", "initial state in mutable data segment %d, the file has %d", segment, len(m.initial))
			return nil
		}
		use.part = m.initial[segment].cut(t, idx, n)
	} else if len(m.initial) > 0 {
		use.part, use.fits = m.initial[0].part(idx, n)
	}
	if segment == 0 {
		m.states = append(m.states, use)
	}
	return use.part
}

// part is cut without an error. exact reports whether the part ends after n bytes.
func (s subsegments) part(idx uint32, n int64) (data []byte, exact bool) {
	if uint64(idx) >= uint64(s.Len()) {
		return nil, false
	}
	off, end := s.offsets.Uint64(int(idx)), uint64(len(s.data))
	if off > end || uint64(n) > end-off {
		return nil, false
	}
	if int(idx)+1 < s.Len() {
		end = s.offsets.Uint64(int(idx) + 1)
	}
	return s.data[off : off+uint64(n) : off+uint64(n)], end == off+uint64(n)
}

// parts returns the number of parts of the first mutable data segment.
func (p *programReader) parts() int {
	if len(p.initial) == 0 {
		return 0
	}
	return max(p.initial[0].Len()-1, 0)
}

// maxInitial bounds the number of states times that of parts in a file with faults.
const maxInitial = 1 << 22

// settleStates finds states whose contents are those of a constant. A malformed state is an error of
// its method.
func (p *programReader) settleStates(out *Program) {
	if len(p.states) == 0 || p.areNumbered() {
		return
	}
	p.findConstants(out)
	if len(p.states)*(p.parts()+2) > maxInitial || !p.assign() {
		for i := range p.states {
			p.states[i].isNew, p.states[i].isOld = false, false
		}
	}
	for i := range p.states {
		s := &p.states[i]
		m := &out.Methods[s.method]
		if m.Err != nil || !s.named() || s.isNew && (!s.isOld || bytes.Equal(s.part, s.constant)) {
			continue
		}
		if s.constant == nil && s.part == nil && s.index <= p.parts() { // beyond the end of the segment
			*m = Method{Name: m.Name, Err: p.cutFault(s)}
			continue
		}
		f := InitialFault{Value: s.value, Name: s.t.Name, Index: s.index, Written: s.part}
		if s.isNew || !s.isOld {
			f.Err = p.unsettled(s)
		} else {
			s.t.Data = s.constant
		}
		m.Initial = append(m.Initial, f)
	}
}

// cutFault returns the error of a state whose bytes are not within the segment.
func (p *programReader) cutFault(s *initial) error {
	p.initial[0].cut(s.table, uint32(s.index), s.t.NBytes())
	err := formatError(s.table.Forget("values", s.value))
	fault, ok := errors.AsType[*FormatError](err)
	if !ok {
		return p.unsettled(s)
	}
	fault.Path = fmt.Sprintf("execution_plan[%d].%s", s.method, fault.Path)
	return fault
}

func (p *programReader) unsettled(s *initial) error {
	why := "no constant emitted before has its size"
	if s.isNew && s.isOld {
		why = "it may be a part of the segment as well as a constant"
	} else if s.constant != nil {
		why = "no order of emission explains the numbers of the file's states"
	}
	return faultf(ErrFormat, -1, fmt.Sprintf("execution_plan[%d].values[%d].data_buffer_idx", s.method, s.value),
		"initial contents of state %s: number %d is not that of a part of the mutable data segment, which has %d for %d states: exporters that name "+
			"mutable buffers write the index of a constant with the same bytes, but here %s; export again without names of mutable buffers, "+
			"or with other initial contents", quote(s.t.Name), s.index, p.parts(), len(p.states), why)
}

// areNumbered reports whether the states have the numbers of parts: in order of emission, or at
// least each one its own.
func (p *programReader) areNumbered() bool {
	next, inOrder, own, anyNamed := 1, true, true, false
	used := make(map[int]bool)
	for i := range p.states {
		s := &p.states[i]
		anyNamed = anyNamed || s.named()
		switch {
		case s.index == next:
			next++
		case s.named() || s.index > next:
			inOrder = false
		}
		own = own && s.index > 0 && s.part != nil && (!used[s.index] || !s.named())
		used[s.index] = true
	}
	return !anyNamed || inOrder && own && next-1 == p.parts() || own
}

// findConstants finds the constant of each named state's number, if it was emitted before it.
func (p *programReader) findConstants(out *Program) {
	type span struct {
		start *byte
		bytes int
	}
	emitted := make(map[span]bool)
	at := 0
	for i := range out.Methods {
		values := out.Methods[i].Values
		for v := range values {
			if values[v].Kind != tensor.KindTensor {
				continue
			}
			if t := values[v].Tensor; t.Storage == Constant && len(t.Data) > 0 {
				emitted[span{&t.Data[0], len(t.Data)}] = true
			}
			for ; at < len(p.states) && p.states[at].method == i && p.states[at].value == v; at++ {
				s := &p.states[at]
				s.isNew = s.part != nil && (s.fits || !s.named())
				if data := p.constantOf(s.index, s.t.NBytes()); s.named() && len(data) > 0 && emitted[span{&data[0], len(data)}] {
					s.constant, s.isOld = data, true
				}
			}
		}
	}
}

// constantOf returns the n bytes of a constant, nil if there is none of that number.
func (p *programReader) constantOf(index int, n int64) []byte {
	if p.constants.Len() > 0 {
		data, _ := p.constants.part(uint32(index), n)
		return data
	}
	if index >= len(p.inline) || n > int64(len(p.inline[index])) {
		return nil
	}
	return p.inline[index][:n:n]
}

// assign restricts what each state can be to what some assignment of all states to parts, in order,
// and to constants allows. It returns false if there is no such assignment.
func (p *programReader) assign() bool {
	count, parts := len(p.states), p.parts()
	width := parts + 2
	ahead := make([]bool, (count+1)*width) // row i, column k: k can be the next number before state i
	ahead[1] = true
	for i := range p.states {
		for k := 1; k < width; k++ {
			if ahead[i*width+k] {
				for _, to := range p.states[i].next(k, parts) {
					ahead[(i+1)*width+to] = true
				}
			}
		}
	}
	behind := make([]bool, (count+1)*width) // the same, from the end
	behind[count*width+parts+1] = true
	for i := count - 1; i >= 0; i-- {
		s := &p.states[i]
		free := !s.isNew && !s.isOld
		isNew, isOld := false, false
		for k := 1; k < width; k++ {
			for _, to := range s.next(k, parts) {
				if behind[(i+1)*width+to] {
					behind[i*width+k] = true
					isNew = isNew || ahead[i*width+k] && to > k
					isOld = isOld || ahead[i*width+k] && to == k
				}
			}
		}
		if s.named() && !free {
			s.isNew, s.isOld = isNew, isOld
		}
	}
	return behind[1]
}

// next returns the possible next numbers after a state, if k is the one before it. A state that can
// be neither a part nor a constant has none.
func (s *initial) next(k, parts int) (list []int) {
	if !s.named() && s.index < k || s.named() && (s.isOld || !s.isNew) {
		list = append(list, k)
	}
	if s.isNew && s.index == k && k <= parts {
		list = append(list, k+1)
	}
	return list
}
