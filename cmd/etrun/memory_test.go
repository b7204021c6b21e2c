//go:build linux

package main

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// TestPeakMemory bounds the memory that commands need of large programs, beside that of the command line itself, in parts of the program.
// Those that describe a program read its tables, not its weights. Those that write one need it once and a half, and an instance of
// the lowered one: that of the transformer uses the weights in the file, the others have packed ones.
func TestPeakMemory(t *testing.T) {
	if shadow > 1 {
		t.Skip("the race detector has a shadow of all memory")
	}
	t.Chdir(t.TempDir())
	small := ptetest.Transformer{Layers: 1, Dim: 512, Heads: 8, Vocabulary: 2048, Context: 64}
	large := small
	large.Dim = 768
	sizes := make(map[string]float64)
	for name, data := range map[string][]byte{"transformer": large.File(), "recogniser": ptetest.Whisper{Transformer: small, Frames: 50, Start: 5}.File(),
		"detector": ptetest.Detector{Side: 64, Width: 24, Classes: 80, Depth: [2]int{1, 2}}.File()} {
		sizes[name] = float64(len(data))
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, own := runLine(t, "version")
	for _, c := range []struct {
		line     string
		programs string
		most     float64
	}{
		{"inspect P", "transformer recogniser detector", 0.6},
		{"check P", "transformer recogniser detector", 0.6},
		{"plan --method encoder P", "recogniser", 0.6},
		{"plan P", "transformer detector", 0.6},
		{"diff P P", "transformer recogniser detector", 0.6},
		{"lower -o out P", "transformer", 1.5},
		{"lower -o out P", "recogniser", 1.75},
		{"lower -o out P", "detector", 2.4},
		{"quantize -o out P", "transformer", 1.5},
		{"quantize -o out P", "recogniser detector", 2.4},
		{"quantize --scheme 8da4w -o out P", "transformer", 1.5},
		{"quantize --scheme 8da4w -o out P", "recogniser detector", 2.4},
	} {
		for name := range strings.FieldsSeq(c.programs) {
			code, got := 0, math.Inf(1)
			for try := 0; try < 3 && code == 0 && got > c.most; try++ { // on a busy machine the garbage collector may be late
				var peak int64
				code, peak = runLine(t, strings.Fields(strings.ReplaceAll(c.line, "P", name))...)
				got = min(got, float64(peak-own)/sizes[name])
			}
			if code != 0 || got > c.most {
				t.Errorf("%s, P %s: exit code %d, memory %.2f times the program, want at most %.2f", c.line, name, code, got, c.most)
			}
		}
	}
}
