package speech

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"
)

// Part is the text of an utterance: what is said between two pauses, at most as long as the model takes at once. Partial texts of an
// utterance replace each other while somebody speaks; the final one follows the pause.
type Part struct {
	Final      bool
	Start, End time.Duration
	Text       string
	Segments   []Segment // of a final text
	Words      []Word
	Tokens     []int
	Language   string
}

// Times of utterances.
const (
	partialTime = 400 * time.Millisecond // of new samples before the next partial text, at least
	pauseTime   = 600 * time.Millisecond // that ends an utterance
	leadTime    = 200 * time.Millisecond // before an utterance that belongs to it
	// A word is in a partial text after the computation of that text and of the one before. Where a text takes longer than slowTime, and a
	// shorter one takes less, a short pause ends the utterance, and without one, with lateTime, the least loud part of its end.
	slowTime, shortTime, lateTime = 600 * time.Millisecond, 150 * time.Millisecond, 750 * time.Millisecond
)

// Tokens of partial texts at most: a text that has more for its time repeats itself.
const partialTokens, tokensPerSecond = 8, 10

// Stream transcribes what somebody says while it is recorded: it returns partial texts, and the final one after each pause. Pauses are
// found by Options.Voice, or by loudness; short ones suffice when texts take long. The computation of a partial text begins when there are as
// many new samples as the texts since the last one began took time, so that they do not fall behind.
func (m *Model) Stream(ctx context.Context, from Source, o Options) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		err := m.use(ctx, &o, func(d driver) error {
			return m.utterances(ctx, d, &feed{from: from}, &o, true, func(p Part) error {
				if !yield(p, nil) {
					return errEnough
				}
				return nil
			})
		})
		if err != nil && err != errEnough {
			yield(Part{}, err)
		}
	}
}

var errEnough = fmt.Errorf("the reader has enough")

// utterances finds and transcribes utterances. With partial it also yields partial texts.
func (m *Model) utterances(ctx context.Context, d driver, f *feed, o *Options, partial bool, yield func(Part) error) error {
	if m.family == Voice || m.family == Speakers {
		return fmt.Errorf("%w: a stream of texts, of a program of the family %s", ErrFamily, m.family)
	}
	return withPauses(ctx, o, m.info.Rate, func(p pauses, window int) error {
		u := &utterance{model: m, driver: d, options: *o, partial: partial, yield: yield, now: time.Now}
		for {
			samples, err := f.next(window)
			if err != nil {
				return err
			}
			if len(samples) == 0 {
				return u.end(ctx, len(u.samples))
			}
			speaks, err := p.speaks(ctx, samples)
			if err == nil {
				err = u.add(ctx, f.at, samples, speaks)
			}
			if err != nil {
				return err
			}
			f.pass(len(samples))
		}
	})
}

func (m *Model) samples(t time.Duration) int { return int(t.Seconds() * float64(m.info.Rate)) }

// pauses finds out whether somebody speaks in a window.
type pauses interface {
	speaks(ctx context.Context, window []float32) (bool, error)
}

// withPauses calls f with the detector of the options, or one by loudness, and the length of its windows.
func withPauses(ctx context.Context, o *Options, rate int, f func(p pauses, window int) error) error {
	if o.Voice == nil {
		return f(&loudness{}, rate/32)
	}
	if o.Voice.family != Voice || o.Voice.info.Rate != rate {
		return fmt.Errorf("%w: a program of the family %s for %d Hz as voice detector, want %s for %d Hz", ErrOption, o.Voice.family, o.Voice.info.Rate, Voice, rate)
	}
	voice := Options{Threshold: o.Threshold}
	return o.Voice.use(ctx, &voice, func(d driver) error {
		v := d.(*voiceDriver)
		x, err := v.start()
		if err != nil {
			return err
		}
		return f(&detector{v, x, voice.threshold()}, v.window)
	})
}

// detector finds pauses with a voice detector.
type detector struct {
	*voiceDriver
	x         []float32
	threshold float64
}

func (d *detector) speaks(ctx context.Context, window []float32) (bool, error) {
	p, err := d.next(ctx, d.x, window)
	return float64(p) > d.threshold, err
}

// loudness finds pauses by loudness: a window is one if it is far less loud than the loudest of the last seconds.
type loudness struct{ top float64 }

