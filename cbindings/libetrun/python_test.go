//go:build cgo

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/needs"
)

// python returns a Python that has NumPy: that of the system, else the one in PATH.
func python(t *testing.T) string {
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
func runPython(t *testing.T, folder, library string, args ...string) string {
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
	long(t)
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
	long(t)
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
	long(t)
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
