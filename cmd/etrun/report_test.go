package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
)

func TestReport(t *testing.T) {
	const json = `"schema": "etrun.report/1"`
	play(t, []script{
		{name: "page", args: "report PTE/../digits/portable.pte", stdout: []string{"portable.html\n"}},
		{name: "profile", args: "report PTE/../digits/xnnpack.pte --run --repeat 2 -o page.html --json", stdout: []string{json, `"page": "page.html"`, `"runs": 2`},
			stderr: []string{"random elements"}},
		{name: "inputs ask for a profile", args: "report HERE/add.pte -i ones -i ones --json", stdout: []string{json, `"runs": 30`}},
		{name: "NPU", args: "report PTE/../ethosu/programs/digits.pte --json", stdout: []string{json, `"nodes": 5`, `"runs": 0`}},
		{name: "does not load here", args: "report PTE/external_weights.pte --json", stdout: []string{json, `"load_error"`, "l.weight"}},
		{name: "does not run here", args: "report PTE/external_weights.pte --run", code: 4, stderr: []string{"pass --data FILE.ptd"}, absent: []string{"external_weights.html"}},
		{name: "several methods", args: "report PTE/two_methods.pte --method read --json", stdout: []string{`"name": "push"`, `"runs": 0`, `"name": "read"`, `"runs": 30`}},
		{name: "no file", args: "report gone.pte", code: 2, stderr: []string{"no such file"}, absent: []string{"gone.html"}},
		{name: "no program", args: "report noise.pte", code: 3, absent: []string{"noise.html"}},
		{name: "no place", args: "report HERE/add.pte -o four.bin/x.html", code: 2, stderr: []string{"four.bin"}},
		{name: "no input of this kind", args: "report HERE/add.pte -i int:3", code: 5, absent: []string{"add.html"}},
		{name: "no runs", args: "report HERE/add.pte --run --repeat 0", code: 2, stderr: []string{"--repeat 0"}},
		{name: "two objects on stdout", args: "report HERE/add.pte -o - --json", code: 2, stderr: []string{"standard output"}},
	})
}

// There is no page for a truncated file.
func TestReportOfTruncatedFile(t *testing.T) {
	file := readText(t, "testdata", "digits", "xnnpack.pte")
	inScriptFolder(t)
	write(t, "cut.pte", []byte(file[:len(file)/2]))
	script{args: "report cut.pte", code: 3}.runHere(t)
	if _, err := os.Stat("cut.html"); err == nil {
		t.Error("there is a page")
	}
}

func TestReportThroughPipes(t *testing.T) {
	code, out, notes := piped(t, []byte(readText(t, "testdata", "digits", "portable.pte")), "report - -o -")
	if code != 0 || !bytes.HasPrefix(out, []byte("<!doctype html>")) || !bytes.Contains(out, []byte("</html>")) {
		t.Errorf("exit code %d, %d bytes: %s", code, len(out), notes)
	}
}

// There is no page after an interrupt.
func TestReportInterrupted(t *testing.T) {
	program := digits(t, "portable.pte")
	inScriptFolder(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var out, notes bytes.Buffer
	a := &app{App: cli.App{In: strings.NewReader(""), Out: &out, Notes: &notes}}
	c := newRoot(a)
	c.SetArgs([]string{"report", program, "--repeat", "10000000"})
	if err := c.ExecuteContext(ctx); exitOf(err).code != 8 {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat("portable.html"); err == nil {
		t.Error("there is a page")
	}
}
