package etrun_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
)

// knownOperators are the names of all operators, with and without overload, and their beginnings up to a "_", which stand
// for several operators.
func knownOperators() (names, namespaces map[string]bool) {
	names, namespaces = make(map[string]bool), make(map[string]bool)
	for _, name := range etrun.DefaultOperators().Names() {
		base, _, _ := strings.Cut(name, ".")
		space, _, _ := strings.Cut(name, "::")
		names[name], names[base], namespaces[space] = true, true, true
		for i, c := range base {
			if c == '_' {
				names[base[:i]] = true
			}
		}
	}
	return names, namespaces
}

// mostNames is how many operators the passes name: those that they insert into programs, and the one that reads a number.
// They know others by the facts in their rows (Class, Moves, Quants).
var mostNames = map[string]int{"runtime/lower": 5, "delegate/xnnpack": 0, "cmd": 4}

// TestOperatorNames looks for operators that code names but no table has: a pass that knows an operator by a name which
// was misspelt, or whose row has another name by now, would silently do nothing.
func TestOperatorNames(t *testing.T) {
	names, namespaces := knownOperators()
	found, passes := 0, make(map[string]int)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || path == "tools" || path == "examples"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || ofTests(filepath.ToSlash(filepath.Dir(path))):
			return nil
		}
		for _, name := range namedOperators(t, path, namespaces) {
			if found++; !names[name] {
				t.Errorf("%s: %q is no operator", path, name)
			}
			for folder := range mostNames {
				if under(filepath.ToSlash(path), folder) {
					passes[folder]++
				}
			}
		}
		return nil
	})
	if err != nil || found < 40 {
		t.Errorf("%d names, %v", found, err)
	}
	for folder, most := range mostNames {
		if passes[folder] > most {
			t.Errorf("%s: %d names of operators, want at most %d: facts about operators are in their rows", folder, passes[folder], most)
		}
	}
}

// namedOperators returns the string literals of a file that are names in one of the namespaces.
func namedOperators(t *testing.T, path string, namespaces map[string]bool) (list []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		space, name, ok := strings.Cut(text, "::")
		if err == nil && ok && namespaces[space] && name != "" && !strings.ContainsAny(name, " (%:,") {
			list = append(list, text)
		}
		return true
	})
	return list
}
