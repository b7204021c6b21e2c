package speech

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A recording that is read as it is computed has the result of one that is in memory.
func TestRead(t *testing.T) {
	samples := slices.Concat(recording(t), make([]float32, 61*16000), recording(t))
	for _, name := range []string{"whisper", "transducer", "ctc", "voice"} {
		m := loadModel(t, name)
		want, err := m.Transcribe(t.Context(), samples, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n := 0
		got, err := m.Read(t.Context(), source(samples), Options{}, func(*Segment) error { n++; return nil })
		if err != nil || got.Text != want.Text || !slices.Equal(got.Tokens, want.Tokens) || len(got.Segments) != len(want.Segments) ||
			got.Duration != want.Duration || n != len(want.Segments) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// A stream has the text of each utterance, partial texts before it, and no text of silence.
func TestStream(t *testing.T) {
	second := make([]float32, 16000)
	samples := slices.Concat(second, second, recording(t), second, second, recording(t), second)
	for _, name := range []string{"whisper", "transducer", "ctc"} {
		m := loadModel(t, name)
		partial, final := 0, 0
		end := time.Duration(0)
		var text string
		for p, err := range m.Stream(t.Context(), source(samples), Options{}) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if p.Start < end || p.End <= p.Start || p.End > 12*time.Second {
				t.Errorf("%s: a text from %v to %v after %v", name, p.Start, p.End, end)
			}
			if !p.Final {
				partial++
				continue
			}
			final, end = final+1, p.End
			text += p.Text
		}
		if final < 2 || partial < 2 || strings.TrimSpace(text) == "" {
			t.Errorf("%s: %d final texts, %d partial ones, %q", name, final, partial, text)
		}
		for range m.Stream(t.Context(), source(samples), Options{}) {
			break
		}
		for p, err := range m.Stream(t.Context(), source(make([]float32, 100000)), Options{}) {
			t.Errorf("%s: silence: %v, %v", name, p, err)
		}
	}
	for _, err := range loadModel(t, "voice").Stream(t.Context(), source(second), Options{}) {
		if err == nil || !strings.Contains(err.Error(), "voice") {
			t.Errorf("a voice detector: %v", err)
		}
	}
}

// With a voice detector, only what that takes for speech is transcribed.
func TestVoice(t *testing.T) {
	m, v := loadModel(t, "ctc"), loadModel(t, "voice")
	samples := slices.Concat(recording(t), make([]float32, 32000), recording(t))
	got, err := m.Read(t.Context(), source(samples), Options{Voice: v, Threshold: 0.5}, func(*Segment) error { return nil })
	if err != nil || got.Text == "" || len(got.Segments) == 0 || got.Segments[len(got.Segments)-1].End > got.Duration {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err = m.Transcribe(t.Context(), samples, Options{Voice: v, Threshold: 1}); err != nil || got.Text != "" || got.Duration == 0 {
		t.Errorf("threshold 1: got %+v, %v", got, err)
	}
	for _, x := range []*Model{m, v} {
		if _, err := x.Transcribe(t.Context(), samples, Options{Voice: m}); err == nil {
			t.Error("a recogniser as voice detector")
		}
	}
}

// Recordings of several callers are computed at the same time, and do not change each other.
func TestInstances(t *testing.T) {
	samples := recording(t)
	m := loadModel(t, "transducer")
	m.places = make(chan struct{}, 3)
	want, err := m.Transcribe(t.Context(), samples, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			if got, err := m.Transcribe(t.Context(), samples, Options{}); err != nil || got.Text != want.Text {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
	wait.Wait()
	if n := len(m.idle); n < 1 || n > 3 {
		t.Errorf("%d instances, want at most 3", n)
	}
}
