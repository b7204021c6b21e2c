package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/runtime/trace"
)

// tieStep is an instruction: an operator, or a delegate without a name, with the values that it reads and writes.
type tieStep struct {
	name          string
	reads, writes []string
}

// tieRun observes a run of steps whose values are vectors by name.
func tieRun(by interface{ Observe(*trace.Event) }, steps []tieStep, values map[string][]float32, output ...string) {
	list := func(names []string) (list []trace.Value) {
		for _, name := range names {
			t := tensor.New(tensor.Float32, len(values[name]))
			t.Data = tensor.BytesOf(values[name])
			v := tensor.TensorValue(t)
			list = append(list, trace.Value{Value: &v})
		}
		return list
	}
	for i, s := range steps {
		e := &trace.Event{Kind: trace.Read, Name: s.name, Instruction: i, Delegate: -1, Index: -1, Values: list(s.reads)}
		if s.name == "" {
			e.Delegate = 0
		}
		by.Observe(e)
		e.Kind, e.Values = trace.Written, list(s.writes)
		by.Observe(e)
	}
	by.Observe(&trace.Event{Kind: trace.Written, Chain: -1, Instruction: -1, Delegate: -1, Index: -1, Values: list(output)})
}

// Only outputs that depend on a call are undecided whose operands agree, and whose results do not.
func TestTies(t *testing.T) {
	original := []tieStep{{"product", []string{"x"}, []string{"p"}}, {"sort", []string{"p"}, []string{"s"}}, {"take", []string{"x", "s"}, []string{"y"}},
		{"sum", []string{"x"}, []string{"z"}}}
	lowered := slices.Clone(original)
	lowered[0].name = "" // in a delegate
	want := map[string][]float32{"x": {1, 2}, "p": {3, 3}, "s": {0, 1}, "y": {1, 2}, "z": {3}}
	for _, c := range []struct {
		name    string
		got     map[string][]float32
		outputs []bool // of y and z
	}{
		{"equal", nil, []bool{false, false}},
		{"a tie", map[string][]float32{"p": {3, 3 + 1e-6}, "s": {1, 0}, "y": {2, 1}}, []bool{true, false}},
		{"other operands", map[string][]float32{"p": {3, 4}, "s": {1, 0}, "y": {2, 1}}, []bool{false, false}},
	} {
		values := make(map[string][]float32)
		for name, v := range want {
			values[name] = slices.Clone(v)
			if x, ok := c.got[name]; ok {
				values[name] = x
			}
		}
		r := &callRecorder{calls: make(map[string][]operatorCall), left: 1 << 20}
		tieRun(r, original, want)
		f := &tieFinder{original: r.calls, next: make(map[string]int), marked: make(map[*byte]bool),
			allowed: func(*tensor.Value) kernels.Tolerance { return kernels.Tolerance{Abs: 1e-5, Rel: 1e-5} }}
		tieRun(f, lowered, values, "y", "z")
		if len(f.outputs) != 1 || !slices.Equal(f.outputs[0], c.outputs) {
			t.Errorf("%s: undecided %v, want %v", c.name, f.outputs, c.outputs)
		}
	}
}

// Values beyond the limit are not kept, and decide nothing.
func TestTiesLimit(t *testing.T) {
	r := &callRecorder{calls: make(map[string][]operatorCall), left: 7}
	tieRun(r, []tieStep{{"sort", []string{"x"}, []string{"y"}}}, map[string][]float32{"x": {1}, "y": {1}})
	if got := r.paired(nil, nil); got != nil {
		t.Errorf("got %v, want nothing", got)
	}
}

// indexing is a program that takes an element of x at a position minus less, beside a product of x that is lowered.
func indexing(less int64) []byte {
	const x, at, weight, product, index, one, dim, no, found, amount = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	planned := func(d tensor.DType, offset int64, sizes ...int) pte.Value {
		return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: d, Sizes: sizes, DimOrder: []uint8{0, 1}, Storage: pte.Planned, Offset: offset}}
	}
	weights := planned(tensor.Float32, 0, 16, 64)
	weights.Tensor.Storage, weights.Tensor.Data = pte.Constant, make([]byte, 4*16*64)
	return ptetest.Write(&pte.Program{Methods: []pte.Method{{
		Name: "forward",
		Values: []pte.Value{
			x: planned(tensor.Float32, 0, 8, 16), at: planned(tensor.Int64, 1024, 8, 1), weight: weights,
			product: planned(tensor.Float32, 2048, 8, 64), index: planned(tensor.Int64, 4096, 8, 1),
			one: {Kind: tensor.KindInt, Int: 1}, dim: {Kind: tensor.KindInt, Int: 1}, no: {Kind: tensor.KindBool},
			found: planned(tensor.Float32, 5120, 8, 1), amount: {Kind: tensor.KindInt, Int: less},
		},
		Inputs: []int{x, at}, Outputs: []int{product, found},
		Operators: []pte.Operator{{Name: "aten::mm", Overload: "out"}, {Name: "aten::sub", Overload: "Scalar_out"}, {Name: "aten::gather", Overload: "out"}},
		Chains: []pte.Chain{{Instructions: []pte.Instruction{
			{Kind: pte.KernelCall, Index: 0, Args: []int{x, weight, product, product}},
			{Kind: pte.KernelCall, Index: 1, Args: []int{at, amount, one, index, index}},
			{Kind: pte.KernelCall, Index: 2, Args: []int{x, dim, index, no, found, found}},
		}}},
		Arenas: []pte.Arena{{Size: 6144}},
	}}}, ptetest.Layout{})
}

// Random integers that the original program does not accept are replaced by others before the user is asked for inputs.
func TestLowerTriesIntegers(t *testing.T) {
	for _, c := range []struct {
		less int64
		code int
	}{{0, 0}, {1, 0}, {2, 0}, {7, 1}} {
		path := filepath.Join(t.TempDir(), "indexing.pte")
		must(t, os.WriteFile(path, indexing(c.less), 0o600))
		code, out, notes := lowered(path, "-o", filepath.Join(t.TempDir(), "out.pte"))
		if code != c.code || code == 0 && !strings.Contains(out, "verified: 2 calls") || code != 0 && !strings.Contains(notes, "--input") {
			t.Errorf("position less %d: exit code %d, want %d: %s%s", c.less, code, c.code, out, notes)
		}
		var quantized, said bytes.Buffer
		if code := run([]string{"quantize", path, "-o", filepath.Join(t.TempDir(), "q.pte")}, strings.NewReader(""), &quantized, &said); code != c.code {
			t.Errorf("position less %d, quantize: exit code %d, want %d: %s", c.less, code, c.code, said.String())
		}
	}
}
