package repair

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// Faults are the faults of a method that etrun repairs at load.
type Faults struct {
	Method    int // index in the program
	Spec      *pte.Method
	Delegates []delegate.Info // with Repaired and Conversions
	Views     []ir.Relaid
	Copies    []ir.Redirected
}

// Repair repairs the faults of a method except its memory plan, see [Program.Plan].
func (p *Program) Repair(f *Faults) error {
	m := p.method(f.Method)
	for _, c := range f.Copies { // before instructions are inserted
		m.redirect(c)
	}
	for i := range f.Delegates {
		if err := m.payload(i, &f.Delegates[i]); err != nil {
			return err
		}
	}
	for _, v := range f.Views {
		if err := m.view(f.Spec, v); err != nil {
			return err
		}
	}
	return m.conversions(f)
}

// payload replaces a delegate's payload by the repaired one.
func (m *method) payload(i int, info *delegate.Info) error {
	if len(info.Repairs) == 0 {
		return nil
	}
	if info.Repaired == nil {
		return beyond("delegate %d, %s: its payload cannot be written", i, info.Backend)
	}
	ref := tree.New("BackendDelegateDataReference")
	if m.file.Header == 0 {
		at := add(m.file.Root, "backend_delegate_data", tree.New("Buffer").With("storage", info.Repaired))
		ref.With("location", tree.Scalar(0)).With("index", tree.Scalar(at))
	} else {
		ref.With("location", tree.Scalar(1)).With("index", tree.Scalar(m.addSegment(info.Repaired)))
	}
	nodes(m.plan, "delegates")[i].With("processed", ref)
	for _, repair := range info.Repairs {
		m.note("payload", m.name, "delegate %d: %s", i, repair)
	}
	return nil
}

// redirect makes a copy onto an argument one onto the state for which it was meant.
func (m *method) redirect(c ir.Redirected) {
	in := nodes(nodes(m.plan, "chains")[c.Chain], "instructions")[c.Index]
	body := in.Fields["instr_args"].(*tree.Node)
	args := slices.Clone(numbers(body, "args"))
	for _, k := range []int{0, len(args) - 1} { // the destination, and the result
		if int(int32(args[k])) == c.From {
			args[k] = tree.Scalar(c.To)
		}
	}
	body.With("args", args)
	m.note("update", m.name, "%v", c)
}

// spot is the position of an instruction in a chain.
type spot struct{ chain, instruction int }

