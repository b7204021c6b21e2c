package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/text"
)

// PartFiles are the flags of pictures and sounds in prompts.
type PartFiles struct{ images, audio []string }

// AddFlags adds the flags. where says where the files are in a prompt.
func (f *PartFiles) AddFlags(flags *pflag.FlagSet, where string) {
	flags.Var(Texts(&f.images), "image", "picture, a PNG, JPEG, GIF or WebP `FILE`"+where+"; may be repeated")
	flags.Var(Texts(&f.audio), "audio", "recording, a WAVE or FLAC `FILE`"+where+"; may be repeated")
}

// Any reports whether there are files.
func (f *PartFiles) Any() bool { return len(f.images)+len(f.audio) > 0 }

// Pictures reports whether there are pictures.
func (f *PartFiles) Pictures() bool { return len(f.images) > 0 }

// Sounds returns the names of the recordings.
func (f *PartFiles) Sounds() []string { return f.audio }

// PartFile is a picture or a sound.
type PartFile struct {
	Name   string
	medium text.Medium
	data   []byte
}

// maxPart bounds the bytes of a file.
const maxPart = 1 << 30

// Read reads the files, each of at most some bytes, 0 for no limit of its own.
func (f *PartFiles) Read(ctx context.Context, most int64) (files []PartFile, err error) {
	limit := int64(maxPart)
	if most > 0 {
		limit = min(limit, most)
	}
	for i, name := range slices.Concat(f.images, f.audio) {
		x := PartFile{Name: name, medium: text.Picture}
		if i >= len(f.images) {
			x.medium = text.Sound
		}
		if x.data, err = openfile.ReadFile(ctx, name, openfile.Rules{Kinds: openfile.Pipes, Limit: limit}); err != nil {
			return nil, err
		}
		files = append(files, x)
	}
	return files, nil
}

// Encode returns what a model makes of the file.
func (f *PartFile) Encode(ctx context.Context, m *text.Model) (*text.Part, error) {
	p, err := m.EncodePart(ctx, f.medium, f.data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return p, nil
}