// Of windows of a 32nd of a second: a tenth of the loudest one is a pause, which counts half after ten seconds; silence always is.
const (
	quietShare  = 0.1
	quietLeast  = 1e-3
	quietForget = 0.9978
)

func (l *loudness) speaks(_ context.Context, window []float32) (bool, error) {
	sum := 0.0
	for _, v := range window {
		sum += float64(v) * float64(v)
	}
	loud := math.Sqrt(sum / float64(len(window)))
	l.top = max(l.top*quietForget, loud)
	return loud > max(quietLeast, quietShare*l.top), nil
}

// utterance is the present utterance, or the samples before the next one.
type utterance struct {
	model   *Model
	driver  driver
	options Options
	partial bool
	yield   func(Part) error

	samples []float32
	first   int // index of the first sample
	open    bool
	quiet   int // samples since somebody spoke
	fresh   int // samples since the last partial text began

	now         func() time.Time
	spent       time.Duration // on texts since then: as much sound waits to be read
	last, least time.Duration // on a partial text: the last one of this utterance, the shortest one of all
}

// slow reports whether the last partial text took longer than d, and shorter ones take less.
func (u *utterance) slow(d time.Duration) bool { return u.last > max(d, u.least*5/4) }

// add adds a window that begins at a sample.
func (u *utterance) add(ctx context.Context, at int, window []float32, speaks bool) error {
	if len(u.samples) == 0 {
		u.first = at
	}
	u.samples = append(u.samples, window...)
	u.fresh += len(window)
	if u.quiet += len(window); speaks {
		u.open, u.quiet = true, 0
	}
	pause, limit := pauseTime, u.driver.limit()
	if u.slow(slowTime) {
		pause = shortTime
	}
	switch {
	case !u.open:
		if lead := u.model.samples(leadTime); len(u.samples) > lead {
			u.drop(len(u.samples) - lead)
		}
	case u.quiet >= u.model.samples(pause):
		return u.end(ctx, len(u.samples))
	case len(u.samples) >= limit || u.slow(lateTime):
		return u.end(ctx, quiet(u.samples[:min(limit, len(u.samples))]))
	case u.partial && u.fresh >= u.model.samples(max(u.spent, partialTime)):
		u.fresh, u.spent = 0, 0
		err := u.transcribe(ctx, u.samples, false)
		if u.last = u.spent; u.least == 0 || u.last < u.least {
			u.least = u.last
		}
		return err
	}
	return nil
}

// drop passes n samples.
func (u *utterance) drop(n int) {
	u.samples, u.first = slices.Delete(u.samples, 0, n), u.first+n
}

// end transcribes the first n samples for the last time. The rest belongs to the next utterance.
func (u *utterance) end(ctx context.Context, n int) error {
	if !u.open {
		return nil
	}
	err := u.transcribe(ctx, u.samples[:n], true)
	u.drop(n)
	u.open, u.quiet, u.last = len(u.samples) > 0, 0, 0
	return err
}

func (u *utterance) transcribe(ctx context.Context, samples []float32, final bool) error {
	rate, options := float64(u.model.info.Rate), u.options
	if !final && u.model.family == Whisper {
		most := partialTokens + tokensPerSecond*len(samples)/u.model.info.Rate
		options.MaxTokens = min(most, cmp.Or(options.MaxTokens, most))
	}
	begun := u.now()
	t, err := u.driver.transcribe(ctx, &feed{list: samples}, &options, func(*Segment) error { return nil })
	if u.spent += u.now().Sub(begun); err != nil {
		return err
	}
	begin := seconds(float64(u.first) / rate)
	p := Part{Final: final, Start: begin, End: begin + seconds(float64(len(samples))/rate), Text: t.Text, Language: t.Language}
	if final {
		if u.options.Language == "" {
			u.options.Language = t.Language
		}
		p.Tokens, p.Words, p.Segments = t.Tokens, t.Words, t.Segments
		for i := range p.Words {
			p.Words[i].Start, p.Words[i].End = p.Words[i].Start+begin, p.Words[i].End+begin
		}
		for i := range p.Segments {
			s := &p.Segments[i]
			s.Start, s.End, s.Window = s.Start+begin, s.End+begin, s.Window+begin
		}
	}
	return u.yield(p)
}
