package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/runtime/pte"
)

func TestRunInputs(t *testing.T) {
	const added = "0.5 1 -2 0.5 1 -2 0.5 1 -2 0.5 1 -2 0.5 1 -2 0.5 1 -2"
	play(t, []script{
		{name: "raw elements", args: "HERE/add.pte --input grid.bin --input zeros --output-dir o", files: map[string]string{"o/out0.bin": added}},
		{name: "of the model's type", args: "PTE/dynamic_view.pte --input rand:2x8", stdout: []string{"float32 "}},
		{name: "JSON", args: "HERE/state.pte --input json:[1,2,3,4] --output-dir o", files: map[string]string{"o/out0.bin": "2 4 6 8"}},
		{name: "an archive under another name", args: "HERE/add.pte --input grids.tmp --output-dir o",
			files: map[string]string{"o/out0.bin": added}},
		{name: "stated type and sizes", args: "HERE/add.pte --input grid.bin:float32:3x6 --input zeros:float32:3x6 --output-dir o",
			files: map[string]string{"o/out0.bin": added}},
		{name: "named inputs", args: "HERE/add.pte --input 1=grid.bin --input 0=zeros --output-dir o",
			files: map[string]string{"o/out0.bin": added}},
		{name: "archive", args: "HERE/add.pte --input grids.npz --output-dir o", files: map[string]string{"o/out0.bin": added}},
		{name: "array", args: "HERE/state.pte --input four.npy --output-dir o", files: map[string]string{"o/out0.bin": "2 4 6 8"}},
		{name: "flags before the model", args: "--input ones --input ones HERE/add.pte", stdout: []string{"min 2  max 2  mean 2"}},
		{name: "integer that varies", args: "HERE/symint.pte --input grid.bin --input int:2 --output-dir o",
			files: map[string]string{"o/out0.bin": "0.5 1 0.5 1 0.5 1",
				"o/outputs.json": `[{"index":0,"kind":"tensor","dtype":"float32","shape":[3,2],"dim_order":[0,1],"file":"out0.bin"},` +
					`{"index":1,"kind":"int","value":4}]`}},
		{name: "sizes within bounds", args: "PTE/dynamic_view.pte --input ones:float32:2x8", stdout: []string{"float32 4x4"}},
		{name: "text", args: "HERE/string.pte --input zeros --input str:inc", stdout: []string{"min 1  max 1"}},
		{name: "none", args: "HERE/string.pte --input zeros --input none", stdout: []string{"min 1  max 1"}},
		{name: "scalars as exported", args: "PTE/scalar_inputs.pte --input zeros --input int:3 --input float:0.5 --input bool:true",
			stdout: []string{"output 1: float32 scalar"}},
		{name: "no input at all", args: "HERE/add.pte --seed 3", stderr: []string{"no --input: using random elements, seed 3"}},
		{name: "no input wanted", args: "HERE/methods.pte --method get_dim", stdout: []string{"get_dim", "int 10"}},
		{name: "bundled inputs", args: "PTE/bundle.bpte", stderr: []string{"inputs of the first bundled test case"}},
		{name: "bundle with inputs of one's own", args: "PTE/bundle.bpte --input zeros", stdout: []string{"float32 2x3"}},
		{name: "picture", args: "PTE/../digits/portable.pte --input HERE/../../../media/picture/testdata/gray.png:size=8x8",
			stdout: []string{"float32 1x10", "top"},
			stderr: []string{"input 0", "53×37 pixels, resized to 8×8, scaled to 0…1, mean [0], std [1], layout nchw"}},
		{name: "turned picture", args: "PTE/../digits/portable.pte --input HERE/../../../media/picture/testdata/turned.jpg:size=8x8",
			stdout: []string{"float32 1x10"}, stderr: []string{"turned upright before (EXIF orientation 6; orientation=stored keeps it)"}},
		{name: "picture as stored", args: "PTE/../digits/portable.pte --input HERE/../../../media/picture/testdata/turned.jpg:size=8x8,orientation=stored",
			stdout: []string{"float32 1x10"}, stderr: []string{"64×64 pixels, resized to 8×8, scaled"}},
		{name: "picture for other channels", args: "HERE/channels_last.pte --input HERE/../../../media/picture/testdata/noise.png", code: 5,
			stderr: []string{"not an image of 1 or 3 channels"}},
		{name: "external weights", args: "PTE/external_weights.pte --data PTE/external_weights.ptd --input ones",
			stdout: []string{"float32 2x3"}},
	})
}

