package repo

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/etrun-go/etrun"

// layers are the top-level folders from bottom to top: a package only imports packages of its own
// layer or a lower one. The root package is ".".
var layers = [][]string{
	{"internal", "cbindings", "hal"},
	{"kernels"},
	{"media"},
	{"delegate"},
	{"runtime"},
	{"."},
	{"text"},
	{"speech"},
	{"serve"},
	{"examples", "scripts"},
	{"cmd", "cbindings/libetrun"},
}

// runtimeImports contains the packages of runtime that each package of runtime may import.
var runtimeImports = map[string][]string{
	"runtime/lower":         {"runtime/ir", "runtime/pte"},
	"runtime/plan":          {"runtime/ir", "runtime/pte"},
	"runtime/rows":          {"runtime/ir"},
	"runtime/ir":            {"runtime/pte"},
	"runtime/prepare":       {"runtime/ir", "runtime/lower", "runtime/plan", "runtime/pte", "runtime/trace"},
	"runtime/compile":       {"runtime/ir", "runtime/lower", "runtime/plan", "runtime/prepare", "runtime/pte", "runtime/pte/tree"},
	"runtime/exec":          {"runtime/ir", "runtime/lower", "runtime/plan", "runtime/prepare", "runtime/rows", "runtime/trace"},
	"runtime/trace":         nil,
	"runtime/metrics":       {"runtime/trace"},
	"runtime/pte":           nil,
	"runtime/pte/tree":      {"runtime/pte"},
	"runtime/exec/exectest": {"runtime/exec", "runtime/ir", "runtime/plan", "runtime/prepare", "runtime/pte", "runtime/trace"},
	"runtime/pte/ptetest":   {"runtime/pte", "runtime/pte/tree"},
}

const internals, engine = "delegate/xnnpack/internal/", "delegate/xnnpack/internal/goengine/"

// roomImports contains the packages of delegate/xnnpack that each of them may import. The engines and lowering do not
// know each other; the package itself composes them.
var roomImports = map[string][]string{
	"delegate/xnnpack":     {internals + "native", internals + "goengine", internals + "lowering", internals + "quantize", internals + "graph"},
	internals + "native":   {internals + "graph"},
	internals + "goengine": {engine + "floats", engine + "integers", engine + "moves", engine + "frame", engine + "filters", engine + "numbers", internals + "graph"},
	engine + "floats":      {engine + "frame", engine + "filters", engine + "numbers", internals + "graph"},
	engine + "integers":    {engine + "frame", engine + "filters", engine + "numbers", internals + "graph"},
	engine + "moves":       {engine + "frame", internals + "graph"},
	engine + "frame":       {engine + "filters", engine + "numbers", internals + "graph"},
	engine + "filters":     {engine + "numbers", internals + "graph"},
	engine + "numbers":     {internals + "graph"},
	internals + "lowering": {internals + "graph"},
	internals + "quantize": {internals + "graph"},
	internals + "graph":    nil,
	// for tests
	internals + "graphtest": {internals + "graph"},
	internals + "callstest": {internals + "graphtest"},
}

// confined are imports allowed only in some folders.
var confined = map[string][]string{
	"C":      {"cbindings"},
	"unsafe": {"cbindings", "kernels/tensor", "hal", "internal/simd", "internal/sandbox", "serve/grpc/inference"},
}

// light are the modules that library packages may import; others are for cmd and for tests.
var light = []string{
	"golang.org/x/sys", "github.com/google/flatbuffers", "github.com/ebitengine/purego", "github.com/x448/float16",
}

// heavy are modules that some library packages and those below them may import, which in turn only programs, and packages
// above the root, may import.
var heavy = map[string][]string{
	"github.com/prometheus/client_golang": {"runtime/metrics"},
	"github.com/go-json-experiment/json":  {"serve"},
	"github.com/mewkiz/flac":              {"media/sound"},
	"golang.org/x/image":                  {"media/picture"},
	"golang.org/x/text":                   {"text/tokenizer"},
	"github.com/clipperhouse/uax29":       {"text/tokenizer"},
	"google.golang.org/protobuf":          {"text/tokenizer", "serve/grpc"},
}

