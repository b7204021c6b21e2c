package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	continuation = regexp.MustCompile(`\\\n\s*`)
	exampleEnd   = regexp.MustCompile(` [|<>] .*|  +\S.*`) // a pipe, a redirection or a comment
)

// TestExamples parses the examples in the help of every command: they name commands, flags and
// numbers of arguments that exist.
func TestExamples(t *testing.T) {
	lines := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for line := range strings.Lines(continuation.ReplaceAllString(c.Example, "")) {
			lines++
			line = strings.TrimSpace(line)
			checkExample(t, line, words(exampleEnd.ReplaceAllString(line, "")))
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(&app{}))
	if lines < 40 {
		t.Errorf("%d examples", lines)
	}
}

func checkExample(t *testing.T, line string, words []string) {
	t.Helper()
	if words[0] != "etrun" {
		t.Errorf("%s: does not begin with etrun", line)
		return
	}
	c, rest, err := newRoot(&app{}).Find(words[1:])
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
}
