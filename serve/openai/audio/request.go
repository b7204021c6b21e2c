package audio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/speech"
)

// Request is a request for the text of a recording.
type Request struct {
	Model  string
	file   []byte // nil without one
	format string
	stream bool
	words  bool // their times are wanted
	marks  bool // a kind of times is wanted
	task   string
	speech.Options
}

// Formats of answers.
const (
	formatJSON    = "json"
	formatText    = "text"
	formatSRT     = "srt"
	formatVTT     = "vtt"
	formatVerbose = "verbose_json"
	formatSpoken  = "diarized_json"
)

// formats are all of them.
var formats = []string{formatJSON, formatText, formatSRT, formatVTT, formatVerbose, formatSpoken}

// Tasks, as answers name them.
const (
	transcribes = "transcribe"
	translates  = "translate"
)

// Limits on forms.
const (
	maxParts = 64
	maxField = 64 << 10
	maxHours = 4
)

// fields are the fields of a form but for the recording. Those that only name what the server does anyway are accepted.
var fields = map[string]func(r *Request, value string) error{
	"model":    func(r *Request, value string) error { r.Model = value; return nil },
	"language": func(r *Request, value string) error { r.Language = strings.ToLower(value); return nil },
	"prompt":   func(r *Request, value string) error { r.Prompt = value; return nil },
	"response_format": func(r *Request, value string) error {
		if r.format = value; !slices.Contains(formats, value) {
			return fault.Refused("response_format", "%s, want one of %s", fault.Quote(value), strings.Join(formats, ", "))
		}
		return nil
	},
	"temperature": func(r *Request, value string) error {
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(n) || n < 0 || n > 1 {
			return fault.Refused("temperature", "%s, want a number from 0 to 1", fault.Quote(value))
		}
		r.Temperature, r.Fallback = n, true
		return nil
	},
	"stream": func(r *Request, value string) (err error) {
		if r.stream, err = strconv.ParseBool(value); err != nil {
			return fault.Refused("stream", "%s, want true or false", fault.Quote(value))
		}
		return nil
	},
	"timestamp_granularities": func(r *Request, value string) error {
		if r.marks = true; value != "word" && value != "segment" {
			return fault.Refused("timestamp_granularities", "%s, want word or segment", fault.Quote(value))
		}
		r.words = r.words || value == "word"
		return nil
	},
	"chunking_strategy": func(_ *Request, value string) error {
		if value != "auto" {
			return fault.Unsupported("chunking_strategy", "want auto: recordings are cut at the windows of the model, or where they are quiet")
		}
		return nil
	},
	"include":                  refused("include", "the answer has no log-probabilities of tokens; want response_format verbose_json for those of segments"),
	"known_speaker_names":      refused("known_speaker_names", "speakers have no names"),
	"known_speaker_references": refused("known_speaker_references", "speakers have no names"),
	"user":                     func(*Request, string) error { return nil },
}

func refused(name, why string) func(*Request, string) error {
	return func(*Request, string) error { return fault.Unsupported(name, "%s", why) }
}

