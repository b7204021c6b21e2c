package speech

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Windows of Whisper.
const (
	windowSeconds  = 30
	windowSamples  = windowSeconds * sound.MelRate
	leastSamples   = 201 // a shorter recording has no frame
	mostPositions  = 448 // rows of the table of positions of all Whisper models
	sampleSeconds  = 29  // of a window of programs that take samples, and their positions, as react-native-executorch has them
	samplePosition = 128
	promptTokens   = 223  // of earlier text
	timeStep       = 0.02 // seconds per time token
	firstTimeSteps = 50   // the first time token is at most one second
)

// whisper drives both forms of exports: encoder and text_decoder with a spectrogram (optimum), encode and decode with samples.
type whisper struct {
	timer
	encoder, decoder *method
	mel              *sound.Mel // nil: the program takes samples
	bins             int
	features         []float32
	hidden           *tensor.Tensor // the encoder's result
	token, at, state int            // inputs of the decoder
	positions        int
	most             int // samples of a window that the encoder takes
	names
	tok tokenizer.Tokenizer
}

// names are the tokens with a meaning.
type names struct {
	start, end, previous, noSpeech, noTimes, toTranscribe, toTranslate int // -1 if the tokenizer lacks them
	times                                                              int // the token of 0.00 s
	ends                                                               []int
	languages                                                          map[string]int
	suppressed, suppressedFirst                                        []int
}

func (w *whisper) load(ctx context.Context, s *setup) (err error) {
	if s.Tokenizer == nil {
		return fmt.Errorf("%w: Whisper needs its tokenizer", ErrOption)
	}
	encoder, decoder := "encoder", "text_decoder"
	if !has(s.program, encoder, decoder) {
		encoder, decoder = "encode", "decode"
	}
	w.tok = s.Tokenizer
	if err := s.methods(ctx, loaded{&w.encoder, encoder, 1, 1}, loaded{&w.decoder, decoder, 3, 1}); err != nil {
		return err
	}
	if err := errors.Join(w.findFeatures(), w.findInputs()); err != nil {
		return err
	}
	most := mostPositions
	if w.mel == nil {
		most = samplePosition
	}
	if w.positions, err = number(ctx, s.program, "get_max_seq_len", most); err != nil {
		return err
	}
	w.positions = min(w.positions, mostPositions)
	for _, t := range w.decoder.StateTensors() { // caches are [1, heads, positions, width] or [1, positions, heads, width]
		if len(t.Sizes) == 4 {
			w.positions = min(w.positions, max(t.Sizes[1], t.Sizes[2]))
		}
	}
	return w.findNames(ctx, s)
}

// findFeatures finds out what the encoder takes.
func (w *whisper) findFeatures() error {
	in := w.encoder.inputs[0]
	switch sizes := in.Sizes; {
	case !in.DType.IsFloat():
	case len(sizes) == 1 || len(sizes) == 2 && sizes[0] == 1:
		w.most = min(sizes[len(sizes)-1], sampleSeconds*sound.MelRate)
		return nil
	case len(sizes) == 3 && sizes[0] == 1 && sizes[2] == windowSamples/sound.MelHop && sizes[1] <= 1<<10:
		w.bins, w.mel, w.most = sizes[1], sound.NewMel(sizes[1]), windowSamples
		w.features = make([]float32, w.bins*sizes[2])
		return nil
	}
	return &ConventionError{Method: w.encoder.Name(), Got: fmt.Sprintf("%s %v", in.DType, in.Sizes),
		Want: fmt.Sprintf("a spectrogram of 1, bins and %d frames, or samples", windowSamples/sound.MelHop)}
}

// findInputs finds the decoder's inputs by their types and ranks.
func (w *whisper) findInputs() error {
	w.token, w.at, w.state = -1, -1, -1
	for i, in := range w.decoder.inputs {
		switch {
		case in.Kind != tensor.KindTensor:
		case in.DType.IsFloat() && len(in.Sizes) == 3:
			w.state = i
		case !in.DType.IsFloat() && len(in.Sizes) == 2:
			w.token = i
		case !in.DType.IsFloat() && len(in.Sizes) == 1:
			w.at = i
		}
	}
	if w.token < 0 || w.at < 0 || w.state < 0 {
		return &ConventionError{Method: w.decoder.Name(), Got: "other inputs", Want: "tokens of rank 2, positions of rank 1 and the encoder's result of rank 3"}
	}
	return nil
}

