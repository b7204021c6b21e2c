//go:build manpages

package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func init() {
	commands = append(commands, struct {
		group string
		make  func(*app) *cobra.Command
	}{"here", newManpages})
}

// newManpages is built only with the tag manpages, by scripts/dist.sh: no release needs
// its libraries at run time.
func newManpages(*app) *cobra.Command {
	return &cobra.Command{Use: "__manpages FOLDER", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			root.DisableAutoGenTag = true
			keepTables(root)
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "etrun " + release, Manual: "etrun"}, args[0])
		}}
}

// keepTables turns the indented lines of a command's text, and of its subcommands', into
// code blocks of Markdown, which are not filled.
func keepTables(c *cobra.Command) {
	var b strings.Builder
	inTable := false
	for line := range strings.Lines(wrap(c.Long)) {
		indented := strings.HasPrefix(line, "  ")
		if indented != inTable && strings.TrimSpace(line) != "" {
			b.WriteString("\n")
			inTable = indented
		}
		if inTable {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	c.Long = b.String()
	for _, sub := range c.Commands() {
		keepTables(sub)
	}
}
