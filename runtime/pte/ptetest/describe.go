package ptetest

import (
	"bytes"
	"maps"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Layout says how Write lays a program out.
type Layout struct {
	// Inline puts constants and delegate data into the FlatBuffer, as the first
	// exporters did. Named data and initial state need segments all the same.
	Inline bool
	// OldHeader writes the extended header of 24 bytes, without segment_data_size.
	OldHeader bool
}

// Write writes a program. Whatever the description says is written, right or wrong:
// kinds, indexes, sizes and bytes are not checked.
func Write(p *pte.Program, layout Layout) []byte { return Describe(p, layout).Bytes() }

// Describe is the file of a program, before it is written.
func Describe(p *pte.Program, layout Layout) *File {
	d := &describer{layout: layout}
	d.segment() // the constants', index 0
	root := node("Program").with("version", Scalar(p.Version)).with("execution_plan", list(p.Methods, d.method))
	d.constantTables(root)
	if len(p.Named) > 0 {
		keys := slices.Sorted(maps.Keys(p.Named))
		root.with("named_data", list(keys, func(key string) *Node {
			return node("NamedData").with("key", key).with("segment_index", d.add(p.Named[key]))
		}))
	}
	f := &File{Format: pte.FormatPTE, Root: root}
	f.Tail = d.segments.lay(root)
	if len(f.Tail) > 0 {
		f.Header = 32
		if layout.OldHeader {
			f.Header = 24
		}
	}
	return f
}

// describer turns a program into nodes and collects its segments.
type describer struct {
	layout Layout
	segments
	constants pieces // segment 0, or constant_buffer
	initial   pieces // mutable_data_segments
	blobs     []*Node
}

// segments are the byte ranges behind the FlatBuffer.
type segments struct{ list [][]byte }

// segment adds an empty segment and gives its index.
func (s *segments) segment() int {
	s.list = append(s.list, nil)
	return len(s.list) - 1
}

// add adds a segment and gives its index.
func (s *segments) add(b []byte) Scalar {
	i := s.segment()
	s.list[i] = b
	return Scalar(i)
}

// lay joins the segments and lists them in the root.
func (s *segments) lay(root *Node) []byte {
	var tail []byte
	root.with("segments", list(s.list, func(b []byte) *Node {
		tail = pad(tail, segmentAlign)
		off := len(tail)
		tail = append(tail, b...)
		return node("DataSegment").with("offset", Scalar(off)).with("size", Scalar(len(b)))
	}))
	return tail
}

// pieces are numbered byte ranges; number 0 is a placeholder.
type pieces struct {
	list  [][]byte
	align int
}

func (p *pieces) add(b []byte) Scalar {
	p.list = append(p.list, b)
	return Scalar(len(p.list))
}

// join gives the pieces one after another, and their offsets with the placeholder's.
func (p *pieces) join() (data []byte, offsets []Scalar) {
	offsets = []Scalar{0}
	for _, b := range p.list {
		data = pad(data, max(p.align, 1))
		offsets = append(offsets, Scalar(len(data)))
		data = append(data, b...)
	}
	return data, offsets
}

func buffer(b []byte) *Node { return node("Buffer").with("storage", b) }

// constantTables writes constants, initial state and inline delegate data.
func (d *describer) constantTables(root *Node) {
	if d.layout.Inline {
		root.with("constant_buffer", append([]*Node{buffer(nil)}, list(d.constants.list, buffer)...))
	} else {
		d.constants.align = 16
		data, offsets := d.constants.join()
		d.list[0] = data
		root.with("constant_segment", node("SubsegmentOffsets").with("segment_index", Scalar(0)).with("offsets", offsets))
	}
	if len(d.initial.list) > 0 {
		data, offsets := d.initial.join()
		root.with("mutable_data_segments", []*Node{node("SubsegmentOffsets").with("segment_index", d.add(data)).with("offsets", offsets)})
	}
	if d.blobs != nil {
		root.with("backend_delegate_data", d.blobs)
	}
}

func (d *describer) method(m pte.Method) *Node {
	sizes, devices := []int64{0}, []*Node{}
	for i, a := range m.Arenas {
		sizes = append(sizes, a.Size)
		if a.Device != 0 || a.DeviceIndex != 0 {
			devices = append(devices, node("NonConstBufferDevice").with("buffer_idx", Scalar(i+1)).
				with("device_type", Scalar(a.Device)).with("device_index", Scalar(a.DeviceIndex)))
		}
	}
	n := node("ExecutionPlan").with("name", m.Name).
		with("container_meta_type", node("ContainerMetadata").with("encoded_inp_str", m.InSpec).with("encoded_out_str", m.OutSpec)).
		with("values", list(m.Values, d.value)).
		with("inputs", scalars(m.Inputs)).with("outputs", scalars(m.Outputs)).
		with("chains", list(m.Chains, chain)).
		with("operators", list(m.Operators, operator)).
		with("delegates", list(m.Delegates, d.delegate)).
		with("non_const_buffer_sizes", scalars(sizes))
	if len(devices) > 0 {
		n.with("non_const_buffer_device", devices)
	}
	return n
}

// list makes a node of each element.
func list[T any](s []T, f func(T) *Node) []*Node {
	out := make([]*Node, len(s))
	for i, x := range s {
		out[i] = f(x)
	}
	return out
}

func operator(o pte.Operator) *Node {
	return node("Operator").with("name", o.Name).with("overload", o.Overload)
}

func (d *describer) delegate(x pte.Delegate) *Node {
	ref := node("BackendDelegateDataReference")
	if d.layout.Inline {
		ref.with("location", Scalar(0)).with("index", Scalar(len(d.blobs)))
		d.blobs = append(d.blobs, buffer(x.Data))
	} else {
		ref.with("location", Scalar(1)).with("index", d.add(x.Data))
	}
	return node("BackendDelegate").with("id", x.ID).with("processed", ref).
		with("compile_specs", list(x.Specs, func(s pte.CompileSpec) *Node {
			return node("CompileSpec").with("key", s.Key).with("value", s.Value)
		}))
}

func chain(c pte.Chain) *Node {
	n := node("Chain").with("instructions", list(c.Instructions, instruction))
	if c.Stacks != nil {
		n.with("stacktrace", list(c.Stacks, func(frames []pte.Frame) *Node {
			return node("FrameList").with("items", list(frames, frame))
		}))
	}
	return n
}

func frame(f pte.Frame) *Node {
	return node("Frame").with("filename", f.File).with("lineno", Scalar(f.Line)).with("name", f.Name).with("context", f.Context)
}

func instruction(in pte.Instruction) *Node {
	n := node(unionMember("InstructionArguments", uint64(in.Kind)))
	switch in.Kind {
	case pte.KernelCall, pte.DelegateCall:
		n.with(tables[n.Type][0].name, Scalar(in.Index)).with("args", scalars(in.Args))
	case pte.MoveCall, pte.JumpFalseCall:
		n.with(tables[n.Type][0].name, Scalar(in.Index)).with(tables[n.Type][1].name, Scalar(in.Target))
	case pte.FreeCall:
		n.with("value_index", Scalar(in.Index))
	}
	return node("Instruction").with("instr_args_type", Scalar(in.Kind)).with("instr_args", n)
}

// valueTypes are the union members of the kinds of values.
var valueTypes = map[tensor.Kind]string{
	tensor.None: "Null", tensor.KindInt: "Int", tensor.KindBool: "Bool", tensor.KindDouble: "Double", tensor.KindTensor: "Tensor",
	tensor.KindString: "String", tensor.KindIntList: "IntList", tensor.KindDoubleList: "DoubleList", tensor.KindBoolList: "BoolList",
	tensor.KindTensorList: "TensorList", tensor.KindOptionalTensorList: "OptionalTensorList",
}

// union is a table with a union's tag and its member.
func union(typ, name string, members []string, n *Node) *Node {
	return node(typ).with(name+"_type", Scalar(slices.Index(members, n.Type))).with(name, n)
}

func (d *describer) value(v pte.Value) *Node {
	n := node(valueTypes[v.Kind])
	switch v.Kind {
	case tensor.KindInt:
		n.with("int_val", Scalar(v.Int))
	case tensor.KindBool:
		n.with("bool_val", boolean(v.Bool))
	case tensor.KindDouble:
		n.with("double_val", Scalar(math.Float64bits(v.Double)))
	case tensor.KindString:
		n.with("string_val", v.Str)
	case tensor.KindDoubleList:
		n.with("items", doubles(v.Doubles))
	case tensor.KindBoolList:
		n.with("items", booleans(v.Bools))
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		n.with("items", scalars(v.Items))
	case tensor.KindTensor:
		d.tensor(n, v.Tensor)
	}
	return union("EValue", "val", unions["KernelTypes"], n)
}

func boolean(b bool) Scalar {
	if b {
		return 1
	}
	return 0
}

func booleans(v []bool) []Scalar {
	out := make([]Scalar, len(v))
	for i, b := range v {
		out[i] = boolean(b)
	}
	return out
}

func doubles(v []float64) []Scalar {
	out := make([]Scalar, len(v))
	for i, x := range v {
		out[i] = Scalar(math.Float64bits(x))
	}
	return out
}

// shape sets the fields that every table of a tensor has. A nil dim order is left out.
func shape(n *Node, d tensor.DType, sizes []int, order []uint8) *Node {
	if order != nil {
		n.with("dim_order", bytes.Clone(order))
	}
	return n.with("scalar_type", Scalar(d)).with("sizes", scalars(sizes))
}

func (d *describer) tensor(n *Node, t *pte.Tensor) {
	shape(n, t.DType, t.Sizes, t.DimOrder).with("shape_dynamism", Scalar(t.Dynamism))
	planned := t.Storage == pte.Planned || t.Storage == pte.PlannedInit || t.Storage == pte.ExternalPlanned
	if planned {
		n.with("allocation_info", node("AllocationDetails").with("memory_id", Scalar(t.Arena+1)).
			with("memory_offset_low", Scalar(uint32(t.Offset))).with("memory_offset_high", Scalar(t.Offset>>32)))
	}
	switch t.Storage {
	case pte.Constant:
		n.with("data_buffer_idx", d.constants.add(t.Data))
	case pte.PlannedInit:
		n.with("data_buffer_idx", d.initial.add(t.Data))
	}
	external := t.Storage == pte.External || t.Storage == pte.ExternalPlanned
	if external || t.Name != "" || t.Device != 0 {
		n.with("extra_tensor_info", node("ExtraTensorInfo").with("fully_qualified_name", t.Name).
			with("location", boolean(external)).with("device_type", Scalar(t.Device)))
	}
}
