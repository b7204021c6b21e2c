//go:build cgo

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/internal/needs"
)

// python returns a Python that has NumPy: that of the system, else the one in PATH.
func python(t testing.TB) string {
	t.Helper()
	var faults []string
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		b, err := exec.CommandContext(t.Context(), name, "-c", "import numpy; numpy.from_dlpack").CombinedOutput()
		if err == nil {
			return name
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		faults = append(faults, name+": "+err.Error()+": "+lines[len(lines)-1])
	}
	needs.Missing(t, "Python with NumPy (packages python3 and python3-numpy; make deps installs them):\n%s", strings.Join(faults, "\n"))
	return ""
}

// runPython runs Python with the package in a folder, and the library in a file, empty for that of the package.
func runPython(t testing.TB, folder, library string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), python(t), append([]string{"-W", "error"}, args...)...)
	c.Env = append(os.Environ(), "PYTHONPATH="+folder, "PYTHONDONTWRITEBYTECODE=1", "ETRUN_LIBRARY="+library)
	b, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, b)
	}
	return string(b)
}

var testsOfPython = []string{"-m", "unittest", "discover", "-s", "../../python/tests"}

var ran = regexp.MustCompile(`Ran (\d+) tests`)

// TestPython runs the tests of the Python package, as it is in the tree and out of a wheel.
func TestPython(t *testing.T) {
	builds(t)
	library := filepath.Join(build(t, "plain"), "libetrun.so.2")
	out := runPython(t, "../../python", library, testsOfPython...)
	if m := ran.FindStringSubmatch(out); m == nil || len(m[1]) < 2 || strings.Contains(out, "skipped") {
		t.Errorf("want 10 tests or more, and none skipped:\n%s", out)
	}
	compareSizes(t, out)
	folder := t.TempDir()
	run(t, "go", "run", "../../scripts/wheel", "-version", "v1.2.3-4-gabc", "-library", library, "-license", "../../LICENSE", "-out", folder,
		"../../python/etrun")
	wheels, _ := filepath.Glob(filepath.Join(folder, "etrun-1.2.3.post4+gabc-py3-none-*linux_*.whl"))
	if len(wheels) != 1 {
		t.Fatalf("wheels %q", wheels)
	}
	run(t, python(t), "-m", "zipfile", "-e", wheels[0], filepath.Join(folder, "site"))
	runPython(t, filepath.Join(folder, "site"), "", testsOfPython...)
}

// compareSizes compares the sizes of the structures in Python with those of the header.
func compareSizes(t *testing.T, out string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("#include <etrun.h>\n")
	sizes := regexp.MustCompile(`\b(\w+)=(\d+)\b`).FindAllStringSubmatch(regexp.MustCompile(`sizes .*`).FindString(out), -1)
	if len(sizes) < 7 {
		t.Fatalf("sizes %q", sizes)
	}
	for _, s := range sizes {
		text.WriteString("_Static_assert(sizeof(etrun_" + s[1] + ") == " + s[2] + ", \"etrun_" + s[1] + "\");\n")
	}
	checkC(t, text.String())
}

// checkC compiles a source, without linking it.
func checkC(t *testing.T, text string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "source.c")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(strict), "-std=c11", "-fsyntax-only", source)
	if b, err := exec.CommandContext(t.Context(), needs.Tool(t, "gcc", "gcc"), args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, b, text)
	}
}

// mistakes are lines of Python that a checker of types must refuse, with a part of what it says.
var mistakes = []struct{ line, part string }{
	{`etrun.load("a.pte", thread=2)`, "thread"},
	{`etrun.load("a.pte", threads="2")`, `"Literal['2']" is not assignable to "int"`},
	{`etrun.Runtime.get().load_program("a.pte", datapath="b")`, "datapath"},
	{`etrun.Runtime.get().load_program("a.pte", verification=1)`, "Verification"},
	{`etrun.load("a.pte").metadata.num_input()`, "num_input"},
	{`etrun.load("a.pte").metadata.num_inputs() + "a"`, `Operator "+" not supported`},
	{`etrun.load("a.pte").execute(3)`, `"Literal[3]" is not assignable`},
	{`etrun.load("a.pte").execute([])[0].shape.append(3)`, `"append"`},
	{`etrun.InferenceSession("a.pte").run("x", 3)`, `"Literal[3]" is not assignable`},
	{`etrun.InferenceSession("a.pte").get_inputs()[0].shapes`, "shapes"},
	{`etrun.load_text("a.pte").generate("a", max_token=3)`, "max_token"},
	{`next(etrun.load_text("a.pte").generate("a")).txt`, "txt"},
	{`etrun.load_embedder("a.pte")`, "tokenizer"},
}

