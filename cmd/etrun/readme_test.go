package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

func readText(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fences returns the code blocks of a language in a Markdown text.
func fences(text, language string) (blocks []string) {
	block := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$")
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// words splits a line into arguments; quoted text is one argument.
func words(line string) (args []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			args = append(args, part)
			continue
		}
		args = append(args, strings.Fields(part)...)
	}
	return args
}

// CI runs the README's two set-up commands.
func TestReadmeSetUp(t *testing.T) {
	blocks := fences(readText(t, "README.md"), "sh")
	if want := []string{"make demo\nmake test\n"}; !slices.Equal(blocks, want) {
		t.Fatalf("set-up blocks %q, want %q", blocks, want)
	}
	ci := readText(t, ".ci", "run")
	for line := range strings.Lines(blocks[0]) {
		if !strings.Contains(ci, "step "+line) {
			t.Errorf(".ci/run does not run %q", line)
		}
	}
}

// The README's program is examples/first, which is compiled with everything else.
func TestReadmeProgram(t *testing.T) {
	blocks := fences(readText(t, "README.md"), "go")
	_, program, found := strings.Cut(readText(t, "examples", "first", "main.go"), "\n")
	if !found || len(blocks) != 1 || blocks[0] != program {
		t.Error("the program of the README is not examples/first/main.go below its comment")
	}
}

func TestReadmeExitCodes(t *testing.T) {
	text := readText(t, "README.md")
	for _, e := range exits {
		if row := fmt.Sprintf("| %d | %s |\n", e.code, e.help); !strings.Contains(text, row) {
			t.Errorf("row %q is not there", row)
		}
	}
}
