package audio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/answer"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/speech"
)

// usage is how much a request used.
type usage struct {
	Type    string `json:"type"`
	Seconds int    `json:"seconds"`
}

// short is the answer with the text alone.
type short struct {
	Text  string `json:"text"`
	Usage usage  `json:"usage"`
}

// verbose is the answer with times.
type verbose struct {
	Task     string    `json:"task"`
	Language string    `json:"language,omitempty"` // its name
	Duration float64   `json:"duration"`
	Text     string    `json:"text"`
	Segments []segment `json:"segments"`
	Words    []word    `json:"words,omitempty"`
	Usage    usage     `json:"usage"`
}

type segment struct {
	ID          int     `json:"id"`
	Seek        int     `json:"seek"` // where the window begins, in hundredths of a second
	Start       float64 `json:"start"`
	End         float64 `json:"end"`
	Text        string  `json:"text"`
	Tokens      []int   `json:"tokens"`
	Temperature float64 `json:"temperature"`
	LogProb     float64 `json:"avg_logprob"`
	Compression float64 `json:"compression_ratio"`
	NoSpeech    float64 `json:"no_speech_prob"`
}

type word struct {
	Word  string  `json:"word"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// spoken is the answer with speakers.
type spoken struct {
	Task     string          `json:"task"`
	Duration float64         `json:"duration"`
	Text     string          `json:"text"`
	Segments []spokenSegment `json:"segments"`
	Usage    usage           `json:"usage"`
}

type spokenSegment struct {
	ID      string  `json:"id"`
	Type    string  `json:"type"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Speaker string  `json:"speaker"` // A, B, …
	Text    string  `json:"text"`
}

// event is an event of a stream.
type event struct {
	Type  string `json:"type"`
	Delta string `json:"delta,omitempty"`
	Text  string `json:"text,omitempty"`
	Usage *usage `json:"usage,omitempty"`
}

// doneEvent is the last event, whose text may be empty.
type doneEvent struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Usage usage  `json:"usage"`
}

// Answer is the answer to a request.
type Answer struct {
	server  *serve.Server
	w       http.ResponseWriter
	request *Request
	begun   bool // the header of a stream was sent
	told    bool // some text, too
}

// NewAnswer returns the answer to a request.
func NewAnswer(s *serve.Server, w http.ResponseWriter, r *Request) *Answer {
	return &Answer{server: s, w: w, request: r}
}

// Run transcribes the recording and answers.
func (a *Answer) Run(ctx context.Context, m *Model, l *serve.Lease) error {
	r, i := a.request, m.Info()
	if err := r.checkModel(&i); err != nil {
		return err
	}
	from, err := r.open(i.Rate)
	if err != nil {
		return err
	}
	t, err := m.Read(ctx, from, r.Options, func(s *speech.Segment) error {
		l.Began()
		if !r.stream {
			return nil
		}
		return a.delta(s, i.Family)
	})
	if err != nil {
		return ofSpeech(ctx, err)
	}
	a.server.WriteBy(a.w) // the request may have waited longer than the limit
	if r.stream {
		return a.end(t)
	}
	return a.send(t)
}

// ofSpeech returns the error of a transcription: that of a recording or of an option is the request's.
func ofSpeech(ctx context.Context, err error) error {
	if errors.Is(err, speech.ErrOption) {
		return fault.Refused("file", "%v", err)
	}
	return fault.Of(ctx, ofSound(err), "")
}

// delta sends a segment. Texts of Whisper bring their spaces.
func (a *Answer) delta(s *speech.Segment, f speech.Family) error {
	a.begin()
	text := s.Text
	switch {
	case !a.told:
		text = strings.TrimLeft(text, " ")
	case f != speech.Whisper:
		text = " " + text
	}
	if text == "" {
		return nil
	}
	a.told = true
	return answer.Event(a.server, a.w, event{Type: "transcript.text.delta", Delta: text})
}

func (a *Answer) begin() {
	if !a.begun {
		a.begun = true
		answer.BeginEvents(a.w)
	}
}

// end sends the last event of a stream.
func (a *Answer) end(t *speech.Transcript) error {
	a.begin()
	return answer.Event(a.server, a.w, doneEvent{"transcript.text.done", strings.TrimSpace(t.Text), usageOf(t)})
}

// Fail answers with an error.
func (a *Answer) Fail(err error) {
	a.server.WriteBy(a.w)
	if !a.begun {
		answer.Fail(a.w, err)
		return
	}
	_, _, body := fault.Describe(a.w, err)
	_ = answer.Event(a.server, a.w, body) // the client may be gone
}

// send answers with an object, or a text.
func (a *Answer) send(t *speech.Transcript) error {
	text := strings.TrimSpace(t.Text)
	var b bytes.Buffer
	switch a.request.format {
	case formatVerbose:
		answer.Send(a.w, http.StatusOK, a.verbose(t))
		return nil
	case formatSpoken:
		answer.Send(a.w, http.StatusOK, a.spoken(t))
		return nil
	case formatText:
		b.WriteString(text + "\n")
	case formatSRT:
		_ = speech.WriteSRT(&b, t.Segments) // a buffer has no errors
	case formatVTT:
		_ = speech.WriteVTT(&b, t.Segments)
	default:
		answer.Send(a.w, http.StatusOK, short{text, usageOf(t)})
		return nil
	}
	h := a.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	_, _ = io.Copy(a.w, &b) // the client may be gone
	return nil
}

func usageOf(t *speech.Transcript) usage {
	return usage{"duration", int(math.Ceil(t.Duration.Seconds()))}
}

func (a *Answer) verbose(t *speech.Transcript) *verbose {
	v := &verbose{Task: a.request.task, Duration: t.Duration.Seconds(), Text: strings.TrimSpace(t.Text), Segments: []segment{}, Usage: usageOf(t)}
	if t.Language != "" {
		v.Language = speech.LanguageName(t.Language)
	}
	if a.request.Translate {
		v.Language = "english"
	}
	for i := range t.Segments {
		s := &t.Segments[i]
		v.Segments = append(v.Segments, segment{i, int(s.Window / (10 * time.Millisecond)), s.Start.Seconds(), s.End.Seconds(), s.Text, append([]int{}, s.Tokens...),
			s.Temperature, s.LogProb, s.Compression, s.NoSpeech})
	}
	if a.request.words {
		v.Words = []word{}
		for _, w := range t.Words {
			v.Words = append(v.Words, word{w.Text, w.Start.Seconds(), w.End.Seconds()})
		}
	}
	return v
}

func (a *Answer) spoken(t *speech.Transcript) *spoken {
	v := &spoken{Task: a.request.task, Duration: t.Duration.Seconds(), Segments: []spokenSegment{}, Usage: usageOf(t)}
	for i := range t.Segments {
		s := &t.Segments[i]
		name := strconv.Itoa(s.Speaker)
		if s.Speaker >= 0 && s.Speaker < 26 {
			name = string(rune('A' + s.Speaker))
		}
		v.Segments = append(v.Segments, spokenSegment{"seg_" + strconv.Itoa(i), "transcript.text.segment", s.Start.Seconds(), s.End.Seconds(), name, ""})
	}
	return v
}
