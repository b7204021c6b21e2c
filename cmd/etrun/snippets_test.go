package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// snippetImports are the imports of snippets without a package clause, by name.
var snippetImports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "log": "log", "os": "os", "time": "time",
	"etrun": module, "delegate": module + "/delegate", "all": module + "/delegate/all", "ethosu": module + "/delegate/ethosu",
	"xnnpack": module + "/delegate/xnnpack", "kernels": module + "/kernels", "tensor": module + "/kernels/tensor",
	"trace": module + "/runtime/trace", "metrics": module + "/runtime/metrics", "serve": module + "/serve",
	"text": module + "/text", "tokenizer": module + "/text/tokenizer",
}

const module = "github.com/etrun-go/etrun"

// TestDocumentSnippets compiles every Go snippet of the documents: a whole file unchanged, other
// snippets as the body of a function.
func TestDocumentSnippets(t *testing.T) {
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	folder, from := t.TempDir(), make(map[string]string)
	base, err := filepath.Abs(filepath.Join("testdata", "snippets")) // exists in the overlay only
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range readDocuments(t) {
		for _, b := range d.blocks {
			if b.language != "go" {
				continue
			}
			text, err := snippetFile(strings.Join(b.lines, "\n"))
			if err != nil {
				t.Errorf("%s:%d: %v", d.path, b.line, err)
				continue
			}
			name := fmt.Sprintf("snippet%d", len(from))
			from[name] = fmt.Sprintf("%s:%d", d.path, b.line)
			file := filepath.Join(folder, name+".go")
			write(t, file, []byte(text))
			overlay.Replace[filepath.Join(base, name, "main.go")] = file
		}
	}
	if len(from) < 2 {
		t.Fatalf("%d snippets found", len(from))
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "overlay.json"), text)
	args := []string{"build", "-overlay", filepath.Join(folder, "overlay.json")}
	for name := range from {
		args = append(args, "./"+filepath.ToSlash(filepath.Join("testdata", "snippets", name)))
	}
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s\nwith %v", err, out, from)
	}
}

// snippetFile completes a snippet to a file: package clause, imports, and uses of its
// variables. A whole program becomes a package that is not linked.
func snippetFile(text string) (string, error) {
	const head, body = "package snippet\n", "func _() {\n%s\n%s}\n"
	if program, ok := strings.CutPrefix(text, "package main\n"); ok {
		return head + program, nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", head+fmt.Sprintf(body, text, ""), 0)
	if err != nil {
		return "", err
	}
	imports, uses := make(map[string]bool), ""
	for _, name := range file.Unresolved {
		if path, ok := snippetImports[name.Name]; ok {
			imports[fmt.Sprintf("import %q\n", path)] = true
		}
	}
	for _, s := range file.Decls[0].(*ast.FuncDecl).Body.List {
		if a, ok := s.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
			for _, v := range a.Lhs {
				uses += "_ = " + v.(*ast.Ident).Name + "\n"
			}
		}
	}
	return head + strings.Join(slices.Sorted(maps.Keys(imports)), "") + fmt.Sprintf(body, text, uses), nil
}
