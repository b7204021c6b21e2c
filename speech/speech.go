// Package speech, which has no compatibility promise yet, recognises speech with the programs that exporters of recognisers write: Whisper,
// transducers such as Parakeet, CTC models such as wav2vec 2.0; and it finds speech (Silero) and speakers (Sortformer) in recordings.
//
// A [Model] is a program, its family, and one instance of its methods. The family follows from the names of the methods. Recordings are
// samples of one channel at [Info.Rate], from -1 to 1; package media/sound reads files. Nothing of a recording changes the results of the
// next one.
package speech

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Family is a kind of programs.
type Family string

// The families.
const (
	Whisper    Family = "whisper"    // an encoder of 30 s and a decoder that writes tokens
	Transducer Family = "transducer" // an encoder, a decoder of tokens and a joint, such as Parakeet TDT
	CTC        Family = "ctc"        // a class for each frame, such as wav2vec 2.0
	Voice      Family = "voice"      // the probability of speech for each frame, such as Silero
	Speakers   Family = "speakers"   // the probability of each speaker for each frame, such as Sortformer
)

// Classes of errors; match with errors.Is. [etrun.ErrFormat] is that of programs that are malformed.
var (
	// ErrFamily is that of programs of no family, and of calls that a family does not have.
	ErrFamily = fmt.Errorf("%w: not a program of speech that this version can drive", etrun.ErrUnsupported)
	// ErrOption is that of options that the model does not have.
	ErrOption = errors.New("option that the model does not have")
)

// ConventionError reports a method that is not as its family has it.
type ConventionError struct {
	Method    string
	Got, Want string
}

// Error implements error.
func (e *ConventionError) Error() string {
	return fmt.Sprintf("method %q: got %s, want %s", e.Method, e.Got, e.Want)
}

// Unwrap returns the class.
func (e *ConventionError) Unwrap() error { return ErrFamily }

// families is the table of families, in the order in which programs are compared with them.
var families = []struct {
	name    Family
	methods []string
	make    func() loadable
}{
	{Speakers, []string{"preprocessor", "pre_encode", "encode", "spkcache_len"}, func() loadable { return &speakers{} }},
	{Transducer, []string{"encoder", "decoder_step", "joint"}, func() loadable { return &transducer{} }},
	{Whisper, []string{"encoder", "text_decoder"}, func() loadable { return &whisper{} }},
	{Whisper, []string{"encode", "decode"}, func() loadable { return &whisper{} }},
	{Voice, []string{"forward", "window_size", "context_size"}, func() loadable { return &voiceDriver{} }},
	{CTC, []string{"forward"}, func() loadable { return &ctc{} }},
}

// FamilyOf returns the family of a program by the names of its methods; a program with forward alone is CTC's only if it has a
// vocabulary, which FamilyOf does not know.
func FamilyOf(p *etrun.Program) (f Family, ok bool) {
	for i := range families {
		if has(p, families[i].methods...) {
			return families[i].name, families[i].name != CTC
		}
	}
	return "", false
}

// setup is what a driver is made of.
type setup struct {
	*Config
	program *etrun.Program
}

// loadable is a driver whose methods are not loaded yet.
type loadable interface {
	driver
	load(ctx context.Context, s *setup) error
}

// driver runs the programs of a family.
type driver interface {
	info(i *Info)
	limit() int // samples that the program takes at once
	started() *timer
	transcribe(ctx context.Context, f *feed, o *Options, yield func(*Segment) error) (*Transcript, error)
	Close() error
}

// timer is the time of the first token of a recording.
type timer struct{ first time.Time }

func (c *timer) started() *timer { return c }

// mark notes a token.
func (c *timer) mark() {
	if c.first.IsZero() {
		c.first = time.Now()
	}
}

// Config is what a model is made of besides its program.
type Config struct {
	Tokenizer tokenizer.Tokenizer // of Whisper and transducers
	// Generation is the contents of generation_config.json, which lists tokens that Whisper never writes; nil without it.
	Generation []byte
	// Vocabulary is the contents of vocab.json, and Features those of preprocessor_config.json, of CTC models.
	Vocabulary, Features []byte
	// Instances is the number of recordings that are computed at the same time, 1 if it is 0; others wait. Each has memory of its own,
	// from the first recording that needs it.
	Instances int
}

