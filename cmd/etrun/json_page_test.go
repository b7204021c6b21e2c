package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/command/bench"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/compare"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/diff"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/embed"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/generate"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/npu"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/ops"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/plan"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/tokenize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/transcribe"
	"github.com/etrun-go/etrun/cmd/etrun/internal/load"
)

var update = flag.Bool("update", false, "rewrite the generated pages of docs")

// jsonObjects are the objects that --json prints: the command, the schema and the type.
var jsonObjects = []struct {
	command, schema string
	object          any
}{
	{"run", "etrun.run/1", runReport{}},
	{"run --jsonl, for each line", "etrun.run.line/1", lineReport{}},
	{"generate", "etrun.generate/1", generate.Report{}},
	{"embed", "etrun.embed/1", embed.Report{}},
	{"transcribe", "etrun.transcribe/1", transcribe.Report{}},
	{"eval", "etrun.eval/1", evalReport{}},
	{"eval --decode", "etrun.eval.text/1", evalTextReport{}},
	{"eval --decode boxes", "etrun.eval.boxes/1", evalBoxReport{}},
	{"eval of several models", "etrun.eval.models/1", evalsReport{}},
	{"check", "etrun.check/1", checkReport{}},
	{"verify", "etrun.verify/1", verifyReport{}},
	{"compare", "etrun.compare/1", compare.Report{}},
	{"inspect", "etrun.inspect/1", programReport{}},
	{"inspect of a weight", "etrun.inspect.weight/1", weightReport{}},
	{"inspect of several files", "etrun.inspect.files/1", programsReport{}},
	{"plan", "etrun.plan/1", plan.Report{}},
	{"bench", "etrun.bench/1", bench.Report{}},
	{"bench --text", "etrun.bench.text/1", bench.TextReport{}},
	{"bench --audio", "etrun.bench.speech/1", bench.SpeechReport{}},
	{"load", "etrun.load/1", load.Report{}},
	{"profile", "etrun.profile/1", profileReport{}},
	{"report", "etrun.report/1", pageReport{}},
	{"view", "etrun.view/1", viewReport{}},
	{"diff", "etrun.diff/1", diff.Report{}},
	{"repair", "etrun.repair/1", repairReport{}},
	{"lower", "etrun.lower/1", lowerReport{}},
	{"quantize", "etrun.quantize/1", quantizeReport{}},
	{"tokenize", "etrun.tokenize/1", tokenize.Report{}},
	{"npu disasm", "etrun.disasm/1", npu.DisasmReport{}},
	{"npu disasm --summary", "etrun.disasm.summary/1", npu.SummaryReport{}},
	{"npu cycles", "etrun.cycles/1", npu.CyclesReport{}},
	{"npu calibrate", "etrun.npu-calibrate/1", npu.CalibrateReport{}},
	{"ops", "etrun.ops/1", ops.Report{}},
	{"doctor", "etrun.doctor/1", machineReport{}},
	{"version", "etrun.version/1", versionReport{}},
	{"any command that fails", "etrun.error/1", failure{}},
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
	d := fieldDocs{}
	for _, o := range jsonObjects {
		fmt.Fprintf(page, "\n## %s\n\nSchema `%s`.\n\n| field | type | meaning |\n|---|---|---|\n", o.command, o.schema)
		d.write(t, page, reflect.TypeOf(o.object), "", map[reflect.Type]string{})
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

// fieldDocs are the comments of struct fields by package path, type and field.
type fieldDocs map[string]map[string]string

// write appends a row for each field of a struct. Nested structs follow at their first occurrence;
// seen contains their paths.
func (d fieldDocs) write(t *testing.T, page *bytes.Buffer, s reflect.Type, prefix string, seen map[reflect.Type]string) {
	for i := range s.NumField() {
		f := s.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || name == "schema":
			continue
		case f.Anonymous && name == "":
			d.write(t, page, embedded(f.Type), prefix, seen)
			continue
		case !f.IsExported():
			continue
		}
		text, inner := typeName(f.Type)
		path := prefix + name + strings.Repeat("[]", dimensions(f.Type))
		if strings.Contains(options, "omit") {
			text += ", optional"
		}
		comment := d.of(t, s, f.Name)
		first, repeated := seen[inner]
		if repeated {
			comment = strings.TrimPrefix(comment+"; fields as in `"+first+"`", "; ")
		}
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", path, text, strings.ReplaceAll(comment, "|", `\|`))
		if inner != nil && !repeated {
			seen[inner] = path
			d.write(t, page, inner, path+".", seen)
		}
	}
}

// dimensions returns how many list types a type is nested in.
func dimensions(t reflect.Type) int {
	switch {
	case t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return 0
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return 1 + dimensions(t.Elem())
	}
	return 0
}

func embedded(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// typeName returns a type in JSON terms, and the struct whose fields follow.
func typeName(t reflect.Type) (name string, inner reflect.Type) {
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return "string", nil
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) {
		return "value", nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Slice, reflect.Array:
		name, inner = typeName(t.Elem())
		return "array of " + name, inner
	case reflect.Map:
		name, inner = typeName(t.Elem())
		return "object of " + name, inner
	case reflect.Struct:
		return "object", t
	case reflect.Bool:
		return "boolean", nil
	case reflect.String:
		return "string", nil
	case reflect.Float32, reflect.Float64:
		return "number", nil
	case reflect.Interface:
		return "value", nil
	}
	return "integer", nil
}

// of returns the comment of a field, on one line.
func (d fieldDocs) of(t *testing.T, s reflect.Type, field string) string {
	if s.PkgPath() == "" {
		return ""
	}
	if d[s.PkgPath()] == nil {
		d[s.PkgPath()] = parseFields(t, packageFolder(s.PkgPath()))
	}
	return d[s.PkgPath()][s.Name()+"."+field]
}

// packageFolder returns the source folder of a package of this module.
func packageFolder(path string) string {
	const module = "github.com/etrun-go/etrun"
	if path == "main" {
		path = module + "/cmd/etrun"
	}
	return filepath.Join(root, strings.TrimPrefix(path, module))
}

// parseFields reads the comments of all fields of a package's structs.
func parseFields(t *testing.T, folder string) map[string]string {
	docs := map[string]string{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
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
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				addFields(docs, spec)
			}
			return true
		})
	}
	return docs
}

func addFields(docs map[string]string, spec *ast.TypeSpec) {
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
		for _, name := range f.Names {
			docs[spec.Name.Name+"."+name.Name] = text
		}
	}
}
