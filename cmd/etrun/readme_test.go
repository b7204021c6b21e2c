package main

import (
	"bytes"
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

// fences are the code blocks of a language in a Markdown text.
func fences(text, language string) (blocks []string) {
	block := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$")
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// Every command line that the documents show must run and succeed.
func TestDocumentCommands(t *testing.T) {
	testdata, err := filepath.Abs(filepath.Join(root, "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	for path, least := range map[string]int{"README.md": 5, "docs/tool.md": 5, "docs/errors.md": 2, "docs/boards.md": 3, "docs/fvp.md": 5, "docs/npu-linux.md": 2, "docs/quantize.md": 2} {
		lines := shownCommands(t, path)
		if len(lines) < least {
			t.Fatalf("%s: %d commands found", path, len(lines))
		}
		t.Run(path, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.Symlink(testdata, "testdata"); err != nil {
				t.Fatal(err)
			}
			for _, args := range lines {
				var out, notes bytes.Buffer
				if code := run(words(args), strings.NewReader(""), &out, &notes); code != 0 || out.Len() == 0 {
					t.Errorf("etrun %s: exit code %d, %d bytes on stdout, stderr:\n%s", args, code, out.Len(), notes.String())
				}
			}
		})
	}
}

// shownCommands are the arguments of bin/etrun in a document's consoles; lines without a
// prompt are what it prints.
func shownCommands(t *testing.T, path string) (lines []string) {
	for _, block := range fences(readText(t, path), "console") {
		if !strings.HasPrefix(block, "$ bin/etrun ") {
			t.Errorf("%s: %q does not begin with a command of bin/etrun", path, block)
		}
		for line := range strings.Lines(block) {
			if args, ok := strings.CutPrefix(strings.TrimSpace(line), "$ bin/etrun "); ok {
				lines = append(lines, args)
			}
		}
	}
	return lines
}

// words are the arguments of a line, in which quotes keep some together.
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

// The README's two set-up commands are what CI runs.
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

// Links of the documents to files of the repository must lead somewhere.
func TestDocumentLinks(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	link := regexp.MustCompile(`\]\(([^)(#:]+)\)`)
	for _, path := range append(documents, more...) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: link to %s: %v", path, m[1], err)
			}
		}
	}
}
