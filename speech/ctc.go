package speech

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/etrun-go/etrun/media/decode"
)

// ctc drives programs that return a class for each frame: repeated classes count once, and the blank class not at all.
type ctc struct {
	timer
	forward   *method
	names     []string
	blank     int
	delimiter int
	normalize bool
	rate      int
}

// ctcHop is the number of samples of a frame of wav2vec 2.0 and its kin.
const ctcHop = 320

func (c *ctc) load(ctx context.Context, s *setup) (err error) {
	if s.Vocabulary == nil {
		return fmt.Errorf("%w: a program with forward alone; a CTC model needs its vocab.json", ErrFamily)
	}
	c.normalize, c.rate, c.delimiter = true, 16000, -1
	if err := c.readNames(s.Vocabulary); err != nil {
		return err
	}
	if s.Features != nil {
		f := struct {
			Normalize *bool `json:"do_normalize"`
			Rate      int   `json:"sampling_rate"`
		}{}
		if err := json.Unmarshal(s.Features, &f); err != nil {
			return fmt.Errorf("preprocessor_config.json: %w", err)
		}
		if f.Normalize != nil {
			c.normalize = *f.Normalize
		}
		if f.Rate > 0 {
			c.rate = f.Rate
		}
	}
	if c.forward, err = load(ctx, s.program, "forward", 1, 1); err != nil {
		return err
	}
	return c.forward.want(0, 2, true, "samples of shape 1, n")
}

// readNames reads vocab.json: the id of each symbol.
func (c *ctc) readNames(data []byte) error {
	var ids map[string]int
	if err := json.Unmarshal(data, &ids); err != nil {
		return fmt.Errorf("vocab.json: %w", err)
	}
	for name, id := range ids {
		if id < 0 || id >= 2*len(ids)+1 {
			return fmt.Errorf("vocab.json: %q has the id %d, want ids below %d", name, id, 2*len(ids)+1)
		}
		for len(c.names) <= id {
			c.names = append(c.names, "")
		}
		c.names[id] = name
	}
	for _, name := range []string{"<pad>", "[PAD]", "<blank>"} {
		if id, ok := ids[name]; ok {
			c.blank = id
			break
		}
	}
	if id, ok := ids["|"]; ok {
		c.delimiter = id
	}
	return nil
}

func (c *ctc) info(i *Info) { i.Rate, i.Times, i.Words = c.rate, true, true }

// Close implements driver.
func (c *ctc) Close() error { return closeAll(c.forward) }

// limit implements driver.
func (c *ctc) limit() int { return c.forward.inputs[0].Sizes[1] }

// transcribe implements driver.
func (c *ctc) transcribe(ctx context.Context, f *feed, _ *Options, yield func(*Segment) error) (*Transcript, error) {
	t := &Transcript{}
	var texts []string
	var failed error
	for at, part := range f.parts(c.forward.inputs[0].Sizes[1], &failed) {
		tokens, hop, err := c.run(ctx, part)
		if err != nil {
			return nil, err
		}
		from := len(t.Words)
		for _, x := range tokens {
			t.Tokens = append(t.Tokens, x.id)
		}
		second := func(frame int) float64 { return (float64(at) + float64(frame)*hop) / float64(c.rate) }
		t.Words = c.words(tokens, t.Words, second)
		if len(t.Words) == from {
			continue
		}
		var words []string
		for _, w := range t.Words[from:] {
			words = append(words, w.Text)
		}
		text := strings.Join(words, " ")
		texts = append(texts, text)
		s := Segment{Start: t.Words[from].Start, End: t.Words[len(t.Words)-1].End, Text: text, Speaker: -1}
		t.Segments = append(t.Segments, s)
		if err := yield(&s); err != nil {
			return nil, err
		}
	}
	t.Text = strings.Join(texts, " ")
	return t, failed
}

// run returns the classes of samples, and the samples of a frame.
func (c *ctc) run(ctx context.Context, samples []float32) (list []timed, hop float64, err error) {
	if c.normalize {
		samples = normalized(samples)
	}
	if err := c.forward.floats(0, samples, 1, len(samples)); err != nil {
		return nil, 0, err
	}
	if err := c.forward.Execute(ctx); err != nil {
		return nil, 0, err
	}
	out, err := c.forward.tensor(0, 3)
	if err != nil {
		return nil, 0, err
	}
	scores, err := c.forward.result(0)
	if err != nil {
		return nil, 0, err
	}
	n, width := out.Sizes[1], out.Sizes[2]
	if width > len(c.names)+1 || n == 0 {
		return nil, 0, &ConventionError{Method: "forward", Got: fmt.Sprintf("%d frames of %d classes", n, width), Want: fmt.Sprintf("frames of the %d symbols of vocab.json", len(c.names))}
	}
	if hop = ctcHop; math.Abs(float64(len(samples))/float64(n)-hop) > hop/10 {
		hop = float64(len(samples)) / float64(n)
	}
	c.mark()
	for _, r := range decode.Runs(scores[:n*width], width, c.blank) {
		list = append(list, timed{r.Class, r.First, r.Frames})
	}
	return list, hop, nil
}

// normalized returns samples with a mean of zero and a variance of one.
func normalized(samples []float32) []float32 {
	mean, variance := 0.0, 0.0
	for _, v := range samples {
		mean += float64(v)
	}
	mean /= float64(len(samples))
	for _, v := range samples {
		variance += (float64(v) - mean) * (float64(v) - mean)
	}
	scale := 1 / math.Sqrt(variance/float64(len(samples))+1e-7)
	out := make([]float32, len(samples))
	for i, v := range samples {
		out[i] = float32((float64(v) - mean) * scale)
	}
	return out
}

// words appends the words of classes: the symbols between delimiters.
func (c *ctc) words(tokens []timed, list []Word, second func(frame int) float64) []Word {
	open := false
	for _, x := range tokens {
		if x.id == c.delimiter {
			open = false
			continue
		}
		name := ""
		if x.id < len(c.names) {
			name = c.names[x.id]
		}
		if name == "<s>" || name == "</s>" {
			continue
		}
		if !open {
			list = append(list, Word{Start: seconds(second(x.first))})
			open = true
		}
		w := &list[len(list)-1]
		w.Text += name
		w.End = seconds(second(x.first + x.frames))
	}
	return list
}