// conversions makes delegates write integers, which an operator after the call converts to
// the declared type.
func (m *method) conversions(f *Faults) error {
	for i := range f.Delegates {
		for k := range f.Delegates[i].Conversions {
			if err := m.convert(f, i, &f.Delegates[i].Conversions[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *method) convert(f *Faults, i int, c *delegate.Conversion) error {
	for _, at := range slices.Backward(m.calls(i)) {
		list := nodes(nodes(m.plan, "chains")[at.chain], "instructions")
		args := numbers(list[at.instruction].Fields["instr_args"].(*tree.Node), "args")
		k := f.Delegates[i].Inputs + c.Output
		v := int(int32(args[k]))
		declared := tensor.DType(int8(number(m.tensor(v), "scalar_type")))
		order, _ := m.tensor(v).Fields["dim_order"].([]byte)
		stored := m.addTensor(v, c.DType, slices.Clone(order))
		call, err := m.conversion(c, declared, value(stored), value(v), order)
		if err != nil {
			return err
		}
		args[k] = tree.Scalar(stored)
		m.insert(at.chain, at.instruction+1, call)
		m.note("stale type", m.name, "delegate %d, output %d: declared %v, written as %v with scale %v and zero point %d; "+
			"converted by %s", i, c.Output, declared, c.DType, c.Scale, c.ZeroPoint, m.operatorOf(call))
	}
	return nil
}

// calls returns the instructions that call a delegate.
func (m *method) calls(delegate int) (list []spot) {
	for c, chain := range nodes(m.plan, "chains") {
		for i, in := range nodes(chain, "instructions") {
			body := in.Fields["instr_args"].(*tree.Node)
			if body.Type == "DelegateCall" && number(body, "delegate_index") == uint64(delegate) {
				list = append(list, spot{chain: c, instruction: i})
			}
		}
	}
	return list
}

// conversion converts a delegate's output to its declared type: integers to real numbers, or
// to wider integers.
func (m *method) conversion(c *delegate.Conversion, declared tensor.DType, from, to value, order []byte) (*tree.Node, error) {
	if declared != tensor.Float32 {
		return m.relay(from, to, order)
	}
	family := "quantized_decomposed"
	for _, o := range nodes(m.plan, "operators") {
		if o.Fields["name"] == "cortex_m::quantize_per_tensor" { // operators for microcontrollers
			family = "cortex_m"
		}
	}
	low, high := int64(-1)<<(8*c.DType.Size()-1), int64(1)<<(8*c.DType.Size()-1)-1
	return m.call(family+"::dequantize_per_tensor", "out", map[string]any{"input": from, "scale": c.Scale, "zero_point": c.ZeroPoint,
		"quant_min": low, "quant_max": high, "dtype": int64(c.DType), "out": to})
}

// relay copies a tensor to one of another type or dim order.
func (m *method) relay(from, to value, order []byte) (*tree.Node, error) {
	dims := make([]int64, len(order))
	for i, d := range order {
		dims[i] = int64(d)
	}
	args := map[string]any{"self": from, "non_blocking": false, "dim_order": dims, "out": to}
	return m.call("dim_order_ops::_to_dim_order_copy", "out", args)
}

// operatorOf returns the name of the operator of an instruction.
func (m *method) operatorOf(call *tree.Node) string {
	o := nodes(m.plan, "operators")[number(call.Fields["instr_args"].(*tree.Node), "op_index")]
	name, _ := o.Fields["name"].(string)
	overload, _ := o.Fields["overload"].(string)
	return pte.Operator{Name: name, Overload: overload}.FullName()
}

// view materializes a view that the exporter left out: its base is copied into contiguous
// order after each instruction that writes it, and the view gets the offset of the
// copy.
func (m *method) view(spec *pte.Method, r ir.Relaid) error {
	from := m.tensor(r.From)
	sizes := numbers(from, "sizes")
	order := make([]byte, len(sizes))
	for i := range order {
		order[i] = byte(i)
	}
	if !slices.Equal(viewOrder(m.tensor(r.Value)), tensor.ContiguousOrder(len(viewOrder(m.tensor(r.Value))))) {
		return beyond("value %d, a missing view of value %d, is not contiguous", r.Value, r.From)
	}
	d := tensor.DType(int8(number(from, "scalar_type")))
	laid := m.addTensor(r.From, d, order)
	at := m.tensor(laid).Fields["allocation_info"].(*tree.Node)
	offset := int64(number(at, "memory_offset_low")) | int64(number(at, "memory_offset_high"))<<32
	m.tensor(r.Value).With("allocation_info", place(int(number(at, "memory_id")), offset))
	writers := m.writers(spec, r.From)
	if r.Old {
		writers = nil
	}
	if r.Carried {
		writers = append([]spot{{}}, writers...)
	}
	if len(writers) == 0 {
		return beyond("value %d, a missing view of value %d: no instruction writes it", r.Value, r.From)
	}
	for _, w := range slices.Backward(writers) {
		call, err := m.relay(value(r.From), value(laid), order)
		if err != nil {
			return err
		}
		m.insert(w.chain, w.instruction, call)
	}
	m.note("view", m.name, "value %d, a missing view of value %d in dim order %v: copied by %s",
		r.Value, r.From, viewOrder(from), "dim_order_ops::_to_dim_order_copy.out")
	return nil
}

func viewOrder(t *tree.Node) []uint8 {
	order, _ := t.Fields["dim_order"].([]byte)
	return order
}

// writers returns the positions after the instructions that write a value, and the beginning
// for an input.
func (m *method) writers(spec *pte.Method, v int) (list []spot) {
	if slices.Contains(spec.Inputs, v) {
		list = append(list, spot{})
	}
	for c, chain := range nodes(m.plan, "chains") {
		for i, in := range nodes(chain, "instructions") {
			body := in.Fields["instr_args"].(*tree.Node)
			args := numbers(body, "args")
			written := body.Type == "MoveCall" && int(int32(number(body, "move_to"))) == v
			if body.Type == "KernelCall" && len(args) > 0 {
				written = m.isOut(args, v)
			}
			if body.Type == "DelegateCall" {
				written = slices.Contains(args, tree.Scalar(v)) // an input is copied again, which changes nothing
			}
			if written {
				list = append(list, spot{chain: c, instruction: i + 1})
			}
		}
	}
	return list
}

// isOut reports whether a call's returned value is v, or a list that contains it.
func (m *method) isOut(args []tree.Scalar, v int) bool {
	last := int(int32(args[len(args)-1]))
	if last == v {
		return true
	}
	payload := m.tensor(last)
	return payload.Type == "TensorList" && slices.Contains(numbers(payload, "items"), tree.Scalar(v))
}
