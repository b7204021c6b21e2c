package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/runtime/compile/compiletest"
)

// lowered runs etrun lower, and returns the exit code and the messages.
func lowered(args ...string) (code int, out, notes string) {
	var o, n bytes.Buffer
	code = run(append([]string{"lower"}, args...), strings.NewReader(""), &o, &n)
	return code, o.String(), n.String()
}

func TestLower(t *testing.T) {
	digits, _ := filepath.Abs("../../testdata/digits/portable.pte")
	to := filepath.Join(t.TempDir(), "out.pte")
	code, out, notes := lowered(digits, "-o", to, "--json", "--all")
	if code != 0 {
		t.Fatalf("exit code %d, %s", code, notes)
	}
	var r lowerReport
	must(t, json.Unmarshal([]byte(out), &r))
	if m := &r.Methods[0]; len(m.Regions) != 1 || m.Lowered != m.Instructions || m.OutputPlannedBytes >= m.PlannedBytes || r.Verified == nil || r.Verified.Outputs != 2 {
		t.Errorf("got %s", out)
	}
	first, err := os.ReadFile(to)
	must(t, err)
	if len(first) != r.OutputBytes || len(first) > r.Bytes {
		t.Errorf("%d bytes, the report says %d, of %d", len(first), r.OutputBytes, r.Bytes)
	}
	original, err := os.ReadFile(digits)
	must(t, err)
	if faults := compiletest.Check(original, first); len(faults) > 0 {
		t.Errorf("got %q", faults)
	}
	again := filepath.Join(t.TempDir(), "again.pte") // which it replaces
	must(t, os.WriteFile(again, original, 0o600))
	if code, _, notes := lowered(again, "-o", again, "--all"); code != 0 {
		t.Fatalf("exit code %d, %s", code, notes)
	}
	if second, err := os.ReadFile(again); err != nil || !bytes.Equal(first, second) {
		t.Errorf("lowered again: %d bytes, %v, want the same", len(second), err)
	}
}

// Each call that stays has a reason, also in a method that could be lowered, but not be written.
func TestLowerReasons(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"views/view_written.pte", "  left: 2 calls, aten::addmm.out: the method stays unchanged\n"},
		{"digits/xnnpack.pte", "forward: unchanged: the exporter lowered all its operators already\n" +
			"  left: 1 call, delegate 0, XnnpackBackend: the exporter lowered it already; it stays as it is\n"},
	} {
		from, _ := filepath.Abs("../../testdata/" + c.file)
		code, out, notes := lowered(from, "--all", "-o", filepath.Join(t.TempDir(), "out.pte"))
		if code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, %s%s, want %q", c.file, code, out, notes, c.want)
		}
	}
}

// A file is written only if the outputs are close, and an existing one stays otherwise.
func TestLowerRefuses(t *testing.T) {
	digits, _ := filepath.Abs("../../testdata/digits/portable.pte")
	scalars, _ := filepath.Abs("../../testdata/pte/two_methods.pte")
	weights, _ := filepath.Abs("../../testdata/pte/external_weights.pte")
	for _, c := range []struct {
		name, args, want string
		code             int
	}{
		{"beyond the tolerance", digits + " --all --atol 0 --rtol 0", "results differ", 6},
		{"a wrong tolerance", digits + " --atol -1", "--atol -1", 2},
		{"a release", digits + " --target-version 2.0", `--target-version: ExecuTorch "2.0", want a release from 1.0 to 1.5`, 2},
		{"a backend", digits + " --backend coreml", "want xnnpack", 2},
		{"a method", scalars + " --method forwards", "no method", 2},
		{"inputs", digits + " --all --input ones --input ones", "", 5},
		{"memory", digits + " --all --max-memory 1KiB", "", 9},
		{"memory of the original", digits + " --all --max-memory 60KiB", "; give smaller inputs with --input", 9},
		{"no program", "missing.pte", "missing.pte", 2},
		{"no data", weights, "pass --data FILE.ptd", 4},
	} {
		to := filepath.Join(t.TempDir(), "out.pte")
		write(t, to, []byte("before"))
		code, _, notes := lowered(append(strings.Fields(c.args), "-o", to)...)
		if code != c.code || c.want != "" && strings.Count(notes, c.want) != 1 {
			t.Errorf("%s: exit code %d, want %d, %q once; %s", c.name, code, c.code, c.want, notes)
		}
		if got, err := os.ReadFile(to); err != nil || string(got) != "before" {
			t.Errorf("%s: %d bytes, %v, want the file as before", c.name, len(got), err)
		}
	}
	if code, _, notes := lowered(digits); code != 2 || !strings.Contains(notes, "-o OUT.pte") {
		t.Errorf("no output: exit code %d, %s", code, notes)
	}
}