// under reports whether pkg is one of the folders or below one.
func under(pkg string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return pkg == f || strings.HasPrefix(pkg, f+"/") })
}

// ofTests reports whether a package is only for tests.
func ofTests(pkg string) bool {
	return strings.HasSuffix(pkg, "test") || under(pkg, "internal/await", "internal/campaign", "internal/cases", "internal/cputime", "internal/guard",
		"internal/needs", "cbindings/xnn/xnnguard")
}

// layerOf returns the layer of a package, -1 for none; cbindings is listed in several and belongs
// to the highest.
func layerOf(pkg string) int {
	for i, folders := range slices.Backward(layers) {
		if under(pkg, folders...) {
			return i
		}
	}
	return -1
}

// verdict returns what is wrong with an import by a package, "" for nothing. A test may import from
// any layer.
func verdict(pkg, imported string, test bool) string {
	if folders, ok := confined[imported]; ok {
		if !under(pkg, folders...) {
			return "only in " + strings.Join(folders, ", ")
		}
		return ""
	}
	if test {
		return ""
	}
	own, ours := inModule(imported)
	if !ofTests(pkg) && (imported == "testing" || ours && ofTests(own)) {
		return "only in tests: programs would link them"
	}
	if !ours {
		return foreign(pkg, imported)
	}
	for _, only := range heavy {
		if slices.Contains(only, own) && !under(pkg, "cmd", "cbindings/libetrun", "examples", "serve", "text", "speech") {
			return "only for programs that ask for it"
		}
	}
	from, to := layerOf(pkg), layerOf(own)
	switch {
	case from < 0:
		return "a package in no layer"
	case to < 0 || to > from:
		return "an import from a higher layer"
	case to == from && under(pkg, "runtime") && !slices.Contains(runtimeImports[pkg], own):
		return "not among the imports of " + pkg
	case under(pkg, "delegate/xnnpack") && under(own, "delegate/xnnpack") && !slices.Contains(roomImports[pkg], own):
		return "not among the imports of " + pkg
	}
	return ""
}

// inModule returns the folder of a package of the module.
func inModule(imported string) (folder string, ok bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// foreign checks an import of another module, or of the standard library.
func foreign(pkg, imported string) string {
	host, _, _ := strings.Cut(imported, "/")
	internalTests := under(pkg, "internal") && ofTests(pkg)
	if !strings.Contains(host, ".") || under(pkg, "cmd", "examples") || internalTests || under(imported, light...) {
		return ""
	}
	for folder, only := range heavy {
		if under(imported, folder) && under(pkg, only...) {
			return ""
		}
	}
	return "a module for cmd and tests only"
}

func TestLayering(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || path == "tools") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		files++
		checkFile(t, path)
		return nil
	})
	if err != nil || files < 10 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func checkFile(t *testing.T, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	pkg := filepath.ToSlash(filepath.Dir(path))
	if pkg == "." && strings.HasSuffix(path, "_test.go") && file.Name.Name != "etrun_test" {
		t.Errorf("%s is in package %s: tests of the root package see its public API only", path, file.Name.Name)
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Error(err)
		}
		if why := verdict(pkg, imported, strings.HasSuffix(path, "_test.go")); why != "" {
			t.Errorf("%s imports %q: %s", path, imported, why)
		}
	}
}