// Parse reads the form of a request. translate means that it is one for a translation.
func Parse(contentType string, body []byte, translate bool) (*Request, error) {
	r := &Request{format: formatJSON, task: transcribes}
	if translate {
		r.task, r.Translate = translates, true
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return nil, &fault.Error{Class: etrun.ErrInput, Text: fmt.Sprintf("a body of type %s, want multipart/form-data with the recording in the field file", fault.Quote(contentType))}
	}
	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for range maxParts {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			return r, r.check()
		}
		if err == nil {
			err = r.read(part)
		}
		if _, ok := errors.AsType[*fault.Error](err); err != nil && !ok {
			err = &fault.Error{Class: etrun.ErrInput, Text: fmt.Sprintf("malformed form: %.200v", err)}
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, &fault.Error{Class: etrun.ErrInput, Text: fmt.Sprintf("a form of more than %d fields", maxParts)}
}

// read reads a field.
func (r *Request) read(part *multipart.Part) error {
	name := strings.TrimSuffix(part.FormName(), "[]")
	if name == "file" {
		if r.file != nil {
			return fault.Refused("file", "given twice, want one recording")
		}
		var err error
		r.file, err = io.ReadAll(part)
		return err
	}
	set := fields[name]
	if set == nil {
		return fault.Unknown(name, "there is no such field")
	}
	value, err := io.ReadAll(io.LimitReader(part, maxField+1))
	if err != nil {
		return err
	}
	if len(value) > maxField {
		return fault.Refused(name, "more than %d bytes", maxField)
	}
	return set(r, string(value))
}

// check checks what does not depend on the model.
func (r *Request) check() error {
	switch {
	case r.file == nil:
		return fault.Missing("file")
	case r.marks && r.format != formatVerbose:
		return fault.Refused("timestamp_granularities", "with response_format %s, want %s", r.format, formatVerbose)
	case r.stream && r.format != formatJSON && r.format != formatText:
		return fault.Refused("stream", "with response_format %s, want %s or %s", r.format, formatJSON, formatText)
	case r.Translate && r.Language != "":
		return fault.Refused("language", "of a translation it is English")
	}
	return nil
}

// checkModel checks what the model does not have.
func (r *Request) checkModel(i *speech.Info) error {
	whisper := i.Family == speech.Whisper
	speakers := i.Family == speech.Speakers
	switch {
	case r.Translate && !i.Translate:
		return fault.Refused("model", "it does not translate")
	case speakers != (r.format == formatSpoken):
		return fault.Refused("response_format", "%s, of a model that %s", r.format, map[bool]string{true: "finds speakers, and writes no text: want " + formatSpoken, false: "finds no speakers"}[speakers])
	case i.Family == speech.Voice && r.format != formatVerbose:
		return fault.Refused("response_format", "%s, of a model that finds speech, and writes no text: want %s", r.format, formatVerbose)
	case r.words && !i.Words:
		return fault.Refused("timestamp_granularities", "word, which models of the family %s do not have: want segment", i.Family)
	case (r.format == formatSRT || r.format == formatVTT) && !i.Times:
		return fault.Refused("response_format", "%s, of a model without times", r.format)
	case r.Prompt != "" && !whisper:
		return fault.Refused("prompt", "models of the family %s have none", i.Family)
	case r.Temperature != 0 && !whisper:
		return fault.Refused("temperature", "models of the family %s choose the most likely text: want 0", i.Family)
	case r.Language == "en" && len(i.Languages) == 0 && whisper: // a model for English
		r.Language = ""
	case r.Language != "" && !slices.Contains(i.Languages, r.Language):
		return fault.Refused("language", "%s, of a model of %s", fault.Quote(r.Language), languagesOf(i))
	}
	r.Times = whisper && i.Times && r.format != formatJSON && r.format != formatText
	r.Fallback = r.Fallback && whisper && r.Temperature == 0
	return nil
}

// languagesOf names the languages of a model.
func languagesOf(i *speech.Info) string {
	if len(i.Languages) == 0 {
		return "one language, which it does not name"
	}
	return "the languages " + strings.Join(i.Languages, ", ")
}

// recording is a recording that ends with an error if it is too long.
type recording struct {
	*sound.Reader
}

// Read implements speech.Source.
func (r recording) Read(p []float32) (int, error) {
	if r.Seconds() > maxHours*3600 {
		return 0, tooLong()
	}
	return r.Reader.Read(p)
}

func tooLong() error { return fault.Refused("file", "a recording of more than %d hours", maxHours) }

// open opens the recording. Nothing is decoded if the file says that it is too long.
func (r *Request) open(rate int) (recording, error) {
	from, err := sound.NewReader(bytes.NewReader(r.file), rate, int64(len(r.file)))
	if err != nil {
		return recording{}, ofSound(err)
	}
	if i := from.Info(); i.Frames/int64(i.Rate) > maxHours*3600 && int64(len(r.file)) > i.Frames {
		return recording{}, tooLong()
	}
	return recording{from}, nil
}

// ofSound returns the error of a recording as that of its field.
func ofSound(err error) error {
	if errors.Is(err, sound.ErrFormat) || errors.Is(err, sound.ErrUnsupported) || errors.Is(err, sound.ErrSize) {
		return fault.Refused("file", "%v", err)
	}
	return err
}
