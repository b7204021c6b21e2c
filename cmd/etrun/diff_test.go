package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

func TestDiff(t *testing.T) {
	digits := filepath.Dir(digits(t, "portable.pte"))
	d := func(args string) string { return strings.ReplaceAll(args, "D/", digits+"/") }
	play(t, []script{
		{name: "same", args: d("diff D/portable.pte D/portable.pte")},
		{name: "same, delegated", args: d("diff D/xnnpack.pte D/xnnpack.pte --json"), stdout: []string{`"schema": "etrun.diff/1"`, `"same": true`, `"differences": []`}},
		{name: "delegated or not", args: d("diff D/portable.pte D/xnnpack.pte"), code: 1, stdout: []string{
			"forward, operators\n", "  - aten::addmm.out: 1 call\n", "forward, instructions\n",
			"  + chain 0, instruction 0: delegate 0, XnnpackBackend(float32 1x1x8x8, float32 1x10)\n",
			"forward, plan\n  - arena 0: 16384 bytes\n  + arena 0: 368 bytes\n", "forward, delegates\n  + delegate 0: XnnpackBackend, 3440 bytes"}},
		{name: "other methods", args: "diff PTE/two_methods.pte HERE/add.pte", code: 1, stdout: []string{"methods\n"}},
		{name: "absent", args: d("diff D/portable.pte gone.pte"), code: 2, stderr: []string{"gone.pte"}},
		{name: "truncated", args: d("diff D/portable.pte noise.pte"), code: 3, stderr: []string{"noise.pte"}},
		{name: "one", args: d("diff D/portable.pte"), code: 2, stderr: []string{"1 argument, want A.pte B.pte"}},
		{name: "another kind of file", args: d("diff D/portable.pte four.npy"), code: 3, stderr: []string{"a NumPy array, not a .pte"}},
	})
}

// diffed returns the differences between a test program and a changed copy.
func diffed(t *testing.T, name string, change func(*pte.Program)) []difference {
	t.Helper()
	var out, notes bytes.Buffer
	original := filepath.Join("..", "..", "testdata", name)
	code := run([]string{"diff", original, changedProgram(t, "../"+name, change), "--json"}, strings.NewReader(""), &out, &notes)
	var r struct {
		Same        bool
		Differences []difference
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || code != 1 && !r.Same || code != 0 && r.Same || notes.Len() > 0 {
		t.Fatalf("exit code %d, %v, %s%s", code, err, out.String(), notes.String())
	}
	return r.Differences
}

func TestDiffFindsChanges(t *testing.T) {
	weight := func(p *pte.Program) *pte.Tensor {
		values := p.Methods[0].Values
		return values[slices.IndexFunc(values, func(v pte.Value) bool { return v.Tensor != nil && v.Tensor.Storage == pte.Constant })].Tensor
	}
	for _, c := range []struct {
		name   string
		change func(*pte.Program)
		want   difference
	}{
		{"a weight", func(p *pte.Program) { tensor.View[float32](weight(p).Data)[3] += 2 },
			difference{Section: "constants", Item: "value 0", Detail: "1 of 144 elements differ, first at [0 0 1 0]"}},
		{"its name", func(p *pte.Program) { weight(p).Name = "conv.weight" }, difference{}},
		{"its type", func(p *pte.Program) { weight(p).DType = tensor.Int32 },
			difference{Section: "constants", Item: "value 0", A: "float32 16x1x3x3, constant", B: "int32 16x1x3x3, constant"}},
		{"an operator", func(p *pte.Program) { p.Methods[0].Operators[2].Name = "aten::gelu" },
			difference{Section: "operators", Item: "aten::gelu.out", B: "3 calls"}},
		{"an argument", func(p *pte.Program) {
			values := p.Methods[0].Values
			values[slices.IndexFunc(values, func(v pte.Value) bool { return v.Kind == tensor.KindDouble })].Double = 0.25
		}, difference{Section: "instructions", Item: "chain 0, instruction 1", B: "aten::_native_batch_norm_legit_no_training.out(float32 1x16x8x8"}},
		{"a place", func(p *pte.Program) {
			values := p.Methods[0].Values
			values[slices.IndexFunc(values, func(v pte.Value) bool {
				return v.Tensor != nil && v.Tensor.Storage == pte.Planned && v.Tensor.Offset > 0
			})].Tensor.Offset += 16
		}, difference{Section: "plan", Item: "1 value", Detail: "moved, the first is value"}},
		{"an arena", func(p *pte.Program) { p.Methods[0].Arenas[0].Size += 64 },
			difference{Section: "plan", Item: "arena 0", A: "16384 bytes", B: "16448 bytes"}},
		{"an input", func(p *pte.Program) {
			p.Methods[0].Values[p.Methods[0].Inputs[0]].Tensor.Dynamism = tensor.DynamicBound
		}, difference{Section: "inputs", Item: "0", B: "float32 1x1x8x8 at most, contiguous (NCHW), planned"}},
	} {
		found := diffed(t, "digits/portable.pte", c.change)
		if c.want.Item == "" && len(found) == 0 {
			continue
		}
		if !slices.ContainsFunc(found, func(d difference) bool {
			return d.Section == c.want.Section && d.Item == c.want.Item && (c.want.A == "" || d.A == c.want.A) &&
				strings.HasPrefix(d.B, c.want.B) && strings.Contains(d.Detail, c.want.Detail) && d.Method == "forward"
		}) {
			t.Errorf("%s: got %+v, want %+v", c.name, found, c.want)
		}
	}
}

// TestDiffUnfoldsPayloads requires that a changed weight inside a payload is reported by node.
func TestDiffUnfoldsPayloads(t *testing.T) {
	found := diffed(t, "digits/xnnpack.pte", func(p *pte.Program) {
		for key, data := range p.Named {
			if len(data) == 4*320 { // the last layer's weight
				p.Named[key] = slices.Clone(data)
				copy(p.Named[key][8:], []byte{0, 0, 128, 63})
			}
		}
	})
	if len(found) != 1 || found[0].Section != "delegates" || found[0].Item != "delegate 0, node 7 (FullyConnected), constant 0" ||
		!strings.Contains(found[0].Detail, "float32 10x32: 1 of 320 elements differ, first at [0 2]: got 1, want ") {
		t.Errorf("got %+v", found)
	}
}
