package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// A script is a command line with its expected results. In args and files, PTE is the folder of
// the module's test programs, HERE this package's; every other name is relative to the
// script's own folder, which contains the files of inScriptFolder.
type script struct {
	name   string
	args   string
	code   int
	stdout []string // parts that must occur, in this order
	stderr []string
	files  map[string]string // contents of float32, int64 or text files after the run
	absent []string          // files that must not exist after the run
}

// run runs the script and returns its output.
func (s script) run(t *testing.T) (stdout, stderr string) {
	t.Helper()
	inScriptFolder(t)
	return s.runHere(t)
}

// runHere runs the script in the working folder.
func (s script) runHere(t *testing.T) (stdout, stderr string) {
	t.Helper()
	var out, notes bytes.Buffer
	code := run(strings.Fields(s.args), strings.NewReader(""), &out, &notes)
	if code != s.code {
		t.Errorf("exit code %d, want %d; stderr:\n%s", code, s.code, notes.String())
	}
	checkParts(t, "stdout", out.String(), s.stdout)
	checkParts(t, "stderr", notes.String(), s.stderr)
	for name, want := range s.files {
		if got := fileText(t, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for _, name := range s.absent {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	return out.String(), notes.String()
}

func play(t *testing.T, scripts []script) {
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	pte, err := filepath.Abs("../../testdata/pte")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer("HERE", here, "PTE", pte)
	for _, s := range scripts {
		s.args = names.Replace(s.args)
		t.Run(s.name, func(t *testing.T) { s.run(t) })
	}
}

func checkParts(t *testing.T, what, text string, parts []string) {
	t.Helper()
	if part := missingPart(text, parts); part != "" {
		t.Errorf("%s: %q is not there, or not in its place, in\n%s", what, part, text)
	}
}

// missingPart returns the first part that does not follow the one before it in a text, "" if all do.
func missingPart(text string, parts []string) string {
	for _, part := range parts {
		_, after, found := strings.Cut(text, part)
		if !found {
			return part
		}
		text = after
	}
	return ""
}

// inScriptFolder changes to a folder with input files.
func inScriptFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	four := tensor.Of([]float32{1, 2, 3, 4}, 4)
	grid := tensor.Of(slices.Repeat([]float32{0.5, 1, -2}, 6), 3, 6)
	write(t, "four.bin", four.Data)
	write(t, "grid.bin", grid.Data)
	write(t, "empty.pte", nil)
	write(t, "model.tflite", []byte("\x1c\x00\x00\x00TFL3\x14\x00\x20\x00\x1c\x00\x18\x00"))
	write(t, "noise.pte", bytes.Repeat([]byte("noise "), 100))
	var b bytes.Buffer
	z := npy.NewZipWriter(&b)
	if err := errors.Join(z.Add("arr_1", grid), z.Add("arr_0", tensor.New(tensor.Float32, 3, 6)), z.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, "grids.npz", b.Bytes())
	write(t, "grids.tmp", b.Bytes())
	write(t, "labels.txt", []byte("zero\none\r\ntwo\x1b[31m\n"))
	b.Reset()
	if err := npy.Write(&b, four); err != nil {
		t.Fatal(err)
	}
	write(t, "four.npy", b.Bytes())
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// fileText formats a file of float32 elements as numbers, any other as compact JSON.
func fileText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(name) != ".json" {
		var floats []string
		for i := 0; i+4 <= len(b); i += 4 {
			bits := uint32(b[i]) | uint32(b[i+1])<<8 | uint32(b[i+2])<<16 | uint32(b[i+3])<<24
			text, _ := json.Marshal(math.Float32frombits(bits))
			floats = append(floats, string(text))
		}
		return strings.Join(floats, " ")
	}
	var c bytes.Buffer
	if err := json.Compact(&c, b); err != nil {
		t.Fatal(err)
	}
	return c.String()
}
