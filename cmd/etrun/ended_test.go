package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// loopForever makes the method forward begin again at its end.
func loopForever(p *pte.Program) {
	for i := range p.Methods {
		m := &p.Methods[i]
		if m.Name != "forward" { // metadata of a language model
			continue
		}
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindBool})
		c := &m.Chains[0]
		c.Instructions = append(c.Instructions, pte.Instruction{Kind: pte.JumpFalseCall, Index: len(m.Values) - 1})
	}
}

// loopingBundle writes a bundle whose program does not end.
func loopingBundle(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../testdata/pte/bundle.bpte")
	must(t, err)
	bundle, err := tree.Decode(data)
	must(t, err)
	p, err := pte.ParseBundle(data, pte.Limits{})
	must(t, err)
	dir := t.TempDir()
	inner := filepath.Join(dir, "inner.pte")
	write(t, inner, p.Program)
	program, err := os.ReadFile(changedFile(t, inner, loopForever))
	must(t, err)
	bundle.Root.With("program", program)
	path := filepath.Join(dir, "loop.bpte")
	write(t, path, bundle.Bytes())
	return path
}

// ended is a command that does not end, and what it prints when it is ended.
type ended struct {
	args   string
	stdout []string // parts, in this order
	stderr string
}

var endings = []ended{
	{args: "LOOP"},
	{args: "run LOOP --profile", stderr: "incomplete first run: "},
	{args: "run LOOP --json", stdout: []string{`"class": "cancelled"`}},
	{args: "run D/portable.pte -n 10000000", stdout: []string{"output 0", "forward  first "}},
	{args: "run D/portable.pte -n 10000000 --json", stdout: []string{`"interrupted": true`}},
	{args: "run LOOP --lower verify"},
	{args: "profile LOOP --lower off", stdout: []string{"method forward, incomplete first run: ", "aten::convolution.out"}},
	{args: "profile LOOP --lower off --json --trace trace.json", stdout: []string{`"runs": 0`, `"name": "aten::convolution.out"`,
		`"interrupted": true`}},
	{args: "profile D/portable.pte --lower off --repeat 10000000", stdout: []string{"first run ", "method forward, ", " runs: median ",
		"aten::convolution.out"}},
	{args: "compare D/portable.pte LOOP"},
	{args: "compare LOOP D/portable.pte --layer"},
	{args: "compare D/portable.pte LOOP --layer", stdout: []string{"layer: ", " values compared, "}},
	{args: "compare D/portable.pte LOOP --layer --json", stdout: []string{`"compared": `, `"interrupted": true`}},
	{args: "compare D/portable.pte LOOP --trap-nan"},
	{args: "bench LOOP --duration 1h"},
	{args: "bench D/portable.pte LOOP --duration 1h"},
	{args: "bench --text LM --duration 1h"},
	{args: "load URL --model digits --duration 1h --warmup 0s", stdout: []string{"clients 1: ", "latency "}},
	{args: "load URL --model digits --rate 100 --duration 1h --warmup 0s --json", stdout: []string{`"rate": 100`, `"interrupted": true`}},
	{args: "report LOOP --run"},
	{args: "verify BUNDLE"},
	{args: "verify BUNDLE --json", stdout: []string{`"class": "cancelled"`}},
	{args: "generate LOOPLM --tokens 1,2,3"},
	{args: "npu trace LOOPNPU", stdout: []string{"crc32"}},
}

// TestEnded ends each command by its time limit and by an interrupt: it ends at once, with exit code 8 and what there is.
func TestEnded(t *testing.T) {
	files := strings.NewReplacer("LOOPNPU", changedProgram(t, "../ethosu/programs/digits.pte", loopForever),
		"LOOPLM", changedProgram(t, "../../text/testdata/dynamic.pte", loopForever),
		"LOOP", changedProgram(t, "../digits/portable.pte", loopForever),
		"BUNDLE", loopingBundle(t), "LM", textFile(t, "dynamic.pte"), "URL", measured(t), "D/", filepath.Dir(digits(t, "portable.pte"))+"/")
	t.Chdir(t.TempDir())
	for _, e := range endings {
		args := strings.Fields(files.Replace(e.args))
		t.Run(e.args+" --timeout", func(t *testing.T) {
			e.check(t, func(running time.Duration) ([]string, string) {
				return append(args, "--timeout", running.String()), "timeout of "
			})
		})
		t.Run(e.args, func(t *testing.T) {
			e.check(t, func(running time.Duration) ([]string, string) {
				timer := time.AfterFunc(running, func() {
					if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
						t.Error(err)
					}
				})
				t.Cleanup(func() { timer.Stop() })
				return args, "interrupt"
			})
		})
	}
}

// check runs a command that is ended after some time: more of it on a machine that is so slow that the command has not
// printed what it should. arguments returns them, and the reason of the end in stderr.
func (e *ended) check(t *testing.T, arguments func(running time.Duration) (args []string, reason string)) {
	t.Helper()
	var out, notes bytes.Buffer
	running, code := 25*time.Millisecond, 0
	args, reason := arguments(running)
	begun := time.Now()
	for {
		code = run(args, strings.NewReader(""), &out, &notes)
		if running > 4*time.Second || missingPart(out.String(), e.stdout) == "" {
			break
		}
		out.Reset()
		notes.Reset()
		running *= 4
		args, reason = arguments(running)
		begun = time.Now()
	}
	const most = 10 * time.Second // a fraction of a second on an idle machine; the programs do not end by themselves
	if took := time.Since(begun) - running; code != 8 || took > most {
		t.Errorf("exit code %d %v after the end, want 8 at once; stderr: %s", code, took, notes.String())
	}
	if !strings.Contains(notes.String(), reason) || !strings.Contains(notes.String(), e.stderr) {
		t.Errorf("stderr %q, want %q and %q", notes.String(), e.stderr, reason)
	}
	checkParts(t, "stdout", out.String(), e.stdout)
}
