package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is what the files of a folder declare and use.
type source struct {
	declared  []declared
	uses      map[name]bool   // of other packages
	mentioned map[string]bool // names in exported declarations of the package
}

// name is one of a package's scope.
type name struct{ pkg, name string }

// declared is an exported name. The constants of a declaration have one group.
type declared struct {
	name  string
	kind  token.Token
	at    token.Position
	group *ast.GenDecl
}

// TestExportedNames finds exported names that no other package uses outside its tests: they need not be exported. Exempt are the promised
// API, packages for tests, which tests use, types that other exported declarations mention, errors, constants that are the values of
// a type or declared with one that is used, and cpu.Simulate, by which a test makes a table of docs/performance.md.
func TestExportedNames(t *testing.T) {
	all, used := readSources(t), make(map[name]bool)
	for _, s := range all {
		maps.Copy(used, s.uses)
	}
	for folder, s := range all {
		if slices.Contains(promised, folder) {
			continue
		}
		groups := make(map[*ast.GenDecl]bool)
		for _, d := range s.declared {
			groups[d.group] = groups[d.group] || used[name{folder, d.name}]
		}
		for _, d := range s.declared {
			switch {
			case used[name{folder, d.name}], folder == "hal/cpu" && d.name == "Simulate", d.kind == token.TYPE && (s.mentioned[d.name] || strings.HasSuffix(d.name, "Error")),
				d.kind == token.CONST && (groups[d.group] || enumerates(d.group)), d.kind == token.VAR && strings.HasPrefix(d.name, "Err"):
			default:
				t.Errorf("%s: %s.%s has no user in another package", d.at, folder, d.name)
			}
		}
	}
}

// enumerates reports whether a declaration of constants is of the values of a type.
func enumerates(d *ast.GenDecl) bool { return d.Specs[0].(*ast.ValueSpec).Type != nil }

// readSources reads all files of the module, those of other systems too, by folder.
func readSources(t *testing.T) map[string]*source {
	t.Helper()
	all, files := make(map[string]*source), token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && file != "." && (slices.Contains([]string{"testdata", "lib", "tools"}, e.Name()) || strings.HasPrefix(e.Name(), ".")):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		f, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(file))
		if all[folder] == nil {
			all[folder] = &source{uses: make(map[name]bool), mentioned: make(map[string]bool)}
		}
		all[folder].read(files, f, folder, strings.HasSuffix(file, "_test.go"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (s *source) read(files *token.FileSet, f *ast.File, folder string, test bool) {
	imported := importsOf(f)
	ast.Inspect(f, func(n ast.Node) bool {
		if x, ok := n.(*ast.SelectorExpr); ok {
			id, _ := x.X.(*ast.Ident)
			if from := imported[id.String()]; from != "" && from != folder && (!test || ofTests(from)) {
				s.uses[name{from, x.Sel.Name}] = true
			}
		}
		return true
	})
	if test || f.Name.Name == "main" || ast.IsGenerated(f) {
		return
	}
	for _, d := range f.Decls {
		s.declare(files, d)
	}
}

// importsOf returns the folders of the module's packages that a file imports, by the names that it uses.
func importsOf(f *ast.File) map[string]string {
	imported := make(map[string]string)
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		folder, ours := inModule(p)
		switch {
		case err != nil || !ours:
		case i.Name != nil:
			imported[i.Name.Name] = folder
		default:
			imported[path.Base(p)] = folder
		}
	}
	return imported
}

func (s *source) declare(files *token.FileSet, d ast.Decl) {
	add := func(id *ast.Ident, kind token.Token, group *ast.GenDecl) {
		if id.IsExported() {
			s.declared = append(s.declared, declared{id.Name, kind, files.Position(id.Pos()), group})
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() {
			s.mention(d.Type)
		}
		if d.Recv == nil {
			add(d.Name, token.FUNC, nil)
		}
	case *ast.GenDecl:
		for _, x := range d.Specs {
			switch x := x.(type) {
			case *ast.TypeSpec:
				add(x.Name, d.Tok, d)
				if x.Name.IsExported() {
					s.mention(x.Type)
				}
			case *ast.ValueSpec:
				for _, id := range x.Names {
					add(id, d.Tok, d)
				}
				s.mention(x)
			}
		}
	}
}

// mention records the names in an exported declaration.
func (s *source) mention(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			s.mentioned[id.Name] = true
		}
		return true
	})
}
