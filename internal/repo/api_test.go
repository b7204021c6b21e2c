package repo

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tests run in the folder of the module.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

var update = flag.Bool("update", false, "rewrite testdata/api")

// promised are the packages with a stable API. testdata/api contains it; changes are made with
// -update and reviewed there.
var promised = []string{
	".", "kernels", "kernels/tensor", "delegate", "delegate/xnnpack", "delegate/ethosu", "delegate/all", "runtime/trace", "runtime/metrics",
	"text", "text/tokenizer",
}

// imports returns an importer for the compiler's export data.
func imports(t *testing.T) types.Importer {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, p := range promised {
		args = append(args, "./"+p)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[name] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) { return os.Open(files[name]) })
}

func TestAPI(t *testing.T) {
	from := imports(t)
	for _, folder := range promised {
		p, err := from.Import(path.Join(module, folder))
		if err != nil {
			t.Fatal(err)
		}
		got := describeAPI(p)
		file := filepath.Join("testdata/api", strings.ReplaceAll(strings.TrimPrefix(path.Join(path.Base(module), folder), "./"), "/", "_")+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, difference := range differences(got, string(want)) {
			t.Errorf("%s: %s (go test ./internal/repo -run TestAPI -update accepts it)", file, difference)
		}
	}
}

// differences returns the lines that only one of two texts contains.
func differences(got, want string) (list []string) {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for _, line := range a {
		if !slices.Contains(b, line) {
			list = append(list, "new: "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			list = append(list, "gone: "+line)
		}
	}
	return list
}

// describeAPI returns a line per exported identifier.
func describeAPI(p *types.Package) string {
	d := &describer{home: p, foreign: make(map[string]bool)}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			d.object(o)
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "package %s\n\n", p.Name())
	for _, name := range slices.Sorted(keys(d.foreign)) {
		fmt.Fprintf(&out, "uses %s, without a promise\n", name)
	}
	slices.Sort(d.lines)
	for _, line := range d.lines {
		fmt.Fprintln(&out, line)
	}
	return out.String()
}

func keys(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

type describer struct {
	home    *types.Package
	foreign map[string]bool // referenced packages of this module without the promise
	lines   []string
}

func (d *describer) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *describer) text(x types.Type) string { return types.TypeString(x, d.qualify) }

// qualify returns a package's name, and records packages of this module without the promise.
func (d *describer) qualify(p *types.Package) string {
	if p == d.home {
		return ""
	}
	if own, ours := inModule(p.Path()); ours && !slices.Contains(promised, own) {
		d.foreign[own] = true
	}
	return p.Name()
}

func (d *describer) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		d.add("const %s %s = %s", o.Name(), d.text(o.Type()), o.Val())
	case *types.Var:
		d.add("var %s %s", o.Name(), d.text(o.Type()))
	case *types.Func:
		d.add("func %s%s", o.Name(), strings.TrimPrefix(d.text(o.Type()), "func"))
	case *types.TypeName:
		d.declared(o)
	}
}

func (d *describer) declared(o *types.TypeName) {
	name := "type " + o.Name()
	if o.IsAlias() {
		d.add("%s = %s", name, d.text(types.Unalias(o.Type())))
		return
	}
	switch u := o.Type().Underlying().(type) {
	case *types.Struct:
		d.fields(name, u)
	case *types.Interface:
		d.interfaceMethods(name, u)
	default:
		d.add("%s %s", name, d.text(u))
	}
	set := types.NewMethodSet(types.NewPointer(o.Type()))
	for i := range set.Len() {
		if m := set.At(i).Obj().(*types.Func); m.Exported() && !types.IsInterface(o.Type()) {
			receiver := d.text(m.Signature().Recv().Type())
			d.add("%s, method (%s) %s%s", name, receiver, m.Name(), strings.TrimPrefix(d.text(m.Type()), "func"))
		}
	}
}

func (d *describer) fields(name string, u *types.Struct) {
	d.add("%s struct", name)
	for f := range u.Fields() {
		if f.Exported() {
			d.add("%s, field %s %s", name, f.Name(), d.text(f.Type()))
		}
	}
}

func (d *describer) interfaceMethods(name string, u *types.Interface) {
	d.add("%s interface", name)
	for m := range u.Methods() {
		d.add("%s, method %s%s", name, m.Name(), strings.TrimPrefix(d.text(m.Type()), "func"))
	}
	for e := range u.EmbeddedTypes() {
		d.add("%s, of %s", name, d.text(e))
	}
}

// noPromise is part of the first sentence of the documentation of packages without the promise.
const noPromise = "no compatibility promise"

// Importable packages without the promise must state that in their first sentence.
func TestPackagesSayWhatTheyPromise(t *testing.T) {
	folders := make(map[string]string) // folder to package comment
	err := filepath.WalkDir(".", func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if slices.Contains([]string{"internal", "testdata", "lib", ".git", "tools"}, e.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil || f.Name.Name == "main" {
			return err
		}
		folders[filepath.Dir(file)] += comment(f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, text := range folders {
		first, _, _ := strings.Cut(strings.ReplaceAll(text, "\n", " "), ". ")
		if says := strings.Contains(first, noPromise); says == slices.Contains(promised, folder) {
			t.Errorf("%s: its comment begins %q. Either it has %q in the first sentence, or the package is in the list promised", folder, first, noPromise)
		}
	}
	if len(folders) < 30 {
		t.Errorf("only %d packages found", len(folders))
	}
}

func comment(f *ast.File) string {
	if f.Doc == nil {
		return ""
	}
	return f.Doc.Text()
}
