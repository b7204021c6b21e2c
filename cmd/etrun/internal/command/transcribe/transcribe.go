// Package transcribe is the command transcribe, which writes what is said in recordings.
package transcribe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/duration"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/speech"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Report is the JSON object of transcribe.
type Report struct {
	Schema     string      `json:"schema"`
	Family     string      `json:"family"`
	Recordings []Recording `json:"recordings"`
}

// Recording is what was found in a file.
type Recording struct {
	File          string    `json:"file"`
	Seconds       float64   `json:"seconds"`
	Language      string    `json:"language,omitempty"`
	Text          string    `json:"text"`
	Segments      []Segment `json:"segments"`
	Words         []Word    `json:"words,omitempty"`
	Tokens        []int     `json:"tokens,omitempty"`
	Probabilities []float32 `json:"probabilities,omitempty"` // of speech, for each frame
}

// Segment is a part of a recording.
type Segment struct {
	Start   float64 `json:"start"` // seconds
	End     float64 `json:"end"`
	Text    string  `json:"text,omitempty"`
	Speaker *int    `json:"speaker,omitempty"`
	Tokens  []int   `json:"tokens,omitempty"`
	LogProb float64 `json:"avg_logprob,omitempty"`
}

// Word is a word with its times.
type Word struct {
	Word  string  `json:"word"`
	Start float64 `json:"start"` // seconds
	End   float64 `json:"end"`
}

// command transcribes recordings.
type command struct {
	*cli.App
	session.Options
	wanted            speech.Options
	audio             []string
	tokenizer, format string
}

const help = `Write what is said in recordings, who speaks when, or where somebody speaks, by the
program: Whisper (an encoder and a decoder), transducers such as Parakeet, CTC models
such as wav2vec 2.0, Silero's voice detector, and Sortformer.

Recordings are WAVE or FLAC files of any rate and number of channels; they are mixed
and resampled. The tokenizer, generation_config.json and vocab.json are those in the
folder of the program, unless --tokenizer names another one.
`

// formats are the formats of the results.
var formats = []string{"text", "json", "srt", "vtt"}

// New returns the command.
func New(a *cli.App) *cobra.Command {
	t := &command{App: a, Options: session.Options{Say: a.Note}}
	c := &cobra.Command{
		Use:   "transcribe MODEL.pte --audio FILE",
		Short: "Write what is said in recordings",
		Long:  help,
		Example: "  etrun transcribe whisper/model.pte --audio talk.wav\n  etrun transcribe model.pte -a talk.flac --language de --format srt > talk.srt\n" +
			"  etrun transcribe parakeet/model.pte -a a.wav -a b.wav --json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cli.CompleteModel,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 1 {
				return session.Usage("no MODEL.pte; see %s --help", c.CommandPath())
			}
			return t.run(c.Context(), args[0])
		},
	}
	flags := c.Flags()
	flags.StringArrayVarP(&t.audio, "audio", "a", nil, "recording, a WAVE or FLAC `FILE`, or - for standard input; may be repeated")
	flags.StringVar(&t.tokenizer, "tokenizer", "", "`FILE` with the tokenizer of the model, or a folder with its files (default: the folder of the program)")
	flags.StringVar(&t.format, "format", "text", "`FORMAT` of the result: text, json, srt or vtt")
	flags.StringVar(&t.wanted.Language, "language", "", "`CODE` of the language that is spoken, such as de (default: found by the model)")
	flags.BoolVar(&t.wanted.Translate, "translate", false, "translate to English")
	flags.StringVar(&t.wanted.Prompt, "prompt", "", "`TEXT` that precedes the recording: names, spelling, style (Whisper)")
	flags.BoolVar(&t.wanted.Times, "timestamps", false, "let the model write times: segments instead of one text per 30 seconds (Whisper; set by --format srt and vtt)")
	flags.Float64Var(&t.wanted.Temperature, "temperature", 0, "draw tokens with a temperature; 0: the most likely (Whisper)")
	flags.BoolVar(&t.wanted.Fallback, "fallback", false, "repeat with a higher temperature where the text repeats itself or is improbable, and leave out silence (Whisper)")
	flags.IntVar(&t.wanted.MaxTokens, "max-tokens", 0, "write at most `N` tokens per 30 seconds (Whisper; default: what the model has room for)")
	flags.BoolVar(&t.wanted.AllTokens, "all-tokens", false, "write also the tokens that generation_config.json excludes (Whisper)")
	flags.Float64Var(&t.wanted.Threshold, "threshold", 0, "least probability of speech or of a speaker (default: 0.5)")
	t.Options.AddFlags(flags)
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (t *command) run(ctx context.Context, path string) error {
	if err := t.check(); err != nil {
		return err
	}
	s, err := session.Open(ctx, path, &t.Options)
	if err != nil {
		return err
	}
	defer s.Close()
	config, err := t.config(ctx, path, s.MethodNames())
	if err != nil {
		return err
	}
	m, err := speech.Load(ctx, s.Program, config)
	if err != nil {
		return session.WithHint(err)
	}
	defer m.Close()
	s.Warn()
	t.wanted.Seed = t.Options.Seed
	if t.format == "srt" || t.format == "vtt" {
		t.wanted.Times = t.wanted.Times || m.Info().Family == speech.Whisper
	}
	report := Report{Schema: "etrun.transcribe/1", Family: string(m.Info().Family), Recordings: []Recording{}}
	for _, file := range t.audio {
		r, err := t.transcribe(ctx, m, file)
		if err != nil {
			return session.WithHint(fmt.Errorf("%s: %w", file, err))
		}
		report.Recordings = append(report.Recordings, *r)
	}
	if t.JSON {
		return t.WriteJSON(report)
	}
	return nil
}

