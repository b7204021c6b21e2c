package main

import (
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Two correct programs round differently. An operator whose result jumps, such as a sort of almost equal numbers, a comparison or a
// rounding, may then have another result although its operands agree: the model decides there by less than the rounding. Outputs that
// depend on such a call say nothing about the lowered program.

// operatorCall is a call of an operator with copies of its operands and results.
type operatorCall struct{ operands, results []*tensor.Value }

// callRecorder is an observer that keeps the calls of operators, in order, by name and up to a number of bytes.
type callRecorder struct {
	calls    map[string][]operatorCall
	operands []*tensor.Value
	left     int64
}

// maxRecorded is how many bytes of values are kept. Nothing is known about calls beyond it.
const maxRecorded = 1 << 29

// Wants selects what operators read and write.
func (r *callRecorder) Wants() trace.Kinds { return trace.Values }

// Observe implements trace.Observer.
func (r *callRecorder) Observe(e *trace.Event) {
	switch {
	case !isOperator(e) || r.left < 0:
	case e.Kind == trace.Read:
		r.operands = r.copies(e.Values)
	default:
		r.calls[e.Name] = append(r.calls[e.Name], operatorCall{r.operands, r.copies(e.Values)})
	}
}

func isOperator(e *trace.Event) bool { return e.Chain >= 0 && e.Delegate < 0 && e.Index < 0 }

func (r *callRecorder) copies(values []trace.Value) (list []*tensor.Value) {
	for _, v := range values {
		if v.Value != nil && v.Kind == tensor.KindTensor {
			if r.left -= int64(v.Tensor.NBytes()); r.left < 0 {
				return nil
			}
		}
		list = append(list, session.Clone(v.Value))
	}
	return list
}

// tieFinder is an observer of the lowered program. It marks what depends on calls whose results differ from those of the original
// program although the operands agree.
type tieFinder struct {
	original map[string][]operatorCall
	next     map[string]int
	allowed  func(*tensor.Value) kernels.Tolerance
	marked   map[*byte]bool // by the first byte of a value
	call     *operatorCall  // of the original program, nil if there is none, or its operands differ
	inherits bool           // an operand is marked
	outputs  [][]bool       // by run and output: it is marked
	found    string         // the first such operator
}

// Wants selects what instructions read and write.
func (f *tieFinder) Wants() trace.Kinds { return trace.Values }

// Observe implements trace.Observer.
func (f *tieFinder) Observe(e *trace.Event) {
	switch {
	case e.Index >= 0:
	case e.Chain < 0:
		if e.Kind == trace.Written {
			var marks []bool
			for _, v := range e.Values {
				marks = append(marks, f.isMarked(v))
			}
			f.outputs = append(f.outputs, marks)
		}
	case e.Kind == trace.Read:
		f.read(e)
	default:
		f.written(e)
	}
}

func (f *tieFinder) read(e *trace.Event) {
	f.call, f.inherits = nil, false
	for _, v := range e.Values {
		f.inherits = f.inherits || f.isMarked(v)
	}
	if !isOperator(e) {
		return
	}
	k := f.next[e.Name]
	f.next[e.Name]++
	if list := f.original[e.Name]; k < len(list) && f.agree(e.Values, list[k].operands) {
		f.call = &list[k]
	}
}

func (f *tieFinder) written(e *trace.Event) {
	tie := !f.inherits && f.call != nil && !f.agree(e.Values, f.call.results)
	if tie && f.found == "" {
		f.found = e.Name
	}
	for _, v := range e.Values {
		if p := firstByte(v); p != nil {
			if f.marked[p] = tie || f.inherits; !f.marked[p] {
				delete(f.marked, p)
			}
		}
	}
}

// agree reports whether values are within the tolerance of those of the original program.
func (f *tieFinder) agree(got []trace.Value, want []*tensor.Value) bool {
	if len(got) != len(want) {
		return false
	}
	for i, v := range got {
		if v.Value == nil || want[i] == nil || compare.Values(v.Value, want[i], f.allowed(want[i])) != nil {
			return false
		}
	}
	return true
}

func (f *tieFinder) isMarked(v trace.Value) bool { return f.marked[firstByte(v)] }

func firstByte(v trace.Value) *byte {
	if v.Value == nil || v.Kind != tensor.KindTensor || len(v.Tensor.Data) == 0 {
		return nil
	}
	return &v.Tensor.Data[0]
}

// paired keeps the calls of operators that both programs call as often: the k-th ones correspond.
func (r *callRecorder) paired(from, to *pte.Program) map[string][]operatorCall {
	if r.left < 0 {
		return nil
	}
	a, b := operatorCounts(from), operatorCounts(to)
	for name := range r.calls {
		if a[name] != b[name] {
			delete(r.calls, name)
		}
	}
	return r.calls
}

func operatorCounts(p *pte.Program) map[string]int {
	count := make(map[string]int)
	for i := range p.Methods {
		m := &p.Methods[i]
		for c := range m.Chains {
			for _, in := range m.Chains[c].Instructions {
				if in.Kind == pte.KernelCall {
					count[m.Operators[in.Index].FullName()]++
				}
			}
		}
	}
	return count
}