// TestPythonTypes checks the types of the package and of the examples, and that planted mistakes are found.
func TestPythonTypes(t *testing.T) {
	checker, err := filepath.Abs("../../.deps/npm/node_modules/.bin/pyright")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(checker); err != nil {
		needs.Missing(t, "pyright (make deps installs it)")
	}
	python(t)
	text := "import etrun\n"
	for _, m := range mistakes {
		text += m.line + "\n"
	}
	file := filepath.Join(t.TempDir(), "mistakes.py")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("../../pyrightconfig.json")
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ Include []string }
	if err := json.Unmarshal(b, &config); err != nil || len(config.Include) == 0 {
		t.Fatal(config, err)
	}
	c := exec.CommandContext(t.Context(), checker, append(config.Include, file, "--pythonpath", "/usr/bin/python3")...) // once: a start takes seconds
	c.Dir = "../.."
	b, _ = c.CombinedOutput()
	out := string(b)
	for line := range strings.Lines(out) {
		if strings.Contains(line, ".py:") && !strings.Contains(line, "mistakes.py:") {
			t.Error(line)
		}
	}
	for i, m := range mistakes {
		_, said, found := strings.Cut(out, fmt.Sprintf("mistakes.py:%d:", i+2))
		if said, _, _ = strings.Cut(said, "mistakes.py:"); !found || !strings.Contains(said, m.part) {
			t.Errorf("%s: got %q, want an error with %q", m.line, said, m.part)
		}
	}
}

// TestPythonExamples runs the programs of examples/python.
func TestPythonExamples(t *testing.T) {
	builds(t)
	library := filepath.Join(build(t, "plain"), "libetrun.so.2")
	out := runPython(t, "../../python", library, "../../examples/python/digits.py", model, pictures)
	if out != "0 0 0\n6 6 6\n0 0 0\n3 3 3\n4 4 4\n" {
		t.Errorf("digits.py printed %q", out)
	}
	out = runPython(t, "../../python", library, "../../examples/python/text.py", language, tokens, "Once", "Twice")
	if !strings.Contains(out, "\nlength\n") || !strings.Contains(out, `{"n":`) {
		t.Errorf("text.py printed %q", out)
	}
}

// timesOfPython prints the nanoseconds of processor time of a run.
const timesOfPython = `
import sys, time, etrun
import numpy as np
model = etrun.load(sys.argv[1], threads=1)
x, best = np.zeros((1, 1, 8, 8), np.float32), []
for _ in range(10):
    begin = time.process_time()
    for _ in range(2000):
        model.execute([x])
    best.append((time.process_time() - begin) / 2000)
print(min(best) * 1e9)
`

// BenchmarkPythonRun measures the processor time of a run of the digits in Go, and how much more Python needs for it.
func BenchmarkPythonRun(b *testing.B) {
	p, err := etrun.Open(model, etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1))
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	x, best := m.Meta().Inputs[0].NewTensor(), time.Hour
	for range 10 {
		begin := processorTime(b)
		for range 2000 {
			if err := errors.Join(m.SetInput(0, x), m.Execute(b.Context())); err != nil {
				b.Fatal(err)
			}
		}
		best = min(best, (processorTime(b)-begin)/2000)
	}
	library := filepath.Join(build(b, "plain"), "libetrun.so.2")
	inPython, err := strconv.ParseFloat(strings.TrimSpace(runPython(b, "../../python", library, "-c", timesOfPython, model)), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(best), "go-ns")
	b.ReportMetric(inPython-float64(best), "more-ns")
}

// processorTime is that of the process.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

var fences = regexp.MustCompile("(?ms)^```(c|python)\n(.*?)^```")

// blocks returns the blocks of code of a document in a language.
func blocks(t *testing.T, name, language string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fences.FindAllStringSubmatch(string(text), -1) {
		if m[1] == language {
			list = append(list, m[2])
		}
	}
	if len(list) < 3 {
		t.Fatalf("%s: %d blocks of %s", name, len(list), language)
	}
	return list
}

// TestDocumentedC compiles the code of docs/c.md, and runs its program.
func TestDocumentedC(t *testing.T) {
	list := blocks(t, "c.md", "c")
	begin, _, found := strings.Cut(list[0], "int main")
	if !found {
		t.Fatal("the first block is not a program")
	}
	const variables = "void snippet(void);\nvoid snippet(void)\n{\nconst int64_t image[4] = {1, 1, 8, 8};\netrun_program program = 0;\n" +
		"etrun_method method = 0;\nchar *error;\n(void)image; (void)program; (void)method; (void)error; (void)check;\n{\n"
	for _, block := range list[1:] {
		checkC(t, begin+variables+block+"}\n}\n")
	}
	builds(t)
	source := filepath.Join(t.TempDir(), "documented.c")
	if err := os.WriteFile(source, []byte(list[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(t, compile(t, source, build(t, "plain")), model); strings.Count(string(out), "\n") != 10 {
		t.Errorf("printed %q", out)
	}
}

// TestDocumentedPython runs the code of docs/python.md, all blocks in one process.
func TestDocumentedPython(t *testing.T) {
	builds(t)
	list := blocks(t, "python.md", "python")
	folder := t.TempDir()
	names := map[string]string{"digits.pte": model, "images.bin": pictures, "text.pte": language, "tokenizer.json": tokens}
	var script strings.Builder
	script.WriteString("import os, sys\nos.chdir(sys.argv[1])\n")
	script.WriteString(strings.Join(list, "\n"))
	for name, from := range names {
		from, err := filepath.Abs(from)
		if err == nil {
			err = os.Symlink(from, filepath.Join(folder, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(folder, "snippets.py")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	library, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	out := runPython(t, library, filepath.Join(build(t, "plain"), "libetrun.so.2"), file, folder)
	if !slices.Contains(strings.Fields(out), "length") {
		t.Errorf("printed %q", out)
	}
}
