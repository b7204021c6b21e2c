package cli

import (
	"os"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// OneModel accepts exactly one argument, a program.
func OneModel(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return session.Usage("%s, want one MODEL.pte or .bpte; see %s --help", Count(len(args), "argument", "arguments"), c.CommandPath())
	}
	return nil
}

// OneTo accepts exactly one argument, a program, and requires the flag with the path of the result.
func OneTo(output *string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 || *output == "" {
			return session.Usage("want IN.pte -o OUT.pte; see %s --help", c.CommandPath())
		}
		return nil
	}
}

// OneOrTwo accepts one or two programs.
func OneOrTwo(c *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return session.Usage("%s, want A.pte or A.pte B.pte; see %s --help", Count(len(args), "argument", "arguments"), c.CommandPath())
	}
	return nil
}

// CompleteModel completes program files.
func CompleteModel(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return CompletePrograms(nil, nil, "")
}

// CompletePrograms completes program files, for any number of arguments.
func CompletePrograms(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"pte", "bpte"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeMethod completes the methods of the program on the command line.
func completeMethod(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	prog, err := etrun.OpenSource(c.Context(), etrun.File(args[0]))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer prog.Close()
	return prog.MethodNames(), cobra.ShellCompDirectiveNoFileComp
}

// Misspelled returns an error if the first argument is no file, but close to a command name.
func Misspelled(c *cobra.Command, args []string) error {
	if len(args) == 0 || !c.HasSubCommands() || strings.ContainsAny(args[0], "./") {
		return nil
	}
	if _, err := os.Lstat(args[0]); err == nil {
		return nil
	}
	name := nearest.Name(args[0], CommandNames(c))
	if name == "" {
		return nil
	}
	return session.Usage("no command or file %q; did you mean %q?", args[0], c.CommandPath()+" "+name)
}

// CommandNames returns the names of the commands below c that help lists.
func CommandNames(c *cobra.Command) (names []string) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// NeedsCommand is for commands that only group others.
func NeedsCommand(c *cobra.Command, args []string) error {
	if err := Misspelled(c, args); err != nil {
		return err
	}
	if len(args) > 0 {
		return session.Usage("no command %q, want one of %s; see %s --help", args[0], strings.Join(CommandNames(c), ", "), c.CommandPath())
	}
	return session.Usage("no command, want one of %s; see %s --help", strings.Join(CommandNames(c), ", "), c.CommandPath())
}

// Hide removes flags from the help that have no effect on a command.
func Hide(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.MarkHidden(name)
	}
}
