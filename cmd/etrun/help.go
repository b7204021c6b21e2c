package main

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// helpWidth is that of a usual terminal, in columns.
const helpWidth = 80

// narrow keeps the help of a command and of those below it within helpWidth.
func narrow(c *cobra.Command) {
	c.Long = wrap(c.Long)
	for _, sub := range c.Commands() {
		narrow(sub)
	}
}

// narrowFlags is a template of usage whose flags keep within helpWidth.
func narrowFlags(template string) string {
	return strings.ReplaceAll(template, "FlagUsages ", "FlagUsagesWrapped "+strconv.Itoa(helpWidth)+" ")
}

// wrap breaks the lines of text anew. Lines that begin with a space, and empty ones, stay
// as they are.
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
