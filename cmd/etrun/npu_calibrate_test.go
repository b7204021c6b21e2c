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

// writeArrays writes an .npz file of float32 arrays.
func writeArrays(t *testing.T, names []string, arrays []*tensor.Tensor) string {
	t.Helper()
	var b bytes.Buffer
	z := npy.NewZipWriter(&b)
	for i, a := range arrays {
		if err := z.Add(names[i], a); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "reference.npz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readFile reads a file of npuPrograms.
func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(npuPrograms, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// chainReference returns the real values of the stale outputs of chain/model.pte, computed from
// the exact integers of its delegates, by name; and a file of them.
func chainReference(t *testing.T, name string) (path string, want []npuQuantization) {
	t.Helper()
	if err := json.Unmarshal(readFile(t, "chain/qparams.json"), &want); err != nil {
		t.Fatal(err)
	}
	names, arrays := make([]string, len(want)), make([]*tensor.Tensor, len(want))
	for i, e := range want {
		stored := tensor.View[int8](readFile(t, fmt.Sprintf("chain/call%d_out%d.bin", e.Delegate, e.Output)))
		values := make([]float32, len(stored))
		for k, q := range stored {
			values[k] = float32(int64(q)-e.ZeroPoint) * float32(e.Scale)
		}
		names[i], arrays[i] = fmt.Sprintf(name, e.Delegate, e.Output), tensor.Of(values, 6, 16)
	}
	return writeArrays(t, names, arrays), want
}

// TestCalibrate fits eight stale outputs of a chain of delegates, each of which reads the output
// of the previous one, and runs with the result.
func TestCalibrate(t *testing.T) {
	for _, name := range []string{"%d:%d", "forward/%d:%d", "gate%d.half%d"} {
		reference, want := chainReference(t, name)
		dir := t.TempDir()
		file := filepath.Join(dir, "qparams.json")
		code, out, notes := etrunLines(t, "npu calibrate P/chain/model.pte --reference "+reference+" --input P/chain/in0.bin -o "+file)
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", name, code, notes)
		}
		checkParts(t, "report", out, []string{"forward/0:0: scale 0.008502034470438957, zero point 6, from array ", ": 96 values, error at most 0.00 steps (root mean square 0.00), 0 clipped", "forward/3:1: "})
		var got []npuQuantization
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s: got %v, want %v (%v)", name, got, want, err)
		}
		if code, _, notes := etrunLines(t, "P/chain/model.pte --qparams "+file+" --input P/chain/in0.bin --output-dir "+dir); code != 0 {
			t.Fatalf("exit code %d: %s", code, notes)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "out0.bin")); err != nil || !bytes.Equal(got, readFile(t, "chain/out0.bin")) {
			t.Errorf("%s: wrong output (%v)", name, err)
		}
	}
}

// TestCalibrateEager fits a stale output to values from eager mode.
func TestCalibrateEager(t *testing.T) {
	eager := tensor.New(tensor.Float32, 1, 20, 9, 11)
	copy(eager.Data, readFile(t, "stale_out0.bin"))
	line := "npu calibrate P/stale.pte --input P/stale_in0.bin --reference "
	code, out, notes := etrunLines(t, line+writeArrays(t, []string{"conv"}, []*tensor.Tensor{eager}))
	if want := `"scale": 0.018166271969676018,`; code != 0 || !strings.Contains(out, want) || !strings.Contains(notes, `zero point -3, from array "conv": 1980 values, error at most 0.00 steps`) {
		t.Errorf("exit code %d, got %s%s, want %s", code, out, notes, want)
	}
}

// TestCalibrateKnown prefers the caller's quantization to arrays with other names, and an array
// with the name of an output to both.
func TestCalibrateKnown(t *testing.T) {
	eager := tensor.New(tensor.Float32, 1, 20, 9, 11)
	copy(eager.Data, readFile(t, "stale_out0.bin"))
	for name, want := range map[string][]string{
		"conv": {"forward/0:0: scale 0.5, zero point 3, stated by the caller\n", `arrays that match no output: ["conv"]`},
		"0:0":  {`zero point -3, from array "0:0": 1980 values`, "but the caller states scale 0.5 and zero point 3"},
	} {
		reference := writeArrays(t, []string{name}, []*tensor.Tensor{eager})
		code, _, notes := etrunLines(t, "npu calibrate P/stale.pte --input P/stale_in0.bin --qparams 0:0=0.5,3 --reference "+reference)
		if code != 0 {
			t.Errorf("%s: exit code %d", name, code)
		}
		checkParts(t, name, notes, want)
	}
}

func TestCalibrateRefuses(t *testing.T) {
	good, _ := chainReference(t, "%d:%d")
	some := writeArrays(t, []string{"0:0", "0:1"}, []*tensor.Tensor{tensor.New(tensor.Float32, 6, 16), tensor.New(tensor.Float32, 6, 16)})
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.npz")
	if err := os.WriteFile(cut, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	input := " --input P/chain/in0.bin"
	for _, tt := range []struct {
		line string
		code int
		want string
	}{
		{"npu calibrate P/chain/model.pte" + input, 2, "--reference is missing"},
		{"npu calibrate P/chain/model.pte --reference " + good, 2, "--input is missing"},
		{"npu calibrate P/chain/model.pte --reference " + cut + input, 2, "malformed npy"},
		{"npu calibrate P/chain/model.pte --reference P/chain/model.pte" + input, 2, "malformed npy"},
		{"npu calibrate P/chain/model.pte --reference P/none.npz" + input, 2, "no such file"},
		{"npu calibrate P/chain/model.pte --max-memory 1KiB --reference " + good + input, 9, "at most"},
		{"npu calibrate P/chain/model.pte --reference " + some + input, 2, `delegate 0 output 0: usage: ` + some + `: array "0:0": reference values do not fit`},
		{"npu calibrate P/digits.pte --input P/digits_in0.bin --reference " + good, 2, "no output of an EthosUBackend delegate has a stale type"},
		{"npu calibrate P/chain/model.pte --reference " + good + input + " -o P/none/q.json", 2, "no such file or directory"},
		{"P/chain/model.pte" + input, 3, "stale type of 8 outputs: delegate 0 output 0, sizes 1x6x16: declared float32, the NPU writes int8"},
	} {
		file := filepath.Join(t.TempDir(), "q.json")
		line := tt.line
		if strings.HasPrefix(line, "npu") && !strings.Contains(line, " -o ") {
			line += " -o " + file
		}
		code, _, notes := etrunLines(t, line)
		if code != tt.code || !strings.Contains(notes, tt.want) {
			t.Errorf("%s: exit code %d, %s, want %d, …%s…", tt.line, code, notes, tt.code, tt.want)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: a file was written", tt.line)
		}
	}
}
