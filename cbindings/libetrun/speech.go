//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"bytes"
	"context"
	"encoding/json"
	"math"

	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/speech"
)

//export etrun_speech_open
func etrun_speech_open(handle C.etrun_program, o *C.etrun_speech_options, opened *C.etrun_speech, message **C.char) C.int {
	return withProgram(handle, message, func(p *program) error {
		if opened == nil {
			return argument("speech is NULL")
		}
		*opened = 0
		if o == nil {
			o = new(C.etrun_speech_options)
		}
		if err := checkReserved(o.reserved[:]); err != nil {
			return err
		}
		if o.instances < 0 || o.instances > maxRecordings {
			return argument("options: %d instances, want 0 to %d", int(o.instances), maxRecordings)
		}
		var c speech.Config
		if files := textOf(o.files); files != "" {
			var err error
			if c, err = speech.OpenConfig(context.Background(), files, p.MethodNames(), nil); err != nil {
				return err
			}
		}
		c.Instances = int(o.instances)
		m, err := speech.Load(context.Background(), p.Program, c)
		if err != nil {
			return err
		}
		*opened = C.etrun_speech(handles.add(speeches, m))
		return nil
	})
}

// maxRecordings bounds the recordings that a model computes at the same time.
const maxRecordings = 1024

// transcript is a result as JSON.
type transcript struct {
	Text          string    `json:"text"`
	Language      string    `json:"language,omitempty"`
	Duration      float64   `json:"duration"`
	Segments      []segment `json:"segments"`
	Words         []word    `json:"words"`
	Tokens        []int     `json:"tokens"`
	Probabilities []float32 `json:"probabilities,omitempty"`
}

type segment struct {
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Text    string  `json:"text"`
	Speaker int     `json:"speaker"`
}

type word struct {
	Word  string  `json:"word"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

//export etrun_transcribe
func etrun_transcribe(handle C.etrun_speech, file *C.etrun_bytes, o *C.etrun_transcription, result **C.char, message **C.char) C.int {
	return call(message, func() error {
		m, err := find[*speech.Model](C.uint64_t(handle), speeches)
		if err != nil {
			return err
		}
		if file == nil || result == nil {
			return argument("file or json is NULL")
		}
		*result = nil
		data, err := bytesOf("data of the file", file.data, file.bytes)
		if err != nil {
			return err
		}
		if o == nil {
			o = new(C.etrun_transcription)
		}
		if err := checkReserved(o.reserved[:]); err != nil {
			return err
		}
		from, err := sound.NewReader(bytes.NewReader(data), m.Info().Rate, math.MaxInt32)
		if err != nil {
			return err
		}
		t, err := m.Read(context.Background(), from, speech.Options{Language: textOf(o.language), Prompt: textOf(o.prompt), Translate: o.translate != 0,
			Times: o.times != 0, Fallback: o.fallback != 0, Temperature: float64(o.temperature), Threshold: float64(o.threshold), MaxTokens: int(o.max_tokens),
			Seed: uint64(o.seed)}, func(*speech.Segment) error { return nil })
		if err != nil {
			return err
		}
		text, err := json.Marshal(transcriptOf(t))
		if err == nil {
			*result = C.CString(string(text))
		}
		return err
	})
}

func transcriptOf(t *speech.Transcript) *transcript {
	r := &transcript{Text: t.Text, Language: t.Language, Duration: t.Duration.Seconds(), Segments: []segment{}, Words: []word{}, Tokens: append([]int{}, t.Tokens...),
		Probabilities: t.Probabilities}
	for i := range t.Segments {
		s := &t.Segments[i]
		r.Segments = append(r.Segments, segment{s.Start.Seconds(), s.End.Seconds(), s.Text, s.Speaker})
	}
	for _, w := range t.Words {
		r.Words = append(r.Words, word{w.Text, w.Start.Seconds(), w.End.Seconds()})
	}
	return r
}

//export etrun_speech_close
func etrun_speech_close(handle C.etrun_speech, message **C.char) C.int {
	return call(message, func() error {
		m, err := remove[*speech.Model](C.uint64_t(handle), speeches)
		if err != nil {
			return err
		}
		return m.Close()
	})
}
