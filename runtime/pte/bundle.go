package pte

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// ParseBundle reads and verifies a .bpte file, except the program in it, which [Parse] reads. The
// Bundle shares data's memory, which must not change while it is in use. Errors are *[FormatError].
func ParseBundle(data []byte, limits Limits) (*Bundle, error) {
	if err := checkIdentifier(data, FormatBPTE); err != nil {
		return nil, err
	}
	r := flatbuf.New(data, 0, limits.withDefaults().Tables)
	root := r.Root()
	root.Need(2, "program")
	out := &Bundle{
		Suites:  flatbuf.List(root, 1, "method_test_suites", suite),
		Program: root.Bytes(2, "program"),
	}
	if err := r.Err(); err != nil {
		return nil, formatError(err)
	}
	return out, nil
}

// suite reads a BundledMethodTestSuite.
func suite(t flatbuf.Table) Suite {
	return Suite{Method: t.String(0, "method_name"), Cases: flatbuf.List(t, 1, "test_cases", testCase)}
}

// testCase reads a BundledMethodTestCase.
func testCase(t flatbuf.Table) Case {
	return Case{
		Inputs:  flatbuf.List(t, 0, "inputs", bundleValue),
		Outputs: flatbuf.List(t, 1, "expected_outputs", bundleValue),
	}
}

// bundleValues are the readers of values, by tag of union ValueUnion.
var bundleValues = [...]func(flatbuf.Table) BundleValue{
	1: bundleTensor,
	2: func(t flatbuf.Table) BundleValue {
		return BundleValue{Kind: tensor.KindInt, Int: t.Int64(0, "int_val", 0)}
	},
	3: func(t flatbuf.Table) BundleValue {
		return BundleValue{Kind: tensor.KindBool, Bool: t.Bool(0, "bool_val", false)}
	},
	4: func(t flatbuf.Table) BundleValue {
		return BundleValue{Kind: tensor.KindDouble, Double: t.Float64(0, "double_val", 0)}
	},
}

func bundleValue(t flatbuf.Table) BundleValue {
	tag, payload := t.Union(0, "val")
	if !checkTag(t, "val_type", "value type", tag, len(bundleValues)) {
		return BundleValue{}
	}
	return bundleValues[tag](payload)
}

func bundleTensor(t flatbuf.Table) BundleValue {
	v := BundleValue{Kind: tensor.KindTensor, DType: dtype(t), Data: t.Bytes(2, "data")}
	v.Sizes, v.DimOrder = shape(t, 1, 3, makeInts)
	if n := tensorBytes(v.DType, v.Sizes); n != int64(len(v.Data)) {
		t.Failf(ErrFormat, 2, "data", "%d bytes, the tensor has %d", len(v.Data), n)
	}
	return v
}
