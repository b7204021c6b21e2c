package session

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestFlagFault sets flags of all types to values that they do not have: no error names a package of Go.
func TestFlagFault(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(Options).AddFlags(flags)
	AddTimeLimit(flags)
	flags.Int64("i64", 0, "")
	flags.Uint64("u64", 0, "")
	flags.Float64("f", 0, "")
	flags.Bool("b", false, "")
	flags.Duration("d", time.Second, "")
	seen := make(map[string]bool)
	flags.VisitAll(func(f *pflag.Flag) {
		for _, value := range []string{"x", "", "5", "5 s", "5q", "-", "1e999", "99999999999999999999", "0x", "\x00"} {
			err := flags.Set(f.Name, value)
			if err == nil {
				continue
			}
			text := FlagFault(err).Error()
			seen[f.Value.Type()] = true
			for _, word := range []string{"strconv", "time: ", "parsing", "syntax"} {
				if strings.Contains(text, word) {
					t.Errorf("--%s %q: %s", f.Name, value, text)
				}
			}
		}
	})
	for kind := range wanted {
		if kind != "float32" && !seen[kind] {
			t.Errorf("no fault of a flag of the type %s", kind)
		}
	}
	if err := FlagFault(flags.Set("timeout", "5")); err == nil || err.Error() != `invalid argument "5" for "--timeout" flag: want a time such as 30s or 1m30s` {
		t.Error(err)
	}
	if err := FlagFault(flags.Set("threads", "99999999999999999999")); err == nil || !strings.HasSuffix(err.Error(), "out of range") {
		t.Error(err)
	}
}
