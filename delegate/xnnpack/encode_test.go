package xnnpack

import (
	"encoding/binary"
	"fmt"
	"math"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/etrun-go/etrun/delegate"
)

// encode writes a graph as a payload: the inverse of readGraph for graphs without
// repairs. Value v gets the id v+100, constants lie inside the payload.
func encode(g *graph) []byte { return encodeNamed(g, nil) }

// encodeNamed is encode with the constants in named, instead of inside the payload,
// unless it is nil.
func encodeNamed(g *graph, named map[string][]byte) []byte {
	w := &writer{b: flatbuffers.NewBuilder(1024), constants: make([]byte, 16), named: named}
	w.places = append(w.places, [2]uint64{})
	var values, nodes []flatbuffers.UOffsetT
	for v := range g.Values {
		values = append(values, w.value(g, v))
	}
	for i := range g.Nodes {
		nodes = append(nodes, w.node(&g.Nodes[i]))
	}
	var places []flatbuffers.UOffsetT
	for i, p := range w.places {
		key := flatbuffers.UOffsetT(0)
		if named != nil && i > 0 {
			key = w.b.CreateString(constantKey(i))
		}
		places = append(places, w.table(func(t *tableWriter) {
			t.u64(0, p[0])
			t.u64(1, p[1])
			if key != 0 {
				t.ref(2, key)
			}
		}))
	}
	nodeList, valueList, placeList := w.offsets(nodes), w.offsets(values), w.offsets(places)
	root := w.table(func(t *tableWriter) {
		t.ref(1, nodeList)
		t.ref(2, valueList)
		t.u32(3, uint32(len(g.Args)))
		t.ref(8, placeList)
	})
	w.b.FinishWithFileIdentifier(root, []byte(g.Version))
	return assemblePayload(w.b.FinishedBytes(), w.constants)
}

// assemblePayload puts the header in front of a FlatBuffer and constants.
func assemblePayload(flat, constants []byte) []byte {
	le := binary.LittleEndian
	head := append([]byte{0, 0, 0, 0}, headerMagic...)
	head = le.AppendUint16(head, headerSize)
	head = le.AppendUint32(head, 32)
	head = le.AppendUint32(head, uint32(len(flat)))
	at := (32 + len(flat) + 15) &^ 15
	head = le.AppendUint32(head, uint32(at))
	head = le.AppendUint64(head, uint64(len(constants)))
	out := make([]byte, at, at+len(constants))
	copy(out, head)
	copy(out[32:], flat)
	return append(out, constants...)
}

type writer struct {
	b         *flatbuffers.Builder
	constants []byte
	places    [][2]uint64
	named     map[string][]byte
}

// constantKey is the name of a payload's i-th constant among named data.
func constantKey(i int) string { return fmt.Sprint("constant ", i) }

// tableWriter sets the fields of a table. References are made before.
type tableWriter struct {
	b *flatbuffers.Builder
}

func (t *tableWriter) u8(id int, x uint8)                 { t.b.PrependUint8(x); t.b.Slot(id) }
func (t *tableWriter) u16(id int, x uint16)               { t.b.PrependUint16(x); t.b.Slot(id) }
func (t *tableWriter) u32(id int, x uint32)               { t.b.PrependUint32(x); t.b.Slot(id) }
func (t *tableWriter) u64(id int, x uint64)               { t.b.PrependUint64(x); t.b.Slot(id) }
func (t *tableWriter) f32(id int, x float32)              { t.b.PrependFloat32(x); t.b.Slot(id) }
func (t *tableWriter) ref(id int, x flatbuffers.UOffsetT) { t.b.PrependUOffsetT(x); t.b.Slot(id) }

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

func (w *writer) numbers(list []int) flatbuffers.UOffsetT {
	w.b.StartVector(4, len(list), 4)
	for i := len(list) - 1; i >= 0; i-- {
		w.b.PrependUint32(uint32(list[i]))
	}
	return w.b.EndVector(len(list))
}

// constant stores bytes and returns their number.
func (w *writer) constant(data []byte) uint32 {
	if w.named != nil {
		w.named[constantKey(len(w.places))] = data
		w.places = append(w.places, [2]uint64{math.MaxUint64, uint64(len(data))})
		return uint32(len(w.places) - 1)
	}
	at := len(w.constants)
	w.constants = append(w.constants, data...)
	for len(w.constants)%16 != 0 {
		w.constants = append(w.constants, 0)
	}
	w.places = append(w.places, [2]uint64{uint64(at), uint64(len(data))})
	return uint32(len(w.places) - 1)
}

func (w *writer) value(g *graph, v int) flatbuffers.UOffsetT {
	x := &g.Values[v]
	dims := w.numbers(x.Shape.dims())
	buffer := uint32(0)
	if x.isConst() {
		buffer = w.constant(x.Data)
	}
	quantTag, quant := w.quant(x)
	fields := w.table(func(t *tableWriter) {
		t.u16(0, uint16(x.Datatype))
		t.u32(1, uint32(x.Shape.rank))
		t.ref(2, dims)
		t.u32(3, buffer)
		if x.Arg != none {
			t.u32(4, uint32(x.Arg))
		}
		t.u32(5, valueFlags(x))
		t.u32(6, uint32(v+100))
	})
	if quantTag == 0 {
		return w.table(func(t *tableWriter) { t.u8(0, tensorValue); t.ref(1, fields) })
	}
	body := w.table(func(t *tableWriter) { t.ref(0, fields); t.u8(1, quantTag); t.ref(2, quant) })
	return w.table(func(t *tableWriter) { t.u8(0, quantizedValue); t.ref(1, body) })
}

