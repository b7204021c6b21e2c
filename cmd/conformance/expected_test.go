package main

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

var update = flag.Bool("update", false, "write the expected values of operators for package kerneltest")

// expectedPath is the list of calls with PyTorch's results that kerneltest.Table runs.
const expectedPath = "../../kernels/kerneltest/testdata/pytorch.txt"

// Bounds of the list: elements of a tensor, and calls of an operator.
const (
	expectedElements = 64
	expectedCalls    = 2
)

// TestExpectedValues requires that the list agrees with the outputs of PyTorch in testdata/ops.
func TestExpectedValues(t *testing.T) {
	cases, err := load("../../testdata/ops")
	if err != nil {
		t.Fatal(err)
	}
	calls := make(map[string][]string)
	for _, c := range cases {
		if line, op, ok := expectedCall(t, c); ok && !slices.Contains(calls[op], line) {
			calls[op] = append(calls[op], line)
		}
	}
	var lines []string
	for _, op := range slices.Sorted(maps.Keys(calls)) {
		slices.SortStableFunc(calls[op], func(a, b string) int { return cmp.Compare(len(a), len(b)) })
		lines = append(lines, calls[op][:min(len(calls[op]), expectedCalls)]...)
	}
	text := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(filepath.FromSlash(expectedPath), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(filepath.FromSlash(expectedPath))
	if err != nil || string(have) != text || len(calls) < 200 {
		t.Errorf("%v: %s is not that of testdata/ops (%d operators): go test ./cmd/conformance -run TestExpectedValues -update", err,
			expectedPath, len(calls))
	}
}

// expectedCall is the text of the call of a program that has no other. ok is false for programs that do not show what
// the operator computes: with values that a run computes, too many elements, or no element.
func expectedCall(t *testing.T, c *testCase) (line, op string, ok bool) {
	if c.refuse || c.mayRefuse || len(c.calls) != 1 || len(c.data) > 0 {
		return "", "", false
	}
	program, err := fs.ReadFile(c.files, c.program)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pte.Parse(program, pte.Limits{})
	if err != nil || len(p.Methods) != 1 {
		return "", "", false
	}
	m := &p.Methods[0]
	if len(m.Chains) != 1 || len(m.Chains[0].Instructions) != 1 || m.Chains[0].Instructions[0].Kind != pte.KernelCall {
		return "", "", false
	}
	w := writer{t: t, c: c, m: m}
	in := &m.Chains[0].Instructions[0]
	op = m.Operators[in.Index].FullName()
	args := in.Args
	for n := len(args) - 1; n > 0 && isResult(m, args[:n], args[n]); n-- {
		args = args[:n]
	}
	var texts []string
	for _, v := range args {
		texts = append(texts, w.text(v))
	}
	return op + "(" + strings.Join(texts, ", ") + ")", op, !w.unknown && w.elements > 0
}

// isResult reports whether a last argument is the slot of the result: an out again, or a list of outs.
func isResult(m *pte.Method, args []int, v int) bool {
	if slices.Contains(args, v) {
		return true
	}
	items := m.Values[v].Items
	again := func(a int) bool {
		return m.Values[a].Kind == m.Values[v].Kind && slices.Equal(m.Values[a].Items, items)
	}
	in := func(item int) bool { return slices.Contains(args, item) }
	return m.Values[v].Kind == tensor.KindTensorList && len(items) > 0 &&
		(slices.ContainsFunc(args, again) || !slices.ContainsFunc(items, func(item int) bool { return !in(item) }))
}

// writer formats values of a program as package kerneltest reads them.
type writer struct {
	t        *testing.T
	c        *testCase
	m        *pte.Method
	unknown  bool // a value is not known
	elements int  // of outputs
}

func (w *writer) text(v int) string {
	if v < 0 {
		return "None"
	}
	x := &w.m.Values[v]
	switch x.Kind {
	case tensor.None:
		return "None"
	case tensor.KindInt:
		return strconv.FormatInt(x.Int, 10)
	case tensor.KindBool:
		return strconv.FormatBool(x.Bool)
	case tensor.KindDouble:
		return float(x.Double)
	case tensor.KindString:
		return strconv.Quote(x.Long.Str)
	case tensor.KindBoolList:
		return list(x.Long.Bools, strconv.FormatBool)
	case tensor.KindDoubleList:
		return list(x.Long.Doubles, float)
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		return list(x.Items, w.text)
	case tensor.KindTensor:
		return w.tensor(v)
	}
	w.unknown = true
	return ""
}

func list[T any](items []T, text func(T) string) string {
	texts := make([]string, len(items))
	for i := range items {
		texts[i] = text(items[i])
	}
	return "[" + strings.Join(texts, " ") + "]"
}

func float(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if strings.ContainsAny(s, ".eIN") {
		return s
	}
	return s + ".0"
}

// tensor formats an input, a constant or an output with its elements.
func (w *writer) tensor(v int) string {
	t, k := w.m.Values[v].Tensor, &w.c.calls[0]
	sizes, order, data := t.Sizes, t.DimOrder, t.Data
	from := value{}
	if i := slices.Index(w.m.Outputs, v); i >= 0 {
		from = k.Outputs[i]
		n, _ := tensor.Product(from.Shape)
		w.elements += n
		w.unknown = w.unknown || from.Compare == "shape" || from.Reference != ""
	} else if i := slices.Index(w.m.Inputs, v); i >= 0 {
		from = k.Inputs[i]
	}
	if from.Kind == "tensor" {
		var err error
		sizes, order = from.Shape, from.DimOrder
		if data, err = fs.ReadFile(w.c.files, from.File+from.Data); err != nil && from.File+from.Data != "" {
			w.t.Fatal(err)
		}
	}
	n, _ := tensor.Product(sizes)
	size := t.DType.Size()
	if len(data) != n*size || n > expectedElements {
		w.unknown = true
		return ""
	}
	s := fmt.Sprintf("%v%v", t.DType, sizes)
	if !slices.Equal(order, tensor.ContiguousOrder(len(sizes))) {
		s += fmt.Sprintf("order%v", order)
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = element(t.DType, data[i*size:(i+1)*size])
	}
	if n > 0 {
		s += "{" + strings.Join(texts, " ") + "}"
	}
	return s
}

// element formats a float32 as shortly as possible.
func element(d tensor.DType, b []byte) string {
	if d != tensor.Float32 {
		return compare.Format(d, b)
	}
	v, _ := tensor.Get[float64](b, d)
	return strconv.FormatFloat(v, 'g', -1, 32)
}
