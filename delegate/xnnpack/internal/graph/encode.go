package graph

import (
	"encoding/binary"
	"math"
	"slices"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// graphVersion is the version that exporters write into every graph.
const graphVersion = "0"

// Payload encodes a graph as a payload, the inverse of reading one. Value v has the id first+v.
// Constants that were found under a key are referenced by it; others are stored in the payload.
//
// Larger constants are aligned to cache lines, like those that are copied at load: engines read filters of depthwise convolutions
// and operands of sums where they are. Payloads start at cache lines in files.
func (g *Graph) Payload(first uint32) []byte { return slices.Concat(g.Pieces(first)...) }

// Pieces is Payload in parts, which share the memory of the constants.
func (g *Graph) Pieces(first uint32) [][]byte {
	flat, constants := g.encode(first, constantAlign)
	if before := tensor.Alignment - constantsAt(flat)%tensor.Alignment; before != constantAlign && constants.size > constantAlign {
		flat, constants = g.encode(first, before) // only offsets change
	}
	return assemblePayload(flat, constants)
}

// encode returns the FlatBuffer of a graph, and its constants behind a number of bytes.
func (g *Graph) encode(first uint32, before int) (flat []byte, constants pieces) {
	w := &writer{b: flatbuffers.NewBuilder(1024), first: first, constants: pieces{size: before}, before: before, places: make([]constantPlace, 1),
		stored: make(map[bytesAt]uint32), lists: make(map[string]flatbuffers.UOffsetT)}
	var values, nodes, places []flatbuffers.UOffsetT
	for v := range g.Values {
		values = append(values, w.value(v, &g.Values[v]))
	}
	for i := range g.Nodes {
		nodes = append(nodes, w.node(&g.Nodes[i]))
	}
	for i := range w.places {
		places = append(places, w.place(&w.places[i]))
	}
	nodeList, valueList, placeList := w.offsets(nodes), w.offsets(values), w.offsets(places)
	inputs := w.ids(g.externals(func(x *Value) bool { return x.Input }))
	outputs := w.ids(g.externals(func(x *Value) bool { return x.Output }))
	version := w.b.CreateString(graphVersion)
	root := w.table(func(t *tableWriter) {
		t.ref(0, version)
		t.ref(1, nodeList)
		t.ref(2, valueList)
		t.u32(3, uint32(len(g.Args)))
		t.ref(4, inputs)
		t.ref(5, outputs)
		t.ref(8, placeList)
	})
	w.b.FinishWithFileIdentifier(root, []byte(g.Version))
	return w.b.FinishedBytes(), w.constants
}

// externals lists the arguments for which is returns true, by external id.
func (g *Graph) externals(is func(*Value) bool) (list []int) {
	for v := range g.Values {
		if is(&g.Values[v]) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(v, w int) int { return g.Values[v].Arg - g.Values[w].Arg })
	return list
}

// constantAlign is the alignment of constants in a payload, in bytes. Those of largeConstant bytes and more are aligned to cache lines.
const (
	constantAlign = 16
	largeConstant = 256
)

// flatbufferAt is the offset of the FlatBuffer in a payload.
const flatbufferAt = (headerSize + constantAlign - 1) / constantAlign * constantAlign

// constantsAt returns the offset of the constants in a payload.
func constantsAt(flat []byte) int { return RoundUp(flatbufferAt+len(flat), constantAlign) }

// assemblePayload returns a header followed by a FlatBuffer and constants.
func assemblePayload(flat []byte, constants pieces) [][]byte {
	le, start := binary.LittleEndian, flatbufferAt
	head := append([]byte{0, 0, 0, 0}, headerMagic...)
	head = le.AppendUint16(head, headerSize)
	head = le.AppendUint32(head, uint32(start))
	head = le.AppendUint32(head, uint32(len(flat)))
	at := constantsAt(flat)
	head = le.AppendUint32(head, uint32(at))
	head = le.AppendUint64(head, uint64(constants.size))
	out := make([]byte, at)
	copy(out, head)
	copy(out[start:], flat)
	list, end := [][]byte{out}, 0
	for _, c := range constants.list {
		list = append(list, make([]byte, c.at-end), c.data)
		end = c.at + len(c.data)
	}
	return append(list, make([]byte, constants.size-end))
}

// pieces are the constants of a payload, which are not copied.
type pieces struct {
	list []piece
	size int
}

type piece struct {
	at   int
	data []byte
}

// writer builds the FlatBuffer of a payload, and its constants.
type writer struct {
	b         *flatbuffers.Builder
	first     uint32 // id of value 0
	constants pieces
	before    int // bytes before the first constant, behind which cache lines start
	places    []constantPlace
	stored    map[bytesAt]uint32 // constants in the payload
	lists     map[string]flatbuffers.UOffsetT
}

// bytesAt identifies a slice.
type bytesAt struct {
	first *byte
	n     int
}

func span(data []byte) (s bytesAt) {
	if len(data) > 0 {
		s = bytesAt{&data[0], len(data)}
	}
	return s
}

// tableWriter sets the fields of a table. Referenced objects must have been written before.
type tableWriter struct {
	b *flatbuffers.Builder
}

func (t *tableWriter) u8(id int, x uint8)                 { t.b.PrependUint8(x); t.b.Slot(id) }
func (t *tableWriter) u16(id int, x uint16)               { t.b.PrependUint16(x); t.b.Slot(id) }
func (t *tableWriter) u32(id int, x uint32)               { t.b.PrependUint32(x); t.b.Slot(id) }
func (t *tableWriter) u64(id int, x uint64)               { t.b.PrependUint64(x); t.b.Slot(id) }
func (t *tableWriter) f32(id int, x float32)              { t.b.PrependFloat32(x); t.b.Slot(id) }
func (t *tableWriter) ref(id int, x flatbuffers.UOffsetT) { t.b.PrependUOffsetT(x); t.b.Slot(id) }

// u32NotZero writes a field whose default is 0.
func (t *tableWriter) u32NotZero(id int, x uint32) {
	if x != 0 {
		t.u32(id, x)
	}
}

func (w *writer) table(fill func(*tableWriter)) flatbuffers.UOffsetT {
	w.b.StartObject(24)
	fill(&tableWriter{w.b})
	return w.b.EndObject()
}

func (w *writer) offsets(list []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	w.b.StartVector(4, len(list), 4)
	for i := len(list) - 1; i >= 0; i-- {
		w.b.PrependUOffsetT(list[i])
	}
	return w.b.EndVector(len(list))
}

// numbers writes a list. Equal lists are written once: most values of a graph have the sizes of another one.
func (w *writer) numbers(list []int) flatbuffers.UOffsetT {
	var key []byte
	for _, x := range list {
		key = binary.LittleEndian.AppendUint32(key, uint32(x))
	}
	at, ok := w.lists[string(key)]
	if !ok {
		at = w.newList(list)
		w.lists[string(key)] = at
	}
	return at
}

func (w *writer) newList(list []int) flatbuffers.UOffsetT {
	w.b.StartVector(4, len(list), 4)
	for i := len(list) - 1; i >= 0; i-- {
		w.b.PrependUint32(uint32(list[i]))
	}
	return w.b.EndVector(len(list))
}

// id returns the payload's id of a value.
func (w *writer) id(v int) uint32 {
	if v == None {
		return NoValue
	}
	return w.first + uint32(v)
}

func (w *writer) ids(values []int) flatbuffers.UOffsetT {
	list := make([]int, len(values))
	for i, v := range values {
		list[i] = int(w.id(v))
	}
	return w.numbers(list)
}

func (w *writer) place(p *constantPlace) flatbuffers.UOffsetT {
	key := flatbuffers.UOffsetT(0)
	if p.Key != "" {
		key = w.b.CreateString(p.Key)
	}
	return w.table(func(t *tableWriter) {
		t.u64(0, p.offset)
		t.u64(1, p.size)
		if key != 0 {
			t.ref(2, key)
		}
	})
}

// constant stores bytes, or only their key if there is one, and returns the constant's index.
func (w *writer) constant(data []byte, key string) uint32 {
	p := constantPlace{math.MaxUint64, uint64(len(data)), key}
	if i, ok := w.stored[span(data)]; ok && key == "" {
		return i
	}
	if key == "" {
		w.stored[span(data)] = uint32(len(w.places))
		if len(data) >= largeConstant {
			w.pad(tensor.Alignment)
		}
		p.offset = uint64(w.constants.size)
		w.constants.list = append(w.constants.list, piece{w.constants.size, data})
		w.constants.size += len(data)
		w.pad(constantAlign)
	}
	w.places = append(w.places, p)
	return uint32(len(w.places) - 1)
}

// pad ends the constants at a multiple of n bytes behind those before the first.
func (w *writer) pad(n int) {
	w.constants.size = w.before + RoundUp(w.constants.size-w.before, n)
}

func (w *writer) value(v int, x *Value) flatbuffers.UOffsetT {
	dims := w.numbers(x.Shape.Dims())
	buffer := uint32(0)
	if x.IsConst() {
		buffer = w.constant(x.Data, x.Found.keyOf(x.Data))
	}
	quantTag, quant := w.quant(x)
	fields := w.table(func(t *tableWriter) {
		t.u16(0, uint16(x.Datatype))
		t.u32(1, uint32(x.Shape.Rank))
		t.ref(2, dims)
		t.u32NotZero(3, buffer)
		t.u32(4, externalID(x))
		t.u32NotZero(5, valueFlags(x))
		t.u32(6, w.id(v))
	})
	if quantTag == 0 {
		return w.table(func(t *tableWriter) { t.u8(0, tensorValue); t.ref(1, fields) })
	}
	body := w.table(func(t *tableWriter) { t.ref(0, fields); t.u8(1, quantTag); t.ref(2, quant) })
	return w.table(func(t *tableWriter) { t.u8(0, quantizedValue); t.ref(1, body) })
}

// externalID returns the index of the argument that a value is.
func externalID(x *Value) uint32 {
	if x.Arg == None {
		return NoValue
	}
	return uint32(x.Arg)
}

func valueFlags(x *Value) (flags uint32) {
	if x.Input {
		flags |= 1
	}
	if x.Output {
		flags |= 2
	}
	return flags
}

func (w *writer) quant(x *Value) (uint8, flatbuffers.UOffsetT) {
	q := &x.Quant
	switch x.Datatype.Info().Quant {
	case PerTensor:
		return perTensorQuant, w.table(func(t *tableWriter) { t.f32(0, q.Scale); t.u32(1, uint32(q.ZeroPoint)) })
	case PerToken:
		return perTokenQuant, w.table(func(t *tableWriter) { t.u32(0, uint32(q.Nonbatch)) })
	case PerChannel:
		buffer, none := w.constant(tensor.BytesOf(q.Scales), ""), w.numbers(nil)
		return perChannelQuant, w.table(func(t *tableWriter) {
			t.ref(0, none) // runtimes read the list before they see that the scales are a constant
			t.u32(1, uint32(q.ChannelDim))
			t.u32(2, buffer)
			t.u32(3, uint32(len(q.Scales)))
		})
	case PerGroup:
		buffer, none := w.constant(tensor.BytesOf(q.Blocks), ""), w.numbers(nil)
		return perGroupQuant, w.table(func(t *tableWriter) {
			t.ref(0, none)
			t.u32(1, uint32(q.ChannelDim))
			t.u32(2, uint32(q.GroupSize))
			t.u32(4, buffer)
			t.u32(5, uint32(len(q.Blocks)))
		})
	}
	return 0, 0
}

func (w *writer) node(n *Node) flatbuffers.UOffsetT {
	body := w.nodeBody(n)
	bounds := flatbuffers.UOffsetT(0)
	if n.Min > -Inf || n.Max < Inf {
		bounds = w.table(func(t *tableWriter) { t.f32(0, n.Min); t.f32(1, n.Max) })
	}
	return w.table(func(t *tableWriter) {
		t.u8(0, n.Type.Tag)
		t.ref(1, body)
		t.u32(2, n.DebugHandle)
		if bounds != 0 {
			t.ref(3, bounds)
		}
	})
}

// nodeField sets one field of a node's body. Except for flags, the field is stored even if it has its default value.
type nodeField func(t *tableWriter, id int)

func numberField(x uint32) nodeField { return func(t *tableWriter, id int) { t.u32(id, x) } }
func floatField(x float32) nodeField { return func(t *tableWriter, id int) { t.f32(id, x) } }
func listField(x flatbuffers.UOffsetT) nodeField {
	return func(t *tableWriter, id int) { t.ref(id, x) }
}
func absentField(*tableWriter, int)               {}
func (w *writer) valueField(v int) nodeField      { return numberField(w.id(v)) }
func (w *writer) sizesField(list []int) nodeField { return listField(w.numbers(list)) }
func (w *writer) countedFields(l []int) []nodeField {
	return []nodeField{numberField(uint32(len(l))), w.sizesField(l)}
}

// nodeBody writes the fields of a node's type in the schema's order: parameters, operands, outputs,
// flags. The fifth operand of a concatenation is last.
func (w *writer) nodeBody(n *Node) flatbuffers.UOffsetT {
	fields, in := w.parameters(n), n.In
	_, concatenates := n.Params.(*ConcatenateParams)
	if concatenates {
		in = n.In[:min(4, len(n.In))]
	}
	for _, v := range in {
		fields = append(fields, w.valueField(v))
	}
	for i := len(in); concatenates && i < 4; i++ {
		fields = append(fields, absentField)
	}
	for _, v := range n.Out {
		fields = append(fields, w.valueField(v))
	}
	fields = append(fields, func(t *tableWriter, id int) { t.u32NotZero(id, n.Flags) })
	for _, v := range n.In[len(in):] {
		fields = append(fields, w.valueField(v))
	}
	return w.table(func(t *tableWriter) {
		for id, set := range fields {
			set(t, id)
		}
	})
}

// windowFields is the number of window fields of nodes that are not convolutions.
var windowFields = map[string]int{"AvgPooling2d": 10, "MaxPooling2d": 10, "ArgMaxPooling2d": 6, "GlobalAvgPooling2d": 0}

// parameters returns the fields before the operands.
func (w *writer) parameters(n *Node) (fields []nodeField) {
	switch p := n.Params.(type) {
	case *Window:
		list := []int{p.Top, p.Right, p.Bottom, p.Left, p.KernelH, p.KernelW, p.StrideH, p.StrideW, p.DilationH, p.DilationW,
			p.GroupIn, p.GroupOut, p.Groups, p.AdjustH, p.AdjustW}
		if count, ok := windowFields[n.Type.Name]; ok {
			list = list[:count]
		}
		for _, x := range list {
			fields = append(fields, numberField(uint32(x)))
		}
	case *TransposeParams:
		return w.countedFields(p.Perm)
	case *ReshapeParams:
		return w.countedFields(p.Sizes)
	case *SliceParams:
		return append(w.countedFields(p.Offsets), w.sizesField(p.Sizes))
	case *PadParams:
		return []nodeField{w.sizesField(p.Before), w.sizesField(p.After), floatField(p.Value)}
	case *ResizeParams:
		return []nodeField{numberField(uint32(p.Height)), numberField(uint32(p.Width))}
	case *ScalarParams:
		return []nodeField{floatField(p.Value)}
	case *ConcatenateParams:
		return []nodeField{numberField(uint32(int32(p.Axis)))}
	}
	return fields
}
