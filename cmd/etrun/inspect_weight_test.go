package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestInspectWeight(t *testing.T) {
	program := digits(t, "portable.pte")
	play(t, []script{
		{name: "no file", args: "inspect " + program + " --weight 0.weight", code: 2, stderr: []string{"-o weight.npy"}},
		{name: "no weight", args: "inspect " + program + " -o w.npy", code: 2, stderr: []string{"--weight NAME"}, absent: []string{"w.npy"}},
		{name: "no such weight", args: "inspect " + program + " --weight 0.weights -o w.npy", code: 2, stderr: []string{"did you mean 0.weight?"}, absent: []string{"w.npy"}},
		{name: "no constants", args: "inspect HERE/add.pte --weight x -o w.npy", code: 2, stderr: []string{"no constants"}},
		{name: "two programs", args: "inspect HERE/add.pte HERE/add.pte --weight x -o w.npy", code: 2, stderr: []string{"want one"}},
		{name: "JSON", args: "inspect " + program + " --weight 0.weight -o w.npy --json", stdout: []string{`"schema": "etrun.inspect.weight/1"`, `"type": "float32 16x1x3x3"`, `"path": "w.npy"`}},
	})
}

// TestWeightsOfQuantizedProgram writes constants of a quantized program: the elements as stored, and the numbers that they mean,
// which are the stored ones times scales.
func TestWeightsOfQuantizedProgram(t *testing.T) {
	path := zippedProgram(t, "qlinear/xnnpack_q4.pte")
	stored := savedArray(t, path, "0.1.filter")
	if stored.DType != tensor.Int8 || fmt.Sprint(stored.Sizes) != "[96 64]" {
		t.Fatalf("stored: %v %v", stored.DType, stored.Sizes)
	}
	real := savedArray(t, path, "0.1.filter", "--dequantize")
	if real.DType != tensor.Float32 || fmt.Sprint(real.Sizes) != "[96 64]" {
		t.Fatalf("dequantized: %v %v", real.DType, real.Sizes)
	}
	least, most := int8(0), int8(0)
	for i, q := range tensor.View[int8](stored.Data) {
		least, most = min(least, q), max(most, q)
		group := i / 32 * 32
		scale := float32(0)
		for k := group; k < group+32; k++ { // the scale is that of any other element of the group
			if s := tensor.View[int8](stored.Data)[k]; s != 0 {
				scale = tensor.View[float32](real.Data)[k] / float32(s)
			}
		}
		if got, want := tensor.View[float32](real.Data)[i], scale*float32(q); got-want > 1e-6 || want-got > 1e-6 || scale <= 0 {
			t.Fatalf("element %d: %d means %v, want %v with the scale %v", i, q, got, want, scale)
		}
	}
	if least != -8 || most != 7 {
		t.Errorf("elements from %d to %d, want four bits", least, most)
	}
}

func savedArray(t *testing.T, path, name string, flags ...string) *npy.Array {
	t.Helper()
	file := filepath.Join(t.TempDir(), "w.npy")
	var out, notes bytes.Buffer
	if code := run(append([]string{"inspect", path, "--weight", name, "-o", file}, flags...), strings.NewReader(""), &out, &notes); code != 0 {
		t.Fatalf("exit code %d: %s", code, notes.String())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a, err := npy.Read(bytes.NewReader(data), int64(len(data)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestNodesInJSON has instructions and operations of delegates with their attributes.
func TestNodesInJSON(t *testing.T) {
	for _, tt := range []struct{ name, node, want string }{
		{"portable.pte", "aten::convolution.out", `"stride":[1,1]`},
		{"portable.pte", "aten::max_pool2d_with_indices.out", `"kernel_size":[2,2]`},
		{"xnnpack.pte", "Conv2d", `"padding":[0,0,0,0]`},
		{"xnnpack.pte", "Conv2d", `"output min":0`},
		{"../ethosu/programs/digits.pte", "CONV", `"kernel":"3x3"`},
		{"../ethosu/programs/digits.pte", "quantized_decomposed::quantize_per_tensor.out", `"zero_point":`},
	} {
		var out, notes bytes.Buffer
		if code := run([]string{"inspect", digits(t, tt.name), "--json"}, strings.NewReader(""), &out, &notes); code != 0 {
			t.Fatalf("%s: exit code %d: %s", tt.name, code, notes.String())
		}
		var report programReport
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatal(err)
		}
		nodes := report.Methods[0].Nodes
		for _, d := range report.Methods[0].Delegates {
			nodes = append(nodes, d.Nodes...)
		}
		found := false
		for _, n := range nodes {
			text, err := json.Marshal(n)
			if err != nil {
				t.Fatal(err)
			}
			found = found || n.Name == tt.node && strings.Contains(string(text), tt.want)
		}
		if !found {
			t.Errorf("%s: no %s with %s", tt.name, tt.node, tt.want)
		}
	}
}
