package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/spf13/cobra"
)

// versionReport is the JSON object of version.
type versionReport struct {
	Schema  string `json:"schema"`
	Version string `json:"version"`
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this build",
		Args:  noArguments,
		RunE:  func(*cobra.Command, []string) error { return a.writeVersion() },
	}
}

func (a *app) writeVersion() error {
	if a.JSON {
		return a.WriteJSON(versionReport{"etrun.version/1", version()})
	}
	_, err := fmt.Fprintln(a.Out, version())
	return err
}

// release is set by the linker (-X main.release=…).
var release = ""

// version formats the build: release or revision, Go version and platform.
func version() string {
	name := release
	if info, ok := debug.ReadBuildInfo(); ok && name == "" {
		name = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				name = s.Value
			}
		}
	}
	if name == "" {
		name = "(devel)"
	}
	return fmt.Sprintf("etrun %s %s %s/%s", name, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return session.Usage("argument %q, want none; see %s --help", args[0], c.CommandPath())
	}
	return nil
}
