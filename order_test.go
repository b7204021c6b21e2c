package etrun

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// order lists the files of the package bottom up: a file refers only to files on its own line and
// on lines above it.
var order = [][]string{
	{"doc.go", "errors.go", "limits.go", "operators.go"},
	{"file.go", "source.go", "named.go", "sharing.go", "claims.go", "watch.go"},
	{"options.go"},
	{"link.go", "unwritten.go", "compile.go", "merging.go", "tuning.go", "lowering.go", "release.go", "prepared.go"}, // the description of a method to what its instances share
	{"slot.go"},
	{"program.go", "data.go", "meta.go", "warnings.go"},
	{"memory.go", "verify.go", "method.go", "inputs.go", "outputs.go", "run.go", "bind.go", "state.go", "execute.go", "observe.go", "values.go", "describe.go"}, // an instance
	{"load.go"},
	{"pool.go"},
}

func rank(file string) int {
	return slices.IndexFunc(order, func(line []string) bool { return slices.Contains(line, file) })
}

// noPackages replaces all imports: only the package's own names matter here.
type noPackages struct{}

func (noPackages) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

func TestFilesReferOneWay(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if rank(name) < 0 {
			t.Errorf("%s has no place in the order", name)
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	c := types.Config{Importer: noPackages{}, Error: func(error) {}} // names of other packages are not found
	c.Check("runtime", set, files, info)
	references := 0
	for use, object := range info.Uses {
		if !object.Pos().IsValid() {
			continue // predeclared
		}
		from, to := set.Position(use.Pos()), set.Position(object.Pos())
		if from.Filename == to.Filename {
			continue
		}
		references++
		if rank(to.Filename) > rank(from.Filename) {
			t.Errorf("%v refers to %s of %s, which comes after it", from, use.Name, to.Filename)
		}
	}
	if references < 100 {
		t.Errorf("only %d references between files: the test sees nothing", references)
	}
}
