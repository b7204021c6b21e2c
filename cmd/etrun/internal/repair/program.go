// Package repair changes programs so that they run correctly on ExecuTorch's own runtime,
// which repairs nothing.
package repair

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// ErrBeyond is a fault that cannot be repaired in the file; match with errors.Is.
var ErrBeyond = errors.New("cannot be repaired in the file")

func beyond(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrBeyond, fmt.Errorf(format, args...))
}

// Change is one change.
type Change struct {
	Kind   string `json:"kind"` // "payload", "stale type", "view", "update", "state", "plan"
	Method string `json:"method"`
	Text   string `json:"text"`
}

// Program is a program being changed.
type Program struct {
	Changes []Change
	file    *tree.File
}

// Open reads a program into a tree. It rejects programs with unknown fields, which would be
// lost.
func Open(data []byte) (*Program, error) {
	f, err := tree.Decode(data)
	if err != nil {
		return nil, beyond("%w", err)
	}
	switch {
	case f.Format != pte.FormatPTE:
		return nil, beyond("a %v file", f.Format)
	case len(f.Unknown) > 0:
		return nil, beyond("the file has a field of a newer exporter that this version does not support: %s", f.Unknown[0])
	case f.Header > knownHeader:
		return nil, beyond("an extended header of %d bytes, want %d", f.Header, knownHeader)
	}
	return &Program{file: f}, nil
}

// knownHeader is the length of the extended header that is written.
const knownHeader = 32

// Pieces returns the current program, which shares the memory of what was read.
func (p *Program) Pieces() tree.Pieces {
	p.file.Complete()
	return p.file.Pieces()
}

func (p *Program) note(kind, method, format string, args ...any) {
	p.Changes = append(p.Changes, Change{kind, method, fmt.Sprintf(format, args...)})
}

// method is a method of a program being changed.
type method struct {
	*Program
	plan *tree.Node // table ExecutionPlan
	name string
}

func (p *Program) method(i int) *method {
	plan := nodes(p.file.Root, "execution_plan")[i]
	name, _ := plan.Fields["name"].(string)
	return &method{p, plan, name}
}

// nodes returns a list of tables; it may be absent.
func nodes(n *tree.Node, field string) []*tree.Node {
	list, _ := n.Fields[field].([]*tree.Node)
	return list
}

// numbers returns a list of scalars; it may be absent.
func numbers(n *tree.Node, field string) []tree.Scalar {
	list, _ := n.Fields[field].([]tree.Scalar)
	return list
}

func number(n *tree.Node, field string) uint64 {
	x, _ := n.Fields[field].(tree.Scalar)
	return uint64(x)
}

// add appends a table to a list and returns its index.
func add(n *tree.Node, field string, what *tree.Node) int {
	list := nodes(n, field)
	n.With(field, append(slices.Clip(list), what))
	return len(list)
}

// addValue adds a value; its kind is the name of its table.
func (m *method) addValue(payload *tree.Node) int {
	tag := slices.Index(tree.Unions["KernelTypes"], payload.Type)
	return add(m.plan, "values", tree.New("EValue").With("val_type", tree.Scalar(tag)).With("val", payload))
}

func (m *method) addInt(x int64) int {
	return m.addValue(tree.New("Int").With("int_val", tree.Scalar(x)))
}

// tensor returns the table of a tensor value.
func (m *method) tensor(v int) *tree.Node {
	return nodes(m.plan, "values")[v].Fields["val"].(*tree.Node)
}

// addTensor adds a planned tensor like value v, with an offset of its own.
func (m *method) addTensor(v int, d tensor.DType, order []byte) int {
	from := m.tensor(v)
	t := tree.New("Tensor").With("scalar_type", tree.Scalar(d)).With("sizes", slices.Clone(numbers(from, "sizes"))).With("dim_order", order)
	for _, field := range []string{"shape_dynamism", "layout"} {
		if x, ok := from.Fields[field]; ok {
			t.With(field, x)
		}
	}
	if info, ok := from.Fields["extra_tensor_info"].(*tree.Node); ok && info.Fields["device_type"] != nil {
		t.With("extra_tensor_info", tree.New("ExtraTensorInfo").With("device_type", info.Fields["device_type"]).
			With("device_index", tree.Scalar(number(info, "device_index"))))
	}
	arena := 1
	if at, ok := from.Fields["allocation_info"].(*tree.Node); ok {
		arena = int(number(at, "memory_id"))
	}
	n := d.Size()
	for _, size := range numbers(from, "sizes") {
		n *= int(int32(size))
	}
	t.With("allocation_info", place(arena, m.grow(arena, int64(n))))
	return m.addValue(t)
}

// place returns a table AllocationDetails.
func place(arena int, offset int64) *tree.Node {
	return tree.New("AllocationDetails").With("memory_id", tree.Scalar(arena)).
		With("memory_offset_low", tree.Scalar(uint32(offset))).With("memory_offset_high", tree.Scalar(offset>>32))
}

// xnnpackSlack is what exporters add to arenas of programs with XNNPACK delegates, which
// read past their arguments.
const xnnpackSlack = 64

func (m *method) slack() int64 {
	for _, d := range nodes(m.plan, "delegates") {
		if d.Fields["id"] == "XnnpackBackend" {
			return xnnpackSlack
		}
	}
	return 0
}

