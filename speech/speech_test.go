package speech

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/text/tokenizer"
)

func open(t testing.TB, path string, options ...etrun.Option) *etrun.Program {
	t.Helper()
	p, err := etrun.Open(path, append(options, etrun.WithDelegates(all.Backends()...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// loadModel loads a model of testdata.
func loadModel(t testing.TB, name string, options ...etrun.Option) *Model {
	t.Helper()
	folder := filepath.Join("testdata", name)
	var c Config
	switch name {
	case "whisper", "transducer":
		var err error
		if c.Tokenizer, err = tokenizer.Open(folder); err != nil {
			t.Fatal(err)
		}
	case "ctc":
		c.Vocabulary = read(t, filepath.Join(folder, "vocab.json"))
	}
	if name == "whisper" {
		c.Generation = read(t, filepath.Join(folder, "generation_config.json"))
	}
	m, err := Load(t.Context(), open(t, filepath.Join(folder, "model.pte"), options...), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// source returns a source of samples, a few at once.
func source(samples []float32) Source { return &slowSource{samples} }

type slowSource struct{ left []float32 }

func (s *slowSource) Read(p []float32) (int, error) {
	n := copy(p[:min(len(p), 777)], s.left)
	if s.left = s.left[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func recording(t testing.TB) []float32 {
	t.Helper()
	s, err := sound.Parse(read(t, "testdata/speech.wav"), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return s.Samples
}

// The spectrogram in Go equals that of ExecuTorch's program.
func TestSpectrogram(t *testing.T) {
	m, err := open(t, "testdata/whisper/preprocessor.pte").Load(t.Context(), "forward")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	samples := make([]float32, windowSamples)
	copy(samples, recording(t))
	want, err := etrun.Run[float32](t.Context(), m, samples)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, len(want))
	sound.NewMel(80).Spectrogram(samples, got)
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); d > 1e-4 {
			t.Fatalf("bin %d, frame %d: got %g, want %g, distance %g", i/3000, i%3000, got[i], want[i], d)
		}
	}
}

// A recording has the same result after another one, and in programs whose inputs reuse memory.
func TestRecordingsAreIndependent(t *testing.T) {
	samples := recording(t)
	for _, name := range []string{"whisper", "transducer", "ctc", "voice"} {
		m := loadModel(t, name)
		again := loadModel(t, name, etrun.WithReusableInputs())
		first, err := m.Transcribe(t.Context(), samples, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := m.Transcribe(t.Context(), samples[:20000], Options{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, x := range []*Model{m, again} {
			second, err := x.Transcribe(t.Context(), samples, Options{})
			if err != nil || second.Text != first.Text || len(second.Segments) != len(first.Segments) || len(second.Tokens) != len(first.Tokens) {
				t.Errorf("%s: got %+v, %v, want %+v", name, second, err, first)
			}
		}
	}
}

// Short, silent and long recordings have results.
func TestLengths(t *testing.T) {
	for _, name := range []string{"whisper", "transducer", "ctc", "voice"} {
		m := loadModel(t, name)
		for _, n := range []int{1, 200, 201, 1599, 16000, 61 * 16000} {
			if name == "ctc" && n < 400 {
				continue // shorter than the first window of its convolutions
			}
			r, err := m.Transcribe(t.Context(), make([]float32, n), Options{})
			if err != nil {
				t.Fatalf("%s: %d samples: %v", name, n, err)
			}
			for i := range r.Segments {
				if s := &r.Segments[i]; s.End < s.Start || s.Start > r.Duration {
					t.Errorf("%s: %d samples: segment %v to %v of %v", name, n, s.Start, s.End, r.Duration)
				}
			}
		}
	}
}

func TestRefusedOptions(t *testing.T) {
	ctc, whisper := loadModel(t, "ctc"), loadModel(t, "whisper")
	for _, c := range []struct {
		m    *Model
		o    Options
		want string
	}{
		{ctc, Options{Language: "en"}, "a language"}, {ctc, Options{Prompt: "x"}, "a prompt"}, {ctc, Options{Translate: true}, "translation"},
		{ctc, Options{Temperature: 1}, "a temperature"}, {ctc, Options{Threshold: 0.2}, "a threshold"}, {whisper, Options{Threshold: 0.2}, "a threshold"},
		{whisper, Options{Language: "xx"}, `language "xx", want one of en, zh`}, {whisper, Options{Temperature: 3}, "temperature 3"}, {whisper, Options{MaxTokens: -1}, "-1 tokens"},
	} {
		if _, err := c.m.Transcribe(t.Context(), make([]float32, 1000), c.o); !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.o, err, c.want)
		}
	}
	if _, err := ctc.Transcribe(t.Context(), nil, Options{}); !errors.Is(err, ErrOption) {
		t.Errorf("no samples: %v", err)
	}
}

func TestOtherPrograms(t *testing.T) {
	p := open(t, "../testdata/digits/portable.pte")
	if _, err := Load(t.Context(), p, Config{}); !errors.Is(err, ErrFamily) || !errors.Is(err, etrun.ErrUnsupported) {
		t.Errorf("without a vocabulary: %v", err)
	}
	if _, err := Load(t.Context(), p, Config{Vocabulary: []byte(`{"a": 0}`)}); !errors.Is(err, ErrFamily) {
		t.Errorf("pictures: %v", err)
	}
	if _, err := Load(t.Context(), p, Config{Vocabulary: []byte(`{"a": 1000000000}`)}); err == nil {
		t.Error("a huge id")
	}
	for _, rate := range []string{"1", "1000000000"} {
		c := Config{Vocabulary: read(t, "testdata/ctc/vocab.json"), Features: []byte(`{"sampling_rate": ` + rate + `}`)}
		if _, err := Load(t.Context(), open(t, "testdata/ctc/model.pte"), c); !errors.Is(err, ErrFamily) || !strings.Contains(err.Error(), rate+" samples per second") {
			t.Errorf("rate %s: %v", rate, err)
		}
	}
	if _, err := Load(t.Context(), open(t, "testdata/whisper/model.pte"), Config{}); !errors.Is(err, ErrOption) {
		t.Errorf("no tokenizer: %v", err)
	}
	if f, ok := FamilyOf(open(t, "testdata/transducer/model.pte")); f != Transducer || !ok {
		t.Errorf("family %s, %v", f, ok)
	}
}

// A context that ends, or a reader that has enough, ends a transcription.
func TestTranscribeEnds(t *testing.T) {
	m := loadModel(t, "voice")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Transcribe(ctx, recording(t), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	enough := errors.New("enough")
	if _, err := m.Read(t.Context(), source(recording(t)), Options{}, func(*Segment) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

func TestSubtitles(t *testing.T) {
	list := []Segment{{Start: 0, End: 1500 * time.Millisecond, Text: " one"}, {Start: time.Hour + 61*time.Second, End: time.Hour + 62*time.Second, Text: "a --> b"}}
	var b bytes.Buffer
	if err := errors.Join(WriteSRT(&b, list), WriteVTT(&b, list)); err != nil {
		t.Fatal(err)
	}
	const want = "1\n00:00:00,000 --> 00:00:01,500\none\n\n2\n01:01:01,000 --> 01:01:02,000\na --> b\n\n" +
		"WEBVTT\n\n00:00:00.000 --> 00:00:01.500\none\n\n01:01:01.000 --> 01:01:02.000\na -> b\n\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// Parts cover the samples once and end in silence.
func TestParts(t *testing.T) {
	samples := make([]float32, 100_000)
	for i := range samples {
		samples[i] = float32(i%7) - 3
	}
	clear(samples[37_000:38_000])
	n := 0
	var err error
	for at, part := range (&feed{from: source(samples)}).parts(40_000, &err) {
		if at != n || len(part) > 40_000 || len(part) == 0 {
			t.Fatalf("a part of %d at %d, want one at %d", len(part), at, n)
		}
		if n += len(part); at == 0 && (n < 37_000 || n > 38_000) {
			t.Errorf("cut at %d, want in the silence from 37000 to 38000", n)
		}
	}
	if n != len(samples) || err != nil {
		t.Errorf("%d samples, %v, want %d", n, err, len(samples))
	}
}
