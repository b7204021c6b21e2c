package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// noMedia are the flags of prompts with other parts than text, and what is missing for them.
var noMedia = map[string]string{
	"image": "prompts are text; images need the program's vision encoder and its preprocessing, which are not run",
	"audio": "prompts are text; audio needs the program's audio encoder and its preprocessing, which are not run",
}

// FlagFault is the error of a flag, with the nearest flag if it is unknown.
func FlagFault(c *cobra.Command, err error) error {
	if wrong := Misspelled(c, c.Flags().Args()); wrong != nil {
		return wrong
	}
	hint := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if why, media := noMedia[unknown.GetSpecifiedName()]; media && c.Name() == "generate" {
			return session.Usage("--%s: %s; see %s --help", unknown.GetSpecifiedName(), why, c.CommandPath())
		}
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if name := nearest.Name(unknown.GetSpecifiedName(), names); name != "" {
			hint = fmt.Sprintf("; did you mean --%s", name)
		}
	}
	return session.Usage("%w%s; see %s --help", session.FlagFault(err), hint, c.CommandPath())
}