// Info describes a model.
type Info struct {
	Family    Family
	Rate      int      // samples per second
	Languages []string // codes of ISO 639, of models of several languages
	Translate bool     // whether the model translates to English
	Times     bool     // whether the model has the times of segments
	Words     bool     // whether it has those of words
	Speakers  int      // the number of speakers that it tells apart
}

// Options are those of a transcription. The zero value transcribes in the language that the model finds, without times.
type Options struct {
	Language    string  // code of ISO 639, such as "en"; empty: found by the model
	Translate   bool    // translate to English
	Prompt      string  // text that precedes the recording: names, spelling, style
	Times       bool    // Whisper: write the times of segments
	Fallback    bool    // Whisper: repeat windows with a temperature above 0 if the text repeats itself or is improbable
	Temperature float64 // Whisper: draw tokens; 0 chooses the most likely
	Seed        uint64  // of drawn tokens
	MaxTokens   int     // Whisper: tokens of a window at most; 0: what the model has room for
	AllTokens   bool    // Whisper: also write the tokens that generation_config.json excludes
	Threshold   float64 // Voice, Speakers, and the detector Voice: least probability; 0: 0.5
	Voice       *Model  // transcribe only what this detector of the family Voice takes for speech
}

// Segment is a part of a recording, with its text or its speaker.
type Segment struct {
	Start, End time.Duration
	Text       string
	Tokens     []int
	Speaker    int // from 0; -1 if not known

	// Whisper: of the window that the segment is in.
	Window      time.Duration // where it begins
	Temperature float64
	LogProb     float64 // mean of its tokens
	Compression float64 // of its text
	NoSpeech    float64 // probability
}

// Word is a word with its times.
type Word struct {
	Text       string
	Start, End time.Duration
}

// Transcript is the result for a recording.
type Transcript struct {
	Text          string
	Language      string // code, empty if the model has one language
	Duration      time.Duration
	FirstToken    time.Duration // from the begin of the computation to the first token, of recognisers; 0 if there is none
	Segments      []Segment
	Words         []Word
	Tokens        []int
	Probabilities []float32 // Voice: of speech, for each frame
}

// Model is a program of one of the families. Its methods may be called concurrently: see Config.Instances.
type Model struct {
	family Family
	info   Info
	load   func(ctx context.Context) (driver, error)
	slots  chan struct{} // one for each recording in progress

	mu     sync.Mutex
	idle   []driver
	closed bool
}

// Rates of recordings beyond those of any model.
const (
	leastRate = 1000
	mostRate  = 192_000
)

// Load loads the methods of a program. The program must outlive the model.
func Load(ctx context.Context, p *etrun.Program, c Config) (*Model, error) {
	for i := range families {
		f := &families[i]
		if !has(p, f.methods...) {
			continue
		}
		m := &Model{family: f.name, info: Info{Family: f.name, Rate: 16000}, slots: make(chan struct{}, max(1, c.Instances))}
		m.load = func(ctx context.Context) (driver, error) {
			d := f.make()
			if err := d.load(ctx, &setup{&c, p}); err != nil {
				_ = d.Close() // the methods that are loaded
				return nil, err
			}
			return d, nil
		}
		d, err := m.load(ctx)
		if err != nil {
			return nil, err
		}
		if d.info(&m.info); m.info.Rate < leastRate || m.info.Rate > mostRate {
			return nil, errors.Join(fmt.Errorf("%w: for %d samples per second, want %d to %d", ErrFamily, m.info.Rate, leastRate, mostRate), d.Close())
		}
		m.idle = []driver{d}
		return m, nil
	}
	return nil, fmt.Errorf("%w: its methods are %q", ErrFamily, p.MethodNames())
}

// Info describes the model.
func (m *Model) Info() Info { return m.info }

// Close releases the methods, those of a recording in progress at its end.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, d := range m.idle {
		errs = append(errs, d.Close())
	}
	m.idle, m.closed = nil, true
	return errors.Join(errs...)
}

// Transcribe returns what is said in a recording, the parts of it in which somebody speaks (Voice), or who speaks when (Speakers).
func (m *Model) Transcribe(ctx context.Context, samples []float32, o Options) (*Transcript, error) {
	return m.transcribe(ctx, &feed{list: samples}, &o, func(*Segment) error { return nil })
}

