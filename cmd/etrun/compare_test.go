package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

func TestCompare(t *testing.T) {
	digits := filepath.Dir(digits(t, "portable.pte"))
	d := func(args string) string { return strings.ReplaceAll(args, "D/", digits+"/") }
	play(t, []script{
		{name: "two programs", args: d("compare D/portable.pte D/xnnpack.pte"), stdout: []string{"forward, call 0, output 0 float32 1x10: ok; max abs", "cosine 1.0000"}},
		{name: "two engines", args: d("compare D/xnnpack.pte --vs --xnnpack=go --atol 1"), stdout: []string{"output 0 float32 1x10: "}},
		{name: "two plans", args: d("compare D/portable.pte --vs --plan=naive --atol 0 --rtol 0"), stdout: []string{"output 0 float32 1x10: equal\n"}},
		{name: "one input", args: d("compare D/portable.pte D/xnnpack.pte --input zeros"), stdout: []string{": ok; "}},
		{name: "every value of every call", args: "compare HERE/symint.pte --vs --plan=naive --input ones --input int:2 --next --input ones --input int:3",
			stdout: []string{"call 0, output 0 float32 3x2: equal", "call 0, output 1 int: equal", "call 1, output 0 float32 3x3: equal"}},
		{name: "text", args: "compare HERE/methods.pte --vs --plan=naive --method get_name", stdout: []string{"output 0 string: equal"}},
		{name: "other inputs", args: d("compare D/portable.pte HERE/add.pte"), code: 5},
		{name: "other outputs", args: "compare HERE/add.pte HERE/string.pte --input zeros:float32:3x6 --input none", code: 5},
		{name: "one program alone", args: "compare HERE/add.pte", code: 2, stderr: []string{"want two programs, or one with --vs"}},
		{name: "too much", args: "compare HERE/add.pte HERE/add.pte --against x.npz", code: 2},
		{name: "tolerance", args: "compare HERE/add.pte HERE/add.pte --rtol -1", code: 2, stderr: []string{"--rtol -1"}},
		{name: "absent", args: "compare HERE/add.pte gone.pte", code: 2, stderr: []string{"gone.pte"}},
		{name: "no archive", args: "compare HERE/add.pte --against gone.npz", code: 2, stderr: []string{"gone.npz"}},
		{name: "an archive of something else", args: "compare HERE/add.pte --against grids.npz", code: 6, stderr: []string{`no array "out0"`}},
	})
}

// TestCompareNaN compares the engines on an image with NaN: the library turns them into numbers, which compare says.
func TestCompareNaN(t *testing.T) {
	xnntest.Library(t)
	if path := xnntest.Path(); path != "" {
		t.Setenv(xnn.EnvPath, path)
	}
	program, portable := digits(t, "xnnpack.pte"), digits(t, "portable.pte")
	pixels := make([]float32, 64)
	for i := range pixels {
		pixels[i] = float32(math.NaN())
	}
	file := filepath.Join(t.TempDir(), "nan.bin")
	if err := os.WriteFile(file, tensor.BytesOf(pixels), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, lower := range []string{"off", "all"} {
		script{args: "compare " + program + " --xnnpack native --vs --xnnpack=go --lower " + lower + " --input " + file, code: 6,
			stderr: []string{"differs only in NaN", "--xnnpack go"}}.run(t)
		script{args: "compare " + portable + " --xnnpack native --vs --lower=off --lower " + lower + " --input " + file,
			stdout: []string{"equal"}}.run(t)
	}
}

// Outputs are equal to their own archive, and not to a different one.
func TestCompareAgainst(t *testing.T) {
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "o.npz")
	run := " --input four.bin --next --input zeros"
	script{args: here + "/state.pte --output-npz " + archive + run}.run(t)
	script{args: "compare --atol 0 --rtol 0 --against " + archive + " " + here + "/state.pte" + run,
		stdout: []string{"call 0, output 0 float32 4: equal", "call 0, output 1 int64 1: equal", "call 1, output 0", "equal", "call 1, output 1", "equal"}}.run(t)
}

func TestCompareAgainstWrongArrays(t *testing.T) {
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	wrong := tensor.Of([]float32{2, 4, 6.5, 8}, 4)
	inScriptFolder(t)
	for _, c := range []struct {
		name   string
		arrays map[string]*tensor.Tensor
		code   int
		want   string
	}{
		{"one element", map[string]*tensor.Tensor{"out0": wrong, "out1": tensor.Of([]int64{1}, 1)}, 6, "1 of 4 elements differ, first at [2]: got 6, want 6.5"},
		{"sizes", map[string]*tensor.Tensor{"out0": tensor.Of([]float32{2, 4}, 2), "out1": tensor.Of([]int64{1}, 1)}, 6, "got float32 4, want float32 2"},
		{"type", map[string]*tensor.Tensor{"out0": tensor.Of([]float64{2, 4, 6, 8}, 4), "out1": tensor.Of([]int64{1}, 1)}, 6, "want float64 4"},
		{"none", map[string]*tensor.Tensor{"out0": tensor.Of([]float32{2, 4, 6, 8}, 4)}, 6, `no array "out1"`},
		{"one too many", map[string]*tensor.Tensor{"out0": tensor.Of([]float32{2, 4, 6, 8}, 4), "out1": tensor.Of([]int64{1}, 1), "out2": wrong}, 0, `no output for 1 array: ["out2"]`},
	} {
		var file bytes.Buffer
		z := npy.NewZipWriter(&file)
		for name, a := range c.arrays {
			if err := z.Add(name, a); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		write(t, "want.npz", file.Bytes())
		var out, notes bytes.Buffer
		code := run(strings.Fields("compare --against want.npz --input four.bin "+here+"/state.pte"), strings.NewReader(""), &out, &notes)
		if text := out.String() + notes.String(); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q in %s", c.name, code, c.code, c.want, text)
		}
	}
}

// A changed constant is visible in the outputs; a program never differs from itself.
func TestCompareFindsChangedConstants(t *testing.T) {
	original := digits(t, "portable.pte")
	file, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		p, err := pte.Parse(slices.Clone(file), pte.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(p.Methods[0].Values, func(v pte.Value) bool { // the bias of the last layer
			return v.Kind == tensor.KindTensor && v.Tensor.Storage == pte.Constant && slices.Equal(v.Tensor.Sizes, []int{10})
		})
		if at < 0 {
			t.Fatal("no bias")
		}
		bias := tensor.View[float32](p.Methods[0].Values[at].Tensor.Data)
		bias[i] = math.Nextafter32(bias[i], 9) + 0.01
		changed := filepath.Join(t.TempDir(), "changed.pte")
		write(t, changed, ptetest.Write(p, ptetest.Layout{}))
		seed := fmt.Sprint(i)
		for other, want := range map[string]int{changed: 6, original: 0} {
			var out, notes bytes.Buffer
			code := run([]string{"compare", original, other, "--seed", seed, "--json", "--atol", "1e-4", "--rtol", "0"}, strings.NewReader(""), &out, &notes)
			var r comparedReport
			if err := json.Unmarshal(out.Bytes(), &r); err != nil || code != want || r.Differ*6 != want {
				t.Fatalf("element %d, %s: exit code %d, want %d; %v in %s%s", i, filepath.Base(other), code, want, err, out.String(), notes.String())
			}
			if place := fmt.Sprintf("first at [0 %d]", i); want == 6 && !strings.Contains(r.Outputs[0].Differs, place) {
				t.Errorf("element %d: %s, want %s", i, r.Outputs[0].Differs, place)
			}
		}
	}
}
