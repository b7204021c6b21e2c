package etrun_test

import (
	"cmp"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fileReferences are the references between the files of a package: edges[i] lists the files with declarations that
// file i uses.
type fileReferences struct {
	names []string
	edges [][]int
	pairs int
}

// backward returns how many pairs of files refer against an order.
func (r *fileReferences) backward(order []int) (n int) {
	position := make([]int, len(order))
	for i, f := range order {
		position[f] = i
	}
	for from, list := range r.edges {
		for _, to := range list {
			if position[from] > position[to] {
				n++
			}
		}
	}
	return n
}

// order looks for the order with the fewest references against it: from several starts, a file moves to a better
// position as long as there is one.
func (r *fileReferences) order() (best []int, fewest int) {
	const starts = 6
	random := rand.New(rand.NewPCG(1, 2))
	for start := range starts {
		order := make([]int, len(r.names))
		for i := range order {
			order[i] = i
		}
		if start == 0 {
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(r.edges[b]), len(r.edges[a])) })
		} else {
			random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		n := r.backward(order)
		for better := true; better; {
			order, n, better = r.improve(order, n)
		}
		if best == nil || n < fewest {
			best, fewest = order, n
		}
	}
	return best, fewest
}

// improve moves each file to its best position.
func (r *fileReferences) improve(order []int, n int) ([]int, int, bool) {
	better := false
	for f := range r.names {
		rest := slices.DeleteFunc(slices.Clone(order), func(x int) bool { return x == f })
		for at := range order {
			moved := slices.Insert(slices.Clone(rest), at, f)
			if m := r.backward(moved); m < n {
				order, n, better = moved, m, true
			}
		}
	}
	return order, n, better
}

// noImports resolves no declaration of other packages: references within a package need none.
type noImports struct{}

// Import implements types.Importer.
func (noImports) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, filepath.Base(name))
	p.MarkComplete()
	return p, nil
}

// referencesOf finds the references between the files of a folder's package, without tests.
func referencesOf(t *testing.T, folder string) *fileReferences {
	t.Helper()
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", "amd64", true
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set, files, r := token.NewFileSet(), []*ast.File(nil), &fileReferences{}
	for _, path := range paths {
		name := filepath.Base(path)
		if match, err := linux.MatchFile(folder, name); err != nil || !match || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files, r.names = append(files, file), append(r.names, path)
	}
	r.find(set, files)
	return r
}

// find resolves the names in the files.
func (r *fileReferences) find(set *token.FileSet, files []*ast.File) {
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	check := types.Config{Importer: noImports{}, FakeImportC: true, Error: func(error) {}} // names of other packages are errors
	pkg, _ := check.Check("p", set, files, info)
	r.edges = make([][]int, len(files))
	for name, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() || object.Parent() != pkg.Scope() && !isMethod(object) {
			continue
		}
		from := slices.Index(r.names, set.Position(name.Pos()).Filename)
		to := slices.Index(r.names, set.Position(object.Pos()).Filename)
		if from != to && !slices.Contains(r.edges[from], to) {
			r.edges[from] = append(r.edges[from], to)
			r.pairs++
		}
	}
}

func isMethod(object types.Object) bool {
	f, ok := object.(*types.Func)
	return ok && f.Signature().Recv() != nil
}

// TestFilesReferOneWay requires that the files of a package have an order, from the entry to what all use, which at
// most a tenth of the pairs of files that refer to one another run against: two in small packages. Declarations
// that several files need belong into a file below them, a table that lists all files into one above.
func TestFilesReferOneWay(t *testing.T) {
	packages := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if path != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
			return fs.SkipDir
		}
		r := referencesOf(t, path)
		if len(r.names) < 3 {
			return nil
		}
		packages++
		order, n := r.order()
		if limit := max(2, r.pairs/10); n > limit {
			t.Errorf("%s: %d of %d pairs of files refer against the best order, want at most %d:\n%s", path, n, r.pairs, limit, r.describe(order))
		}
		return nil
	})
	if err != nil || packages < 50 {
		t.Fatalf("%d packages, %v", packages, err)
	}
}

// describe lists an order, and the references against it.
func (r *fileReferences) describe(order []int) string {
	var b strings.Builder
	for i, from := range order {
		b.WriteString("  " + filepath.Base(r.names[from]))
		for _, to := range r.edges[from] {
			if slices.Index(order, to) < i {
				b.WriteString(" → " + filepath.Base(r.names[to]))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestFileOrder(t *testing.T) {
	r := &fileReferences{names: []string{"a", "b", "c", "d"}, edges: [][]int{{}, {0}, {1, 0}, {2, 1}}}
	if order, n := r.order(); n != 0 || !slices.Equal(order, []int{3, 2, 1, 0}) {
		t.Errorf("got %v with %d references against it", order, n)
	}
	r.edges[0] = []int{3}
	if _, n := r.order(); n != 1 {
		t.Errorf("%d references against the order of a circle, want 1", n)
	}
}
