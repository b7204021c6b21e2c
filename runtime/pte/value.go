package pte

import (
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// values are the readers of values, by tag of union KernelTypes.
var values = [...]struct {
	kind tensor.Kind
	read func(*methodReader, flatbuf.Table) Value
}{
	1: {tensor.None, func(*methodReader, flatbuf.Table) Value { return Value{} }},
	2: {tensor.KindInt, func(_ *methodReader, t flatbuf.Table) Value { return Value{Int: t.Int64(0, "int_val", 0)} }},
	3: {tensor.KindBool, func(_ *methodReader, t flatbuf.Table) Value { return Value{Bool: t.Bool(0, "bool_val", false)} }},
	4: {tensor.KindDouble, func(_ *methodReader, t flatbuf.Table) Value { return Value{Double: t.Float64(0, "double_val", 0)} }},
	5: {tensor.KindTensor, func(m *methodReader, t flatbuf.Table) Value { return Value{Tensor: m.tensor(t)} }},
	6: {tensor.KindString, func(_ *methodReader, t flatbuf.Table) Value {
		return Value{Long: &Long{Str: t.String(0, "string_val")}}
	}},
	7: {tensor.KindIntList, func(m *methodReader, t flatbuf.Table) Value {
		return Value{Items: m.items(t.Vector(0, "items", 8), flatbuf.Vector.Int64, false)}
	}},
	8: {tensor.KindDoubleList, func(_ *methodReader, t flatbuf.Table) Value {
		return Value{Long: &Long{Doubles: flatbuf.Slice(t.Vector(0, "items", 8), flatbuf.Vector.Float64)}}
	}},
	9: {tensor.KindBoolList, func(_ *methodReader, t flatbuf.Table) Value {
		return Value{Long: &Long{Bools: flatbuf.Slice(t.Vector(0, "items", 1), flatbuf.Vector.Bool)}}
	}},
	10: {tensor.KindTensorList, func(m *methodReader, t flatbuf.Table) Value {
		return Value{Items: m.items(t.Vector(0, "items", 4), int32Item, false)}
	}},
	11: {tensor.KindOptionalTensorList, func(m *methodReader, t flatbuf.Table) Value {
		return Value{Items: m.items(t.Vector(0, "items", 4), int32Item, true)}
	}},
}

// value reads an EValue.
func (m *methodReader) value(t flatbuf.Table) (v Value) {
	tag, payload := t.Union(0, "val")
	if checkTag(t, "val_type", "value type", tag, len(values)) {
		v = values[tag].read(m, payload)
		v.Kind = values[tag].kind
	}
	m.next++
	return v
}

// checkTag reports whether the tag of the union whose type is field 0 is known: from 1 to n-1.
func checkTag(t flatbuf.Table, name, what string, tag uint8, n int) bool {
	switch {
	case tag == 0:
		t.Failf(ErrFormat, 0, name, "%s 0 (NONE)", what)
	case int(tag) >= n:
		t.Failf(ErrUnsupported, 0, name, "%s %d, known are 1 to %d", what, tag, n-1)
	default:
		return t.OK()
	}
	return false
}

// listItems is a list whose items are checked later, because they may refer to later values.
type listItems struct {
	value int
	items flatbuf.Vector
}

func int32Item(v flatbuf.Vector, i int) int64 { return int64(v.Int32(i)) }

// items reads the value indices of a list; an item of an optional list may be -1.
func (m *methodReader) items(items flatbuf.Vector, get func(flatbuf.Vector, int) int64, optional bool) []int {
	if items.Len() == 0 || !items.Charge() {
		return nil
	}
	m.lists = append(m.lists, listItems{m.next, items})
	out := m.ints(items.Len())
	for i := range out {
		item := get(items, i)
		if item == -1 && optional {
			out[i] = -1
			continue
		}
		out[i] = m.index(items, i, item)
	}
	return out
}

// allowed are the kinds of values that a list may contain. A slot written by an instruction on
// symbolic integers may contain any scalar, or None, in the file.
var allowed = map[tensor.Kind][]tensor.Kind{
	tensor.KindIntList:            {tensor.KindInt, tensor.None, tensor.KindBool, tensor.KindDouble},
	tensor.KindTensorList:         {tensor.KindTensor},
	tensor.KindOptionalTensorList: {tensor.KindTensor, tensor.None},
}

// checkLists checks the kinds of the lists' items.
func (m *methodReader) checkLists(t flatbuf.Table) {
	for _, l := range m.lists {
		if !t.OK() {
			return
		}
		list := &m.out.Values[l.value]
		want := allowed[list.Kind]
		for i, item := range list.Items {
			if item >= 0 && !slices.Contains(want, m.out.Values[item].Kind) {
				l.items.Failf(ErrFormat, i, "value %d of kind %v, want %v", item, m.out.Values[item].Kind, want[0])
			}
		}
		t.Within("values", l.value)
	}
}
