package main

import (
	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// modelOrCommand accepts one argument, a program, and detects misspelled commands.
func modelOrCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 && c.Flags().NFlag() == 0 {
		return nil // the short help
	}
	if len(args) == 0 {
		return session.Usage("no arguments, want MODEL.pte or a command; see %s --help", c.CommandPath())
	}
	if err := cli.Misspelled(c, args); err != nil {
		return err
	}
	return cli.OneModel(c, args)
}
