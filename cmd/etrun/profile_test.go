package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"math"
	"os"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"
)

// addUp checks that the shares of rows add up to the whole, and those of parts to their row's.
func addUp(t *testing.T, what string, rows []profileRow, whole float64) {
	t.Helper()
	sum := 0.0
	for _, r := range rows {
		sum += r.Share
		if r.MaxMS < r.MedianMS || r.MedianMS < 0 {
			t.Errorf("%s: %s: median %v, max %v", what, r.Name, r.MedianMS, r.MaxMS)
		}
		if len(r.Parts) > 0 {
			addUp(t, what+", "+r.Name, r.Parts, r.Share)
		}
	}
	if math.Abs(sum-whole) > 1e-9 {
		t.Errorf("%s: shares of %v, want %v", what, sum, whole)
	}
}

func TestProfileReport(t *testing.T) {
	for _, c := range []struct {
		program      string
		instructions int // rows, with what is outside
		parts        bool
	}{{"portable.pte", 13, false}, {"xnnpack.pte", 2, true}} {
		t.Run(c.program, func(t *testing.T) {
			var out, notes bytes.Buffer
			args := []string{"profile", digits(t, c.program), "--json", "--repeat", "5", "--xnnpack", "go", "--lower", "off"}
			if code := run(args, strings.NewReader(""), &out, &notes); code != 0 {
				t.Fatalf("exit code %d: %s", code, notes.String())
			}
			var r profileReport
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.Schema != "etrun.profile/1" || len(r.Methods) != 1 || r.Methods[0].Runs != 5 || r.FirstMS <= 0 || r.LoadMS <= 0 {
				t.Fatalf("got %+v", r)
			}
			m := r.Methods[0]
			addUp(t, "instructions", m.Instructions, 1)
			addUp(t, "operators", m.Operators, 1)
			if len(m.Instructions) != c.instructions || m.Instructions[len(m.Instructions)-1].Name != "outside instructions" {
				t.Errorf("%d rows, want %d: %+v", len(m.Instructions), c.instructions, m.Instructions)
			}
			if parts := m.Instructions[0].Parts; c.parts && (len(parts) < 2 || parts[len(parts)-1].Name != "outside nodes") {
				t.Errorf("parts of the delegate: %+v", parts)
			}
		})
	}
}

// Each file of a profile is accepted by its readers, for profile and for run.
func TestProfileFiles(t *testing.T) {
	program := digits(t, "xnnpack.pte")
	inScriptFolder(t)
	for _, command := range []string{"profile ", ""} {
		args := command + program + " --repeat 3 --trace t.json --etdump e.etdp --pprof p.pb.gz --flame f.svg"
		var out, notes bytes.Buffer
		if code := run(strings.Fields(args), strings.NewReader(""), &out, &notes); code != 0 {
			t.Fatalf("%s: exit code %d: %s", args, code, notes.String())
		}
		files := make(map[string][]byte)
		for _, name := range []string{"t.json", "e.etdp", "p.pb.gz", "f.svg"} {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = b
		}
		var trace struct{ TraceEvents []struct{ Name string } }
		if err := json.Unmarshal(files["t.json"], &trace); err != nil || len(trace.TraceEvents) < 10 {
			t.Errorf("%strace: %d events, %v", command, len(trace.TraceEvents), err)
		}
		if b := files["e.etdp"]; string(b[8:12]) != "ED00" || !bytes.Contains(b, []byte("DELEGATE_CALL")) {
			t.Errorf("%setdump begins with %q", command, b[:12])
		}
		p, err := pprof.ParseData(files["p.pb.gz"])
		if err != nil || len(p.Sample) == 0 || p.SampleType[0].Type != "median" {
			t.Errorf("%spprof: %v, %v", command, p, err)
		}
		if err := xml.Unmarshal(files["f.svg"], new(struct{ XMLName xml.Name })); err != nil {
			t.Errorf("%sflame: %v", command, err)
		}
	}
}

func TestProfile(t *testing.T) {
	play(t, []script{
		{name: "by operator", args: "profile PTE/map_loop.pte --repeat 3", stdout: []string{"load ", "first run", "method forward, 3 runs: median", "share", "JumpFalseCall", "outside instructions"}},
		{name: "by instruction", args: "profile PTE/map_loop.pte --repeat 1 --by instruction", stdout: []string{"1 run: ", "4   1  aten::select_copy.int_out"}},
		{name: "two methods", args: "profile PTE/two_methods.pte --method push --input ones --next --method read --input ones --repeat 2", stdout: []string{"method push, 2 runs", "method read, 2 runs"}},
		{name: "a run's", args: "HERE/add.pte --profile", stdout: []string{"output 0"}, stderr: []string{"method forward, 1 run: median", "aten::add.out"}},
		{name: "a run's, later rounds", args: "HERE/add.pte --profile --repeat 4", stderr: []string{"method forward, 3 runs: median"}},
		{name: "rows", args: "profile HERE/add.pte --by node", code: 2, stderr: []string{"one of operator, instruction"}},
		{name: "no runs", args: "profile HERE/add.pte --repeat 0", code: 2, stderr: []string{"--repeat 0"}},
		{name: "absent", args: "profile gone.pte", code: 2, stderr: []string{"gone.pte"}},
		{name: "place", args: "profile HERE/add.pte --pprof gone/p.pb.gz", code: 2, stderr: []string{"gone"}, absent: []string{"gone"}},
	})
}
