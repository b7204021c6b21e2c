package speech

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// transducer drives an encoder, a decoder of tokens and a joint: of each frame, the joint says the next token and for how many frames it
// lasts (TDT), or the blank token.
type transducer struct {
	timer
	preprocessor, encoder, decoder, joint *method
	tok                                   tokenizer.Tokenizer
	blank, layers, hidden                 int
	frame                                 float64 // seconds
	samples                               int     // most of a run
	durations                             []int
	vector                                *tensor.Tensor // of the last token, bound to the joint
}

// mostSymbols is the maximum number of tokens of a frame.
const mostSymbols = 10

func (t *transducer) load(ctx context.Context, s *setup) (err error) {
	if s.Tokenizer == nil {
		return fmt.Errorf("%w: a transducer needs its tokenizer", ErrOption)
	}
	if !has(s.program, "preprocessor") {
		return &ConventionError{Method: "preprocessor", Got: "no such method", Want: "one that makes spectrograms of samples"}
	}
	t.tok = s.Tokenizer
	err = s.methods(ctx, loaded{&t.preprocessor, "preprocessor", 2, 2}, loaded{&t.encoder, "encoder", 2, 2}, loaded{&t.decoder, "decoder_step", 3, 3}, loaded{&t.joint, "joint", 2, 1})
	if err != nil {
		return err
	}
	err = errors.Join(t.preprocessor.want(0, 1, true, "samples"), t.preprocessor.want(1, 1, false, "their number"), t.encoder.want(0, 3, true, "a spectrogram"),
		t.encoder.want(1, 1, false, "its length"), t.decoder.want(0, 2, false, "a token"), t.decoder.want(1, 3, true, "a state"), t.decoder.want(2, 3, true, "a state"),
		t.joint.want(0, 3, true, "a frame"), t.joint.want(1, 3, true, "a token's vector"))
	if err != nil {
		return err
	}
	t.vector = t.joint.inputs[1].NewTensor()
	if err := t.joint.BindInput(1, t.vector); err != nil {
		return err
	}
	t.samples = t.preprocessor.inputs[0].Sizes[0]
	t.layers, t.hidden = t.decoder.inputs[1].Sizes[0], t.decoder.inputs[1].Sizes[2]
	if t.durations = []int{1}; t.joint.NumOutputs() > 1 {
		t.durations = []int{0, 1, 2, 3, 4}
	}
	return t.readMetadata(ctx, s)
}

func (t *transducer) readMetadata(ctx context.Context, s *setup) (err error) {
	vocabulary, err := number(ctx, s.program, "vocab_size", t.tok.Size())
	if err != nil {
		return err
	}
	if t.blank, err = number(ctx, s.program, "blank_id", vocabulary); err != nil {
		return err
	}
	factor, err := number(ctx, s.program, "encoder_subsampling_factor", 8)
	if err != nil {
		return err
	}
	stride, err := numbers(ctx, s.program, "window_stride")
	if t.frame = 0.01; len(stride) == 1 && stride[0] > 0 && stride[0] < 1 {
		t.frame = stride[0]
	}
	t.frame *= float64(max(1, factor))
	return err
}

func (t *transducer) info(i *Info) { i.Times, i.Words = true, true }

// Close implements driver.
func (t *transducer) Close() error { return closeAll(t.preprocessor, t.encoder, t.decoder, t.joint) }

// timed is a token and its frames.
type timed struct{ id, first, frames int }

// limit implements driver.
func (t *transducer) limit() int { return t.samples }

// transcribe implements driver. Recordings that are longer than the program takes are cut where they are quiet.
func (t *transducer) transcribe(ctx context.Context, f *feed, _ *Options, yield func(*Segment) error) (*Transcript, error) {
	result := &Transcript{}
	var failed error
	for at, part := range f.parts(t.samples, &failed) {
		tokens, err := t.run(ctx, pad(part, leastFrame))
		if err != nil {
			return nil, err
		}
		for i := range tokens {
			result.Tokens = append(result.Tokens, tokens[i].id)
		}
		words, text, err := t.words(tokens, seconds(float64(at)/16000))
		if err != nil {
			return nil, err
		}
		for _, s := range sentences(words) {
			result.Segments = append(result.Segments, s)
			if err := yield(&s); err != nil {
				return nil, err
			}
		}
		result.Words = append(result.Words, words...)
		if result.Text != "" && text != "" {
			text = " " + text
		}
		result.Text += text
	}
	return result, failed
}

// leastFrame is the least number of samples of a run, a tenth of a second.
const leastFrame = 1600

// pad returns samples with silence behind them, at least n.
func pad(samples []float32, n int) []float32 {
	if len(samples) >= n {
		return samples
	}
	return append(slices.Clone(samples), make([]float32, n-len(samples))...)
}

// run returns the tokens of samples.
func (t *transducer) run(ctx context.Context, samples []float32) ([]timed, error) {
	frames, width, n, err := t.encode(ctx, samples)
	if err != nil {
		return nil, err
	}
	state := make([]float32, t.layers*t.hidden)
	if err := errors.Join(t.decoder.floats(1, state, t.layers, 1, t.hidden), t.decoder.floats(2, state, t.layers, 1, t.hidden), t.next(ctx, t.blank)); err != nil {
		return nil, err
	}
	var list []timed
	for at, symbols := 0, 0; at < n; {
		if err := t.joint.floats(0, frames[at*width:(at+1)*width], 1, 1, width); err != nil {
			return nil, err
		}
		id, duration, err := t.joined(ctx)
		if err != nil {
			return nil, err
		}
		if id == t.blank {
			at, symbols = at+max(1, duration), 0
			continue
		}
		t.mark()
		list = append(list, timed{id, at, duration})
		if err := t.next(ctx, id); err != nil {
			return nil, err
		}
		if at += duration; duration > 0 {
			symbols = 0
		} else if symbols++; symbols >= mostSymbols {
			at, symbols = at+1, 0
		}
	}
	return list, nil
}

