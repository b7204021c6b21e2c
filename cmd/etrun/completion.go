package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/hal/ethosu"
)

// flagWords are the values of flags, for shell completion.
var flagWords = map[string]func() []string{
	"device": func() []string {
		names := []string{"auto"}
		for _, d := range ethosu.Drivers() {
			names = append(names, d.Name)
		}
		return names
	},
	"by":     func() []string { return []string{"operator", "instruction"} },
	"format": func() []string { return []string{"table", "json", "benchstat"} },
	"memory": func() []string { return []string{"constants=", "scratch=", "fast="} },
}

// flagFiles are the extensions of the files that flags take.
var flagFiles = map[string][]string{
	"data": {"ptd"}, "qparams": {"json"}, "against": {"npz"}, "output-npz": {"npz"}, "html": {"html"}, "svg": {"svg"}, "flame": {"svg"},
	"trace": {"json"}, "pprof": {"pb.gz"}, "etdump": {"etdp"},
}

// completeFlags adds completion for the flags of a command and its subcommands.
func completeFlags(c *cobra.Command) {
	words := session.Words()
	for name, list := range flagWords {
		words[name] = list()
	}
	for name, list := range words {
		if c.Flags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for name, ends := range flagFiles {
		if c.Flags().Lookup(name) != nil {
			_ = c.MarkFlagFilename(name, ends...)
		}
	}
	if _, there := c.GetFlagCompletionFunc("method"); !there && c.Flags().Lookup("method") != nil {
		_ = c.RegisterFlagCompletionFunc("method", cli.CompleteMethod)
	}
	for _, sub := range c.Commands() {
		completeFlags(sub)
	}
}

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
