package speech

import (
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// sampleModel returns a program of Whisper that takes samples, and its model.
func sampleModel(t *testing.T, options ...etrun.Option) (*etrun.Program, *Model) {
	t.Helper()
	tok, err := tokenizer.Open("testdata/whisper")
	if err != nil {
		t.Fatal(err)
	}
	r := ptetest.Recogniser{Transformer: ptetest.Transformer{Layers: 2, Dim: 32, Heads: 2, Vocabulary: tok.Size(), Context: 160, Seed: 5}, Frames: 40, Samples: windowSamples}
	p, err := etrun.Parse(r.File(), append(options, etrun.WithDelegates(all.Backends()...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	m, err := Load(t.Context(), p, Config{Tokenizer: tok})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return p, m
}

// greedy writes the tokens of a window as the exporter's runner does: it runs the decoder on each token and chooses the most likely next one,
// within 128 positions.
func greedy(t *testing.T, p *etrun.Program, samples []float32, prompt []int, end int) (tokens []int) {
	t.Helper()
	encoder, err := p.Load(t.Context(), "encode")
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	frames, err := etrun.Run[float32](t.Context(), encoder, samples)
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := p.Load(t.Context(), "decode")
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	hidden := tensor.New(tensor.Float32, 1, 40, 32)
	copy(tensor.Data[float32](hidden), frames)
	all := slices.Clone(prompt)
	for at := 0; at < 128; at++ {
		if err := decoder.BindInput(2, hidden); err != nil {
			t.Fatal(err)
		}
		for i, n := range []int{all[at], at} {
			if err := etrun.Set(decoder, i, []int64{int64(n)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := decoder.Execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		logits, err := etrun.Get[float32](decoder, 0)
		if err != nil {
			t.Fatal(err)
		}
		if at < len(prompt)-1 {
			continue
		}
		next := slices.Index(logits, slices.Max(logits))
		if all = append(all, next); next == end || len(all) == 128 {
			break
		}
	}
	return all[len(prompt):]
}

// Programs that take samples write the tokens of their own protocol, in windows of 29 seconds.
func TestSamples(t *testing.T) {
	samples := make([]float32, 70*16000)
	for i, v := range recording(t) {
		samples[i], samples[30*16000+i], samples[59*16000+i] = v, v/2, -v
	}
	for name, o := range map[string][]etrun.Option{"default": nil, "not lowered": {etrun.WithLowering(etrun.LowerOff)}, "inputs are reused": {etrun.WithReusableInputs()}} {
		p, m := sampleModel(t, o...)
		id := func(name string) int {
			n, _ := m.idle[0].(*whisper).tok.ID("<|" + name + "|>")
			return n
		}
		prompt := []int{id("startoftranscript"), id("en"), id("transcribe"), id("notimestamps")}
		var want []int
		for part := range slices.Chunk(samples, 29*16000) {
			want = append(want, greedy(t, p, part, prompt, id("endoftext"))...)
		}
		got, err := m.Transcribe(t.Context(), samples, Options{Language: "en"})
		if err != nil || !slices.Equal(got.Tokens, want) || len(got.Segments) != 3 {
			t.Errorf("%s: got %+v, %v, want %d", name, got, err, want)
		}
	}
}

// BenchmarkPartialText is a partial text of 8 seconds, of 28 tokens, by a program of the sizes of tiny Whisper. With -cpu 1 it should take at most
// half of the 1.5 seconds that a word may be late.
func BenchmarkPartialText(b *testing.B) {
	r := ptetest.Recogniser{Transformer: ptetest.Transformer{Layers: 4, Dim: 384, Heads: 6, Vocabulary: 51865, Context: 448, Seed: 1},
		Frames: 1500, Samples: windowSamples, Encoder: 4}
	p, err := etrun.Parse(r.File(), etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1))
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	tok, err := tokenizer.Open("testdata/whisper")
	if err != nil {
		b.Fatal(err)
	}
	m, err := Load(b.Context(), p, Config{Tokenizer: tok})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	samples := make([]float32, 8*16000)
	for b.Loop() {
		samples[b.N%8]++
		if _, err := m.Transcribe(b.Context(), samples, Options{MaxTokens: 28}); err != nil {
			b.Fatal(err)
		}
	}
}
