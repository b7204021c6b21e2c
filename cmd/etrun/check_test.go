package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// changedProgram writes a program of testdata/pte after a change.
func changedProgram(t *testing.T, name string, change func(*pte.Program)) string {
	t.Helper()
	return changedFile(t, filepath.Join(root, "testdata", "pte", name), change)
}

// changedFile is changedProgram for a path.
func changedFile(t *testing.T, name string, change func(*pte.Program)) string {
	t.Helper()
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pte.Parse(file, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	change(p)
	path := filepath.Join(t.TempDir(), filepath.Base(name))
	write(t, path, ptetest.Write(p, ptetest.Layout{}))
	return path
}

// checked runs check with --json.
func checked(t *testing.T, args ...string) *checkReport {
	t.Helper()
	var out, notes bytes.Buffer
	code := run(append([]string{"check", "--json"}, args...), strings.NewReader(""), &out, &notes)
	r := &checkReport{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		t.Fatalf("%v in %s; stderr: %s", err, out.String(), notes.String())
	}
	if r.Exit != code {
		t.Errorf("exit %d in the report, the code is %d", r.Exit, code)
	}
	return r
}

// Everything that two methods lack is found in one check.
func TestCheckFindsAllThatIsMissing(t *testing.T) {
	path := changedProgram(t, "inline_delegate.pte", func(p *pte.Program) {
		m := &p.Methods[0]
		m.Delegates[0].ID = "XnnpackBackend2"
		m.Operators = append(m.Operators, pte.Operator{Name: "aten::add", Overload: "outt"}, pte.Operator{Name: "acme::frobnicate", Overload: "out"})
		n := len(m.Operators)
		c := &m.Chains[0]
		for _, index := range []int{n - 2, n - 1, n - 2} {
			c.Instructions = append(c.Instructions, pte.Instruction{Kind: pte.KernelCall, Index: index})
		}
	})
	r := checked(t, path)
	if r.Exit != 4 || len(r.Files) != 1 || len(r.Files[0].Findings) != 3 {
		t.Fatalf("got %+v, want exit 4 and 3 findings", r)
	}
	want := []finding{
		{Kind: "operator", Name: "aten::add.outt", Nearest: "aten::add.out", Calls: 2},
		{Kind: "operator", Name: "acme::frobnicate.out", Calls: 1},
		{Kind: "backend", Name: "XnnpackBackend2", Nearest: "XnnpackBackend", Calls: 1},
	}
	for i, f := range r.Files[0].Findings {
		w := want[i]
		if f.Kind != w.Kind || f.Name != w.Name || f.Nearest != w.Nearest || f.Calls != w.Calls || f.First == "" || f.Method != "forward" {
			t.Errorf("finding %d: got %+v, want %+v", i, f, w)
		}
	}
}

// A plan with overlapping live values is a note, and an error with --strict-plan.
func TestCheckFindsUnsafePlans(t *testing.T) {
	path := changedProgram(t, "conv_portable.pte", func(p *pte.Program) {
		for v := range p.Methods[0].Values {
			if at := p.Methods[0].Values[v].Tensor; at != nil && at.Storage == pte.Planned {
				at.Offset = 0
			}
		}
	})
	r := checked(t, path)
	if r.Exit != 0 || len(r.Files[0].Findings) != 1 || r.Files[0].Findings[0].Kind != "plan" || !r.Files[0].Findings[0].Note {
		t.Errorf("got %+v, want a note on the plan", r)
	}
	if r := checked(t, path, "--strict-plan"); r.Exit != 3 {
		t.Errorf("with --strict-plan: got %+v, want exit 3", r)
	}
}

// zippedProgram writes a program of the XNNPACK cases to a file.
func zippedProgram(t *testing.T, name string) string {
	t.Helper()
	z, err := zip.OpenReader(filepath.Join(root, "testdata", "xnnpack", "programs.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	f, err := z.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	program, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(name))
	write(t, path, program)
	return path
}

func TestCheck(t *testing.T) {
	mixed := zippedProgram(t, "seed_b_dynq/oldpass_two_convs.pte")
	play(t, []script{
		{name: "runs", args: "check PTE/two_methods.pte", stdout: []string{"two_methods.pte: runs here (program version 0, 2 methods, 4 operators, 0 delegates)\n"}},
		{name: "memory orders", args: "check " + mixed, stdout: []string{"runs here", "note: method forward: delegate 0: node 1 (Multiply): reads value 0 ", "transposed to channels last order for a convolution"}},
		{name: "an elided view", args: "check PTE/elided_view.pte", stdout: []string{"runs here", "note: method forward: value 14, a view of value 7"}},
		{name: "as it is written", args: "check PTE/elided_view.pte --repair=off",
			stdout: []string{"elided_view.pte: runs here (program version 0, 1 method, 4 operators, 0 delegates)\n"}},
		{name: "external data", args: "check PTE/external_weights.pte", code: 4,
			stdout: []string{"lacks what it needs", "data l.weight", "pass --data FILE.ptd", "data l.bias"}, stderr: []string{"external_weights.pte does not run here: missing\n"}},
		{name: "external data of a delegate", args: "check PTE/../ethosu/programs/external.pte --data PTE/../ethosu/programs/external_cmd.ptd", code: 4,
			stdout: []string{"lacks what it needs", "method forward: data 455d23"}},
		{name: "external data that is there", args: "check PTE/external_weights.pte --data PTE/external_weights.ptd", stdout: []string{"runs here"}},
		{name: "surplus data", args: "check HERE/add.pte --data PTE/external_weights.ptd", stdout: []string{"runs here", "note: ", "external_weights.ptd: the program does not use this data"}},
		{name: "stale type", args: "check PTE/../ethosu/programs/stale.pte", code: 3, stdout: []string{"invalid", "declared float32, the NPU writes int8"}},
		{name: "stale type with its scale", args: "check PTE/../ethosu/programs/stale.pte --qparams 0:0=0.018,-3", stdout: []string{"runs here", "note", "with scale 0.018"}},
		{name: "several files", args: "check HERE/add.pte noise.pte gone.pte PTE/external_weights.pte", code: 2,
			stdout: []string{"add.pte: runs here", "noise.pte: invalid", "gone.pte: cannot be read", "external_weights.pte: lacks"}, stderr: []string{"1 of 4 files"}},
		{name: "invalid is worse than missing", args: "check PTE/external_weights.pte noise.pte", code: 3, stderr: []string{"invalid program: 1 of 2 files"}},
		{name: "memory", args: "check PTE/stack_traces.pte --max-memory 6KiB", code: 9, stdout: []string{"above the memory limit"}},
		{name: "nothing", args: "check", code: 2, stderr: []string{"want FILE.pte"}},
		{name: "a flag of run", args: "check HERE/add.pte --seed 2", code: 2, stderr: []string{"unknown flag"}},
	})
}

// A truncated file is reported, and never crashes check.
func TestCheckTruncated(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(root, "testdata", "pte", "named_data.pte"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.pte")
	for n := 0; n < len(file); n += 97 {
		write(t, path, file[:n])
		if r := checked(t, path); r.Exit != 3 || r.Files[0].Verdict != "model" {
			t.Errorf("%d of %d bytes: %+v, want exit 3", n, len(file), r)
		}
	}
}