// findNames finds the tokens with a meaning, by name, and those that generation_config.json excludes.
func (w *whisper) findNames(ctx context.Context, s *setup) error {
	id := func(name string) int {
		if n, ok := w.tok.ID("<|" + name + "|>"); ok {
			return n
		}
		return -1
	}
	n := names{end: id("endoftext"), previous: id("startofprev"), noSpeech: id("nospeech"), noTimes: id("notimestamps"),
		toTranscribe: id("transcribe"), toTranslate: id("translate"), times: id("0.00"), languages: map[string]int{}}
	if n.noSpeech < 0 {
		n.noSpeech = id("nocaptions")
	}
	if n.times <= n.end {
		n.times = -1 // those behind the text are times
	}
	var err error
	if n.start, err = number(ctx, s.program, "decoder_start_token_id", id("startoftranscript")); err != nil {
		return err
	}
	if n.start < 0 || n.end < 0 {
		return fmt.Errorf("%w: a tokenizer without <|startoftranscript|> and <|endoftext|>", ErrOption)
	}
	n.ends = []int{n.end}
	for _, name := range []string{"get_eos_ids", "get_eos_id"} {
		list, err := numbers(ctx, s.program, name)
		if err != nil {
			return err
		}
		for _, v := range list {
			n.ends = append(n.ends, int(v))
		}
	}
	var c struct {
		Suppress     []int `json:"suppress_tokens"`
		First        []int `json:"begin_suppress_tokens"`
		Multilingual *bool `json:"is_multilingual"`
	}
	if s.Generation != nil {
		if err := json.Unmarshal(s.Generation, &c); err != nil {
			return fmt.Errorf("generation_config.json: %w", err)
		}
	}
	n.suppressed, n.suppressedFirst = c.Suppress, c.First
	const englishStart = 50257 // of the .en models, whose tokenizers have the names of languages, too
	if several := n.start != englishStart; c.Multilingual != nil && *c.Multilingual || c.Multilingual == nil && several {
		for _, l := range languages {
			if at := id(l.code); at >= 0 {
				n.languages[l.code] = at
			}
		}
	}
	w.names = n
	return nil
}

func (w *whisper) info(i *Info) {
	for _, l := range languages {
		if _, ok := w.languages[l.code]; ok {
			i.Languages = append(i.Languages, l.code)
		}
	}
	i.Translate = w.toTranslate >= 0 && len(i.Languages) > 0
	i.Times = w.times >= 0
}

// limit implements driver.
func (w *whisper) limit() int { return w.most }

// Close implements driver.
func (w *whisper) Close() error { return closeAll(w.encoder, w.decoder) }

// encode computes the encoder's result for a window, and resets the decoder: exports may keep the keys of the first window that they see.
func (w *whisper) encode(ctx context.Context, samples []float32) error {
	samples = samples[:min(len(samples), w.most)]
	var err error
	if w.mel == nil {
		sizes := slices.Clone(w.encoder.inputs[0].Sizes)
		sizes[len(sizes)-1] = len(samples)
		err = w.encoder.floats(0, samples, sizes...)
	} else {
		padded := make([]float32, windowSamples)
		copy(padded, samples)
		w.mel.Spectrogram(padded, w.features)
		err = w.encoder.floats(0, w.features, w.encoder.inputs[0].Sizes...)
	}
	if err != nil {
		return err
	}
	if err := w.encoder.Execute(ctx); err != nil {
		return err
	}
	if w.hidden, err = w.encoder.tensor(0, 3); err != nil {
		return err
	}
	return w.restart()
}

// restart forgets the tokens of the window.
func (w *whisper) restart() error {
	return errors.Join(w.decoder.Reset(), w.decoder.BindConstant(w.state, w.hidden)) // the encoder does not run between steps
}

