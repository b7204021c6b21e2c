package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// npuPrograms is the folder of programs with Ethos-U delegates.
var npuPrograms = filepath.Join(root, "testdata", "ethosu", "programs")

// etrun runs a command line; P/… is a file of npuPrograms.
func etrunLines(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	var out, notes bytes.Buffer
	args := strings.Fields(strings.ReplaceAll(line, "P/", npuPrograms+"/"))
	code = run(args, strings.NewReader(""), &out, &notes)
	return code, out.String(), notes.String()
}

func TestNPUCommands(t *testing.T) {
	dump := t.TempDir()
	tests := []struct {
		line string
		code int
		want []string // parts of stdout in order, or of stderr if the code is not 0
	}{
		{"npu disasm P/digits.pte", 0, []string{`; method "forward", delegate 0`, "ethos-u85-256, COP1, 218 words",
			"; input  0: region 1 at 0x400, [1 1 1 8 8 1]", "   73 NPU_OP_CONV", "; weights 8x3x3x1 (OHWI)", "NPU_OP_STOP"}},
		{"npu disasm P/external.pte --data P/external_cmd.ptd --data P/external_weights.ptd", 0, []string{"218 words"}},
		{"npu disasm P/external.pte", 4, []string{"pass the .ptd file"}},
		{"npu trace P/digits.pte --input P/digits_in0.bin --dump " + dump, 0, []string{
			"delegate 0     0  word    73  crc32 ", "NPU_OP_CONV", "word   216", "output 0: float32 1x10"}},
		{"P/digits.pte --device nothing", 2, []string{`--device "nothing", want one of auto`}},
		{"P/digits.pte --device /dev/nothing", 4, []string{"nothing: open: no such device"}},
		{"P/stale.pte", 3, []string{"declared float32, the NPU writes int8", "export the program again", "qparams"}},
		{"P/stale.pte --qparams 0:0=0.018166271969676018,-3", 0, []string{"output 0: float32 1x20x9x11"}},
		{"npu", 2, []string{"no command, want"}},
		{"npu disasm testdata/add.pte", 2, []string{"no delegate for EthosUBackend"}},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			code, out, notes := etrunLines(t, tt.line)
			text := out
			if code != 0 {
				text = notes
			}
			if code != tt.code {
				t.Fatalf("exit code %d, want %d; stderr:\n%s", code, tt.code, notes)
			}
			checkParts(t, "output", text, tt.want)
		})
	}
	files, err := filepath.Glob(filepath.Join(dump, "delegate0-000*-0.bin"))
	if err != nil || len(files) != 5 {
		t.Errorf("%d dumped files, want 5 (%v)", len(files), err)
	}
}

// TestNPUOutputs compares the outputs of a program with the exact ones, byte by byte.
func TestNPUOutputs(t *testing.T) {
	want, err := os.ReadFile(filepath.Join(npuPrograms, "digits_out0.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"P/digits.pte", "P/external.pte --data P/external_cmd.ptd --data P/external_weights.ptd"} {
		dir := t.TempDir()
		if code, _, notes := etrunLines(t, program+" --device npu --input P/digits_in0.bin --output-dir "+dir); code != 0 {
			t.Fatalf("%s: exit code %d: %s", program, code, notes)
		}
		got, err := os.ReadFile(filepath.Join(dir, "out0.bin"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: output %v, want %v (%v)", program, got, want, err)
		}
	}
}
