package main

import (
	"fmt"

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
		return a.WriteJSON(versionReport{"etrun.version/1", a.Version})
	}
	_, err := fmt.Fprintln(a.Out, a.Version)
	return err
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return session.Usage("argument %q, want none; see %s --help", args[0], c.CommandPath())
	}
	return nil
}
