package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// foreign are flags by command that other programs have, and what is missing here, or has another name.
var foreign = map[string]map[string]string{
	"generate": {},
	"serve": {
		"port": wantListen, "bind": wantListen, "address": wantListen, "addr": wantListen,
		"api-key": "want --token-file FILE with a token on each line, which the list of processes does not show",
	},
}

// wantListen answers other names of the flag of addresses.
const wantListen = "want --listen HOST:PORT, such as --listen 127.0.0.1:8000, or --listen 0.0.0.0:8000 for other machines"

// FlagFault is the error of a flag, with the nearest flag if it is unknown.
func FlagFault(c *cobra.Command, err error) error {
	if wrong := Misspelled(c, c.Flags().Args()); wrong != nil {
		return wrong
	}
	hint := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if why, ok := foreign[c.Name()][unknown.GetSpecifiedName()]; ok {
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
