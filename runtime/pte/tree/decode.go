package tree

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// decoder records unknown fields.
type decoder struct{ unknown map[string]bool }

// table converts a table to a node by its schema.
func (d *decoder) table(typ string, t flatbuf.Table) *Node {
	n := New(typ)
	for id := len(Tables[typ]); id < t.Slots(); id++ {
		if t.Has(id) {
			d.unknown[fmt.Sprintf("field %d of table %s", id, typ)] = true
		}
	}
	for id, c := range Tables[typ] {
		if t.Has(id) {
			n.Fields[c.Name] = d.field(n, t, id, c)
		}
	}
	return n
}

func (d *decoder) field(n *Node, t flatbuf.Table, id int, c Column) any {
	elem, list := Element(c.Type)
	switch {
	case Width[c.Type] > 0:
		return decodeScalar(t, id, c)
	case c.Type == "string":
		return t.String(id, c.Name)
	case ByteAlign[c.Type] > 0:
		if b := t.Bytes(id, c.Name); b != nil {
			return slices.Clip(b)
		}
		return []byte{}
	case list && Width[elem] > 0:
		return decodeVector(t.Vector(id, c.Name, Width[elem]), Width[elem])
	case list:
		return append([]*Node{}, flatbuf.List(t, id, c.Name, func(t flatbuf.Table) *Node { return d.table(elem, t) })...)
	case Unions[c.Type] != nil:
		tag, _ := n.Fields[c.Name+"_type"].(Scalar)
		return d.table(UnionMember(c.Type, uint64(tag)), t.Table(id, c.Name))
	}
	return d.table(c.Type, t.Table(id, c.Name))
}

func decodeScalar(t flatbuf.Table, id int, c Column) Scalar {
	switch Width[c.Type] {
	case 1:
		return Scalar(t.Uint8(id, c.Name, 0))
	case 4:
		return Scalar(t.Uint32(id, c.Name, 0))
	}
	return Scalar(t.Uint64(id, c.Name, 0))
}

func decodeVector(v flatbuf.Vector, width int) []Scalar {
	switch width {
	case 1:
		return Scalars(flatbuf.Slice(v, flatbuf.Vector.Uint8))
	case 4:
		return Scalars(flatbuf.Slice(v, flatbuf.Vector.Int32))
	}
	return Scalars(flatbuf.Slice(v, flatbuf.Vector.Uint64))
}
