package ptetest

import "github.com/etrun-go/etrun/internal/flatbuf"

// decode reads a table into a node by its schema.
func decode(typ string, t flatbuf.Table) *Node {
	n := node(typ)
	for id, c := range tables[typ] {
		if t.Has(id) {
			n.Fields[c.name] = decodeField(n, t, id, c)
		}
	}
	return n
}

func decodeField(n *Node, t flatbuf.Table, id int, c column) any {
	elem, list := element(c.typ)
	switch {
	case width[c.typ] > 0:
		return decodeScalar(t, id, c)
	case c.typ == "string":
		return t.String(id, c.name)
	case byteAlign[c.typ] > 0:
		return append([]byte{}, t.Bytes(id, c.name)...)
	case list && width[elem] > 0:
		return decodeVector(t.Vector(id, c.name, width[elem]), width[elem])
	case list:
		return append([]*Node{}, flatbuf.List(t, id, c.name, func(t flatbuf.Table) *Node { return decode(elem, t) })...)
	case unions[c.typ] != nil:
		tag, _ := n.Fields[c.name+"_type"].(Scalar)
		return decode(unionMember(c.typ, uint64(tag)), t.Table(id, c.name))
	}
	return decode(c.typ, t.Table(id, c.name))
}

func decodeScalar(t flatbuf.Table, id int, c column) Scalar {
	switch width[c.typ] {
	case 1:
		return Scalar(t.Uint8(id, c.name, 0))
	case 4:
		return Scalar(t.Uint32(id, c.name, 0))
	}
	return Scalar(t.Uint64(id, c.name, 0))
}

func decodeVector(v flatbuf.Vector, width int) []Scalar {
	switch width {
	case 1:
		return scalars(flatbuf.Slice(v, flatbuf.Vector.Uint8))
	case 4:
		return scalars(flatbuf.Slice(v, flatbuf.Vector.Int32))
	}
	return scalars(flatbuf.Slice(v, flatbuf.Vector.Uint64))
}
