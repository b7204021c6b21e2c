package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// printedTime is a number with a unit of time, with or without a space between them, in any notation.
var printedTime = regexp.MustCompile(`(\d+m)?\d[\d.]*(e[-+]?\d+)?\s*(ns|us|µs|ms|s|sec|seconds?)\b`)

// oneNotation is the form of package duration.
var oneNotation = regexp.MustCompile(`^(0s|\d{1,3}ns|(\d\.\d{3}|\d\d\.\d\d|\d{3}\.\d)(µs|ms)|(\d\.\d{3}|\d\d\.\d\d)s|\d+m[\d.]+s)$`)

// timedCommands are those whose output has times, with the minimum number of times in it.
var timedCommands = []struct {
	args  string
	times int
}{
	{"HERE/add.pte -i ones -i ones", 1},
	{"HERE/add.pte -i ones -i ones --repeat 20", 7},
	{"HERE/add.pte -i ones -i ones --profile", 4},
	{"profile PTE/map_loop.pte", 20},
	{"profile PTE/../digits/xnnpack.pte --input rand --by instruction", 20},
	{"bench HERE/add.pte -i ones -i ones --duration 20ms --threads 1 --vs \"--plan own\"", 20},
	{"npu cycles PTE/../ethosu/programs/digits.pte --clock 500", 1},
	{"npu trace PTE/../ethosu/programs/digits.pte --input rand", 1},
}

func TestTimesHaveOneNotation(t *testing.T) {
	pte := filepath.Join(root, "testdata", "pte")
	for _, c := range timedCommands {
		var out, notes bytes.Buffer
		args := words(strings.NewReplacer("HERE", "testdata", "PTE", pte).Replace(c.args))
		if code := run(args, strings.NewReader(""), &out, &notes); code != 0 {
			t.Errorf("%s: exit code %d, %s", c.args, code, notes.String())
		}
		checkTimes(t, c.args, out.String()+notes.String(), c.times)
	}
}

func TestTimesOfPagesHaveOneNotation(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	var out, notes bytes.Buffer
	args := []string{"report", filepath.Join(root, "testdata", "digits", "portable.pte"), "--input", "rand", "--output", page}
	if code := run(args, strings.NewReader(""), &out, &notes); code != 0 {
		t.Fatalf("exit code %d, %s", code, notes.String())
	}
	text, err := os.ReadFile(page)
	must(t, err)
	body := regexp.MustCompile(`(?s)<style>.*?</style>|<script[^>]*>.*?</script>`).ReplaceAllString(string(text), "")
	checkTimes(t, "report", body, 20)
}

func checkTimes(t *testing.T, what, text string, least int) {
	t.Helper()
	found := printedTime.FindAllString(text, -1)
	for _, s := range found {
		if !oneNotation.MatchString(s) {
			t.Errorf("%s: %q is not the notation of package duration", what, s)
		}
	}
	if len(found) < least {
		t.Errorf("%s: %d times, want at least %d:\n%.2000s", what, len(found), least, text)
	}
}

// otherTime is a verb of fmt with a unit of time behind it: such a message has a notation of its own.
var otherTime = regexp.MustCompile(`%[-+ #0]*\d*(\.\d+)?[dfgv] ?(ns|us|µs|ms|s|sec|seconds?)\b`)

// TestFormatsOfTimes reads the sources, since no test prints every message.
func TestFormatsOfTimes(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				seen++
				if otherTime.MatchString(text) {
					t.Errorf("%s: %q; times are formatted by package duration", path, text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || seen < 1000 {
		t.Errorf("%v, %d strings", err, seen)
	}
}
