package generate

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/text"
)

// partFlags are the pictures and sounds of a prompt.
type partFlags struct {
	session.PartFiles
	special bool

	parts []*text.Part
}

func (f *partFlags) addFlags(flags *pflag.FlagSet) {
	f.AddFlags(flags, ", in the place of <image> or <audio> in the prompt, or before it")
	flags.BoolVar(&f.special, "special", false,
		"the prompt is all that the model gets: names of control tokens in it are control tokens, and no first token is added")
}

// encode reads and encodes the files.
func (f *partFlags) encode(ctx context.Context, a *cli.App, m *text.Model, memory int64) error {
	files, err := f.Read(ctx, memory)
	for i := 0; i < len(files) && err == nil; i++ {
		x, p := &files[i], (*text.Part)(nil)
		a.Progress.Say("encoding %s", cli.Printable(x.Name))
		if p, err = x.Encode(ctx, m); err == nil {
			a.Note("%s: %s: %s", cli.Printable(x.Name), cli.Count(len(p.Tokens()), "token", "tokens"), p.Note())
			f.parts = append(f.parts, p)
		}
	}
	return err
}
