package exec

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// repeated is a step that keeps results while some inputs of the method do not change.
type repeated struct {
	lowering.Repeater          // the delegate's unit, or results
	results           *results // of an operator, nil for delegates
	args              []bool   // by argument: it has the bytes of one of the inputs
	inputs            []*input // all that have these bytes
	known             []uint64 // their versions at the last call
	kept              bool     // there is memory of results
}

// findRepeated lets steps keep results that depend on inputs which no step overwrites, within the limits of memory.
func (m *Instance) findRepeated() {
	if m.stateless {
		return
	}
	left := m.program.Limits.Planned - m.plan.Bytes() - m.scratchBytes()
	if limit := m.program.Limits.Total; limit > 0 {
		left = min(left, limit-m.shared.MemoryNeeded(m.plan, m.program.Size).Want)
	}
	written := m.written()
	for i := range m.ir.Steps {
		r := m.repeats(i, written)
		if r == nil {
			continue
		}
		switch bytes := r.Repeats(r.args); {
		case bytes > left:
			r.Repeats(make([]bool, len(r.args)))
		case bytes > 0:
			left -= bytes
			m.repeated = append(m.repeated, r)
			m.steps[i].repeated = r
		}
	}
}

// repeats returns a step that can keep results, nil if it does not depend on inputs whose bytes stay between runs.
func (m *Instance) repeats(i int, written []bool) *repeated {
	from := &m.ir.Steps[i]
	r := &repeated{args: make([]bool, len(from.Args))}
	switch from.Kind {
	case ir.DelegateCall:
		r.Repeater, _ = m.units[from.Delegate].(lowering.Repeater)
	case ir.KernelCall:
		if r.results = m.resultsOf(i); r.results != nil {
			r.Repeater = r.results
		}
	}
	if r.Repeater == nil {
		return nil
	}
	others := false // something that may change is read, too
	for _, v := range from.Reads {
		storage := m.ir.Values[v].Storage
		at := slices.Index(from.Args, v)
		if fixed := at >= 0 && r.add(m, storage, written); fixed {
			r.args[at] = true
		} else if storage < 0 || !m.ir.Storages[storage].Kind.IsConstant() {
			others = true
		}
	}
	for _, v := range from.Args { // a number that the caller sets
		others = others || v >= 0 && m.ir.Values[v].Kind != tensor.KindTensor && slices.Contains(m.ir.Inputs, v)
	}
	if r.inputs == nil || r.results != nil && others {
		return nil
	}
	return r
}

// add adds the inputs of a storage, and reports whether it is one whose bytes stay between runs.
func (r *repeated) add(m *Instance, storage int, written []bool) bool {
	if storage < 0 || m.ir.Storages[storage].Kind != ir.Input || written[storage] {
		return false
	}
	for i, v := range m.ir.Inputs {
		if in := &m.inputs[i]; in.bound != nil && m.ir.Values[v].Storage == storage && !slices.Contains(r.inputs, in) {
			r.inputs, r.known = append(r.inputs, in), append(r.known, 0)
		}
	}
	return true
}

// look reports whether the inputs are as they were at the last call. If all inputs of the method are, it is called for its own sake, to
// measure it perhaps, and nothing is repeated.
func (r *repeated) look(m *Instance) {
	same := m.varied
	for i, in := range r.inputs {
		same = same && (!in.callers || in.constant) && in.version == r.known[i]
		r.known[i] = in.version
	}
	if same && !r.kept {
		r.kept, m.most = true, 0 // there will be more memory
	}
	r.Unchanged(same)
}

// forget drops the results that are kept.
func (r *repeated) forget() {
	r.kept = false
	r.Repeats(r.args)
}

// changed reports whether an input was set since the last run.
func (m *Instance) changed() (changed bool) {
	for i := range m.inputs {
		in := &m.inputs[i]
		changed = changed || in.version != in.ran
		in.ran = in.version
	}
	return changed
}

// results are those of an operator.
type results struct {
	outs        []*tensor.Tensor
	bytes       [][]byte // nil before any is kept
	same, valid bool     // see lowering.Repeater
}

// resultsOf returns the results of a product, nil for other operators: they take little longer than a copy of their results.
func (m *Instance) resultsOf(i int) *results {
	from := &m.ir.Steps[i]
	switch product := slices.Contains([]opclass.Flow{opclass.Product, opclass.Products, opclass.AddProduct}, from.Op.Flow); {
	case !product && from.Op.Class != opclass.Linear && from.Op.Class != opclass.Convolution:
		return nil
	case !from.Op.Pure || len(m.steps[i].changes) > 0 || len(from.Updates) > 0:
		return nil
	}
	r := &results{}
	for _, v := range from.Writes {
		t := m.values[v].Tensor
		if t == nil || t.Dynamism != tensor.Static {
			return nil
		}
		r.outs = append(r.outs, t)
	}
	return r
}

// Repeats implements lowering.Repeater.
func (r *results) Repeats(inputs []bool) (bytes int64) {
	r.bytes, r.valid = nil, false
	for _, t := range r.outs {
		bytes += int64(t.NBytes())
	}
	return bytes
}

// Unchanged implements lowering.Repeater.
func (r *results) Unchanged(same bool) { r.same, r.valid = same, r.valid && same }

// do calls the operator, or copies its results.
func (r *results) do(call *kernels.Call, c *kernels.Ctx) error {
	if r.valid {
		for i, t := range r.outs {
			copy(t.Data, r.bytes[i])
		}
		return nil
	}
	if err := call.Do(c); err != nil || !r.same && r.bytes == nil {
		return err
	}
	if r.bytes == nil {
		for _, t := range r.outs {
			r.bytes = append(r.bytes, make([]byte, len(t.Data)))
		}
	}
	for i, t := range r.outs {
		copy(r.bytes[i], t.Data)
	}
	r.valid = true
	return nil
}

// memory returns the bytes that are kept.
func (r *results) memory() (n int64) {
	for _, b := range r.bytes {
		n += int64(len(b))
	}
	return n
}
