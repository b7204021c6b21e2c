//go:build cgo

package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/internal/needs"
)

const (
	model    = "../../testdata/digits/xnnpack.pte"
	scalars  = "../../testdata/pte/scalar_inputs.pte"
	pictures = "../../testdata/digits/images.f32.bin"
	language = "../../text/testdata/dynamic.pte"
	tokens   = "../../text/testdata/bytes.json"
	images   = 20
)

// For these everything is compiled once more.
var (
	withLibrary = flag.Bool("build", false, "run the tests that build the library")
	sanitize    = flag.Bool("sanitize", false, "run TestAddressSanitizer")
)

var work string // folder of what the tests build

func TestMain(m *testing.M) {
	var err error
	if work, err = os.MkdirTemp("", "libetrun"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(work)
	os.Exit(code)
}

// run runs a program and returns what it prints.
func run(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, b)
	}
	return b
}

// builds skips tests that build the library where that was not asked for.
func builds(t *testing.T) {
	t.Helper()
	if !*withLibrary {
		t.Skip("-build runs it (make cases): the library takes a minute to build")
	}
}

// goBuild runs go build with the options for C of scripts/dist.sh, which compiles nothing again then.
func goBuild(t testing.TB, args ...string) {
	t.Helper()
	t.Setenv("CGO_CFLAGS", "-O2")
	t.Setenv("CGO_LDFLAGS", "-O2 -Wl,--build-id=none")
	run(t, "go", append([]string{"build"}, args...)...)
}

var built sync.Map // by name: functions that build once

// build builds the library into a folder of its own, once for all tests, and returns the folder.
func build(t testing.TB, name string, flags ...string) string {
	t.Helper()
	folder := filepath.Join(work, name)
	once, _ := built.LoadOrStore(name, sync.OnceFunc(func() {
		args := append([]string{"-buildmode=c-shared", "-ldflags", "-s -w -extldflags -Wl,-soname,libetrun.so.2"}, flags...)
		goBuild(t, append(args, "-o", filepath.Join(folder, "libetrun.so.2"), ".")...)
		if err := os.Symlink("libetrun.so.2", filepath.Join(folder, "libetrun.so")); err != nil {
			t.Fatal(err)
		}
	}))
	once.(func())()
	return folder
}

var strict = []string{"-Wall", "-Wextra", "-pedantic", "-Werror", "-I."}

// compile compiles a program in C and returns its path.
func compile(t *testing.T, source, library string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), ".c"))
	args := append(slices.Concat([]string{"-std=c99", "-g", "-O1"}, strict, flags), "-o", program, source)
	args = append(args, "-L"+library, "-letrun", "-lpthread", "-Wl,-rpath,"+library)
	run(t, needs.Tool(t, "gcc", "gcc"), args...)
	return program
}

func TestHeaderCompiles(t *testing.T) {
	source := filepath.Join(t.TempDir(), "header")
	for _, c := range []struct{ compiler, suffix, standard string }{
		{"gcc", ".c", "c99"}, {"gcc", ".c", "c11"}, {"gcc", ".c", "c17"},
		{"g++", ".cc", "c++11"}, {"g++", ".cc", "c++17"}, {"g++", ".cc", "c++20"},
	} {
		text := "#include \"etrun.h\"\n#include \"etrun.h\"\nint main(void) { return etrun_abi() != ETRUN_ABI; }\n"
		if err := os.WriteFile(source+c.suffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, needs.Tool(t, c.compiler, c.compiler), append(slices.Clone(strict), "-std="+c.standard, "-fsyntax-only", source+c.suffix)...)
	}
}

var prototype = regexp.MustCompile(`(?m)^(?:extern )?((?:const )?\w+(?: \*|\* ?| ))(etrun_\w+)\(([^;]*)\);`)

// prototypes returns the functions of a header with their types, without names of parameters and const.
func prototypes(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[string]string)
	for _, m := range prototype.FindAllStringSubmatch(string(text), -1) {
		types := []string{plainType(m[1] + "x")}
		for parameter := range strings.SplitSeq(m[3], ",") {
			types = append(types, plainType(parameter))
		}
		list[m[2]] = strings.Join(types, ", ")
	}
	return list
}

// plainType returns the type of a parameter.
func plainType(parameter string) string {
	text := strings.ReplaceAll(strings.ReplaceAll(parameter, "const", " "), "*", " * ")
	fields := strings.Fields(text)
	if len(fields) > 1 && fields[len(fields)-1] != "*" {
		fields = fields[:len(fields)-1]
	}
	return strings.Join(fields, " ")
}