// step runs the decoder on a token and returns the logits of the next one, valid until the next step.
func (w *whisper) step(ctx context.Context, token, position int) ([]float32, error) {
	if err := errors.Join(w.decoder.ints(w.token, []int64{int64(token)}, 1, 1), w.decoder.ints(w.at, []int64{int64(position)}, 1)); err != nil {
		return nil, err
	}
	if err := w.decoder.Execute(ctx); err != nil {
		return nil, err
	}
	logits, err := w.decoder.result(0)
	if err != nil {
		return nil, err
	}
	if n := w.tok.Size(); len(logits) < n {
		return nil, &ConventionError{Method: w.decoder.Name(), Got: fmt.Sprintf("%d logits", len(logits)), Want: fmt.Sprintf("one for each of the tokenizer's %d tokens", n)}
	}
	return logits, nil
}

// prompt returns the tokens before the text, of which the start token is at the index that it returns.
func (w *whisper) prompt(o *Options, language string) (tokens []int, start int, err error) {
	if o.Prompt != "" {
		if w.previous < 0 {
			return nil, 0, fmt.Errorf("%w: a prompt, its tokenizer has no <|startofprev|>", ErrOption)
		}
		before, err := w.tok.Encode(" "+strings.TrimSpace(o.Prompt), false)
		if err != nil {
			return nil, 0, err
		}
		tokens = append([]int{w.previous}, before[max(0, len(before)-min(promptTokens, w.positions/2-1)):]...)
	}
	start = len(tokens)
	tokens = append(tokens, w.start)
	if len(w.languages) > 0 {
		task := w.toTranscribe
		if o.Translate {
			task = w.toTranslate
		}
		if tokens = append(tokens, w.languages[language]); task >= 0 {
			tokens = append(tokens, task)
		}
	}
	if !o.Times && w.noTimes >= 0 {
		tokens = append(tokens, w.noTimes)
	}
	return tokens, start, nil
}

// detect returns the most likely language of the window that is encoded.
func (w *whisper) detect(ctx context.Context) (string, error) {
	logits, err := w.step(ctx, w.start, 0)
	if err != nil {
		return "", err
	}
	best, most := "", float32(math.Inf(-1))
	for _, l := range languages {
		if id, ok := w.languages[l.code]; ok && id < len(logits) && logits[id] > most {
			best, most = l.code, logits[id]
		}
	}
	return best, w.restart()
}

// language returns the language of a recording.
func (w *whisper) language(ctx context.Context, o *Options) (string, error) {
	switch _, ok := w.languages[o.Language]; {
	case len(w.languages) == 0:
		return "", nil
	case o.Language == "":
		return w.detect(ctx)
	case !ok:
		var known []string
		for _, l := range languages {
			if _, ok := w.languages[l.code]; ok {
				known = append(known, l.code)
			}
		}
		return "", fmt.Errorf("%w: language %q, want one of %s", ErrOption, o.Language, strings.Join(known, ", "))
	}
	return o.Language, nil
}

// transcribe implements driver: windows of 30 s, each of which begins where the last complete segment of the one before ended.
func (w *whisper) transcribe(ctx context.Context, f *feed, o *Options, yield func(*Segment) error) (*Transcript, error) {
	t := &Transcript{}
	if o.Times && w.times < 0 {
		return nil, fmt.Errorf("%w: times, its tokenizer has no <|0.00|>", ErrOption)
	}
	for first := true; ; first = false {
		rest, err := f.next(w.most + 1)
		if err != nil || len(rest) < leastSamples {
			return t, err
		}
		window := rest[:min(w.most, len(rest))]
		if err := w.encode(ctx, window); err != nil {
			return nil, err
		}
		if first {
			if t.Language, err = w.language(ctx, o); err != nil {
				return nil, err
			}
		}
		d, err := w.decode(ctx, o, t.Language)
		if err != nil {
			return nil, err
		}
		next, list, err := w.segments(d, o, f.at, len(window), first && len(rest) <= w.most)
		if err != nil {
			return nil, err
		}
		f.pass(min(next-f.at, len(window)))
		t.Tokens = append(t.Tokens, d.tokens...)
		for i := range list {
			t.Segments = append(t.Segments, list[i])
			t.Text += list[i].Text
			if err := yield(&list[i]); err != nil {
				return nil, err
			}
		}
	}
}

// suppress excludes tokens from a choice.
func suppress(logits []float32, tokens []int) {
	for _, id := range tokens {
		if id >= 0 && id < len(logits) {
			logits[id] = float32(math.Inf(-1))
		}
	}
}