// Read is Transcribe of a recording that is read as it is computed, and calls yield with each segment as soon as it is complete. An error
// of yield ends it. Besides the result, the memory does not depend on the length of the recording.
func (m *Model) Read(ctx context.Context, from Source, o Options, yield func(*Segment) error) (*Transcript, error) {
	return m.transcribe(ctx, &feed{from: from}, &o, yield)
}

func (m *Model) transcribe(ctx context.Context, f *feed, o *Options, yield func(*Segment) error) (t *Transcript, err error) {
	err = m.use(ctx, o, func(d driver) error {
		begun := time.Now()
		d.started().first = time.Time{}
		some, err := f.next(1)
		if err == nil && len(some) == 0 {
			err = fmt.Errorf("%w: a recording without samples", ErrOption)
		}
		switch {
		case err != nil:
			return err
		case o.Voice == nil:
			t, err = d.transcribe(ctx, f, o, yield)
		default:
			t = &Transcript{}
			err = m.utterances(ctx, d, f, o, false, func(p Part) error { return t.add(&p, yield) })
		}
		if first := d.started().first; err == nil && !first.IsZero() {
			t.FirstToken = first.Sub(begun)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	t.Duration = seconds(float64(f.at+len(f.list)) / float64(m.info.Rate))
	return t, nil
}

// add adds an utterance.
func (t *Transcript) add(p *Part, yield func(*Segment) error) error {
	if t.Text != "" && !strings.HasPrefix(p.Text, " ") {
		t.Text += " "
	}
	t.Text += p.Text
	t.Language = cmp.Or(t.Language, p.Language)
	t.Segments, t.Words, t.Tokens = append(t.Segments, p.Segments...), append(t.Words, p.Words...), append(t.Tokens, p.Tokens...)
	for i := range p.Segments {
		if err := yield(&p.Segments[i]); err != nil {
			return err
		}
	}
	return nil
}

// use calls f with a driver that nothing else uses.
func (m *Model) use(ctx context.Context, o *Options, f func(d driver) error) error {
	if err := m.check(o); err != nil {
		return err
	}
	select {
	case m.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-m.slots }()
	d, err := m.acquire(ctx)
	if err != nil {
		return err
	}
	failed := true // if f panics
	defer func() { m.put(d, failed) }()
	err = f(d)
	failed = err != nil && ctx.Err() == nil && !errors.Is(err, ErrOption)
	return err
}

// acquire returns an idle driver, or another one.
func (m *Model) acquire(ctx context.Context) (driver, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, fmt.Errorf("%w: the model", etrun.ErrClosed)
	}
	if n := len(m.idle); n > 0 {
		d := m.idle[n-1]
		m.idle = m.idle[:n-1]
		return d, nil
	}
	return m.load(ctx)
}

// put returns a driver. One that failed is not used again.
func (m *Model) put(d driver, failed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if failed || m.closed {
		_ = d.Close() // frees memory only
		return
	}
	m.idle = append(m.idle, d)
}

// check refuses options that the family does not have.
func (m *Model) check(o *Options) error {
	whisper := m.family == Whisper
	for _, c := range []struct {
		set  bool
		name string
	}{
		{o.Language != "" && len(m.info.Languages) == 0, "a language"}, {o.Translate && !m.info.Translate, "translation"}, {o.Prompt != "" && !whisper, "a prompt"},
		{(o.Fallback || o.Temperature != 0) && !whisper, "a temperature"}, {o.MaxTokens != 0 && !whisper, "a number of tokens"},
		{o.Threshold != 0 && m.family != Voice && m.family != Speakers && o.Voice == nil, "a threshold"},
		{o.Voice != nil && (m.family == Voice || m.family == Speakers), "a voice detector"},
	} {
		if c.set {
			return fmt.Errorf("%w: %s, for a program of the family %s", ErrOption, c.name, m.family)
		}
	}
	switch {
	case o.Temperature < 0 || o.Temperature > 2, o.Threshold < 0 || o.Threshold > 1, o.MaxTokens < 0:
		return fmt.Errorf("%w: temperature %g, threshold %g, %d tokens; want 0 to 2, 0 to 1, 0 or more", ErrOption, o.Temperature, o.Threshold, o.MaxTokens)
	}
	return nil
}

// seconds converts a number of seconds, to the nearest microsecond.
func seconds(s float64) time.Duration { return time.Duration(s*1e6+0.5) * time.Microsecond }

// closeAll closes methods; nil ones are not loaded.
func closeAll(list ...*method) error {
	var errs []error
	for _, m := range list {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}
