// Package transcribe is the command transcribe, which writes what is said in recordings.
package transcribe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/duration"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/speech"
)

// report is the JSON object of transcribe.
type report struct {
	Schema     string      `json:"schema"`
	Family     string      `json:"family"`
	Recordings []recording `json:"recordings"`
}

// recording is what was found in a file.
type recording struct {
	File          string    `json:"file"`
	Seconds       float64   `json:"seconds"`
	Language      string    `json:"language,omitempty"`
	Text          string    `json:"text"`
	Segments      []segment `json:"segments"`
	Words         []word    `json:"words,omitempty"`
	Tokens        []int     `json:"tokens,omitempty"`
	Probabilities []float32 `json:"probabilities,omitempty"` // of speech, for each frame
}

// segment is a part of a recording.
type segment struct {
	Start   float64 `json:"start"` // seconds
	End     float64 `json:"end"`
	Text    string  `json:"text,omitempty"`
	Speaker *int    `json:"speaker,omitempty"`
	Tokens  []int   `json:"tokens,omitempty"`
	LogProb float64 `json:"avg_logprob,omitempty"`
}

// word is a word with its times.
type word struct {
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
	voice, speakers   string // programs
	stream            bool
	whose             *speech.Model // of speakers
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
	t := &command{App: a, Options: session.Options{Say: a.Note, Local: true}}
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
	flags.VarP(session.Texts(&t.audio), "audio", "a", "recording, a WAVE or FLAC `FILE`, or - for standard input; may be repeated")
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
	flags.StringVar(&t.voice, "vad", "", "transcribe only what `FILE.pte`, a voice detector such as Silero, takes for speech")
	flags.StringVar(&t.speakers, "speakers", "", "name the speaker of each segment, found by `FILE.pte`, such as Sortformer")
	flags.BoolVar(&t.stream, "stream", false, "write each utterance as soon as it is spoken, and partial texts in the status line of a terminal; with --json all of them, a JSON object per line")
	flags.Float64Var(&t.wanted.Threshold, "threshold", 0, "least probability of speech or of a speaker (default: 0.5)")
	t.Options.AddFlags(flags)
	_ = flags.SetAnnotation("format", cli.Values, formats)
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
	for _, h := range []struct {
		flag, path string
		family     speech.Family
		to         **speech.Model
	}{{"vad", t.voice, speech.Voice, &t.wanted.Voice}, {"speakers", t.speakers, speech.Speakers, &t.whose}} {
		if h.path == "" {
			continue
		}
		m, close, err := t.helper(ctx, h.flag, h.path, h.family)
		if err != nil {
			return session.WithHint(err)
		}
		defer close()
		*h.to = m
	}
	t.wanted.Seed = t.Options.Seed
	if t.format == "srt" || t.format == "vtt" {
		t.wanted.Times = t.wanted.Times || m.Info().Family == speech.Whisper
	}
	result := report{Schema: "etrun.transcribe/1", Family: string(m.Info().Family), Recordings: []recording{}}
	for _, file := range t.audio {
		r, err := t.transcribe(ctx, m, file)
		if err != nil {
			return session.WithHint(fmt.Errorf("%s: %w", file, err))
		}
		if r != nil {
			result.Recordings = append(result.Recordings, *r)
		}
	}
	if t.JSON && !t.stream {
		return t.WriteJSON(result)
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
	case t.stream && (len(t.audio) > 1 || t.format == "srt" || t.format == "vtt" || t.speakers != ""):
		return session.Usage("--stream with several recordings, subtitles or --speakers, want one recording as text or --json")
	case t.speakers != "" && slices.Contains(t.audio, "-"):
		return session.Usage("--speakers with standard input, want a file: it is read twice")
	}
	t.JSON = t.JSON || t.format == "json"
	return nil
}

// config reads the files of the model: those in a folder, or a tokenizer.
func (t *command) config(ctx context.Context, path string, methods []string) (speech.Config, error) {
	from := t.tokenizer
	if from == "" {
		from = filepath.Dir(path)
	}
	c, err := speech.OpenConfig(ctx, from, methods, nil)
	if err != nil && t.tokenizer == "" {
		err = fmt.Errorf("%w; name it with --tokenizer if it is not in the folder of the program", err)
	}
	return c, err
}

// helper opens another program that works on the recordings, of a family.
func (t *command) helper(ctx context.Context, flag, path string, family speech.Family) (m *speech.Model, close func(), err error) {
	s, err := session.Open(ctx, path, &t.Options)
	if err != nil {
		return nil, nil, err
	}
	if m, err = speech.Load(ctx, s.Program, speech.Config{}); err == nil && m.Info().Family != family {
		err = session.Usage("--%s %s: a program of the family %s, want %s", flag, path, m.Info().Family, family)
	}
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return m, func() { m.Close(); s.Close() }, nil
}

// opened is a recording that is read.
type opened struct {
	*sound.Reader
	close func()
	say   func(seconds float64)
}

// Read implements speech.Source, and shows how much was read.
func (o *opened) Read(p []float32) (int, error) {
	n, err := o.Reader.Read(p)
	o.say(o.Seconds())
	return n, err
}

