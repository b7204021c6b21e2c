package main

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// serveVariables is the prefix of environment variables with flags of etrun serve: ETRUN_SERVE_MAX_BODY is --max-body.
const serveVariables = "ETRUN_SERVE_"

// setFromEnvironment sets flags that the command line does not set from their environment variables. An empty variable
// counts as none. A flag that may be repeated has one value per line.
func setFromEnvironment(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := serveVariables + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		text := os.Getenv(name)
		if err != nil || f.Changed || f.Hidden || text == "" {
			return
		}
		words := []string{text}
		if _, list := f.Value.(pflag.SliceValue); list {
			words = strings.Split(strings.TrimSpace(text), "\n")
		}
		for _, word := range words {
			if bad := flags.Set(f.Name, strings.TrimSpace(word)); bad != nil && err == nil {
				err = session.Usage("%s: %w", name, session.FlagFault(bad))
			}
		}
	})
	return err
}
