package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
)

// piped runs a command line in a separate process, with standard input and output.
func piped(t *testing.T, stdin []byte, line string) (code int, stdout []byte, stderr string) {
	t.Helper()
	testdata, err := filepath.Abs(filepath.Join(root, "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], strings.Fields(strings.ReplaceAll(line, "T/", testdata+"/"))...)
	var out, notes bytes.Buffer
	c.Env, c.Stdin, c.Stdout, c.Stderr = append(os.Environ(), asCommand+"=1"), bytes.NewReader(stdin), &out, &notes
	if err := c.Run(); c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.Bytes(), notes.String()
}

// A dash is standard input, which only one argument may read.
func TestStdin(t *testing.T) {
	program := []byte(readText(t, "testdata", "digits", "portable.pte"))
	image := []byte(readText(t, "testdata", "digits", "images.f32.bin"))[:8*8*4]
	weights := []byte(readText(t, "testdata", "pte", "external_weights.ptd"))
	for _, c := range []struct {
		line  string
		stdin []byte
		code  int
		want  string // in stdout, or in stderr where the code is not 0
	}{
		{"-", program, 0, "output 0: float32 1x10"},
		{"inspect -", program, 0, "method forward"},
		{"check -", program, 0, "runs here"},
		{"T/digits/portable.pte --input -", image, 0, "output 0: float32 1x10"},
		{"T/digits/portable.pte --input -:float32:1x1x8x8", image, 0, "output 0: float32 1x10"},
		{"T/pte/external_weights.pte --data - --input ones", weights, 0, "float32 2x3"},
		{"- --input -", program, 2, "2 arguments read standard input"},
		{"T/digits/portable.pte --input -", image[:5], 5, "5 bytes, want 256"},
		{"-", nil, 2, "no process writes to the pipe"},
	} {
		code, out, notes := piped(t, c.stdin, c.line)
		text := string(out)
		if c.code != 0 {
			text = notes
		}
		if code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q in %s%s", c.line, code, c.code, c.want, out, notes)
		}
	}
}

// A dash is standard output, which then has no other text.
func TestStdout(t *testing.T) {
	npz := func(b []byte) error {
		_, err := npy.ReadZip(bytes.NewReader(b), int64(len(b)), 1<<20)
		return err
	}
	svg := func(b []byte) error { return xml.Unmarshal(b, new(struct{ XMLName xml.Name })) }
	for _, c := range []struct {
		line  string
		check func([]byte) error
		words string // in stderr
	}{
		{"T/digits/portable.pte --output-npz -", npz, "output 0: float32 1x10"},
		{"T/digits/portable.pte --repeat 2 --output-npz -", npz, "2 runs"},
		{"T/digits/portable.pte --output -:json", func(b []byte) error { return json.Unmarshal(b, new([1][10]float64)) }, "output 0: "},
		{"plan T/digits/portable.pte --svg -", svg, ""},
		{"profile T/digits/portable.pte --flame -", svg, "outside instructions"},
		{"profile T/digits/portable.pte --pprof -", func(b []byte) error { _, err := pprof.ParseData(b); return err }, "outside instructions"},
	} {
		code, out, notes := piped(t, nil, c.line)
		if err := c.check(out); code != 0 || err != nil || !strings.Contains(notes, c.words) {
			t.Errorf("%s: exit code %d, %v; %q not in %s", c.line, code, err, c.words, notes)
		}
	}
	for _, line := range []string{"T/digits/portable.pte --output-npz - --json", "profile T/digits/portable.pte --flame - --pprof -"} {
		if code, _, notes := piped(t, nil, line); code != 2 || !strings.Contains(notes, "standard output") {
			t.Errorf("%s: exit code %d, want 2: %s", line, code, notes)
		}
	}
}