func TestRunInputsRefused(t *testing.T) {
	play(t, []script{
		{name: "missing", args: "HERE/add.pte --input ones", code: 5, stderr: []string{"input 1: missing, want float32 3x6"}},
		{name: "missing scalar", args: "PTE/scalar_inputs.pte --input ones", code: 5, stderr: []string{"input 1: missing, want int"}},
		{name: "one too many", args: "HERE/state.pte --input ones --input ones", code: 5,
			stderr: []string{"one input too many, the method has 1"}},
		{name: "short file", args: "HERE/add.pte --input four.bin --input ones", code: 5,
			stderr: []string{"input 0 (four.bin): 16 bytes, want 72 (float32 3x6)"}},
		{name: "stated type", args: "HERE/add.pte --input ones:int32:3x6 --input ones", code: 5,
			stderr: []string{"input 0: got int32 3x6, want float32 3x6"}},
		{name: "stated sizes", args: "HERE/add.pte --input ones:float32:6x3 --input ones", code: 5,
			stderr: []string{"input 0: got float32 6x3, want float32 3x6"}},
		{name: "stated rank", args: "HERE/add.pte --input ones:float32:18 --input ones", code: 5,
			stderr: []string{"input 0: got float32 18, want float32 3x6"}},
		{name: "beyond bounds", args: "PTE/dynamic_view.pte --input ones:float32:9x8", code: 5,
			stderr: []string{"input 0: got float32 9x8, want float32 8x8 at most"}},
		{name: "other scalar than exported", args: "PTE/scalar_inputs.pte --input zeros --input int:4 --input float:0.5 --input bool:true",
			code: 5, stderr: []string{"input 1: got int 4, want int 3 as fixed by the export"}},
		{name: "scalar for a tensor", args: "HERE/state.pte --input int:4", code: 5, stderr: []string{"input 0", "int 4"}},
		{name: "no such file", args: "HERE/state.pte --input gone.bin", code: 2, stderr: []string{"input 0 (gone.bin)", "no such file"}},
		{name: "no such data file", args: "HERE/state.pte --data gone.ptd --input ones", code: 2, stderr: []string{"gone.ptd", "no such file"}},
		{name: "broken array", args: "HERE/state.pte --input noise.npy", code: 2, stderr: []string{"noise.npy"}},
		{name: "bad text", args: "HERE/state.pte --input int:x", code: 2, stderr: []string{`input argument "int:x"`}},
		{name: "zeros beyond the limit", args: "HERE/state.pte --max-memory 64MiB --input zeros:float32:100000000", code: 9,
			stderr: []string{"400000000 bytes"}},
		{name: "control characters", args: `HERE/state.pte --input json:["\u001b[2J\u202e"]`, code: 5,
			stderr: []string{`element 0 is "\u001b[2J\u202e", want float32`}},
		{name: "in a further call", args: "HERE/state.pte --input ones --next --input four.npy:float32:5", code: 5,
			stderr: []string{"call 1: input 0"}},
	})
}

func TestRunCalls(t *testing.T) {
	play(t, []script{
		{name: "state persists", args: "HERE/state.pte --input four.bin --next --input ones --next --input zeros --output-dir o",
			files: map[string]string{"o/out0.bin": "2 4 6 8", "o/call1/out0.bin": "4 6 8 10", "o/call2/out0.bin": "4 6 8 10",
				"o/call2/outputs.json": `[{"index":0,"kind":"tensor","dtype":"float32","shape":[4],"dim_order":[0],"file":"out0.bin"},` +
					`{"index":1,"kind":"tensor","dtype":"int64","shape":[1],"dim_order":[0],"file":"out1.bin"}]`},
			absent: []string{"o/call0"}},
		{name: "another method",
			args: "HERE/methods.pte --method get_dim --next --method get_name --next --method get_scale --next --method get_flag --output-dir o",
			files: map[string]string{"o/outputs.json": `[{"index":0,"kind":"int","value":10}]`,
				"o/call1/outputs.json": `[{"index":0,"kind":"string","value":"codec"}]`,
				"o/call2/outputs.json": `[{"index":0,"kind":"double","value":0.5}]`,
				"o/call3/outputs.json": `[{"index":0,"kind":"bool","value":true}]`}},
		{name: "the method stays", args: "HERE/methods.pte --method get_dim --next", stdout: []string{"call 0: get_dim", "call 1: get_dim"}},
		{name: "methods share state", args: "PTE/two_methods.pte --method push --input ones --next --method read --input ones",
			stdout: []string{"call 1: read"}},
		{name: "repeats begin with fresh state", args: "HERE/state.pte --input four.bin --repeat 5 --output-dir o",
			files: map[string]string{"o/out0.bin": "2 4 6 8"}, stdout: []string{"5 runs on", "min ", "p50 ", "p90 ", "max "}},
		{name: "two methods in one call", args: "HERE/methods.pte --method get_dim --method get_name", code: 2,
			stderr: []string{"use --next for another call"}},
		{name: "no such method", args: "HERE/methods.pte --method gone", code: 2, stderr: []string{`no method "gone"`, "get_name"}},
		{name: "no forward", args: "PTE/two_methods.pte", code: 2, stderr: []string{`no method "forward"`, "push", "choose one with --method"}},
		{name: "nearly a method", args: "HERE/methods.pte --method get_dimm", code: 2, stderr: []string{`did you mean "get_dim"?`}},
		{name: "no such input", args: "HERE/add.pte --input x=ones", code: 2, stderr: []string{`no input "x"`}},
	})
}

