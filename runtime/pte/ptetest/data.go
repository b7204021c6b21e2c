package ptetest

import (
	"maps"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// WriteData writes a .ptd file, without checking the description.
func WriteData(d *pte.DataMap) []byte {
	var s segments
	root := node("FlatTensor").with("version", Scalar(0))
	root.with("named_data", list(slices.Sorted(maps.Keys(d.Entries)), func(key string) *Node {
		e := d.Entries[key]
		n := node("data.NamedData").with("key", key).with("segment_index", s.add(e.Data))
		if l := e.Layout; l != nil {
			n.with("tensor_layout", shape(node("TensorLayout"), l.DType, l.Sizes, l.DimOrder))
		}
		return n
	}))
	tail := s.lay(root)
	return (&File{Format: pte.FormatPTD, Root: root, Tail: tail, Header: 40}).Bytes()
}

// WriteBundle writes a .bpte file, without checking the description.
func WriteBundle(b *pte.Bundle) []byte {
	root := node("BundledProgram").with("version", Scalar(0)).with("program", b.Program).
		with("method_test_suites", list(b.Suites, func(s pte.Suite) *Node {
			return node("BundledMethodTestSuite").with("method_name", s.Method).with("test_cases", list(s.Cases, testCase))
		}))
	return (&File{Format: pte.FormatBPTE, Root: root}).Bytes()
}

func testCase(c pte.Case) *Node {
	return node("BundledMethodTestCase").with("inputs", list(c.Inputs, bundleValue)).with("expected_outputs", list(c.Outputs, bundleValue))
}

func bundleValue(v pte.BundleValue) *Node {
	var n *Node
	switch v.Kind {
	case tensor.KindInt:
		n = node("Int").with("int_val", Scalar(v.Int))
	case tensor.KindBool:
		n = node("Bool").with("bool_val", boolean(v.Bool))
	case tensor.KindDouble:
		n = node("Double").with("double_val", Scalar(math.Float64bits(v.Double)))
	default:
		n = shape(node("bundle.Tensor"), v.DType, v.Sizes, v.DimOrder).with("data", v.Data)
	}
	return union("bundle.Value", "val", unions["bundle.ValueUnion"], n)
}
