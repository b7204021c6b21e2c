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

// TestNothingAsked requires a short help without arguments, and errors that name what exists for what does not.
func TestNothingAsked(t *testing.T) {
	play(t, []script{
		{name: "no arguments", args: "", stdout: []string{"etrun MODEL.pte -i x.npy", "Commands: bench, ", "etrun COMMAND --help"}},
		{name: "only a flag", args: "--json", code: 2, stderr: []string{"no arguments, want MODEL.pte or a command"}},
		{name: "operator", args: "ops NOSUCH", code: 2, stderr: []string{`no operator with "NOSUCH" in its name; etrun ops lists all`}},
		{name: "nearest operator", args: "ops convlution", code: 2, stderr: []string{"did you mean aten::convolution.out?"}},
		{name: "operator in JSON", args: "ops NOSUCH --json", code: 2, stdout: []string{`"class": "usage"`}},
		{name: "device", args: "HERE/add.pte --device cuda", code: 2, stderr: []string{`--device "cuda", want one of auto, `,
			"npu, or the path"}},
		{name: "nearest device", args: "HERE/add.pte --device npuu", code: 2, stderr: []string{"did you mean npu?"}},
		{name: "device of the second program", args: "compare HERE/add.pte --vs --device=cuda", code: 2,
			stderr: []string{`--device "cuda", want one of`}},
		{name: "value of a flag", args: "HERE/add.pte --plan ownn", code: 2, stderr: []string{"did you mean own?"}},
		{name: "command", args: "prifile HERE/add.pte", code: 2, stderr: []string{`did you mean "etrun profile"?`}},
		{name: "command with flags", args: "inspct HERE/add.pte --json", code: 2, stderr: []string{`did you mean "etrun inspect"?`}},
		{name: "flag", args: "HERE/add.pte --reapet 3", code: 2, stderr: []string{"did you mean --repeat"}},
		{name: "no time for requests", args: "serve HERE/add.pte --timeout 0", code: 2, stderr: []string{"flag: want more than 0"}},
		{name: "element type", args: "HERE/add.pte -i x.bin:floot32:4", code: 2, stderr: []string{"did you mean float32?"}},
		{name: "key of a picture", args: "HERE/add.pte -i x.png:rezise=4", code: 2, stderr: []string{"did you mean resize?"}},
		{name: "key of a recording", args: "HERE/add.pte -i x.wav:chanel=1", code: 2, stderr: []string{"did you mean channel?"}},
		{name: "path of a device", args: "HERE/add.pte --device /dev/nosuch", stderr: []string{"--device has no effect"}},
		{name: "negative time", args: "HERE/add.pte --timeout -1s", code: 2, stderr: []string{"want 0 or more"}},
		{name: "option of a text", args: "generate PTE/../../text/testdata/dynamic.pte --tokens 1,2 --temperature -1", code: 5,
			stderr: []string{"--temperature: got -1, want 0 (greedy), or a number up to 1e6"}},
	})
}