// The larger constants may be in a file beside the program.
func TestLowerExternalConstants(t *testing.T) {
	for _, from := range []string{"../../testdata/digits/portable.pte", "../../testdata/digits/xnnpack.pte",
		"../../testdata/pte/two_methods.pte"} {
		to := filepath.Join(t.TempDir(), "out.pte")
		code, out, notes := lowered(from, "-o", to, "--all", "--external-constants")
		if code != 0 || strings.Contains(out, "constants written") == strings.Contains(notes, "no data file is written") {
			t.Fatalf("%s: exit code %d, %s%s", from, code, out, notes)
		}
	}
	digits := "../../testdata/digits/portable.pte"
	to := filepath.Join(t.TempDir(), "out.pte")
	beside := strings.TrimSuffix(to, ".pte") + ".ptd"
	code, out, notes := lowered(digits, "-o", to, "--all", "--external-constants")
	if code != 0 || !strings.Contains(out, "constants written to "+beside) {
		t.Fatalf("exit code %d, %s%s", code, out, notes)
	}
	original, err := os.ReadFile(digits)
	must(t, err)
	program, err := os.ReadFile(to)
	must(t, err)
	constants, err := os.ReadFile(beside)
	must(t, err)
	if faults := compiletest.Check(original, program, constants); len(faults) > 0 {
		t.Errorf("got %q", faults)
	}
	if n := len(program) + len(constants); len(program) > 6<<10 || n > len(original)*21/20 {
		t.Errorf("%d bytes, and %d of constants, of %d", len(program), len(constants), len(original))
	}
	var o, n bytes.Buffer
	if code := run([]string{"compare", digits, to, "--data", beside}, strings.NewReader(""), &o, &n); code != 0 {
		t.Errorf("compare: exit code %d, %s%s", code, &o, &n)
	}
	if code := run([]string{"run", to}, strings.NewReader(""), &o, &n); code == 0 || !strings.Contains(n.String(), ".ptd file that holds it") {
		t.Errorf("without the constants: exit code %d, %s", code, &n)
	}
	if code, _, notes := lowered(digits, "-o", "-", "--external-constants"); code != 2 || !strings.Contains(notes, "name of a .pte file") {
		t.Errorf("to standard output: exit code %d, %s", code, notes)
	}
}

// Nothing is written if one of the two files cannot be, and no file is replaced that the command reads.
func TestLowerExternalConstantsRefuses(t *testing.T) {
	digits, _ := filepath.Abs("../../testdata/digits/portable.pte")
	t.Chdir(t.TempDir())
	if code, out, notes := lowered(digits, "-o", "first.pte", "--all", "--external-constants"); code != 0 {
		t.Fatalf("exit code %d, %s%s", code, out, notes)
	}
	must(t, os.Mkdir("folder", 0o755))
	must(t, os.MkdirAll("second.ptd/full", 0o755))
	must(t, os.Link("first.ptd", "third.ptd"))
	before, err := os.ReadFile("first.ptd")
	must(t, err)
	for _, c := range []struct{ args, want string }{
		{digits + " -o folder", "name of a .pte file"},
		{digits + " -o folder/", "name of a .pte file"},
		{digits + " -o " + os.DevNull, "name of a .pte file"},
		{digits + " -o new.PTD", "name of a .pte file"},
		{digits + " -o none/new.pte", "none/new.p"},
		{digits + " -o second.pte", "second.ptd"},
		{"first.pte --data first.ptd -o first.pte", "first.ptd, which the command reads"},
		{"first.pte --data first.ptd -o third.pte", "first.ptd, which the command reads"},
	} {
		code, _, notes := lowered(append(strings.Fields(c.args), "--all", "--external-constants")...)
		if code != 2 || !strings.Contains(notes, c.want) {
			t.Errorf("%s: exit code %d, %s", c.args, code, notes)
		}
	}
	list, err := filepath.Glob("*")
	must(t, err)
	inside, err := filepath.Glob("folder/.*")
	must(t, err)
	if got := strings.Join(append(list, inside...), " "); got != "first.ptd first.pte folder second.ptd third.ptd" {
		t.Errorf("got the files %s", got)
	}
	if after, err := os.ReadFile("first.ptd"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("%d bytes, %v, want the file as before", len(after), err)
	}
	if code, _, notes := lowered(digits, "-o", "model.v2", "--all", "--external-constants"); code != 0 {
		t.Errorf("exit code %d, %s", code, notes)
	}
	if _, err := os.Stat("model.v2.ptd"); err != nil {
		t.Error(err)
	}
}

// A program with a delegate's payload is lowered without a limit of memory.
func TestLowerBesideDelegates(t *testing.T) {
	for _, name := range []string{"digits/xnnpack.pte", "pte/inline_delegate.pte", "pte/named_data.pte", "pte/dynamic_pair_xnnpack.pte"} {
		code, out, notes := lowered("../../testdata/"+name, "-o", filepath.Join(t.TempDir(), "out.pte"), "--all")
		if code != 0 || strings.Contains(out, "memory limit") {
			t.Errorf("%s: exit code %d, %s%s", name, code, out, notes)
		}
	}
}

// The test cases of a bundle pass after its program was lowered.
func TestLowerBundle(t *testing.T) {
	to := filepath.Join(t.TempDir(), "out.bpte")
	if code, out, notes := lowered("../../testdata/pte/bundle.bpte", "-o", to, "--all"); code != 0 || !strings.Contains(out, "3 of 3 instructions lowered") {
		t.Fatalf("exit code %d, %s%s", code, out, notes)
	}
	var out, notes bytes.Buffer
	if code := run([]string{"verify", to}, strings.NewReader(""), &out, &notes); code != 0 {
		t.Errorf("exit code %d, %s%s", code, out.String(), notes.String())
	}
}

// Only the methods that are named are lowered, and what they need may be in data files.
func TestLowerMethods(t *testing.T) {
	to := filepath.Join(t.TempDir(), "out.pte")
	for _, c := range []struct{ args, want string }{
		{"../../testdata/pte/two_methods.pte --all --method push", "unchanged: it is not among the chosen methods"},
		{"../../testdata/pte/external_weights.pte --all --data ../../testdata/pte/external_weights.ptd", "1 of 1 instruction lowered"},
	} {
		if code, out, notes := lowered(append(strings.Fields(c.args), "-o", to)...); code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, want %q; %s%s", c.args, code, c.want, out, notes)
		}
	}
}