func TestRunOutputs(t *testing.T) {
	play(t, []script{
		{name: "in words", args: "HERE/add.pte --input grid.bin --input zeros",
			stdout: []string{"forward", "output 0: float32 3x6  min -2  max 1  mean -0.16667", "first 0.5 1 -2 0.5 1 -2 …"}},
		{name: "memory order", args: "HERE/channels_last.pte --output-dir o", files: map[string]string{
			"o/outputs.json": `[{"index":0,"kind":"tensor","dtype":"float32","shape":[1,3,6,6],"dim_order":[0,2,3,1],"file":"out0.bin"},` +
				`{"index":1,"kind":"tensor","dtype":"float32","shape":[1,2,8,8],"dim_order":[0,2,3,1],"file":"out1.bin"}]`}},
		{name: "an input that is an output", args: "PTE/split_passthrough.pte --input ones --output-dir o",
			files: map[string]string{"o/out0.bin": "1 1 1 1 1 1 1 1"}},
		{name: "as an archive that is an input again", args: "HERE/state.pte --input four.bin --next --input zeros --output-npz o.npz",
			stdout: []string{"call 1"}},
		{name: "single outputs",
			args:  "HERE/state.pte --input four.bin --next --input zeros --output y.json --output call1_out0=z.bin --output call1_out1=z.tmp:json",
			files: map[string]string{"y.json": "[2,4,6,8]", "z.bin": "2 4 6 8"}},
		{name: "labels", args: "PTE/../digits/portable.pte --input ones --labels labels.txt --softmax --top-k 10",
			stdout: []string{"top\n", "9 – (0.5768)", "1 one (", `2 "two\x1b[31m" (`, "0 zero ("}},
		{name: "labels as JSON", args: "PTE/../digits/portable.pte --input ones --labels labels.txt --top-k 2 --json",
			stdout: []string{`"class": `}},
		{name: "labels for nothing", args: "HERE/add.pte -i ones -i ones --softmax",
			stderr: []string{"warning: --top-k, --softmax and --labels have no effect: no output"}},
		{name: "no labels", args: "HERE/add.pte --labels gone.txt", code: 2, stderr: []string{"gone.txt"}},
		{name: "no such output", args: "HERE/state.pte --input ones --output 7=y.npy", code: 2,
			stderr: []string{`output argument "7=y.npy": no output 7`}, absent: []string{"y.npy"}},
		{name: "no such kind", args: "HERE/state.pte --input ones --output y.txt", code: 2, stderr: []string{"append :KIND"}},
		{name: "not an image", args: "HERE/state.pte --input ones --output y.png", code: 1, stderr: []string{"not an image"},
			absent: []string{"y.png"}},
		{name: "folder cannot be made", args: "HERE/add.pte --input ones --input ones --output-dir four.bin/o", code: 2,
			stderr: []string{"four.bin"}},
		{name: "nothing after a failure", code: 5, absent: []string{"o"},
			args: "HERE/state.pte --input ones --next --input four.npy --next --input ones:float32:5 --output-dir o/p"},
	})
}

