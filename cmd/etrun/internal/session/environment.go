package session

import (
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// SetFromEnvironment sets flags that the command line does not set from environment variables, with a prefix before their names:
// X_MAX_BODY is --max-body. An empty variable counts as none. A flag that may be repeated has one value per line.
func SetFromEnvironment(flags *pflag.FlagSet, prefix string) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := prefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
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
				err = Usage("%s: %w", name, FlagFault(bad))
			}
		}
	})
	return err
}
