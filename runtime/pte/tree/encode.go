package tree

import (
	"encoding/binary"

	flatbuffers "github.com/google/flatbuffers/go"
)

// encoder writes a tree of nodes as a FlatBuffer.
type encoder struct {
	*flatbuffers.Builder
	done map[*Node]flatbuffers.UOffsetT
	// Equal vectors of scalars are written once: most tensors have the sizes and the dim order of another one.
	vectors map[string]flatbuffers.UOffsetT
}

func encode(root *Node, identifier string) []byte {
	e := &encoder{flatbuffers.NewBuilder(1024), map[*Node]flatbuffers.UOffsetT{}, map[string]flatbuffers.UOffsetT{}}
	e.FinishWithFileIdentifier(e.table(root), []byte(identifier))
	return e.FinishedBytes()
}

// table writes a node after everything it refers to.
func (e *encoder) table(n *Node) flatbuffers.UOffsetT {
	if at, ok := e.done[n]; ok {
		return at
	}
	columns := Tables[n.Type]
	refs := make([]flatbuffers.UOffsetT, len(columns))
	for i, c := range columns {
		refs[i] = e.reference(c, n.Fields[c.Name])
	}
	e.StartObject(len(columns))
	for i, c := range columns {
		switch v := n.Fields[c.Name].(type) {
		case nil:
			continue
		case Scalar:
			e.scalar(Width[c.Type], v)
		default:
			e.PrependUOffsetT(refs[i])
		}
		e.Slot(i)
	}
	e.done[n] = e.EndObject()
	return e.done[n]
}

// reference writes the target of a field; it returns 0 for scalars and absent fields.
func (e *encoder) reference(c Column, v any) flatbuffers.UOffsetT {
	switch v := v.(type) {
	case string:
		return e.CreateString(v)
	case []byte:
		return e.bytes(v, ByteAlign[c.Type])
	case []Scalar:
		elem, _ := Element(c.Type)
		return e.vector(v, Width[elem])
	case *Node:
		return e.table(v)
	case []*Node:
		refs := make([]flatbuffers.UOffsetT, len(v))
		for i, n := range v {
			refs[i] = e.table(n)
		}
		return e.CreateVectorOfTables(refs)
	}
	return 0
}

func (e *encoder) bytes(b []byte, align int) flatbuffers.UOffsetT {
	e.StartVector(1, len(b), align)
	for i := len(b) - 1; i >= 0; i-- {
		e.PlaceByte(b[i])
	}
	return e.EndVector(len(b))
}

func (e *encoder) vector(v []Scalar, width int) flatbuffers.UOffsetT {
	key := []byte{byte(width)}
	for _, x := range v {
		key = binary.LittleEndian.AppendUint64(key, uint64(x))
	}
	at, ok := e.vectors[string(key)]
	if !ok {
		at = e.newVector(v, width)
		e.vectors[string(key)] = at
	}
	return at
}

func (e *encoder) newVector(v []Scalar, width int) flatbuffers.UOffsetT {
	e.StartVector(width, len(v), width)
	for i := len(v) - 1; i >= 0; i-- {
		e.scalar(width, v[i])
	}
	return e.EndVector(len(v))
}

func (e *encoder) scalar(width int, v Scalar) {
	switch width {
	case 1:
		e.PrependUint8(uint8(v))
	case 4:
		e.PrependUint32(uint32(v))
	case 8:
		e.PrependUint64(uint64(v))
	}
}