func TestUsage(t *testing.T) {
	play(t, []script{
		{name: "nothing", args: "", stdout: []string{"etrun --help"}},
		{name: "run under its name", args: "run HERE/add.pte -i ones -i ones -n 2 -q", stdout: []string{"mean 2", "2 runs"}},
		{name: "quiet", args: "HERE/add.pte -q", stdout: []string{"output 0"}},
		{name: "misspelled command", args: "instpect x.pte", code: 2,
			stderr: []string{`no command or file "instpect"; did you mean "etrun inspect"?`}},
		{name: "misspelled command with a flag of its own", args: "profil x.pte --by instruction", code: 2,
			stderr: []string{`did you mean "etrun profile"?`}},
		{name: "misspelled command of a group", args: "npu dissasm x.pte", code: 2, stderr: []string{`did you mean "etrun npu disasm"?`}},
		{name: "group alone", args: "npu", code: 2, stderr: []string{"no command, want one of calibrate, cycles, disasm, trace"}},
		{name: "misspelled flag", args: "HERE/add.pte --thread 2", code: 2, stderr: []string{"unknown flag: --thread; did you mean --threads"}},
		{name: "misspelled flag of a command", args: "plan HERE/add.pte --metod x", code: 2,
			stderr: []string{"did you mean --method; see etrun plan --help"}},
		{name: "version command", args: "version", stdout: []string{"etrun ", " go1."}},
		{name: "commands to complete", args: "__complete p", stdout: []string{"plan", "profile"}},
		{name: "two models", args: "a.pte b.pte", code: 2, stderr: []string{"2 arguments"}},
		{name: "help of no command", args: "help instpect", code: 2, stderr: []string{`did you mean "etrun inspect"?`}},
		{name: "help of a command of a group", args: "help npu disasm", stdout: []string{"--summary"}},
		{name: "no command of a group", args: "npu foo", code: 2,
			stderr: []string{`no command "foo", want one of calibrate, cycles, disasm, trace`}},
		{name: "no shell", args: "completion xsh", code: 2, stderr: []string{`did you mean "etrun completion zsh"?`}},
		{name: "engines to complete", args: "__complete HERE/add.pte --xnnpack =", stdout: []string{"auto", "native", "go"}},
		{name: "devices to complete", args: "__complete run --device =", stdout: []string{"auto", "npu"}},
		{name: "methods of a plan to complete", args: "__complete plan PTE/two_methods.pte --method =", stdout: []string{"push", "read"}},
		{name: "two parts of names", args: "ops a b", code: 2, stderr: []string{"2 arguments"}},
		{name: "trace without an NPU", args: "npu trace HERE/add.pte", code: 2, stderr: []string{"no delegate for EthosUBackend"}},
		{name: "unknown flag", args: "HERE/add.pte --gpu", code: 2, stderr: []string{"unknown flag: --gpu", "--help"}},
		{name: "flag of a subcommand", args: "inspect --repeat 3 x.pte", code: 2,
			stderr: []string{"unknown flag: --repeat; see etrun inspect --help"}},
		{name: "bad number", args: "HERE/add.pte --threads many", code: 2, stderr: []string{"many"}},
		{name: "negative threads", args: "HERE/add.pte --threads -1", code: 2, stderr: []string{"--threads -1"}},
		{name: "too many threads", args: "HERE/add.pte --threads 1025", code: 2, stderr: []string{"--threads 1025, want 0 to 1024"}},
		{name: "too many threads to measure", args: "bench HERE/add.pte --threads 1,1025", code: 2, stderr: []string{"each 0 to 1024"}},
		{name: "no repeats", args: "HERE/add.pte --repeat 0", code: 2, stderr: []string{"--repeat 0"}},
		{name: "too many repeats", args: "HERE/add.pte --repeat 10000001", code: 2, stderr: []string{"--repeat 10000001, want 1 to 10000000"}},
		{name: "bad size", args: "HERE/add.pte --max-memory lots", code: 2, stderr: []string{"lots"}},
		{name: "bad engine", args: "HERE/add.pte --xnnpack gpu", code: 2, stderr: []string{"auto, native, go"}},
		{name: "file of an unset variable", args: "HERE/add.pte --trace=", code: 2, stderr: []string{"--trace is empty, want FILE"}},
		{name: "key of an unset variable", args: "serve HERE/add.pte --trust=", code: 2, stderr: []string{"--trust is empty, want KEY"}},
		{name: "one of two files", args: "HERE/add.pte --data a.ptd --data=", code: 2, stderr: []string{"--data is empty, want FILE"}},
		{name: "method of an unset variable", args: "serve HERE/add.pte --method=", code: 2, stderr: []string{"--method is empty, want NAME"}},
		{name: "method of a run", args: "HERE/add.pte --method=", code: 2, stderr: []string{"\"--method\" flag: want NAME"}},
		{name: "file of a comparison", args: "compare HERE/add.pte --vs --weights-cache=", code: 2,
			stderr: []string{"--weights-cache is empty, want FOLDER"}},
		{name: "empty text", args: "generate HERE/add.pte --prompt=", code: 2, stderr: []string{"--tokenizer"}},
		{name: "value for next", args: "HERE/add.pte --next=false", code: 2, stderr: []string{"--next"}},
		{name: "help", args: "--help", stdout: []string{"Examples:", "Run programs:", "view", "--output", "etrun --help-all explains"}},
		{name: "all of the help", args: "--help-all", stdout: []string{"Inputs are assigned", "Exit codes:", "6  results differ", "Examples:", "--output-dir"}},
		{name: "help of a command", args: "inspect --help", stdout: []string{"Examples:", "etrun inspect model.pte"}},
		{name: "version", args: "--version", stdout: []string{"etrun ", " go1."}},
		{name: "completion", args: "completion bash", stdout: []string{"bash completion"}},
		{name: "methods to complete", args: "__complete HERE/methods.pte --method get", stdout: []string{"get_dim", "get_flag"}},
		{name: "arguments for doctor", args: "doctor x", code: 2, stderr: []string{`argument "x", want none`}},
	})
}

