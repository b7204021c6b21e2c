// Package audio (no compatibility promise) serves models of speech, for package openai.
package audio

import (
	"context"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/speech"
)

// Attach returns the function for serve.Config.Attach of a model of speech.
func Attach(c speech.Config) func(ctx context.Context, p *etrun.Program) (serve.Attachment, error) {
	return func(ctx context.Context, p *etrun.Program) (serve.Attachment, error) {
		m, err := speech.Load(ctx, p, c)
		if err != nil {
			return nil, err
		}
		return &Model{m}, nil
	}
}

// Model is the attachment: a model of speech.
type Model struct{ *speech.Model }

// Try transcribes half a second of silence.
func (m *Model) Try(ctx context.Context) error {
	i := m.Info()
	o := speech.Options{}
	if i.Family == speech.Whisper {
		o.MaxTokens = 1
	}
	if len(i.Languages) > 0 {
		o.Language = i.Languages[0]
	}
	_, err := m.Transcribe(ctx, make([]float32, i.Rate/2), o)
	return err
}

// Capabilities are what the model does.
func (m *Model) Capabilities() (list []string) {
	switch i := m.Info(); i.Family {
	case speech.Voice:
		return []string{"voice_detection"}
	case speech.Speakers:
		return []string{"diarization"}
	default:
		if list = []string{"transcription"}; i.Translate {
			list = append(list, "translation")
		}
		return list
	}
}
