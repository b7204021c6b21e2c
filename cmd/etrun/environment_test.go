package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestServeEnvironment sets flags by environment variables. The command line precedes them.
func TestServeEnvironment(t *testing.T) {
	t.Setenv("ETRUN_SERVE_QUEUE", "7")
	t.Setenv("ETRUN_SERVE_MAX_BODY", "1MiB")
	t.Setenv("ETRUN_SERVE_LISTEN", "unix:/a\nunix:/b\n")
	t.Setenv("ETRUN_SERVE_ACCESS_LOG", "false")
	t.Setenv("ETRUN_SERVE_INSTANCES", "5")
	t.Setenv("ETRUN_SERVE_TOKEN_FILE", "")
	flags := newServe(&app{}).Flags()
	if err := flags.Parse([]string{"--instances", "3"}); err != nil {
		t.Fatal(err)
	}
	if err := setFromEnvironment(flags); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"queue": "7", "max-body": "1.0 MiB", "access-log": "false", "instances": "3", "token-file": ""} {
		if got := flags.Lookup(name).Value.String(); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	if got := flags.Lookup("listen").Value.(pflag.SliceValue).GetSlice(); !slices.Equal(got, []string{"unix:/a", "unix:/b"}) {
		t.Errorf("--listen is %q", got)
	}
	for name, value := range map[string]string{"ETRUN_SERVE_QUEUE": "many", "ETRUN_SERVE_CONTROL": "perhaps"} {
		t.Setenv(name, value)
		err := setFromEnvironment(newServe(&app{}).Flags())
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
		t.Setenv(name, "")
	}
}
