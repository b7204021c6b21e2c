package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated pages of docs")

// jsonObjects are the objects that --json prints: the command, the schema and the type, with the folder of its package before it.
var jsonObjects = []struct{ command, schema, object string }{
	{"run", "etrun.run/1", "runReport"},
	{"run --jsonl, for each line", "etrun.run.line/1", "lineReport"},
	{"generate", "etrun.generate/1", "internal/command/generate.report"},
	{"embed", "etrun.embed/1", "internal/command/embed.report"},
	{"transcribe", "etrun.transcribe/1", "internal/command/transcribe.report"},
	{"eval", "etrun.eval/1", "evalReport"},
	{"eval --decode", "etrun.eval.text/1", "evalTextReport"},
	{"eval --decode boxes", "etrun.eval.boxes/1", "evalBoxReport"},
	{"eval of several models", "etrun.eval.models/1", "evalsReport"},
	{"check", "etrun.check/1", "checkReport"},
	{"verify", "etrun.verify/1", "verifyReport"},
	{"compare", "etrun.compare/1", "internal/command/compare.report"},
	{"inspect", "etrun.inspect/1", "programReport"},
	{"inspect of a weight", "etrun.inspect.weight/1", "weightReport"},
	{"inspect of several files", "etrun.inspect.files/1", "programsReport"},
	{"plan", "etrun.plan/1", "internal/command/plan.report"},
	{"bench", "etrun.bench/1", "internal/command/bench.report"},
	{"bench --text", "etrun.bench.text/1", "internal/command/bench.textReport"},
	{"bench --audio", "etrun.bench.speech/1", "internal/command/bench.speechReport"},
	{"load", "etrun.load/1", "internal/load.Report"},
	{"profile", "etrun.profile/1", "profileReport"},
	{"report", "etrun.report/1", "pageReport"},
	{"view", "etrun.view/1", "viewReport"},
	{"diff", "etrun.diff/1", "internal/command/diff.report"},
	{"repair", "etrun.repair/1", "repairReport"},
	{"lower", "etrun.lower/1", "lowerReport"},
	{"quantize", "etrun.quantize/1", "quantizeReport"},
	{"tokenize", "etrun.tokenize/1", "internal/command/tokenize.report"},
	{"npu disasm", "etrun.disasm/1", "internal/command/npu.disasmReport"},
	{"npu disasm --summary", "etrun.disasm.summary/1", "internal/command/npu.summaryReport"},
	{"npu cycles", "etrun.cycles/1", "internal/command/npu.cyclesReport"},
	{"npu calibrate", "etrun.npu-calibrate/1", "internal/command/npu.calibrateReport"},
	{"ops", "etrun.ops/1", "internal/command/ops.report"},
	{"doctor", "etrun.doctor/1", "machineReport"},
	{"version", "etrun.version/1", "versionReport"},
	{"any command that fails", "etrun.error/1", "failure"},
}

const jsonIntroduction = `# JSON

With ` + "`--json`" + ` a command prints one object on standard output; everything else goes to standard error. ` + "`schema`" + ` names the
object and its version. Within a version fields are added, never removed or changed; readers must ignore
unknown fields. A field marked *optional* is absent if it is empty.

A command that fails without a result prints ` + "`etrun.error/1`" + `. The exit code is the same with and without ` + "`--json`" + `.

This page is generated from the program (` + "`go test ./cmd/etrun -run TestJSONPage -update`" + `).
`

// TestJSONPage compares docs/json.md with the types that --json prints.
func TestJSONPage(t *testing.T) {
	page := bytes.NewBufferString(jsonIntroduction)
	d := declarations{}
	for _, o := range jsonObjects {
		fmt.Fprintf(page, "\n## %s\n\nSchema `%s`.\n\n| field | type | meaning |\n|---|---|---|\n", o.command, o.schema)
		folder, name, ok := strings.Cut(o.object, ".")
		if !ok {
			folder, name = "", folder
		}
		of := d.of(t, filepath.Join("cmd", "etrun", folder))
		_, s := d.typed(t, of, of.types[name])
		if s.StructType == nil {
			t.Fatalf("no struct %s", o.object)
		}
		d.write(t, page, s, "", map[*ast.StructType]string{})
	}
	path := filepath.Join(root, "docs", "json.md")
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := readText(t, "docs", "json.md"); got != page.String() {
		t.Errorf("%s is out of date; go test ./cmd/etrun -run TestJSONPage -update writes it", path)
	}
}