// check checks the flags.
func (t *command) check() error {
	switch {
	case len(t.audio) == 0:
		return session.Usage("no recording; want --audio FILE")
	case !slices.Contains(formats, t.format):
		return session.Usage("--format=%s, want one of %s", t.format, strings.Join(formats, ", "))
	case len(t.audio) > 1 && (t.format == "srt" || t.format == "vtt"):
		return session.Usage("--format=%s with %d recordings, want one: a file of subtitles is for one recording", t.format, len(t.audio))
	}
	t.JSON = t.JSON || t.format == "json"
	return nil
}

// config reads the files of the model: those in a folder, or a tokenizer.
func (t *command) config(ctx context.Context, path string, methods []string) (c speech.Config, err error) {
	from := t.tokenizer
	if from == "" {
		from = filepath.Dir(path)
	}
	folder := from
	if info, err := os.Stat(from); err != nil {
		return c, err
	} else if !info.IsDir() {
		folder = ""
	}
	if folder != "" {
		for _, f := range []struct {
			to   *[]byte
			name string
		}{{&c.Generation, "generation_config.json"}, {&c.Vocabulary, "vocab.json"}, {&c.Features, "preprocessor_config.json"}} {
			*f.to, err = openfile.ReadFile(ctx, filepath.Join(folder, f.name), openfile.Rules{Limit: maxConfig})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return c, err
			}
		}
	} else if filepath.Base(from) == "vocab.json" {
		c.Vocabulary, err = openfile.ReadFile(ctx, from, openfile.Rules{Limit: maxConfig})
		return c, err
	}
	if !slices.ContainsFunc(methods, func(m string) bool { return m == "joint" || m == "text_decoder" || m == "decode" }) {
		return c, nil // no tokens
	}
	if c.Tokenizer, err = tokenizer.OpenChecked(ctx, from, nil); err != nil && t.tokenizer == "" {
		err = fmt.Errorf("the tokenizer of the model is not in the folder of the program; name it with --tokenizer: %w", err)
	}
	return c, err
}

// Limits on files.
const (
	maxConfig    = 16 << 20
	maxRecording = 1 << 30
)