// grow grows an arena, by its memory_id, and returns the offset of n new bytes.
func (m *method) grow(arena int, n int64) (offset int64) {
	sizes := numbers(m.plan, "non_const_buffer_sizes")
	for len(sizes) <= arena {
		sizes = append(sizes, 0)
	}
	offset = pack.Align(int64(sizes[arena]), pack.Alignment)
	sizes[arena] = tree.Scalar(offset + pack.Align(n, pack.Alignment) + m.slack())
	m.plan.With("non_const_buffer_sizes", sizes)
	return offset
}

// operator returns the index of an operator, and adds it to the method if needed.
func (m *method) operator(name, overload string) int {
	for i, o := range nodes(m.plan, "operators") {
		if o.Fields["name"] == name && o.Fields["overload"] == overload {
			return i
		}
	}
	return add(m.plan, "operators", tree.New("Operator").With("name", name).With("overload", overload))
}

// call makes a call of an operator. Its arguments are given by their names in the schema: a
// value, or a number, text or list that becomes one. Missing arguments are None.
func (m *method) call(name, overload string, args map[string]any) (*tree.Node, error) {
	full := name + "." + overload
	_, sig, ok, err := etrun.DefaultOperators().Lookup(full)
	if err != nil || !ok {
		return nil, beyond("no operator %s: %v", full, err)
	}
	var list []tree.Scalar
	for i := range sig.Args {
		v, err := m.argument(&sig.Args[i], args[sig.Args[i].Name])
		if err != nil {
			return nil, err
		}
		list = append(list, tree.Scalar(v))
	}
	list = append(list, list[len(list)-1]) // the return value is the out argument
	body := tree.New("KernelCall").With("op_index", tree.Scalar(m.operator(name, overload))).With("args", list)
	return tree.New("Instruction").With("instr_args_type", tree.Scalar(pte.KernelCall)).With("instr_args", body), nil
}

// value is an argument that is an existing value.
type value int

func (m *method) argument(a *kernels.Arg, x any) (int, error) {
	switch x := x.(type) {
	case value:
		return int(x), nil
	case int64:
		return m.addInt(x), nil
	case float64:
		return m.addValue(tree.New("Double").With("double_val", tree.Scalar(math.Float64bits(x)))), nil
	case bool:
		b := tree.Scalar(0)
		if x {
			b = 1
		}
		return m.addValue(tree.New("Bool").With("bool_val", b)), nil
	case []int64:
		items := make([]tree.Scalar, len(x))
		for i, n := range x {
			items[i] = tree.Scalar(m.addInt(n))
		}
		return m.addValue(tree.New("IntList").With("items", items)), nil
	case nil:
		return m.addValue(tree.New("Null")), nil
	}
	return 0, fmt.Errorf("argument %s: %T", a.Name, x)
}

// insert inserts an instruction before instruction at of a chain. Jumps keep their
// targets.
func (m *method) insert(chain, at int, what *tree.Node) {
	c := nodes(m.plan, "chains")[chain]
	list := nodes(c, "instructions")
	for _, in := range list {
		if body := in.Fields["instr_args"].(*tree.Node); body.Type == "JumpFalseCall" {
			if to := number(body, "destination_instruction"); to >= uint64(at) {
				body.With("destination_instruction", tree.Scalar(to+1))
			}
		}
	}
	c.With("instructions", slices.Insert(slices.Clone(list), at, what))
	if traces := nodes(c, "stacktrace"); at <= len(traces) && len(traces) > 0 {
		c.With("stacktrace", slices.Insert(slices.Clone(traces), at, tree.New("FrameList").With("items", []*tree.Node{})))
	}
}

// States gives each initialized state of a program its own part of the mutable data segment, if any
// refers to a constant instead.
func (p *Program) States(specs []*pte.Method) error {
	faults := 0
	for i, spec := range specs {
		for _, f := range spec.Initial {
			faults++
			p.note("state", p.method(i).name, "%v; copied to the mutable data segment", f)
		}
	}
	if faults == 0 {
		return nil
	}
	if p.file.Header == 0 {
		return beyond("the file has no segments for initial states")
	}
	offsets, data := []tree.Scalar{0}, []byte(nil)
	for i, spec := range specs {
		m := p.method(i)
		for v := range spec.Values {
			t := spec.Values[v].Tensor
			if spec.Values[v].Kind != tensor.KindTensor || t.Storage != pte.PlannedInit {
				continue
			}
			m.tensor(v).With("data_buffer_idx", tree.Scalar(len(offsets)))
			if info, ok := m.tensor(v).Fields["extra_tensor_info"].(*tree.Node); ok {
				delete(info.Fields, "mutable_data_segments_idx")
			}
			offsets, data = append(offsets, tree.Scalar(len(data))), append(data, t.Data...)
		}
	}
	segment := tree.New("SubsegmentOffsets").With("segment_index", tree.Scalar(p.addSegment(data))).With("offsets", offsets)
	p.file.Root.With("mutable_data_segments", []*tree.Node{segment})
	return nil
}

// addSegment appends bytes after the last segment.
func (p *Program) addSegment(data []byte) int {
	p.file.Tail = tree.Pad(p.file.Tail, tree.SegmentAlign)
	at := len(p.file.Tail)
	p.file.Tail = append(p.file.Tail, data...)
	return add(p.file.Root, "segments", tree.New("DataSegment").With("offset", tree.Scalar(at)).With("size", tree.Scalar(len(data))))
}