// The help of every command fits a usual terminal.
func TestHelpIsNarrow(t *testing.T) {
	a := &app{App: cli.App{Out: io.Discard, Notes: io.Discard}}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		var out bytes.Buffer
		if code := run(args, strings.NewReader(""), &out, io.Discard); code != 0 || out.Len() == 0 {
			t.Errorf("%v: exit code %d, %d bytes", args, code, out.Len())
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth {
				t.Errorf("%v: %d columns: %s", args, n, line)
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(newRoot(a))
}

// TestRunsKeepNothing checks that a process that runs many command lines keeps nothing of them. A root is 200 KB.
func TestRunsKeepNothing(t *testing.T) {
	const runs, most = 40, 4 << 20
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	for range runs {
		if code := run([]string{"version"}, strings.NewReader(""), io.Discard, io.Discard); code != 0 {
			t.Fatalf("exit code %d", code)
		}
	}
	if kept := live() - before; kept > most {
		t.Errorf("%d bytes kept after %d runs, want at most %d", kept, runs, most)
	}
}

func TestBadModels(t *testing.T) {
	play(t, []script{
		{name: "absent", args: "gone.pte", code: 2, stderr: []string{"gone.pte", "no such file"}},
		{name: "a folder", args: ".", code: 2, stderr: []string{"is a directory"}},
		{name: "empty", args: "empty.pte", code: 3},
		{name: "no program", args: "noise.pte", code: 3},
		{name: "of another framework", args: "model.tflite", code: 3,
			stderr: []string{"etrun: model.tflite: a TensorFlow Lite model, not a .pte program; " +
				"export the model from PyTorch with ExecuTorch, see docs/export.md"}},
		{name: "data that is an array", args: "PTE/external_weights.pte --data four.npy", code: 3,
			stderr: []string{"four.npy: a NumPy array, not a .ptd; pass it with --input"}},
		{name: "external weights absent", args: "PTE/external_weights.pte --input ones", code: 4,
			stderr: []string{"l.weight", "l.bias", "pass --data FILE.ptd"}},
		{name: "data that is none", args: "PTE/external_weights.pte --data noise.pte --input ones", code: 3, stderr: []string{"noise.pte"}},
		{name: "too large", args: "PTE/stack_traces.pte --max-memory 6KiB", code: 9, stderr: []string{"bytes needed", "the limit is 6144"}},
		{name: "time is up", args: "HERE/add.pte --timeout 1ns", code: 8, stderr: []string{"timeout of 1ns"}},
	})
}

func TestInspect(t *testing.T) {
	play(t, []script{
		{name: "operators and memory", args: "inspect HERE/channels_last.pte",
			stdout: []string{"extended header", "method forward: 5 instructions", "0  float32 1x2x8x8  contiguous (NCHW)", "0  float32 1x3x6x6",
				"channels last (NHWC)", "dim_order_ops::_to_dim_order_copy.out  3", "memory: constants"}},
		{name: "scalars", args: "inspect PTE/scalar_inputs.pte",
			stdout: []string{"1  int, 3 in the file", "2  double, 0.5 in the file", "3  bool, true in the file"}},
		{name: "bounds", args: "inspect PTE/dynamic_view.pte", stdout: []string{"0  float32 8x8 at most", "dynamic (bounded)"}},
		{name: "delegates", args: "inspect PTE/named_data.pte",
			stdout: []string{"delegates", "XnnpackBackend: payload 752 B, 1 call", "named data: 2 entries, 60 B"}},
		{name: "folded", args: "inspect PTE/../digits/portable.pte",
			stdout: []string{"executed once, at load: constants of 1.2 KiB", "aten::permute_copy.out  1"}},
		{name: "rewritten", args: "inspect PTE/../digits/portable.pte",
			stdout: []string{"removed or changed at load, with constants of", "aten::convolution.out                           2  batch norm"}},
		{name: "not rewritten", args: "inspect PTE/../digits/portable.pte --lower off",
			stdout: []string{"aten::permute_copy.out  1\n  memory: constants"}},
		{name: "regions", args: "inspect PTE/../digits/portable.pte --lowered --lower all",
			stdout: []string{"regions", "multiplications", "lowered", "instructions", "chain 0, 0  aten::convolution.out"}},
		{name: "regions as JSON", args: "inspect PTE/../digits/portable.pte --lowered --json",
			stdout: []string{`"lowered": {`, `"regions": [`, `"region": `}},
		{name: "distances", args: "PTE/../digits/portable.pte --lower verify", stderr: []string{"lowering: output 0 "}},
		{name: "unknown lowering", args: "HERE/add.pte --lower on", code: 2,
			stderr: []string{`--lower "on", want one of off, rewrite, auto, all, verify`}},
		{name: "quantized outputs", args: "inspect PTE/../ethosu/programs/stale.pte --qparams 0:0=0.018,-3",
			stdout: []string{"with scale 0.018 and zero point -3"}},
		{name: "repairs", args: "inspect PTE/elided_view.pte",
			stdout: []string{"repaired faults of the exporter", "value 14, a view of value 7"}},
		{name: "repairs as JSON", args: "inspect PTE/elided_view.pte --json", stdout: []string{`"repairs": [`, "value 14, a view of value 7"}},
		{name: "a state in a payload", args: "inspect PTE/../repair/refused/state_in_payload.pte",
			stdout: []string{"not repaired: results may be wrong\n    state value 0, float32 of sizes 2x3x3x3, is read by its own update alone"}},
		{name: "a state in a payload as JSON", args: "inspect PTE/../repair/refused/state_in_payload.pte --json",
			stdout: []string{`"faults": [`, `"state value 0, float32`}},
		{name: "a state in a payload, checked", args: "check PTE/../repair/refused/state_in_payload.pte",
			stdout: []string{"runs here", `note: method "forward": results may be wrong`, "state value 0, float32 of sizes 2x3x3x3"}},
		{name: "a run with a state in a payload", args: "PTE/../repair/refused/state_in_payload.pte",
			stderr: []string{"warning: ", "state value 0, float32 of sizes 2x3x3x3, is read by its own update alone"}},
		{name: "a state in a payload, strictly", args: "PTE/../repair/refused/state_in_payload.pte --strict-plan", code: 3,
			stderr: []string{"state value 0, float32 of sizes 2x3x3x3, is read by its own update alone"}},
		{name: "a mode of repair that is none", args: "inspect PTE/elided_view.pte --repair=some", code: 2,
			stderr: []string{`--repair "some", want one of auto, off`}},
		{name: "a program that does not load", args: "inspect PTE/external_weights.pte",
			stdout: []string{"does not run here", "l.weight", "pass --data FILE.ptd"}},
		{name: "bundle", args: "inspect PTE/bundle.bpte", stdout: []string{"1 bundled test case"}},
		{name: "constant methods", args: "inspect HERE/methods.pte",
			stdout: []string{"method decode", "constant methods: get_dim = 10, ", `"codec"`}},
		{name: "several methods", args: "inspect HERE/methods.pte -v",
			stdout: []string{"method decode", "method get_dim: 0 instructions", "no inputs"}},
		{name: "no program", args: "inspect noise.pte", code: 3},
		{name: "several files", args: "inspect HERE/add.pte PTE/two_methods.pte",
			stdout: []string{"add.pte: ", "method forward: 1 instruction", "\n\n", "two_methods.pte: "}},
		{name: "a file of several does not exist", args: "inspect gone.pte HERE/add.pte", code: 2,
			stdout: []string{"gone.pte: cannot be inspected: open gone.pte: no such file", "method forward"}, stderr: []string{"cannot be opened: 1 of 2 files"}},
		{name: "the worst of several", args: "inspect HERE/add.pte noise.pte noise.pte", code: 3,
			stdout: []string{"method forward", "noise.pte: cannot be inspected"}, stderr: []string{"2 of 3 files"}},
		{name: "no files", args: "inspect", code: 2, stderr: []string{"no arguments, want FILE.pte..."}},
	})
}

func TestVerify(t *testing.T) {
	play(t, []script{
		{name: "passes", args: "verify PTE/bundle.bpte", stdout: []string{"forward, case 0: ok"}},
		{name: "without cases", args: "verify HERE/add.pte", code: 2, stderr: []string{"no test cases"}},
		{name: "tolerance below 0", args: "verify PTE/bundle.bpte --atol -1", code: 2, stderr: []string{"--atol -1"}},
	})
}

// A bundle with one changed expected element must not pass.
func TestVerifyFindsADifference(t *testing.T) {
	file, err := os.ReadFile("../../testdata/pte/bundle.bpte")
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := pte.ParseBundle(file, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	bundle.Suites[0].Cases[0].Outputs[0].Data[7] ^= 0x40 // shares the file's bytes: the exponent of element 1
	path := filepath.Join(t.TempDir(), "changed.bpte")
	write(t, path, file)
	script{args: "verify " + path, code: 6, stdout: []string{"forward, case 0: differs", "output 0: 1 of 6 elements differ, first at [0 1]"},
		stderr: []string{"results differ: 1 of 1 test case"}}.run(t)
	script{args: "verify " + path + " --json", code: 6, stdout: []string{`"failed": 1`}}.run(t)
}

func TestOpsAndDoctor(t *testing.T) {
	play(t, []script{
		{name: "some", args: "ops aten::relu", stdout: []string{"aten::relu.out  exact; ", "    (Tensor self, *, Tensor(a!) out)", "operator"}},
		{name: "none", args: "ops no_such_operator", code: 2, stderr: []string{"no operator with"}},
		{name: "doctor", args: "doctor", stdout: []string{"version", "threads", "operators"}},
	})
}

// The --json output of every command is one object with a schema, alone on stdout, even if the
// command fails.
func TestJSON(t *testing.T) {
	cases := []struct {
		args, schema string
		code         int
	}{
		{"HERE/add.pte --json", "etrun.run/1", 0},
		{"HERE/add.pte --json --output-dir o --repeat 3", "etrun.run/1", 0},
		{"HERE/add.pte --json --input ones", "etrun.error/1", 5},
		{"--version --json", "etrun.version/1", 0},
		{"gone.pte --json", "etrun.error/1", 2},
		{"--json --bad", "etrun.error/1", 2},
		{"--bad --json", "etrun.error/1", 2},
		{"inspect --bad --json", "etrun.error/1", 2},
		{"ops a b --json", "etrun.error/1", 2},
		{"check HERE/add.pte --json", "etrun.check/1", 0},
		{"check PTE/external_weights.pte --json", "etrun.check/1", 4},
		{"check gone.pte --json", "etrun.check/1", 2},
		{"bench HERE/add.pte --json --duration 10ms", "etrun.bench/1", 0},
		{"bench HERE/add.pte --format json --duration 10ms", "etrun.bench/1", 0},
		{"bench gone.pte --json", "etrun.error/1", 2},
		{"compare HERE/add.pte --vs --plan=naive --json", "etrun.compare/1", 0},
		{"compare HERE/add.pte --json", "etrun.error/1", 2},
		{"profile HERE/add.pte --json --repeat 2", "etrun.profile/1", 0},
		{"profile HERE/add.pte --json --repeat 0", "etrun.error/1", 2},
		{"inspect HERE/add.pte --json", "etrun.inspect/1", 0},
		{"inspect HERE/add.pte HERE/add.pte --json", "etrun.inspect.files/1", 0},
		{"inspect gone.pte HERE/add.pte --json", "etrun.inspect.files/1", 2},
		{"inspect gone.pte --json", "etrun.error/1", 2},
		{"verify PTE/bundle.bpte --json", "etrun.verify/1", 0},
		{"ops --json", "etrun.ops/1", 0},
		{"npu disasm PTE/../ethosu/programs/digits.pte --json", "etrun.disasm/1", 0},
		{"npu disasm PTE/../ethosu/programs/digits.pte --summary --json", "etrun.disasm.summary/1", 0},
		{"npu cycles PTE/../ethosu/programs/digits.pte --json", "etrun.cycles/1", 0},
		{"npu cycles HERE/add.pte --json", "etrun.error/1", 2},
		{"npu trace PTE/../ethosu/programs/digits.pte --json", "etrun.run/1", 0},
		{"plan HERE/add.pte --json", "etrun.plan/1", 0},
		{"report HERE/add.pte --json", "etrun.report/1", 0},
		{"report gone.pte --json", "etrun.error/1", 2},
		{"version --json", "etrun.version/1", 0},
		{"run HERE/add.pte --json", "etrun.run/1", 0},
		{"instpect --json", "etrun.error/1", 2},
		{"doctor --json", "etrun.doctor/1", 0},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			here, _ := filepath.Abs("testdata")
			pte, _ := filepath.Abs("../../testdata/pte")
			args := strings.NewReplacer("HERE", here, "PTE", pte).Replace(c.args)
			out, _ := script{args: args, code: c.code}.run(t)
			var object struct {
				Schema string
				Exit   int
			}
			if err := json.Unmarshal([]byte(out), &object); err != nil || object.Schema != c.schema || object.Exit != c.code {
				t.Errorf("got schema %q, exit %d, %v, want %q and %d", object.Schema, object.Exit, err, c.schema, c.code)
			}
		})
	}
}

// An archive of outputs can be read as inputs.
func TestOutputArchive(t *testing.T) {
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	inScriptFolder(t)
	for _, args := range []string{
		here + "/state.pte --input four.bin --next --input zeros --output-npz o.npz",
		here + "/methods.pte --method get_scale --next --method get_name --output-npz scalars.npz",
	} {
		if code := run(strings.Fields(args), strings.NewReader(""), io.Discard, io.Discard); code != 0 {
			t.Fatalf("%s: exit code %d", args, code)
		}
	}
	if got, want := archiveText(t, "o.npz"), "out0 float32[4]; out1 int64[1]; call1_out0 float32[4]; call1_out1 int64[1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := archiveText(t, "scalars.npz"), "out0 float64[]"; got != want { // text has no array
		t.Errorf("got %s, want %s", got, want)
	}
	if left, _ := filepath.Glob(".etrun-*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func archiveText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	arrays, err := npy.ReadZip(bytes.NewReader(b), int64(len(b)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, a := range arrays {
		parts = append(parts, fmt.Sprintf("%s %s%v", a.Name, a.TypeName(), a.Sizes))
	}
	return strings.Join(parts, "; ")
}

