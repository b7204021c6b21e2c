package ptetest

import (
	"bytes"
	"github.com/etrun-go/etrun/runtime/pte/tree"
	"maps"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Layout selects how Write lays out a program.
type Layout struct {
	// Inline puts constants and delegate data into the FlatBuffer, as the first exporters did.
	// Named data and initial state are in segments in any case.
	Inline bool
	// OldHeader writes the extended header of 24 bytes, without segment_data_size.
	OldHeader bool
}

// Write writes a program. It does not check the description: kinds, indexes, sizes and bytes are
// written as given.
func Write(p *pte.Program, layout Layout) []byte { return Describe(p, layout).Bytes() }

// Describe returns the file of a program, before it is written.
func Describe(p *pte.Program, layout Layout) *File {
	d := &describer{layout: layout}
	d.segment() // the constants', index 0
	root := tree.New("Program").With("version", Scalar(p.Version)).With("execution_plan", list(p.Methods, d.method))
	d.constantTables(root)
	if len(p.Named) > 0 {
		keys := slices.Sorted(maps.Keys(p.Named))
		root.With("named_data", list(keys, func(key string) *Node {
			return tree.New("NamedData").With("key", key).With("segment_index", d.add(p.Named[key]))
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

// segments are the byte ranges after the FlatBuffer.
type segments struct{ list [][]byte }

// segment adds an empty segment and returns its index.
func (s *segments) segment() int {
	s.list = append(s.list, nil)
	return len(s.list) - 1
}

// add adds a segment and returns its index.
func (s *segments) add(b []byte) Scalar {
	i := s.segment()
	s.list[i] = b
	return Scalar(i)
}

// lay joins the segments and lists them in the root.
func (s *segments) lay(root *Node) []byte {
	var tail []byte
	root.With("segments", list(s.list, func(b []byte) *Node {
		tail = tree.Pad(tail, tree.SegmentAlign)
		off := len(tail)
		tail = append(tail, b...)
		return tree.New("DataSegment").With("offset", Scalar(off)).With("size", Scalar(len(b)))
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

// join concatenates the pieces and returns their offsets, including the placeholder's.
func (p *pieces) join() (data []byte, offsets []Scalar) {
	offsets = []Scalar{0}
	for _, b := range p.list {
		data = tree.Pad(data, max(p.align, 1))
		offsets = append(offsets, Scalar(len(data)))
		data = append(data, b...)
	}
	return data, offsets
}

func buffer(b []byte) *Node { return tree.New("Buffer").With("storage", b) }

// constantTables writes constants, initial state and inline delegate data.
func (d *describer) constantTables(root *Node) {
	if d.layout.Inline {
		root.With("constant_buffer", append([]*Node{buffer(nil)}, list(d.constants.list, buffer)...))
	} else {
		d.constants.align = 16
		data, offsets := d.constants.join()
		d.list[0] = data
		root.With("constant_segment", tree.New("SubsegmentOffsets").With("segment_index", Scalar(0)).With("offsets", offsets))
	}
	if len(d.initial.list) > 0 {
		data, offsets := d.initial.join()
		root.With("mutable_data_segments", []*Node{tree.New("SubsegmentOffsets").With("segment_index", d.add(data)).With("offsets", offsets)})
	}
	if d.blobs != nil {
		root.With("backend_delegate_data", d.blobs)
	}
}

func (d *describer) method(m pte.Method) *Node {
	sizes, devices := []int64{0}, []*Node{}
	for i, a := range m.Arenas {
		sizes = append(sizes, a.Size)
		if a.Device != 0 || a.DeviceIndex != 0 {
			devices = append(devices, tree.New("NonConstBufferDevice").With("buffer_idx", Scalar(i+1)).
				With("device_type", Scalar(a.Device)).With("device_index", Scalar(a.DeviceIndex)))
		}
	}
	n := tree.New("ExecutionPlan").With("name", m.Name).
		With("container_meta_type", tree.New("ContainerMetadata").With("encoded_inp_str", m.InSpec).With("encoded_out_str", m.OutSpec)).
		With("values", list(m.Values, d.value)).
		With("inputs", tree.Scalars(m.Inputs)).With("outputs", tree.Scalars(m.Outputs)).
		With("chains", list(m.Chains, chain)).
		With("operators", list(m.Operators, operator)).
		With("delegates", list(m.Delegates, d.delegate)).
		With("non_const_buffer_sizes", tree.Scalars(sizes))
	if len(devices) > 0 {
		n.With("non_const_buffer_device", devices)
	}
	return n
}

// list returns a node for each element.
func list[T any](s []T, f func(T) *Node) []*Node {
	out := make([]*Node, len(s))
	for i, x := range s {
		out[i] = f(x)
	}
	return out
}

func operator(o pte.Operator) *Node {
	return tree.New("Operator").With("name", o.Name).With("overload", o.Overload)
}

func (d *describer) delegate(x pte.Delegate) *Node {
	ref := tree.New("BackendDelegateDataReference")
	if d.layout.Inline {
		ref.With("location", Scalar(0)).With("index", Scalar(len(d.blobs)))
		d.blobs = append(d.blobs, buffer(x.Data))
	} else {
		ref.With("location", Scalar(1)).With("index", d.add(x.Data))
	}
	return tree.New("BackendDelegate").With("id", x.ID).With("processed", ref).
		With("compile_specs", list(x.Specs, func(s pte.CompileSpec) *Node {
			return tree.New("CompileSpec").With("key", s.Key).With("value", s.Value)
		}))
}

func chain(c pte.Chain) *Node {
	n := tree.New("Chain").With("instructions", list(c.Instructions, instruction))
	if c.Stacks != nil {
		n.With("stacktrace", list(c.Stacks, func(frames []pte.Frame) *Node {
			return tree.New("FrameList").With("items", list(frames, frame))
		}))
	}
	return n
}

func frame(f pte.Frame) *Node {
	return tree.New("Frame").With("filename", f.File).With("lineno", Scalar(f.Line)).With("name", f.Name).With("context", f.Context)
}

func instruction(in pte.Instruction) *Node {
	n := tree.New(tree.UnionMember("InstructionArguments", uint64(in.Kind)))
	switch in.Kind {
	case pte.KernelCall, pte.DelegateCall:
		n.With(tree.Tables[n.Type][0].Name, Scalar(in.Index)).With("args", tree.Scalars(in.Args))
	case pte.MoveCall, pte.JumpFalseCall:
		n.With(tree.Tables[n.Type][0].Name, Scalar(in.Index)).With(tree.Tables[n.Type][1].Name, Scalar(in.Target))
	case pte.FreeCall:
		n.With("value_index", Scalar(in.Index))
	}
	return tree.New("Instruction").With("instr_args_type", Scalar(in.Kind)).With("instr_args", n)
}

// valueTypes are the union members of the kinds of values.
var valueTypes = map[tensor.Kind]string{
	tensor.None: "Null", tensor.KindInt: "Int", tensor.KindBool: "Bool", tensor.KindDouble: "Double", tensor.KindTensor: "Tensor",
	tensor.KindString: "String", tensor.KindIntList: "IntList", tensor.KindDoubleList: "DoubleList", tensor.KindBoolList: "BoolList",
	tensor.KindTensorList: "TensorList", tensor.KindOptionalTensorList: "OptionalTensorList",
}

// union returns a table with a union's tag and its member.
func union(typ, name string, members []string, n *Node) *Node {
	return tree.New(typ).With(name+"_type", Scalar(slices.Index(members, n.Type))).With(name, n)
}

func (d *describer) value(v pte.Value) *Node {
	n := tree.New(valueTypes[v.Kind])
	switch v.Kind {
	case tensor.KindInt:
		n.With("int_val", Scalar(v.Int))
	case tensor.KindBool:
		n.With("bool_val", boolean(v.Bool))
	case tensor.KindDouble:
		n.With("double_val", Scalar(math.Float64bits(v.Double)))
	case tensor.KindString:
		n.With("string_val", v.Long.Str)
	case tensor.KindDoubleList:
		n.With("items", doubles(v.Long.Doubles))
	case tensor.KindBoolList:
		n.With("items", booleans(v.Long.Bools))
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		n.With("items", tree.Scalars(v.Items))
	case tensor.KindTensor:
		d.tensor(n, v.Tensor)
	}
	return union("EValue", "val", tree.Unions["KernelTypes"], n)
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

// shape sets the fields common to all tables of tensors. A nil dim order is omitted.
func shape(n *Node, d tensor.DType, sizes []int, order []uint8) *Node {
	if order != nil {
		n.With("dim_order", bytes.Clone(order))
	}
	return n.With("scalar_type", Scalar(d)).With("sizes", tree.Scalars(sizes))
}

func (d *describer) tensor(n *Node, t *pte.Tensor) {
	shape(n, t.DType, t.Sizes, t.DimOrder).With("shape_dynamism", Scalar(t.Dynamism))
	planned := t.Storage == pte.Planned || t.Storage == pte.PlannedInit || t.Storage == pte.ExternalPlanned
	if planned {
		n.With("allocation_info", tree.New("AllocationDetails").With("memory_id", Scalar(t.Arena+1)).
			With("memory_offset_low", Scalar(uint32(t.Offset))).With("memory_offset_high", Scalar(t.Offset>>32)))
	}
	switch t.Storage {
	case pte.Constant:
		n.With("data_buffer_idx", d.constants.add(t.Data))
	case pte.PlannedInit:
		n.With("data_buffer_idx", d.initial.add(t.Data))
	}
	external := t.Storage == pte.External || t.Storage == pte.ExternalPlanned
	if external || t.Name != "" || t.Device != 0 {
		n.With("extra_tensor_info", tree.New("ExtraTensorInfo").With("fully_qualified_name", t.Name).
			With("location", boolean(external)).With("device_type", Scalar(t.Device)))
	}
}