// featuresOf returns the features of samples as a preprocessor computes them: their shape, their elements and the number of frames.
func featuresOf(ctx context.Context, preprocessor *method, samples []float32) (t *tensor.Tensor, features []float32, n int, err error) {
	if err := errors.Join(preprocessor.floats(0, samples, len(samples)), preprocessor.ints(1, []int64{int64(len(samples))}, 1)); err != nil {
		return nil, nil, 0, err
	}
	if err := preprocessor.Execute(ctx); err != nil {
		return nil, nil, 0, err
	}
	if t, err = preprocessor.tensor(0, 3); err != nil {
		return nil, nil, 0, err
	}
	if features, err = preprocessor.result(0); err != nil {
		return nil, nil, 0, err
	}
	n, err = preprocessor.integer(1)
	return t, features, n, err
}

// encode returns the encoder's frames, their width and their number.
func (t *transducer) encode(ctx context.Context, samples []float32) (frames []float32, width, n int, err error) {
	mel, features, length, err := featuresOf(ctx, t.preprocessor, samples)
	if err != nil {
		return nil, 0, 0, err
	}
	if err := errors.Join(t.encoder.floats(0, features, mel.Sizes...), t.encoder.ints(1, []int64{int64(length)}, 1)); err != nil {
		return nil, 0, 0, err
	}
	if err := t.encoder.Execute(ctx); err != nil {
		return nil, 0, 0, err
	}
	out, err := t.encoder.tensor(0, 3)
	if err != nil {
		return nil, 0, 0, err
	}
	if frames, err = t.encoder.result(0); err != nil {
		return nil, 0, 0, err
	}
	if n, err = t.encoder.integer(1); err == nil && (n < 0 || n > out.Sizes[1]) {
		err = &ConventionError{Method: "encoder", Got: fmt.Sprintf("%d frames of %d", n, out.Sizes[1]), Want: "a number of its frames"}
	}
	return frames, out.Sizes[2], n, err
}

// next runs the decoder on a token: its vector is the joint's input, its state that of the next run.
func (t *transducer) next(ctx context.Context, id int) error {
	if err := t.decoder.ints(0, []int64{int64(id)}, 1, 1); err != nil {
		return err
	}
	if err := t.decoder.Execute(ctx); err != nil {
		return err
	}
	for i := 1; i <= 2; i++ {
		state, err := t.decoder.tensor(i, 3)
		if err != nil {
			return err
		}
		if err := t.decoder.SetInput(i, state); err != nil {
			return err
		}
	}
	vector, err := t.decoder.tensor(0, 3)
	if err != nil {
		return err
	}
	if !slices.Equal(vector.Sizes, t.vector.Sizes) || vector.DType != t.vector.DType {
		return &ConventionError{Method: "decoder_step", Got: vector.String(), Want: t.vector.String() + ", the joint's input"}
	}
	copy(t.vector.Data, vector.Data)
	return nil
}

// joined runs the joint.
func (t *transducer) joined(ctx context.Context) (id, duration int, err error) {
	if err := t.joint.Execute(ctx); err != nil {
		return 0, 0, err
	}
	if id, err = t.joint.integer(0); err != nil {
		return 0, 0, err
	}
	index := 0
	if len(t.durations) > 1 {
		if index, err = t.joint.integer(1); err != nil {
			return 0, 0, err
		}
	}
	if index < 0 || index >= len(t.durations) || id < 0 || id > t.blank {
		return 0, 0, &ConventionError{Method: "joint", Got: fmt.Sprintf("token %d, duration %d", id, index),
			Want: fmt.Sprintf("a token up to %d and a duration below %d", t.blank, len(t.durations))}
	}
	return id, t.durations[index], nil
}

// words divides tokens into words with their times, and returns the text. A word begins with a piece that begins with a space. A punctuation
// mark lasts no time and belongs to the word before.
func (t *transducer) words(tokens []timed, begin time.Duration) (list []Word, text string, err error) {
	var all []byte
	end := begin
	for i, x := range tokens {
		from := len(all)
		if all, err = t.tok.Append(all, x.id); err != nil {
			return nil, "", err
		}
		piece := string(all[from:])
		start := begin + seconds(float64(x.first)*t.frame)
		after := begin + seconds(float64(x.first+x.frames)*t.frame)
		mark := i > 0 && isMark(strings.TrimSpace(piece))
		if mark {
			start, after = end, end
		}
		if i == 0 || strings.HasPrefix(piece, " ") && !mark {
			list = append(list, Word{Start: start})
		}
		w := &list[len(list)-1]
		w.Text += strings.TrimPrefix(piece, " ")
		w.End, end = after, after
	}
	return list, strings.TrimPrefix(string(all), " "), nil
}

func isMark(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && n == len(s) && unicode.IsPunct(r)
}

// sentences divides words at those that end with a full stop, a question mark or an exclamation mark.
func sentences(words []Word) (list []Segment) {
	var texts []string
	from := 0
	for i, w := range words {
		texts = append(texts, w.Text)
		if i < len(words)-1 && !strings.HasSuffix(w.Text, ".") && !strings.HasSuffix(w.Text, "?") && !strings.HasSuffix(w.Text, "!") {
			continue
		}
		list = append(list, Segment{Start: words[from].Start, End: w.End, Text: strings.Join(texts, " "), Speaker: -1})
		texts, from = nil, i+1
	}
	return list
}
