package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// variableValues are valid values of flags that are not among those of their type, which follow.
var variableValues = map[string]string{
	"device": "auto", "lower": "off", "plan": "own", "repair": "off", "xnnpack": "go", "qparams": "0:0=0.5,1", "memory": "fast=0x10+4KiB",
	"bool": "true", "int": "3", "uint64": "3", "duration": "3s", "SIZE": "3MiB", "string": "x", "stringArray": "x\ny",
}

// TestServeVariables sets each flag by its environment variable: no flag is without.
func TestServeVariables(t *testing.T) {
	n := 0
	newServe(&app{}).Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, ok := variableValues[f.Name]
		if !ok {
			value, ok = variableValues[f.Value.Type()]
		}
		if n++; !ok {
			t.Errorf("--%s: no value for the type %s", f.Name, f.Value.Type())
		}
		flags := newServe(&app{}).Flags()
		t.Setenv(serveVariables+strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")), value)
		if err := session.SetFromEnvironment(flags, serveVariables); err != nil || !flags.Changed(f.Name) {
			t.Errorf("--%s: %v, set %v", f.Name, err, flags.Changed(f.Name))
		}
	})
	if n < 50 {
		t.Errorf("%d flags", n)
	}
}

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
	if err := session.SetFromEnvironment(flags, serveVariables); err != nil {
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
		err := session.SetFromEnvironment(newServe(&app{}).Flags(), serveVariables)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
		t.Setenv(name, "")
	}
}
