package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"testing"
)

func TestPlan(t *testing.T) {
	play(t, []script{
		{name: "instructions", args: "plan PTE/two_conds.pte", stdout: []string{"method \"forward\": 13 instructions\n",
			"[0]     input               bool scalar  1      -1–0   32    16", "12–13"}},
		{name: "state", args: "plan PTE/two_methods.pte --method push",
			stdout: []string{"[0]     state               float32 4       16     -1–3   –     –    m.st"}},
		{name: "moments and scratch", args: "plan PTE/../digits/xnnpack.pte --xnnpack go", stdout: []string{
			"[2]     input               float32 1x1x8x8  256    -1–0.0   0        9216",
			"[3]     activation, output  float32 1x10     40     0.7–1    256      0",
			"–       scratch                              4160   0.0–0.1  1:15616  15616  delegate 0"}},
	})
}

// TestPlanReport requires that rows that are alive at the same moment share no bytes of the planned
// arenas, and that the rows cover etrun's own arena.
func TestPlanReport(t *testing.T) {
	for _, c := range []struct {
		args    string
		scratch bool
	}{
		{"PTE/two_conds.pte", false},
		{"PTE/conv_portable.pte --lower rewrite", false},
		{"PTE/conv_portable.pte --lower all --xnnpack go", true},
		{"PTE/two_methods.pte --method push", false},
		{"PTE/../digits/xnnpack.pte --xnnpack go", true},
		{"PTE/dynamic_pair_xnnpack.pte --xnnpack go", true},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out, notes bytes.Buffer
			args := strings.Fields("plan --json " + strings.ReplaceAll(c.args, "PTE", "../../testdata/pte"))
			var r planned
			if code := run(args, strings.NewReader(""), &out, &notes); code != 0 {
				t.Fatalf("exit code %d, %s", code, notes.String())
			}
			must(t, json.Unmarshal(out.Bytes(), &r))
			checkPlaces(t, &r)
			scratch := 0
			for _, s := range r.Storages {
				if s.Kind == "scratch" {
					scratch++
				}
			}
			if scratch > 0 != c.scratch {
				t.Errorf("%d rows of scratch, want some: %v", scratch, c.scratch)
			}
		})
	}
}

func checkPlaces(t *testing.T, r *planned) {
	t.Helper()
	end := int64(0)
	for i := range r.Storages {
		a := &r.Storages[i]
		if a.OwnOffset != nil {
			end = max(end, *a.OwnOffset+a.Bytes)
		}
		for k := range i {
			b := &r.Storages[k]
			if !aliveTogether(a, b) {
				continue
			}
			if a.OwnOffset != nil && b.OwnOffset != nil && overlap(*a.OwnOffset, a.Bytes, *b.OwnOffset, b.Bytes) {
				t.Errorf("rows %d and %d share bytes of etrun's plan", k, i)
			}
			if r.FileWhole && a.FileArena != nil && b.FileArena != nil && *a.FileArena == *b.FileArena &&
				overlap(*a.FileOffset, a.Bytes, *b.FileOffset, b.Bytes) {
				t.Errorf("rows %d and %d share bytes of the file's plan", k, i)
			}
		}
	}
	if end > r.OwnBytes || end < r.OwnBytes-63 { // aligned
		t.Errorf("rows end at %d of %d bytes", end, r.OwnBytes)
	}
}

func aliveTogether(a, b *storage) bool { return !endsBefore(a, b) && !endsBefore(b, a) }

// endsBefore reports whether a ends before b begins.
func endsBefore(a, b *storage) bool {
	return cmp.Or(cmp.Compare(a.Last, b.First), cmp.Compare(a.LastMoment, b.FirstMoment)) < 0
}

func overlap(a, n, b, m int64) bool { return a < b+m && b < a+n }