// TestFilesOfCalls opens every file that a run with several calls names: relative to output_dir, and those of outputs.json to its folder.
func TestFilesOfCalls(t *testing.T) {
	here, err := filepath.Abs("testdata")
	must(t, err)
	paths := strings.NewReplacer("HERE", here, "PTE", filepath.Join(here, "../../../testdata/pte"))
	for _, args := range []string{"HERE/state.pte --input ones --next --input ones --next --input ones",
		"PTE/split_passthrough.pte --next --next"} {
		var out, notes bytes.Buffer
		t.Chdir(t.TempDir())
		args = paths.Replace(args) + " --json --output-dir deep/o"
		if code := run(strings.Fields(args), strings.NewReader(""), &out, &notes); code != 0 {
			t.Fatalf("%s: exit code %d, %s", args, code, notes.String())
		}
		var r runReport
		must(t, json.Unmarshal(out.Bytes(), &r))
		seen := make(map[string]bool)
		for k, c := range r.Calls {
			checkFiles(t, r.OutputDir, c.Outputs, seen)
			folder := r.OutputDir
			if k > 0 {
				folder = filepath.Join(folder, fmt.Sprintf("call%d", k))
			}
			text, err := os.ReadFile(filepath.Join(folder, "outputs.json"))
			must(t, err)
			var entries []output.Entry
			must(t, json.Unmarshal(text, &entries))
			checkFiles(t, folder, entries, make(map[string]bool))
		}
		if len(r.Calls) != 3 || len(seen) < 3 {
			t.Errorf("%s: %d calls, files %v", args, len(r.Calls), seen)
		}
	}
}

