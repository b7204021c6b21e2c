package pte

import (
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// values are the kinds of values, by tag of union KernelTypes.
var values = [...]struct {
	kind tensor.Kind
	read func(*methodReader, flatbuf.Table, *Value)
}{
	1: {tensor.None, func(*methodReader, flatbuf.Table, *Value) {}},
	2: {tensor.KindInt, func(_ *methodReader, t flatbuf.Table, v *Value) { v.Int = t.Int64(0, "int_val", 0) }},
	3: {tensor.KindBool, func(_ *methodReader, t flatbuf.Table, v *Value) { v.Bool = t.Bool(0, "bool_val", false) }},
	4: {tensor.KindDouble, func(_ *methodReader, t flatbuf.Table, v *Value) { v.Double = t.Float64(0, "double_val", 0) }},
	5: {tensor.KindTensor, func(m *methodReader, t flatbuf.Table, v *Value) { v.Tensor = m.tensor(t) }},
	6: {tensor.KindString, func(_ *methodReader, t flatbuf.Table, v *Value) { v.Str = t.String(0, "string_val") }},
	7: {tensor.KindIntList, (*methodReader).intList},
	8: {tensor.KindDoubleList, func(_ *methodReader, t flatbuf.Table, v *Value) {
		v.Doubles = flatbuf.Slice(t.Vector(0, "items", 8), flatbuf.Vector.Float64)
	}},
	9: {tensor.KindBoolList, func(_ *methodReader, t flatbuf.Table, v *Value) {
		v.Bools = flatbuf.Slice(t.Vector(0, "items", 1), func(v flatbuf.Vector, i int) bool { return v.Uint8(i) != 0 })
	}},
	10: {tensor.KindTensorList, (*methodReader).tensorList},
	11: {tensor.KindOptionalTensorList, (*methodReader).tensorList},
}

// value reads an EValue.
func (m *methodReader) value(t flatbuf.Table) (v Value) {
	tag, payload := t.Union(0, "val")
	if checkTag(t, "val_type", "value type", tag, len(values)) {
		v.Kind = values[tag].kind
		values[tag].read(m, payload, &v)
	}
	m.next++
	return v
}

// checkTag reports that the tag of the union whose type is field 0 is known: from 1
// to n-1.
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

// listItems is a list whose items are yet to be checked: they may name later values.
type listItems struct {
	value int
	items flatbuf.Vector
}

// intList reads the value indexes of an IntList.
func (m *methodReader) intList(t flatbuf.Table, v *Value) {
	items := t.Vector(0, "items", 8)
	m.items(v, items, func(i int) int { return m.index(items, i, items.Int64(i)) })
}

// tensorList reads the value indexes of a TensorList or OptionalTensorList.
func (m *methodReader) tensorList(t flatbuf.Table, v *Value) {
	items := t.Vector(0, "items", 4)
	optional := v.Kind == tensor.KindOptionalTensorList
	m.items(v, items, func(i int) int {
		if items.Int32(i) == -1 && optional {
			return -1
		}
		return m.index(items, i, int64(items.Int32(i)))
	})
}

func (m *methodReader) items(v *Value, items flatbuf.Vector, read func(i int) int) {
	if items.Len() == 0 || !items.Charge() {
		return
	}
	v.Items = m.ints(items.Len())
	for i := range v.Items {
		v.Items[i] = read(i)
	}
	m.lists = append(m.lists, listItems{m.next, items})
}

// allowed are the kinds of values that a list may name. A slot that an instruction
// of symbolic integers writes holds any scalar, or None, in the file.
var allowed = map[tensor.Kind][]tensor.Kind{
	tensor.KindIntList:            {tensor.KindInt, tensor.None, tensor.KindBool, tensor.KindDouble},
	tensor.KindTensorList:         {tensor.KindTensor},
	tensor.KindOptionalTensorList: {tensor.KindTensor, tensor.None},
}

// checkLists compares the kinds of the lists' items with what the lists may hold.
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
