package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/advice"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// ofLibrary are names of the library in a message.
var ofLibrary = regexp.MustCompile(`\b(With(out)?[A-Z]\w+|Lower(Off|Rewrite|Auto|Tune|Verify)|Plan(Auto|File|Own|Naive)|Limits\b|make deps|ETRUN_XNNPACK)`)

// libraryOnly are messages for callers of functions that no command calls.
var libraryOnly = []string{"BindInput, because the method was loaded with", "the method was loaded without WithBoundOutputs",
	"WithStateOf: the method belongs"}

// TestMessagesNameFlags reads every message of the packages under the command: what names the library is replaced in the words of the
// command line.
func TestMessagesNameFlags(t *testing.T) {
	seen, replaced := 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch top, _, _ := strings.Cut(rel, "/"); {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || top == "examples" || top == "cmd" || top == "tools" ||
			top == "testdata"):
			return fs.SkipDir
		case d.IsDir() && (strings.HasSuffix(d.Name(), "test") || d.Name() == "needs"): // packages for tests
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(lit.Value)
			seen++
			if !strings.Contains(text, " ") || !ofLibrary.MatchString(text) {
				return true
			}
			if words := advice.Command(text); ofLibrary.MatchString(words) && !isLibraryOnly(text) {
				t.Errorf("%s: %q names the library", rel, words)
			} else if words != text {
				replaced++
			}
			return true
		})
		return nil
	})
	if err != nil || seen < 5000 || replaced < 4 {
		t.Errorf("%v, %d messages, %d replaced", err, seen, replaced)
	}
}

func isLibraryOnly(text string) bool {
	for _, part := range libraryOnly {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// TestErrorsNameFlags causes an error or warning of each kind with advice, in text and JSON.
func TestErrorsNameFlags(t *testing.T) {
	foreign := changedProgram(t, "inline_delegate.pte", func(p *pte.Program) { p.Methods[0].Delegates[0].ID = "OtherBackend" })
	endless := changedProgram(t, "../digits/portable.pte", func(p *pte.Program) {
		m := &p.Methods[0]
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindBool})
		m.Chains[0].Instructions = []pte.Instruction{{Kind: pte.JumpFalseCall, Index: len(m.Values) - 1}}
		m.Outputs = m.Inputs
	})
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"run " + foreign, 4, "this build has none of that name; etrun doctor lists its backends"},
		{"check " + foreign, 4, ""},
		{"inspect " + foreign, 0, ""},
		{"report " + foreign + " -o " + filepath.Join(t.TempDir(), "page.html"), 0, ""},
		{"run ../../testdata/pte/external_weights.pte", 4, "(pass --data FILE.ptd)"},
		{"run ../../testdata/digits/portable.pte --max-memory 1KiB", 9, "; a larger --max-memory allows it"},
		{"run " + endless, 1, "(the program probably never ends)"},
	} {
		for _, json := range []string{"", " --json"} {
			var out, notes bytes.Buffer
			code := run(strings.Fields(c.args+json), strings.NewReader(""), &out, &notes)
			text := out.String() + notes.String()
			if code != c.code || !strings.Contains(text, c.want) || ofLibrary.MatchString(text) {
				t.Errorf("%s: exit code %d, want %d and %q; %q of the library in %s", c.args+json, code, c.code, c.want, ofLibrary.FindString(text),
					text)
			}
		}
	}
}

// TestGoEngineFigures compares the sentence about a missing library with the measured times.
func TestGoEngineFigures(t *testing.T) {
	page := strings.ReplaceAll(readText(t, "docs", "performance.md"), "\n", " ")
	m := regexp.MustCompile(`the median is ([\d.]+) on one thread, at most ([\d.]+) .{1,40} with AVX2 and AVX-VNNI ([\d.]+) and ([\d.]+), ` +
		`with AVX2 only ([\d.]+), and ([\d.]+)`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the page has no such figures")
	}
	figure := func(i int) float64 {
		x, err := strconv.ParseFloat(m[i], 64)
		must(t, err)
		return x
	}
	low, high := min(figure(1), figure(3), figure(5)), max(figure(1), figure(3), figure(5))
	want := fmt.Sprintf("in %.1f to %.1f times the library's time, by processor, some programs in up to %.1f times",
		low, high, max(figure(2), figure(4), figure(6)))
	if !strings.Contains(advice.GoEngine, want) {
		t.Errorf("got %q, want %q in it", advice.GoEngine, want)
	}
}
