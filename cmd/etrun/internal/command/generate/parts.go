package generate

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/text"
)

// partFlags are the pictures and sounds of a prompt.
type partFlags struct {
	images, audio []string
	special       bool

	parts []*text.Part
}

func (f *partFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.images, "image", nil, "picture, a PNG, JPEG, GIF or WebP `FILE`, in the place of <image> in the prompt, or before it; may be repeated")
	flags.StringArrayVar(&f.audio, "audio", nil, "recording, a WAVE or FLAC `FILE`, in the place of <audio> in the prompt, or before it; may be repeated")
	flags.BoolVar(&f.special, "special", false, "the prompt is all that the model gets: names of control tokens in it are control tokens, and no first token is added")
}

// maxPart bounds the bytes of a file.
const maxPart = 1 << 30

// encode reads and encodes the files.
func (f *partFlags) encode(ctx context.Context, a *cli.App, m *text.Model, memory int64) error {
	limit := int64(maxPart)
	if memory > 0 {
		limit = min(limit, memory)
	}
	for _, list := range []struct {
		medium text.Medium
		files  []string
	}{{text.Picture, f.images}, {text.Sound, f.audio}} {
		for _, name := range list.files {
			a.Progress.Say("encoding %s", cli.Printable(name))
			file, err := openfile.ReadFile(ctx, name, openfile.Rules{Kinds: openfile.Pipes, Limit: limit})
			if err != nil {
				return err
			}
			p, err := m.EncodePart(ctx, list.medium, file)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			a.Note("%s: %s: %s", cli.Printable(name), cli.Count(len(p.Tokens()), "token", "tokens"), p.Note())
			f.parts = append(f.parts, p)
		}
	}
	return nil
}
