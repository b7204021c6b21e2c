package speech

import (
	"context"
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
	m.slots = make(chan struct{}, 3)
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

// clocked is a recogniser that takes base for a text and each for a token, of which there are so many per second of sound.
type clocked struct {
	timer
	now        time.Time
	base, each time.Duration
	tokens     float64
}

func (*clocked) info(*Info)   {}
func (*clocked) limit() int   { return 29 * 16000 }
func (*clocked) Close() error { return nil }

func (c *clocked) transcribe(_ context.Context, f *feed, o *Options, _ func(*Segment) error) (*Transcript, error) {
	n := min(int(c.tokens*float64(len(f.list))/16000), 120)
	if o.MaxTokens > 0 {
		n = min(n, o.MaxTokens)
	}
	c.now = c.now.Add(c.base + time.Duration(n)*c.each)
	return &Transcript{}, nil
}

// Partial texts are soon after their sound, and a word is soon in a text, also in a long utterance, unless even a short one takes long. The
// bounds are what is reached, so that it does not get worse.
func TestLateness(t *testing.T) {
	for _, c := range []struct {
		name          string
		base          time.Duration
		tokens        float64 // per second
		pauses        bool    // short ones, every 2.5 seconds
		partial, word time.Duration
		utterances    int // at most, in a minute
	}{
		{"sentences with short pauses", 550 * time.Millisecond, 3.5, true, 900 * time.Millisecond, 2200 * time.Millisecond, 13},
		{"no pause", 550 * time.Millisecond, 3.5, false, 900 * time.Millisecond, 2200 * time.Millisecond, 14},
		{"a text that repeats itself", 550 * time.Millisecond, 1000, false, 1300 * time.Millisecond, 4600 * time.Millisecond, 20},
		{"a fast machine", 50 * time.Millisecond, 3.5, true, 900 * time.Millisecond, 1500 * time.Millisecond, 4},
		{"a slow machine", 3 * time.Second, 3.5, true, 4500 * time.Millisecond, 12 * time.Second, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun := time.Unix(0, 0)
			d := &clocked{now: begun, base: c.base, each: 13 * time.Millisecond, tokens: c.tokens}
			partial, word, end, final := time.Duration(0), time.Duration(0), time.Duration(0), 0
			u := &utterance{model: &Model{info: Info{Rate: 16000}, family: Whisper}, driver: d, partial: true, now: func() time.Time { return d.now },
				yield: func(p Part) error {
					if p.Final {
						final++
					} else {
						partial = max(partial, d.now.Sub(begun)-p.End)
					}
					if p.End > end {
						word, end = max(word, d.now.Sub(begun)-end), p.End
					}
					return nil
				}}
			const window = 500
			for at := 0; at < 60*16000; at += window {
				heard := begun.Add(time.Duration(at+window) * time.Second / 16000)
				if d.now.Before(heard) {
					d.now = heard
				}
				if err := u.add(t.Context(), at, make([]float32, window), !c.pauses || at%40000 >= 4000); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("a partial text is at most %v after its sound, a word %v, %d utterances", partial, word, final)
			if partial > c.partial || word > c.word || final > c.utterances {
				t.Errorf("want at most %v, %v and %d", c.partial, c.word, c.utterances)
			}
		})
	}
}
