package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// editedBundle is bundle_int8.bpte with a changed first element of an expected output.
func editedBundle(t *testing.T, output int, by float32) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "testdata", "pte", "bundle_int8.bpte"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := pte.ParseBundle(data, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	out := &b.Suites[0].Cases[0].Outputs[output]
	moved := tensor.AlignedBytes(len(out.Data))
	copy(moved, out.Data)
	tensor.View[float32](moved)[0] += by
	out.Data = moved
	path := filepath.Join(t.TempDir(), "edited.bpte")
	if err := os.WriteFile(path, ptetest.WriteBundle(b), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestVerifySteps requires that outputs computed from int8 values may differ by one step, unless
// a tolerance is given, and by no more.
func TestVerifySteps(t *testing.T) {
	const step0, step1 = 0.0135, 0.0098
	file := "testdata/pte/bundle_int8.bpte"
	allowed := []string{"forward, output 0: one step of its quantized values, 0.01349, is added", "forward, output 1: one step of its quantized values, 0.009758, is added"}
	for _, c := range []struct {
		name, line string
		code       int
		want       []string
	}{
		{"as it is", "verify " + filepath.Join(root, file), 0, append(allowed, "case 0: ok", "case 1: ok")},
		{"a tolerance holds as it is", "verify --atol 1e-5 " + filepath.Join(root, file), 6, []string{"case 1: differs", "output 1: "}},
		{"a step and a half off", "verify " + editedBundle(t, 0, 1.5*step0), 6, append(allowed, "case 0: differs", "output 0: 1 of ", "case 1: ok")},
		{"three steps off", "verify " + editedBundle(t, 1, -3*step1), 6, append(allowed, "case 0: differs", "output 1: 1 of ", "case 1: ok")},
		{"no quantized values", "verify " + filepath.Join(root, "testdata/pte/bundle.bpte"), 0, []string{"forward, case 0: ok"}},
	} {
		code, out, notes := etrunLines(t, c.line)
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", c.name, code, c.code, notes)
		}
		checkParts(t, c.name, out, c.want)
		if c.name == "no quantized values" && strings.Contains(out, "step") {
			t.Errorf("%s: %s", c.name, out)
		}
	}
	_, out, _ := etrunLines(t, "verify --json "+filepath.Join(root, file))
	var report verifyReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Steps["forward"]) != 2 || report.Steps["forward"][1] > step1 {
		t.Errorf("got %v, %v", report.Steps, err)
	}
}
