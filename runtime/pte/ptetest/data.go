package ptetest

import (
	"github.com/etrun-go/etrun/runtime/pte/tree"
	"maps"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// WriteData writes a .ptd file, without checking the description.
func WriteData(d *pte.DataMap) []byte {
	var s segments
	root := tree.New("FlatTensor").With("version", Scalar(0))
	root.With("named_data", list(slices.Sorted(maps.Keys(d.Entries)), func(key string) *Node {
		e := d.Entries[key]
		n := tree.New("data.NamedData").With("key", key).With("segment_index", s.add(e.Data))
		if l := e.Layout; l != nil {
			n.With("tensor_layout", shape(tree.New("TensorLayout"), l.DType, l.Sizes, l.DimOrder))
		}
		return n
	}))
	tail := s.lay(root)
	return (&File{Format: pte.FormatPTD, Root: root, Tail: tail, Header: 40}).Bytes()
}

// WriteBundle writes a .bpte file, without checking the description.
func WriteBundle(b *pte.Bundle) []byte {
	root := tree.New("BundledProgram").With("version", Scalar(0)).With("program", b.Program).
		With("method_test_suites", list(b.Suites, func(s pte.Suite) *Node {
			return tree.New("BundledMethodTestSuite").With("method_name", s.Method).With("test_cases", list(s.Cases, testCase))
		}))
	return (&File{Format: pte.FormatBPTE, Root: root}).Bytes()
}

func testCase(c pte.Case) *Node {
	return tree.New("BundledMethodTestCase").With("inputs", list(c.Inputs, bundleValue)).With("expected_outputs", list(c.Outputs, bundleValue))
}

func bundleValue(v pte.BundleValue) *Node {
	var n *Node
	switch v.Kind {
	case tensor.KindInt:
		n = tree.New("Int").With("int_val", Scalar(v.Int))
	case tensor.KindBool:
		n = tree.New("Bool").With("bool_val", boolean(v.Bool))
	case tensor.KindDouble:
		n = tree.New("Double").With("double_val", Scalar(math.Float64bits(v.Double)))
	default:
		n = shape(tree.New("bundle.Tensor"), v.DType, v.Sizes, v.DimOrder).With("data", v.Data)
	}
	return union("bundle.Value", "val", tree.Unions["bundle.ValueUnion"], n)
}