// TestJSONObjects finds schemas in the source that the page does not have.
func TestJSONObjects(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, o := range jsonObjects {
		listed[o.schema] = true
	}
	schema := regexp.MustCompile(`"(etrun\.[a-z.-]+/\d+)"`)
	for _, file := range files {
		for _, m := range schema.FindAllStringSubmatch(readText(t, "cmd", "etrun", file), -1) {
			if !listed[m[1]] {
				t.Errorf("%s: schema %s is not among jsonObjects", file, m[1])
			}
		}
	}
}

// declared is what a package's source declares.
type declared struct {
	types   map[string]ast.Expr
	folders map[string]string // of this module's packages that it imports, by name
	writers map[string]string // what types that write themselves are in JSON
}

// object is a struct, with the package whose names it uses.
type object struct {
	*ast.StructType
	of *declared
}

// declarations are packages by folder.
type declarations map[string]*declared

// write appends a row for each field of a struct. Nested structs follow at their first occurrence;
// seen contains their paths.
func (d declarations) write(t *testing.T, page *bytes.Buffer, s object, prefix string, seen map[*ast.StructType]string) {
	for _, f := range s.Fields.List {
		tag := ""
		if f.Tag != nil {
			tag, _ = strconv.Unquote(f.Tag.Value)
		}
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		text, inner := d.typed(t, s.of, f.Type)
		switch {
		case name == "-" || name == "schema":
			continue
		case f.Names == nil && name == "":
			d.write(t, page, inner, prefix, seen)
			continue
		case f.Names != nil && !f.Names[0].IsExported():
			continue
		}
		path := prefix + name
		for of := text; strings.HasPrefix(of, "array of "); of = of[len("array of "):] {
			path += "[]"
		}
		if strings.Contains(options, "omit") {
			text += ", optional"
		}
		comment := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
		first, repeated := seen[inner.StructType]
		if repeated {
			comment = strings.TrimPrefix(comment+"; fields as in `"+first+"`", "; ")
		}
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", path, text, strings.ReplaceAll(comment, "|", `\|`))
		if inner.StructType != nil && !repeated {
			seen[inner.StructType] = path
			d.write(t, page, inner, path+".", seen)
		}
	}
}

// typed returns a type in JSON terms, and the struct whose fields follow.
func (d declarations) typed(t *testing.T, of *declared, x ast.Expr) (name string, inner object) {
	switch x := x.(type) {
	case *ast.StarExpr:
		return d.typed(t, of, x.X)
	case *ast.ArrayType:
		name, inner = d.typed(t, of, x.Elt)
		return "array of " + name, inner
	case *ast.MapType:
		name, inner = d.typed(t, of, x.Value)
		return "object of " + name, inner
	case *ast.StructType:
		return "object", object{x, of}
	case *ast.InterfaceType:
		return "value", object{}
	case *ast.SelectorExpr:
		from := x.X.(*ast.Ident).Name
		if from == "json" && x.Sel.Name == "RawMessage" {
			return "value", object{}
		}
		if folder, ok := of.folders[from]; ok {
			return d.typed(t, d.of(t, folder), x.Sel)
		}
	case *ast.Ident:
		switch own := of.types[x.Name]; {
		case of.writers[x.Name] != "":
			return of.writers[x.Name], object{}
		case own != nil:
			return d.typed(t, of, own)
		case x.Name == "any":
			return "value", object{}
		case x.Name == "bool":
			return "boolean", object{}
		case x.Name == "string":
			return "string", object{}
		case strings.HasPrefix(x.Name, "float"):
			return "number", object{}
		}
	}
	return "integer", object{}
}

// of reads the source of a package.
func (d declarations) of(t *testing.T, folder string) *declared {
	if d[folder] != nil {
		return d[folder]
	}
	p := &declared{make(map[string]ast.Expr), make(map[string]string), make(map[string]string)}
	d[folder] = p
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		p.add(f)
	}
	return p
}

func (p *declared) add(f *ast.File) {
	for _, i := range f.Imports {
		if path, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "github.com/etrun-go/etrun"); ours {
			p.folders[cmp.Or(i.Name, &ast.Ident{Name: filepath.Base(path)}).Name] = path
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			p.types[n.Name.Name] = n.Type
		case *ast.FuncDecl:
			if text := map[string]string{"MarshalJSON": "value", "MarshalText": "string"}[n.Name.Name]; text != "" && n.Recv != nil {
				p.writers[strings.TrimPrefix(types.ExprString(n.Recv.List[0].Type), "*")] = text
			}
			return false
		}
		return true
	})
}