// TestVerdict checks invalid and valid imports.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		pkg, imported string
		test, wrong   bool
	}{
		{"kernels", "C", false, true},
		{"cbindings/xnn", "C", false, false},
		{"cbindings/xnn", module, false, true},
		{"cbindings/libetrun", module, false, false},
		{"cbindings/libetrun", module + "/text/tokenizer", false, false},
		{"cbindings/xnn", module + "/text/tokenizer", false, true},
		{".", "unsafe", false, true},
		{".", "unsafe", true, true},
		{"kernels/tensor", "unsafe", false, false},
		{"kernels/tensorlike", "unsafe", false, true},
		{"internal/simd", "unsafe", false, false},
		{"internal/flatbuf", "unsafe", false, true},
		{"hal/cpu", "unsafe", false, false},
		{"kernels", module + "/delegate", false, true},
		{"kernels", module + "/delegate", true, false},
		{"kernels/portable", module + "/kernels/tensor", false, false},
		{"cmd/etrun/internal/verify", module + "/kernels/kerneltest", false, true},
		{"cmd/etrun/internal/verify", module + "/kernels/kerneltest", true, false},
		{"cmd/etrun/internal/verify", module + "/kernels/compare", false, false},
		{"kernels/kerneltest", "testing", false, false},
		{"runtime/plan", "testing", false, true},
		{"cbindings/xnn/xnntest", module + "/internal/needs", false, false},
		{"hal/cpu", module + "/kernels", false, true},
		{"delegate/xnnpack", module + "/cbindings/xnn", false, false},
		{"delegate/xnnpack", module + "/runtime/pte", false, true},
		{"delegate/xnnpack", module + "/" + internals + "native", false, false},
		{internals + "native", module + "/" + internals + "graph", false, false},
		{internals + "native", module + "/" + internals + "goengine", false, true},
		{internals + "lowering", module + "/" + internals + "native", false, true},
		{internals + "lowering", module + "/delegate/xnnpack", false, true},
		{internals + "graph", module + "/" + internals + "cost", false, true},
		{internals + "other", module + "/" + internals + "graph", false, true},
		{internals + "graph", module + "/cbindings/xnn", false, false},
		{"runtime/pte", module + "/runtime/ir", false, true},
		{"runtime/ir", module + "/runtime/pte", false, false},
		{"runtime/plan", module + "/runtime/lower", false, true},
		{"runtime/prepare", module + "/runtime/lower", false, false},
		{"runtime/prepare", module, false, true},
		{"runtime/lower", module + "/runtime/prepare", false, true},
		{"runtime/trace", module, false, true},
		{"runtime/new", module + "/runtime/pte", false, true},
		{"runtime/metrics", module + "/runtime/trace", false, false},
		{"runtime/metrics", "github.com/prometheus/client_golang/prometheus", false, false},
		{"runtime/trace", "github.com/prometheus/client_golang/prometheus", false, true},
		{".", module + "/runtime/metrics", false, true},
		{"serve", module + "/serve/oip", false, false},
		{"serve", module, false, false},
		{"serve", module + "/text", false, false},
		{"text", module, false, false},
		{"delegate", module + "/text/tokenizer", false, true},
		{"text", module + "/text/tokenizer", false, false},
		{".", module + "/text", false, true},
		{".", module + "/serve", false, true},
		{"serve", module + "/text/tokenizer", false, false},
		{".", module + "/text/tokenizer", false, true},
		{"serve", "github.com/prometheus/client_golang/prometheus", false, true},
		{"serve/oip", "github.com/go-json-experiment/json/jsontext", false, false},
		{"kernels", "github.com/go-json-experiment/json/jsontext", false, true},
		{"examples/daemon", module + "/runtime/metrics", false, false},
		{"examples/daemon", "github.com/prometheus/client_golang/prometheus/promhttp", false, false},
		{"cmd/etrun", module + "/runtime/pte", false, false},
		{"cmd/etrun", "github.com/spf13/cobra", false, false},
		{".", "github.com/spf13/cobra", false, true},
		{"runtime", "github.com/google/flatbuffers/go", false, false},
		{"runtime", "encoding/binary", false, false},
		{"elsewhere", module + "/kernels", false, true},
	} {
		if why := verdict(c.pkg, c.imported, c.test); (why != "") != c.wrong {
			t.Errorf("%s imports %q, in a test %v: verdict %q, want a fault %v", c.pkg, c.imported, c.test, why, c.wrong)
		}
	}
}