// open opens a recording.
func (t *command) open(ctx context.Context, file string, rate int) (*opened, error) {
	limit := int64(maxRecording)
	if n := t.MaxMemory(); n > 0 {
		limit = min(limit, n/3) // of a WAVE file whose samples come first
	}
	from, close := t.In, func() {}
	if file != "-" {
		f, err := openfile.Open(ctx, file, openfile.Rules{Kinds: openfile.Pipes})
		if err != nil {
			return nil, err
		}
		from, close = f, func() { f.Close() }
	}
	r, err := sound.NewReader(from, rate, limit)
	if err != nil {
		close()
		return nil, err
	}
	i := r.Info()
	length := ""
	if i.Frames > 0 && file != "-" {
		length = duration.FormatMS(1000*float64(i.Frames)/float64(i.Rate)) + ", "
	}
	t.Note("%s: %s%d Hz, %s", file, length, i.Rate, cli.Count(i.Channels, "channel", "channels"))
	return &opened{r, close, func(seconds float64) {
		if i.Frames > 0 && file != "-" {
			t.Progress.Say("%s: %.0f %%", cli.Printable(file), 100*seconds*float64(i.Rate)/float64(i.Frames))
		} else {
			t.Progress.Say("%s: %v", cli.Printable(file), time.Duration(seconds)*time.Second)
		}
	}}, nil
}

// maxRecording bounds a recording that is in memory.
const maxRecording = 1 << 30

// transcribe reads a recording and writes what is in it.
func (t *command) transcribe(ctx context.Context, m *speech.Model, file string) (*recording, error) {
	speakers, err := t.speaking(ctx, file)
	if err != nil {
		return nil, err
	}
	from, err := t.open(ctx, file, m.Info().Rate)
	if err != nil {
		return nil, err
	}
	defer from.close()
	live := t.format == "text" && !t.JSON
	if live && len(t.audio) > 1 {
		fmt.Fprintf(t.Out, "%s:\n", file) // results keeps the error
	}
	if t.stream {
		return nil, t.follow(ctx, m, from)
	}
	result, err := m.Read(ctx, from, t.wanted, func(s *speech.Segment) error {
		if s.Speaker < 0 && speakers != nil {
			s.Speaker = speech.SpeakerOf(s, speakers)
		}
		if live {
			fmt.Fprintln(t.Out, line(s, t.wanted.Times))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if result.Language != "" && t.wanted.Language == "" {
		t.Note("%s: the language is %s (%s)", file, speech.LanguageName(result.Language), result.Language)
	}
	for i := range result.Segments {
		if s := &result.Segments[i]; speakers != nil {
			s.Speaker = speech.SpeakerOf(s, speakers)
		}
	}
	switch {
	case t.JSON:
		return recorded(file, result.Duration.Seconds(), result), nil
	case t.format == "srt":
		err = speech.WriteSRT(t.Out, result.Segments)
	case t.format == "vtt":
		err = speech.WriteVTT(t.Out, result.Segments)
	}
	return &recording{}, err
}

// speaking returns who speaks when, nil without --speakers.
func (t *command) speaking(ctx context.Context, file string) ([]speech.Segment, error) {
	if t.whose == nil {
		return nil, nil
	}
	from, err := t.open(ctx, file, t.whose.Info().Rate)
	if err != nil {
		return nil, err
	}
	defer from.close()
	r, err := t.whose.Read(ctx, from, speech.Options{}, func(*speech.Segment) error { return nil })
	if err != nil {
		return nil, err
	}
	return append([]speech.Segment{}, r.Segments...), nil
}

// spoken is a line of --stream --json.
type spoken struct {
	Start float64 `json:"start"` // seconds
	End   float64 `json:"end"`
	Text  string  `json:"text"`
	Final bool    `json:"final"`
}

// follow writes what is said while it is recorded.
func (t *command) follow(ctx context.Context, m *speech.Model, from *opened) error {
	t.Written = t.JSON
	lines := json.NewEncoder(t.Out)
	from.say = func(float64) {}
	for p, err := range m.Stream(ctx, from, t.wanted) {
		text := strings.TrimSpace(p.Text)
		switch {
		case err != nil:
			return err
		case t.JSON:
			err = lines.Encode(spoken{p.Start.Seconds(), p.End.Seconds(), text, p.Final})
		case p.Final:
			_, err = fmt.Fprintln(t.Out, text)
		default:
			t.Progress.Say("%s", cli.Printable(text))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// line is a segment as text.
func line(s *speech.Segment, times bool) string {
	text := strings.TrimSpace(s.Text)
	if s.Speaker >= 0 {
		text = strings.TrimSpace(fmt.Sprintf("speaker %d %s", s.Speaker, text))
	}
	if text == "" && s.Tokens == nil {
		text = "speech"
	}
	if times || s.Speaker >= 0 || s.Text == "" && s.Tokens == nil {
		return fmt.Sprintf("%.2f %.2f %s", s.Start.Seconds(), s.End.Seconds(), text)
	}
	return text
}

// recorded returns a result as JSON.
func recorded(file string, length float64, t *speech.Transcript) *recording {
	r := &recording{File: file, Seconds: length, Language: t.Language, Text: t.Text, Segments: []segment{}, Tokens: t.Tokens, Probabilities: t.Probabilities}
	for i := range t.Segments {
		s := &t.Segments[i]
		x := segment{Start: s.Start.Seconds(), End: s.End.Seconds(), Text: s.Text, Tokens: s.Tokens, LogProb: s.LogProb}
		if s.Speaker >= 0 {
			x.Speaker = &s.Speaker
		}
		r.Segments = append(r.Segments, x)
	}
	for _, w := range t.Words {
		r.Words = append(r.Words, word{w.Text, w.Start.Seconds(), w.End.Seconds()})
	}
	return r
}
