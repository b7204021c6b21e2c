package speech

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// corpusCase is a case of a corpus's cases.json.
type corpusCase struct {
	ID, Kind string
	Files    struct{ Model, Tokenizer string }
	Inputs   struct{ Audio string }
	Options  struct {
		Language   string
		Timestamps any
		Suppress   string
		Detect     bool `json:"detect_language"`
		Protocol   string
		Long       string
	}
	Expect struct {
		Tokens        []int
		Text          string
		Language      string
		SRT, VTT      *string
		LogProb       *float64 `json:"avg_logprob"`
		Margins       []float64
		MinMargin     *float64 `json:"min_margin"`
		Probabilities json.RawMessage
		Words         []struct {
			Word       string
			Start, End float64
		}
		Segments json.RawMessage
		Windows  []struct {
			Tokens    []int
			Text      string
			Margins   []float64
			MinMargin *float64 `json:"min_margin"`
		}
	}
}

// TestCorpusMedia transcribes the recordings of a corpus, the folder of the environment variable CORPUS, and compares everything with the results
// that stand there.
func TestCorpusMedia(t *testing.T) {
	folder := os.Getenv("CORPUS")
	if folder == "" {
		t.Skip("CORPUS is not set")
	}
	checkCases(t, folder)
}

// TestCases does the same with the cases of testdata.
func TestCases(t *testing.T) { checkCases(t, "testdata") }

func checkCases(t *testing.T, folder string) {
	data, err := os.ReadFile(filepath.Join(folder, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Cases []corpusCase }
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range list.Cases {
		if c.Kind == "generate" || strings.Contains(c.ID, "audiolm") || c.Options.Protocol != "" || strings.Contains(c.Options.Long, "one mel") {
			continue
		}
		n++
		t.Run(c.ID, func(t *testing.T) { c.check(t, folder) })
	}
	if n == 0 {
		t.Fatal("no cases")
	}
}

func (c *corpusCase) check(t *testing.T, folder string) {
	ctx := context.Background()
	p, err := etrun.Open(filepath.Join(folder, c.Files.Model), etrun.WithDelegates(all.Backends()...))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	config := Config{}
	files := filepath.Join(folder, c.Files.Tokenizer)
	config.Vocabulary, _ = os.ReadFile(filepath.Join(files, "vocab.json"))
	config.Features, _ = os.ReadFile(filepath.Join(files, "preprocessor_config.json"))
	config.Generation, _ = os.ReadFile(filepath.Join(files, "generation_config.json"))
	if c.Files.Tokenizer != "" && config.Vocabulary == nil {
		if config.Tokenizer, err = tokenizer.Open(files); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Load(ctx, p, config)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	file, err := os.ReadFile(filepath.Join(folder, c.Inputs.Audio))
	if err != nil {
		t.Fatal(err)
	}
	s, err := sound.Parse(file, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	times, _ := c.Options.Timestamps.(bool)
	o := Options{Language: c.Options.Language, Times: times, AllTokens: c.Options.Suppress != "generation_config.json"}
	got, err := m.Transcribe(ctx, sound.Resample(s.Mono(), s.Rate, m.Info().Rate), o)
	if err != nil {
		t.Fatal(err)
	}
	c.compare(t, m, got)
}

func (c *corpusCase) compare(t *testing.T, m *Model, got *Transcript) {
	if c.Options.Detect {
		if got.Language != c.Expect.Language {
			t.Errorf("language: got %s, want %s", got.Language, c.Expect.Language)
		}
		return
	}
	want := c.Expect.Tokens
	margins := slices.Clone(c.Expect.Margins)
	if c.Expect.MinMargin != nil {
		margins = append(margins, *c.Expect.MinMargin)
	}
	text := c.Expect.Text
	for _, w := range c.Expect.Windows {
		want, margins = append(want, w.Tokens...), append(margins, w.Margins...)
		if w.MinMargin != nil {
			margins = append(margins, *w.MinMargin)
		}
	}
	if !slices.Equal(got.Tokens, want) {
		close := 0.001
		if strings.Contains(c.ID, "8da4w") {
			close = 0.7
		}
		if len(margins) > 0 && slices.Min(margins) < close {
			t.Skipf("tokens differ, the least margin is %g", slices.Min(margins))
		}
		t.Fatalf("tokens: got %d, want %d", got.Tokens, want)
	}
	if text != "" && got.Text != text {
		t.Errorf("text: got %q, want %q", got.Text, text)
	}
	var b bytes.Buffer
	if w := c.Expect.SRT; w != nil {
		if _ = WriteSRT(&b, got.Segments); b.String() != *w {
			t.Errorf("SRT: got %q, want %q", b.String(), *w)
		}
	}
	b.Reset()
	if w := c.Expect.VTT; w != nil {
		if _ = WriteVTT(&b, got.Segments); b.String() != *w {
			t.Errorf("VTT: got %q, want %q", b.String(), *w)
		}
	}
	if w := c.Expect.LogProb; w != nil && len(got.Segments) > 0 && !strings.Contains(c.ID, "8da4w") && math.Abs(got.Segments[0].LogProb-*w) > 1e-3 {
		t.Errorf("log-probability: got %g, want %g", got.Segments[0].LogProb, *w)
	}
	for i, w := range c.Expect.Words {
		if i >= len(got.Words) || got.Words[i].Text != w.Word || math.Abs(got.Words[i].Start.Seconds()-w.Start) > 1e-4 || math.Abs(got.Words[i].End.Seconds()-w.End) > 1e-4 {
			t.Fatalf("word %d: got %v, want %v", i, got.Words, c.Expect.Words)
		}
	}
	c.compareSegments(t, got)
}

// compareSegments compares segments as they are written by each family.
func (c *corpusCase) compareSegments(t *testing.T, got *Transcript) {
	var probabilities []float64
	if c.Kind == "vad" {
		if err := json.Unmarshal(c.Expect.Probabilities, &probabilities); err != nil {
			t.Fatal(err)
		}
		for i, w := range probabilities {
			if i >= len(got.Probabilities) || math.Abs(float64(got.Probabilities[i])-w) > 1e-3 {
				t.Fatalf("probability %d: got %v, want %g", i, got.Probabilities[i], w)
			}
		}
	}
	if c.Expect.Segments == nil {
		return
	}
	var want []string
	switch {
	case c.Kind == "vad":
		var list [][2]float64
		_ = json.Unmarshal(c.Expect.Segments, &list)
		for _, s := range list {
			want = append(want, fmt.Sprintf("%.3f %.3f %q %d", s[0], s[1], "", -1))
		}
	default:
		var list []struct {
			Start, End float64
			Text       string
			Speaker    *int
		}
		if err := json.Unmarshal(c.Expect.Segments, &list); err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			speaker := -1
			if s.Speaker != nil {
				speaker = *s.Speaker
			}
			want = append(want, fmt.Sprintf("%.3f %.3f %q %d", s.Start, s.End, s.Text, speaker))
		}
	}
	var segments []string
	for _, s := range got.Segments {
		segments = append(segments, fmt.Sprintf("%.3f %.3f %q %d", s.Start.Seconds(), s.End.Seconds(), s.Text, s.Speaker))
	}
	if !slices.Equal(segments, want) {
		t.Errorf("segments: got\n%s\nwant\n%s", strings.Join(segments, "\n"), strings.Join(want, "\n"))
	}
}