func valueFlags(x *value) (flags uint32) {
	if x.Input {
		flags |= 1
	}
	if x.Output {
		flags |= 2
	}
	return flags
}

func (w *writer) quant(x *value) (uint8, flatbuffers.UOffsetT) {
	q := &x.Quant
	switch x.Datatype.info().quant {
	case perTensor:
		return perTensorQuant, w.table(func(t *tableWriter) { t.f32(0, q.Scale); t.u32(1, uint32(q.ZeroPoint)) })
	case perToken:
		return perTokenQuant, w.table(func(t *tableWriter) { t.u32(0, uint32(q.Nonbatch)) })
	case perChannel:
		w.b.StartVector(4, len(q.Scales), 4)
		for i := len(q.Scales) - 1; i >= 0; i-- {
			w.b.PrependFloat32(q.Scales[i])
		}
		scales := w.b.EndVector(len(q.Scales))
		return perChannelQuant, w.table(func(t *tableWriter) { t.ref(0, scales); t.u32(1, uint32(q.ChannelDim)) })
	case perGroup:
		var data []byte
		for _, s := range q.Blocks {
			data = binary.LittleEndian.AppendUint16(data, s)
		}
		buffer := w.constant(data)
		return perGroupQuant, w.table(func(t *tableWriter) {
			t.u32(1, uint32(q.ChannelDim))
			t.u32(2, uint32(q.GroupSize))
			t.u32(4, buffer)
			t.u32(5, uint32(len(q.Blocks)))
		})
	}
	return 0, 0
}

// encodedID is the id of value v in payloads made by encode.
func encodedID(v int) uint32 {
	if v == none {
		return noValue
	}
	return uint32(v + 100)
}

func (w *writer) node(n *node) flatbuffers.UOffsetT {
	body := w.nodeBody(n)
	bounds := flatbuffers.UOffsetT(0)
	if n.Min > -inf || n.Max < inf {
		bounds = w.table(func(t *tableWriter) { t.f32(0, n.Min); t.f32(1, n.Max) })
	}
	return w.table(func(t *tableWriter) {
		t.u8(0, n.Type.tag)
		t.ref(1, body)
		t.u32(2, n.DebugHandle)
		if bounds != 0 {
			t.ref(3, bounds)
		}
	})
}

// nodeBody writes the fields that a node's type has, in the schema's order.
func (w *writer) nodeBody(n *node) flatbuffers.UOffsetT {
	var ids []uint32
	for _, v := range append(append([]int{}, n.In...), n.Out...) {
		ids = append(ids, encodedID(v))
	}
	fields := func(from int, t *tableWriter, list ...uint32) {
		for i, x := range list {
			t.b.PrependUint32(x) // stored even if it is the default
			t.b.Slot(from + i)
		}
	}
	var dims []flatbuffers.UOffsetT
	for _, list := range n.dimLists() {
		dims = append(dims, w.numbers(*list))
	}
	g := n.geometry()
	u := func(list ...int) (out []uint32) {
		for _, x := range list {
			out = append(out, uint32(x))
		}
		return out
	}
	return w.table(func(t *tableWriter) {
		switch n.Type.name {
		case "Conv2d", "DepthwiseConv2d", "ConvTranspose2d":
			fields(0, t, u(g.top, g.right, g.bottom, g.left, g.kernelH, g.kernelW, g.strideH, g.strideW, g.dilationH, g.dilationW,
				g.groupIn, g.groupOut, g.groups, g.adjustH, g.adjustW)...)
			fields(15, t, append(ids, n.Flags)...)
		case "AvgPooling2d", "MaxPooling2d":
			fields(0, t, u(g.top, g.right, g.bottom, g.left, g.kernelH, g.kernelW, g.strideH, g.strideW, g.dilationH, g.dilationW)...)
			fields(10, t, append(ids, n.Flags)...)
		case "ArgMaxPooling2d":
			fields(0, t, u(g.top, g.right, g.bottom, g.left, g.kernelH, g.kernelW)...)
			fields(6, t, append(ids, n.Flags)...)
		case "StaticTranspose", "StaticReshape":
			fields(0, t, uint32(len(*n.dimLists()[0])))
			t.ref(1, dims[0])
			fields(2, t, append(ids, n.Flags)...)
		case "StaticSlice":
			fields(0, t, uint32(len(*n.dimLists()[0])))
			t.ref(1, dims[0])
			t.ref(2, dims[1])
			fields(3, t, append(ids, n.Flags)...)
		case "StaticConstantPad":
			t.ref(0, dims[0])
			t.ref(1, dims[1])
			t.f32(2, params[padParams](n).value)
			fields(3, t, append(ids, n.Flags)...)
		case "StaticResizeBilinear2D":
			p := params[resizeParams](n)
			fields(0, t, uint32(p.height), uint32(p.width))
			fields(2, t, append(ids, n.Flags)...)
		case "LeakyReLU", "ELU":
			t.f32(0, params[scalarParams](n).value)
			fields(1, t, append(ids, n.Flags)...)
		case "Concatenate2", "Concatenate3", "Concatenate4", "Concatenate5":
			fields(0, t, uint32(int32(params[concatenateParams](n).axis)))
			in := ids[:len(n.In)]
			fields(1, t, in[:min(4, len(in))]...)
			fields(5, t, ids[len(n.In)], n.Flags)
			if len(in) == 5 {
				fields(7, t, in[4])
			}
		default:
			fields(0, t, append(ids, n.Flags)...)
		}
	})
}

// readGraph reads a payload of which the program says nothing.
func readGraph(data []byte, named delegate.NamedData) (*graph, error) {
	return readPayload(&delegate.Payload{Data: data, Named: named}, true)
}