// transcribe reads a recording and writes what is in it.
func (t *command) transcribe(ctx context.Context, m *speech.Model, file string) (*Recording, error) {
	samples, length, err := t.read(ctx, file, m.Info().Rate)
	if err != nil {
		return nil, err
	}
	live := t.format == "text" && !t.JSON
	if live && len(t.audio) > 1 {
		fmt.Fprintf(t.Out, "%s:\n", file) // results keeps the error
	}
	result, err := m.Stream(ctx, samples, t.wanted, func(s *speech.Segment) error {
		if live {
			fmt.Fprintln(t.Out, line(s, t.wanted.Times))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if result.Language != "" && t.wanted.Language == "" {
		t.Say("%s: the language is %s (%s)", file, speech.LanguageName(result.Language), result.Language)
	}
	switch {
	case t.JSON:
		return recording(file, length, result), nil
	case t.format == "srt":
		err = speech.WriteSRT(t.Out, result.Segments)
	case t.format == "vtt":
		err = speech.WriteVTT(t.Out, result.Segments)
	}
	return &Recording{}, err
}

// read returns the samples of a recording at the model's rate, and its length in seconds.
func (t *command) read(ctx context.Context, file string, rate int) (samples []float32, length float64, err error) {
	limit := int64(maxRecording)
	if n := t.MaxMemory(); n > 0 {
		limit = min(limit, n/3) // the file, its samples, and those of one channel
	}
	var b []byte
	if file == "-" {
		if b, err = io.ReadAll(io.LimitReader(t.In, limit+1)); err == nil && int64(len(b)) > limit {
			err = &openfile.SizeError{Path: "standard input", Size: int64(len(b)), Limit: limit}
		}
	} else {
		b, err = openfile.ReadFile(ctx, file, openfile.Rules{Limit: limit})
	}
	if err != nil {
		return nil, 0, err
	}
	s, err := sound.Parse(b, limit)
	if err != nil {
		return nil, 0, err
	}
	if n := sound.Resampled(len(s.Samples)/s.Channels, s.Rate, rate); n > limit/4 {
		return nil, 0, fmt.Errorf("%w: %d samples at %d Hz, the limit is %d", sound.ErrSize, n, rate, limit/4)
	}
	if samples = sound.Resample(s.Mono(), s.Rate, rate); len(samples) == 0 {
		return nil, 0, fmt.Errorf("%w: no samples", sound.ErrFormat)
	}
	length = float64(len(samples)) / float64(rate)
	t.Say("%s: %s, %d Hz, %s", file, duration.FormatMS(1000*length), s.Rate, cli.Count(s.Channels, "channel", "channels"))
	return samples, length, nil
}

// line is a segment as text.
func line(s *speech.Segment, times bool) string {
	text := strings.TrimSpace(s.Text)
	if s.Speaker >= 0 {
		text = fmt.Sprintf("speaker %d", s.Speaker)
	}
	if text == "" && s.Tokens == nil {
		text = "speech"
	}
	if times || s.Speaker >= 0 || s.Text == "" && s.Tokens == nil {
		return fmt.Sprintf("%.2f %.2f %s", s.Start.Seconds(), s.End.Seconds(), text)
	}
	return text
}

// recording is a result as JSON.
func recording(file string, length float64, t *speech.Transcript) *Recording {
	r := &Recording{File: file, Seconds: length, Language: t.Language, Text: t.Text, Segments: []Segment{}, Tokens: t.Tokens, Probabilities: t.Probabilities}
	for i := range t.Segments {
		s := &t.Segments[i]
		x := Segment{Start: s.Start.Seconds(), End: s.End.Seconds(), Text: s.Text, Tokens: s.Tokens, LogProb: s.LogProb}
		if s.Speaker >= 0 {
			x.Speaker = &s.Speaker
		}
		r.Segments = append(r.Segments, x)
	}
	for _, w := range t.Words {
		r.Words = append(r.Words, Word{w.Text, w.Start.Seconds(), w.End.Seconds()})
	}
	return r
}
