package kernels_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// literals returns the text of the string literals in an expression, outside of calls in it.
func literals(e ast.Expr) (text string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			s, err := strconv.Unquote(l.Value)
			if err != nil {
				s = l.Value
			}
			text += s
		}
		_, call := n.(*ast.CallExpr)
		return !call
	})
	return text
}

// verbs returns the number of verbs of a format, -1 if they have indices.
func verbs(format string) (n int) {
	format = strings.ReplaceAll(format, "%%", "")
	if strings.Contains(format, "%[") {
		return -1
	}
	return strings.Count(format, "%")
}

// swapped returns why a call of Bad or Badf seems to have its texts in the wrong order, "" if it does not. got of Badf
// is a format, and want is none. Of Bad, want has words, unless got is a value too.
func swapped(name string, args []ast.Expr) string {
	if len(args) < 3 {
		return ""
	}
	got, want := args[1], args[2]
	if name == "Bad" {
		text, ok := got.(*ast.BasicLit)
		if call, isCall := want.(*ast.CallExpr); ok && text.Kind == token.STRING && isCall && isMethod(call) && literals(want) == "" {
			return "want is a value, got is a text"
		}
		return ""
	}
	if n := verbs(literals(want)); n != 0 {
		return "want has verbs"
	}
	if n := verbs(literals(got)); n >= 0 && n != len(args)-3 {
		return fmt.Sprintf("got has %d verbs for %d arguments", n, len(args)-3)
	}
	return ""
}

// isMethod reports whether a call is one such as x.String().
func isMethod(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "String"
}

// calls visits the calls of Bad, Badf and the wrapper bad of a file.
func calls(f ast.Node, visit func(name string, c *ast.CallExpr)) {
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := ""
		switch f := c.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
		}
		if name == "Bad" || (name == "Badf" || name == "bad") && !c.Ellipsis.IsValid() {
			visit(name, c)
		}
		return true
	})
}

// TestOrderOfGotAndWant reads all calls of Bad and Badf in the module.
func TestOrderOfGotAndWant(t *testing.T) {
	found := make(map[string]int)
	set := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		calls(f, func(name string, c *ast.CallExpr) {
			found[name]++
			if why := swapped(name, c.Args); why != "" {
				t.Errorf("%v: %s: %s", set.Position(c.Pos()), name, why)
			}
		})
		return nil
	})
	if err != nil || found["Bad"] < 100 || found["Badf"] < 200 || found["bad"] < 20 {
		t.Errorf("read the calls %v: %v", found, err)
	}
}

// TestWrongOrderIsFound checks the check.
func TestWrongOrderIsFound(t *testing.T) {
	for text, wrong := range map[string]bool{
		`kernels.Bad(0, x.String(), "a floating type")`:                false,
		`kernels.Bad(0, "a floating type", x.String())`:                true,
		`kernels.Bad(3, out.DType.String(), want.String())`:            false,
		`kernels.Bad(1, "1", fmt.Sprintf("%d", n))`:                    false,
		`kernels.Bad(1, "a scalar", "rows of "+x.String())`:            false,
		`kernels.Badf(1, "%d", "at least 1", n)`:                       false,
		`kernels.Badf(1, "at least 1", "%d", n)`:                       true,
		`kernels.Badf(1, fmt.Sprintf("at most %d", n), "%v", m)`:       true,
		`kernels.Badf(1, "%v", fmt.Sprintf("at most %d", n), m)`:       false,
		`kernels.Badf(1, "%d and %d", "two", n)`:                       true,
		`kernels.Badf(1, "[-%d, %[1]d]", "two", n)`:                    false,
		`kernels.Badf(1, "%v", "sizes of at least "+strconv.Itoa(n))`:  true,
		`kernels.Badf(1, "sizes that fit "+x.String(), "%v", t)`:       true,
		`kernels.Badf(1, "%v", "sizes that fit "+x.String(), t)`:       false,
		`r.bad(i, fmt.Sprintf("entries in [%d, 2^31-1]", n), "%v", l)`: true,
	} {
		e, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		calls(e, func(name string, c *ast.CallExpr) {
			if why := swapped(name, c.Args); (why != "") != wrong {
				t.Errorf("%s: %q, want a fault %v", text, why, wrong)
			}
		})
	}
}
