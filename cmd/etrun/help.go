package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
)

// helpWidth is the width of help texts in columns.
const helpWidth = 80

// formatHelp keeps the order in which the flags of a command and its subcommands were defined: a command's own flags
// precede those of all programs.
func formatHelp(c *cobra.Command) {
	c.Flags().SortFlags = false
	for _, sub := range c.Commands() {
		formatHelp(sub)
	}
}

// usage writes the usage of a command. Cobra's own templates would link text/template,
// which adds two megabytes to the binary.
func usage(w io.Writer, c *cobra.Command) error {
	var b strings.Builder
	writeUse(&b, c)
	writeCommands(&b, c)
	writeFlags(&b, "Flags", c.LocalFlags())
	writeFlags(&b, "Global Flags", c.InheritedFlags())
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\nUse \"%s [command] --help\" for more information about a command.", c.CommandPath())
	}
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// writeUse writes how a command is called, with examples.
func writeUse(b *strings.Builder, c *cobra.Command) {
	b.WriteString("Usage:")
	if c.Runnable() {
		b.WriteString("\n  " + c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n  " + c.CommandPath() + " [command]")
	}
	if c.HasExample() {
		b.WriteString("\n\nExamples:\n" + c.Example)
	}
}

// writeCommands lists the subcommands of c, by group if there are groups.
func writeCommands(b *strings.Builder, c *cobra.Command) {
	groups := c.Groups()
	if len(groups) == 0 && c.HasAvailableSubCommands() {
		groups = []*cobra.Group{{Title: "Available Commands:"}}
	}
	for _, g := range groups {
		b.WriteString("\n\n" + g.Title)
		for _, sub := range c.Commands() {
			if sub.GroupID == g.ID && (sub.IsAvailableCommand() || sub.Name() == "help") {
				fmt.Fprintf(b, "\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		b.WriteString("\n\n" + title + ":\n" + strings.TrimRight(flags.FlagUsagesWrapped(helpWidth), "\n"))
	}
}

// wrap rewraps text at helpWidth. Empty lines, and lines that begin with a space, are
// unchanged.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); line == "" || line[0] == ' ' {
			if column > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line + "\n")
			column = 0
			continue
		}
		for word := range strings.FieldsSeq(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case column == 0:
			case column+1+n > helpWidth:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += n
		}
	}
	return b.String()
}

// shortHelp is the help of etrun without arguments: what to type first.
func shortHelp(c *cobra.Command) error {
	var b strings.Builder
	b.WriteString("etrun runs ExecuTorch programs.\n\n" +
		"  etrun MODEL.pte -i x.npy    run a program on an input\n" +
		"  etrun inspect MODEL.pte     show its inputs and outputs\n" +
		"  etrun check MODEL.pte       find out whether it runs here\n" +
		"  etrun view MODEL.pte        see its graph in the browser\n" +
		"  etrun doctor                check this machine\n\n")
	names := strings.Join(cli.CommandNames(c), ", ")
	b.WriteString(wrap("Commands: "+names+".") + "\n" +
		"All about one: etrun COMMAND --help; about running programs: etrun --help.\n")
	_, err := io.WriteString(c.OutOrStdout(), b.String())
	return err
}
