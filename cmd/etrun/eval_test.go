package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEval(t *testing.T) {
	model, samples := digits(t, "portable.pte"), filepath.Join(filepath.Dir(digits(t, "portable.pte")), "samples")
	dir := t.TempDir()
	table, names, wrong, outside := filepath.Join(dir, "labels.csv"), filepath.Join(dir, "names"), filepath.Join(dir, "wrong.csv"), filepath.Join(dir, "outside.csv")
	write(t, table, []byte("file,label\n0/00.png,zero\n\"8/33.png\",eight\n"))
	write(t, names, []byte("zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"))
	write(t, wrong, []byte("0/00.png,ten\n"))
	write(t, outside, []byte("../digits/samples/0/00.png,0\n"))
	play(t, []script{
		{name: "folders", args: "eval " + model + " " + samples, stdout: []string{"20 samples: top-1 95.0 %, top-5 100.0 %", "class  samples", "8 as 4: 1"}},
		{name: "a table", args: "eval " + model + " " + samples + " --labels " + table + " --classes " + names,
			stdout: []string{"2 samples: top-1 50.0 %", "eight as four: 1"}},
		{name: "two models", args: "eval " + model + " " + digits(t, "xnnpack.pte") + " " + samples,
			stdout: []string{"model ", "top-1", "portable.pte ", "xnnpack.pte ", "20       95.0 %  100.0 %"}},
		{name: "two models as JSON", args: "eval " + model + " " + digits(t, "xnnpack.pte") + " " + samples + " --json",
			stdout: []string{`"schema": "etrun.eval.models/1"`, `xnnpack.pte"`, `"top1": 19`}},
		{name: "a second model that is not there", args: "eval " + model + " gone.pte " + samples, code: 2, stderr: []string{"gone.pte"}},
		{name: "a label that is no class", args: "eval " + model + " " + samples + " --labels " + wrong + " --classes " + names, code: 2,
			stderr: []string{`label "ten" is not one of the 10 classes`}},
		{name: "a file outside", args: "eval " + model + " " + samples + " --labels " + outside, code: 2, stderr: []string{"is outside of"}},
		{name: "no classes", args: "eval " + model + " " + filepath.Join(samples, "0"), code: 2, stderr: []string{"not in the folder of a class"}},
		{name: "no folder", args: "eval " + model + " gone", code: 2},
		{name: "an output that is not there", args: "eval " + model + " " + samples + " --scores 1", code: 2, stderr: []string{"the method has 1 output"}},
		{name: "an input that does not fit", args: "eval PTE/two_conds.pte " + samples, code: 5, stderr: []string{"00.png"}},
		{name: "one argument", args: "eval " + model, code: 2},
	})
}

func TestEvalReport(t *testing.T) {
	var out, notes bytes.Buffer
	samples := filepath.Join(filepath.Dir(digits(t, "xnnpack.pte")), "samples")
	code := run([]string{"eval", digits(t, "xnnpack.pte"), samples, "--json", "-q"}, strings.NewReader(""), &out, &notes)
	r := &evalReport{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v, %s%s", code, err, out.String(), notes.String())
	}
	diagonal := 0
	for i := range r.Matrix {
		diagonal += r.Matrix[i][i]
	}
	if r.Samples != 20 || r.Top1 != 19 || r.Top5 != 20 || diagonal != 19 || r.Matrix[8][4] != 1 || len(r.Classes) != 10 ||
		len(r.Confusions) != 1 || r.Latency.N != 20 {
		t.Errorf("got %+v", r)
	}
}

// State goes on from line to line, over lines that do not run, unless it is reset.
func TestRunLinesKeepState(t *testing.T) {
	const lines = "\"ones\"\n\"ones:float32:5\"\n\"noise.npy\"\n[1, 1, 1, 1]\n\"ones\"\n"
	for _, c := range []struct {
		flags []string
		sums  []float64 // doubled
	}{
		{nil, []float64{2, 4, 6}},
		{[]string{"--reset"}, []float64{2, 2, 2}},
	} {
		var out, notes bytes.Buffer
		code := run(append([]string{"run", "testdata/state.pte", "--jsonl"}, c.flags...), strings.NewReader(lines), &out, &notes)
		var sums []float64
		for d := json.NewDecoder(&out); d.More(); {
			var r lineReport
			must(t, d.Decode(&r))
			if len(r.Outputs) > 0 {
				var sum []float64
				must(t, json.Unmarshal(r.Outputs[0], &sum))
				sums = append(sums, sum[0])
			}
		}
		if code != 5 || !slices.Equal(sums, c.sums) || !strings.Contains(notes.String(), "2 of 5 lines failed") {
			t.Errorf("%v: exit code %d, got %v, want %v; %s", c.flags, code, sums, c.sums, notes.String())
		}
	}
	var out, notes bytes.Buffer
	if code := run([]string{"run", "testdata/state.pte", "--input", "ones", "--reset"}, strings.NewReader(""), &out, &notes); code != 2 {
		t.Errorf("--reset without --jsonl: exit code %d, %s", code, notes.String())
	}
}

func TestRunLines(t *testing.T) {
	here, _ := filepath.Abs("testdata")
	model, samples := digits(t, "portable.pte"), filepath.Join(filepath.Dir(digits(t, "portable.pte")), "samples")
	t.Chdir(t.TempDir())
	must(t, os.Symlink(samples, "samples"))
	var out, notes bytes.Buffer
	lines := "\"samples/3/03.png\"\n\n[\"zeros\"]\n{\"0\": 1}\nnoise\n\"-\"\n\"ones\""
	code := run([]string{"run", model, "--jsonl"}, strings.NewReader(lines), &out, &notes)
	var reports []lineReport
	for d := json.NewDecoder(&out); d.More(); {
		var r lineReport
		must(t, d.Decode(&r))
		reports = append(reports, r)
	}
	if code != 5 || len(reports) != 6 || !strings.Contains(notes.String(), "3 of 7 lines failed") {
		t.Fatalf("exit code %d, %d reports, %s", code, len(reports), notes.String())
	}
	for i, failed := range []bool{false, false, true, true, true, false} {
		r := &reports[i]
		if (r.Error != nil) != failed || len(r.Outputs) > 0 == failed || r.Line != []int{1, 3, 4, 5, 6, 7}[i] || r.Schema != "etrun.run.line/1" {
			t.Errorf("line %d: %+v", i, r)
		}
	}
	var scores [][]float64
	if err := json.Unmarshal(reports[0].Outputs[0], &scores); err != nil || len(scores) != 1 || len(scores[0]) != 10 {
		t.Fatalf("%v, %v", scores, err)
	}
	for i, x := range scores[0] {
		if i != 3 && x >= scores[0][3] {
			t.Errorf("score of %d is %v, of 3 %v", i, x, scores[0][3])
		}
	}
	for _, args := range []string{"--input ones", "--repeat 2", "--json", "--output x.npy", "--profile"} {
		out.Reset()
		if code := run(append([]string{"run", here + "/add.pte", "--jsonl"}, strings.Fields(args)...), strings.NewReader(""), &out, &notes); code != 2 {
			t.Errorf("%s: exit code %d", args, code)
		}
	}
}