// TestHeaderIsComplete compares the functions of the header with those that cgo declares.
func TestHeaderIsComplete(t *testing.T) {
	builds(t)
	exported := prototypes(t, filepath.Join(build(t, "plain"), "libetrun.so.h"))
	promised := prototypes(t, "etrun.h")
	if len(promised) < 25 {
		t.Fatalf("%d functions found", len(promised))
	}
	for name, types := range promised {
		if exported[name] != types {
			t.Errorf("%s: exported with %q, want %q", name, exported[name], types)
		}
	}
	for name := range exported {
		if promised[name] == "" {
			t.Errorf("%s: not in the header", name)
		}
	}
}

// scoresInGo returns the results for the images in Go.
func scoresInGo(t *testing.T) (scores []byte) {
	t.Helper()
	rest, err := os.ReadFile(pictures)
	if err != nil {
		t.Fatal(err)
	}
	p, err := etrun.Open(model, etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(t.Context(), "forward")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	x := m.Meta().Inputs[0].NewTensor()
	for range images {
		n := copy(x.Data, rest)
		rest = rest[n:]
		if err := errors.Join(m.SetInput(0, x), m.Execute(t.Context())); err != nil {
			t.Fatal(err)
		}
		out, err := m.Output(0)
		if err != nil {
			t.Fatal(err)
		}
		scores = append(scores, out.Tensor.Data...)
	}
	return scores
}

// TestSameBytes checks that a program in C gets the same bytes as one in Go.
func TestSameBytes(t *testing.T) {
	builds(t)
	want, out := scoresInGo(t), filepath.Join(t.TempDir(), "out")
	run(t, compile(t, "testdata/digits.c", build(t, "plain")), model, pictures, out)
	got, err := os.ReadFile(out)
	if err != nil || !bytes.Equal(got[:min(len(want), len(got))], want) || len(want) != images*40 {
		t.Errorf("%v, %d bytes, other than %d in Go", err, len(got), len(want))
	}
}

// TestContract checks what the library refuses, from one thread and from two.
func TestContract(t *testing.T) {
	builds(t)
	library := build(t, "plain")
	run(t, compile(t, "testdata/contract.c", library), model, pictures, scalars)
	run(t, compile(t, "testdata/text.c", library), language, tokens)
	run(t, compile(t, "testdata/calls.c", library), callsOf(t)...)
}

// callsOf returns the arguments of testdata/calls.c.
func callsOf(t *testing.T) []string {
	const encoders, speeches, seen = "../../text/testdata/encoders/", "../../speech/testdata/", "../../text/testdata/pictures/"
	return []string{model, pictures, filepath.Join(t.TempDir(), "dump"), language, tokens, encoders + "bert.pte", encoders + "vocab.txt",
		speeches + "whisper/model.pte", speeches + "whisper", speeches + "speech.wav",
		seen + "model.pte", seen + "tokenizer.json", seen + "b.jpg"}
}

// TestStaticLibrary links a program in C with the library for static linking, which gets the same bytes.
func TestStaticLibrary(t *testing.T) {
	builds(t)
	folder, gcc := t.TempDir(), needs.Tool(t, "gcc", "gcc")
	archive, program, out := filepath.Join(folder, "libetrun.a"), filepath.Join(folder, "digits"), filepath.Join(folder, "out")
	goBuild(t, "-buildmode=c-archive", "-ldflags", "-s -w", "-o", archive, ".")
	run(t, gcc, "-std=c99", "-I.", "-o", program, "testdata/digits.c", archive, "-lpthread", "-ldl")
	run(t, program, model, pictures, out)
	got, err := os.ReadFile(out)
	if want := scoresInGo(t); err != nil || !bytes.HasPrefix(got, want) {
		t.Errorf("%v, %d bytes, other than %d in Go", err, len(got), len(want))
	}
}

// TestAddressSanitizer runs the same programs under the address sanitizer, with a library in which
// accesses of Go to memory of C are checked, too.
func TestAddressSanitizer(t *testing.T) {
	if !*sanitize {
		t.Skip("-sanitize runs it (make race)")
	}
	probe := filepath.Join(t.TempDir(), "probe.c")
	if err := os.WriteFile(probe, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gcc, sanitizers := needs.Tool(t, "gcc", "gcc"), "-fsanitize=address,undefined"
	if b, err := exec.CommandContext(t.Context(), gcc, sanitizers, "-o", probe+".out", probe).CombinedOutput(); err != nil {
		needs.Missing(t, "gcc's address sanitizer: %v\n%s", err, b)
	}
	library := build(t, "asan", "-asan")
	run(t, compile(t, "testdata/contract.c", library, sanitizers), model, pictures, scalars)
	run(t, compile(t, "testdata/text.c", library, sanitizers), language, tokens)
	run(t, compile(t, "testdata/calls.c", library, sanitizers), callsOf(t)...)
}
