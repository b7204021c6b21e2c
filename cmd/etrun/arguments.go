package main

import (
	"os"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// oneModel accepts exactly one argument, a program.
func oneModel(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return session.Usage("%s, want one MODEL.pte or .bpte; see %s --help", count(len(args), "argument", "arguments"), c.CommandPath())
	}
	return nil
}

// oneOrTwo accepts one or two programs.
func oneOrTwo(c *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return session.Usage("%s, want A.pte or A.pte B.pte; see %s --help", count(len(args), "argument", "arguments"), c.CommandPath())
	}
	return nil
}

// completeModel completes program files.
func completeModel(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completePrograms(nil, nil, "")
}

// completePrograms completes program files, for any number of arguments.
func completePrograms(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
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

// misspelled returns an error if the first argument is no file, but close to a command name.
func misspelled(c *cobra.Command, args []string) error {
	if len(args) == 0 || !c.HasSubCommands() || strings.ContainsAny(args[0], "./") {
		return nil
	}
	if _, err := os.Lstat(args[0]); err == nil {
		return nil
	}
	name := nearest.Name(args[0], commandNames(c))
	if name == "" {
		return nil
	}
	return session.Usage("no command or file %q; did you mean %q?", args[0], c.CommandPath()+" "+name)
}

func commandNames(c *cobra.Command) (names []string) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// needsCommand is for commands that only group others.
func needsCommand(c *cobra.Command, args []string) error {
	if err := misspelled(c, args); err != nil {
		return err
	}
	if len(args) > 0 {
		return session.Usage("no command %q, want one of %s; see %s --help", args[0], strings.Join(commandNames(c), ", "), c.CommandPath())
	}
	return session.Usage("no command, want one of %s; see %s --help", strings.Join(commandNames(c), ", "), c.CommandPath())
}

// hide removes flags from the help that have no effect on a command.
func hide(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.MarkHidden(name)
	}
}
