package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate/lowering"
)

// streamCalls writes the samples of the streaming model as calls of 128 samples, and returns their folder.
func streamCalls(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../testdata/stream/samples.f32.bin")
	must(t, err)
	folder := t.TempDir()
	for i := range 4 {
		must(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("call%d.bin", 8+i)), data[512*i:][:512], 0o600))
	}
	return folder
}

// Files of a folder, and those of --next, are the calls of one sequence: errors are those of later calls, too.
func TestQuantizeSequences(t *testing.T) {
	folder := streamCalls(t)
	var files []string
	for i := range 4 {
		files = append(files, filepath.Join(folder, fmt.Sprintf("call%d.bin", 8+i)))
	}
	const warning = "each sample is a first call"
	var reports []quantizeReport
	for _, c := range []struct {
		args      []string
		sequences int
		warns     bool
	}{
		{[]string{"--calibrate", folder}, 1, false},
		{[]string{"--calibrate", files[0], "--next", files[1], "--next", files[2], "--next", files[3]}, 1, false},
		{[]string{"--calibrate", files[0], "--next", files[1], "--calibrate", files[2], "--next", files[3]}, 2, false},
		{[]string{"--calibrate", files[0], "--calibrate", files[1], "--calibrate", files[2], "--calibrate", files[3]}, 4, true},
	} {
		var out, notes bytes.Buffer
		line := append([]string{"quantize", "../../testdata/stream/detector.pte", "-o", filepath.Join(t.TempDir(), "out.pte"),
			"--scheme", "q8", "--json"}, c.args...)
		if code := run(line, strings.NewReader(""), &out, &notes); code != 0 {
			t.Fatalf("%q: exit code %d: %s", c.args, code, notes.String())
		}
		var r quantizeReport
		must(t, json.Unmarshal(out.Bytes(), &r))
		if r.Samples != 4 || r.Sequences != c.sequences || strings.Contains(notes.String(), warning) != c.warns {
			t.Errorf("%q: %d samples, %d sequences, want %d; notes %q", c.args, r.Samples, r.Sequences, c.sequences, notes.String())
		}
		reports = append(reports, r)
	}
	if reports[0].Outputs[0] != reports[1].Outputs[0] || reports[0].Outputs[0] == reports[3].Outputs[0] {
		t.Errorf("outputs %v, %v and %v: want those of a folder and of --next equal, and those of first calls others",
			reports[0].Outputs, reports[1].Outputs, reports[3].Outputs)
	}
}

// With auto, every third sequence of 6 or more measures, and does not choose.
func TestAutoSequences(t *testing.T) {
	for _, c := range []struct {
		scheme         lowering.SchemeName
		calls, length  int // of sequences
		state          bool
		list, measured string
	}{
		{lowering.Static8, 6, 1, false, "[[0] [1] [2] [3] [4] [5]]", "[[0] [1] [2] [3] [4] [5]]"},
		{lowering.Auto, 5, 1, false, "[[0] [1] [2] [3] [4]]", "[[0] [1] [2] [3] [4]]"},
		{lowering.Auto, 6, 1, false, "[[0] [1] [3] [4]]", "[[2] [5]]"},
		{lowering.Auto, 6, 6, false, "[[0] [1] [3] [4]]", "[[2] [5]]"},
		{lowering.Auto, 10, 2, true, "[[0 1] [2 3] [4 5] [6 7] [8 9]]", "[[0 1] [2 3] [4 5] [6 7] [8 9]]"},
		{lowering.Auto, 12, 2, true, "[[0 1] [2 3] [6 7] [8 9]]", "[[4 5] [10 11]]"},
	} {
		w := &quantizing{scheme: lowering.Scheme{Name: c.scheme}}
		for i := range c.calls {
			w.samples = append(w.samples, sample{follows: i%c.length > 0})
		}
		if list, measured := w.sequences(c.state); fmt.Sprint(list) != c.list || fmt.Sprint(measured) != c.measured {
			t.Errorf("%+v: got %v and %v", c, list, measured)
		}
	}
}

func TestSampleFiles(t *testing.T) {
	folder := t.TempDir()
	want := []string{"z9.bin", "z10.bin", "a/call2.bin", "a/call10.bin", "a/call10b.bin", "b/1.bin", "b/02.bin"}
	for _, name := range slices.Backward(want) {
		must(t, os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o700))
		must(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	q := &quantizeCommand{calibrate: []calibration{{path: folder}}}
	list, err := q.samples(t.Context())
	must(t, err)
	var got []string
	var follows []bool
	for _, x := range list {
		name, err := filepath.Rel(folder, x.path)
		must(t, err)
		got, follows = append(got, filepath.ToSlash(name)), append(follows, x.follows)
	}
	if !slices.Equal(got, want) || !slices.Equal(follows, []bool{false, true, false, true, true, false, true}) {
		t.Errorf("got %q, %v, want %q", got, follows, want)
	}
	play(t, []script{
		{name: "next without a first call", args: "quantize D/portable.pte -o out.pte --scheme q8 --next x.npy", code: 2, stderr: []string{"--calibrate FILE before it"}},
		{name: "next folder", args: "quantize PTE/conv_portable.pte -o out.pte --scheme q8 --calibrate PTE --next PTE", code: 2},
	})
}