// checkFiles requires that each file of entries is there and named once.
func checkFiles(t *testing.T, folder string, entries []output.Entry, seen map[string]bool) {
	t.Helper()
	for _, e := range entries {
		checkFiles(t, folder, e.Items, seen)
		if e.File == "" {
			continue
		}
		path := filepath.Join(folder, e.File)
		if _, err := os.Stat(path); err != nil || seen[path] {
			t.Errorf("%s: %v, named before: %v", path, err, seen[path])
		}
		seen[path] = true
	}
}

// An interrupt must end a run with its own exit code, print the latency so far, and leave
// no outputs.
func TestInterrupt(t *testing.T) {
	state, err := filepath.Abs("testdata/state.pte")
	if err != nil {
		t.Fatal(err)
	}
	inScriptFolder(t)
	done, started := make(chan int), make(chan bool, 1)
	var out, notes bytes.Buffer
	go func() {
		stdout := io.MultiWriter(&out, &onceWritten{func() { started <- true }})
		done <- run(strings.Fields(state+" --input ones --repeat 10000000 --output-npz o.npz"), strings.NewReader(""), stdout, &notes)
	}()
	<-started // the first run is complete: its outputs are shown
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != 8 || !strings.Contains(notes.String(), "interrupt") {
		t.Errorf("exit code %d, stderr %q, want 8 and the reason", code, notes.String())
	}
	if !strings.Contains(out.String(), "forward  first ") {
		t.Errorf("stdout %q, want the latency so far", out.String())
	}
	for _, name := range []string{"o.npz"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if left, _ := filepath.Glob(".etrun-*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What a run leaves behind is its outputs and nothing else, whatever became of it.
func TestNothingLeftBehind(t *testing.T) {
	add, err := filepath.Abs("testdata/add.pte")
	if err != nil {
		t.Fatal(err)
	}
	script{args: add + " --output-dir o"}.run(t)
	var files []string
	err = filepath.WalkDir("o", func(path string, d fs.DirEntry, err error) error {
		files = append(files, path)
		return err
	})
	if want := []string{"o", "o/out0.bin", "o/outputs.json"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("files %v, %v, want %v", files, err, want)
	}
}
