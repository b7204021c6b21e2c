package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// addCompletion adds the command completion, which writes to the current output of root.
// An unknown shell is a usage error.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.RunE, c.Args = cli.NeedsCommand, cobra.ArbitraryArgs
			formatHelp(c)
		}
	}
}

// newHelp is the command help; help for an unknown command is a usage error.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show help for a command",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			at, _, err := c.Root().Find(args)
			if err != nil || at == nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return cli.CommandNames(at), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			at, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				if err := cli.Misspelled(c.Root(), args); err != nil {
					return err
				}
				return session.Usage("no command %q, want one of %s", strings.Join(args, " "), strings.Join(slices.Sorted(slices.Values(cli.CommandNames(c.Root()))), ", "))
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}
